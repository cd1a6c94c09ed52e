//! Names of the events that every kernel has.

use super::abi::attr_flag;
use super::attr::Attr;

/// The event type of generic hardware events such as cycles: `PERF_TYPE_HARDWARE`.
pub(crate) const HARDWARE: u32 = 0;
/// The event type of software events such as page faults: `PERF_TYPE_SOFTWARE`.
pub const SOFTWARE: u32 = 1;
/// The event type of tracepoints: `PERF_TYPE_TRACEPOINT`.
pub const TRACEPOINT: u32 = 2;
/// The event type of generic events of caches such as misses of the first level: `PERF_TYPE_HW_CACHE`.
pub(crate) const CACHE: u32 = 3;
/// The event type of events given by a PMU's raw code: `PERF_TYPE_RAW`.
pub(crate) const RAW: u32 = 4;
/// The event type of hardware breakpoints: `PERF_TYPE_BREAKPOINT`.
pub const BREAKPOINT: u32 = 5;

/// perf's predefined event names, such as `cycles`, each after the `type` and `config` of its `perf_event_attr`. Where
/// several names mean one event, perf's own is first.
pub(crate) const NAMES: [(u32, u64, &str); 25] = [
    (HARDWARE, 0, "cycles"),
    (HARDWARE, 0, "cpu-cycles"),
    (HARDWARE, 1, "instructions"),
    (HARDWARE, 2, "cache-references"),
    (HARDWARE, 3, "cache-misses"),
    (HARDWARE, 4, "branches"),
    (HARDWARE, 4, "branch-instructions"),
    (HARDWARE, 5, "branch-misses"),
    (HARDWARE, 6, "bus-cycles"),
    (HARDWARE, 7, "stalled-cycles-frontend"),
    (HARDWARE, 8, "stalled-cycles-backend"),
    (HARDWARE, 9, "ref-cycles"),
    (SOFTWARE, 0, "cpu-clock"),
    (SOFTWARE, 1, "task-clock"),
    (SOFTWARE, 2, "page-faults"),
    (SOFTWARE, 2, "faults"),
    (SOFTWARE, 3, "context-switches"),
    (SOFTWARE, 4, "cpu-migrations"),
    (SOFTWARE, 5, "minor-faults"),
    (SOFTWARE, 6, "major-faults"),
    (SOFTWARE, 7, "alignment-faults"),
    (SOFTWARE, 8, "emulation-faults"),
    (SOFTWARE, 9, "dummy"),
    (SOFTWARE, 10, "bpf-output"),
    (SOFTWARE, 11, "cgroup-switches"),
];

/// Makes up an event name with perf's modifiers, such as `cycles:u`, from the attributes of an event that has no
/// name in the file.
pub(crate) fn of_attr(attr: &Attr) -> String {
    let known = NAMES.iter().find(|(kind, config, _)| (*kind, *config) == (attr.kind, attr.config));
    let name = match (known, attr.kind) {
        (Some((_, _, name)), _) => (*name).to_owned(),
        (None, RAW) => format!("raw 0x{:x}", attr.config),
        (None, BREAKPOINT) => format!("mem:0x{:x}", attr.config1),
        (None, TRACEPOINT) => format!("tracepoint {}", attr.config),
        (None, kind) => format!("type {kind} config 0x{:x}", attr.config),
    };
    name + &modifiers(attr)
}

/// Formats the event modifiers that an event's attributes amount to, such as `:u`; empty if there are none.
pub(crate) fn modifiers(attr: &Attr) -> String {
    let mut name = String::new();
    let excludes = |flag: u64| attr.flags & flag != 0;
    let modifier = match (excludes(attr_flag::EXCLUDE_USER), excludes(attr_flag::EXCLUDE_KERNEL)) {
        (false, true) => "u",
        (true, false) => "k",
        _ => "",
    };
    if !modifier.is_empty() || attr.precise() > 0 {
        name.push(':');
        name.push_str(modifier);
        name.extend(std::iter::repeat_n('p', attr.precise().into()));
    }
    name
}
