//! CPUs that go offline and come back while everybody counts.

use super::Settings;
use super::cpus::{Aborts, Dice, Switch, online};
use super::load::Load;
use crate::report::{Outcome, say};
use statctr::topology::CpuId;
use statctr::{Placement, Pool};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How many hands are at the switches: several CPUs are away at a time.
const HANDS: usize = 3;

pub(super) fn run(settings: &Settings) -> Outcome {
    let switches = Switch::all();
    if switches.is_empty() {
        return Outcome::Skipped("no CPU here may be switched off");
    }
    // nothing moves in a fixed pool, so it gets the smaller part
    let fixed = Settings { cycles: settings.cycles.div_ceil(10), ..settings.clone() };
    let all = [("fixed", Placement::Fixed, &fixed), ("flexible", Placement::Flexible, settings)];
    for (name, placement, settings) in all {
        if let Err(error) = storm(name, placement, &switches, settings) {
            return Outcome::Broken(format!("{name}: {error}"));
        }
    }
    Outcome::Held
}

fn storm(name: &str, placement: Placement, switches: &[Switch], settings: &Settings) -> Result<(), String> {
    let pool = Pool::builder().placement(placement).build().map_err(|error| error.to_string())?;
    let aborts = Aborts::count();
    let writers = switches.len() + 1;
    let course = Course::new(settings.cycles);
    let drains = Mutex::new(Drains::default());
    let account = Load { pool: &pool, writers, readers: 1 }.run(|_| {
        std::thread::scope(|scope| {
            let mut hands = Vec::new();
            for (hand, mine) in switches.chunks(switches.len().div_ceil(HANDS)).enumerate() {
                let (course, drains, pool) = (&course, &drains, &pool);
                hands.push(scope.spawn(move || course.cycle(mine, Dice(hand as u64), pool, drains)));
            }
            if placement == Placement::Flexible {
                // beside it, CPUs that are there
                scope.spawn(|| {
                    let mut dice = Dice(99);
                    while !course.over.load(Ordering::Relaxed) {
                        drains
                            .lock()
                            .unwrap_or_else(|poisoned| poisoned.into_inner())
                            .drain(&pool, dice.below(writers) as u32);
                        std::thread::sleep(Duration::from_millis(5));
                    }
                });
            }
            hands.into_iter().for_each(|hand| _ = hand.join());
            course.over.store(true, Ordering::Relaxed);
        });
    });
    let aborts = aborts.map_or("unknown".to_owned(), |aborts| aborts.so_far().to_string());
    let (cycles, refused) = (course.done.into_inner(), course.refused.into_inner());
    let drains = drains.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    say!(
        "storm",
        "{name}, {}: {cycles} cycles, {refused} refused, {drains}, {aborts} aborts, {account}",
        pool.mode()
    );
    if let Some(error) = drains.error {
        return Err(format!("a drain failed: {error}"));
    }
    if cycles < settings.cycles {
        return Err(format!("the kernel switched only {cycles} times"));
    }
    if online().len() < writers {
        return Err(format!("CPUs {:?} are left", online()));
    }
    account.verdict()
}

/// How far all hands are.
struct Course {
    wanted: u32,
    begun: AtomicU32,
    done: AtomicU32,
    refused: AtomicU32,
    over: AtomicBool,
}

impl Course {
    fn new(wanted: u32) -> Course {
        let zero = AtomicU32::default;
        Course { wanted, begun: zero(), done: zero(), refused: zero(), over: AtomicBool::new(false) }
    }

    /// Takes CPUs away and gives them back, each for a moment, until all hands have done it as often
    /// as wanted. What was counted on a CPU is moved once it is away, or while it comes back.
    fn cycle(&self, mine: &[Switch], mut dice: Dice, pool: &Pool, drains: &Mutex<Drains>) {
        while self.begun.fetch_add(1, Ordering::Relaxed) < self.wanted {
            let switch = &mine[dice.below(mine.len())];
            if !self.switch(switch, false) {
                return;
            }
            let drain =
                || drains.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).drain(pool, switch.cpu);
            let back = match dice.below(3) {
                0 => {
                    drain();
                    self.switch(switch, true)
                }
                1 => std::thread::scope(|scope| {
                    scope.spawn(drain);
                    self.switch(switch, true)
                }),
                _ => {
                    std::thread::sleep(Duration::from_millis(dice.below(4) as u64));
                    self.switch(switch, true)
                }
            };
            if !back {
                return;
            }
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// `false` where the kernel refuses again and again.
    fn switch(&self, switch: &Switch, online: bool) -> bool {
        for _ in 0..1000 {
            if switch.set(online) {
                return true;
            }
            self.refused.fetch_add(1, Ordering::Relaxed);
            // it is busy with another one
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }
}

/// What drains did.
#[derive(Default)]
struct Drains {
    count: u64,
    blocks: usize,
    longest: Duration,
    error: Option<String>,
}

impl Drains {
    fn drain(&mut self, pool: &Pool, cpu: u32) {
        if pool.placement() != Placement::Flexible {
            return;
        }
        let start = Instant::now();
        match pool.drain(CpuId::new(cpu)) {
            Ok(drained) => {
                self.count += 1;
                self.blocks += drained.blocks;
                self.longest = self.longest.max(start.elapsed());
            }
            Err(error) => self.error = Some(error.to_string()),
        }
    }
}

impl std::fmt::Display for Drains {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let milliseconds = self.longest.as_secs_f64() * 1e3;
        write!(f, "{} drains of {} blocks (longest {milliseconds:.1} ms)", self.count, self.blocks)
    }
}
