//! Out-of-order cores that run the instructions of a trace.

use super::caches::Caches;
use super::calendar::{CYCLE, Time};
use super::costs::{InstructionCost, SharingLoss, TraceCosts};
use super::forwarding::{BufferedStores, LoadSource};
use super::ownership::{Ownership, SharingCosts};
use super::path::{Code, DecodedInstruction, PathFinder, PathStart};
use super::predictor::Predictor;
use super::processor::{LEVELS_LIMIT, Processor};
use super::store_buffer::{LeftStore, PendingStore, StoreBuffer};
use rustc_hash::FxHashMap;
use tallyline_inference::code::Flow;
use tallyline_trace::Error;
use tallyline_trace::Instructions;
use tallyline_trace::coherence::{CoreModel, TimedModel};
use tallyline_trace::format::Access;

/// Registers of an operation.
const REGISTERS: usize = 64;

/// The integer registers among them, as a set.
const INTEGER_REGISTERS: u64 = 0xffff;

/// Cycles from a store's data to a load that takes it over.
const FORWARD: Time = 5 * CYCLE;

/// Cycles from a store's way to the cache to a load that waited for it, as it reads more than that wrote. On Zen 4 a
/// load of eight bytes of which a store wrote two has its data 19 cycles behind the store's, one of the two bytes 6.
const FAILED_FORWARD: Time = 17 * CYCLE;

/// The most accesses of one instruction that are run as one.
const ACCESSES_LIMIT: usize = 64;

/// Stores whose data loads take over where lines pass between cores, by address.
const FORWARDED: usize = 1 << 12;

/// Cycles for which the data of a store is expected by the loads of its word after it was known.
const RENAMED: Time = 64 * CYCLE;

/// The latencies, in cycles, by which instructions without memory accesses are taken for multiplications.
const MULTIPLICATION: std::ops::RangeInclusive<u8> = 3..=4;

/// Bytes that are forwarded as one.
const WORD: u64 = 8;

/// The most different accesses whose waits for other cores are told apart.
const LOSSES_LIMIT: usize = 1 << 20;

/// The latest time: what a damaged file adds up to stays below.
const END: Time = 1 << 56;

/// Returns that are remembered.
const CALLS_LIMIT: usize = 1 << 16;

/// Simulated out-of-order cores that count cycles while a memory trace is replayed on them; implements
/// [`CoreModel`] and [`TimedModel`], so the replay can order accesses by each core's time.
pub struct TimedCores {
    processor: Processor,
    caches: Caches,
    paths: PathFinder,
    threads: Vec<Thread>,
    // by core: the thread that ran last, and the time that it is
    cores: Vec<(usize, Time)>,
    costs: TraceCosts,
    path: Vec<u32>,
    // none where lines pass between cores for nothing
    ownership: Option<Ownership>,
}

impl TimedCores {
    /// Creates `cores` simulated cores of one processor, with empty caches. `instructions` are those of the trace to
    /// replay, and `code` decodes them.
    ///
    /// # Errors
    /// A sentence that names the parameter of `processor` that cannot be simulated.
    pub fn new(
        processor: &Processor,
        cores: u16,
        instructions: &Instructions,
        code: &dyn Code,
    ) -> Result<Self, String> {
        Ok(Self {
            caches: Caches::new(processor, cores)?,
            processor: processor.clone(),
            paths: PathFinder::new(instructions, code),
            threads: Vec::new(),
            cores: vec![(usize::MAX, 0); usize::from(cores)],
            costs: TraceCosts {
                instructions: vec![InstructionCost::default(); instructions.len()],
                ..TraceCosts::default()
            },
            path: Vec::new(),
            ownership: None,
        })
    }

    /// Makes moving a cache line from one simulated core to another take the given cycles. Without this call such
    /// transfers are not charged.
    pub fn with_sharing(mut self, costs: SharingCosts) -> Self {
        self.caches.leave_to_owners();
        self.ownership = Some(Ownership::new(costs));
        self
    }

