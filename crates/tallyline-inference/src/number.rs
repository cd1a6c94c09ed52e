//! Abstract numbers: a base and a stride.

/// A number `at + k * step`, where `k` is any integer.
///
/// `at` is not reduced modulo `step`: it is the number for `k = 0`, and so it keeps the constant that a compiler
/// folded into an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) at: i64,
    /// 0 for a constant.
    pub(super) step: i64,
    /// The value number of `k`: the difference of two numbers with the same one is known. 0 for any.
    pub(super) of: u64,
    /// `true` if `k` is 0 or 1, by a conditional choice.
    pub(super) is_either: bool,
}

/// The maximum stride; beyond it the largest power of two that divides it is used.
const STEP_LIMIT: i64 = 1 << 40;

impl Number {
    /// An unknown number.
    pub(super) const ANY: Number = Number { at: 0, step: 1, of: 0, is_either: false };

    /// Creates a constant.
    pub(super) fn known(at: i64) -> Number {
        Number { at, step: 0, ..Number::ANY }
    }

    /// Creates any multiple of a stride.
    pub(super) fn multiple(step: i64) -> Number {
        Number { step, ..Number::ANY }.bounded()
    }

    /// Creates one of two numbers.
    pub(super) fn either(one: i64, other: i64) -> Number {
        match other.checked_sub(one) {
            Some(step) => Number { at: one, step, of: 0, is_either: true }.bounded(),
            None => Number { at: one, ..Number::ANY },
        }
    }

    /// Returns the two possible numbers, equal for a constant; `None` if there may be others.
    pub(super) fn both(self) -> Option<[i64; 2]> {
        let is_few = self.step == 0 || self.is_either;
        is_few.then(|| [self.at, self.at.wrapping_add(self.step)])
    }

    /// Applies a function to each possible number, if there are at most two.
    pub(super) fn each(self, of: impl Fn(i64) -> i64) -> Option<Number> {
        let [one, other] = self.both()?;
        let number = Number::either(of(one), of(other));
        Some(Number { of: if number.is_either { self.of } else { 0 }, ..number })
    }

    /// Returns the magnitude of the stride; 0 for a constant.
    pub(super) fn stride(self) -> u64 {
        self.step.unsigned_abs()
    }

    /// Returns the sum of two numbers.
    pub(super) fn plus(self, other: Number) -> Number {
        let at = self.at.wrapping_add(other.at);
        match (self.step, other.step) {
            (_, 0) => Number { at, ..self },
            (0, _) => Number { at, ..other },
            (one, two) if self.of == other.of && self.of != 0 => match one.checked_add(two) {
                Some(0) => Number::known(at),
                Some(step) => {
                    Number { at, step, of: self.of, is_either: self.is_either || other.is_either }.bounded()
                }
                None => Number { at, ..Number::ANY },
            },
            (one, two) => Number { at, step: divisor(one, two), ..Number::ANY }.bounded(),
        }
    }

    /// Returns the product with a constant.
    pub(super) fn times(self, by: i64) -> Number {
        match self.step.checked_mul(by) {
            _ if by == 0 => Number::known(0),
            Some(step) => Number { at: self.at.wrapping_mul(by), step, ..self }.bounded(),
            // every multiple of a power of two stays one, also of what is cut off at 64 bits
            None => Number { at: self.at.wrapping_mul(by), step: low_bit(by), ..Number::ANY }.bounded(),
        }
    }

    /// Returns the product of two numbers.
    pub(super) fn product(self, other: Number) -> Number {
        match (self.step, other.step) {
            (_, 0) => self.times(other.at),
            (0, _) => other.times(self.at),
            // a multiple of what divides each of them
            (one, two) => {
                let (one, two) = (divisor(self.at, one), divisor(other.at, two));
                Number { step: one.checked_mul(two).unwrap_or(1), ..Number::ANY }.bounded()
            }
        }
    }

    /// Returns the number with bits cleared.
    pub(super) fn masked(self, mask: i64) -> Number {
        if let Some(number) = self.each(|number| number & mask) {
            return number;
        }
        match mask {
            0 => Number::known(0),
            -1 => self,
            // low bits that are clear before are clear behind
            _ => Number::multiple(low_bit(mask).max(low_bit(divisor(self.at, self.step)))),
        }
    }

