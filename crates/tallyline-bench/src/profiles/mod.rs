//! `tallyline-bench report`: what reports by type take, against perf: time, and the most memory that is
//! resident at once.
//!
//! Both are run as programs on the same recording, in turn, with their output thrown away; ours is this
//! very program: without types that earlier reports kept, with those of the libraries but not of the program
//! itself, and with all of them; perf keeps nothing of the kind. Once before that their rows are read: all have to account for the same samples, and what was kept
//! may change nothing.

mod program;
mod spread;

use super::costs;
use super::report::Report;
use super::sides::child;
use super::{Progress, progress};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tallyline_inference::cache::files_of_build;
use tallyline_inference::code::Image;

/// Rounds where nobody says otherwise.
const ROUNDS: usize = 5;

/// Samples of a recording made here.
const SAMPLES: u64 = 100_000;

/// At least so many times as fast.
const FASTER: f64 = 10.0;

/// Command-line options of the benchmark `report` (tallyline's reports against perf's): the recordings to report on,
/// and perf's path.
#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// The perf to compare with, 6.8 or later as it has to know data types [default: $PERF, else the one on the PATH]
    #[arg(long, value_name = "PROGRAM")]
    perf: Option<PathBuf>,

    /// A recording to use instead of those made here; may be repeated
    #[arg(long = "data", value_name = "FILE")]
    recordings: Vec<PathBuf>,

    /// A program with debug information, over whose functions synthetic samples are spread; may be repeated
    #[arg(long = "program", value_name = "FILE")]
    programs: Vec<PathBuf>,

    /// A kernel with debug information, for synthetic samples and for kernel samples in recordings
    #[arg(short = 'k', long, value_name = "FILE")]
    vmlinux: Option<PathBuf>,

    /// Number of samples in the recordings made here
    #[arg(long, value_name = "N", default_value_t = SAMPLES, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    samples: u64,

    /// Number of functions with synthetic samples; a busy kernel has some thousands, for which perf takes hours
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = super::positive)]
    functions: usize,

    /// Number of rounds; each side runs once in every round
    #[arg(long, value_name = "N", value_parser = super::positive)]
    rounds: Option<usize>,

    /// Only write a recording with synthetic samples spread over this file
    #[arg(long, value_name = "FILE", hide = true, requires = "into")]
    spread: Option<PathBuf>,
    #[arg(long, value_name = "FILE", hide = true)]
    into: Option<PathBuf>,

    /// Only show that it works: one round, few samples
    #[arg(long)]
    pub(super) quick: bool,

    /// Write JSON (`schema` 1) instead of a table
    #[arg(long)]
    pub(super) json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// A recording to report on.
struct Subject {
    name: String,
    recording: PathBuf,
    vmlinux: Option<PathBuf>,
    /// The file names of the program's own type cache, where it is known and the program uses libraries.
    own: Option<[String; 2]>,
}

/// Runs the benchmark `report`: time and memory of reporting samples by data type, `tallyline report` against `perf
/// report`.
pub(crate) fn run(options: &ReportOptions, report: &mut Report) -> Result<()> {
    if let (Some(program), Some(recording)) = (&options.spread, &options.into) {
        return spread::write(program, options.samples, options.functions, recording);
    }
    let ours = crate::tool()?;
    let named = || std::env::var_os("PERF").map(PathBuf::from);
    let perf = options.perf.clone().or_else(named).unwrap_or_else(|| "perf".into());
    let perf = find_perf(&perf, report);
    let folder = std::env::temp_dir().join(format!("tallyline-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot write to {}", folder.display()))?;
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS });
    let bench = Bench { ours, perf, rounds, kept: folder.join("kept") };
    let result = subjects(options, &bench.ours, &folder, report)
        .and_then(|subjects| subjects.iter().try_for_each(|subject| bench.measure(subject, report)));
    let _ = fs::remove_dir_all(&folder);
    result?;
    report.note(&format!("{COLD} finds all types anew; {NEW} has those of libraries, which a report on another program kept; {WARM} has all that a report before it kept"));
    report.note("time: of the whole program, in seconds; memory: the most that was resident at once, mapped files included");
    Ok(())
}

