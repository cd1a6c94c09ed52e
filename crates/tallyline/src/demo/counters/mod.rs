//! `tallyline demo counters`: the cost of counting on this machine, with words that all CPUs share and with per-CPU
//! counters, while real threads count packets.
//!
//! It needs nothing but the program, takes half a minute, and shows where per-CPU counters cost more as well as where
//! they cost less. `tallyline-counting` measures; [`result`] are the figures, which [`table`] and [`html`] show.

mod figures;
mod html;
mod plot;
mod result;
mod table;

use crate::interrupt;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use result::Results;
use statctr::{Mode, Pool};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tallyline_counting::checks::Exactness;
use tallyline_counting::{
    COUNTERS, Error, Family, INTERFACES, LABELS, Label, ONE_COMMIT, Store, checks, memory, race, reading,
};
use tallyline_support::output::{Color, Output};
use tallyline_support::{Machine, cpus};

/// Command-line options of `tallyline demo counters`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CountersArgs {
    /// Largest number of threads, each on its own CPU [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,

    /// Approximate run time in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "20")]
    seconds: f64,

    /// Only show that it works, in two seconds; the figures mean little
    #[arg(long, conflicts_with = "seconds")]
    quick: bool,

    /// Write an HTML page with plots to this file [default: tallyline-counters.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Do not write an HTML page
    #[arg(long, conflicts_with = "output")]
    no_html: bool,

    /// Print JSON (`schema` 1) instead of a table; write a page only with -o
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tallyline demo counters                all CPUs, 20 seconds; a table, and tallyline-counters.html
  tallyline demo counters --threads 4 -o four.html
  tallyline demo counters --json | jq -r .headline

`tallyline bench` measures single updates and reads more closely.";

/// The default path of the page.
const PAGE: &str = "tallyline-counters.html";

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 3600.0 => Ok(seconds),
        _ => Err("a number of seconds above 0, at most 3600, is wanted".into()),
    }
}

/// Runs `tallyline demo counters`: compares ways of counting (shared atomics, `statctr`) by speed and exactness, and
/// shows the figures.
pub(crate) fn run(args: &CountersArgs, color: Color) -> Result<()> {
    match show(args, color) {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
            // the page and the progress bar are gone by now
            eprintln!("tallyline: stopped by Ctrl-C; nothing was written");
            interrupt::end()
        }
        other => other,
    }
}

fn show(args: &CountersArgs, color: Color) -> Result<()> {
    let plan = Plan::new(args)?;
    let path = match &args.output {
        Some(path) => Some(path.as_path()),
        None if args.no_html || args.json => None,
        None => Some(Path::new(PAGE)),
    };
    // before there is a file to leave behind
    interrupt::listen()?;
    // before the measurement: nobody waits half a minute to hear that a file cannot be written
    let page = path.map(html::Page::create).transpose()?;
    if cfg!(debug_assertions) && !plan.quick {
        eprintln!(
            "tallyline: this is a debug build, its figures mean nothing; use `cargo run --release -- demo counters`"
        );
    }
    let mut results = plan.measure()?;
    results.page = match page {
        Some(page) => Some(page.write(&results)?),
        None => None,
    };
    let output = Output::open(None, color)?;
    output.write(
        |out| if args.json { table::write_json(out, &results) } else { table::write(out, &results) },
    )?;
    if !results.exact {
        bail!(
            "counts were lost or doubled: please report this, with what `tallyline demo counters --json` prints"
        );
    }
    Ok(())
}

/// The measurements and their durations.
struct Plan {
    quick: bool,
    /// CPUs that threads are kept on, in this order.
    cpus: Vec<usize>,
    /// Numbers of threads: 1, 2, 4 … and all.
    threads: Vec<usize>,
    race: race::Settings,
    /// For how long a reader watches, in all.
    watch: Duration,
    /// For how long one read is repeated in one round.
    read: Duration,
    /// The number of counters in the *many* case.
    many: usize,
}

