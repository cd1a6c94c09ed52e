//! Facts about the tags of enums: the lattice that [`State`](super::value::State) carries along each path.

use super::candidates::{VariantMembership, mask};
use super::value_number;
use crate::code::{Condition, REGISTERS, Register};

/// The maximum number of facts in one state.
const FACTS_LIMIT: usize = 64;

/// The maximum number of values of one tag.
pub(super) const VALUES_LIMIT: usize = 62;

/// The maximum length of a range whose values are tested one by one.
const RANGE_LIMIT: u64 = 128;

/// The base of addresses in the stack frame.
pub(super) const FRAME: u32 = u32::MAX;

/// The base of constant addresses.
pub(super) const FIXED: u32 = u32::MAX - 1;

/// A symbolic address: value numbers of base and index, 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SymbolicAddress {
    pub(super) base: u32,
    pub(super) index: u32,
    pub(super) scale: u8,
    pub(super) offset: i64,
}

/// The symbolic value of a register: a value number and a constant offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct SymbolicValue {
    pub(super) number: u32,
    pub(super) offset: i64,
}

/// A fact about the tag at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagFact {
    pub(super) address: SymbolicAddress,
    pub(super) domain: u32,
    /// The set of possible values, as bits of the domain.
    pub(super) allowed: u64,
}

/// A value derived from a tag: the tag plus a constant, or a constant that a condition chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagValue {
    pub(super) address: SymbolicAddress,
    pub(super) domain: u32,
    pub(super) plus: u64,
    /// The number of bytes of the sum that are kept.
    pub(super) size: u8,
    /// The tag values for which the value may be the sum.
    pub(super) is_sum: u64,
    /// The constant, and the tag values for which the value may be that constant.
    pub(super) or: Option<(u64, u64)>,
}

impl TagValue {
    /// Returns the sum where it is negative, and else 0, as `sum & (sum >> 63)` computes it for a niche in a number
    /// that is not negative: by that the compiler tells niches from data.
    pub(super) fn where_negative(self, domain: &TagDomain, sign_of: TagValue) -> Option<TagValue> {
        let is_alike = (self.address, self.domain) == (sign_of.address, sign_of.domain);
        if !is_alike || self.or.is_some() || sign_of.or.is_some() || sign_of.size != 8 || domain.size != 8 {
            return None;
        }
        let is_negative = |value: &u64| (value.wrapping_add(sign_of.plus) as i64) < 0;
        // who else is negative is not known, but then it would not be told from niches
        if !domain.values.iter().all(is_negative) {
            return None;
        }
        let others = domain.others();
        Some(TagValue { is_sum: self.is_sum & (others - 1), or: Some((0, others)), ..self })
    }
}

/// A comparison of a value derived from a tag with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) held: TagValue,
    pub(super) with: u64,
    pub(super) size: u8,
    pub(super) is_test: bool,
    /// `true` if the constant is the left operand.
    pub(super) is_swapped: bool,
}

/// The domain of a tag: the values that select variants, and all others as one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TagDomain {
    pub(super) values: Vec<u64>,
    pub(super) size: u8,
}

/// The facts about tags at one program point.
#[derive(Clone, Debug)]
pub(super) struct TagFacts {
    pub(super) names: [SymbolicValue; REGISTERS],
    pub(super) facts: Vec<TagFact>,
    pub(super) held: Vec<(Register, TagValue)>,
    /// The values whose sign, as all ones or 0, is in a register.
    pub(super) signs: Vec<(Register, TagValue)>,
    pub(super) compared: Option<Comparison>,
    /// The index of the last load from a read-only table.
    pub(super) index: Option<TagValue>,
}

impl Default for TagFacts {
    fn default() -> Self {
        let names = [SymbolicValue::default(); REGISTERS];
        let (held, signs) = (Vec::new(), Vec::new());
        TagFacts { names, facts: Vec::new(), held, signs, compared: None, index: None }
    }
}

impl TagDomain {
    /// Returns the bit of all values that select no variant by themselves.
    fn others(&self) -> u64 {
        1 << self.values.len()
    }

    pub(super) fn all(&self) -> u64 {
        self.others() | (self.others() - 1)
    }

