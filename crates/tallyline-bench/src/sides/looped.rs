//! A loop around one operation, in eight copies that start at eight places of two cache lines.
//!
//! Where a loop of a few instructions happens to lie moves its time by tens of percent, more than
//! the differences measured here, and each change of a program moves its loops. So each loop exists
//! eight times, and the runner takes the best copy of each side. Compilers start loops at multiples
//! of 16 bytes, so the copies are 16 bytes apart: these are all the places there are.
//!
//! An empty piece of assembly at the end of each turn keeps the compiler from unrolling the loop of
//! one side and not of another. Beyond that the loops are compiled as hot code of any program is:
//! what is meant to be inlined is inlined, what does not change is taken out of the loop.

use super::{Padded, Side};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;

/// The number of copies of each benchmark loop, at different code addresses: the runner takes the fastest, so that
/// alignment does not decide a comparison.
pub(crate) const PLACEMENTS: usize = 8;

/// The operation that a benchmark loop repeats, such as one increment, and the state that it works on.
pub(crate) trait Step: 'static {
    /// The state that the operation works on.
    type State: Sync + 'static;

    /// Does it once. `turn` counts the turns of the loop.
    fn step(state: &Self::State, turn: u64);
}

/// Runs `n` operations, in a loop that starts `SKIP` bytes further than the first copy's.
#[inline(never)]
fn looped<const SKIP: usize, const THINK: bool, T: Step>(state: &T::State, n: u64) {
    place::<SKIP>();
    let mut turn = 0;
    while turn < n {
        T::step(state, turn);
        if THINK {
            think();
        }
        turn = opaque(turn) + 1;
    }
}

/// Moves the code that follows to `SKIP` bytes past the start of a pair of cache lines.
#[inline(always)]
fn place<const SKIP: usize>() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: instructions that do nothing, as many as fill the bytes.
    unsafe {
        asm!(
            ".p2align 7",
            ".rept {turns}",
            "nop",
            ".endr",
            turns = const if cfg!(target_arch = "x86_64") { SKIP } else { SKIP / 4 },
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// Returns its argument while hiding the value's origin from the compiler's optimiser, which may take it out of loops;
/// takes no instruction. What follows an [`opaque`] in a loop's turn is not taken out, as far as LLVM knows the block may
/// never end.
#[inline(always)]
pub(crate) fn opaque_constant(mut value: u64) -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: an empty piece of assembly, which leaves the register as it is.
    unsafe {
        asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        value = std::hint::black_box(value);
    }
    value
}

/// Returns its argument while hiding the value's origin from the compiler's optimiser; takes no instruction.
#[inline(always)]
pub(crate) fn opaque(mut value: u64) -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: an empty piece of assembly, which leaves the register as it is.
    unsafe {
        asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        value = std::hint::black_box(value);
    }
    value
}

/// The number of dependent multiplications that a benchmark loop with `think` computes between two operations.
pub(crate) const THINK_MULTIPLICATIONS: usize = 16;

/// Computes for about 50 cycles without touching memory, as programs do between two updates, so that other
/// CPUs' requests for the line get through.
#[inline(always)]
fn think() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: works on one register only.
    unsafe {
        asm!(
            ".rept {turns}",
            "imul {0}, {0}",
            ".endr",
            inout(reg) 3u64 => _,
            turns = const THINK_MULTIPLICATIONS,
            options(nomem, nostack)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let mut value = 3u64;
        for _ in 0..THINK_MULTIPLICATIONS {
            value = opaque(value.wrapping_mul(value));
        }
    }
}

type Loop<S> = fn(&S, u64);

fn loops<const THINK: bool, T: Step>() -> [Loop<T::State>; PLACEMENTS] {
    [
        looped::<0, THINK, T>,
        looped::<16, THINK, T>,
        looped::<32, THINK, T>,
        looped::<48, THINK, T>,
        looped::<64, THINK, T>,
        looped::<80, THINK, T>,
        looped::<96, THINK, T>,
        looped::<112, THINK, T>,
    ]
}

/// A benchmark side (one of the implementations compared) that repeats a [`Step`], such as one increment, in a loop.
pub(crate) struct Looped<T: Step> {
    // one state for all threads, or one for each
    states: Vec<Padded<T::State>>,
    loops: [Loop<T::State>; PLACEMENTS],
    total: fn(&T::State) -> u64,
    per_operation: u64,
}

impl<T: Step> Looped<T> {
    /// Creates a benchmark loop whose threads all work on one state, such as one counter; `total` reads what was
    /// counted, for the check of exactness.
    pub(crate) fn with_shared_state(state: T::State, total: fn(&T::State) -> u64) -> Self {
        Self::with_state_per_thread(vec![state], total)
    }

    /// Creates a benchmark loop whose threads each work on their own state; `total` reads what a state has counted,
    /// for the check of exactness.
    pub(crate) fn with_state_per_thread(states: Vec<T::State>, total: fn(&T::State) -> u64) -> Self {
        let states = states.into_iter().map(Padded).collect();
        Looped { states, loops: loops::<false, T>(), total, per_operation: 1 }
    }

    /// Sets the amount by which each operation of the benchmark loop must raise the total of its counters (1 by
    /// default), for the check that no count is lost or doubled.
    pub(crate) fn counting(mut self, counts: u64) -> Self {
        self.per_operation = counts;
        self
    }

    /// Makes each thread of the benchmark loop compute between operations if `think`, as real programs do between
    /// updates.
    pub(crate) fn thinking(mut self, think: bool) -> Self {
        self.loops = if think { loops::<true, T>() } else { loops::<false, T>() };
        self
    }

    /// Boxes the loop as a `dyn` [`Side`], one of the implementations that a benchmark compares.
    pub(crate) fn boxed(self) -> Box<dyn Side> {
        Box::new(self)
    }
}

impl<T: Step> Side for Looped<T> {
    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn run(&self, thread: usize, placement: usize, n: u64) {
        let state = &self.states[thread % self.states.len()].0;
        self.loops[placement % PLACEMENTS](state, n);
    }

    fn total(&self) -> Option<u64> {
        Some(self.states.iter().fold(0u64, |sum, state| sum.wrapping_add((self.total)(&state.0))))
    }

    fn per_operation(&self) -> u64 {
        self.per_operation
    }
}