    /// Simulates an atomic instruction, named by its index in the trace, as an ordinary non-atomic one from here
    /// on: it predicts a program from which the lock prefix or exclusive pair was removed.
    pub fn make_plain(&mut self, instruction: u32) {
        self.paths.make_plain(instruction);
    }

    /// Ends the simulation of a trace: executes the instructions still pending on the simulated cores, and returns the
    /// cost of every instruction of the trace.
    pub fn finish(mut self) -> TraceCosts {
        for place in 0..self.threads.len() {
            if let Some(last) = self.threads[place].pending.take() {
                self.run(place, &last, None);
            }
        }
        let mut starts: Vec<Time> = self.threads.iter().filter_map(|thread| thread.started).collect();
        starts.sort_unstable();
        self.costs.together = starts.get(1).copied().unwrap_or(0);
        self.costs.end = self.threads.iter().map(|thread| thread.retired).max().unwrap_or(0);
        self.costs
    }

    /// Runs an instruction; `next` is the address of the one behind it in time.
    fn run(&mut self, place: usize, pending: &PendingInstruction, next: Option<u64>) {
        let thread = &mut self.threads[place];
        let cost = &mut self.costs.instructions[pending.index as usize];
        cost.executions += 1;
        let memory = &mut MemorySide {
            caches: &mut self.caches,
            ownership: self.ownership.as_mut(),
            losses: &mut self.costs.losses,
            core: pending.core,
            line_size: u64::from(self.processor.line_size),
            cost,
        };
        let known = self.paths.known(pending.index);
        let charged = thread.execute(&self.processor, known, &pending.accesses, next, memory);
        cost.time += charged.own;
        cost.shared += charged.shared;
        if let Some((instruction, time)) = charged.of_store {
            self.costs.instructions[instruction as usize].shared += time;
        }
        if let Some((branch, time)) = charged.branch {
            self.costs.instructions[branch as usize].time += time;
        }
        if charged.mispredicted {
            self.costs.instructions[pending.index as usize].mispredictions += 1;
            self.threads[place].mispredicted = Some(pending.index);
        }
    }

    /// Runs what lies between the last access and one that comes next.
    fn between(&mut self, place: usize, core: usize, last: &PendingInstruction, access: &Access) {
        let count = access.now().saturating_sub(last.now).saturating_sub(1);
        let start = self.threads[place].start_behind(last.index, self.paths.known(last.index));
        let mut path = std::mem::take(&mut self.path);
        let found = if access.instruction() == last.index && count == 0 {
            // a string instruction, once more
            path.clear();
            true
        } else {
            self.paths.between(start, access.instruction(), count, &mut path)
        };
        let target = self.paths.known(access.instruction()).map(|known| known.address);
        let address = |index: &u32| self.paths.known(*index).map(|known| known.address);
        let first = path.first().map_or(target.filter(|_| found), address);
        self.run(place, last, first);
        if found {
            self.costs.explained += count;
            for at in 0..path.len() {
                let next = match path.get(at + 1) {
                    Some(next) => self.paths.known(*next).map(|known| known.address),
                    None => target,
                };
                let step = PendingInstruction { index: path[at], core, now: 0, accesses: Vec::new() };
                self.run(place, &step, next);
            }
        } else {
            self.costs.unexplained = self.costs.unexplained.saturating_add(count);
            let time = self.threads[place].skip(&self.processor, count);
            self.costs.unexplained_time = self.costs.unexplained_time.saturating_add(time);
        }
        self.path = path;
    }
}

impl CoreModel for TimedCores {
    fn cores(&self) -> u16 {
        self.cores.len() as u16
    }

