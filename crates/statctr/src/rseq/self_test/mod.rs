//! A test of the kernel: does it abort a section whose thread is preempted and continued on the same
//! CPU?
//!
//! All that sections are rests on it, and kernels for arm64 were reported not to do so (Linux 6.19,
//! linux-kernel list, April 2026): two threads of one CPU then lose counts without a word. So where
//! this may be, the first pool that is built tests the kernel, once for the process, and counters are
//! atomic unless it passes.
//! ```text
//! watcher, pinned to CPU c:  section { v := word; until word ≠ v or long enough: look again; commit }
//! meddler, pinned to CPU c:  again and again: word := word + 1; sleep
//! ```
//! The word changes only while the meddler runs, which on this CPU is while the watcher does not: a
//! section that sees it change was continued after a preemption. One such section fails the test;
//! [`WANTED`] aborted ones pass it. Where there is no second thread, no way to pin both, or no such
//! preemption within [`LIMIT`], nothing is proven, and that is not passing.

#[cfg(all(
    target_arch = "aarch64",
    target_endian = "little",
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
mod aarch64;
#[cfg(all(
    target_arch = "aarch64",
    target_endian = "little",
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
use aarch64::watch;

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable"))))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable"))))]
use x86_64::watch;

#[cfg(not(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
)))]
mod portable;
#[cfg(not(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
)))]
use portable::watch;

use crate::cpu::CpuId;
use crate::sys::{detach_helper_thread, pin_to, share_cpu};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The longest that the test takes. Some milliseconds as a rule; on an emulated machine whose host
/// was busy with other things 0.6 s were not enough.
const LIMIT: Duration = Duration::from_secs(2);
/// Changes of the word without a verdict after which none is to be expected.
const CHANGES: u64 = 1000;
/// Sections that have to be aborted by a preemption.
const WANTED: u32 = 3;
/// Number of looks at the word in a section: a fraction of a millisecond.
const LOOKS: u64 = 200_000;
/// Between two changes of the word.
const PAUSE: Duration = Duration::from_micros(50);

/// Result of the test of whether the kernel aborts rseq critical sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)] // machines without sections see one of these
enum WatchOutcome {
    /// The critical section was aborted.
    Aborted,
    /// The critical section committed, and the watched word did not change meanwhile.
    Quiet,
    /// The critical section committed although the watched word had changed.
    Continued,
}

/// The result of testing whether the kernel aborts rseq critical sections as documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Verdict {
    /// The kernel aborts preempted sections.
    Aborts = 1,
    /// The kernel continued a preempted section.
    Continues = 2,
    /// The test gave no result: no second thread, no way to keep both on one CPU, or too few preemptions.
    Unproven = 3,
}

/// 0, or the verdict on this kernel.
static VERDICT: AtomicU8 = AtomicU8::new(0);

/// 0, or how a test wants the kernel tested where that is not done by itself.
static REQUESTED: AtomicU8 = AtomicU8::new(0);
const ARMED: u8 = 1;
const UNARMED: u8 = 2;

/// Returns the result of testing whether the kernel aborts rseq critical sections; `None` if that was not tested.
pub(crate) fn verdict() -> Option<Verdict> {
    match VERDICT.load(Ordering::Acquire) {
        1 => Some(Verdict::Aborts),
        2 => Some(Verdict::Continues),
        3 => Some(Verdict::Unproven),
        _ => None,
    }
}

/// Returns `true` if rseq critical sections may be used: this kernel passed the test of whether it aborts them as
/// documented, or was not tested ([`is_due`] tells if it has to be).
pub(crate) fn is_trusted() -> bool {
    verdict().is_none_or(|verdict| verdict == Verdict::Aborts)
}

/// Returns `true` if a test of whether this kernel aborts rseq critical sections is necessary before any is used, and
/// was not made yet.
pub(crate) fn is_due() -> bool {
    verdict().is_none() && (cfg!(target_arch = "aarch64") || REQUESTED.load(Ordering::Relaxed) != 0)
}

