//! CPUs that go offline and come back while everybody counts.

use super::Settings;
use super::cpus::{Aborts, Dice, Switch, online};
use super::load::Load;
use crate::report::{Outcome, say};
use statctr::Pool;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How many hands are at the switches: several CPUs are away at a time.
const HANDS: usize = 3;

pub(super) fn run(settings: &Settings) -> Outcome {
    let switches = Switch::all();
    if switches.is_empty() {
        return Outcome::Skipped("no CPU here may be switched off");
    }
    let pool = match Pool::builder().build() {
        Ok(pool) => pool,
        Err(error) => return Outcome::Broken(error.to_string()),
    };
    let aborts = Aborts::count();
    let writers = switches.len() + 1;
    let (begun, done, refused) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    let account = Load { pool: &pool, writers, readers: 2 }.run(|_| {
        std::thread::scope(|scope| {
            for (hand, mine) in switches.chunks(switches.len().div_ceil(HANDS)).enumerate() {
                let (begun, done, refused) = (&begun, &done, &refused);
                scope.spawn(move || cycle(mine, Dice(hand as u64), settings.cycles, begun, done, refused));
            }
        });
    });
    let aborts = aborts.map_or("unknown".to_owned(), |aborts| aborts.so_far().to_string());
    let (cycles, refused) = (done.into_inner(), refused.into_inner());
    say!("storm", "fixed, {}: {cycles} cycles, {refused} refused, {aborts} aborts, {account}", pool.mode());
    if cycles < settings.cycles {
        return Outcome::Broken(format!("the kernel switched only {cycles} times"));
    }
    if online().len() < writers {
        return Outcome::Broken(format!("CPUs {:?} are left", online()));
    }
    account.verdict().into()
}

/// Takes CPUs away and gives them back, each for a moment, until it was done so often by all hands.
fn cycle(
    mine: &[Switch],
    mut dice: Dice,
    wanted: u32,
    begun: &AtomicU32,
    done: &AtomicU32,
    refused: &AtomicU32,
) {
    while begun.fetch_add(1, Ordering::Relaxed) < wanted {
        let switch = &mine[dice.below(mine.len())];
        for online in [false, true] {
            let mut tries = 0;
            while !switch.set(online) {
                refused.fetch_add(1, Ordering::Relaxed);
                tries += 1;
                if tries == 1000 {
                    return;
                }
                // the kernel is busy with it
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(dice.below(4) as u64));
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}
