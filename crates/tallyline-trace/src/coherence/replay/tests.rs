use super::*;
use crate::build::{Builder, ThreadBuilder};
use crate::coherence::Geometry;

const WRITES: u64 = 5000;
const LINE: u64 = 0x1000;

fn machine(cores: u16) -> Machine {
    Machine::new(Geometry::new(cores, 64, 1 << 15, 8).expect("a machine"))
}

fn plan(quantum: u64) -> ReplayOptions {
    ReplayOptions { quantum, atomics: AtomicOrder::Free, process: 7 }
}

fn run(bytes: &[u8], cores: u16, plan: ReplayOptions) -> (ReplayStats, CoherenceSummary) {
    let trace = Trace::from_bytes(bytes).expect("a trace");
    replay(&trace, machine(cores), plan).expect("a replay")
}

/// Threads that write a word of their own of one line, every fourth instruction; recorded one after
/// the other.
fn writers(threads: u32) -> Vec<u8> {
    let in_order: Vec<u32> = (0..threads).collect();
    writers_that_begin(&in_order)
}

/// [`writers`] that begin in this order.
fn writers_that_begin(order: &[u32]) -> Vec<u8> {
    let threads = order.len() as u32;
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, threads);
    let mut starts = vec![0; order.len()];
    for at in order {
        starts[*at as usize] = builder.number();
    }
    for (at, start) in starts.into_iter().enumerate() {
        let mut thread = ThreadBuilder::new(7, 100 + at as u32);
        thread.point(SyncPoint::Start, start);
        for _ in 0..WRITES {
            thread.access(first + at as u64, LINE + 8 * at as u64, 8, true, 4);
        }
        builder.thread(&mut thread);
    }
    builder.finish()
}

#[test]
fn threads_meet_on_a_line_once_a_quantum_whatever_the_recording() {
    let trace = writers(2);
    for quantum in [4, 40, 200, 2000] {
        let (stats, summary) = run(&trace, 2, plan(quantum));
        // the first write is by instruction 4: a quantum of 200 has those of 4 to 199, 200 to 399, …
        let turns = (4 * WRITES) / quantum + 1;
        let lines = summary.total.lines;
        assert_eq!(lines.cold, 2);
        assert!(lines.false_sharing.abs_diff(2 * turns) <= 4, "quantum {quantum}: {lines:?}");
        assert_eq!(lines.true_sharing, 0);
        assert_eq!(stats.accesses, 2 * WRITES);
        assert_eq!(stats.threads, [(100, 0), (101, 1)]);
    }
}

#[test]
fn replays_do_not_depend_on_which_thread_began_first() {
    let trace = writers_that_begin(&[0, 2, 1]);
    let expected = run(&writers(3), 3, plan(40));
    let (stats, summary) = run(&trace, 3, plan(40));
    assert_eq!(stats.threads, [(100, 0), (101, 1), (102, 2)]);
    assert_eq!(summary.total.lines, expected.1.total.lines);
}

#[test]
fn on_one_core_nothing_is_shared() {
    let (stats, summary) = run(&writers(4), 1, plan(200));
    assert_eq!((summary.total.misses(), summary.total.lines.cold), (1, 1));
    assert_eq!(stats.threads, [(100, 0), (101, 0), (102, 0), (103, 0)]);
}

#[test]
fn threads_beyond_the_cores_take_turns_on_them() {
    let (stats, summary) = run(&writers(5), 2, plan(200));
    assert_eq!(stats.threads, [(100, 0), (101, 1), (102, 0), (103, 1), (104, 0)]);
    assert_eq!(stats.accesses, 5 * WRITES);
    assert!(summary.total.lines.false_sharing > 0);
}

/// Returns a trace in which one thread writes a line, then wakes the other, which waited and then reads it.
fn hand_over() -> Vec<u8> {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, 2);
    let (start, other_start) = (builder.number(), builder.number());
    let (wake, waited) = (builder.number(), builder.number());
    // recorded so that the reader's block comes first
    let mut reader = ThreadBuilder::new(7, 2);
    reader.point(SyncPoint::Start, other_start);
    reader.point(SyncPoint::Waited, waited);
    for _ in 0..WRITES {
        reader.access(first + 1, LINE, 8, false, 4);
    }
    builder.thread(&mut reader);
    let mut writer = ThreadBuilder::new(7, 1);
    writer.point(SyncPoint::Start, start);
    for _ in 0..WRITES {
        writer.access(first, LINE, 8, true, 4);
    }
    writer.point(SyncPoint::Wake, wake);
    builder.thread(&mut writer);
    builder.finish()
}

