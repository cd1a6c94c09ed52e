//! CPUs that go offline and come back while everybody counts.

use super::Settings;
use super::cpus::{Aborts, CpuSwitch, Rng, online};
use super::hotplug_cycles::HotplugCycles;
use super::load::Load;
use crate::os::thread;
use crate::report::{ScenarioResult, say};
use statctr::hotplug::Watcher;
use statctr::topology::CpuId;
use statctr::{Counter, Mode, Placement, Pool};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(super) fn run(settings: &Settings) -> ScenarioResult {
    let switches = CpuSwitch::all();
    if switches.is_empty() {
        return ScenarioResult::Skipped("no CPU here may be switched off");
    }
    // nothing moves in a fixed pool, so it gets the smaller part
    fixed(&switches, settings.cycles.div_ceil(10))
        .map_err(|error| format!("fixed: {error}"))
        .and_then(|()| flexible(&switches, settings.cycles).map_err(|error| format!("flexible: {error}")))
        .into()
}

fn fixed(switches: &[CpuSwitch], cycles: u32) -> Result<(), String> {
    let pool = Pool::builder().placement(Placement::Fixed).build().map_err(|error| error.to_string())?;
    let (aborts, course) = (Aborts::count(), HotplugCycles::new(cycles));
    let load = Load { pool: &pool, writers: switches.len() + 1, readers: 1 };
    let account = load.run(|_| course.run(switches, |_| ()));
    say!("storm", "fixed, {}: {course}, {} aborts, {account}", pool.mode(), Aborts::text(aborts));
    course.verdict().and_then(|()| account.verdict())
}

/// Drains CPUs that are away, such as come back at that moment, and such as are there;
/// and with the library's own watcher beside all that.
fn flexible(switches: &[CpuSwitch], cycles: u32) -> Result<(), String> {
    let pool = Pool::builder().placement(Placement::Flexible).build().map_err(|error| error.to_string())?;
    let moved = Arc::new(AtomicU64::new(0));
    let in_callback = Arc::clone(&moved);
    let _on_moved = pool.on_moved(move |_, _| _ = in_callback.fetch_add(1, Ordering::Relaxed));
    let watcher = Watcher::start(vec![pool.clone()]).map_err(|error| error.to_string())?;
    let (aborts, course) = (Aborts::count(), HotplugCycles::new(cycles));
    let (drains, over) = (Mutex::new(Drains::default()), AtomicBool::new(false));
    let drain = |cpu| drains.lock().unwrap_or_else(PoisonError::into_inner).drain(&pool, cpu);
    let writers = switches.len() + 1;
    let account = Load { pool: &pool, writers, readers: 1 }.run(|_| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = Rng(99);
                while !over.load(Ordering::Relaxed) {
                    drain(rng.below(writers) as u32);
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            course.run(switches, drain);
            over.store(true, Ordering::Relaxed);
        });
    });
    drop(watcher);
    let drains = drains.into_inner().unwrap_or_else(PoisonError::into_inner);
    let by_watcher = moved.load(Ordering::Relaxed).saturating_sub(drains.with_blocks);
    say!(
        "storm",
        "flexible, {}: {course}, {drains}, {by_watcher} by the watcher, {} aborts, {account}",
        pool.mode(),
        Aborts::text(aborts)
    );
    if let Some(error) = drains.error {
        return Err(format!("a drain failed: {error}"));
    }
    course.verdict().and_then(|()| account.verdict()).and_then(|()| drained_cpu_has_a_block_again(&pool))
}

/// Checks that a CPU that was drained has a block again with its first update.
fn drained_cpu_has_a_block_again(pool: &Pool) -> Result<(), String> {
    if pool.mode() == Mode::Striped {
        return Ok(());
    }
    let failed = |error: statctr::Error| error.to_string();
    let counter = Counter::new_in(pool, 0).map_err(failed)?;
    let cpus = online();
    for &cpu in &cpus {
        thread::pin(0, &[cpu]).map_err(|error| error.to_string())?;
        let cpu = CpuId::new(cpu);
        counter.inc();
        for turn in 1..=20 {
            pool.drain(cpu).map_err(failed)?;
            let before = counter.fallback_part();
            counter.inc();
            let (here, elsewhere) = (counter.read_cpu(cpu), counter.fallback_part().wrapping_sub(before));
            if (here, elsewhere) != (1, 0) {
                return Err(format!(
                    "CPU {cpu}, turn {turn}: after a drain {here} there and {elsewhere} in the fallback cell"
                ));
            }
        }
    }
    thread::pin(0, &cpus).map_err(|error| error.to_string())?;
    say!("storm", "{} CPUs drained 20 times each have a block again with their first update", cpus.len());
    Ok(())
}

/// The drains of a scenario: their number, the blocks that they freed, the longest time, and the last error.
#[derive(Default)]
struct Drains {
    count: u64,
    with_blocks: u64,
    blocks: usize,
    longest: Duration,
    error: Option<String>,
}

impl Drains {
    fn drain(&mut self, pool: &Pool, cpu: u32) {
        let start = Instant::now();
        match pool.drain(CpuId::new(cpu)) {
            Ok(drained) => {
                self.count += 1;
                self.with_blocks += u64::from(drained.blocks > 0);
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
