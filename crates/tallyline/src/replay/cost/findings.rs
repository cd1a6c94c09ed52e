//! The results of a replay on timed cores, by type and field.

use crate::replay::places::{Programs, places};
use std::collections::BTreeMap;
use tallyline_timing::{InstructionCost, Processor, TraceCosts};
use tallyline_trace::Trace;
use tallyline_trace::coherence::{ReplayOptions, ReplayStats};
use tallyline_trace::format::TraceHeader;

/// Instructions that cost less than one of so many parts of all are not looked up.
const RARE: u64 = 100_000;

/// The results of a replay by cost (`tallyline replay --cost`), as they are shown.
pub(super) struct CostFindings {
    pub(super) header: TraceHeader,
    pub(super) processor: Processor,
    pub(super) plan: ReplayOptions,
    pub(super) course: ReplayStats,
    /// The simulated time of all cores, summed, in the model's parts of a cycle.
    pub(super) time: u64,
    pub(super) explained: u64,
    pub(super) unexplained: u64,
    pub(super) total: InstructionCost,
    /// The costs of the accessed fields, the highest first.
    pub(super) fields: Vec<FieldCost>,
}

/// The cost of accesses to a field, in all instructions.
pub(super) struct FieldCost {
    pub(super) ty: String,
    pub(super) field: String,
    /// The variable; empty where it is none, or not always the same.
    pub(super) variable: String,
    pub(super) is_runtime: bool,
    pub(super) cost: InstructionCost,
}

/// The row of instructions that are not looked up.
const REST: &str = "(rare instructions)";

/// The row of instructions of which only the number is known.
const UNKNOWN: &str = "(code that is not known)";

impl CostFindings {
    pub(super) fn new(
        trace: &Trace<'_>,
        processor: Processor,
        plan: ReplayOptions,
        course: ReplayStats,
        costs: TraceCosts,
        programs: &Programs<'_>,
        warnings: &mut Vec<String>,
    ) -> Self {
        let time = costs.time();
        let mut total = InstructionCost::default();
        costs.instructions().iter().for_each(|cost| total += *cost);
        Self {
            header: trace.header().clone(),
            processor,
            plan,
            course,
            time,
            explained: costs.explained(),
            unexplained: costs.unexplained(),
            total,
            fields: fields(trace, plan, &costs, programs, warnings),
        }
    }

    /// Returns a part of the time in percent.
    pub(super) fn percent(&self, time: u64) -> f64 {
        100.0 * time as f64 / self.time.max(1) as f64
    }
}

fn fields(
    trace: &Trace<'_>,
    plan: ReplayOptions,
    costs: &TraceCosts,
    programs: &Programs<'_>,
    warnings: &mut Vec<String>,
) -> Vec<FieldCost> {
    let least = costs.time() / RARE;
    let is_wanted = |cost: &InstructionCost| cost.executions() > 0 && cost.time() > least;
    let all = costs.instructions().iter().enumerate();
    let wanted: Vec<u32> =
        all.clone().filter(|(_, cost)| is_wanted(cost)).map(|(index, _)| index as u32).collect();
    let ends = wanted.iter().filter_map(|index| costs.instructions().get(*index as usize));
    let ends = ends.filter(|cost| cost.lowest() <= cost.highest());
    let mut data: Vec<u64> = ends.flat_map(|cost| [cost.lowest(), cost.highest()]).collect();
    data.sort_unstable();
    data.dedup();
    let known = places(trace, plan.process, programs, &wanted, &data, warnings);
    let mut fields: BTreeMap<(String, String, String, bool), InstructionCost> = BTreeMap::new();
    for (index, cost) in all.filter(|(_, cost)| cost.executions() > 0) {
        let place = is_wanted(cost).then(|| known.get(index as u32, cost.lowest(), cost.highest())).flatten();
        let key = match place {
            Some(place) => (place.ty, place.field, place.variable, place.is_runtime),
            None => (REST.into(), String::new(), String::new(), false),
        };
        *fields.entry(key).or_default() += *cost;
    }
    if costs.unexplained() > 0 {
        let cost = costs.unexplained_cost();
        fields.insert((UNKNOWN.into(), String::new(), String::new(), false), cost);
    }
    let row = |((ty, field, variable, is_runtime), cost)| FieldCost { ty, field, variable, is_runtime, cost };
    let mut rows: Vec<_> = fields.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.cost.time()));
    rows
}
