//! A set of CPUs, read from and written as the kernel's lists (`0-3,8`).

use super::CpuId;
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A set of CPUs, given by the kernel's CPU numbers.
///
/// ```
/// use statctr::topology::{CpuId, CpuSet};
///
/// let cpus: CpuSet = "0-3,8".parse()?;
/// assert_eq!(cpus.len(), 5);
/// assert!(cpus.contains(CpuId::new(8)));
/// assert_eq!(cpus.to_string(), "0-3,8");
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct CpuSet {
    // never ends in a zero word, so that equality is equality of sets
    words: Vec<u64>,
}

impl CpuSet {
    /// Creates an empty set of CPUs.
    #[must_use]
    pub const fn new() -> Self {
        CpuSet { words: Vec::new() }
    }

    /// Inserts a CPU into the set. Numbers above [`CpuId::MAX`] are ignored.
    pub fn insert(&mut self, cpu: CpuId) {
        if cpu > CpuId::MAX {
            return;
        }
        let word = cpu.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu.index() % 64);
    }

    /// Returns `true` if the CPU is in the set.
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get(cpu.index() / 64).is_some_and(|word| word >> (cpu.index() % 64) & 1 == 1)
    }

    /// Returns the number of CPUs in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns `true` if no CPU is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the CPU with the largest number in the set; `None` if it is empty.
    #[must_use]
    pub fn last(&self) -> Option<CpuId> {
        let top = self.words.last()?;
        let bit = (self.words.len() * 64 - 1) as u32 - top.leading_zeros();
        Some(CpuId::new(bit))
    }

    /// Returns an iterator over the set's CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    CpuId::new(index as u32 * 64 + bit)
                })
            })
        })
    }

    /// Returns `true` if every CPU of this set is in the other.
    #[must_use]
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.iter().all(|cpu| other.contains(cpu))
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut set = CpuSet::new();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl FromStr for CpuSet {
    type Err = Error;

    /// Reads the kernel's list format: numbers and ranges with commas between them, possibly
    /// empty. Surrounding white space is passed over.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |offset: usize| Error::BadCpuList { text: text.chars().take(64).collect(), offset };
        let list = text.trim();
        let start = text.len() - text.trim_start().len();
        let mut set = CpuSet::new();
        if list.is_empty() {
            return Ok(set);
        }
        let mut offset = start;
        for part in list.split(',') {
            let number = |digits: &str| -> Result<u32> {
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(bad(offset));
                }
                let value: u32 = digits.parse().map_err(|_| bad(offset))?;
                if value > CpuId::MAX.get() { Err(bad(offset)) } else { Ok(value) }
            };
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(bad(offset));
            }
            for cpu in first..=last {
                set.insert(CpuId::new(cpu));
            }
            offset += part.len() + 1;
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().map(CpuId::get).peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.peek() == Some(&(last + 1)) {
                last += 1;
                cpus.next();
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_the_kernel_writes_are_read_and_written_back() {
        for list in ["", "0", "0-1", "0-3,8", "1,3,5", "0-31,64-95,4096", "65535"] {
            let set: CpuSet = list.parse().expect(list);
            assert_eq!(set.to_string(), list);
        }
        assert_eq!(" 0-1\n".parse::<CpuSet>().expect("newline").len(), 2);
    }

    #[test]
    fn a_bad_list_names_the_byte() {
        for (list, at) in
            [("a", 0), ("0-", 0), ("0,,1", 2), ("3-1", 0), ("0,1x", 2), ("+1", 0), ("0-99999999999", 0)]
        {
            match list.parse::<CpuSet>() {
                Err(Error::BadCpuList { offset, .. }) => assert_eq!(offset, at, "{list}"),
                other => panic!("{list}: {other:?}"),
            }
        }
    }

    #[test]
    fn sets_compare_by_content() {
        let mut a = CpuSet::new();
        a.insert(CpuId::new(5));
        assert_eq!(a, "5".parse().expect("list"));
        assert_eq!(a.last(), Some(CpuId::new(5)));
        assert_eq!(CpuSet::new().last(), None);
        assert!(a.is_subset(&"0-7".parse().expect("list")));
        assert!(!a.is_subset(&"0-4".parse().expect("list")));
    }
}