    fn access(&mut self, core: u16, place: usize, access: &Access) -> Result<(), Error> {
        while self.threads.len() <= place {
            self.threads.push(Thread::new(&self.processor));
        }
        let core = usize::from(core) % self.cores.len();
        let (before, time) = self.cores[core];
        if before != place {
            self.threads[place].wait(time);
        }
        let retired = self.threads[place].retired;
        self.threads[place].started.get_or_insert(retired);
        match self.threads[place].pending.take() {
            Some(mut pending)
                if pending.index == access.instruction()
                    && pending.now == access.now()
                    && pending.accesses.len() < ACCESSES_LIMIT =>
            {
                pending.accesses.push(*access);
                self.threads[place].pending = Some(pending);
            }
            last => {
                let mut accesses = Vec::new();
                if let Some(mut last) = last {
                    self.between(place, core, &last, access);
                    accesses = std::mem::take(&mut last.accesses);
                    accesses.clear();
                }
                accesses.push(*access);
                let pending =
                    PendingInstruction { index: access.instruction(), core, now: access.now(), accesses };
                self.threads[place].pending = Some(pending);
            }
        }
        self.cores[core] = (place, self.threads[place].retired);
        Ok(())
    }
}

impl TimedModel for TimedCores {
    fn time(&self, place: usize) -> u64 {
        self.threads.get(place).map_or(0, |thread| thread.retired)
    }

    fn wait_until(&mut self, place: usize, time: u64) {
        while self.threads.len() <= place {
            self.threads.push(Thread::new(&self.processor));
        }
        self.threads[place].wait(time.min(END));
    }

    fn leave_out(&mut self, place: usize) {
        let Some(thread) = self.threads.get_mut(place) else { return };
        // whose returns follow is not known
        thread.calls.clear();
        if let Some(last) = thread.pending.take() {
            self.run(place, &last, None);
        }
    }
}

/// The memory as an instruction sees it.
struct MemorySide<'a> {
    caches: &'a mut Caches,
    ownership: Option<&'a mut Ownership>,
    losses: &'a mut FxHashMap<(u64, u32), SharingLoss>,
    core: usize,
    line_size: u64,
    cost: &'a mut InstructionCost,
}

impl MemorySide<'_> {
    /// Returns when the core's own caches have an access's line.
    fn fill(&mut self, access: &Access, now: Time) -> Time {
        let answer =
            self.caches.access(self.core, access.instruction(), access.address(), access.store(), now);
        let cost = &mut *self.cost;
        cost.sources[usize::from(answer.source).min(LEVELS_LIMIT)] += 1;
        cost.walks += u64::from(answer.walked);
        cost.lowest = cost.lowest.min(access.address());
        cost.highest = cost.highest.max(access.address());
        answer.at
    }

    /// Returns when other cores have given up the lines of an access, and whether they had to.
    fn request(&mut self, access: &Access, store: bool, now: Time) -> (Time, bool) {
        let Some(ownership) = self.ownership.as_deref_mut() else { return (now, false) };
        let last = access.address().saturating_add(u64::from(access.size().max(1)) - 1);
        let (mut at, mut transferred) = (now, false);
        for line in access.address() / self.line_size..=last / self.line_size {
            let grant = ownership.request(self.core as u16, line, store, now);
            at = at.max(grant.at);
            transferred |= grant.transferred;
        }
        (at, transferred)
    }

    /// Returns the cycles of a restart.
    fn restart(&self) -> u32 {
        self.ownership.as_deref().map_or(0, |ownership| ownership.costs().restart())
    }

    /// Returns when another core's store took a load's line last.
    fn lost(&self, access: &Access) -> Time {
        let line = access.address() / self.line_size;
        self.ownership.as_deref().map_or(0, |ownership| ownership.lost(self.core as u16, line))
    }

    /// Notes a line that came from another core, and the time that this took.
    fn note(&mut self, address: u64, instruction: u32, transferred: bool, time: Time) {
        if !transferred && time == 0 {
            return;
        }
        let key = (address, instruction);
        if self.losses.len() >= LOSSES_LIMIT && !self.losses.contains_key(&key) {
            return;
        }
        let new = SharingLoss { address, instruction, transfers: 0, time: 0 };
        let loss = self.losses.entry(key).or_insert(new);
        loss.transfers += u64::from(transferred);
        loss.time = loss.time.saturating_add(time);
    }

    /// Lets stores leave that can until a time.
    fn drain(&mut self, stores: &mut StoreBuffer, until: Time) {
        while let Some(left) = self.pop(stores, until) {
            self.note(left.store.address, left.store.instruction, left.transferred, 0);
        }
    }

    fn pop(&mut self, stores: &mut StoreBuffer, until: Time) -> Option<LeftStore> {
        stores.pop(until, self.core as u16, self.ownership.as_deref_mut())
    }
}