    /// Returns the set of tag values for which a comparison satisfies a condition.
    pub(super) fn values_where(&self, comparison: &Comparison, condition: Condition) -> u64 {
        let held = &comparison.held;
        let holds = |value: u64| holds(comparison, condition, value);
        let mut set = 0;
        for (index, value) in self.values.iter().enumerate() {
            let bit = 1 << index;
            let sum = value.wrapping_add(held.plus) & mask(held.size.into());
            let by_sum = held.is_sum & bit != 0 && holds(sum);
            let by_number = held.or.is_some_and(|(number, when)| when & bit != 0 && holds(number));
            set |= if by_sum || by_number { bit } else { 0 };
        }
        let others = self.others();
        let by_sum = held.is_sum & others != 0 && self.can_be_other(comparison, condition);
        let by_number = held.or.is_some_and(|(number, when)| when & others != 0 && holds(number));
        set | if by_sum || by_number { others } else { 0 }
    }

    /// Returns true if a value outside of those that select variants may satisfy a condition.
    fn can_be_other(&self, comparison: &Comparison, condition: Condition) -> bool {
        let most = mask(comparison.size.into());
        let with = comparison.with & most;
        let is_zero = comparison.is_test && with == most;
        if comparison.is_test && !is_zero {
            return true;
        }
        let with = if is_zero { 0 } else { with };
        let is_least = condition == Condition::Overflow && comparison.is_swapped && with == 0;
        if comparison.is_swapped && condition != Condition::Equal && !is_least {
            return true;
        }
        let (first, last) = match condition {
            Condition::Equal => (Some(with), Some(with)),
            // only the least number has no negation
            Condition::Overflow if is_least => (Some(most ^ most >> 1), Some(most ^ most >> 1)),
            Condition::Below => (Some(0), with.checked_sub(1)),
            Condition::BelowOrEqual => (Some(0), Some(with)),
            Condition::NotBelow => (Some(with), Some(most)),
            Condition::NotBelowOrEqual => (with.checked_add(1).filter(|first| *first <= most), Some(most)),
            _ => return true,
        };
        let (Some(first), Some(last)) = (first, last) else { return false };
        if last - first >= RANGE_LIMIT {
            return true;
        }
        let held = &comparison.held;
        let arithmetic = mask(held.size.into());
        // `true` if the comparison covers the whole tag
        let is_whole =
            held.size <= comparison.size || (held.plus == 0 && self.size <= comparison.size.min(held.size));
        (first..=last).any(|value| {
            let tag = value.wrapping_sub(held.plus) & arithmetic;
            value & !arithmetic == 0
                && tag & !mask(self.size.into()) == 0
                && (!is_whole || !self.values.contains(&tag))
        })
    }

    /// Returns true if one of the allowed values selects a variant.
    pub(super) fn selects(&self, allowed: u64, variant: &VariantMembership) -> bool {
        let Some(tag) = &variant.tag else { return true };
        if tag.size != self.size {
            return true;
        }
        let is_allowed = |index: usize| allowed & (1 << index) != 0;
        let others = allowed & self.others() != 0;
        match variant.value {
            Some(value) => match self.values.iter().position(|known| *known == value) {
                Some(index) => is_allowed(index),
                None => others,
            },
            None => {
                let is_free = |(index, value)| is_allowed(index) && !tag.values.contains(value);
                others || self.values.iter().enumerate().any(is_free)
            }
        }
    }
}

fn holds(comparison: &Comparison, condition: Condition, value: u64) -> bool {
    let bits = 8 * u32::from(comparison.size.clamp(1, 8));
    let kept = mask(comparison.size.into());
    let signed = |number: u64| ((number << (64 - bits)) as i64) >> (64 - bits);
    let (one, other) = match (comparison.is_test, comparison.is_swapped) {
        (true, _) => (value & comparison.with & kept, 0),
        (false, true) => (comparison.with & kept, value & kept),
        (false, false) => (value & kept, comparison.with & kept),
    };
    match condition {
        Condition::Equal => one == other,
        Condition::Below => one < other,
        Condition::BelowOrEqual => one <= other,
        Condition::Less => signed(one) < signed(other),
        Condition::LessOrEqual => signed(one) <= signed(other),
        Condition::Negative => signed(one.wrapping_sub(other) & kept) < 0,
        Condition::Overflow => {
            let difference = i128::from(signed(one)) - i128::from(signed(other));
            difference != i128::from(signed(difference as u64 & kept))
        }
        opposite => !holds(comparison, opposite.opposite(), value),
    }
}

