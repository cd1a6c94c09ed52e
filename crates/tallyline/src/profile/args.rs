//! The part of the command line that all reports on recordings have.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tallyline_profile::report::Filter;
use tallyline_profile::report::keys::Needs;

/// Which recording, which programs, which samples.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// The recording, or the folder that perf record --threads writes; - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    pub(crate) input: PathBuf,

    /// Look for programs and debug files under this folder: another root, or what perf archive packed
    #[arg(long, value_name = "FOLDER", help_heading = "Programs")]
    pub(crate) symfs: Option<PathBuf>,

    /// The kernel's own file with its debug information, if it is not where distributions put it
    #[arg(short = 'k', long, value_name = "FILE", help_heading = "Programs")]
    pub(crate) vmlinux: Option<PathBuf>,

    /// The kernel's list of symbols, as it was on the machine recorded
    #[arg(long, value_name = "FILE", help_heading = "Programs")]
    pub(crate) kallsyms: Option<PathBuf>,

    /// Find all types anew, and keep none: those of programs with a build-id are kept for the next report
    /// in ~/.cache/tallyline, or where XDG_CACHE_HOME or TALLYLINE_CACHE say (TALLYLINE_CACHE=off: nowhere)
    #[arg(long, help_heading = "Programs")]
    pub(crate) no_cache: bool,

    /// Samples of imprecise events: charge them to the instruction that retired before, or not
    #[arg(long, value_enum, value_name = "HOW", default_value_t = SkidArg::Auto, help_heading = "Programs")]
    skid: SkidArg,

    /// Only threads of these names, with commas between
    #[arg(
        long,
        visible_alias = "comms",
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Filters"
    )]
    comm: Vec<String>,

    /// Only code in these files
    #[arg(
        long,
        visible_alias = "dsos",
        value_name = "FILE",
        value_delimiter = ',',
        help_heading = "Filters"
    )]
    dso: Vec<String>,

    /// Only these functions
    #[arg(
        long,
        visible_alias = "symbols",
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Filters"
    )]
    symbol: Vec<String>,

    /// Only these processes
    #[arg(long, value_name = "PID", value_delimiter = ',', help_heading = "Filters")]
    pid: Vec<i32>,

    /// Only these threads
    #[arg(long, value_name = "TID", value_delimiter = ',', help_heading = "Filters")]
    tid: Vec<i32>,

    /// Only these CPUs: numbers and ranges, such as 0-3,8
    #[arg(short = 'C', long, value_name = "LIST", help_heading = "Filters")]
    cpu: Option<String>,

    /// Only these types
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',', help_heading = "Filters")]
    types: Vec<String>,
}

/// What is done about skid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SkidArg {
    /// Correct it, but for precise events and emulated machines
    Auto,
    /// Leave the addresses as they are, as perf does
    None,
}

impl InputArgs {
    /// Whether samples are charged to the instruction before.
    pub(crate) fn corrects_skid(&self) -> bool {
        self.skid == SkidArg::Auto
    }

    /// Which samples.
    pub(crate) fn filter(&self) -> anyhow::Result<Filter> {
        Ok(Filter {
            comms: self.comm.clone(),
            dsos: self.dso.clone(),
            symbols: self.symbol.clone(),
            pids: self.pid.clone(),
            tids: self.tid.clone(),
            cpus: self.cpu.as_deref().map(cpus).transpose()?.unwrap_or_default(),
            types: self.types.clone(),
            operation: None,
        })
    }

    /// What the filters have to know.
    pub(crate) fn needs(&self) -> Needs {
        let needs = Needs { symbols: !self.symbol.is_empty(), types: !self.types.is_empty(), ..Needs::NONE };
        if self.cpu.is_some() { needs.and(Needs::CPUS) } else { needs }
    }
}

fn cpus(list: &str) -> anyhow::Result<Vec<u32>> {
    let mask: statctr::topology::CpuSet = list.parse()?;
    Ok(mask.iter().map(|cpu| cpu.get()).collect())
}
