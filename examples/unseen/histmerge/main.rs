//! Latency statistics of a load generator: each worker fills the histogram of its own, and they are merged at the end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;

const BUCKETS: usize = 128;

/// One worker's figures, alone on its lines.
#[repr(align(128))]
struct WorkerStats {
    requests: AtomicU64,
    failures: AtomicU64,
    micros: AtomicU64,
    worst: AtomicU64,
    histogram: [AtomicU64; BUCKETS],
}

impl WorkerStats {
    fn new() -> Self {
        WorkerStats {
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            micros: AtomicU64::new(0),
            worst: AtomicU64::new(0),
            histogram: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Called by the worker alone.
    fn record(&self, micros: u64, failed: bool) {
        add(&self.requests, 1);
        add(&self.micros, micros);
        if failed {
            add(&self.failures, 1);
        }
        if micros > self.worst.load(Ordering::Relaxed) {
            self.worst.store(micros, Ordering::Relaxed);
        }
        add(&self.histogram[bucket(micros)], 1);
    }
}

fn add(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

/// Four buckets an octave.
fn bucket(micros: u64) -> usize {
    let v = micros.max(4);
    let octave = 63 - v.leading_zeros() as usize;
    ((octave - 2) * 4 + ((v >> (octave - 2)) & 3) as usize).min(BUCKETS - 1)
}

/// Set up once, and read by all.
struct Plan {
    routes: Vec<Route>,
    stop: AtomicBool,
    timeout: u64,
}

struct Route {
    path: String,
    base: u64,
    spread: u64,
    weight: u32,
}

impl Plan {
    fn new() -> Plan {
        let routes = ["/", "/login", "/search", "/cart", "/item", "/img", "/api/v1", "/api/v2"]
            .iter()
            .enumerate()
            .map(|(i, path)| Route {
                path: path.to_string(),
                base: 80 + 37 * i as u64,
                spread: 1 << (6 + i),
                weight: 1 + (i as u32 * 5) % 7,
            })
            .collect();
        Plan { routes, stop: AtomicBool::new(false), timeout: 9000 }
    }

    fn pick(&self, random: u64) -> &Route {
        let total: u32 = self.routes.iter().map(|r| r.weight).sum();
        let mut at = (random % u64::from(total)) as u32;
        for route in &self.routes {
            if at < route.weight {
                return route;
            }
            at -= route.weight;
        }
        &self.routes[0]
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Time of an imagined request, with a long tail.
#[inline(never)]
fn request(plan: &Plan, random: &mut Random) -> (u64, bool) {
    let route = plan.pick(random.next() >> 8);
    let r = random.next();
    let mut micros = route.base + (r >> 10) % route.spread;
    if r & 127 == 0 {
        micros *= 9;
    }
    let hash = route.path.bytes().fold(r, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100000001b3));
    (micros + (hash & 15), micros > plan.timeout)
}

fn worker(plan: &Plan, stats: &WorkerStats, requests: u32, seed: u64) {
    let mut random = Random(seed);
    for _ in 0..requests {
        if plan.stop.load(Ordering::Relaxed) {
            break;
        }
        let (micros, failed) = request(plan, &mut random);
        stats.record(micros, failed);
    }
}

struct Merged {
    requests: u64,
    failures: u64,
    micros: u64,
    worst: u64,
    histogram: [u64; BUCKETS],
}

impl Merged {
    fn of(all: &[WorkerStats]) -> Merged {
        let mut m = Merged { requests: 0, failures: 0, micros: 0, worst: 0, histogram: [0; BUCKETS] };
        for s in all {
            m.requests += s.requests.load(Ordering::Relaxed);
            m.failures += s.failures.load(Ordering::Relaxed);
            m.micros += s.micros.load(Ordering::Relaxed);
            m.worst = m.worst.max(s.worst.load(Ordering::Relaxed));
            for (to, from) in m.histogram.iter_mut().zip(&s.histogram) {
                *to += from.load(Ordering::Relaxed);
            }
        }
        m
    }

    /// The bucket in which this share of the requests is reached.
    fn quantile(&self, share: f64) -> usize {
        let wanted = (self.requests as f64 * share) as u64;
        let mut seen = 0;
        for (i, n) in self.histogram.iter().enumerate() {
            seen += n;
            if seen >= wanted {
                return i;
            }
        }
        BUCKETS - 1
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let requests: u32 = args.next().and_then(|a| a.parse().ok()).unwrap_or(600_000);
    let workers: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(3);
    let plan = Arc::new(Plan::new());
    let stats: Arc<Vec<WorkerStats>> = Arc::new((0..workers).map(|_| WorkerStats::new()).collect());
    let threads: Vec<_> = (0..workers)
        .map(|i| {
            let (plan, stats) = (Arc::clone(&plan), Arc::clone(&stats));
            thread::spawn(move || worker(&plan, &stats[i], requests, 0x9e3779b97f4a7c15 + i as u64))
        })
        .collect();
    for t in threads {
        t.join().expect("a worker panicked");
    }
    let m = Merged::of(&stats);
    println!(
        "{} requests, {} timed out, mean {} us, worst {} us, buckets {} {} {}",
        m.requests,
        m.failures,
        m.micros / m.requests.max(1),
        m.worst,
        m.quantile(0.5),
        m.quantile(0.9),
        m.quantile(0.99)
    );
}
