//! The distance of a sample's address from the instruction that caused it, for each kind of event.

use super::attr::Attr;
use super::names::{BREAKPOINT, SOFTWARE, TRACEPOINT};

/// The numbers of the clock events, `PERF_COUNT_SW_CPU_CLOCK` and `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];

/// The bit of breakpoints on executed instructions, `HW_BREAKPOINT_X`.
const EXECUTED: u32 = 4;

/// The distance of a sample's address from the instruction that caused the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Skid {
    /// The address is that of the instruction, or no instruction caused the event.
    None,
    /// The address is that of the instruction that is executed next.
    NextInstruction,
    /// An interrupt took the sample, when an instruction retired some time after the event.
    Arbitrary,
}

impl Attr {
    /// Returns `true` if the event's samples have no skid: their addresses are those of the instructions that
    /// caused them. `arch` (`uname -m`) and `pmu` (name of the event's PMU) are those of the recording, empty if
    /// unknown.
    pub fn has_exact_ip(&self, arch: &str, pmu: &str) -> bool {
        Skid::of(self, arch, pmu) == Skid::None
    }
}

impl Skid {
    /// Returns the skid of an event's samples.
    fn of(attr: &Attr, arch: &str, pmu: &str) -> Skid {
        match attr.kind {
            _ if attr.precise() > 0 => Skid::None,
            // hrtimer interrupts, which report where they came (perf_swevent_hrtimer: get_irq_regs)
            SOFTWARE if CLOCKS.contains(&attr.config) => Skid::Arbitrary,
            // Faults report the registers of the exception, which are those before the faulting instruction
            // (perf_sw_event with pt_regs); switches and migrations the scheduler's own call
            // (perf_fetch_caller_regs), bpf-output the registers that the program gives: no instruction before
            // that place has anything to do with it.
            SOFTWARE => Skid::None,
            // Tracepoints report their own place (perf_fetch_caller_regs), probes the probed instruction:
            // handle_swbp sets the address back to it, kprobes likewise.
            TRACEPOINT => Skid::None,
            BREAKPOINT => of_breakpoint(attr.bp_type, arch),
            _ if matches!(pmu, "kprobe" | "uprobe") => Skid::None,
            _ => Skid::Arbitrary,
        }
    }
}

fn of_breakpoint(kind: u32, arch: &str) -> Skid {
    let is_x86 = matches!(arch, "x86_64" | "amd64" | "i386" | "i486" | "i586" | "i686" | "x86");
    // an instruction breakpoint is a fault on x86, and before the instruction on all others
    if kind & EXECUTED != 0 {
        return Skid::None;
    }
    match arch {
        // data breakpoints are traps: Intel SDM volume 3, "Data Memory and I/O Breakpoint Exception Conditions"
        _ if is_x86 => Skid::NextInstruction,
        // the handler executes the instruction first: arch/powerpc/kernel/hw_breakpoint.c, "trigger-after-execute"
        _ if arch.starts_with("ppc") => Skid::NextInstruction,
        // watchpoint exceptions are taken before the access
        _ if arch.starts_with("arm") || arch == "aarch64" || arch.starts_with("loongarch") => Skid::None,
        _ => Skid::Arbitrary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::attr_flag;

    fn of(kind: u32, config: u64, arch: &str) -> Skid {
        Skid::of(&Attr { kind, config, ..Attr::default() }, arch, "")
    }

    fn breakpoint(breakpoint: u32, arch: &str) -> Skid {
        Skid::of(&Attr { kind: BREAKPOINT, bp_type: breakpoint, ..Attr::default() }, arch, "")
    }

    #[test]
    fn only_the_clocks_of_the_software_events_skid() {
        for config in [0, 1] {
            assert_eq!(of(SOFTWARE, config, "x86_64"), Skid::Arbitrary, "{config}");
        }
        for config in 2..=11 {
            assert_eq!(of(SOFTWARE, config, "x86_64"), Skid::None, "{config}");
        }
    }

    #[test]
    fn tracepoints_and_probes_are_where_they_were_put() {
        assert_eq!(of(TRACEPOINT, 314, "x86_64"), Skid::None);
        let probe = Attr { kind: 9, ..Attr::default() };
        assert_eq!(Skid::of(&probe, "x86_64", "uprobe"), Skid::None);
        assert_eq!(Skid::of(&probe, "x86_64", "kprobe"), Skid::None);
        assert_eq!(Skid::of(&probe, "x86_64", "ibs_op"), Skid::Arbitrary);
    }

    #[test]
    fn counters_skid_unless_they_are_precise() {
        assert_eq!(of(0, 0, "x86_64"), Skid::Arbitrary);
        assert_eq!(of(4, 0x76, "x86_64"), Skid::Arbitrary);
        let precise = Attr { flags: 1 << attr_flag::PRECISE_SHIFT, ..Attr::default() };
        assert_eq!(Skid::of(&precise, "x86_64", ""), Skid::None);
    }

    #[test]
    fn data_breakpoints_are_behind_the_access_where_they_are_traps() {
        for kind in [1, 2, 3] {
            assert_eq!(breakpoint(kind, "x86_64"), Skid::NextInstruction);
            assert_eq!(breakpoint(kind, "i686"), Skid::NextInstruction);
            assert_eq!(breakpoint(kind, "ppc64le"), Skid::NextInstruction);
            assert_eq!(breakpoint(kind, "aarch64"), Skid::None);
            assert_eq!(breakpoint(kind, "armv7l"), Skid::None);
            assert_eq!(breakpoint(kind, "mips"), Skid::Arbitrary);
        }
        assert_eq!(breakpoint(4, "x86_64"), Skid::None);
    }
}
