//! A storm's course: hands at the switches of CPUs, until it was done as often as wanted.

use super::cpus::{CpuSwitch, Rng};
use crate::report::say;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Number of hands: several CPUs are away at a time.
const SWITCHING_THREADS: usize = 3;

/// Progress of all hands.
pub(super) struct HotplugCycles {
    wanted: u32,
    begun: AtomicU32,
    done: AtomicU32,
    refused: AtomicU32,
}

impl HotplugCycles {
    pub(super) fn new(wanted: u32) -> HotplugCycles {
        let zero = AtomicU32::default;
        HotplugCycles { wanted, begun: zero(), done: zero(), refused: zero() }
    }

    /// Takes CPUs away and gives them back, each for a moment. `drain` is called for one that is
    /// away, for one that comes back at that moment, or not at all.
    pub(super) fn run(&self, switches: &[CpuSwitch], drain: impl Fn(u32) + Sync) {
        std::thread::scope(|scope| {
            for (hand, mine) in switches.chunks(switches.len().div_ceil(SWITCHING_THREADS)).enumerate() {
                let drain = &drain;
                scope.spawn(move || self.switch_cpus(mine, Rng(hand as u64), drain));
            }
        });
    }

    fn switch_cpus(&self, mine: &[CpuSwitch], mut rng: Rng, drain: &(impl Fn(u32) + Sync)) {
        while self.begun.fetch_add(1, Ordering::Relaxed) < self.wanted {
            let switch = &mine[rng.below(mine.len())];
            let back = self.switch(switch, false)
                && match rng.below(3) {
                    0 => {
                        drain(switch.cpu);
                        self.switch(switch, true)
                    }
                    1 => std::thread::scope(|scope| {
                        scope.spawn(|| drain(switch.cpu));
                        self.switch(switch, true)
                    }),
                    _ => {
                        std::thread::sleep(Duration::from_millis(rng.below(4) as u64));
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
    fn switch(&self, switch: &CpuSwitch, online: bool) -> bool {
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

impl std::fmt::Display for HotplugCycles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [done, refused] = [&self.done, &self.refused].map(|count| count.load(Ordering::Relaxed));
        write!(f, "{done} cycles, {refused} refused")
    }
}
