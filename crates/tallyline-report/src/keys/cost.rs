//! Sort keys of the cost of accesses: weights and latencies. The local ones are those of a sample, the others
//! those of all samples of a row.

use super::{Counts, Key, Needs, Profile};

macro_rules! cost {
    ($local:ident, $local_name:literal, $local_title:literal, $sum:ident, $name:literal, $title:literal, $value:expr) => {
        pub(super) const $local: Key = Key {
            name: $local_name,
            aliases: &[],
            title: $local_title,
            needs: Needs::NONE,
            value: $value,
            text: one,
        };
        pub(super) const $sum: Key =
            Key { name: $name, aliases: &[], title: $title, needs: Needs::NONE, value: $value, text: all };
    };
}

cost!(LOCAL_WEIGHT, "local_weight", "Local Weight", WEIGHT, "weight", "Weight", |_, group| {
    group.weight.weight()
});
cost!(
    LOCAL_INSTRUCTION,
    "local_ins_lat",
    "Local INSTR Latency",
    INSTRUCTION,
    "ins_lat",
    "INSTR Latency",
    |_, group| { group.weight.instruction_latency().into() }
);
cost!(
    LOCAL_RETIRE,
    "local_retire_lat",
    "Local Retire Latency",
    RETIRE,
    "retire_lat",
    "Retire Latency",
    |_, group| { group.weight.weight3().into() }
);
cost!(
    LOCAL_STAGE,
    "local_p_stage_cyc",
    "Local Pipeline Stage Cycle",
    STAGE,
    "p_stage_cyc",
    "Pipeline Stage Cycle",
    |_, group| { group.weight.weight3().into() }
);

fn one(_: &Profile, value: u64, _: &Counts) -> String {
    value.to_string()
}

/// Formats the cost of all samples of a row together; each has the same, as rows are told apart by it.
fn all(_: &Profile, value: u64, counts: &Counts) -> String {
    value.saturating_mul(counts.samples).to_string()
}
