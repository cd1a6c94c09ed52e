//! A machine of two CPUs for the models: threads that run on them one at a time, and sections that
//! are aborted where a plan says so.
//!
//! What a section does is modelled as x86 does it: loads acquire, stores release, and neither is
//! one operation with the other. Two sections of one CPU never interleave, as the kernel sees to:
//! a section runs while its thread holds the CPU; where it is aborted it lets go, so that others
//! may run there, and has no further effect.

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, Ordering};

/// Loads from a word that the thread will then store to.
///
/// loom 0.7 compares an access only with the last one to the same word: after a thread's own load
/// it does not see that its store could also have come before another thread's load, and leaves
/// those executions out (the wrong ways of these models passed). Adding nothing is an access that
/// it does compare.
pub(crate) fn load_before_store(word: &AtomicU64) -> u64 {
    word.fetch_add(0, Ordering::Acquire)
}

/// Point at which a section is aborted, if it is: the named points, of which the last comes after
/// everything but the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abort {
    Never,
    /// Before anything was loaded.
    AtOnce,
    /// Between two stores before the commit, where there are any.
    Halfway,
    /// Right before the commit.
    BeforeCommit,
}

/// Events in the tries of one update, in turn; none in those that are not in the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) aborts: &'static [Abort],
    /// `true` if an abort is a migration to the other CPU.
    pub(crate) moves: bool,
}

pub(crate) const CALM: Plan = Plan { aborts: &[], moves: false };

/// The plans that writers of a model go through.
pub(crate) const PLANS: [Plan; 7] = [
    CALM,
    Plan { aborts: &[Abort::BeforeCommit], moves: false },
    Plan { aborts: &[Abort::BeforeCommit], moves: true },
    Plan { aborts: &[Abort::Halfway], moves: false },
    Plan { aborts: &[Abort::Halfway, Abort::AtOnce], moves: true },
    Plan { aborts: &[Abort::BeforeCommit, Abort::BeforeCommit], moves: false },
    Plan { aborts: &[Abort::AtOnce, Abort::Halfway, Abort::BeforeCommit], moves: true },
];

/// The CPUs: who holds one runs there.
pub(crate) struct Machine([Mutex<()>; 2]);

/// A thread that counts: where it runs and what is still to happen to it.
pub(crate) struct Thread {
    cpu: usize,
    plan: Plan,
    tries: usize,
}

/// A section was aborted: nothing more of it may be done.
pub(crate) struct Aborted;

impl Machine {
    pub(crate) fn new() -> Machine {
        Machine([Mutex::new(()), Mutex::new(())])
    }

    /// Ends sections as `membarrier` does: afterwards no section that began before is under way on
    /// that CPU.
    pub(crate) fn end_sections_on(&self, cpu: usize) {
        drop(self.0[cpu].lock().expect("no thread of a model panics"));
    }

    /// Tries a section once: runs `work` with the CPU's number and the points.
    pub(crate) fn section(
        &self,
        thread: &mut Thread,
        work: impl FnOnce(usize, &dyn Fn(Abort) -> Result<(), Aborted>) -> Result<bool, Aborted>,
    ) -> bool {
        let abort = thread.plan.aborts.get(thread.tries).copied().unwrap_or(Abort::Never);
        thread.tries += 1;
        let running = self.0[thread.cpu].lock().expect("no thread of a model panics");
        let point = |here: Abort| if here == abort { Err(Aborted) } else { Ok(()) };
        let result = point(Abort::AtOnce).and_then(|()| work(thread.cpu, &point));
        drop(running);
        if result.is_err() && thread.plan.moves {
            thread.cpu = 1 - thread.cpu;
        }
        result.unwrap_or(false)
    }
}

impl Thread {
    pub(crate) fn on(cpu: usize, plan: Plan) -> Thread {
        Thread { cpu, plan, tries: 0 }
    }

    pub(crate) fn cpu(&self) -> usize {
        self.cpu
    }
}
