//! More CPUs are possible than there are: those that come later count from their first update on.

use super::Settings;
use super::cpus::{Switch, online};
use super::load::Load;
use crate::report::{Outcome, say};
use statctr::Pool;
use statctr::topology::CpuId;
use std::time::{Duration, Instant};

/// How long a CPU that has come may take to be given one of the many threads.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn run(settings: &Settings) -> Outcome {
    let here = online();
    let absent: Vec<Switch> =
        Switch::all().into_iter().filter(|switch| !here.contains(&switch.cpu)).collect();
    if absent.is_empty() {
        return Outcome::Skipped("all CPUs were there at boot");
    }
    let pool = match Pool::builder().build() {
        Ok(pool) => pool,
        Err(error) => return Outcome::Broken(error.to_string()),
    };
    let mut missing = Vec::new();
    let load = Load { pool: &pool, writers: 2 * (here.len() + absent.len()), readers: 1 };
    let account = load.run(|_| {
        std::thread::sleep(settings.time / 2);
        for switch in &absent {
            let (cpu, end) = (CpuId::new(switch.cpu), Instant::now() + PATIENCE);
            switch.set(true);
            while !pool.announced().contains(cpu) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
            if !pool.announced().contains(cpu) {
                missing.push(switch.cpu);
            }
        }
    });
    say!("arrive", "{} CPUs besides {}, {}, {account}", absent.len(), here.len(), pool.mode());
    if !missing.is_empty() {
        return Outcome::Broken(format!("nothing was counted on CPUs {missing:?}"));
    }
    account.verdict().into()
}
