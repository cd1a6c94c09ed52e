//! `tallyline-bench layout`: what reading and showing the types of a file takes, against pahole: time,
//! and the most memory that is resident at once.
//!
//! Both are run as programs, in turn, with their output thrown away; ours is this very program. A
//! program's memory counts from what its parent had when it was started, so this one keeps small: it
//! does not read the types itself.

use super::costs;
use super::report::Report;
use super::sides::child::{self, Cost};
use super::{Progress, progress};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tallyline_debuginfo::{Format, formats};

const KERNEL: &str = "/sys/kernel/btf/vmlinux";

/// Rounds where nobody says otherwise.
const ROUNDS: usize = 7;

/// A type that every kernel has, and nearly its largest struct.
const LARGE_TYPE: &str = "task_struct";

/// Command-line options of the benchmark `layout` (reading debug information, tallyline against pahole): the debug
/// files to read, and pahole's path.
#[derive(Debug, Args)]
pub(crate) struct LayoutOptions {
    /// The pahole to compare with [default: $PAHOLE, else the one on the PATH]
    #[arg(long, value_name = "PROGRAM")]
    pahole: Option<PathBuf>,

    /// A file with types, in addition to the running kernel's; may be repeated
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Number of rounds; each side runs once in every round
    #[arg(long, value_name = "N", value_parser = super::positive)]
    rounds: Option<usize>,

    /// Only show that it works: one round
    #[arg(long)]
    pub(super) quick: bool,

    /// Also measure with an empty page cache, as root; this slows down everything else on the machine
    #[arg(long)]
    cold: bool,

    /// Write JSON (`schema` 1) instead of a table
    #[arg(long)]
    pub(super) json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// A query of a file, with the factors by which it should be better than pahole.
struct Job {
    file: PathBuf,
    what: &'static str,
    format: &'static str,
    arguments: Vec<String>,
    /// The least factor by which the query should be faster.
    faster: f64,
    /// The least factor by which the query should take less memory, if that is a goal.
    smaller: Option<f64>,
}

/// Runs the benchmark `layout`: time and memory of reading debug files, tallyline against pahole.
pub(crate) fn run(options: &LayoutOptions, report: &mut Report) -> Result<()> {
    let ours = crate::tool()?;
    let named = || std::env::var_os("PAHOLE").map(PathBuf::from);
    let pahole = options.pahole.clone().or_else(named).unwrap_or_else(|| "pahole".into());
    let pahole = match version(&pahole) {
        Some(version) => {
            report.note(&format!("pahole is {} ({version}), with -j", pahole.display()));
            Some(pahole)
        }
        None => {
            report.skip("pahole", &format!("{} does not run; --pahole names another", pahole.display()));
            None
        }
    };
    let mut files = options.files.clone();
    if Path::new(KERNEL).exists() {
        files.insert(0, KERNEL.into());
    } else if files.is_empty() {
        bail!("this kernel has no BTF: give a file with --file");
    }
    let jobs = files.iter().map(|file| jobs(&ours, file)).collect::<Result<Vec<_>>>()?;
    let bench =
        Bench { ours, pahole, rounds: options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS }) };
    for job in jobs.iter().flatten() {
        bench.measure(job, false, report)?;
        // the kernel's own file is in memory always
        if options.cold && job.file != Path::new(KERNEL) {
            match fs::write("/proc/sys/vm/drop_caches", "1") {
                Ok(()) => bench.measure(job, true, report)?,
                Err(error) => report.skip("cold", &format!("the page cache cannot be emptied: {error}")),
            }
        }
    }
    report.note("time: of the whole program, in seconds; memory: the most that was resident at once, mapped files included");
    Ok(())
}

fn version(pahole: &Path) -> Option<String> {
    let output = Command::new(pahole).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}

/// Returns the jobs for a file, by its contents.
fn jobs(ours: &Path, file: &Path) -> Result<Vec<Job>> {
    let open = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let formats = formats(&open).with_context(|| file.display().to_string())?;
    let job = |what, format, arguments: &[&str], faster, smaller| Job {
        file: file.to_path_buf(),
        what,
        format,
        arguments: arguments.iter().map(ToString::to_string).collect(),
        faster,
        smaller,
    };
    Ok(match formats[..] {
        [Format::Btf] => {
            let one = one_type(ours, file)?;
            vec![job("all types", "btf", &[], 2.0, None), job("one type", "btf", &["-C", &one], 2.0, None)]
        }
        // DWARF and BTF: a kernel
        [Format::Dwarf, Format::Btf] => vec![
            job("all types", "dwarf", &[], 5.0, Some(5.0)),
            job("sizes", "dwarf", &["--sizes"], 5.0, Some(5.0)),
            job("one type", "dwarf", &["-C", LARGE_TYPE], 1.0, None),
        ],
        [Format::Dwarf] => vec![job("sizes", "dwarf", &["--sizes"], 10.0, Some(10.0))],
        _ => bail!("{}: no type information", file.display()),
    })
}

/// Returns the type to ask for alone.
fn one_type(ours: &Path, file: &Path) -> Result<String> {
    let ask = |arguments: &[&str]| {
        let output = Command::new(ours).arg("layout").args(arguments).arg("--file").arg(file).output();
        output.context("cannot run this program")
    };
    if ask(&["-C", LARGE_TYPE])?.status.success() {
        return Ok(LARGE_TYPE.into());
    }
    let sizes = String::from_utf8_lossy(&ask(&["--sizes"])?.stdout).into_owned();
    let first = sizes.split('\t').next().filter(|name| !name.is_empty());
    Ok(first.with_context(|| format!("{}: no type has a name", file.display()))?.to_string())
}

struct Bench {
    ours: PathBuf,
    pahole: Option<PathBuf>,
    rounds: usize,
}

impl Bench {
    /// Runs both sides in turn and notes what they took.
    fn measure(&self, job: &Job, cold: bool, report: &mut Report) -> Result<()> {
        let name = job.file.file_name().unwrap_or(job.file.as_os_str()).to_string_lossy().into_owned();
        let state = if cold { "cold" } else { "warm" };
        let title = format!("{name} {}: {}, {state}", job.format, job.what);
        let progress: Progress = progress(&title);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // the first round fills the page cache and is not counted; a cold one empties it
        for round in 0..=self.rounds {
            progress.show(round as u64, self.rounds as u64 + 1);
            let mut command = Command::new(&self.ours);
            command.args(["layout", "-F", job.format]).args(&job.arguments).arg("--file").arg(&job.file);
            let our_cost = once(&mut command, cold)?;
            let their_cost = match &self.pahole {
                Some(pahole) => {
                    let mut command = Command::new(pahole);
                    command.args(["-j", "-F", job.format]).args(&job.arguments).arg(&job.file);
                    Some(once(&mut command, cold)?)
                }
                None => None,
            };
            if round != 0 {
                ours.push(our_cost);
                theirs.extend(their_cost);
            }
        }
        costs::note(report, &title, "tallyline", &ours);
        costs::note(report, &title, "pahole", &theirs);
        costs::aim(
            report,
            &title,
            ("pahole", "tallyline"),
            (&theirs, &ours),
            (Some(job.faster), job.smaller),
        );
        Ok(())
    }
}

fn once(command: &mut Command, cold: bool) -> Result<Cost> {
    if cold {
        fs::write("/proc/sys/vm/drop_caches", "1").context("cannot empty the page cache")?;
        // neither side pays for reading the program itself
        let program = command.get_program().to_os_string();
        let _ = child::run(Command::new(program).arg("--version"));
    }
    child::run(command)
}
