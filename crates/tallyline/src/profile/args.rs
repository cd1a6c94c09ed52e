//! The part of the command line that all reports on recordings have.

use super::names::{self, Patterns};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use tallyline_report::SampleGroup;
use tallyline_report::filter::Operation;
use tallyline_report::keys::Needs;
use tallyline_report::pattern::NameKind;
use tallyline_report::{Filter, Profile};

/// Command-line options of the commands that read a recording: the file, programs, filters of samples.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// The recording: a file, a folder that perf record --threads wrote, or - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    pub(crate) input: PathBuf,

    /// Look for programs and debug files under this folder: another root, or an unpacked perf archive
    #[arg(long, value_name = "FOLDER", help_heading = "Programs")]
    pub(crate) symfs: Option<PathBuf>,

    /// The kernel file with debug information, if it is not where distributions put it
    #[arg(short = 'k', long, value_name = "FILE", help_heading = "Programs")]
    pub(crate) vmlinux: Option<PathBuf>,

    /// A copy of /proc/kallsyms from the recorded machine
    #[arg(long, value_name = "FILE", help_heading = "Programs")]
    pub(crate) kallsyms: Option<PathBuf>,

    /// Bypass the cache of inferred types, which is in ~/.cache/tallyline or where XDG_CACHE_HOME or
    /// TALLYLINE_CACHE say (TALLYLINE_CACHE=off turns it off)
    #[arg(long, help_heading = "Programs")]
    pub(crate) no_cache: bool,

    /// Skid correction: charge samples of imprecise events to the instruction that caused them, or leave them
    #[arg(long, value_enum, value_name = "HOW", default_value_t = SkidArg::Auto, help_heading = "Programs")]
    skid: SkidArg,

    /// Count accesses to the parts of a container's node (bases, elements) under their own types, as perf does,
    /// instead of under the node's type
    #[arg(long, help_heading = "Programs")]
    parts: bool,

    /// Only threads with these names, comma-separated; also globs ('io*') and regular expressions ('/^io[0-9]/')
    #[arg(long, visible_alias = "comms", value_name = "NAME", value_parser = Patterns::parse, help_heading = "Filters")]
    comm: Vec<Patterns>,

    /// Only code in these files; names as for --comm, with or without folders
    #[arg(long, visible_alias = "dsos", value_name = "FILE", value_parser = Patterns::parse, help_heading = "Filters")]
    dso: Vec<Patterns>,

    /// Only these functions; names as for --comm, scopes and template arguments may be omitted
    #[arg(long, visible_alias = "symbols", value_name = "NAME", value_parser = Patterns::parse, help_heading = "Filters")]
    symbol: Vec<Patterns>,

    /// Only these processes
    #[arg(long, value_name = "PID", value_delimiter = ',', help_heading = "Filters")]
    pid: Vec<i32>,

    /// Only these threads
    #[arg(long, value_name = "TID", value_delimiter = ',', help_heading = "Filters")]
    tid: Vec<i32>,

    /// Only these CPUs; numbers and ranges, such as 0-3,8
    #[arg(short = 'C', long, value_name = "LIST", help_heading = "Filters")]
    cpu: Option<String>,

    /// Only accesses to these types; names as for --symbol, struct may be omitted
    #[arg(long = "type", value_name = "TYPE", value_parser = Patterns::parse, help_heading = "Filters")]
    types: Vec<Patterns>,
}

/// The treatment of skid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SkidArg {
    /// Correct skid, except for precise events and emulated machines
    Auto,
    /// Leave samples at their addresses, as perf does
    None,
}

impl InputArgs {
    /// Returns options that read the recording at a path with all its samples.
    pub(crate) fn of(input: &Path) -> InputArgs {
        InputArgs {
            input: input.to_path_buf(),
            symfs: None,
            vmlinux: None,
            kallsyms: None,
            no_cache: false,
            skid: SkidArg::Auto,
            parts: false,
            comm: Vec::new(),
            dso: Vec::new(),
            symbol: Vec::new(),
            pid: Vec::new(),
            tid: Vec::new(),
            cpu: None,
            types: Vec::new(),
        }
    }

    /// Returns `true` if samples are to be charged to the instructions that caused them, instead of those at their
    /// addresses (skid correction).
    pub(crate) fn corrects_skid(&self) -> bool {
        self.skid == SkidArg::Auto
    }

    /// Builds the filter of samples that the options describe; patterns are resolved to the names that occur in the
    /// samples.
    ///
    /// # Errors
    /// A pattern or number that no sample has, or filters that together leave no sample.
    pub(crate) fn filter(&self, profiles: &[&Profile], operation: Option<Operation>) -> Result<Filter> {
        let points = || profiles.iter().flat_map(|profile| profile.groups());
        let cpus = self.cpu.as_deref().map(cpus).transpose()?.unwrap_or_default();
        if points().next().is_none() {
            // that there are no samples at all is said already
            return Ok(Filter { operation, ..Filter::default() });
        }
        require("process", &self.pid, points(), |point| point.pid)?;
        require("thread", &self.tid, points(), |point| point.tid)?;
        require("CPU", &cpus, points().filter(|group| group.cpu.is_some()), |group| group.cpu.unwrap_or(0))?;
        let filter = Filter {
            events: None,
            comms: names::resolve(NameKind::Thread, &self.comm, profiles)?,
            dsos: names::resolve(NameKind::File, &self.dso, profiles)?,
            symbols: names::resolve(NameKind::Function, &self.symbol, profiles)?,
            types: names::resolve(NameKind::Type, &self.types, profiles)?,
            pids: self.pid.clone(),
            tids: self.tid.clone(),
            cpus,
            operation,
        };
        let passes = |profile: &&Profile| profile.groups().iter().any(|point| filter.accepts(profile, point));
        if !profiles.iter().any(passes) {
            bail!(
                "{}: no sample passes all filters together; each of them alone lets some through",
                self.input.display()
            );
        }
        Ok(filter)
    }

    /// Returns the properties of samples (symbols, types, CPUs, …) that have to be looked up for the options' filters.
    pub(crate) fn needs(&self) -> Needs {
        let (symbols, types) = (!self.symbol.is_empty(), !self.types.is_empty());
        let needs = Needs { symbols, types, parts: self.parts, ..Needs::NONE };
        if self.cpu.is_some() { needs.and(Needs::CPUS) } else { needs }
    }
}

/// Complains about numbers of which no sample has one.
fn require<'p, N: Copy + Ord + Display>(
    what: &str,
    asked: &[N],
    points: impl Iterator<Item = &'p SampleGroup>,
    of: impl Fn(&SampleGroup) -> N,
) -> Result<()> {
    if asked.is_empty() {
        return Ok(());
    }
    let there: BTreeSet<N> = points.map(of).collect();
    if asked.iter().any(|number| there.contains(number)) {
        return Ok(());
    }
    let list = |numbers: &mut dyn Iterator<Item = &N>| {
        let shown: Vec<_> = numbers.take(SHOWN).map(N::to_string).collect();
        shown.join(", ")
    };
    let more = if there.len() > SHOWN { ", …" } else { "" };
    bail!("no samples of {what} {}; there are {}{more}", list(&mut asked.iter()), list(&mut there.iter()))
}

/// The most numbers that a message lists.
const SHOWN: usize = 8;

fn cpus(list: &str) -> anyhow::Result<Vec<u32>> {
    let mask: statctr::topology::CpuSet = list.parse()?;
    Ok(mask.iter().map(|cpu| cpu.get()).collect())
}