/// An instruction whose accesses are being collected.
#[derive(Clone, Debug)]
struct PendingInstruction {
    index: u32,
    core: usize,
    now: u64,
    accesses: Vec<Access>,
}

/// The time that an instruction took to retire, by the instructions that it is charged to.
#[derive(Clone, Copy, Debug, Default)]
struct TimeCharge {
    own: Time,
    // a mispredicted branch in front of it
    branch: Option<(u32, Time)>,
    mispredicted: bool,
    // of its own time: for lines of other cores
    shared: Time,
    // the same, of a store in front of it
    of_store: Option<(u32, Time)>,
}

/// The times of the last events of a kind: as many as may be under way at once.
struct LastTimes {
    times: Vec<Time>,
    next: usize,
}

impl LastTimes {
    /// Creates the list for at most `limit` events under way; 0 for any number.
    fn new(limit: u32) -> Self {
        Self { times: vec![0; limit as usize], next: 0 }
    }

    /// Returns the time of the oldest event; 0 where any number may be under way.
    fn oldest(&self) -> Time {
        self.times.get(self.next).copied().unwrap_or(0)
    }

    /// Replaces the oldest event by one at a time.
    fn push(&mut self, time: Time) {
        if let Some(first) = self.times.get_mut(self.next) {
            *first = time;
            self.next = (self.next + 1) % self.times.len();
        }
    }

    fn len(&self) -> usize {
        self.times.len()
    }
}

/// The last store to a word, whose data loads of the word take over.
#[derive(Clone, Copy, Debug)]
struct ForwardedStore {
    // the word's address in words
    word: u64,
    // when its data was there, and how long after that of the store before
    data: Time,
    interval: Time,
    number: u64,
    // the last loss of the line that a load saw
    lost: Time,
}

impl ForwardedStore {
    /// An entry without a store.
    const NONE: ForwardedStore =
        ForwardedStore { word: u64::MAX, data: 0, interval: Time::MAX, number: 0, lost: 0 };

    /// Notes the next store that falls into this place.
    fn replace(&mut self, word: u64, data: Time, number: u64) {
        let before = if self.word == word { *self } else { ForwardedStore::NONE };
        let interval = if self.word == word { data.saturating_sub(before.data) } else { Time::MAX };
        *self = ForwardedStore { word, data, interval, number, lost: before.lost };
    }

    /// Notes when another core took the line last; returns `true` if no load has seen that loss yet.
    fn note_loss(&mut self, lost: Time) -> bool {
        let is_new = lost > self.lost;
        self.lost = self.lost.max(lost);
        is_new
    }
}

/// A thread on its core.
struct Thread {
    pending: Option<PendingInstruction>,
    // when its first access came
    started: Option<Time>,
    registers: [Time; REGISTERS],
    // when the last instruction entered the window and when it retired
    entered: Time,
    retired: Time,
    // no instruction enters earlier
    redirected: Time,
    mispredicted: Option<u32>,
    // when the last instructions retired, as many as the window has
    window: LastTimes,
    // the same of those with a result in an integer register, as many as there are registers
    renamed: LastTimes,
    stores: StoreBuffer,
    // when the last store leaves if no other core has its line
    stored: Time,
    buffered: BufferedStores,
    // where lines pass between cores, by word
    forwarded: Vec<ForwardedStore>,
    // when the last multiplications began, as many as wait for their operands at most
    multiplied: LastTimes,
    predictor: Predictor,
    calls: Vec<u64>,
}

