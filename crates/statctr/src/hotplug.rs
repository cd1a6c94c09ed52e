//! CPUs that go offline: a [`Watcher`] drains them, so that reads get cheaper and memory smaller.
//!
//! No count depends on it: without a watcher, and where an event is lost or late, everything is as
//! exact and as visible as with it.

use crate::cpu::{CpuId, CpuSet};
use crate::errno;
use crate::error::{Error, Result};
use crate::placement::Pool;
use crate::sys::{Wakeup, Watch, without_signals};
use crate::topology::Topology;
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval between looks at the list of CPUs, for systems on which the kernel's messages do not
/// arrive.
const INTERVAL: Duration = Duration::from_secs(1);

/// A background thread that follows CPU hotplug for some pools of per-CPU counters: it drains CPUs that go offline
/// (moves their counts to shared words), prepares memory for CPUs that come online, and returns free memory. It stops
/// when this is dropped; a forked child has none.
///
/// The thread, which takes no signals, waits for the kernel's messages about CPUs (netlink), and checks the list of
/// online CPUs once a second, as most containers get no such messages.
///
/// ```
/// use statctr::{Placement, Pool};
///
/// let pool = Pool::builder().placement(Placement::Flexible).build()?;
/// let moved = pool.on_moved(|cpu, drained| println!("CPU {cpu}: {} bytes moved", drained.bytes));
/// let watcher = statctr::hotplug::Watcher::start(vec![pool.clone()])?;
/// // … count …
/// drop((watcher, moved));
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "it stops watching when it is dropped"]
pub struct Watcher {
    /// The wake-up that tells the watching thread to end.
    wake: Option<Wakeup>,
    thread: Option<JoinHandle<()>>,
    /// The process that started the thread; a forked child does not have it.
    process: u32,
}

impl Watcher {
    /// Starts a thread that follows CPU hotplug for these pools of per-CPU counters: it moves the counts of CPUs that
    /// go offline to shared words, and prepares memory for CPUs that come online.
    ///
    /// # Errors
    /// Those of [`Topology::current`], and [`Error::System`] where the kernel's events cannot be watched or no thread
    /// can be created.
    pub fn start(pools: Vec<Pool>) -> Result<Watcher> {
        let online = Topology::current()?.online().clone();
        let failed = |error: std::io::Error| Error::System {
            operation: "starting to watch CPUs",
            errno: error.raw_os_error().unwrap_or(errno::EIO),
        };
        // before the thread: what happens from now on is not missed
        let (waits, wake) = Watch::new().map_err(failed)?;
        let thread = std::thread::Builder::new().name("statctr-hotplug".into());
        let watch = move || watch(&pools, &waits, online);
        let thread = without_signals(|| thread.spawn(watch)).map_err(failed)?;
        Ok(Watcher { wake: Some(wake), thread: Some(thread), process: std::process::id() })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let (wake, thread) = (self.wake.take(), self.thread.take());
        let Some(thread) = thread else { return };
        if self.process != std::process::id() {
            // a handle to a thread that is not there: it can be neither joined nor detached
            return std::mem::forget(thread);
        }
        if let Some(wake) = wake {
            wake.wake();
        }
        // dropped by a callback: it ends by itself
        if thread.thread().id() != std::thread::current().id() {
            // a panic in a callback has been reported
            let _ = thread.join();
        }
    }
}

fn watch(pools: &[Pool], waits: &Watch, mut before: CpuSet) {
    let mut buffer = [0; 8192];
    while !waits.wait(INTERVAL) {
        // CPUs that went, also those that are back by now
        let mut gone = CpuSet::new();
        while let Some(message) = waits.next(&mut buffer) {
            if let Some(cpu) = went_offline(message) {
                gone.insert(cpu);
            }
        }
        // a list that cannot be read says nothing
        let now = Topology::online_by_files().unwrap_or_else(|| before.clone());
        before.iter().filter(|cpu| !now.contains(*cpu)).for_each(|cpu| gone.insert(cpu));
        if now != before {
            pools.iter().for_each(|pool| pool.expect(&now));
        }
        if !gone.is_empty() {
            pools.iter().for_each(|pool| clear(pool, &gone));
        }
        before = now;
    }
}

fn clear(pool: &Pool, gone: &CpuSet) {
    for cpu in gone.iter() {
        // refused: the memory stays, and nothing else happens
        let _ = pool.drain(cpu);
    }
    let _ = pool.trim();
}

/// Returns the CPU that this message says went offline. Its form:
/// `offline@/devices/system/cpu/cpu3`, and variables, each with a zero behind it.
fn went_offline(message: &[u8]) -> Option<CpuId> {
    let head = message.split(|&byte| byte == 0).next()?;
    let digits = std::str::from_utf8(head).ok()?.strip_prefix("offline@/devices/system/cpu/cpu")?;
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
    Some(CpuId::new(number)).filter(|cpu| *cpu <= CpuId::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_other_things_say_nothing() {
        let cpu = |text: &str| went_offline(text.as_bytes()).map(CpuId::get);
        assert_eq!(cpu("offline@/devices/system/cpu/cpu31\0ACTION=offline\0"), Some(31));
        for text in [
            "",
            "online@/devices/system/cpu/cpu1\0",
            "offline@/devices/system/cpu/cpu\0",
            "offline@/devices/system/cpu/cpu+1\0",
            "offline@/devices/system/cpu/cpu99999999999\0",
            "offline@/devices/system/cpu/cpu70000\0",
            "offline@/devices/system/memory/memory1\0",
            "libudev\0",
        ] {
            assert_eq!(cpu(text), None, "{text}");
        }
        assert_eq!(went_offline(&[0xff, 0xfe]), None);
    }

    #[test]
    fn a_watcher_waits_until_it_is_woken() {
        let (waits, wake) = Watch::new().expect("descriptors");
        assert!(!waits.wait(Duration::ZERO), "nothing has woken it");
        wake.wake();
        assert!(waits.wait(INTERVAL), "it does not wait for its next look");
    }

    #[test]
    fn a_watcher_starts_and_ends() {
        // one CPU, as a build for one refuses pools for more
        let one = Topology::synthetic(1).build().expect("topology");
        let pool = Pool::builder().topology(one).build().expect("pool");
        drop(Watcher::start(vec![pool]).expect("watcher"));
    }
}
