//! The command line of `tallyline record`.

use super::trace::TraceArgs;
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Record where a command, a process or the machine spends its time, and the registers there
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// The process to record, until it or the command ends, or Ctrl-C
    #[arg(short, long, value_name = "PID", conflicts_with = "all_cpus")]
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub(super) pid: Option<i32>,

    /// All processes on all CPUs, until the command ends or Ctrl-C
    #[arg(short, long)]
    pub(super) all_cpus: bool,

    /// What to sample: cpu-clock, cycles:u, mem-loads, PMU/TERMS/ as in sysfs, {GROUP,…}; see below
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(super) events: Vec<String>,

    /// Programs only, where an event does not say it itself
    #[arg(long, conflicts_with = "all_kernel")]
    pub(super) all_user: bool,

    /// The kernel only, where an event does not say it itself
    #[arg(long)]
    pub(super) all_kernel: bool,

    /// Samples a second on each CPU
    #[arg(short = 'F', long = "freq", value_name = "FREQ", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) frequency: u64,

    /// Record who called, too
    #[arg(short = 'g')]
    pub(super) call_chains: bool,

    /// The file to write [default: perf.data, of a whole trace perf.trace]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Stop when the file has this size: a number with K, M or G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) max_size: Option<u64>,

    /// Memory of each CPU's ring: a number with K, M or G, rounded up to a power of two; Arm's SPE has eight times as
    /// much
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "512K")]
    pub(super) ring_size: u64,

    /// Say nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,

    #[command(flatten)]
    pub(super) trace: TraceArgs,

    /// The command to run and record
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(required_unless_present_any = ["pid", "all_cpus"])]
    pub(super) command: Vec<OsString>,
}

impl RecordArgs {
    /// The file to write.
    pub(super) fn output(&self) -> &Path {
        let default = if self.trace.is_whole() { "perf.trace" } else { "perf.data" };
        self.output.as_deref().unwrap_or(Path::new(default))
    }
}

const EXAMPLES: &str = "\
Events:
  Without -e: the CPUs' cycles where the machine counts them, else the clock, which works everywhere.
  EVENT:u programs only, EVENT:k the kernel only; p to ppp and P: closer to the instruction, where the hardware can.
  mem-loads, mem-stores   where data came from and how long it took, on Intel; on hybrid CPUs for each kind of core;
                          on Arm by SPE, both in one event
  ibs_op//                the same on AMD
  arm_spe_0//             the same on Arm, of all operations; load_filter=1, store_filter=1, min_latency=N, period=N
  mem:0x7f00/8:w          writers of 8 bytes at an address

Examples:
  tallyline record -- ./server --port 80       records to perf.data; its exit status is the command's
  tallyline record -e mem-loads -e mem-stores -o mem.data -- ./server
  tallyline record -g -F 4000 --all-user -- ./server
  tallyline record -p 1234 --max-size 100M     until Ctrl-C, the end of the process, or 100 MB
  tallyline record -a -- sleep 10              the whole machine for ten seconds
  tallyline record --trace -- ./server         every access to memory, under QEMU; for tallyline replay
  tallyline record --trace --every 1000 -- qemu-system-x86_64 -kernel vmlinuz -append nokaslr …

perf report, perf script and perf annotate read the file, too.
A recording that is there is kept, with .old behind its name.";

/// A number of bytes with a unit.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((end, 'K' | 'k')) => (&text[..end], 10),
        Some((end, 'M' | 'm')) => (&text[..end], 20),
        Some((end, 'G' | 'g')) => (&text[..end], 30),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| format!("`{text}` is no size: a number with K, M or G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("100M"), Ok(100 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        for odd in ["", "K", "0", "-1", "1T", "99999999999G"] {
            assert!(size(odd).is_err(), "{odd}");
        }
    }
}