#[test]
fn who_waited_goes_on_when_he_was_woken() {
    let (stats, summary) = run(&hand_over(), 2, plan(200));
    let total = summary.total;
    assert_eq!((total.lines.cold, total.misses(), total.lines.hitm), (2, 2, 1));
    assert_eq!(stats.ordered, 4);
}

/// Returns two threads that the first one makes, as a machine with one CPU records them: the one ended before
/// the other was made.
fn one_after_the_other() -> Vec<u8> {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, 3);
    let mut main = ThreadBuilder::new(7, 1);
    main.point(SyncPoint::Start, builder.number());
    for at in 1..3 {
        main.point(SyncPoint::Clone, builder.number());
        let mut worker = ThreadBuilder::new(7, 1 + at);
        worker.point(SyncPoint::Start, builder.number());
        for _ in 0..WRITES {
            worker.access(first + u64::from(at), LINE + 8 * u64::from(at), 8, true, 4);
        }
        worker.point(SyncPoint::Exit, builder.number());
        builder.thread(&mut worker);
    }
    main.point(SyncPoint::Waited, builder.number());
    main.access(first, LINE + 8, 8, false, 4);
    builder.thread(&mut main);
    builder.finish()
}

#[test]
fn threads_run_together_though_one_ended_before_the_other_was_made() {
    let (stats, summary) = run(&one_after_the_other(), 3, plan(200));
    let lines = summary.total.lines;
    assert!(lines.false_sharing > 2 * (4 * WRITES / 200) - 8, "{lines:?}");
    assert_eq!(lines.cold, 3, "who waited for both comes last, and never had the line");
    assert_eq!(stats.ordered, 8);
}

/// Returns two threads add to a word with atomic instructions, recorded one after the other.
fn adders() -> Vec<u8> {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, 2);
    let starts = [builder.number(), builder.number()];
    for (at, start) in starts.into_iter().enumerate() {
        let mut thread = ThreadBuilder::new(7, 1 + at as u32);
        thread.point(SyncPoint::Start, start);
        for _ in 0..1000 {
            thread.point(SyncPoint::Atomic, builder.number());
            thread.access(first + at as u64, LINE, 8, true, 1);
        }
        builder.thread(&mut thread);
    }
    builder.finish()
}

#[test]
fn atomics_are_free_or_in_their_recorded_order() {
    let (free_stats, free) = run(&adders(), 2, plan(1));
    assert_eq!(free.total.lines.true_sharing, 2000 - 2, "every one meets the other");
    assert_eq!((free_stats.atomics, free_stats.ordered), (2000, 2));
    let (recorded_stats, recorded) =
        run(&adders(), 2, ReplayOptions { atomics: AtomicOrder::Recorded, ..plan(1) });
    assert_eq!(recorded.total.misses(), 2, "they never met");
    assert_eq!((recorded_stats.atomics, recorded_stats.ordered), (2000, 2002));
}

#[test]
fn a_sample_of_accesses_is_refused() {
    let bytes = Builder::new(100).finish();
    let trace = Trace::from_bytes(bytes.as_slice()).expect("a trace");
    let error = replay(&trace, machine(1), plan(200)).expect_err("a sample");
    assert!(matches!(error, Error::Sampled(100)), "{error}");
}

#[test]
fn gaps_and_points_in_no_order_do_not_stop_a_replay() {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, 2);
    for at in 0..2 {
        let mut thread = ThreadBuilder::new(7, at);
        for number in [9, 3, 5, 3] {
            thread.point(SyncPoint::Wake, number);
            thread.access(first, LINE, 8, true, 1 << 62);
        }
        builder.thread(&mut thread);
    }
    let (stats, _) = run(&builder.finish(), 2, plan(1));
    assert_eq!((stats.accesses, stats.ordered), (8, 8));
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, 2);
    for at in 0..2 {
        let mut thread = ThreadBuilder::new(7, at);
        thread.point(SyncPoint::Waited, 9);
        thread.point(SyncPoint::Wake, 3);
        thread.access(first, LINE, 8, true, 1);
        builder.thread(&mut thread);
    }
    let (stats, _) = run(&builder.finish(), 2, plan(1));
    assert_eq!(stats.accesses, 2, "who waits for whom waits for him");
}

#[test]
fn only_the_threads_of_the_process_run() {
    let (stats, _) = run(&writers(2), 2, ReplayOptions { process: 8, ..plan(200) });
    assert_eq!(stats, ReplayStats::default());
}
