//! A machine as weak as aarch64, and what the protocols are on it.
//!
//! loom knows the language's memory model, in which a section's plain load would order nothing. What
//! the sections rely on is the processor's: each instruction may take effect as soon as all are done
//! that it depends on or that a barrier keeps in front of it; but what takes effect is there for all
//! other processors at once. Here all orders in which that can happen are gone through.
//!
//! Left out: a load that is served by a store of its own thread which others do not see yet (no thread
//! here loads what it stored), and mispredicted branches, but for loads, which do not wait for them.
//!
//! Source: Pulte et al., *Simplifying ARM Concurrency*, POPL 2018; the Arm ARM, B2.3.

use std::collections::HashSet;

/// A word of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    At(usize),
    /// The first word where the value that an instruction loaded is even, else the second.
    Parity(usize, usize, usize),
}

/// Value that is stored.
#[derive(Debug, Clone, Copy)]
enum Value {
    Is(u64),
    /// 1 more than what an instruction of this thread loaded.
    OneMoreThan(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// `ldr`, `str`.
    Plain,
    /// `ldar`.
    Acquire,
    /// `stlr`.
    Release,
    /// Of an atomic instruction.
    Both,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Load(Word),
    Store(Word, Value),
    /// Loads, and stores this much more, in one.
    Add(Word, u64),
    /// `dmb ishld`: loads before it come before all behind it.
    LoadBarrier,
    /// `dmb ishst`: stores before it come before stores behind it.
    StoreBarrier,
}

/// An instruction, with the numbers of those of its thread that its address, its value, or (for a
/// store) a branch in front of it depends on.
#[derive(Debug, Clone, Copy)]
struct Instruction {
    kind: Kind,
    order: Order,
    needs: &'static [usize],
    /// The thread goes this way only where this was loaded.
    only_if: Option<u64>,
}

const fn load(word: usize) -> Instruction {
    Instruction { kind: Kind::Load(Word::At(word)), order: Order::Plain, needs: &[], only_if: None }
}

const fn store(word: usize, value: u64) -> Instruction {
    let kind = Kind::Store(Word::At(word), Value::Is(value));
    Instruction { kind, order: Order::Plain, needs: &[], only_if: None }
}

/// Returns an addition as Rust's `SeqCst` and `AcqRel` operations are compiled.
const fn add(word: usize, value: u64) -> Instruction {
    Instruction { kind: Kind::Add(Word::At(word), value), order: Order::Both, needs: &[], only_if: None }
}

const fn barrier(kind: Kind) -> Instruction {
    Instruction { kind, order: Order::Plain, needs: &[], only_if: None }
}

impl Instruction {
    const fn order(mut self, order: Order) -> Instruction {
        self.order = order;
        self
    }

    const fn needs(mut self, needs: &'static [usize]) -> Instruction {
        self.needs = needs;
        self
    }

    const fn only_if(mut self, value: u64) -> Instruction {
        self.only_if = Some(value);
        self
    }

    const fn kind(mut self, kind: Kind) -> Instruction {
        self.kind = kind;
        self
    }

    fn loads(self) -> bool {
        matches!(self.kind, Kind::Load(_) | Kind::Add(..))
    }

    fn stores(self) -> bool {
        matches!(self.kind, Kind::Store(..) | Kind::Add(..))
    }

    fn acquires(self) -> bool {
        self.loads() && matches!(self.order, Order::Acquire | Order::Both)
    }

    fn releases(self) -> bool {
        self.stores() && matches!(self.order, Order::Release | Order::Both)
    }

    fn may_touch(self, other: Instruction) -> bool {
        let words = |kind| match kind {
            Kind::Load(word) | Kind::Store(word, _) | Kind::Add(word, _) => match word {
                Word::At(word) => vec![word],
                Word::Parity(even, odd, _) => vec![even, odd],
            },
            _ => vec![],
        };
        let theirs = words(other.kind);
        words(self.kind).into_iter().any(|word| theirs.contains(&word))
    }

    /// Returns `true` if this takes effect before `later` of the same thread, whatever happens.
    fn is_before(self, later: Instruction) -> bool {
        match (self.kind, later.kind) {
            (Kind::LoadBarrier, _) => true,
            (Kind::StoreBarrier, _) => later.stores(),
            (_, Kind::LoadBarrier) => self.loads(),
            (_, Kind::StoreBarrier) => self.stores(),
            _ => {
                self.acquires()
                    || later.releases()
                    || (self.releases() && later.acquires())
                    || self.may_touch(later)
            }
        }
    }
}

/// Values that were loaded, by thread and instruction.
type Loaded = Vec<Vec<u64>>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: Vec<u64>,
    done: Vec<Vec<bool>>,
    loaded: Loaded,
}

