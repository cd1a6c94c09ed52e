//! Matching of the types of two files.

use super::DiffOptions;
use std::collections::{HashMap, HashSet, VecDeque};
use tallyline_debuginfo::lookup::{Definitions, fits};
use tallyline_debuginfo::model::{Member, RecordId, TypeId, Types};

/// The limit on types of one name that are compared for the best match; real kernels have up to 19.
const REPEATS: usize = 256;

type Entry = (TypeId, RecordId);

/// Types that go together, and those that stay alone.
pub(super) struct Pairs {
    pairs: Vec<(Option<Entry>, Option<Entry>)>,
}

impl Pairs {
    /// Pairs the types that are to be compared.
    pub(super) fn new(old: &Types, new: &Types, options: &DiffOptions) -> Pairs {
        let mut old_definitions = Definitions::new(old);
        let mut new_definitions = Definitions::new(new);
        let before = compared(old, &mut old_definitions, options);
        // keyed: a file cannot be made so that all of its names collide
        let mut by_name: HashMap<Vec<u8>, VecDeque<(usize, Entry)>> = HashMap::new();
        for (index, entry) in before.iter().enumerate() {
            let name = old.qualified_name(entry.0).into_owned();
            by_name.entry(name).or_default().push_back((index, *entry));
        }
        let after: Vec<_> = compared(new, &mut new_definitions, options)
            .into_iter()
            .map(|entry| (entry, new.qualified_name(entry.0)))
            .collect();
        // every pass takes what fits better than what the next one takes
        let mut partners: Vec<Option<Entry>> = vec![None; after.len()];
        let is_of_same_unit = |a: TypeId, b: TypeId| {
            let (a, b) = (old_definitions.unit(a), new_definitions.unit(b));
            a.is_some() && a.map(|unit| last(old.name(unit))) == b.map(|unit| last(new.name(unit)))
        };
        let passes: [&dyn Fn(Entry, Entry) -> bool; 5] = [
            &|a, b| is_same(old, new, a.1, b.1) && is_of_same_unit(a.0, b.0),
            &|a, b| is_same(old, new, a.1, b.1),
            &|a, b| is_of_same_file(old, new, a.1, b.1) && is_of_same_unit(a.0, b.0),
            &|a, b| is_of_same_file(old, new, a.1, b.1),
            &|_, _| true,
        ];
        for fits in passes {
            for (partner, (entry, name)) in partners.iter_mut().zip(&after) {
                if partner.is_some() {
                    continue;
                }
                let Some(left) = by_name.get_mut(name.as_ref()) else { continue };
                let mut others = left.iter().take(REPEATS);
                if let Some(at) = others.position(|(_, other)| fits(*other, *entry)) {
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

/// Returns `true` if two records have the same size and equal members at equal offsets.
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

/// Returns `true` if two records are declared in files of equal name; the folders differ between builds.
fn is_of_same_file(old: &Types, new: &Types, a: RecordId, b: RecordId) -> bool {
    let (a, b) = (old.record(a).declared_at.file, new.record(b).declared_at.file);
    a.is_some() && b.is_some() && last(old.name(a)) == last(new.name(b))
}

/// Returns the name of a file without its folders.
fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Returns the records of a file that are to be compared, in the order that they are declared in, which is not that of
/// its units.
fn compared(types: &Types, definitions: &mut Definitions<'_>, options: &DiffOptions) -> Vec<Entry> {
    let mut records = if options.only.is_empty() {
        definitions.records().to_vec()
    } else {
        let mut seen = HashSet::new();
        let called = options.only.iter().flat_map(|name| definitions.records_called(name));
        let with_record = |id: TypeId| types.as_record(types.strip(id)).map(|(record, _)| (id, record));
        called.filter_map(with_record).filter(|(_, record)| seen.insert(*record)).collect()
    };
    records.retain(|(id, _)| {
        let names = [types.name(types.type_name(*id)).into(), types.qualified_name(*id)];
        let fits = |pattern: &String| names.iter().any(|name| fits(pattern.as_bytes(), name));
        !options.except.iter().any(fits)
    });
    records.sort_by_cached_key(|(_, record)| {
        let at = types.record(*record).declared_at;
        (types.name(at.file).to_vec(), at.line)
    });
    records
}
