//! Abstract numbers: a base and a stride.

/// A number `base + k * stride`, where `k` is any integer.
///
/// `base` is not reduced modulo `stride`: it is the number for `k = 0`, and so it keeps the constant that a compiler
/// folded into an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StridedValue {
    pub(super) base: i64,
    /// The factor of `k`; 0 for a constant.
    pub(super) stride: i64,
    /// The value number of `k`: the difference of two numbers with the same one is known. 0 for any.
    pub(super) symbol: u64,
    /// `true` if `k` is 0 or 1, by a conditional choice.
    pub(super) is_choice: bool,
}

/// The maximum stride; beyond it the largest power of two that divides it is used.
const STRIDE_LIMIT: i64 = 1 << 40;

impl StridedValue {
    /// A number of which nothing is known.
    pub(super) const ANY: StridedValue = StridedValue { base: 0, stride: 1, symbol: 0, is_choice: false };

    /// Creates the value of a known constant.
    pub(super) fn known(base: i64) -> StridedValue {
        StridedValue { base, stride: 0, ..StridedValue::ANY }
    }

    /// Creates any multiple of a stride.
    pub(super) fn multiple(stride: i64) -> StridedValue {
        StridedValue { stride, ..StridedValue::ANY }.bounded()
    }

    /// Creates one of two numbers.
    pub(super) fn choice(one: i64, other: i64) -> StridedValue {
        match other.checked_sub(one) {
            Some(stride) => StridedValue { base: one, stride, symbol: 0, is_choice: true }.bounded(),
            None => StridedValue { base: one, ..StridedValue::ANY },
        }
    }

    /// Returns the two possible numbers, equal for a constant; `None` if there may be others.
    pub(super) fn alternatives(self) -> Option<[i64; 2]> {
        let is_few = self.stride == 0 || self.is_choice;
        is_few.then(|| [self.base, self.base.wrapping_add(self.stride)])
    }

    /// Applies a function to each possible number, if there are at most two.
    pub(super) fn each(self, apply: impl Fn(i64) -> i64) -> Option<StridedValue> {
        let [one, other] = self.alternatives()?;
        let number = StridedValue::choice(apply(one), apply(other));
        Some(StridedValue { symbol: if number.is_choice { self.symbol } else { 0 }, ..number })
    }

    /// Returns the magnitude of the stride; 0 for a constant.
    pub(super) fn magnitude(self) -> u64 {
        self.stride.unsigned_abs()
    }

    /// Returns the sum of two numbers.
    pub(super) fn plus(self, other: StridedValue) -> StridedValue {
        let base = self.base.wrapping_add(other.base);
        match (self.stride, other.stride) {
            (_, 0) => StridedValue { base, ..self },
            (0, _) => StridedValue { base, ..other },
            (one, two) if self.symbol == other.symbol && self.symbol != 0 => match one.checked_add(two) {
                Some(0) => StridedValue::known(base),
                Some(stride) => StridedValue {
                    base,
                    stride,
                    symbol: self.symbol,
                    is_choice: self.is_choice || other.is_choice,
                }
                .bounded(),
                None => StridedValue { base, ..StridedValue::ANY },
            },
            (one, two) => StridedValue { base, stride: divisor(one, two), ..StridedValue::ANY }.bounded(),
        }
    }

    /// Returns the product with a constant.
    pub(super) fn times(self, by: i64) -> StridedValue {
        match self.stride.checked_mul(by) {
            _ if by == 0 => StridedValue::known(0),
            Some(stride) => StridedValue { base: self.base.wrapping_mul(by), stride, ..self }.bounded(),
            // every multiple of a power of two stays one, also of what is cut off at 64 bits
            None => {
                StridedValue { base: self.base.wrapping_mul(by), stride: low_bit(by), ..StridedValue::ANY }
                    .bounded()
            }
        }
    }

    /// Returns the product of two numbers.
    pub(super) fn product(self, other: StridedValue) -> StridedValue {
        match (self.stride, other.stride) {
            (_, 0) => self.times(other.base),
            (0, _) => other.times(self.base),
            // a multiple of what divides each of them
            (one, two) => {
                let (one, two) = (divisor(self.base, one), divisor(other.base, two));
                StridedValue { stride: one.checked_mul(two).unwrap_or(1), ..StridedValue::ANY }.bounded()
            }
        }
    }

    /// Returns the number with bits cleared.
    pub(super) fn masked(self, mask: i64) -> StridedValue {
        if let Some(number) = self.each(|number| number & mask) {
            return number;
        }
        match mask {
            0 => StridedValue::known(0),
            -1 => self,
            // low bits that are clear before are clear behind
            _ => StridedValue::multiple(low_bit(mask).max(low_bit(divisor(self.base, self.stride)))),
        }
    }

    /// Returns the join of two numbers, with the base of this one.
    pub(super) fn join(self, other: StridedValue, symbol: u64) -> StridedValue {
        if self == other {
            return self;
        }
        if let (Some(mine), Some(theirs)) = (self.alternatives(), other.alternatives()) {
            let mut new = theirs.into_iter().filter(|number| !mine.contains(number));
            match (mine, new.next(), new.next()) {
                (_, None, _) => return StridedValue { symbol, ..self },
                ([one, same], Some(new), None) if one == same => {
                    return StridedValue { symbol, ..StridedValue::choice(one, new) };
                }
                ([one, same], Some(new), Some(last)) if one == same && new == last => {
                    return StridedValue { symbol, ..StridedValue::choice(one, new) };
                }
                _ => {}
            }
        }
        let apart = self.base.wrapping_sub(other.base);
        match divisor(divisor(self.stride, other.stride), apart) {
            0 => StridedValue::known(self.base),
            stride => StridedValue { base: self.base, stride, symbol, is_choice: false }.bounded(),
        }
    }

