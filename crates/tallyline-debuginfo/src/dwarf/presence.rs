//! A filter of units by name: a unit defines a type of a name only if its bytes hold the name, or the
//! offset of the name in `.debug_str`. Searching for a few bytes takes a tenth of reading all entries.

use crate::Wanted;
use crate::lookup::naming::{canonical, endings};
use memchr::memmem::Finder;

/// The most offsets to search for: with more of them reading the entries is as fast.
const MOST: usize = 8;

/// Sought names, and their offsets in the strings seen so far.
pub(super) struct Names(Vec<Name>);

/// A sought name, with the offsets of the strings that are it or end with it.
struct Name {
    /// The name with the end of a string.
    text: Finder<'static>,
    /// The offsets of strings that are the name.
    alone: Vec<u32>,
    /// The offsets of the name at the end of other strings; none if they are too many, or other strings
    /// may spell the name differently.
    tails: Option<Vec<u32>>,
}

impl Names {
    /// Returns the names of the wanted types; none if they have several spellings.
    pub(super) fn new(wanted: &Wanted) -> Option<Names> {
        let (Wanted::Named(names) | Wanted::First(names)) = wanted else { return None };
        if names.is_empty() || names.len() > MOST {
            return None;
        }
        let name = |name: &Vec<u8>| {
            let name = canonical(name).into_owned();
            // stored names may have scopes, but end so
            let name = endings(&name).min_by_key(|ending| ending.len())?;
            let is_plain = !name.is_empty() && name.iter().all(is_letter) && !is_number(name);
            let text = Finder::new(&[name, b"\0"].concat()).into_owned();
            is_plain.then(|| Name { text, alone: Vec::new(), tails: Some(Vec::new()) })
        };
        Some(Names(names.iter().map(name).collect::<Option<_>>()?))
    }

    /// Returns `true` if no string seen so far is one of the names or ends with it, and none is so short that units
    /// spell it themselves: gcc stores what takes less than an offset, 4 bytes, in their DIEs.
    pub(super) fn are_absent(&self) -> bool {
        let is_absent = |name: &Name| {
            let tails = name.tails.as_ref().is_some_and(Vec::is_empty);
            name.alone.is_empty() && tails && name.text.needle().len() > 4
        };
        self.0.iter().all(is_absent)
    }

    /// Searches the next strings of the section for the names, also at the end of longer strings: linkers
    /// store a string in another one that ends with it.
    pub(super) fn look(&mut self, strings: &[u8], start: usize) {
        for Name { text, alone, tails } in &mut self.0 {
            for at in text.find_iter(strings) {
                let offset = (start + at) as u32;
                match at.checked_sub(1).map_or(0, |before| strings[before]) {
                    0 if alone.len() <= MOST => alone.push(offset),
                    0 => {}
                    before if before == b'~' || is_letter(&before) => {
                        if let Some(tails) = tails.as_mut().filter(|tails| tails.len() <= MOST) {
                            tails.push(offset);
                        }
                    }
                    // behind a blank or a separator the whole string may be the name
                    _ => *tails = None,
                }
            }
        }
    }

    /// Returns the byte patterns by which a unit is known to define no wanted type, in this byte order; none if there would
    /// be too many. Where
    /// equal strings are `merged`, a string that is the name leaves no other copy of it.
    pub(super) fn presence(&self, little_endian: bool, merged: bool) -> Option<Presence> {
        let mut offsets = Vec::new();
        for Name { alone, tails, .. } in &self.0 {
            let tails = tails.as_ref()?;
            offsets.extend(alone);
            if !merged || alone.is_empty() {
                offsets.extend(tails);
            }
        }
        if offsets.len() > MOST {
            return None;
        }
        let bytes = |offset: u32| if little_endian { offset.to_le_bytes() } else { offset.to_be_bytes() };
        let offsets = offsets.into_iter().map(|offset| Finder::new(&bytes(offset)).into_owned());
        Some(Presence { sought: offsets.chain(self.0.iter().map(|name| name.text.clone())).collect() })
    }
}

