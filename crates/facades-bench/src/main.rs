//! Updates behind the APIs of `metrics`, `prometheus-client` and OpenTelemetry, by their counters and by ours, and by a
//! word of the thread's own: the least that the call can cost.
//!
//! The benchmarks that those crates publish run on one thread, for the most part, and without that floor;
//! `ci/facades --upstream` runs them, both ways.
//!
//! Both sides of a pair run in turn in one process, on the same pinned threads; a figure is the median of the
//! rounds' ratios with the middle half, and the machine is named. `ci/facades --bench` runs it.

mod runner;

use metrics::Recorder as _;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{
    BoundSyncInstrument, Counter as OtelCounter, MeterProvider as _, SyncInstrument,
};
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use prometheus_client::metrics::counter::Counter as TheirCounter;
use prometheus_client::metrics::family::Family as TheirFamily;
use runner::Pair;
use std::cell::Cell;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tallyline_support::quiet::FastestProbes;
use tallyline_support::{Machine, cpus};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("facades-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = match std::env::args().nth(1) {
        Some(rounds) => rounds.parse().map_err(|_| format!("not a number of rounds: {rounds}"))?,
        None => 21,
    };
    let allowed = cpus::allowed_cpus()?;
    println!("{}", Machine::describe("").model());
    println!(
        "nanoseconds an update and thread; ratio: median of {rounds} rounds or more, and their middle half;\nquiet: of the rounds in which a loop of known work was within a tenth of its fastest on all threads\n"
    );
    println!("{:<44} {:>7} {:>8} {:>8} {:>7}  middle half", "pair", "threads", "over", "under", "ratio");
    let mut fastest = FastestProbes::new();
    let wanted = std::env::args().nth(2).unwrap_or_default();
    for pair in pairs()?.into_iter().filter(|pair| pair.name().contains(&wanted)) {
        for threads in [1, 2] {
            if let Some(cpus) = allowed.get(..threads) {
                pair.measure(cpus, rounds, &mut fastest)?;
            }
        }
    }
    Ok(())
}

/// A word that only its thread counts on, behind the API: the floor of what its indirect call costs.
struct ThreadLocalWord;

thread_local!(static WORD: Cell<u64> = const { Cell::new(0) });

impl metrics::CounterFn for ThreadLocalWord {
    fn increment(&self, value: u64) {
        WORD.with(|word| word.set(word.get().wrapping_add(value)));
    }

    fn absolute(&self, value: u64) {
        WORD.with(|word| word.set(word.get().max(value)));
    }
}

impl SyncInstrument<u64> for ThreadLocalWord {
    fn measure(&self, value: u64, _: &[KeyValue]) {
        BoundSyncInstrument::measure(self, value);
    }

    fn bind(&self, _: &[KeyValue]) -> Box<dyn BoundSyncInstrument<u64> + Send + Sync> {
        Box::new(ThreadLocalWord)
    }
}

impl BoundSyncInstrument<u64> for ThreadLocalWord {
    fn measure(&self, value: u64) {
        WORD.with(|word| word.set(word.get().wrapping_add(value)));
    }
}

fn pairs() -> Result<Vec<Pair>, Box<dyn std::error::Error>> {
    let mut pairs = metrics_pairs();
    pairs.extend(prometheus_pairs()?);
    pairs.extend(opentelemetry_pairs());
    Ok(pairs)
}

