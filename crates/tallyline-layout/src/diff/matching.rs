//! Which type of one file is which of the other.

use crate::model::{Member, RecordId, TypeId, Types};
use crate::query::distinct_records;
use std::collections::{HashMap, VecDeque};

/// How many types of one name are looked at for the one that fits; real kernels have up to 19.
const REPEATS: usize = 256;

type Entry = (TypeId, RecordId);

/// Types that go together, and those that stay alone.
pub(super) struct Pairs {
    pairs: Vec<(Option<Entry>, Option<Entry>)>,
}

impl Pairs {
    /// Pairs the types whose names are wanted.
    pub(super) fn new(old: &Types, new: &Types, wants: impl Fn(&[u8]) -> bool) -> Pairs {
        let before = distinct_records(old);
        // keyed: a file cannot be made so that all of its names collide
        let mut by_name: HashMap<Vec<u8>, VecDeque<(usize, Entry)>> = HashMap::new();
        for (index, entry) in before.iter().enumerate() {
            let name = old.qualified_name(entry.0);
            if wants(&name) {
                by_name.entry(name.into_owned()).or_default().push_back((index, *entry));
            }
        }
        let after: Vec<_> = distinct_records(new)
            .into_iter()
            .map(|entry| (entry, new.qualified_name(entry.0)))
            .filter(|(_, name)| wants(name))
            .collect();
        // every pass takes what fits better than what the next one takes
        let mut partners: Vec<Option<Entry>> = vec![None; after.len()];
        let passes: [&dyn Fn(RecordId, RecordId) -> bool; 3] =
            [&|a, b| is_same(old, new, a, b), &|a, b| is_of_same_file(old, new, a, b), &|_, _| true];
        for fits in passes {
            for (partner, ((_, record), name)) in partners.iter_mut().zip(&after) {
                if partner.is_some() {
                    continue;
                }
                let Some(left) = by_name.get_mut(name.as_ref()) else { continue };
                let mut others = left.iter().take(REPEATS);
                if let Some(at) = others.position(|(_, (_, other))| fits(*other, *record)) {
                    *partner = left.remove(at).map(|(_, entry)| entry);
                }
            }
        }
        let mut pairs: Vec<_> =
            partners.into_iter().zip(after).map(|(before, (after, _))| (before, Some(after))).collect();
        let mut gone: Vec<(usize, Entry)> = by_name.into_values().flatten().collect();
        gone.sort_unstable_by_key(|(index, _)| *index);
        pairs.extend(gone.into_iter().map(|(_, entry)| (Some(entry), None)));
        Pairs { pairs }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<Entry>, Option<Entry>)> + '_ {
        self.pairs.iter().copied()
    }
}

/// Whether two records have the same members at the same places.
fn is_same(old: &Types, new: &Types, a: RecordId, b: RecordId) -> bool {
    let (a, b) = (old.record(a), new.record(b));
    let bits = |member: &Member| (member.bit_offset, member.size, member.bitfield);
    let (mine, theirs) = (old.members(a), new.members(b));
    a.size == b.size
        && mine.len() == theirs.len()
        && mine
            .iter()
            .zip(theirs)
            .all(|(mine, theirs)| bits(mine) == bits(theirs) && old.name(mine.name) == new.name(theirs.name))
}

/// Whether two records are declared in files of the same name; the folders differ between builds.
fn is_of_same_file(old: &Types, new: &Types, a: RecordId, b: RecordId) -> bool {
    let (a, b) = (old.record(a).declared_at.file, new.record(b).declared_at.file);
    let last = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    a.is_some() && b.is_some() && last(old.name(a)) == last(new.name(b))
}