/// Returns the names of the files that a program's types and decoded functions are kept in.
fn kept_as(program: &Path) -> Result<Option<[String; 2]>> {
    let image = File::open(program).map(|file| Image::read(&file));
    let image = image.with_context(|| format!("cannot read {}", program.display()))??;
    Ok(image.build_id().map(files_of_build))
}

fn find_perf(perf: &Path, report: &mut Report) -> Option<PathBuf> {
    let output = Command::new(perf).arg("--version").stdin(Stdio::null()).output().ok();
    let version = output.filter(|output| output.status.success());
    match version {
        Some(version) => {
            let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
            report.note(&format!("perf is {} ({version})", perf.display()));
            Some(perf.to_owned())
        }
        None => {
            report.skip("perf", &format!("{} does not run; --perf names another", perf.display()));
            None
        }
    }
}

/// Returns the recordings to report on, made here where none is given.
fn subjects(
    options: &ReportOptions,
    ours: &Path,
    folder: &Path,
    report: &mut Report,
) -> Result<Vec<Subject>> {
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let samples = if options.quick { options.samples.min(2000) } else { options.samples };
    let mut subjects = Vec::new();
    for recording in &options.recordings {
        let subject = Subject {
            name: name(recording),
            recording: recording.clone(),
            vmlinux: options.vmlinux.clone(),
            own: None,
        };
        subjects.push(subject);
    }
    let kernel = options.vmlinux.as_ref().filter(|_| options.recordings.is_empty());
    for (index, program) in options.programs.iter().chain(kernel).enumerate() {
        let recording = folder.join(format!("spread-{index}.data"));
        // in a process of its own: what this one takes at most, each that it starts is said to have taken
        let mut command = Command::new(ours);
        command.args(["bench", "report", "--samples", &samples.to_string()]);
        command.args(["--functions", &options.functions.to_string()]);
        output(command.arg("--spread").arg(program).arg("--into").arg(&recording))?;
        let vmlinux = kernel.filter(|kernel| *kernel == program).cloned();
        subjects.push(Subject {
            name: format!("{}, made-up samples", name(program)),
            recording,
            vmlinux,
            own: None,
        });
    }
    if subjects.is_empty() || options.recordings.is_empty() && !options.quick {
        match program::record(ours, folder, samples) {
            Ok((program, recording)) => {
                let own = kept_as(&program)?;
                subjects.insert(0, Subject { name: "orders.c".to_owned(), recording, vmlinux: None, own });
            }
            Err(error) => report.skip("orders.c", &format!("{error:#}")),
        }
    }
    Ok(subjects)
}

struct Bench {
    ours: PathBuf,
    perf: Option<PathBuf>,
    rounds: usize,
    /// The folder of the type cache, for the sides that have one.
    kept: PathBuf,
}

/// The name of the side that runs tallyline without its type cache.
const COLD: &str = "tallyline --no-cache";
/// The name of the side with cached types of the libraries, but none of the program itself.
const NEW: &str = "tallyline, new program";
/// The name of the side with all types cached.
const WARM: &str = "tallyline";

/// The options of each side for each job.
const JOBS: [(&str, &[&str], &[&str]); 2] = [
    ("report -s type", &["report", "-s", "type", "--stdio"], &["report", "-s", "type", "--stdio"]),
    ("annotate data types", &["annotate"], &["annotate", "--data-type", "--stdio"]),
];

