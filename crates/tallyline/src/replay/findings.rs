//! What a replay found, put together for people: totals, types and fields, lines with their conflicts.

use super::places::{Place, Programs, places};
use std::collections::BTreeMap;
use tallyline_profile::coherence::{Conflict, Counts, Course, Geometry, LineCounts, Plan, Replayed, Summary};
use tallyline_profile::trace::format::Header;
use tallyline_profile::trace::{Source, Trace};

/// Everything that is shown.
pub(super) struct Findings {
    pub(super) header: Header,
    pub(super) geometry: Geometry,
    pub(super) plan: Plan,
    pub(super) course: Course,
    pub(super) total: Counts,
    /// Lines that were touched, and those that a core lost to a write of another.
    pub(super) lines_touched: usize,
    pub(super) lines_contended: usize,
    /// By misses that writes of others caused, then by misses.
    pub(super) fields: Vec<FieldRow>,
    /// The lines that are shown, by misses that writes of others caused.
    pub(super) lines: Vec<LineRow>,
    pub(super) warnings: Vec<String>,
}

/// Instructions that never miss and do less than one access of so many are not looked up.
const RARE: u64 = 10_000;

/// What is asked for.
pub(super) struct Shown<'a> {
    /// How many lines.
    pub(super) lines: usize,
    /// Where programs are looked for.
    pub(super) programs: Programs<'a>,
}

/// What was done to a field, by all instructions.
pub(super) struct FieldRow {
    pub(super) ty: String,
    pub(super) field: String,
    pub(super) counts: LineCounts,
}

/// A cache line.
pub(super) struct LineRow {
    pub(super) address: u64,
    pub(super) counts: LineCounts,
    pub(super) conflicts: Vec<ConflictRow>,
}

/// Accesses that missed because of a write.
pub(super) struct ConflictRow {
    pub(super) count: u64,
    pub(super) is_true: bool,
    pub(super) offset: u16,
    pub(super) victim: Place,
    pub(super) culprit_offset: u16,
    pub(super) culprit: Place,
}

impl Findings {
    pub(super) fn new<S: Source + ?Sized>(
        trace: &Trace<'_, S>,
        geometry: Geometry,
        plan: Plan,
        replayed: Replayed,
        shown: &Shown<'_>,
    ) -> Self {
        let Replayed { course, summary } = replayed;
        let mut warnings = Vec::new();
        let mut lines: Vec<_> =
            summary.lines.iter().filter(|(_, counts)| counts.sharing() > 0).copied().collect();
        let lines_contended = lines.len();
        lines.sort_by_key(|(line, counts)| (std::cmp::Reverse(counts.sharing()), *line));
        lines.truncate(shown.lines);
        let known =
            places(trace, plan.process, &shown.programs, &instructions(&summary, &lines), &mut warnings);
        missing(trace, plan.process, &summary, &mut warnings);
        Findings {
            header: trace.header().clone(),
            geometry,
            plan,
            course,
            total: summary.total,
            lines_touched: summary.lines.len(),
            lines_contended,
            fields: fields(&summary, &known),
            lines: line_rows(&summary, &lines, geometry, &known),
            warnings,
        }
    }
}

/// The instructions whose places are looked up: all that missed or took lines away, who is named, and who
/// did more than one access of [`RARE`].
fn instructions(summary: &Summary, lines: &[(u64, LineCounts)]) -> Vec<u32> {
    let conflicts = summary.conflicts.iter().map(|(conflict, _)| conflict);
    let of_lines = conflicts.filter(|conflict| lines.iter().any(|(line, _)| *line == conflict.victim.line));
    let mut all: Vec<u32> =
        of_lines.flat_map(|conflict| [conflict.victim.instruction, conflict.culprit]).collect();
    let rare = summary.total.accesses / RARE;
    let worth = |counts: &LineCounts| {
        let missed = counts.cold + counts.replaced + counts.sharing();
        missed + counts.invalidations > 0 || counts.reads + counts.writes > rare
    };
    let missed = summary.instructions.iter().enumerate().filter(|(_, place)| worth(&place.lines));
    all.extend(missed.map(|(index, _)| index as u32));
    all.sort_unstable();
    all.dedup();
    all
}

/// Says what the trace lacks.
fn missing<S: Source + ?Sized>(
    trace: &Trace<'_, S>,
    process: u32,
    summary: &Summary,
    warnings: &mut Vec<String>,
) {
    match trace.ends().iter().find(|end| end.process == process) {
        Some(end) if end.full => warnings.push("the trace ends where it reached its --max-size".into()),
        Some(end) if end.broken => warnings.push("the trace ends where it could not be written".into()),
        Some(_) => {}
        None => warnings.push("the program was killed: the last accesses of its threads are missing".into()),
    }
    if summary.other_conflicts > 0 {
        let count = summary.other_conflicts;
        warnings.push(format!("{count} misses by sharing are only in the sums: too many different places"));
    }
}

fn fields(summary: &Summary, known: &BTreeMap<u32, Place>) -> Vec<FieldRow> {
    let mut fields: BTreeMap<(String, String), LineCounts> = BTreeMap::new();
    for (index, place) in summary.instructions.iter().enumerate() {
        let Some(known) = known.get(&(index as u32)) else { continue };
        let sum = fields.entry((known.ty.clone(), known.field.clone())).or_default();
        let counts = place.lines;
        sum.reads += counts.reads;
        sum.writes += counts.writes;
        sum.cold += counts.cold;
        sum.replaced += counts.replaced;
        sum.true_sharing += counts.true_sharing;
        sum.false_sharing += counts.false_sharing;
        sum.invalidations += counts.invalidations;
        sum.modified_elsewhere += counts.modified_elsewhere;
    }
    let mut rows: Vec<_> =
        fields.into_iter().map(|((ty, field), counts)| FieldRow { ty, field, counts }).collect();
    let weight = |counts: &LineCounts| (counts.sharing(), counts.invalidations, counts.replaced, counts.cold);
    rows.sort_by_key(|row| std::cmp::Reverse(weight(&row.counts)));
    rows
}

fn line_rows(
    summary: &Summary,
    lines: &[(u64, LineCounts)],
    geometry: Geometry,
    known: &BTreeMap<u32, Place>,
) -> Vec<LineRow> {
    let place = |index: u32| known.get(&index).cloned().unwrap_or_default();
    let row = |(conflict, count): &(Conflict, u64)| ConflictRow {
        count: *count,
        is_true: conflict.is_true,
        offset: conflict.victim.offset,
        victim: place(conflict.victim.instruction),
        culprit_offset: conflict.culprit_offset,
        culprit: place(conflict.culprit),
    };
    let mut by_line: BTreeMap<u64, Vec<ConflictRow>> = BTreeMap::new();
    for counted in &summary.conflicts {
        by_line.entry(counted.0.victim.line).or_default().push(row(counted));
    }
    lines
        .iter()
        .map(|(line, counts)| {
            let mut conflicts = by_line.remove(line).unwrap_or_default();
            conflicts.sort_by(|a, b| {
                let key = |row: &ConflictRow| {
                    (row.offset, row.victim.address, row.culprit_offset, row.culprit.address)
                };
                b.count.cmp(&a.count).then(key(a).cmp(&key(b)))
            });
            LineRow { address: line * u64::from(geometry.line()), counts: *counts, conflicts }
        })
        .collect()
}
