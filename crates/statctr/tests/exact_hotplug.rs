//! Counts are exact while a real CPU goes offline and comes back.
//!
//! This takes a CPU of the machine away for moments, so it runs only where it is asked for, with
//! `STATCTR_TEST_HOTPLUG` set to the number of cycles (`ci/exactness` does so), and where the
//! system permits it.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::kit::Kit;
use common::{Named, StopAtEnd, flexible_pools, os, pools_by_width};
use statctr::hotplug::Watcher;
use statctr::topology::CpuId;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A CPU that can be switched off. Comes back when this is dropped.
struct Switch(PathBuf, usize);

impl Switch {
    /// Returns the last of our CPUs that the system lets us switch; trying it is the only way to know.
    fn find() -> Option<Switch> {
        let switch =
            |&cpu: &usize| Switch(PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online")), cpu);
        let cpus = os::cpus();
        if cpus.len() < 2 {
            return None;
        }
        let switch = cpus.iter().rev().map(switch).find(|switch| switch.0.exists())?;
        (switch.set(false) && switch.set(true)).then_some(switch)
    }

    fn set(&self, online: bool) -> bool {
        std::fs::write(&self.0, if online { "1" } else { "0" }).is_ok()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.set(true);
    }
}

#[test]
fn a_real_cpu_goes_and_comes_back() {
    let cycles = std::env::var("STATCTR_TEST_HOTPLUG").ok().and_then(|text| text.parse::<u32>().ok());
    let Some(cycles) = cycles.filter(|&cycles| cycles > 0) else {
        println!("skipped: STATCTR_TEST_HOTPLUG is not set to a number of cycles");
        return;
    };
    let Some(switch) = Switch::find() else {
        println!("skipped: no CPU here may be switched off (that takes root, and two CPUs)");
        return;
    };
    for Named { name, pool } in pools_by_width().iter().chain(&flexible_pools()) {
        let _watcher = Watcher::start(vec![pool.clone()]).expect("watcher");
        let kit = Kit::new(pool);
        let (stop, turns, reads) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        (0..64).for_each(|_| kit.turn());
                        turns.fetch_add(64, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) {
                    let value = kit.neighbours[1].read().wrapping_add(1);
                    assert!(value >= last, "{name}: {value} after {last}");
                    last = value;
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
            for cycle in 0..cycles {
                // in turns: the watcher alone; drained by hand too, on its way out and on its way back
                let drain = |now: bool| {
                    if now {
                        // refused in sandboxes: then nothing moves
                        let _ = pool.drain(CpuId::new(switch.1 as u32));
                    }
                };
                let done = switch.set(false);
                drain(cycle % 3 == 1);
                std::thread::sleep(Duration::from_millis(20));
                let back = switch.set(true);
                drain(cycle % 3 == 2);
                std::thread::sleep(Duration::from_millis(20));
                if !(done && back) {
                    println!("the system refused in cycle {cycle}");
                    break;
                }
            }
        });
        kit.check(turns.load(Ordering::Relaxed), name);
        println!("{name}: {cycles} cycles, {} turns, {} reads", turns.into_inner(), reads.into_inner());
    }
}