    /// Returns the join of two numbers, with the base of this one.
    pub(super) fn or(self, other: Number, of: u64) -> Number {
        if self == other {
            return self;
        }
        if let (Some(mine), Some(theirs)) = (self.both(), other.both()) {
            let mut new = theirs.into_iter().filter(|number| !mine.contains(number));
            match (mine, new.next(), new.next()) {
                (_, None, _) => return Number { of, ..self },
                ([one, same], Some(new), None) if one == same => {
                    return Number { of, ..Number::either(one, new) };
                }
                ([one, same], Some(new), Some(last)) if one == same && new == last => {
                    return Number { of, ..Number::either(one, new) };
                }
                _ => {}
            }
        }
        let apart = self.at.wrapping_sub(other.at);
        match divisor(divisor(self.step, other.step), apart) {
            0 => Number::known(self.at),
            step => Number { at: self.at, step, of, is_either: false }.bounded(),
        }
    }

    fn bounded(self) -> Number {
        match self.step {
            0 => Number::known(self.at),
            step if step.unsigned_abs() <= STEP_LIMIT as u64 => self,
            step => Number { at: self.at, step: low_bit(step).min(STEP_LIMIT), ..Number::ANY },
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

    const INDEX: Number = Number { at: 0, step: 1, of: 7, is_either: false };

    #[test]
    fn an_index_times_a_size_is_a_multiple_of_it_and_keeps_what_was_added() {
        // (i + 5) << 4
        let folded = INDEX.plus(Number::known(5)).times(16);
        assert_eq!(folded, Number { at: 80, step: 16, ..INDEX });
        assert_eq!(folded.stride(), 16);
    }

    #[test]
    fn sums_of_one_index_add_their_steps() {
        // 7 * i as 8 * i - i, 13 * i as i + 4 * (i + 2 * i)
        assert_eq!(INDEX.times(8).plus(INDEX.times(-1)).step, 7);
        assert_eq!(INDEX.plus(INDEX.plus(INDEX.times(2)).times(4)).step, 13);
        assert_eq!(INDEX.plus(INDEX.times(-1)), Number::known(0));
        // two indices have the common divisor
        let other = Number { of: 8, ..INDEX };
        assert_eq!(INDEX.times(24).plus(other.times(32)).step, 8);
        assert_eq!(Number::multiple(24).plus(Number::multiple(-24)).step, 24);
    }

    #[test]
    fn ways_that_meet_leave_the_common_step() {
        let twice = Number::known(16).or(Number::known(48), 9);
        assert_eq!(twice, Number { at: 16, step: 32, of: 9, is_either: true });
        let loops = twice.or(twice.plus(Number::known(32)), 9);
        assert_eq!(loops, Number { is_either: false, ..twice });
        // the next time round nothing changes
        assert_eq!(loops.or(loops.plus(Number::known(32)), 9), loops);
        assert_eq!(loops.or(Number::known(20), 9).step, 4);
        assert_eq!(Number::known(3).or(Number::known(3), 9), Number::known(3));
    }

    #[test]
    fn one_of_two_stays_one_of_two() {
        // 8 * (a < b) + 16
        let choice = Number { of: 7, ..Number::either(0, 1) };
        assert_eq!(choice.times(8).plus(Number::known(16)).both(), Some([16, 24]));
        // sbb, and
        assert_eq!(Number::either(0, -1).masked(24).both(), Some([0, 24]));
        assert_eq!(Number::either(0, 4).masked(3), Number::known(0));
        // the same choice is made once, another one is another
        assert_eq!(choice.times(8).plus(choice).both(), Some([0, 9]));
        assert_eq!(choice.plus(Number { of: 8, ..choice }).both(), None);
        // where ways meet with what is known already nothing is lost, with a third number it is
        assert_eq!(choice.or(Number::known(1), 9).both(), Some([0, 1]));
        assert_eq!(Number::known(1).or(choice, 9).both(), Some([1, 0]));
        assert_eq!(choice.or(Number::known(2), 9).both(), None);
        assert_eq!(INDEX.both(), None);
        assert_eq!(Number::either(i64::MIN, i64::MAX).both(), None);
    }

    #[test]
    fn masks_leave_multiples_of_their_lowest_bit() {
        assert_eq!(INDEX.masked(-16), Number::multiple(16));
        assert_eq!(INDEX.masked(0x1e0), Number::multiple(32));
        assert_eq!(INDEX.times(64).masked(0xff), Number::multiple(64));
        assert_eq!(Number::known(0x1234).masked(0xff), Number::known(0x34));
    }

    #[test]
    fn large_numbers_stay_bounded() {
        let far = INDEX.times(i64::MAX);
        assert!(far.stride() <= STEP_LIMIT as u64, "{far:?}");
        assert_eq!(INDEX.times(1 << 50).times(1 << 20).step, STEP_LIMIT);
        assert_eq!(Number::known(i64::MIN).or(Number::known(i64::MAX), 1).step, 1);
        assert_eq!(divisor(i64::MIN, 0), 1 << 62);
        assert_eq!(Number::multiple(6).product(Number::multiple(4)).step, 24);
    }
}
