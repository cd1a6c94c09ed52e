//! `tallyline-bench`: measures the counters against the ways that others count, on this machine.
//!
//! All sides of a comparison run in turn in one process (see [`runner`]), and every figure comes
//! with its spread and with the machine that it is from. Nothing here fails because a machine is
//! slow or busy.

mod attribution;
mod costs;
mod fill;
mod fold;
mod incremental;
mod layout;
mod lifecycle;
mod memory;
mod nodes;
mod profiles;
mod programs;
mod read;
mod record;
mod report;
mod runner;
mod sharing;
mod sides;
mod targets;
mod update;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::Report;
use runner::Settings;
use sides::os;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tallyline_support::output::{Color, Output};
use tallyline_support::{Machine, Summary, machine, output};

/// Measures the counters and the tool against the ways that others work.
#[derive(Debug, Parser)]
#[command(name = "tallyline-bench", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    /// Use colours in the output
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, global = true)]
    color: Color,

    #[command(subcommand)]
    bench: Bench,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli.bench, cli.color) {
        Ok(status) => status,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tallyline-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns the tool that is measured: the one beside this program, else the one in the search path.
fn tool() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let beside = own.with_file_name("tallyline");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&paths).map(|folder| folder.join("tallyline"));
    std::iter::once(beside.clone()).chain(in_path).find(|path| path.is_file()).with_context(|| {
        format!(
            "tallyline is neither {} nor in PATH; build it by `cargo build -p tallyline`",
            beside.display()
        )
    })
}

/// The sub-commands of `tallyline-bench`, one for each benchmark.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Measure the cost of an update: of one counter, or of the four counters of a packet
    #[command(after_help = UPDATE_EXAMPLES)]
    Update(CounterOptions),
    /// Measure the cost of reading one counter, by the numbers of CPUs and of CPUs that counted
    #[command(after_help = READ_EXAMPLES)]
    Read(CounterOptions),
    /// Measure the cost of reading whole groups of counters on many CPUs
    #[command(after_help = FOLD_EXAMPLES)]
    Fold(CounterOptions),
    /// Measure reads of only those counters that changed since the last read
    #[command(after_help = INCREMENTAL_EXAMPLES)]
    Incremental(CounterOptions),
    /// Measure the memory of a million counters on a machine with 192 possible CPUs
    #[command(after_help = MEMORY_EXAMPLES)]
    Memory(CounterOptions),
    /// Measure all targets of the counters, and show which are met
    #[command(after_help = TARGETS_EXAMPLES)]
    Targets(CounterOptions),
    /// Measure the time and memory of reading and printing types, against pahole
    #[command(after_help = LAYOUT_EXAMPLES)]
    Layout(layout::LayoutOptions),
    /// Measure the cost of counters for short-lived objects, and of CPUs that come and go
    #[command(after_help = LIFECYCLE_EXAMPLES)]
    Lifecycle(CounterOptions),
    /// Measure reads and memory on machines with many possible CPUs of which few write
    #[command(after_help = NODES_EXAMPLES)]
    Nodes(CounterOptions),
    /// Measure the slowdown of a program by tallyline record
    #[command(after_help = RECORD_EXAMPLES)]
    Record(record::RecordBenchOptions),
    /// Test which access reports blame, on functions with a known stalling access
    #[command(after_help = attribution::EXAMPLES)]
    Attribution(attribution::AttributionOptions),
    /// Measure the time and memory of reports by type, against perf
    #[command(after_help = REPORT_EXAMPLES)]
    Report(profiles::ReportOptions),
    /// Compare samples of whole programs, by field, with a model's prediction from a trace
    #[command(after_help = PROGRAMS_EXAMPLES)]
    Programs(programs::ProgramsOptions),
    /// Compare the speed-up by fixing false sharing in small programs with the model's prediction
    #[command(after_help = sharing::EXAMPLES)]
    Sharing(sharing::SharingOptions),
    /// Count on one CPU as standard input says, for `update`
    #[command(hide = true)]
    CountForUpdate {
        /// CPU to run on
        cpu: usize,
    },
}

const UPDATE_EXAMPLES: &str = "\
Examples:
  tallyline-bench update                     1, 2, 4 … threads, as many as there are CPUs
  tallyline-bench update --threads 2 --json | jq '.ratios[] | select(.threads == 2)'
  tallyline-bench update --seconds 20        longer, on a machine that others use too

Each thread has a CPU of its own. Figures are nanoseconds for one update in one thread.";

const READ_EXAMPLES: &str = "\
Examples:
  tallyline-bench read --threads 1
  tallyline-bench read --json -o read.json";

const FOLD_EXAMPLES: &str = "\
Examples:
  tallyline-bench fold --threads 1           one reader
  tallyline-bench fold --rounds 31 -o fold.txt