/// Returns `true` if a byte belongs to an identifier, which has one spelling.
fn is_letter(letter: &u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'$') || *letter >= 0x80
}

/// Returns `true` if a name is that of a number in C, which has several spellings.
fn is_number(name: &[u8]) -> bool {
    matches!(name, b"signed" | b"unsigned" | b"short" | b"long" | b"int" | b"char" | b"double")
}

/// Byte patterns of which a unit has at least one if it defines a type of a sought name.
pub(super) struct Presence {
    sought: Vec<Finder<'static>>,
}

impl Presence {
    /// Returns `true` if a unit with these bytes may define a type of one of the names.
    pub(super) fn may_be_in(&self, unit: &[u8]) -> bool {
        self.sought.iter().any(|sought| sought.find(unit).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(name: &str, strings: &[u8], merged: bool) -> Option<usize> {
        let mut names = Names::new(&Wanted::named([name])).expect("plain");
        let (first, second) = strings.split_at(strings.iter().position(|byte| *byte == 0).unwrap_or(0) + 1);
        names.look(first, 0);
        names.look(second, first.len());
        let presence = names.presence(true, merged)?;
        let expected = |at: &usize| {
            let named = [name.rsplit([':', ' ']).next().unwrap_or(name).as_bytes(), b"\0"].concat();
            strings[*at..].starts_with(&named)
        };
        let found = (0..strings.len()).filter(|at| presence.may_be_in(&(*at as u32).to_le_bytes()));
        assert!(found.clone().all(|at| expected(&at)), "{name}");
        Some(found.count())
    }

    #[test]
    fn names_are_found_alone_and_at_the_end_of_others() {
        assert_eq!(offsets("T", b"T\0aT\0Ta\0~T\0", false), Some(3));
        assert_eq!(offsets("T", b"T\0aT\0Ta\0~T\0", true), Some(1));
        assert_eq!(offsets("T", b"a\0aT\0Ta\0~T\0", true), Some(2));
        assert_eq!(offsets("ns::T", b"ns\0T\0", true), Some(1));
        assert_eq!(offsets("struct list", b"x\0blacklist\0", true), Some(1));
        assert_eq!(offsets("T", b"a\0struct T\0", true), None, "the whole string may be meant");
        assert_eq!(offsets("T", b"a\0file.T\0T\0", true), None);
        let many = b"aT\0bT\0cT\0dT\0eT\0fT\0gT\0hT\0iT\0";
        assert_eq!(offsets("T", many, true), None, "too many");
        assert_eq!(offsets("T", &[&many[..], b"T\0"].concat(), true), Some(1));
    }

    #[test]
    fn a_name_is_absent_if_no_string_ends_with_it_and_units_do_not_spell_it() {
        let absent = |name: &str, strings: &[u8]| {
            let mut names = Names::new(&Wanted::named([name])).expect("plain");
            names.look(strings, 0);
            names.are_absent()
        };
        assert!(absent("list", b"x\0lists\0"));
        assert!(!absent("list", b"x\0list\0"));
        assert!(!absent("list", b"x\0blacklist\0"));
        assert!(!absent("list", b"x\0struct list\0"));
        assert!(!absent("fd", b"x\0y\0"));
    }

    #[test]
    fn a_name_that_a_unit_spells_itself_is_found() {
        let mut names = Names::new(&Wanted::named(["ns::PG"])).expect("plain");
        names.look(b"none\0", 0);
        let presence = names.presence(true, true).expect("few");
        assert!(presence.may_be_in(b"\x01PG\0\x02") && !presence.may_be_in(b"\x01PGs\0\x02"));
    }

    #[test]
    fn names_of_several_spellings_are_not_looked_for() {
        for name in ["P<long>", "unsigned", "(i32,i32)", "a b<c>", ""] {
            assert!(Names::new(&Wanted::named([name])).is_none(), "{name}");
        }
        assert!(Names::new(&Wanted::Records).is_none());
    }
}
