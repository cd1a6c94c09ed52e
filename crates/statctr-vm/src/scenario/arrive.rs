//! More CPUs are possible than there are: those that come later count from their first update on.

use super::Settings;
use super::cpus::{CpuSwitch, online};
use super::load::Load;
use crate::report::{ScenarioResult, say};
use statctr::topology::CpuId;
use statctr::{Placement, Pool};
use std::time::{Duration, Instant};

/// Time within which a CPU that has come must be given one of the many threads.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) fn run(settings: &Settings) -> ScenarioResult {
    let here = online();
    let absent: Vec<CpuSwitch> =
        CpuSwitch::all().into_iter().filter(|switch| !here.contains(&switch.cpu)).collect();
    if absent.is_empty() {
        return ScenarioResult::Skipped("all CPUs were there at boot");
    }
    for (name, placement) in [("fixed", Placement::Fixed), ("flexible", Placement::Flexible)] {
        if let Err(error) = arrive(name, placement, here.len(), &absent, settings) {
            return ScenarioResult::Failed(format!("{name}: {error}"));
        }
        absent.iter().for_each(|switch| _ = switch.set(false));
    }
    ScenarioResult::Passed
}

fn arrive(
    name: &str,
    placement: Placement,
    here: usize,
    absent: &[CpuSwitch],
    settings: &Settings,
) -> Result<(), String> {
    let pool = Pool::builder().placement(placement).build().map_err(|error| error.to_string())?;
    let mut missing = Vec::new();
    let load = Load { pool: &pool, writers: 2 * (here + absent.len()), readers: 1 };
    let account = load.run(|_| {
        std::thread::sleep(settings.time / 2);
        for switch in absent {
            let (cpu, end) = (CpuId::new(switch.cpu), Instant::now() + ARRIVAL_TIMEOUT);
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
