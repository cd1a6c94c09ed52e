use super::*;
use tallyline_inference::code::Operation;
use tallyline_trace::{Instruction, Instructions};

/// Instructions of four bytes each from 0x1000 on.
struct FakeCode(Vec<Operation>);

const BASE: u64 = 0x1000;

impl Code for FakeCode {
    fn operation(&self, address: u64) -> Option<Operation> {
        self.0.get(usize::try_from(address.checked_sub(BASE)? / 4).ok()?).copied()
    }
}

fn plain(index: usize, flow: Flow) -> Operation {
    let end = BASE + 4 * (index as u64 + 1);
    Operation { end, flow, address: 0, reads: 0, writes: 0, latency: 1, memory: false }
}

fn load(index: usize, from: u64, to: u64) -> Operation {
    Operation { address: from, reads: from, writes: to, latency: 0, memory: true, ..plain(index, Flow::Next) }
}

fn instructions(count: usize) -> Instructions {
    let mut all = Instructions::default();
    for index in 0..count as u64 {
        all.add(index, Instruction::new(BASE + 4 * index, 4, false));
    }
    all.sort();
    all
}

/// Runs a loop of operations so often; `address` says what the memory operands access.
fn run(operations: &[Operation], rounds: u64, mut address: impl FnMut(u64, usize) -> u64) -> TraceCosts {
    run_accesses(operations, rounds, |round, index| (address(round, index), 8, false))
}

/// Runs a loop of operations so often; `access` has the address and size of each access, and whether it is a store.
fn run_accesses(
    operations: &[Operation],
    rounds: u64,
    mut access: impl FnMut(u64, usize) -> (u64, u8, bool),
) -> TraceCosts {
    let instructions = instructions(operations.len());
    let code = FakeCode(operations.to_vec());
    let processor = Processor {
        memory_latency: 400,
        prefetch_distance: 0,
        zeroed_pages_cached: false,
        ..Processor::default()
    };
    let mut cores = TimedCores::new(&processor, 1, &instructions, &code).expect("a processor");
    let mut now = 0;
    for round in 0..rounds {
        for (index, operation) in operations.iter().enumerate() {
            now += 1;
            if operation.memory {
                let (address, size, store) = access(round, index);
                let access = Access::new(index as u32, address, size, store, now);
                cores.access(0, 0, &access).expect("room");
            }
        }
    }
    cores.finish()
}

/// Returns a line that was never touched, in a page that often is.
fn far(round: u64) -> u64 {
    0x100_0000 + round * 64
}

fn cycles(costs: &TraceCosts, index: usize, rounds: u64) -> u64 {
    costs.instructions[index].time / TraceCosts::PARTS / rounds
}

#[test]
fn dependent_misses_cost_their_whole_latency_and_independent_ones_share_it() {
    let jump = plain(1, Flow::Jump(Some(BASE)));
    let dependent = run(&[load(0, 1, 1), jump], 1000, |round, _| far(round));
    let independent = run(&[load(0, 1, 2), jump], 1000, |round, _| far(round));
    assert!((380..480).contains(&cycles(&dependent, 0, 1000)), "{}", cycles(&dependent, 0, 1000));
    assert!(cycles(&independent, 0, 1000) < 40, "{}", cycles(&independent, 0, 1000));
    assert_eq!(dependent.unexplained, 0);
    assert_eq!(dependent.explained, 999);
}

#[test]
fn a_miss_behind_an_older_one_is_the_older_ones_cost() {
    // both lines are asked for at once: the second is there when the first is; then one waits for both
    let loads = [load(0, 1, 2), load(1, 1, 4), load(2, 2 | 4, 1), plain(3, Flow::Jump(Some(BASE)))];
    let costs = run(&loads, 500, |round, index| match index {
        0 => far(2 * round),
        1 => far(2 * round + 1),
        _ => 0x50_0000,
    });
    let [first, second, third] = [0, 1, 2].map(|index| cycles(&costs, index, 500));
    assert!(first > 350, "{first}");
    assert!(second < 20 && third < 20, "{second} {third}");
}