impl Thread {
    fn new(processor: &Processor) -> Self {
        Self {
            pending: None,
            started: None,
            registers: [0; REGISTERS],
            entered: 0,
            retired: 0,
            redirected: 0,
            mispredicted: None,
            window: LastTimes::new(processor.reorder_buffer),
            renamed: LastTimes::new(processor.integer_registers),
            stores: StoreBuffer::new(processor.store_buffer),
            stored: 0,
            buffered: BufferedStores::new(processor.store_buffer),
            forwarded: vec![ForwardedStore::NONE; FORWARDED],
            multiplied: LastTimes::new(processor.multiplier_queue()),
            predictor: Predictor::new(processor.indirect_by_history),
            calls: Vec::new(),
        }
    }

    /// Waits until another thread has left the core.
    fn wait(&mut self, time: Time) {
        self.redirected = self.redirected.max(time);
        self.retired = self.retired.max(time);
    }

    /// Returns where to look for what follows an instruction with an access; keeps the calls.
    fn start_behind(&mut self, index: u32, known: Option<&DecodedInstruction>) -> PathStart {
        match known.map(|known| (known.operation.flow, known.operation.end)) {
            Some((Flow::Call(_), end)) => {
                if self.calls.len() >= CALLS_LIMIT {
                    self.calls.clear();
                }
                self.calls.push(end);
                PathStart::Behind(index)
            }
            Some((Flow::Return, _)) => self.calls.pop().map_or(PathStart::Behind(index), PathStart::At),
            _ => PathStart::Behind(index),
        }
    }

    /// Runs instructions of which only the number is known; the time that they took.
    fn skip(&mut self, processor: &Processor, count: u64) -> Time {
        let step = CYCLE / Time::from(processor.width).min(CYCLE);
        let time = count.saturating_mul(step);
        let before = self.retired;
        self.entered = self.entered.saturating_add(time).min(END).max(self.redirected);
        self.retired = before.saturating_add(time).min(END).max(before);
        for _ in 0..count.min(self.window.len() as u64) {
            self.window.push(self.retired);
        }
        self.retired - before
    }

    fn ready(&self, registers: u64) -> Time {
        let mut left = registers;
        let mut at = 0;
        while left != 0 {
            at = at.max(self.registers[left.trailing_zeros() as usize]);
            left &= left - 1;
        }
        at
    }

    /// Makes room for the stores of an instruction: the time from which it can enter, and whom the wait is due to.
    fn make_room(&mut self, entered: Time, memory: &mut MemorySide<'_>) -> (Time, Option<PendingStore>) {
        memory.drain(&mut self.stores, entered);
        let (mut at, mut due) = (entered, None);
        while self.stores.is_full() {
            let Some(left) = memory.pop(&mut self.stores, Time::MAX) else { break };
            memory.note(left.store.address, left.store.instruction, left.transferred, 0);
            at = at.max(left.at);
            due = left.behind.or(due);
        }
        (at, due)
    }

