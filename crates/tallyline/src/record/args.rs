//! The command line of `tallyline record`.

use super::trace_args::TraceArgs;
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tallyline_perf_data::recorder::CallChains;
use tallyline_support::parse_size;

/// Sample a command, a process or the whole machine into a perf.data file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// Comma-separated processes to record with their children, until they or the command end, or until Ctrl-C
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["all_cpus", "tid"], value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub(super) pid: Vec<i32>,

    /// Comma-separated threads to record, without threads that they create (but see --inherit)
    #[arg(short, long, value_name = "TID", conflicts_with = "all_cpus", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub(super) tid: Vec<i32>,

    /// Record all processes on all CPUs, until the command ends or Ctrl-C
    #[arg(short, long)]
    pub(super) all_cpus: bool,

    /// Events to sample: cpu-clock, cycles:u, mem-loads, sched:sched_switch, PMU/TERMS/, {GROUP,…}; see below
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(super) events: Vec<String>,

    /// Sample only user code, unless an event says otherwise
    #[arg(long, conflicts_with = "all_kernel")]
    pub(super) all_user: bool,

    /// Sample only the kernel, unless an event says otherwise
    #[arg(long)]
    pub(super) all_kernel: bool,

    /// Samples per second on each CPU
    #[arg(short = 'F', long = "freq", value_name = "FREQ", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) frequency: u64,

    /// Take one sample per this many events, instead of at a frequency
    #[arg(short, long, value_name = "EVENTS", conflicts_with = "frequency")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,

    /// Record call chains, by frame pointers
    #[arg(short = 'g')]
    pub(super) call_chains: bool,

    /// Record call chains by fp (frame pointers), dwarf or dwarf,BYTES (a copy of the stack), or lbr (the CPU's
    /// last branch records)
    #[arg(long, value_name = "MODE", value_parser = call_graph)]
    pub(super) call_graph: Option<CallChains>,

    /// Do not record the return address on top of the stack, by which a stalled call is found
    ///
    /// Clock samples on x86-64 have it, at 24 bytes each. Samples with call chains do not, as perf would append
    /// what it unwinds from that word to the chain.
    #[arg(long)]
    pub(super) no_return_address: bool,

    /// Record data mappings, too, so that data addresses can be resolved; memory events imply this
    #[arg(short, long)]
    pub(super) data: bool,

    /// Do not record threads and processes created later, nor existing children of -p
    #[arg(short = 'i', long, overrides_with = "inherit")]
    pub(super) no_inherit: bool,

    /// Also record threads that those of -t create
    #[arg(long, requires = "tid")]
    pub(super) inherit: bool,

    /// Start sampling this many milliseconds after the start
    #[arg(short = 'D', long, value_name = "MS", default_value_t = 0, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub(super) delay: u64,

    /// The file to write, or - for a stream on standard output [default: perf.data; perf.trace for a full trace]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Stop when the file reaches this size: a number with K, M or G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) max_size: Option<u64>,

    /// Size of each CPU's ring buffer: a number with K, M or G, rounded up to a power of two; eight times as much
    /// for Arm SPE
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "512K")]
    pub(super) ring_size: u64,

    /// Do not copy sampled programs that a later report could not open, such as those of containers
    ///
    /// Copies go into perf's build-id cache, ~/.debug: at most 1 GB per recording.
    #[arg(short = 'N', long)]
    pub(super) no_buildid_cache: bool,

    /// Print only errors
    #[arg(short, long)]
    pub(super) quiet: bool,

    #[command(flatten)]
    pub(super) trace: TraceArgs,

    /// The command to run and record
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    #[arg(required_unless_present_any = ["pid", "tid", "all_cpus"])]
    pub(super) command: Vec<OsString>,
}

impl RecordArgs {
    /// Returns the file to write.
    pub(super) fn output(&self) -> &Path {
        let default = if self.trace.is_whole() { "perf.trace" } else { "perf.data" };
        self.output.as_deref().unwrap_or(Path::new(default))
    }

    /// Returns `true` if the recording goes to standard output.
    pub(super) fn is_stream(&self) -> bool {
        self.output() == Path::new("-")
    }
}

const EXAMPLES: &str = "\
Events:
  Without -e: CPU cycles if the machine can count them, else the clock, which works everywhere
  EVENT:u, EVENT:k        programs only, the kernel only
  EVENT:p to :ppp, :P     closer to the instruction, where the hardware can
  mem-loads, mem-stores   where data came from and how long it took, on Intel; on Arm by SPE
  ibs_op//                the same on AMD
  arm_spe_0//             the same on Arm, of all operations; also load_filter=1, store_filter=1,
                          min_latency=N, period=N
  mem:0x7f00/8:w          writers of 8 bytes at an address
  sched:sched_switch      a tracepoint or probe, by its name in tracefs; sched:* for all of a system

Examples:
  tallyline record -- ./server --port 80       to perf.data; its exit status is the command's
  tallyline record -e mem-loads -e mem-stores -o mem.data -- ./server
  tallyline record -g -F 4000 --all-user -- ./server
  tallyline record -p 1234 --max-size 100M     until Ctrl-C, the end of the process, or 100 MB
  tallyline record -a -- sleep 10              the whole machine for ten seconds
  tallyline record -o - -- ./server | perf report -i -
  tallyline record --trace -- ./server         every access to memory, for tallyline replay
  tallyline record --trace --every 1000 -- qemu-system-x86_64 -kernel vmlinuz -append nokaslr …

perf report, perf script and perf annotate can read the file, too. An existing recording is renamed, with .old appended to its name.";

/// Parses the method of recording callers, with perf's syntax.
fn call_graph(text: &str) -> Result<CallChains, String> {
    /// The default number of bytes of stack to copy per sample, as in perf.
    const USUAL: u32 = 8192;
    /// The largest number of bytes of stack to copy per sample: the kernel limits a record to 64 KB.
    const LARGEST: u32 = 65528;
    let (mode, size) = text.split_once(',').map_or((text, None), |(mode, size)| (mode, Some(size)));
    match (mode, size) {
        ("fp", None) => Ok(CallChains::FramePointers),
        ("lbr", None) => Ok(CallChains::LastBranches),
        ("dwarf", None) => Ok(CallChains::UserStack(USUAL)),
        ("dwarf", Some(size)) => {
            let size = size.parse().ok().filter(|size| (8..=LARGEST).contains(size));
            let size: u32 = size.ok_or_else(|| format!("expected 8 to {LARGEST} bytes of stack"))?;
            Ok(CallChains::UserStack(size.next_multiple_of(8)))
        }
        _ => Err("expected fp, dwarf, dwarf,BYTES or lbr".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_graphs_are_written_as_for_perf() {
        assert_eq!(call_graph("fp"), Ok(CallChains::FramePointers));
        assert_eq!(call_graph("dwarf"), Ok(CallChains::UserStack(8192)));
        assert_eq!(call_graph("dwarf,4090"), Ok(CallChains::UserStack(4096)));
        assert_eq!(call_graph("lbr"), Ok(CallChains::LastBranches));
        for odd in ["", "fp,8", "dwarf,", "dwarf,4", "dwarf,65536", "lbr,1", "frame"] {
            assert!(call_graph(odd).is_err(), "{odd}");
        }
    }
}