impl Bench {
    /// Runs both sides in turn and notes what they took.
    fn measure(&self, subject: &Subject, report: &mut Report) -> Result<()> {
        self.same_samples(subject, report)?;
        for (what, our_words, their_words) in JOBS {
            let title = format!("{}: {what}", subject.name);
            let progress: Progress = progress(&title);
            let (mut cold, mut new, mut warm, mut theirs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            // the files are in the page cache, as their rows were read, and types are kept
            for round in 0..self.rounds {
                progress.show(round as u64, self.rounds as u64);
                cold.push(child::run(&mut self.own(our_words, subject, false))?);
                if let Some(perf) = &self.perf {
                    theirs.push(child::run(&mut command(perf, their_words, subject))?);
                }
                if let Some([types, functions]) = &subject.own {
                    fs::remove_file(self.kept.join(types)).context("types were not kept")?;
                    // there is none where no sample's place was looked at
                    let _ = fs::remove_file(self.kept.join(functions));
                    new.push(child::run(&mut self.own(our_words, subject, true))?);
                }
                warm.push(child::run(&mut self.own(our_words, subject, true))?);
            }
            costs::note(report, &title, COLD, &cold);
            costs::note(report, &title, NEW, &new);
            costs::note(report, &title, WARM, &warm);
            costs::note(report, &title, "perf", &theirs);
            for (own, ours) in [(COLD, &cold), (NEW, &new), (WARM, &warm)] {
                costs::aim(report, &title, ("perf", own), (&theirs, ours), (Some(FASTER), Some(1.0)));
            }
        }
        Ok(())
    }

    /// Returns a command that runs this program, with cached types or without.
    fn own(&self, words: &[&str], subject: &Subject, has_kept: bool) -> Command {
        let mut command = command(&self.ours, words, subject);
        command.env("TALLYLINE_CACHE", if has_kept { self.kept.as_os_str() } else { "off".as_ref() });
        command
    }

    /// Checks that all sides account for equally many samples, and notes how many those are, and how many have a type.
    /// From then on types are cached.
    fn same_samples(&self, subject: &Subject, report: &mut Report) -> Result<()> {
        let words = ["report", "-s", "type,typeoff", "--json"];
        let output = output(&mut self.own(&words, subject, false))?;
        // the first keeps them, the second has them
        for _ in 0..2 {
            if self::output(&mut self.own(&words, subject, true))? != output {
                bail!("{}: types that were kept make another report", subject.name);
            }
        }
        let document: Value = serde_json::from_str(&output).context("cannot understand tallyline report")?;
        let ours = (document["samples"].as_u64().unwrap_or(0), document["typed"].as_u64().unwrap_or(0));
        let mut text = format!("{}: {} samples, typed {}", subject.name, ours.0, ours.1);
        if let Some(perf) = &self.perf {
            let words = ["report", "-s", "type", "--stdio", "-n", "-t", "\x01"];
            let theirs = rows(&self::output(&mut command(perf, &words, subject))?);
            if theirs.0 != ours.0 {
                bail!("{}: {} samples by perf, {} here", subject.name, theirs.0, ours.0);
            }
            text += &format!(" ({} by perf, without correction of skid)", theirs.1);
        }
        report.note(&text);
        Ok(())
    }
}

/// Returns the number of samples in all rows that perf prints, and in those that have a type.
fn rows(text: &str) -> (u64, u64) {
    let (mut all, mut typed) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split('\x01').map(str::trim);
        let (Some(samples), Some(name)) = (words.nth(1), words.next()) else { continue };
        let samples: u64 = samples.parse().unwrap_or(0);
        all += samples;
        typed += if name.starts_with('(') { 0 } else { samples };
    }
    (all, typed)
}

fn command(program: &Path, words: &[&str], subject: &Subject) -> Command {
    let mut command = Command::new(program);
    command.args(words).arg("-i").arg(&subject.recording);
    if let Some(vmlinux) = &subject.vmlinux {
        command.arg("-k").arg(vmlinux);
    }
    command
}

fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed: {}", complaint.trim().trim_start_matches("tallyline: "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn perfs_rows_are_added_up_and_those_in_brackets_have_no_type() {
        let text = "# Overhead\x01Samples\x01Data Type\n    60.00%\x0160\x01struct order\n    \
                    30.00%\x0130\x01(stack operation)\n    10.00%\x0110\x01int\n\n";
        assert_eq!(rows(text), (100, 70));
    }
}