    fn bounded(self) -> StridedValue {
        match self.stride {
            0 => StridedValue::known(self.base),
            stride if stride.unsigned_abs() <= STRIDE_LIMIT as u64 => self,
            stride => StridedValue {
                base: self.base,
                stride: low_bit(stride).min(STRIDE_LIMIT),
                ..StridedValue::ANY
            },
        }
    }
}

/// Returns the lowest set bit; the highest bit of 0.
fn low_bit(number: i64) -> i64 {
    1 << number.trailing_zeros().min(62)
}

/// Returns the greatest common divisor; 0 only for two zeros.
pub(super) fn divisor(one: i64, other: i64) -> i64 {
    let (mut one, mut other) = (one.unsigned_abs(), other.unsigned_abs());
    while other != 0 {
        (one, other) = (other, one % other);
    }
    i64::try_from(one).unwrap_or(1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: StridedValue = StridedValue { base: 0, stride: 1, symbol: 7, is_choice: false };

    #[test]
    fn an_index_times_a_size_is_a_multiple_of_it_and_keeps_what_was_added() {
        // (i + 5) << 4
        let folded = INDEX.plus(StridedValue::known(5)).times(16);
        assert_eq!(folded, StridedValue { base: 80, stride: 16, ..INDEX });
        assert_eq!(folded.magnitude(), 16);
    }

    #[test]
    fn sums_of_one_index_add_their_strides() {
        // 7 * i as 8 * i - i, 13 * i as i + 4 * (i + 2 * i)
        assert_eq!(INDEX.times(8).plus(INDEX.times(-1)).stride, 7);
        assert_eq!(INDEX.plus(INDEX.plus(INDEX.times(2)).times(4)).stride, 13);
        assert_eq!(INDEX.plus(INDEX.times(-1)), StridedValue::known(0));
        // two indices have the common divisor
        let other = StridedValue { symbol: 8, ..INDEX };
        assert_eq!(INDEX.times(24).plus(other.times(32)).stride, 8);
        assert_eq!(StridedValue::multiple(24).plus(StridedValue::multiple(-24)).stride, 24);
    }

    #[test]
    fn a_join_keeps_the_common_stride() {
        let twice = StridedValue::known(16).join(StridedValue::known(48), 9);
        assert_eq!(twice, StridedValue { base: 16, stride: 32, symbol: 9, is_choice: true });
        let loops = twice.join(twice.plus(StridedValue::known(32)), 9);
        assert_eq!(loops, StridedValue { is_choice: false, ..twice });
        // the next time round nothing changes
        assert_eq!(loops.join(loops.plus(StridedValue::known(32)), 9), loops);
        assert_eq!(loops.join(StridedValue::known(20), 9).stride, 4);
        assert_eq!(StridedValue::known(3).join(StridedValue::known(3), 9), StridedValue::known(3));
    }

    #[test]
    fn one_of_two_stays_one_of_two() {
        // 8 * (a < b) + 16
        let choice = StridedValue { symbol: 7, ..StridedValue::choice(0, 1) };
        assert_eq!(choice.times(8).plus(StridedValue::known(16)).alternatives(), Some([16, 24]));
        // sbb, and
        assert_eq!(StridedValue::choice(0, -1).masked(24).alternatives(), Some([0, 24]));
        assert_eq!(StridedValue::choice(0, 4).masked(3), StridedValue::known(0));
        // the same choice is made once, another one is another
        assert_eq!(choice.times(8).plus(choice).alternatives(), Some([0, 9]));
        assert_eq!(choice.plus(StridedValue { symbol: 8, ..choice }).alternatives(), None);
        // a join with a state that is already its result loses nothing, one with a third number does
        assert_eq!(choice.join(StridedValue::known(1), 9).alternatives(), Some([0, 1]));
        assert_eq!(StridedValue::known(1).join(choice, 9).alternatives(), Some([1, 0]));
        assert_eq!(choice.join(StridedValue::known(2), 9).alternatives(), None);
        assert_eq!(INDEX.alternatives(), None);
        assert_eq!(StridedValue::choice(i64::MIN, i64::MAX).alternatives(), None);
    }

    #[test]
    fn masks_leave_multiples_of_their_lowest_bit() {
        assert_eq!(INDEX.masked(-16), StridedValue::multiple(16));
        assert_eq!(INDEX.masked(0x1e0), StridedValue::multiple(32));
        assert_eq!(INDEX.times(64).masked(0xff), StridedValue::multiple(64));
        assert_eq!(StridedValue::known(0x1234).masked(0xff), StridedValue::known(0x34));
    }

    #[test]
    fn large_numbers_stay_bounded() {
        let far = INDEX.times(i64::MAX);
        assert!(far.magnitude() <= STRIDE_LIMIT as u64, "{far:?}");
        assert_eq!(INDEX.times(1 << 50).times(1 << 20).stride, STRIDE_LIMIT);
        assert_eq!(StridedValue::known(i64::MIN).join(StridedValue::known(i64::MAX), 1).stride, 1);
        assert_eq!(divisor(i64::MIN, 0), 1 << 62);
        assert_eq!(StridedValue::multiple(6).product(StridedValue::multiple(4)).stride, 24);
    }
}
