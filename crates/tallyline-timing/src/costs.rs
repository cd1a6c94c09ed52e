//! The costs of a trace, instruction by instruction, and the waits for lines of other cores.

use super::calendar::CYCLE;
use super::processor::LEVELS_LIMIT;
use rustc_hash::FxHashMap;

/// The simulated cost of one instruction of a trace, summed over all its executions: time, cache levels that served
/// it, page walks, branch mispredictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionCost {
    /// The number of executions of the instruction.
    pub(crate) executions: u64,
    /// The numbers of the instruction's accesses, by what served them: level by level, then memory.
    pub(crate) sources: [u64; LEVELS_LIMIT + 1],
    /// The number of the instruction's accesses whose page was in no TLB.
    pub(crate) walks: u64,
    /// The number of mispredictions of the instruction, if it is a branch.
    pub(crate) mispredictions: u64,
    /// Parts of a cycle between its predecessor's retirement and its own, see [`TraceCosts::PARTS`].
    pub(crate) time: u64,
    /// The part of the time for which lines came from other cores.
    pub(crate) shared: u64,
    /// The lowest address that the instruction accessed; [`u64::MAX`] if it accessed none.
    pub(crate) lowest: u64,
    /// The highest address at which an access of the instruction begins.
    pub(crate) highest: u64,
}

impl InstructionCost {
    fn divide(&mut self, count: u64) {
        let numbers = [
            &mut self.executions,
            &mut self.walks,
            &mut self.mispredictions,
            &mut self.time,
            &mut self.shared,
        ];
        numbers.into_iter().chain(&mut self.sources).for_each(|number| *number /= count);
    }

    /// Returns a copy of this cost whose time is replaced by `time`, in parts of a cycle ([`TraceCosts::PARTS`]).
    pub fn with_time(self, time: u64) -> Self {
        Self { time, ..self }
    }

    /// Returns the number of times that the instruction was executed in the trace.
    #[inline]
    pub fn executions(&self) -> u64 {
        self.executions
    }

    /// Returns the numbers of the instruction's simulated accesses that each level of the memory hierarchy served:
    /// `[0]` is the first-level cache, then come the further caches, then memory.
    #[inline]
    pub fn sources(&self) -> &[u64; LEVELS_LIMIT + 1] {
        &self.sources
    }

    /// Returns the number of the instruction's simulated accesses that missed all TLBs, so that the page tables
    /// were walked.
    #[inline]
    pub fn walks(&self) -> u64 {
        self.walks
    }

    /// Returns the number of executions in which the simulated branch predictor was wrong about this instruction; 0
    /// for one that is no branch.
    #[inline]
    pub fn mispredictions(&self) -> u64 {
        self.mispredictions
    }

    /// Returns the instruction's simulated time over all executions, in parts of a cycle ([`TraceCosts::PARTS`]).
    /// The time of one execution runs from the retirement of the preceding instruction to its own.
    #[inline]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns the part of [`time`](Self::time) in which the instruction waited for cache lines from other
    /// simulated cores, in parts of a cycle.
    #[inline]
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// Returns the lowest memory address that the instruction accessed in the trace; [`u64::MAX`] if it accessed
    /// none.
    #[inline]
    pub fn lowest(&self) -> u64 {
        self.lowest
    }

    /// Returns the highest address at which an access of the instruction begins; 0 if it accessed none.
    #[inline]
    pub fn highest(&self) -> u64 {
        self.highest
    }
}

impl Default for InstructionCost {
    fn default() -> Self {
        Self {
            executions: 0,
            sources: [0; LEVELS_LIMIT + 1],
            walks: 0,
            mispredictions: 0,
            time: 0,
            shared: 0,
            lowest: u64::MAX,
            highest: 0,
        }
    }
}

impl std::ops::AddAssign for InstructionCost {
    fn add_assign(&mut self, other: Self) {
        self.executions += other.executions;
        self.sources.iter_mut().zip(other.sources).for_each(|(sum, count)| *sum += count);
        self.walks += other.walks;
        self.mispredictions += other.mispredictions;
        self.time += other.time;
        self.shared += other.shared;
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
    }
}

/// The simulated time that one instruction spent waiting for a cache line held by other cores, at one memory
/// address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharingLoss {
    pub(super) address: u64,
    pub(super) instruction: u32,
    pub(super) transfers: u64,
    pub(super) time: u64,
}

impl SharingLoss {
    /// Returns the memory address whose access waited for its cache line to come from another simulated core.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the instruction that waited for a cache line of another simulated core, as its index in the trace's list
    /// of instructions.
    pub fn instruction(&self) -> u32 {
        self.instruction
    }

    /// Returns the number of times that the cache line had to come from another core for this instruction and
    /// address.
    pub fn transfers(&self) -> u64 {
        self.transfers
    }