/// For how long a way runs in a round, about: longer than what the scheduler gives to others, and
/// short enough for many rounds.
const SLICE: f64 = 0.02;

/// The duration of `--quick` in seconds.
const QUICK: f64 = 1.2;

impl Plan {
    fn new(args: &CountersArgs) -> Result<Plan> {
        let cpus = cpus::allowed_cpus().context("cannot find out which CPUs to run on")?;
        let most = match args.threads {
            Some(threads) if threads as usize > cpus.len() => bail!(
                "--threads {threads}: each thread wants a CPU of its own, and this process may run on {}; \
                 give {} or less",
                figures::plural(cpus.len(), "CPU"),
                cpus.len()
            ),
            Some(threads) => threads as usize,
            // knows about the quota of a container, too
            None => std::thread::available_parallelism().map_or(cpus.len(), |n| n.get().min(cpus.len())),
        };
        let mut threads: Vec<usize> =
            std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(|&n| n < most).collect();
        if args.quick {
            threads.truncate(1);
        }
        threads.push(most);
        threads.dedup();
        let total = if args.quick { QUICK } else { args.seconds };
        // the race, the watch and the reads get 60, 25 and 10 hundredths; making counters the rest
        let each = total * 0.60 / threads.len() as f64;
        let most_rounds = if args.quick { 5.0 } else { 41.0 };
        let rounds = (each / (LABELS.len() as f64 * SLICE)).clamp(5.0, most_rounds) as usize;
        let slices = (LABELS.len() * (rounds + 1)) as f64;
        Ok(Plan {
            quick: args.quick,
            cpus,
            threads,
            race: race::Settings { rounds, slice: Duration::from_secs_f64(each / slices) },
            watch: Duration::from_secs_f64(total * 0.25),
            read: Duration::from_secs_f64(total * 0.10 / f64::from(reading::slices())),
            many: if args.quick { 100_000 } else { 1_000_000 },
        })
    }