    /// Runs an instruction with its accesses.
    fn execute(
        &mut self,
        processor: &Processor,
        known: Option<&DecodedInstruction>,
        accesses: &[Access],
        next: Option<u64>,
        memory: &mut MemorySide<'_>,
    ) -> TimeCharge {
        let step = CYCLE / Time::from(processor.width).min(CYCLE);
        let mut entered = (self.entered + step).max(self.redirected).max(self.window.oldest());
        let mut blocked = (0, None);
        if accesses.iter().any(|access| access.store()) {
            let (at, due) = self.make_room(entered, memory);
            blocked = (at - entered, due);
            entered = at;
        }
        let (of_address, reads, writes, latency) = known.map_or((0, 0, 0, 1), |known| {
            let operation = &known.operation;
            (operation.address, operation.reads, operation.writes, operation.latency)
        });
        let multiplies =
            memory.ownership.is_some() && accesses.is_empty() && MULTIPLICATION.contains(&latency);
        if multiplies {
            entered = entered.max(self.multiplied.oldest());
            self.multiplied.push(self.ready(reads).max(entered + CYCLE));
        }
        let is_renamed = memory.ownership.is_some() && writes & INTEGER_REGISTERS != 0;
        if is_renamed {
            entered = entered.max(self.renamed.oldest());
        }
        self.entered = entered;
        let mut addressed = self.ready(of_address).max(entered + CYCLE);
        let is_atomic = known.is_some_and(|known| known.atomic);
        if is_atomic {
            // it waits for all stores in front of it, and is alone
            memory.drain(&mut self.stores, Time::MAX);
            addressed = addressed.max(self.stores.written()).max(self.retired);
        }
        let is_update = is_atomic && accesses.iter().any(|access| access.store());
        let mut done = self.ready(reads).max(addressed);
        // the wait for other cores, and the first access that did
        let (mut waited, mut waiting) = (0, None);
        let mut restarts = None;
        for access in accesses.iter().filter(|access| !access.store()) {
            let arrives = memory.fill(access, addressed);
            if memory.ownership.is_none() {
                done = done.max(match self.buffered.source(access.address(), access.size(), addressed) {
                    LoadSource::Caches => arrives,
                    LoadSource::Store(data) => data.max(addressed) + FORWARD,
                    LoadSource::CachesAfter(left) => arrives.max(left + FAILED_FORWARD),
                });
                continue;
            }
            if is_atomic {
                let (granted, transferred) = memory.request(access, is_update, addressed);
                waited = waited.max(granted.saturating_sub(arrives));
                waiting = waiting.or((transferred || granted > arrives).then_some((*access, transferred)));
                done = done.max(arrives).max(granted);
                continue;
            }
            let load = self.load(access, addressed, arrives, step, processor, memory);
            done = done.max(load.at);
            waited = waited.max(load.waited);
            waiting =
                waiting.or((load.transferred || load.waited > 0).then_some((*access, load.transferred)));
            restarts = restarts.max(load.restarts);
        }
        let is_owned_update = is_update && memory.ownership.is_some();
        if is_owned_update {
            // emulators report the store alone: the line has to be there for the load in it
            for access in accesses.iter().filter(|access| access.store()) {
                let arrives = memory.fill(access, addressed);
                let (granted, transferred) = memory.request(access, true, addressed);
                waited = waited.max(granted.saturating_sub(arrives));
                waiting = waiting.or(transferred.then_some((*access, transferred)));
                done = done.max(arrives).max(granted + Time::from(processor.atomic_update) * CYCLE);
            }
        }
        if let Some(at) = restarts {
            // all that follows is fetched again
            self.redirected = self.redirected.max(at);
        }
        if !is_owned_update {
            done += Time::from(latency) * CYCLE;
        }
        let retires = (self.retired + step).max(done);
        // an atomic update's store is in the line when it is done
        let is_buffered = !is_owned_update;
        for access in accesses.iter().filter(|access| access.store()) {
            if !is_buffered {
                self.stores.pass(done);
                continue;
            }
            // the line is asked for when the address is known, and written behind older stores
            let arrives = memory.fill(access, addressed);
            self.stored = (self.stored + CYCLE).max(arrives).max(retires);
            self.buffered.add(access.address(), access.size(), done, self.stored);
            let number = self.stores.push(PendingStore {
                instruction: access.instruction(),
                address: access.address(),
                line: access.address() / memory.line_size,
                retires,
                arrives,
            });
            self.forwarded[slot(access.address())].replace(access.address() / WORD, done, number);
        }
        let mut left = writes;
        while left != 0 {
            self.registers[left.trailing_zeros() as usize] = done;
            left &= left - 1;
        }
        let mispredicted = known.zip(next).is_some_and(|(known, next)| !self.predicts(known, next));
        if mispredicted {
            self.redirected = done + Time::from(processor.misprediction_penalty) * CYCLE;
        }
        let time = retires - self.retired;
        // while the window was empty nobody but the branch is to blame
        let empty = (entered + CYCLE).saturating_sub(self.retired).min(time);
        let branch = self.mispredicted.take().map(|branch| (branch, empty));
        self.retired = retires;
        self.window.push(retires);
        if is_renamed {
            self.renamed.push(retires);
        }
        memory.drain(&mut self.stores, self.entered);
        let own = time - branch.map_or(0, |(_, empty)| empty);
        let shared = waited.min(own);
        if let Some((access, transferred)) = waiting {
            memory.note(access.address(), access.instruction(), transferred, shared);
        }
        let of_store = blocked.1.map(|left| {
            let time = blocked.0.min(own - shared);
            memory.note(left.address, left.instruction, false, time);
            (left.instruction, time)
        });
        TimeCharge { own, branch, mispredicted, shared, of_store }
    }