#[test]
fn a_load_of_more_than_a_store_wrote_waits_until_that_is_in_the_cache() {
    // a store of what the load of the turn before got, and the load
    let store = Operation { writes: 0, latency: 1, ..load(0, 1, 0) };
    let operations = [store, load(1, 2, 1), plain(2, Flow::Jump(Some(BASE)))];
    let of_turn = |stored: (u64, u8), loaded: (u64, u8)| {
        let costs = run_accesses(&operations, 1000, |_, index| match index {
            0 => (stored.0, stored.1, true),
            _ => (loaded.0, loaded.1, false),
        });
        costs.time() / TraceCosts::PARTS / 1000
    };
    // as measured: 6 and 19 cycles
    assert!((5..9).contains(&of_turn((0x5000, 8), (0x5004, 2))), "{}", of_turn((0x5000, 8), (0x5004, 2)));
    assert!((17..23).contains(&of_turn((0x5004, 2), (0x5000, 8))), "{}", of_turn((0x5004, 2), (0x5000, 8)));
}

#[test]
fn hits_cost_by_the_level_that_has_the_line() {
    let jump = plain(1, Flow::Jump(Some(BASE)));
    // 512 KB: the second level
    let costs = run(&[load(0, 1, 1), jump], 40_000, |round, _| far(round % 8192));
    let sources = costs.instructions[0].sources;
    assert_eq!((sources[3], sources[0]), (8192, 0));
    assert_eq!(sources[1], 40_000 - 8192);
}

#[test]
fn a_wrong_prediction_is_charged_to_the_branch() {
    // a branch over one instruction that nobody can predict
    let operations = [
        load(0, 1, 2),
        Operation { reads: 2, ..plain(1, Flow::Branch(BASE + 12)) },
        plain(2, Flow::Next),
        load(3, 1, 4),
        plain(4, Flow::Jump(Some(BASE))),
    ];
    let instructions = instructions(operations.len());
    let code = FakeCode(operations.to_vec());
    let mut cores = TimedCores::new(&Processor::default(), 1, &instructions, &code).expect("a processor");
    let (mut now, mut random) = (0, 1_u64);
    for _ in 0..1000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let first = Access::new(0, 0x8000, 8, false, now + 1);
        let skipped = u64::from(random >> 63 == 1);
        let second = Access::new(3, 0x8008, 8, false, now + 4 - skipped);
        now += 5 - skipped;
        cores.access(0, 0, &first).expect("room");
        cores.access(0, 0, &second).expect("room");
    }
    let costs = cores.finish();
    assert_eq!(costs.unexplained, 0);
    assert!(costs.instructions[1].mispredictions > 200);
    let branch = costs.instructions[1].time;
    assert!(branch * 2 > costs.time(), "{branch} of {}", costs.time());
}

#[test]
fn code_that_is_not_known_is_counted_apart() {
    let instructions = instructions(4);
    let code = FakeCode(Vec::new());
    let mut cores = TimedCores::new(&Processor::default(), 1, &instructions, &code).expect("a processor");
    for round in 0..100 {
        let access = Access::new(0, 0x8000, 8, false, 1 + 3 * round);
        cores.access(0, 0, &access).expect("room");
    }
    let costs = cores.finish();
    assert_eq!((costs.explained, costs.unexplained), (0, 198));
    assert_eq!(costs.instructions[0].executions, 100);
}

#[test]
fn numbers_of_a_damaged_trace_stay_bounded() {
    let instructions = instructions(4);
    let code = FakeCode(vec![load(0, 1, 1), plain(1, Flow::Jump(Some(BASE)))]);
    let mut cores = TimedCores::new(&Processor::default(), 1, &instructions, &code).expect("a processor");
    for now in [5, u64::MAX, 0, u64::MAX / 2, 7, u64::MAX - 1] {
        for instruction in [0, 1, 3] {
            let access = Access::new(instruction, u64::MAX - now, 64, now > 7, now);
            cores.access(0, 3, &access).expect("room");
        }
    }
    let costs = cores.finish();
    assert!(costs.time() < 1 << 60, "{}", costs.time());
}