    /// Returns the instruction's total wait for the cache line, in parts of a cycle ([`TraceCosts::PARTS`]): simulated
    /// time in which its core retired nothing because the line had not arrived from another core.
    pub fn time(&self) -> u64 {
        self.time
    }
}

/// The result of simulating a trace's replay: the cost of each instruction, the waits for other cores' cache lines,
/// and the run's length.
#[derive(Clone, Debug, Default)]
pub struct TraceCosts {
    /// The costs of the instructions, by their indices in the trace.
    pub(crate) instructions: Vec<InstructionCost>,
    /// The number of executed instructions between accesses that were found in the program's code.
    pub(crate) explained: u64,
    /// The number of executed instructions between accesses that were not found in the program's code.
    pub(crate) unexplained: u64,
    /// The time of the instructions that were not found in the program's code.
    pub(crate) unexplained_time: u64,
    /// Waits for lines of other cores, by address and instruction.
    pub(crate) losses: FxHashMap<(u64, u32), SharingLoss>,
    /// The time at which the last thread ended.
    pub(crate) end: u64,
    /// The time at which the second thread began.
    pub(crate) together: u64,
}

impl TraceCosts {
    /// Returns the simulated cost of each instruction, indexed as the trace's list of instructions.
    #[inline]
    pub fn instructions(&self) -> &[InstructionCost] {
        &self.instructions
    }

    /// Returns the number of executed instructions without memory accesses that the simulation found in the program's
    /// code. The trace records only how many of them ran between two accesses.
    #[inline]
    pub fn explained(&self) -> u64 {
        self.explained
    }

    /// Returns the number of executed instructions without memory accesses that the simulation did not find in the
    /// program's code, so that they are charged by their number alone.
    #[inline]
    pub fn unexplained(&self) -> u64 {
        self.unexplained
    }

    /// Returns all simulated waits for cache lines of other cores, sorted by address, then by instruction.
    pub fn losses(&self) -> Vec<SharingLoss> {
        let mut all: Vec<SharingLoss> = self.losses.values().copied().collect();
        all.sort_unstable_by_key(|loss| (loss.address, loss.instruction));
        all
    }

    /// Returns the simulated time at which the last thread ended, in parts of a cycle ([`PARTS`](Self::PARTS)).
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the simulated time from the start of the second thread to the end of the last one, in parts of a
    /// cycle ([`PARTS`](Self::PARTS)); with a single thread, that of the whole run.
    pub fn parallel_time(&self) -> u64 {
        self.end.saturating_sub(self.together)
    }

    /// Returns the average of the simulated costs of a trace over several replays of it.
    pub fn average(runs: &[TraceCosts]) -> TraceCosts {
        let Some((first, others)) = runs.split_first() else { return TraceCosts::default() };
        let mut sum = first.clone();
        for run in others {
            sum.instructions.iter_mut().zip(&run.instructions).for_each(|(sum, cost)| *sum += *cost);
            sum.explained = sum.explained.saturating_add(run.explained);
            sum.unexplained = sum.unexplained.saturating_add(run.unexplained);
            sum.unexplained_time = sum.unexplained_time.saturating_add(run.unexplained_time);
            sum.end = sum.end.saturating_add(run.end);
            sum.together = sum.together.saturating_add(run.together);
            for (key, loss) in &run.losses {
                let of = sum.losses.entry(*key).or_insert(SharingLoss { transfers: 0, time: 0, ..*loss });
                of.transfers = of.transfers.saturating_add(loss.transfers);
                of.time = of.time.saturating_add(loss.time);
            }
        }
        let count = runs.len() as u64;
        sum.instructions.iter_mut().for_each(|cost| cost.divide(count));
        for number in [
            &mut sum.explained,
            &mut sum.unexplained,
            &mut sum.unexplained_time,
            &mut sum.end,
            &mut sum.together,
        ] {
            *number /= count;
        }
        for loss in sum.losses.values_mut() {
            loss.transfers /= count;
            loss.time /= count;
        }
        sum
    }

    /// The number of parts that a cycle of a simulated core is divided into: all simulated times are counted in them.
    pub const PARTS: u64 = CYCLE;

    /// Returns the number and the simulated time of the instructions that were not found in the program's code
    /// ([`unexplained`](Self::unexplained)) as one cost; its other fields are empty.
    pub fn unexplained_cost(&self) -> InstructionCost {
        InstructionCost {
            executions: self.unexplained,
            time: self.unexplained_time,
            ..InstructionCost::default()
        }
    }

    /// Returns the simulated time of all instructions on all cores, summed, in parts of a cycle
    /// ([`PARTS`](Self::PARTS)).
    pub fn time(&self) -> u64 {
        let own = self.instructions.iter().map(|cost| cost.time);
        own.fold(self.unexplained_time, u64::saturating_add)
    }
}
