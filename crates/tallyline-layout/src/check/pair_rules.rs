//! Rules about members and the lines of each other.

use super::Notes;
use super::group_rules::unknown_member;
use super::policy::{PairRule, Placement};
use super::subjects::{Subject, Subjects};
use crate::query::{Field, field_at};

/// The possible offsets of a type in a cache line, and the number of neighbouring elements to consider.
struct Starts {
    offsets: Vec<u64>,
    neighbours: u64,
    size: u64,
    line: u64,
}

impl Starts {
    fn new(subjects: &mut Subjects<'_>, subject: &Subject<'_>, placement: Placement, line: u64) -> Starts {
        let size = subject.record.size;
        let (step, neighbours) = match placement {
            Placement::Line => (line, 0),
            // elements beside a small one may lie on the same line
            Placement::Array => (gcd(size % line, line), if size == 0 { 0 } else { line.div_ceil(size) }),
            Placement::Any => (gcd(subjects.alignments.of(subjects.types, subject.id), line), 0),
        };
        let offsets = (0..line).step_by(usize::try_from(step.max(1)).unwrap_or(1)).collect();
        Starts { offsets, neighbours, size, line }
    }

    /// Returns `true` if two members can share a line, `b` in the array element `elements` after that of `a`.
    fn meet(&self, a: &Field, b: &Field, elements: i128) -> bool {
        let line = i128::from(self.line);
        let shift = elements * i128::from(self.size);
        let lines = |field: &Field, start: i128| {
            let first = (start + i128::from(field.start())).div_euclid(line);
            let last = (start + i128::from(field.end()) - 1).div_euclid(line);
            (first, last)
        };
        a.bits != 0
            && b.bits != 0
            && self.offsets.iter().any(|start| {
                let (a_first, a_last) = lines(a, i128::from(*start));
                let (b_first, b_last) = lines(b, i128::from(*start) + shift);
                a_first <= b_last && b_first <= a_last
            })
    }

    /// Returns `true` if the bytes from `first` to `end` lie on one line at every possible start of the type.
    fn always_one_line(&self, first: u64, end: u64) -> bool {
        self.offsets.iter().all(|start| {
            let first = (u128::from(*start) + u128::from(first)) / u128::from(self.line);
            let last = (u128::from(*start) + u128::from(end.saturating_sub(1))) / u128::from(self.line);
            first == last
        })
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the members of a list that exist.
fn resolve<'n>(
    subjects: &Subjects<'_>,
    subject: &Subject<'_>,
    names: &'n [String],
    notes: &mut Notes<'_>,
) -> Vec<(&'n str, Field)> {
    let mut found = Vec::new();
    for name in names {
        match field_at(subjects.types, subject.record, name) {
            Some(field) => found.push((name.as_str(), field)),
            None => unknown_member(subjects.types, subject, name, notes),
        }
    }
    found
}

pub(super) fn apart(
    subjects: &mut Subjects<'_>,
    subject: &Subject<'_>,
    asked: &PairRule,
    notes: &mut Notes<'_>,
) {
    let sets: Vec<_> = asked.sets.iter().map(|names| resolve(subjects, subject, names, notes)).collect();
    let starts = Starts::new(subjects, subject, asked.placement, notes.policy.cacheline);
    let mut pairs = Vec::new();
    if let [one] = sets.as_slice() {
        for (index, a) in one.iter().enumerate() {
            pairs.extend(one[index + 1..].iter().map(|b| (a, b)));
        }
    }
    for (index, set) in sets.iter().enumerate() {
        for other in &sets[index + 1..] {
            pairs.extend(set.iter().flat_map(|a| other.iter().map(move |b| (a, b))));
        }
    }
    for ((a_name, a), (b_name, b)) in pairs {
        let places =
            format!("{a_name} at {}–{} and {b_name} at {}–{}", a.start(), a.end(), b.start(), b.end());
        if starts.meet(a, b, 0) {
            let can = if asked.placement == Placement::Line { "are" } else { "can be" };
            let message = format!("{places} {can} on one cache line");
            notes.add("apart", Some(b_name), b.declared_at, message);
            continue;
        }
        let beside = (1..=i128::from(starts.neighbours)).flat_map(|n| [n, -n]);
        if beside.into_iter().any(|elements| starts.meet(a, b, elements)) {
            let message = format!(
                "{places} of neighbours in an array can be on one cache line: {} bytes are no multiple of {}",
                starts.size, starts.line
            );
            notes.add("apart", Some(b_name), b.declared_at, message);
        }
    }
}

pub(super) fn together(
    subjects: &mut Subjects<'_>,
    subject: &Subject<'_>,
    asked: &PairRule,
    notes: &mut Notes<'_>,
) {
    let names = asked.sets.first().map_or(&[][..], Vec::as_slice);
    let found = resolve(subjects, subject, names, notes);
    let first = found.iter().min_by_key(|(_, field)| field.start());
    let last = found.iter().max_by_key(|(_, field)| field.end());
    let (Some((first_name, first)), Some((last_name, last))) = (first, last) else { return };
    let starts = Starts::new(subjects, subject, asked.placement, notes.policy.cacheline);
    if !starts.always_one_line(first.start(), last.end()) {
        let can = if asked.placement == Placement::Line { "are" } else { "can be" };
        let message = format!(
            "{first_name} at {}–{} and {last_name} at {}–{} {can} on different cache lines",
            first.start(),
            first.end(),
            last.start(),
            last.end()
        );
        notes.add("together", Some(last_name), last.declared_at, message);
    }
}
