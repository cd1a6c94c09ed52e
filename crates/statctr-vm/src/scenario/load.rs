//! Threads that count as fast as they can, threads that read meanwhile, and what came of it.

use crate::kit::Kit;
use crate::os::thread;
use statctr::{Combine, LazyGroup, LazyPool, PerCpu, Pool};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Calls of the library that a turn of the kit is made of, and those for the flows.
const UPDATES_A_TURN: u64 = 22 + FLOWS as u64;
/// Lazy objects that everybody writes to beside the kit.
const FLOWS: usize = 3;
/// Time within which a reader of the emulated machine reads once, though all of the host's CPUs are busy.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// Parameters of a load.
pub(super) struct Load<'a> {
    pub(super) pool: &'a Pool,
    pub(super) writers: usize,
    pub(super) readers: usize,
}

/// Results of a load.
pub(super) struct LoadReport {
    updates: u64,
    reads: u64,
    /// The most that a read was less than the one before it by the same reader.
    worst_step: u64,
    /// Parts of one counter that were counted in the fallback cell, and that drains moved into
    /// residues, of so many turns.
    atomic: u64,
    drained: u64,
    turns: u64,
    /// Instances that the lazy objects came to have.
    instances: usize,
    time: Duration,
    exact: bool,
}

impl LoadReport {
    /// Returns an error that names the promise that was broken, if any.
    pub(super) fn verdict(&self) -> Result<(), String> {
        if !self.exact {
            return Err("a sum is not that of the updates".to_owned());
        }
        if self.worst_step > 0 {
            return Err(format!("a read stepped back by {}", self.worst_step));
        }
        if self.turns == 0 || self.reads == 0 || self.instances < FLOWS {
            return Err("nothing was counted, or nothing read".to_owned());
        }
        Ok(())
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} updates, {} reads, worst read step {}, of {} turns {} in the fallback cell and {} drained, {} instances of {FLOWS} lazy objects, sums {}, {:.1} s",
            self.updates,
            self.reads,
            self.worst_step,
            self.turns,
            self.atomic,
            self.drained,
            self.instances,
            if self.exact { "exact" } else { "WRONG" },
            self.time.as_secs_f64()
        )
    }
}

impl Load<'_> {
    /// Counts and reads while `disturb` runs, which gets the writers' thread numbers.
    pub(super) fn run(&self, disturb: impl FnOnce(&[i32])) -> LoadReport {
        let kit = Kit::new(self.pool);
        let before = kit.values();
        let flows = flows();
        let start = Instant::now();
        let (stop, turns, reads) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let worst_step = AtomicU64::new(0);
        let (send, receive) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.writers {
                let send = send.clone();
                let (kit, flows, stop, turns) = (&kit, &flows, &stop, &turns);
                scope.spawn(move || {
                    // all the time that there is, but not that of the kernel's threads that
                    // switch CPUs
                    thread::lower_priority();
                    // nobody listens any more: then nobody moves this thread either
                    let _ = send.send(thread::id());
                    let mut mine = 0;
                    while !stop.load(Ordering::Relaxed) {
                        for _ in 0..16 {
                            kit.turn();
                            mine += 1;
                            flows.iter().for_each(|flow| flow.update([1, 1500, mine, 1 << (mine % 8)]));
                        }
                    }
                    turns.fetch_add(mine, Ordering::Relaxed);
                });
            }
            for _ in 0..self.readers {
                scope.spawn(|| {
                    thread::lower_priority();
                    let mut last = growing(&kit, &flows);
                    while !stop.load(Ordering::Relaxed) {
                        let now = growing(&kit, &flows);
                        for (now, last) in now.iter().zip(&last) {
                            worst_step.fetch_max(last.saturating_sub(*now), Ordering::Relaxed);
                        }
                        last = now;
                        reads.fetch_add(1, Ordering::Relaxed);
                        std::thread::yield_now();
                    }
                });
            }
            let threads: Vec<i32> = receive.iter().take(self.writers).collect();
            disturb(&threads);
            // beside other programs a reader of the emulated machine may not have run yet
            let deadline = Instant::now() + READ_WITHIN;
            while self.readers > 0 && reads.load(Ordering::Relaxed) == 0 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            stop.store(true, Ordering::Relaxed);
        });
        let turns = turns.into_inner();
        let atomic = kit.neighbours[1].fallback_part();
        LoadReport {
            updates: turns * UPDATES_A_TURN,
            reads: reads.into_inner(),
            worst_step: worst_step.into_inner(),
            atomic,
            drained: turns.wrapping_sub(on_cpus(self.pool, &kit)).wrapping_sub(atomic),
            turns,
            instances: flows.iter().map(LazyGroup::instances).sum(),
            time: start.elapsed(),
            exact: kit.has_grown(&before, turns)
                && flows.iter().all(|flow| flow.read()[..2] == [turns, 1500 * turns]),
        }
    }
}

/// Creates flows with packets, bytes, time of last use, and flags; none where there is no memory
/// for them.
fn flows() -> Vec<LazyGroup<PerCpu>> {
    let pool = LazyPool::new([Combine::Sum, Combine::Sum, Combine::Max, Combine::Or]);
    pool.map(|pool| (0..FLOWS).filter_map(|_| pool.create().ok()).collect()).unwrap_or_default()
}

/// Returns every value of the kit that is only added to, and of the flows: none of them ever goes down.
fn growing(kit: &Kit, flows: &[LazyGroup<PerCpu>]) -> Vec<u64> {
    // starts one below zero
    let mut values = vec![kit.neighbours[1].read().wrapping_add(1)];
    values.extend(kit.lines.iter().flat_map(|line| line.group.read()));
    values.extend(flows.iter().flat_map(LazyGroup::read));
    values
}

/// Returns the part of a counter that is on CPUs; each turn adds 1.
fn on_cpus(pool: &Pool, kit: &Kit) -> u64 {
    pool.topology().possible().iter().map(|cpu| kit.neighbours[1].read_cpu(cpu)).fold(0, u64::wrapping_add)
}
