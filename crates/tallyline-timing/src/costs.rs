//! The costs of a trace, instruction by instruction, and the waits for lines of other cores.

use super::calendar::CYCLE;
use super::processor::LEVELS_LIMIT;
use rustc_hash::FxHashMap;

/// The modelled cost of one instruction of a trace, over all its executions: cycles, cache levels,
/// mispredictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionCost {
    /// The number of its executions.
    pub(crate) executions: u64,
    /// Its accesses, by what answered them: level by level, then memory.
    pub(crate) sources: [u64; LEVELS_LIMIT + 1],
    /// Accesses whose page was in no TLB.
    pub(crate) walks: u64,
    /// Branches that were predicted wrong.
    pub(crate) mispredictions: u64,
    /// Parts of a cycle between its predecessor's retirement and its own, see [`TraceCosts::PARTS`].
    pub(crate) time: u64,
    /// The part of the time for which lines came from other cores.
    pub(crate) shared: u64,
    /// The lowest address that it accessed; [`u64::MAX`] if it accessed none.
    pub(crate) lowest: u64,
    /// The highest first byte of its accesses.
    pub(crate) highest: u64,
}

impl InstructionCost {
    /// Replaces the instruction's modelled time.
    pub fn with_time(self, time: u64) -> Self {
        Self { time, ..self }
    }

    /// Returns how many times the instruction was executed in the trace.
    #[inline]
    pub fn executions(&self) -> u64 {
        self.executions
    }

    /// Returns the number of the instruction's accesses by what served them in the model: cache level by
    /// level, then memory.
    #[inline]
    pub fn sources(&self) -> &[u64; LEVELS_LIMIT + 1] {
        &self.sources
    }

    /// Returns the number of the instruction's accesses whose page was in no TLB of the model.
    #[inline]
    pub fn walks(&self) -> u64 {
        self.walks
    }

    /// Returns the number of times that the model's predictor was wrong about the branch.
    #[inline]
    pub fn mispredictions(&self) -> u64 {
        self.mispredictions
    }

    /// Returns the modelled time between the retirement of the instruction before and its own, in parts of a
    /// cycle ([`TraceCosts::PARTS`]).
    #[inline]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns the part of the instruction's modelled time in which it waited for lines of other cores.
    #[inline]
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// Returns the lowest address that the instruction accessed; [`u64::MAX`] if it accessed none.
    #[inline]
    pub fn lowest(&self) -> u64 {
        self.lowest
    }

    /// Returns the highest first byte of the instruction's accesses.
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

/// The modelled waits of one instruction for cache lines of other cores, at one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharingLoss {
    pub(super) address: u64,
    pub(super) instruction: u32,
    pub(super) transfers: u64,
    pub(super) time: u64,
}

impl SharingLoss {
    /// Returns the address of the first byte whose line the instruction waited for.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the instruction that waited, by the trace's index.
    pub fn instruction(&self) -> u32 {
        self.instruction
    }

    /// Returns the number of times that the line came from another core.
    pub fn transfers(&self) -> u64 {
        self.transfers
    }

    /// Returns the modelled time, in parts of a cycle, in which the core waited for the line and retired
    /// nothing else.
    pub fn time(&self) -> u64 {
        self.time
    }
}

/// The modelled cost of a whole trace: instruction by instruction, with waits for lines of other cores.
#[derive(Clone, Debug, Default)]
pub struct TraceCosts {
    /// By the trace's index of the instruction.
    pub(crate) instructions: Vec<InstructionCost>,
    /// Instructions between accesses that the code explains, and those that it does not.
    pub(crate) explained: u64,
    /// As `explained`.
    pub(crate) unexplained: u64,
    /// Time of unexplained instructions.
    pub(crate) unexplained_time: u64,
    /// Waits for lines of other cores, by address and instruction.
    pub(crate) losses: FxHashMap<(u64, u32), SharingLoss>,
    /// The time at which the last thread ended.
    pub(crate) end: u64,
    /// The time at which the second thread began.
    pub(crate) together: u64,
}

impl TraceCosts {
    /// Returns the modelled cost of each instruction, by the trace's index.
    #[inline]
    pub fn instructions(&self) -> &[InstructionCost] {
        &self.instructions
    }

    /// Returns the number of executed instructions between traced accesses that the program's code accounts
    /// for.
    #[inline]
    pub fn explained(&self) -> u64 {
        self.explained
    }

    /// Returns the number of executed instructions between traced accesses that the program's code does not
    /// account for.
    #[inline]
    pub fn unexplained(&self) -> u64 {
        self.unexplained
    }

    /// Returns the modelled waits for cache lines of other cores, in the order of addresses and instructions.
    pub fn losses(&self) -> Vec<SharingLoss> {
        let mut all: Vec<SharingLoss> = self.losses.values().copied().collect();
        all.sort_unstable_by_key(|loss| (loss.address, loss.instruction));
        all
    }

    /// Returns the modelled time at which the last thread ended, in [`PARTS`](Self::PARTS) of a cycle.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the modelled time from the start of the second thread to the end of the last, in parts of a cycle; the
    /// whole run's of a single thread.
    pub fn parallel_time(&self) -> u64 {
        self.end.saturating_sub(self.together)
    }

    /// The number of parts that a cycle has in modelled times.
    pub const PARTS: u64 = CYCLE;

    /// Returns the modelled cost of the executed instructions that the program's code does not account for.
    pub fn unexplained_cost(&self) -> InstructionCost {
        InstructionCost {
            executions: self.unexplained,
            time: self.unexplained_time,
            ..InstructionCost::default()
        }
    }

    /// Returns the modelled time of all cores together, in parts of a cycle.
    pub fn time(&self) -> u64 {
        let own = self.instructions.iter().map(|cost| cost.time);
        own.fold(self.unexplained_time, u64::saturating_add)
    }
}