The CPUs are made up (8 to 1024 of them), the memory is real and every unit of it is written. The largest comparisons take memory beyond the last-level cache, if there is enough.";

const INCREMENTAL_EXAMPLES: &str = "\
Examples:
  tallyline-bench incremental --threads 1
  tallyline-bench incremental --threads 1 --json | jq '.targets'

The CPUs are made up (160 of them), the memory is real: some 650 MB.";

const MEMORY_EXAMPLES: &str = "\
Examples:
  tallyline-bench memory                     counted on by 1, 2, 4 … threads
  tallyline-bench memory --threads 2 --json";

const TARGETS_EXAMPLES: &str = "\
Examples:
  tallyline-bench targets                    update, read, incremental and memory, one after the other
  tallyline-bench targets --threads 2 --json | jq '.targets[] | select(.met | not)'";

const LAYOUT_EXAMPLES: &str = "\
Examples:
  tallyline-bench layout                     the running kernel's BTF
  tallyline-bench layout --cold --file vmlinux --file libbig.so.debug --file big-rust-program
  tallyline-bench layout --pahole ./pahole --json | jq '.targets'

A file with DWARF and BTF is taken for a kernel, one with DWARF for a large program.";

const RECORD_EXAMPLES: &str = "\
Examples:
  tallyline-bench record                     1000 samples a second, pairs of a second each
  tallyline-bench record -F 4000 -g --rounds 31";

const REPORT_EXAMPLES: &str = "\
Examples:
  tallyline-bench report --perf ./perf                 a small program, compiled and recorded here
  tallyline-bench report --program ./server -k vmlinux also samples spread over their functions
  tallyline-bench report --data perf.data -k vmlinux --json | jq '.targets'";

const PROGRAMS_EXAMPLES: &str = "\
Examples:
  ci/programs && tallyline-bench programs              three programs of ours, three of others
  tallyline-bench programs --program store --keep /tmp/store
  tallyline-bench programs --json | jq '.programs[] | {program, agrees, correlation}'

A share of samples is measured, a share of time is the model's (tallyline replay --cost). Needs QEMU's user emulation (qemu-user), a C and a C++ compiler and rustc; what is missing is named.";

const LIFECYCLE_EXAMPLES: &str = "\
Examples:
  tallyline-bench lifecycle                  a million flows alive, on 1, 2, 4 … threads
  tallyline-bench lifecycle --threads 1 --json | jq '.targets'

The largest way to keep a million flows takes 4 GB; with less memory there are fewer flows.";

const NODES_EXAMPLES: &str = "\
Examples:
  tallyline-bench nodes
  tallyline-bench nodes --rounds 31 --json -o nodes.json";

/// Command-line options of all benchmarks of counters: number of threads, rounds and their time, output.
#[derive(Debug, Args)]
pub(crate) struct CounterOptions {
    /// Number of threads, each on its own CPU [default: 1, 2, 4 … up to the number of CPUs]
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<usize>,

    /// Number of rounds; each side runs once in every round
    #[arg(long, value_name = "N", value_parser = positive)]
    rounds: Option<usize>,

    /// Approximate total time of the rounds for each number of threads, without calibration
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<f64>,

    /// Only show that it works: few and short rounds, small sizes; the figures mean little
    #[arg(long)]
    quick: bool,

    /// Write JSON (`schema` 1) instead of a table
    #[arg(long)]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a positive integer".into()),
        Ok(number) => Ok(number),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err("expected a number of seconds above 0 and at most a day".into()),
    }
}

/// The settings of a counter benchmark: the CPUs to pin threads to, the numbers of threads, and the rounds.
pub(crate) struct Context {
    /// CPUs that threads are kept on, in this order.
    cpus: Vec<usize>,
    /// Numbers of threads to measure with.
    threads: Vec<usize>,
    rounds: Option<usize>,
    seconds: Option<f64>,
    /// Small and short, for trying out.
    quick: bool,
}

/// Rounds where nobody says otherwise.
const ROUNDS: usize = 61;

/// The factor by which there are more of them where few are quiet.
const MOST_TIMES: usize = 5;

/// Time of a side in a round where nobody says otherwise: short enough that on a machine that others
/// use too most runs are not interrupted.
const SLICE: Duration = Duration::from_millis(1);

impl Context {
    fn new(options: &CounterOptions) -> Result<Self> {
        let cpus = os::allowed_cpus().context("cannot find out which CPUs to run on")?;
        let threads = match options.threads {
            Some(threads) if threads > cpus.len() => bail!(
                "--threads {threads}: this process may run on {} CPUs, and each thread wants one of its own",
                cpus.len()
            ),
            Some(threads) => vec![threads],
            None => std::iter::successors(Some(1), |threads| Some(threads * 2))
                .take_while(|&n| n <= cpus.len())
                .collect(),
        };
        Ok(Context { cpus, threads, rounds: options.rounds, seconds: options.seconds, quick: options.quick })
    }

