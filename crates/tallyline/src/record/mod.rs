//! `tallyline record`: samples of a command, a process or the machine into a file that perf reads.

mod args;
mod trace;
mod trace_args;

pub(crate) use args::RecordArgs;
pub(crate) use trace::{TracedCommand, open_dev_null, trace_command};

use crate::interrupt;
use crate::profile::builds_folder;
use anyhow::{Result, anyhow, bail};
use std::io::{ErrorKind, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tallyline_perf_data::recorder::{
    self, CallChains, Output, Pmus, RecordError, RecordOptions, RecordSummary, SampledCode, SamplingRate,
    Target,
};

/// Runs the sub-command `tallyline record` and returns the recorded command's exit code.
pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode> {
    if args.trace.trace {
        return trace::run(args);
    }
    if args.is_stream() && std::io::stdout().is_terminal() {
        bail!(
            "a recording is not for a terminal: send it to a program (| perf report -i -), or name a file with -o"
        );
    }
    let options = options(args)?;
    interrupt::listen()?;
    let summary = recorder::record(&options, &|| interrupt::asked()).map_err(|error| match error {
        // whoever reads the stream has seen enough
        RecordError::File { reason, .. }
            if options.output == Output::Stream && reason.kind() == ErrorKind::BrokenPipe =>
        {
            anyhow::Error::new(reason)
        }
        error => error.into(),
    })?;
    if !args.quiet {
        tell(args, &summary);
    }
    Ok(ExitCode::from(summary.status().map_or(0, |status| status as u8)))
}

fn options(args: &RecordArgs) -> Result<RecordOptions> {
    let target = match (args.pid.as_slice(), args.tid.as_slice()) {
        ([_, ..], _) => Target::Processes(args.pid.clone()),
        (_, [_, ..]) => Target::Threads(args.tid.clone()),
        _ if args.all_cpus => Target::System,
        _ => Target::Command,
    };
    let chains = if args.call_chains { CallChains::FramePointers } else { CallChains::None };
    let events = match args.events.as_slice() {
        [] => Vec::new(),
        texts => recorder::parse(texts, &Pmus::default()).map_err(|error| anyhow!(error))?,
    };
    Ok(RecordOptions {
        // as with perf: those of threads only where that is said
        inherit: if args.tid.is_empty() { !args.no_inherit } else { args.inherit },
        target,
        events,
        rate: args.count.map_or(SamplingRate::Frequency(args.frequency), SamplingRate::Period),
        call_chains: args.call_graph.unwrap_or(chains),
        return_addresses: !args.no_return_address,
        data_mappings: args.data,
        delay: Duration::from_millis(args.delay),
        scope: match (args.all_user, args.all_kernel) {
            (true, _) => SampledCode::User,
            (_, true) => SampledCode::Kernel,
            _ => SampledCode::Permitted,
        },
        output: match args.is_stream() {
            true => recorder::Output::Stream,
            false => recorder::Output::File(args.output().to_path_buf()),
        },
        max_size: args.max_size,
        ring_pages: recorder::ring_pages(args.ring_size),
        build_id_cache: if args.no_buildid_cache { None } else { builds_folder() },
        command: args.command.clone(),
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    })
}

/// The number of named programs that could not be kept.
const FAILURES_SHOWN: usize = 5;

/// Diagnostics: what was sampled, and what came of it.
fn tell(args: &RecordArgs, summary: &RecordSummary) {
    for note in summary.notes() {
        eprintln!("tallyline: {note}");
    }
    if summary.reached_limit() {
        eprintln!("tallyline: stopped: the file is as large as --max-size permits");
    }
    if summary.lost() > 0 {
        eprintln!("tallyline: {} samples were lost: use a larger --ring-size, or a lower -F", summary.lost());
    }
    if summary.packets_full() > 0 {
        eprintln!(
            "tallyline: the hardware's buffer was full {} times, and accesses were missed: use a larger --ring-size, \
             or a longer period (period=N among the event's terms)",
            summary.packets_full()
        );
    }
    if summary.cached_files() > 0 {
        let folder = builds_folder().unwrap_or_default();
        eprintln!(
            "tallyline: kept {} programs of other mount namespaces for reports, {:.1} MB in {}",
            summary.cached_files(),
            summary.cached_bytes() as f64 / 1e6,
            folder.display()
        );
    }
    for failure in summary.cache_failures().iter().take(FAILURES_SHOWN) {
        eprintln!("tallyline: not kept for reports: {failure}");
    }
    if let Some(more) = summary.cache_failures().len().checked_sub(FAILURES_SHOWN).filter(|more| *more > 0) {
        eprintln!("tallyline: not kept for reports: {more} more");
    }
    let events: Vec<_> = summary.events().iter().map(|(name, scope)| format!("{name} ({scope})")).collect();
    let samples = match (summary.samples(), summary.packets()) {
        (samples, 0) => format!("{samples} samples"),
        (0, packets) => format!("{:.1} MB of packets", packets as f64 / 1e6),
        (samples, packets) => format!("{samples} samples and {:.1} MB of packets", packets as f64 / 1e6),
    };
    eprintln!(
        "tallyline: {samples} of {}, {:.1} MB in {}",
        events.join(", "),
        summary.bytes() as f64 / 1e6,
        if args.is_stream() { Path::new("the stream") } else { args.output() }.display()
    );
    if let Some(CallChains::UserStack(size)) = args.call_graph {
        eprintln!(
            "tallyline: {size} bytes of the stack are in each sample: perf unwinds all callers, tallyline report -s caller the first"
        );
    }
}
