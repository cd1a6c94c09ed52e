//! A storm's course: hands at the switches of CPUs, until it was done as often as wanted.

use super::cpus::{Dice, Switch};
use crate::report::say;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Number of hands: several CPUs are away at a time.
const HANDS: usize = 3;

/// Progress of all hands.
pub(super) struct Course {
    wanted: u32,
    begun: AtomicU32,
    done: AtomicU32,
    refused: AtomicU32,
}

impl Course {
    pub(super) fn new(wanted: u32) -> Course {
        let zero = AtomicU32::default;
        Course { wanted, begun: zero(), done: zero(), refused: zero() }
    }

    /// Takes CPUs away and gives them back, each for a moment. `drain` is called for one that is
    /// away, for one that comes back at that moment, or not at all.
    pub(super) fn run(&self, switches: &[Switch], drain: impl Fn(u32) + Sync) {
        std::thread::scope(|scope| {
            for (hand, mine) in switches.chunks(switches.len().div_ceil(HANDS)).enumerate() {
                let drain = &drain;
                scope.spawn(move || self.hand(mine, Dice(hand as u64), drain));
            }
        });
    }

    fn hand(&self, mine: &[Switch], mut dice: Dice, drain: &(impl Fn(u32) + Sync)) {
        while self.begun.fetch_add(1, Ordering::Relaxed) < self.wanted {
            let switch = &mine[dice.below(mine.len())];
            let back = self.switch(switch, false)
                && match dice.below(3) {
                    0 => {
                        drain(switch.cpu);
                        self.switch(switch, true)
                    }
                    1 => std::thread::scope(|scope| {
                        scope.spawn(|| drain(switch.cpu));
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
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(100) {
                say!("course", "{done} cycles so far");
            }
        }
    }

    /// Switches a CPU. Returns `false` where the kernel refuses again and again.
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

    /// Returns `true` if the course came to its end.
    pub(super) fn verdict(&self) -> Result<(), String> {
        let done = self.done.load(Ordering::Relaxed);
        if done < self.wanted { Err(format!("the kernel switched only {done} times")) } else { Ok(()) }
    }
}

impl std::fmt::Display for Course {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [done, refused] = [&self.done, &self.refused].map(|count| count.load(Ordering::Relaxed));
        write!(f, "{done} cycles, {refused} refused")
    }
}
