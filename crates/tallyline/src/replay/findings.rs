//! The findings of a replay, for people: totals, types and fields, lines with their conflicts.

use super::places::{InstructionInfo, Programs, TraceSymbols, places};
use std::collections::{BTreeMap, HashSet};
use tallyline_trace::Trace;
use tallyline_trace::coherence::{
    AccessCounts, CoherenceSummary, Conflict, Geometry, LineCounts, ReplayOptions, ReplayStats,
};
use tallyline_trace::format::TraceHeader;

/// The results of `tallyline replay`, as they are shown.
pub(super) struct Findings {
    pub(super) header: TraceHeader,
    pub(super) geometry: Geometry,
    pub(super) plan: ReplayOptions,
    pub(super) course: ReplayStats,
    pub(super) total: AccessCounts,
    /// The number of accessed lines; `lines_contended` is that of lines that a core lost to a write of another.
    pub(super) lines_touched: usize,
    pub(super) lines_contended: usize,
    /// The number of contended lines that only the runtime's own code contends for.
    pub(super) lines_runtime: usize,
    /// The misses by sharing at shorter and longer turns, by the turns' length.
    pub(super) turns: Vec<Turns>,
    /// The accessed fields, the program's own first; by misses that writes of others caused, then by misses.
    pub(super) fields: Vec<FieldRow>,
    /// The lines that are shown, those that only the runtime contends for last; by misses that writes of others caused.
    pub(super) lines: Vec<LineRow>,
    pub(super) warnings: Vec<String>,
}

/// Instructions that never miss are not looked up if each does less than one access of so many,
const RARE: u64 = 10_000;

/// and all of them less than one of so many.
const RARE_TOGETHER: u64 = 1000;

/// The row of instructions that are not looked up.
const REST: &str = "(rare instructions)";

/// The results with other turns than those requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// The instructions that a thread runs before the next one's turn.
    pub(super) quantum: u64,
    pub(super) accesses: u64,
    /// Misses that writes of others caused.
    pub(super) sharing: u64,
}

impl Turns {
    /// Returns the results of a replay.
    pub(super) fn of(quantum: u64, total: &AccessCounts) -> Self {
        Turns { quantum, accesses: total.accesses(), sharing: total.lines().sharing_misses() }
    }

    /// Returns the share of the accesses that missed because of others' writes, in percent.
    pub(super) fn percent(&self) -> f64 {
        100.0 * self.sharing as f64 / self.accesses.max(1) as f64
    }
}

/// The requested output: the number of lines to show, and the lookup of programs.
pub(super) struct Shown<'a> {
    /// The largest number of cache lines to show.
    pub(super) lines: usize,
    /// The lookup of the traced programs, by which addresses get names.
    pub(super) programs: Programs<'a>,
}

/// The accesses to a field by all instructions.
pub(super) struct FieldRow {
    pub(super) ty: String,
    pub(super) field: String,
    /// The variable; empty where it is none, or not always the same.
    pub(super) variable: String,
    pub(super) is_runtime: bool,
    pub(super) counts: LineCounts,
}

/// A contended cache line, with its counts and the conflicts on it.
pub(super) struct LineRow {
    pub(super) address: u64,
    pub(super) counts: LineCounts,
    /// `true` if only the runtime's own code contends for it.
    pub(super) is_runtime: bool,
    pub(super) conflicts: Vec<ConflictRow>,
}

/// Accesses that missed because of a write.
pub(super) struct ConflictRow {
    pub(super) count: u64,
    pub(super) is_true: bool,
    pub(super) offset: u16,
    pub(super) victim: InstructionInfo,
    pub(super) culprit_offset: u16,
    pub(super) culprit: InstructionInfo,
}

impl Findings {
    pub(super) fn new(
        trace: &Trace<'_>,
        geometry: Geometry,
        plan: ReplayOptions,
        (course, summary): (ReplayStats, CoherenceSummary),
        turns: Vec<Turns>,
        shown: &Shown<'_>,
    ) -> Self {
        let mut warnings = Vec::new();
        let mut lines: Vec<_> =
            summary.lines().iter().filter(|(_, counts)| counts.sharing_misses() > 0).copied().collect();
        let lines_contended = lines.len();
        let wanted = instructions(&summary, &lines);
        let data = data(&summary, &wanted, geometry);
        let known = places(trace, plan.process, &shown.programs, &wanted, &data, &mut warnings);
        let own = own_lines(&summary, &known);
        let key = |(line, counts): &(u64, LineCounts)| {
            (!own.contains(line), std::cmp::Reverse(counts.sharing_misses()), *line)
        };
        lines.sort_by_key(key);
        let lines_runtime = lines.iter().filter(|(line, _)| !own.contains(line)).count();
        lines.truncate(shown.lines);
        missing(trace, plan.process, &summary, &mut warnings);
        Findings {
            header: trace.header().clone(),
            geometry,
            plan,
            course,
            total: summary.total(),
            lines_touched: summary.lines().len(),
            lines_contended,
            lines_runtime,
            turns,
            fields: fields(&summary, &known),
            lines: line_rows(&summary, &lines, geometry, &known, &own),
            warnings,
        }
    }
}