    /// Returns the rounds and their length for a number of sides.
    fn settings(&self, sides: usize) -> Settings {
        let rounds = self.rounds.unwrap_or(if self.quick { 2 } else { ROUNDS });
        let slice = match self.seconds {
            Some(seconds) => Duration::from_secs_f64(seconds / (rounds * sides.max(1)) as f64),
            None if self.quick => SLICE / 10,
            None => SLICE,
        };
        Settings { rounds, most_rounds: rounds, slice, trials: if self.quick { 1 } else { 5 } }
    }

    /// Returns the rounds and their length for a number of sides, with more rounds where few are quiet and nobody said
    /// how many.
    fn settings_until_quiet(&self, sides: usize) -> Settings {
        let settings = self.settings(sides);
        let times =
            if self.rounds.is_some() || self.seconds.is_some() || self.quick { 1 } else { MOST_TIMES };
        Settings { most_rounds: settings.rounds * times, ..settings }
    }

    /// Shows how far a step is, where somebody looks.
    fn progress(&self, what: &str) -> Progress {
        progress(what)
    }
}

/// Shows how far a step is, where somebody looks.
fn progress(what: &str) -> Progress {
    let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg:32} [{bar:40}] {percent:>3}% {eta}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what.to_owned());
    Progress(bar)
}

/// A progress bar on standard error; invisible if that is no terminal. It is erased when dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    fn show(&self, done: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Runs one benchmark and writes its report as text or JSON.
pub(crate) fn run(bench: &Bench, color: Color) -> Result<ExitCode> {
    type Run = fn(&Context, &mut Report) -> Result<()>;
    let (name, options, run): (_, _, Run) = match bench {
        Bench::Update(options) => ("update", options, update::run),
        Bench::Read(options) => ("read", options, read::run),
        Bench::Fold(options) => ("fold", options, fold::run),
        Bench::Memory(options) => ("memory", options, memory::run),
        Bench::Targets(options) => ("targets", options, targets::run),
        Bench::Attribution(options) => return attribution::run(options, color),
        Bench::Layout(options) => {
            let plan = Plan { json: options.json, output: options.output.as_deref(), quick: options.quick };
            report("layout", plan, color, |report| layout::run(options, report))?;
            return Ok(ExitCode::SUCCESS);
        }
        Bench::Record(options) => {
            let plan = Plan { json: options.json, output: options.output.as_deref(), quick: options.quick };
            report("record", plan, color, |report| record::run(options, report))?;
            return Ok(ExitCode::SUCCESS);
        }
        Bench::Report(options) => {
            let plan = Plan { json: options.json, output: options.output.as_deref(), quick: options.quick };
            report("report", plan, color, |report| profiles::run(options, report))?;
            return Ok(ExitCode::SUCCESS);
        }
        Bench::Programs(options) => return programs::run(options, color).map(|()| ExitCode::SUCCESS),
        Bench::Sharing(options) => return sharing::run(options, color).map(|()| ExitCode::SUCCESS),
        Bench::CountForUpdate { cpu } => {
            sides::registered::count(*cpu)?;
            return Ok(ExitCode::SUCCESS);
        }
        Bench::Lifecycle(options) => ("lifecycle", options, lifecycle::run),
        Bench::Incremental(options) => ("incremental", options, incremental::run),
        Bench::Nodes(options) => ("nodes", options, nodes::run),
    };
    let context = Context::new(options)?;
    let plan = Plan { json: options.json, output: options.output.as_deref(), quick: options.quick };
    report(name, plan, color, |report| run(&context, report))?;
    Ok(ExitCode::SUCCESS)
}

/// The form of a report.
struct Plan<'o> {
    json: bool,
    output: Option<&'o Path>,
    quick: bool,
}

/// Measures, and writes what was found.
fn report(
    name: &'static str,
    plan: Plan<'_>,
    color: Color,
    run: impl FnOnce(&mut Report) -> Result<()>,
) -> Result<()> {
    let output = Output::open(plan.output, color)?;
    if cfg!(debug_assertions) && !plan.quick {
        eprintln!(
            "tallyline-bench: this is a debug build, its figures mean nothing; use `cargo run --release -p tallyline-bench`"
        );
    }
    let mut report = Report::new(name, Machine::describe(crate::sides::c::COMPILER));
    run(&mut report)?;
    output.write(|out| if plan.json { report.write_json(out) } else { report.write_table(out) })
}