/// Tests whether the kernel aborts rseq critical sections, if that is necessary and was not done. Concurrent callers
/// each run the test; the first result holds.
pub(crate) fn test_once(offset: isize) {
    let requested = REQUESTED.load(Ordering::Relaxed);
    if is_due() {
        let verdict = run(offset, requested != UNARMED);
        let _ = VERDICT.compare_exchange(0, verdict as u8, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// Makes the building of the next pool of counter memory test whether the kernel aborts rseq critical sections, if that
/// was not tested yet; for tests. Without `armed`, the kernel is not told of the tested section, so that it fails the
/// test.
pub(crate) fn request(armed: bool) {
    REQUESTED.store(if armed { ARMED } else { UNARMED }, Ordering::Relaxed);
}

/// State that the two threads share.
struct SharedState {
    word: AtomicU64,
    is_over: AtomicBool,
    end: Instant,
}

impl SharedState {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || Instant::now() >= self.end
    }
}

/// Tests the kernel. Returns within a moment after [`LIMIT`], also where its threads do not get to run.
fn run(offset: isize, armed: bool) -> Verdict {
    let end = Instant::now() + LIMIT;
    let shared = Arc::new(SharedState { word: AtomicU64::new(0), is_over: AtomicBool::new(false), end });
    let (sender, receiver) = mpsc::channel();
    let watcher = Arc::clone(&shared);
    let started = detach_helper_thread(move || {
        let verdict = judge(&watcher, offset, armed);
        watcher.is_over.store(true, Ordering::Relaxed);
        let _ = sender.send(verdict);
    });
    if !started {
        return Verdict::Unproven;
    }
    receiver.recv_timeout(LIMIT + LIMIT / 10).unwrap_or(Verdict::Unproven)
}

/// Watches the word in sections, and judges.
fn judge(shared: &Arc<SharedState>, offset: isize, armed: bool) -> Verdict {
    let Some(cpu) = super::registered_cpu(offset) else { return Verdict::Unproven };
    let cpu = CpuId::new(cpu);
    let theirs = Arc::clone(shared);
    // threads of real-time policies do not preempt each other
    let ready = move || share_cpu() && pin_to(cpu);
    if !ready() || !detach_helper_thread(move || disturb(&theirs, ready)) {
        return Verdict::Unproven;
    }
    let mut aborted = 0;
    while !shared.is_over() {
        let before = shared.word.load(Ordering::Relaxed);
        if before > CHANGES {
            break;
        }
        match watch(offset, armed, &shared.word, LOOKS) {
            WatchOutcome::Continued => return Verdict::Continues,
            // not by a signal: the other thread ran
            WatchOutcome::Aborted if shared.word.load(Ordering::Relaxed) != before => aborted += 1,
            WatchOutcome::Aborted | WatchOutcome::Quiet => {}
        }
        if aborted >= WANTED {
            return Verdict::Aborts;
        }
    }
    Verdict::Unproven
}

/// Changes the word. Anywhere else than on the watcher's CPU it must not touch the word.
fn disturb(shared: &SharedState, ready: impl Fn() -> bool) {
    while ready() && !shared.is_over() {
        shared.word.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the verdict on this kernel, of several tests: other programs may keep the CPU from one.
    fn tested(armed: bool) -> Option<Verdict> {
        crate::rseq::settle();
        let offset = crate::rseq::offset()?;
        let verdicts = std::iter::repeat_with(|| run(offset, armed)).take(10);
        Some(verdicts.into_iter().find(|verdict| *verdict != Verdict::Unproven).unwrap_or(Verdict::Unproven))
    }

    #[test]
    fn this_kernel_aborts_preempted_sections() {
        match tested(true) {
            Some(verdict) => assert_eq!(verdict, Verdict::Aborts),
            None => println!("skipped: no rseq here"),
        }
    }

    #[test]
    fn a_section_that_is_continued_is_found() {
        match tested(false) {
            Some(verdict) => assert_eq!(verdict, Verdict::Continues),
            None => println!("skipped: no rseq here"),
        }
    }

    #[test]
    fn a_section_that_nobody_disturbs_commits() {
        crate::rseq::settle();
        let Some(offset) = crate::rseq::offset() else { return println!("skipped: no rseq here") };
        let word = AtomicU64::new(7);
        let quiet = (0..1000).filter(|_| watch(offset, true, &word, 10) == WatchOutcome::Quiet).count();
        assert!(quiet > 0);
    }
}