/// Runs threads that each do one operation on an address of their own, in the order of time, on as many cores.
fn shared(addresses: &[u64], operation: Operation, atomic: bool, store: bool) -> TraceCosts {
    let mut instructions = Instructions::default();
    instructions.add(0, Instruction::new(BASE, 4, atomic));
    instructions.add(1, Instruction::new(BASE + 4, 4, false));
    instructions.sort();
    let code = FakeCode(vec![operation, plain(1, Flow::Jump(Some(BASE)))]);
    let processor = Processor { prefetch_distance: 0, ..Processor::default() };
    let mut cores = TimedCores::new(&processor, addresses.len() as u16, &instructions, &code)
        .expect("a processor")
        .with_sharing(SharingCosts::new(100).with_contention(70, 10));
    let mut nows = vec![0; addresses.len()];
    for _ in 0..1000 * addresses.len() {
        let place =
            (0..addresses.len()).min_by_key(|place| (cores.time(*place), nows[*place])).expect("a core");
        nows[place] += 2;
        let access = Access::new(0, addresses[place], 8, store, nows[place]);
        cores.access(place as u16, place, &access).expect("room");
    }
    cores.finish()
}

#[test]
fn atomic_additions_of_two_cores_to_one_line_wait_for_each_other() {
    let addition = Operation { latency: 1, ..load(0, 1, 0) };
    let apart = shared(&[0x8000, 0x9000], addition, true, true);
    let together = shared(&[0x8000, 0x8008], addition, true, true);
    assert!(apart.losses().is_empty(), "{:?}", apart.losses());
    let ratio = together.end() as f64 / apart.end() as f64;
    assert!(ratio > 3.0, "{ratio}");
    let lost: u64 = together.losses().iter().map(|loss| loss.time()).sum();
    assert!(lost * 2 > together.time(), "{lost} of {}", together.time());
}

#[test]
fn stores_alone_to_halves_of_a_line_take_it_from_each_other_and_stall_nobody() {
    let store = Operation { latency: 1, ..load(0, 1, 0) };
    let apart = shared(&[0x8000, 0x9000], store, false, true);
    let together = shared(&[0x8000, 0x8008], store, false, true);
    let ratio = together.end() as f64 / apart.end() as f64;
    assert!(ratio < 1.3, "{ratio}");
    let transfers = together.losses().iter().map(|loss| loss.transfers()).sum::<u64>();
    assert!(transfers > 4, "{transfers}");
}

/// Runs two threads on a core each, of which each updates a word at its address by a chain of so many cycles.
fn chains(processor: &Processor, addresses: [u64; 2], latency: u8) -> TraceCosts {
    let operations = [
        load(0, 1, 2),
        Operation { reads: 2, writes: 2, latency, ..plain(1, Flow::Next) },
        Operation { reads: 2, writes: 0, latency: 1, ..load(2, 1, 0) },
        plain(3, Flow::Jump(Some(BASE))),
    ];
    let code = FakeCode(operations.to_vec());
    let mut cores = TimedCores::new(processor, 2, &instructions(operations.len()), &code)
        .expect("a processor")
        .with_sharing(SharingCosts::new(90).with_contention(115, 80));
    let mut steps = [0_u64; 2];
    for _ in 0..4000 {
        let place = usize::from((cores.time(1), steps[1]) < (cores.time(0), steps[0]));
        let (round, store) = (steps[place] / 2, steps[place] % 2 == 1);
        let now = 4 * round + if store { 3 } else { 1 };
        let access = Access::new(if store { 2 } else { 0 }, addresses[place], 8, store, now);
        cores.access(place as u16, place, &access).expect("room");
        steps[place] += 1;
    }
    cores.finish()
}

#[test]
fn short_chains_through_words_of_one_line_need_the_line_on_zen_5_alone() {
    let slow_down = |processor: &Processor, latency| {
        let of = |addresses| chains(processor, addresses, latency).end() as f64;
        of([0x8000, 0x8010]) / of([0x8000, 0x9000])
    };
    let [zen_4, zen_5] = [Processor::zen_4(), Processor::default()];
    // as measured on Zen 5: 2 to 9 and 1.1
    let of_zen_5 = [9, 40].map(|latency| slow_down(&zen_5, latency));
    assert!(of_zen_5[0] > 1.5 && of_zen_5[1] < 1.2, "{of_zen_5:?}");
    let of_zen_4 = slow_down(&zen_4, 9);
    assert!(of_zen_4 < 1.3, "{of_zen_4}");
}
