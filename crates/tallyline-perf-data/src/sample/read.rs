//! The values of counters, as a sample or a `PERF_RECORD_READ` carries them.

use crate::Result;
use crate::abi::read_format as format;
use crate::bytes::{Cursor, Words};

/// The count of one sampled event (such as `cycles`) that was read when a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadValue {
    /// The count of the event.
    pub(crate) value: u64,
    /// The number that the kernel gave the event.
    pub(crate) id: Option<u64>,
    /// The number of the event's samples that were lost.
    pub(crate) lost: Option<u64>,
}

impl ReadValue {
    /// Returns the count of the event.
    #[inline]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Returns the id that the kernel gave the event; `None` if not recorded.
    #[inline]
    pub fn id(&self) -> Option<u64> {
        self.id
    }

    /// Returns the number of the event's samples that were lost before the sample that has this count; `None` if not
    /// recorded.
    #[inline]
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }
}

/// The counts that were read when a sample was taken (`PERF_SAMPLE_READ`): of the sampled event (such as `cycles`), or
/// of each event in its group (`{a,b}`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadValues<'a> {
    /// Nanoseconds that the event was enabled.
    pub(crate) time_enabled: Option<u64>,
    /// Nanoseconds that it was counting.
    pub(crate) time_running: Option<u64>,
    counters: Counters<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counters<'a> {
    One(ReadValue),
    Group { words: Words<'a>, ids: bool, lost: bool },
}

impl<'a> ReadValues<'a> {
    pub(crate) fn decode(at: &mut Cursor<'a>, read_format: u64) -> Result<Self> {
        let has = |bit: u64| read_format & bit != 0;
        // the number of counters, or the value of the only one
        let first = at.u64("value of a counter")?;
        let time_enabled = has(format::TOTAL_TIME_ENABLED).then(|| at.u64("time enabled")).transpose()?;
        let time_running = has(format::TOTAL_TIME_RUNNING).then(|| at.u64("time running")).transpose()?;
        let (ids, lost) = (has(format::ID), has(format::LOST));
        let counters = if has(format::GROUP) {
            let per_counter = 1 + u64::from(ids) + u64::from(lost);
            let words =
                first.checked_mul(per_counter).ok_or_else(|| at.error(format!("{first} counters")))?;
            Counters::Group { words: at.words(words, "values of counters")?, ids, lost }
        } else {
            Counters::One(ReadValue {
                value: first,
                id: ids.then(|| at.u64("id of a counter")).transpose()?,
                lost: lost.then(|| at.u64("lost samples")).transpose()?,
            })
        };
        Ok(Self { time_enabled, time_running, counters })
    }

    /// Returns the number of event counts in the sample: one, or as many as the event group (`{a,b}`) has events.
    pub fn len(&self) -> usize {
        match self.counters {
            Counters::One(_) => 1,
            Counters::Group { words, ids, lost } => words.len() / per_counter(ids, lost),
        }
    }

    /// Returns `true` if the sample has no event counts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the event count at an index, 0 being that of the event group's leader; `None` past the end.
    pub fn get(&self, index: usize) -> Option<ReadValue> {
        match self.counters {
            Counters::One(value) => (index == 0).then_some(value),
            Counters::Group { words, ids, lost } => {
                let start = index.checked_mul(per_counter(ids, lost))?;
                Some(ReadValue {
                    value: words.get(start)?,
                    id: if ids { words.get(start + 1) } else { None },
                    lost: if lost { words.get(start + 1 + usize::from(ids)) } else { None },
                })
            }
        }
    }

    /// Returns an iterator over the event counts, that of the event group's leader first.
    pub fn iter(&self) -> impl Iterator<Item = ReadValue> + use<'_, 'a> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

fn per_counter(ids: bool, lost: bool) -> usize {
    1 + usize::from(ids) + usize::from(lost)
}