/// Goes through all that `threads` can do from `memory`, and calls `check` with what they loaded.
/// Returns how many ends there are.
fn explore(memory: &[u64], threads: &[&[Instruction]], mut check: impl FnMut(&Loaded, &[u64])) -> usize {
    let start = State {
        memory: memory.to_vec(),
        done: threads.iter().map(|thread| vec![false; thread.len()]).collect(),
        loaded: threads.iter().map(|thread| vec![0; thread.len()]).collect(),
    };
    let (mut seen, mut open, mut ends) = (HashSet::from([start.clone()]), vec![start], 0);
    while let Some(state) = open.pop() {
        let mut is_end = true;
        for (number, thread) in threads.iter().enumerate() {
            for (index, instruction) in thread.iter().enumerate() {
                let done = &state.done[number];
                let waits = |earlier: usize| {
                    !done[earlier]
                        && (thread[earlier].is_before(*instruction) || instruction.needs.contains(&earlier))
                };
                if done[index] {
                    continue;
                }
                is_end = false;
                if (0..index).any(waits) {
                    continue;
                }
                let mut next = state.clone();
                next.take(number, index, *instruction);
                let goes_on = instruction.only_if.is_none_or(|wanted| next.loaded[number][index] == wanted);
                if goes_on && seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        if is_end {
            ends += 1;
            check(&state.loaded, &state.memory);
        }
    }
    ends
}

impl State {
    fn take(&mut self, thread: usize, index: usize, instruction: Instruction) {
        self.done[thread][index] = true;
        let loaded = &mut self.loaded[thread];
        let place = |word, loaded: &[u64]| match word {
            Word::At(word) => word,
            Word::Parity(even, odd, by) => [even, odd][loaded[by] as usize & 1],
        };
        match instruction.kind {
            Kind::Load(word) => loaded[index] = self.memory[place(word, loaded)],
            Kind::Store(word, value) => {
                let word = place(word, loaded);
                self.memory[word] = match value {
                    Value::Is(value) => value,
                    Value::OneMoreThan(by) => loaded[by] + 1,
                };
            }
            Kind::Add(word, value) => {
                let word = place(word, loaded);
                loaded[index] = self.memory[word];
                self.memory[word] += value;
            }
            Kind::LoadBarrier | Kind::StoreBarrier => {}
        }
    }
}

// The machine itself: what aarch64 is known to show, and what it is known not to.

#[test]
fn the_machine_is_as_weak_as_aarch64_and_no_weaker() {
    const X: usize = 0;
    const Y: usize = 1;
    let shows = |threads: &[&[Instruction]], wanted: &[(usize, usize, u64)]| {
        let mut found = false;
        explore(&[0; 2], threads, |loaded, _| {
            found |= wanted.iter().all(|&(thread, index, value)| loaded[thread][index] == value);
        });
        found
    };
    let stale = [(1, 0, 1), (1, 1, 0)];
    let sent = [store(X, 1), store(Y, 1)];
    let sent_in_order = [store(X, 1), store(Y, 1).order(Order::Release)];
    let seen = [load(Y), load(X)];
    let seen_in_order = [load(Y).order(Order::Acquire), load(X)];
    assert!(shows(&[&sent, &seen], &stale), "message passing");
    assert!(shows(&[&sent_in_order, &seen], &stale), "the loads come in any order");
    assert!(shows(&[&sent, &seen_in_order], &stale), "and so do the stores");
    assert!(!shows(&[&sent_in_order, &seen_in_order], &stale), "with both ends in order");
    assert!(!shows(&[&sent_in_order, &[load(Y), load(X).needs(&[0])]], &stale), "or with an address");
    let buffered = [(0, 1, 0), (1, 1, 0)];
    assert!(shows(&[&[store(X, 1), load(Y)], &[store(Y, 1), load(X)]], &buffered), "store buffering");
    let strong =
        |stored, loaded| [store(stored, 1).order(Order::Release), load(loaded).order(Order::Acquire)];
    assert!(!shows(&[&strong(X, Y), &strong(Y, X)], &buffered), "not with stlr and ldar");
    // what one has seen, all can see: writes to two others
    let passes_on = [load(X).only_if(1), store(Y, 1).needs(&[0])];
    let third = [load(Y).order(Order::Acquire), load(X)];
    assert!(!shows(&[&[store(X, 1)], &passes_on, &third], &[(2, 0, 1), (2, 1, 0)]));
}

// words of one counter, and what tells readers of them
const MASK: usize = 0;
const ENTRY: usize = 1;
const WORD: usize = 2;
const DONE: usize = 3;
const QUICK: usize = 4;
const STATE: usize = 5;
const HOME: usize = 6;
const WORDS: usize = 7;

/// Returns `true` if a count can be missed: a thread announces a CPU; another one counts there, in a
/// section of plain instructions, and hands over; a third reads.
fn count_is_missed(announcer: &[Instruction], hand_over: Order) -> bool {
    let section = [
        load(ENTRY).only_if(1),
        load(WORD).needs(&[0]),
        store(WORD, 0).kind(Kind::Store(Word::At(WORD), Value::OneMoreThan(1))).needs(&[0, 1]),
        store(DONE, 1).order(hand_over).needs(&[0]),
    ];
    let reader = [load(DONE).order(Order::Acquire).only_if(1), load(MASK).order(Order::Acquire), load(WORD)];
    let mut missed = false;
    let ends = explore(&[0; WORDS], &[announcer, &section, &reader], |loaded, _| {
        missed |= loaded[2][1..] != [1, 1];
    });
    assert!(ends > 0);
    missed
}

#[test]
fn a_count_made_by_plain_instructions_is_read_once_it_is_handed_over() {
    let announce = [add(MASK, 1), store(ENTRY, 1).order(Order::Release)];
    assert!(!count_is_missed(&announce, Order::Release));
    assert!(count_is_missed(&announce, Order::Plain), "nothing was handed over");
    assert!(count_is_missed(&[add(MASK, 1).order(Order::Plain), store(ENTRY, 1)], Order::Release));
    assert!(count_is_missed(&[store(ENTRY, 1).order(Order::Release), add(MASK, 1)], Order::Release));
}

/// Returns `true` if a reader can take the one unit for all there is: a thread uses the fallback cell
/// for the first time; another one finds that said, uses it, and hands over to the reader.
fn fallback_is_missed(
    first: &[Instruction],
    flag: Order,
    is_own_reader: bool,
    barrier_between: bool,
) -> bool {
    let mut user = vec![load(STATE).order(flag).only_if(1), add(HOME, 1).order(Order::Plain).needs(&[0])];
    let mut read = vec![load(QUICK).order(Order::Acquire), load(WORD)];
    if barrier_between {
        read.push(barrier(Kind::LoadBarrier));
    }
    read.push(load(QUICK).order(Order::Acquire));
    let mut reader = vec![load(DONE).order(Order::Acquire).only_if(1)];
    if is_own_reader {
        user.append(&mut read);
        reader.clear();
    } else {
        user.push(store(DONE, 1).order(Order::Release).needs(&[0]));
        reader.append(&mut read);
    }
    let mut missed = false;
    let ends = explore(&[0; WORDS], &[first, &user, &reader], |loaded, _| {
        let reader = &loaded[if is_own_reader { 1 } else { 2 }];
        // what is first and last of a quick read: 0 while there is one unit
        let (before, after) = (reader[if is_own_reader { 2 } else { 1 }], reader[reader.len() - 1]);
        missed |= before == 0 && after == 0;
    });
    assert!(ends > 0);
    missed
}

#[test]
fn a_quick_reader_is_told_of_the_fallback_cell_by_whoever_finds_it_in_use() {
    let first = [add(QUICK, 1), add(STATE, 1)];
    for is_own_reader in [false, true] {
        assert!(!fallback_is_missed(&first, Order::Acquire, is_own_reader, true));
        // the order is needed: what is said first is said too early
        assert!(fallback_is_missed(&[add(STATE, 1), add(QUICK, 1)], Order::Acquire, is_own_reader, true));
    }
    // before `use_home` acquired its flag: here only the reader's barrier, and that stores are there
    // for all at once, made that good; in the language it was wrong, as loom finds
    assert!(!fallback_is_missed(&first, Order::Plain, false, true));
    assert!(!fallback_is_missed(&first, Order::Plain, true, true));
    assert!(fallback_is_missed(&first, Order::Plain, true, false), "read before the flag was");
    assert!(!fallback_is_missed(&first, Order::Acquire, true, false));
}

/// Returns `true` if a reader of two commits to a latched line can take half an event for
/// a whole one.
fn half_an_event_is_read(barrier_in_commit: bool, commit: Order, barrier_in_read: bool) -> bool {
    // the sequence number, the even copy, the odd copy
    const NUMBER: usize = 0;
    const EVEN: [usize; 2] = [1, 2];
    const ODD: [usize; 2] = [3, 4];
    let mut writer = Vec::new();
    for (number, copy) in [(1, ODD), (2, EVEN)] {
        if barrier_in_commit {
            writer.push(barrier(Kind::StoreBarrier));
        }
        writer.extend([store(copy[0], number), store(copy[1], number), store(NUMBER, number).order(commit)]);
    }
    let part = |item: usize| load(0).kind(Kind::Load(Word::Parity(EVEN[item], ODD[item], 0))).needs(&[0]);
    let mut reader = vec![load(NUMBER).order(Order::Acquire), part(0), part(1)];
    if barrier_in_read {
        reader.push(barrier(Kind::LoadBarrier));
    }
    reader.push(load(NUMBER));
    let last = reader.len() - 1;
    let mut half = false;
    let ends = explore(&[0; 5], &[&writer, &reader], |loaded, _| {
        let loaded = &loaded[1];
        half |= loaded[0] == loaded[last] && loaded[1..3] != [loaded[0]; 2];
    });
    assert!(ends > 0);
    half
}

#[test]
fn a_latched_event_is_read_whole_with_its_barriers_and_not_without_one() {
    assert!(!half_an_event_is_read(true, Order::Release, true));
    assert!(half_an_event_is_read(false, Order::Release, true), "the next copy before the last number");
    assert!(half_an_event_is_read(true, Order::Plain, true), "the number before its copy");
    // loads of one word come in order; the copies might come behind both
    assert!(half_an_event_is_read(true, Order::Release, false));
}