fn metrics_pairs() -> Vec<Pair> {
    let key = metrics::Key::from_static_name("updates");
    let metadata = metrics::Metadata::new("bench", metrics::Level::INFO, None);
    let recorder = statctr_metrics::Recorder::new();
    let ours = recorder.register_counter(&key, &metadata);
    let theirs = metrics::Counter::from_arc(Arc::new(metrics::atomics::AtomicU64::new(0)));
    let floor = metrics::Counter::from_arc(Arc::new(ThreadLocalWord));
    let again = ours.clone();
    let labels = vec![metrics::Label::from_static_parts("method", "GET")];
    let labelled = metrics::Key::from_parts("looked_up", labels);
    vec![
        pair!("metrics: ours / thread-local word", move || ours.increment(1), move || floor.increment(1)),
        pair!("metrics: atomic / ours", move || theirs.increment(1), {
            let ours = again.clone();
            move || ours.increment(1)
        }),
        pair!(
            "metrics: lookup and update / kept handle",
            move || recorder.register_counter(&labelled, &metadata).increment(1),
            move || again.increment(1),
        ),
    ]
}

fn prometheus_pairs() -> Result<Vec<Pair>, Box<dyn std::error::Error>> {
    type Labels = [(&'static str, &'static str); 2];
    const LABELS: Labels = [("method", "GET"), ("status", "200")];
    let (theirs, ours) = (TheirCounter::<u64>::default(), statctr_prometheus_client::Counter::new()?);
    let their_family = TheirFamily::<Labels, TheirCounter>::default();
    let our_family =
        statctr_prometheus_client::Family::<Labels, _>::new(statctr_prometheus_client::Counter::new)?;
    Ok(vec![
        pair!(
            "prometheus-client: theirs / ours",
            move || {
                theirs.inc();
            },
            move || ours.inc(),
        ),
        pair!(
            "prometheus-client, family: theirs / ours",
            move || {
                their_family.get_or_create(&LABELS).inc();
            },
            move || our_family.get(&LABELS).inc(),
        ),
    ])
}

fn opentelemetry_pairs() -> Vec<Pair> {
    let attributes = || [KeyValue::new("method", "GET"), KeyValue::new("status", "200")];
    let theirs = sdk();
    let ours = statctr_opentelemetry::MeterProvider::new(sdk());
    let their_counter = theirs.meter("bench").u64_counter("updates").build();
    let our_counter = ours.meter("bench").u64_counter("updates").build();
    let (their_bound, our_bound) = (their_counter.bind(&attributes()), our_counter.bind(&attributes()));
    let floor = OtelCounter::new(Arc::new(ThreadLocalWord));
    let bound_floor = floor.bind(&attributes());
    // an update of clones of the counters, without attributes
    macro_rules! plain {
        ($name:expr, $over:ident, $under:ident) => {{
            let (over, under) = ($over.clone(), $under.clone());
            pair!($name, move || over.add(1, &[]), move || under.add(1, &[]))
        }};
    }
    macro_rules! bound {
        ($name:expr, $over:ident, $under:ident) => {{
            let (over, under) = ($over.clone(), $under.clone());
            pair!($name, move || over.add(1), move || under.add(1))
        }};
    }
    let (theirs_given, ours_given) = (attributes(), attributes());
    // providers shut down when they are dropped
    let providers = (theirs, ours);
    vec![
        plain!("OpenTelemetry: theirs / ours", their_counter, our_counter),
        plain!("OpenTelemetry: theirs / thread-local word", their_counter, floor),
        plain!("OpenTelemetry: ours / thread-local word", our_counter, floor),
        bound!("OpenTelemetry, bound: theirs / ours", their_bound, our_bound),
        bound!("OpenTelemetry, bound: theirs / word", their_bound, bound_floor),
        bound!("OpenTelemetry, bound: ours / word", our_bound, bound_floor),
        pair!(
            "OpenTelemetry, 2 attributes: theirs / ours",
            move || their_counter.add(1, &theirs_given),
            move || {
                let _ = &providers;
                our_counter.add(1, &ours_given);
            },
        ),
    ]
}

/// Returns an SDK that exports nothing before it is told to.
fn sdk() -> SdkMeterProvider {
    let reader =
        PeriodicReader::builder(runner::NullExporter).with_interval(Duration::from_secs(1 << 20)).build();
    SdkMeterProvider::builder().with_reader(reader).build()
}
