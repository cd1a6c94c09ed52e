//! Threads that are moved from CPU to CPU all the time.

use super::Settings;
use super::cpus::{Aborts, Rng, online};
use super::load::Load;
use crate::os::thread;
use crate::report::{ScenarioResult, say};
use statctr::{Placement, Pool};
use std::time::Instant;

pub(super) fn run(settings: &Settings) -> ScenarioResult {
    for (name, placement) in [("fixed", Placement::Fixed), ("flexible", Placement::Flexible)] {
        if let Err(error) = migrate(name, placement, settings) {
            return ScenarioResult::Failed(format!("{name}: {error}"));
        }
    }
    ScenarioResult::Passed
}

fn migrate(name: &str, placement: Placement, settings: &Settings) -> Result<(), String> {
    let pool = Pool::builder().placement(placement).build().map_err(|error| error.to_string())?;
    let cpus = online();
    let aborts = Aborts::count();
    let mut moves = 0u64;
    let load = Load { pool: &pool, writers: cpus.len(), readers: 1 };
    let account = load.run(|threads| {
        let end = Instant::now() + settings.time;
        let mut rng = Rng(1);
        while Instant::now() < end {
            let thread = threads[rng.below(threads.len())];
            moves += u64::from(thread::pin(thread, &[cpus[rng.below(cpus.len())]]).is_ok());
        }
    });
    say!("migrate", "{name}, {}: {moves} moves, {} aborts, {account}", pool.mode(), Aborts::text(aborts));
    account.verdict()
}