    /// Loads from lines that other cores may have.
    ///
    /// The processor gives a load the data of the store that it expects to have written the word, at once. A load whose
    /// store is still in the buffer when the data is known needs no line; one whose store has left by then does. Whatever
    /// its data came from, a load whose line is taken before it retires is run again with what follows, and then needs
    /// the line. Zen 5 waits for the line before it fetches what follows, and short chains through a word do not progress
    /// without its line, see [`Processor`].
    fn load(
        &mut self,
        access: &Access,
        addressed: Time,
        arrives: Time,
        step: Time,
        processor: &Processor,
        memory: &mut MemorySide<'_>,
    ) -> LoadOutcome {
        let forwarded = &mut self.forwarded[slot(access.address())];
        let ForwardedStore { word, data, number, interval, .. } = *forwarded;
        let is_renamed = word == access.address() / WORD
            && (self.stores.holds(number) || data.saturating_add(RENAMED) > addressed);
        let (known, looked_up) = match is_renamed {
            true => (data.max(addressed), data.max(addressed) + FORWARD),
            false => (arrives, addressed),
        };
        let needs_none = is_renamed && self.stores.earliest(number).is_some_and(|leaves| looked_up <= leaves);
        let (granted, transferred) = match needs_none {
            true => (looked_up, false),
            false => memory.request(access, false, looked_up),
        };
        let retires = (self.retired + step).max(known);
        let lost = memory.lost(access);
        let delay = Time::from(processor.commit_delay) * CYCLE;
        let is_exposed = is_renamed && lost <= looked_up && forwarded.note_loss(lost) && interval < delay;
        let is_retiring = granted <= known.max(looked_up) && lost > looked_up && lost <= retires;
        if is_exposed || !transferred && is_retiring {
            let (granted, transferred) = memory.request(access, false, retires);
            let again = match processor.restart_after_line {
                0 => retires + Time::from(memory.restart()) * CYCLE,
                // what was executed behind the store of an exposed load is executed again
                restart => {
                    let redone = if is_exposed { delay } else { 0 };
                    granted.max(retires) + Time::from(restart) * CYCLE + redone
                }
            };
            let at = granted.max(again);
            return LoadOutcome { at, waited: at - known, transferred, restarts: Some(again) };
        }
        if is_renamed && granted <= looked_up {
            return LoadOutcome { at: known, ..LoadOutcome::default() };
        }
        let at = known.max(granted);
        LoadOutcome { at, waited: at - known, transferred, restarts: None }
    }

    fn predicts(&mut self, known: &DecodedInstruction, next: u64) -> bool {
        match known.operation.flow {
            Flow::Branch(target) => {
                let taken = next != known.operation.end;
                self.predictor.update(known.address, taken, target, true)
            }
            Flow::Jump(None) | Flow::Call(None) => self.predictor.update(known.address, true, next, false),
            _ => true,
        }
    }
}

/// The result of a load from a line that other cores may have.
#[derive(Clone, Copy, Debug, Default)]
struct LoadOutcome {
    at: Time,
    // for lines of other cores
    waited: Time,
    transferred: bool,
    // when what follows is fetched again
    restarts: Option<Time>,
}

fn slot(address: u64) -> usize {
    (address / WORD) as usize % FORWARDED
}

#[cfg(test)]
mod tests;
