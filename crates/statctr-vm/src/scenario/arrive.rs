//! More CPUs are possible than there are: those that come later count from their first update on.

use super::Settings;
use super::cpus::{Switch, online};
use super::load::Load;
use crate::report::{Outcome, say};
use statctr::topology::CpuId;
use statctr::{Placement, Pool};
use std::time::{Duration, Instant};

/// Time within which a CPU that has come must be given one of the many threads.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn run(settings: &Settings) -> Outcome {
    let here = online();
    let absent: Vec<Switch> =
        Switch::all().into_iter().filter(|switch| !here.contains(&switch.cpu)).collect();
    if absent.is_empty() {
        return Outcome::Skipped("all CPUs were there at boot");
    }
    for (name, placement) in [("fixed", Placement::Fixed), ("flexible", Placement::Flexible)] {
        if let Err(error) = arrive(name, placement, here.len(), &absent, settings) {
            return Outcome::Broken(format!("{name}: {error}"));
        }
        absent.iter().for_each(|switch| _ = switch.set(false));
    }
    Outcome::Held
}

fn arrive(
    name: &str,
    placement: Placement,
    here: usize,
    absent: &[Switch],
    settings: &Settings,
) -> Result<(), String> {
    let pool = Pool::builder().placement(placement).build().map_err(|error| error.to_string())?;
    let mut missing = Vec::new();
    let load = Load { pool: &pool, writers: 2 * (here + absent.len()), readers: 1 };
    let account = load.run(|_| {
        std::thread::sleep(settings.time / 2);
        for switch in absent {
            let (cpu, end) = (CpuId::new(switch.cpu), Instant::now() + PATIENCE);
            switch.set(true);
            while !pool.active_cpus().contains(cpu) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
            if !pool.active_cpus().contains(cpu) {
                missing.push(switch.cpu);
            }
        }
    });
    say!("arrive", "{name}, {}: {} CPUs besides {here}, {account}", pool.mode(), absent.len());
    if !missing.is_empty() {
        return Err(format!("nothing was counted on CPUs {missing:?}"));
    }
    account.verdict()
}