impl TagFacts {
    /// Invalidates the facts about a register that is written.
    pub(super) fn written(&mut self, register: Register) {
        if let Some(name) = self.names.get_mut(usize::from(register.0)) {
            *name = SymbolicValue::default();
        }
        self.held.retain(|(holder, _)| *holder != register);
        self.signs.retain(|(holder, _)| *holder != register);
    }

    /// Invalidates the facts that a call may change: those about the stack, and the flags.
    pub(super) fn invalidate_by_call(&mut self) {
        self.facts.retain(|fact| fact.address.base != FRAME);
        self.compared = None;
        self.index = None;
    }

    /// Joins the facts of another path; returns true if facts were lost.
    pub(super) fn join(&mut self, other: &TagFacts) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.names.iter_mut().zip(&other.names) {
            if mine != theirs && mine.number != 0 {
                (*mine, changed) = (SymbolicValue::default(), true);
            }
        }
        let facts = self.facts.len();
        self.facts.retain_mut(|fact| {
            let same = |theirs: &&TagFact| theirs.address == fact.address && theirs.domain == fact.domain;
            let Some(theirs) = other.facts.iter().find(same) else { return false };
            changed |= theirs.allowed & !fact.allowed != 0;
            fact.allowed |= theirs.allowed;
            true
        });
        let held = self.held.len();
        self.held.retain(|held| other.held.contains(held));
        changed |= facts != self.facts.len() || held != self.held.len();
        let signs = self.signs.len();
        self.signs.retain(|sign| other.signs.contains(sign));
        changed |= signs != self.signs.len();
        if self.compared != other.compared && self.compared.take().is_some() {
            changed = true;
        }
        if self.index != other.index && self.index.take().is_some() {
            changed = true;
        }
        changed
    }

    pub(super) fn name(&self, register: Register) -> SymbolicValue {
        self.names.get(usize::from(register.0)).copied().unwrap_or_default()
    }

    pub(super) fn held(&self, register: Register) -> Option<TagValue> {
        self.held.iter().find(|(holder, _)| *holder == register).map(|(_, held)| *held)
    }

    /// Returns the value whose sign is in a register.
    pub(super) fn sign(&self, register: Register) -> Option<TagValue> {
        self.signs.iter().find(|(holder, _)| *holder == register).map(|(_, sign)| *sign)
    }

    /// Assigns a value number to the contents of a register, unless it has one.
    pub(super) fn named(&mut self, register: Register, position: usize) -> SymbolicValue {
        let known = self.name(register);
        if known.number != 0 {
            return known;
        }
        let number = (value_number::defined_at(position, register) as u32) & (u32::MAX >> 1) | 1 << 6;
        // an earlier value with the same number was a different value
        self.names
            .iter_mut()
            .filter(|name| name.number == number)
            .for_each(|name| *name = SymbolicValue::default());
        let is_stale = |address: &SymbolicAddress| address.base == number || address.index == number;
        self.facts.retain(|fact| !is_stale(&fact.address));
        self.held.retain(|(_, held)| !is_stale(&held.address));
        self.signs.retain(|(_, sign)| !is_stale(&sign.address));
        self.compared = self.compared.filter(|comparison| !is_stale(&comparison.held.address));
        self.index = self.index.filter(|held| !is_stale(&held.address));
        let name = SymbolicValue { number, offset: 0 };
        if let Some(slot) = self.names.get_mut(usize::from(register.0)) {
            *slot = name;
        }
        name
    }

    /// Narrows the possible values of the tag at an address.
    pub(super) fn narrow(&mut self, address: SymbolicAddress, domain: u32, allowed: u64) {
        let same = |fact: &TagFact| fact.address == address && fact.domain == domain;
        match self.facts.iter().position(same) {
            Some(index) => {
                let fact = &mut self.facts[index];
                // a contradiction means that the value has changed
                let both = fact.allowed & allowed;
                fact.allowed = if both == 0 { allowed } else { both };
            }
            None if self.facts.len() < FACTS_LIMIT => self.facts.push(TagFact { address, domain, allowed }),
            None => {}
        }
    }
}