    fn measure(&self) -> Result<Results> {
        let (begun, machine) = (Instant::now(), Machine::describe("none, as nothing is compiled"));
        let progress = Progress::new(self.time());
        let mut tick = |time| {
            progress.tick(time);
            if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let pool = Pool::builder().build()?;
        let store = Store::new(&pool)?;
        let methods = store.methods();

        let mut notes: Vec<String> = result::note_about(pool.mode()).into_iter().collect();
        if let Some(load) = machine.load.filter(|load| *load > 0.5 * machine.cpus as f64) {
            notes.push(format!(
                "Other programs keep this machine busy (load {load} on {}): figures are larger and vary more than \
                 on a quiet one.",
                figures::plural(machine.cpus, "CPU")
            ));
        }
        let mut ring_rounds = [0; LABELS.len()];
        let mut cases = Vec::new();
        for &threads in &self.threads {
            progress.say(&format!("counting, {}", figures::plural(threads, "thread")));
            let race =
                race::run(&methods, &self.cpus[..threads], self.race, &mut tick).map_err(
                    |error| match error {
                        Error::Thread(_) => anyhow!(error)
                            .context("cannot count with so many threads; try fewer with --threads"),
                        error => error.into(),
                    },
                )?;
            ring_rounds.iter_mut().zip(&race.outcomes).for_each(|(sum, outcome)| *sum += outcome.ring_rounds);
            cases.extend(result::cases(threads, &race.outcomes));
            if let Some(reason) = race.unpinned.filter(|_| threads == 1) {
                notes.push(format!("Threads could not be kept on their CPUs ({reason}): figures vary more."));
            }
        }
        let mut watched = Vec::new();
        let writers = 2 * self.threads.last().copied().unwrap_or(1);
        for ((label, method), sum) in LABELS.iter().zip(&methods).zip(&mut ring_rounds) {
            let Some(share) = Plan::share_of_watch(label) else { continue };
            progress.say(&format!("checking {}", label.name));
            let mut seen = checks::watch(
                label,
                method.as_ref(),
                &self.cpus,
                writers,
                self.watch.mul_f64(share),
                &mut tick,
            )?;
            *sum += seen.ring_rounds;
            seen.pairs_promised = *label == LABELS[ONE_COMMIT] && pool.mode() == Mode::Rseq;
            watched.push(seen);
        }
        let checks = LABELS.iter().zip(&methods).zip(ring_rounds);
        let checks = checks.filter(|((label, _), _)| Plan::share_of_watch(label).is_some());
        let exactness: Vec<Exactness> =
            checks.map(|((label, method), sum)| Exactness::check(label, method.as_ref(), sum)).collect();

        progress.say("reading");
        let reads = reading::measure(&store, &pool, self.read, &mut tick)?;
        progress.say("memory");
        let memory = memory::of(&pool, 2 * INTERFACES * COUNTERS)?;
        let memory_of_many = memory::of_many(self.many, &self.cpus, &mut tick)?;
        drop(progress);

        let exact = exactness.iter().all(Exactness::holds) && watched.iter().all(|seen| seen.went_down == 0);
        let mut results = Results {
            schema: 1,
            demo: "packets",
            quick: self.quick,
            unix_time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            seconds: begun.elapsed().as_secs_f64(),
            machine,
            mode: pool.mode().to_string(),
            vector_bytes: pool.cost().vector_bytes,
            interfaces: INTERFACES,
            counters_per_packet: COUNTERS,
            threads: self.threads.clone(),
            ratios: result::ratios(&cases),
            cases,
            exact,
            exactness,
            watched,
            read_ratios: reading::ratios(&reads),
            reads,
            memory,
            memory_of_many,
            notes,
            headline: String::new(),
            page: None,
        };
        results.headline = results.sentence();
        Ok(results)
    }

    /// Returns a method's share of the observation time; none for one that does not count.
    fn share_of_watch(label: &Label) -> Option<f64> {
        match label.family {
            Family::Nobody => None,
            _ if *label == LABELS[ONE_COMMIT] => Some(0.5),
            _ => Some(0.5 / 3.0),
        }
    }

    /// Returns the expected duration.
    fn time(&self) -> Duration {
        let slices = (self.race.rounds + 1) * LABELS.len() * self.threads.len();
        self.race.slice * slices as u32 + self.watch + self.read * reading::slices()
    }
}

/// A bar on standard error, if that is a terminal. Goes away when dropped.
struct Progress(ProgressBar);

impl Progress {
    fn new(time: Duration) -> Progress {
        let length = time.as_millis() as u64;
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg:26!} {wide_bar} {percent:>3} %  {eta:>3}") {
            bar.set_style(style.progress_chars(if table::unicode() { "━╸ " } else { "=> " }));
        }
        Progress(bar)
    }

    fn say(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    fn tick(&self, time: Duration) {
        // in microseconds would be more exact; a bar is not
        self.0.inc((time.as_micros() as u64).div_ceil(1000));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        demo: CountersArgs,
    }

    fn plan(line: &str) -> Result<Plan> {
        let cli = Cli::try_parse_from(std::iter::once("demo").chain(line.split_whitespace()))?;
        Plan::new(&cli.demo)
    }

    #[test]
    fn the_plan_takes_about_the_time_that_was_asked_for() {
        for seconds in [2.0, 20.0, 120.0] {
            let plan = plan(&format!("--seconds {seconds}")).expect("plan");
            let time = plan.time().as_secs_f64();
            assert!((0.9 * seconds..=seconds).contains(&time), "{time} of {seconds}");
            assert_eq!(plan.threads[0], 1);
        }
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused() {
        for line in ["--threads 0", "--threads x", "--threads 100000", "--seconds 0", "--seconds -1"] {
            assert!(plan(line).is_err(), "{line}");
        }
        for line in ["--quick --seconds 3", "--no-html -o page.html", "left over"] {
            assert!(plan(line).is_err(), "{line}");
        }
    }
}