/// Returns the instructions whose places are looked up: all that missed or took lines away, who is named, and those with
/// the most accesses.
fn instructions(summary: &CoherenceSummary, lines: &[(u64, LineCounts)]) -> Vec<u32> {
    let conflicts = summary.conflicts().iter().map(|(conflict, _)| conflict);
    let of_lines = conflicts.filter(|conflict| lines.iter().any(|(line, _)| *line == conflict.line()));
    let mut all: Vec<u32> = of_lines.flat_map(|conflict| [conflict.victim(), conflict.culprit()]).collect();
    let takes_part = |counts: &LineCounts| {
        let missed = counts.cold() + counts.replaced() + counts.sharing_misses();
        missed + counts.invalidations() > 0
    };
    let counted = summary.instructions().iter().enumerate();
    let (missed, mut others): (Vec<_>, Vec<_>) = counted
        .map(|(index, place)| (index as u32, place.lines()))
        .partition(|(_, counts)| takes_part(counts));
    all.extend(missed.iter().map(|(index, _)| *index));
    let accesses = |counts: &LineCounts| counts.reads() + counts.writes();
    others.sort_by_key(|(index, counts)| (std::cmp::Reverse(accesses(counts)), *index));
    let mut left: u64 = others.iter().map(|(_, counts)| accesses(counts)).sum();
    let total = summary.total().accesses();
    for (index, counts) in others {
        if left <= total / RARE_TOGETHER && accesses(&counts) <= total / RARE {
            break;
        }
        left -= accesses(&counts);
        all.push(index);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the addresses of data whose variables are looked up: the ends of what each instruction accessed,
/// and where lines were lost and taken.
fn data(summary: &CoherenceSummary, instructions: &[u32], geometry: Geometry) -> Vec<u64> {
    let counts = instructions.iter().filter_map(|index| summary.instructions().get(*index as usize));
    let mut all: Vec<u64> = counts.flat_map(|counts| [counts.lowest(), counts.highest()]).collect();
    for (conflict, _) in summary.conflicts() {
        let start = conflict.line() * u64::from(geometry.line());
        all.extend(
            [conflict.victim_offset(), conflict.culprit_offset()].map(|offset| start + u64::from(offset)),
        );
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the lines that code of the program itself contends for, as loser or as taker.
fn own_lines(summary: &CoherenceSummary, known: &TraceSymbols) -> HashSet<u64> {
    let is_own = |index: u32| known.get(index, 0, 0).is_none_or(|place| !place.is_runtime);
    let of_program = summary
        .conflicts()
        .iter()
        .filter(|(conflict, _)| is_own(conflict.victim()) || is_own(conflict.culprit()));
    of_program.map(|(conflict, _)| conflict.line()).collect()
}

/// Says what the trace lacks.
fn missing(trace: &Trace<'_>, process: u32, summary: &CoherenceSummary, warnings: &mut Vec<String>) {
    match trace.ends().iter().find(|end| end.process() == process) {
        Some(end) if end.full() => warnings.push("the trace ends where it reached its --max-size".into()),
        Some(end) if end.broken() => warnings.push("the trace ends where it could not be written".into()),
        Some(_) => {}
        None => warnings.push("the program was killed: the last accesses of its threads are missing".into()),
    }
    if summary.other_conflicts() > 0 {
        let count = summary.other_conflicts();
        warnings.push(format!("{count} misses by sharing are only in the sums: too many different places"));
    }
}

fn fields(summary: &CoherenceSummary, known: &TraceSymbols) -> Vec<FieldRow> {
    let mut fields: BTreeMap<(String, String, String, bool), LineCounts> = BTreeMap::new();
    for (index, place) in summary.instructions().iter().enumerate() {
        let counts = place.lines();
        if counts.reads() + counts.writes() == 0 {
            continue;
        }
        let key = match known.get(index as u32, place.lowest(), place.highest()) {
            Some(known) => (known.ty, known.field, known.variable, known.is_runtime),
            None => (REST.into(), String::new(), String::new(), false),
        };
        *fields.entry(key).or_default() += counts;
    }
    let row =
        |((ty, field, variable, is_runtime), counts)| FieldRow { ty, field, variable, is_runtime, counts };
    let mut rows: Vec<_> = fields.into_iter().map(row).collect();
    let weight = |counts: &LineCounts| {
        (counts.sharing_misses(), counts.invalidations(), counts.replaced(), counts.cold())
    };
    rows.sort_by_key(|row| (row.is_runtime, std::cmp::Reverse(weight(&row.counts))));
    rows
}

fn line_rows(
    summary: &CoherenceSummary,
    lines: &[(u64, LineCounts)],
    geometry: Geometry,
    known: &TraceSymbols,
    own: &HashSet<u64>,
) -> Vec<LineRow> {
    let place = |index: u32, line: u64, offset: u16| {
        let address = line * u64::from(geometry.line()) + u64::from(offset);
        known.get(index, address, address).unwrap_or_default()
    };
    let row = |(conflict, count): &(Conflict, u64)| ConflictRow {
        count: *count,
        is_true: conflict.is_true(),
        offset: conflict.victim_offset(),
        victim: place(conflict.victim(), conflict.line(), conflict.victim_offset()),
        culprit_offset: conflict.culprit_offset(),
        culprit: place(conflict.culprit(), conflict.line(), conflict.culprit_offset()),
    };
    let mut by_line: BTreeMap<u64, Vec<ConflictRow>> = BTreeMap::new();
    for counted in summary.conflicts() {
        by_line.entry(counted.0.line()).or_default().push(row(counted));
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
            LineRow {
                address: line * u64::from(geometry.line()),
                counts: *counts,
                is_runtime: !own.contains(line),
                conflicts,
            }
        })
        .collect()
}