/// Adds a number to a value that was made from a tag; `None` for a choice of two.
pub(super) fn added(held: TagValue, number: i64) -> Option<TagValue> {
    held.or.is_none().then_some(TagValue { plus: held.plus.wrapping_add(number as u64), ..held })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG_ADDRESS: SymbolicAddress = SymbolicAddress { base: 5, index: 0, scale: 0, offset: 0 };

    fn held(plus: u64, size: u8) -> TagValue {
        TagValue { address: TAG_ADDRESS, domain: 0, plus, size, is_sum: u64::MAX, or: None }
    }

    fn compared(held: TagValue, with: u64, size: u8) -> Comparison {
        Comparison { held, with, size, is_test: false, is_swapped: false }
    }

    fn domain(values: &[u64], size: u8) -> TagDomain {
        TagDomain { values: values.to_vec(), size }
    }

    #[test]
    fn a_branch_leaves_the_values_that_its_condition_holds_for() {
        let tag = domain(&[0, 1, 2], 4);
        let with_one = compared(held(0, 8), 1, 4);
        assert_eq!(tag.values_where(&with_one, Condition::Equal), 0b0010);
        assert_eq!(tag.values_where(&with_one, Condition::NotEqual), 0b1101);
        assert_eq!(tag.values_where(&with_one, Condition::BelowOrEqual), 0b0011);
        assert_eq!(tag.values_where(&with_one, Condition::NotBelowOrEqual), 0b1100);
        // all values below 3 are known ones
        assert_eq!(tag.values_where(&compared(held(0, 8), 3, 4), Condition::Below), 0b0111);
        // a byte of the tag does not tell all of it
        assert_eq!(tag.values_where(&compared(held(0, 8), 1, 1), Condition::Equal), 0b1010);
    }

    #[test]
    fn a_niche_is_found_by_the_numbers_that_are_added_to_it() {
        let least = 1 << 63;
        let tag = domain(&[least, least + 1], 8);
        // tag + 2^63 is 0 or 1, or something else for the variant with the data
        let sum = held(least, 8);
        assert_eq!(tag.values_where(&compared(sum, 0, 8), Condition::Equal), 0b001);
        assert_eq!(tag.values_where(&compared(sum, 1, 8), Condition::NotBelowOrEqual), 0b100);
        // 0 - tag does not fit for the least number only
        let opposite = Comparison { is_swapped: true, ..compared(held(0, 8), 0, 8) };
        assert_eq!(tag.values_where(&opposite, Condition::Overflow), 0b001);
        assert_eq!(tag.values_where(&opposite, Condition::NotOverflow), 0b110);
        // what is chosen instead of a sum above 1
        let when = tag.values_where(&compared(sum, 1, 8), Condition::NotBelowOrEqual);
        let chosen = TagValue { is_sum: !when, or: Some((2, when)), ..sum };
        assert_eq!(tag.values_where(&compared(chosen, 2, 8), Condition::Equal), 0b100);
        assert_eq!(tag.values_where(&compared(chosen, 1, 8), Condition::Equal), 0b010);
    }

    #[test]
    fn a_join_keeps_the_values_of_either_path() {
        let with = |allowed| {
            let mut tags = TagFacts::default();
            tags.narrow(TAG_ADDRESS, 0, allowed);
            tags
        };
        let mut one = with(0b001);
        assert!(one.join(&with(0b010)));
        assert_eq!(one.facts[0].allowed, 0b011);
        assert!(!one.join(&with(0b001)));
        assert!(one.join(&TagFacts::default()) && one.facts.is_empty());
    }

    #[test]
    fn a_reused_value_number_is_another_value() {
        let mut tags = TagFacts::default();
        let name = tags.named(Register(5), 3);
        tags.narrow(SymbolicAddress { base: name.number, ..TAG_ADDRESS }, 0, 1);
        assert_eq!(tags.named(Register(5), 9), name);
        tags.written(Register(5));
        assert_eq!(tags.facts.len(), 1);
        assert_eq!(tags.named(Register(5), 3), name);
        assert!(tags.facts.is_empty());
    }
}
