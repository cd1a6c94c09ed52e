//! Firewall rules that may change while packets are classified: workers look at a generation and take the rules anew
//! only when it has moved, which it does a few times in a run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Accept,
    Drop,
    Log,
}

#[derive(Clone)]
struct Rule {
    source: u32,
    mask: u32,
    ports: (u16, u16),
    protocol: u8,
    verdict: Verdict,
}

impl Rule {
    fn matches(&self, p: &Packet) -> bool {
        p.source & self.mask == self.source
            && self.ports.0 <= p.port
            && p.port <= self.ports.1
            && (self.protocol == 0 || self.protocol == p.protocol)
    }
}

#[derive(Clone, Copy)]
struct Packet {
    source: u32,
    port: u16,
    protocol: u8,
    length: u16,
}

struct RuleSet {
    version: u64,
    rules: Vec<Rule>,
    default: Verdict,
}

impl RuleSet {
    fn generate(version: u64) -> RuleSet {
        let mut random = Random(version * 977 + 5);
        let rules = (0..24)
            .map(|i| {
                let bits = 4 + i % 5;
                let mask = !0u32 << (32 - bits);
                let low = (random.next() % 20000) as u16;
                Rule {
                    source: random.next() as u32 & mask,
                    mask,
                    ports: (low, low + 30000),
                    protocol: [0, 6, 17][i as usize % 3],
                    verdict: [Verdict::Accept, Verdict::Drop, Verdict::Log][(i as usize + version as usize) % 3],
                }
            })
            .collect();
        RuleSet { version, rules, default: Verdict::Drop }
    }

    #[inline(never)]
    fn classify(&self, p: &Packet) -> Verdict {
        self.rules.iter().find(|r| r.matches(p)).map_or(self.default, |r| r.verdict)
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn packet(&mut self) -> Packet {
        let (a, b) = (self.next(), self.next());
        Packet {
            source: (a << 8) as u32,
            port: b as u16,
            protocol: if b & 1 << 20 == 0 { 6 } else { 17 },
            length: 40 + (b >> 17) as u16 % 1400,
        }
    }
}

/// The rules in force.
struct Firewall {
    generation: AtomicU64,
    current: Mutex<Arc<RuleSet>>,
}

impl Firewall {
    fn new() -> Firewall {
        Firewall { generation: AtomicU64::new(1), current: Mutex::new(Arc::new(RuleSet::generate(1))) }
    }

    fn load(&self) -> (u64, Arc<RuleSet>) {
        let rules = self.current.lock().expect("lock");
        (self.generation.load(Ordering::Acquire), Arc::clone(&rules))
    }

    fn replace(&self, rules: RuleSet) {
        let mut current = self.current.lock().expect("lock");
        let version = rules.version;
        *current = Arc::new(rules);
        self.generation.store(version, Ordering::Release);
    }
}

#[derive(Default)]
struct Tally {
    accepted: u64,
    dropped: u64,
    logged: u64,
    bytes: u64,
    reloads: u64,
}

impl Tally {
    fn count(&mut self, verdict: Verdict, p: &Packet) {
        match verdict {
            Verdict::Accept => {
                self.accepted += 1;
                self.bytes += u64::from(p.length);
            }
            Verdict::Drop => self.dropped += 1,
            Verdict::Log => self.logged += 1,
        }
    }
}

/// Phases end at a barrier, so that each packet sees the same rules in every run.
fn worker(firewall: &Firewall, phases: u64, packets: u32, barrier: &Barrier, seed: u64) -> Tally {
    let mut tally = Tally::default();
    let mut random = Random(seed);
    let (mut seen, mut rules) = firewall.load();
    for _ in 0..phases {
        barrier.wait();
        for _ in 0..packets {
            if firewall.generation.load(Ordering::Acquire) != seen {
                (seen, rules) = firewall.load();
                tally.reloads += 1;
            }
            let p = random.packet();
            tally.count(rules.classify(&p), &p);
        }
        barrier.wait();
    }
    tally
}

fn main() {
    let packets: u32 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(200_000);
    let (workers, phases) = (3, 4);
    let firewall = Arc::new(Firewall::new());
    let barrier = Arc::new(Barrier::new(workers + 1));
    let threads: Vec<_> = (0..workers)
        .map(|i| {
            let (firewall, barrier) = (Arc::clone(&firewall), Arc::clone(&barrier));
            thread::spawn(move || worker(&firewall, phases, packets, &barrier, i as u64 * 31 + 7))
        })
        .collect();
    for phase in 0..phases {
        barrier.wait();
        barrier.wait();
        if phase + 1 < phases {
            firewall.replace(RuleSet::generate(phase + 2));
        }
    }
    let mut all = Tally::default();
    for t in threads {
        let one = t.join().expect("a worker panicked");
        all.accepted += one.accepted;
        all.dropped += one.dropped;
        all.logged += one.logged;
        all.bytes += one.bytes;
        all.reloads += one.reloads;
    }
    println!(
        "accepted {} ({} bytes), dropped {}, logged {}, reloads {}",
        all.accepted, all.bytes, all.dropped, all.logged, all.reloads
    );
}
