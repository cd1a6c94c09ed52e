use super::*;
use crate::Trace;
use crate::build::{Builder, ThreadBuilder};
use crate::format::{Access, SyncPoint};

/// Cores on which an access of an even instruction takes 10, of an odd one 100; notes who came when.
#[derive(Default)]
struct Clocks {
    cores: u16,
    times: Vec<u64>,
    order: Vec<(usize, u64)>,
    // instructions behind accesses that were left out
    gaps: usize,
}

impl Clocks {
    fn new(cores: u16) -> Self {
        Self { cores, times: vec![0; 8], order: Vec::new(), gaps: 0 }
    }
}

impl CoreModel for Clocks {
    fn cores(&self) -> u16 {
        self.cores
    }

    fn access(&mut self, _core: u16, place: usize, access: &Access) -> Result<()> {
        self.order.push((place, self.times[place]));
        self.times[place] += if access.instruction.is_multiple_of(2) { 10 } else { 100 };
        Ok(())
    }
}

impl TimedModel for Clocks {
    fn time(&self, place: usize) -> u64 {
        self.times[place]
    }

    fn wait_until(&mut self, place: usize, time: u64) {
        self.times[place] = self.times[place].max(time);
    }

    fn leave_out(&mut self, _place: usize) {
        self.gaps += 1;
    }
}

/// Threads of which the first does accesses of 10, the second of 100, and so on.
fn threads(count: u32, accesses: u32) -> Vec<u8> {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, count);
    let starts: Vec<u64> = (0..count).map(|_| builder.number()).collect();
    for (at, start) in starts.into_iter().enumerate() {
        let mut thread = ThreadBuilder::new(7, 100 + at as u32);
        thread.point(SyncPoint::Start, start);
        for _ in 0..accesses {
            thread.access(first + at as u64, 0x1000 * at as u64, 8, true, 1);
        }
        builder.thread(&mut thread);
    }
    builder.finish()
}

fn run(bytes: &[u8], cores: u16, options: TimedOptions) -> (ReplayStats, Clocks) {
    run_within(bytes, cores, options, u64::MAX)
}

/// Runs with at most `limit` accesses of each thread.
fn run_within(bytes: &[u8], cores: u16, options: TimedOptions, limit: u64) -> (ReplayStats, Clocks) {
    let trace = Trace::from_bytes(bytes).expect("a trace");
    let excerpt = Excerpt::read(&trace, 7, limit).expect("an excerpt");
    let mut clocks = Clocks::new(cores);
    let stats = replay_by_time(&excerpt, &mut clocks, options).expect("a replay");
    (stats, clocks)
}

#[test]
fn accesses_of_all_cores_come_in_the_order_of_time() {
    let (stats, clocks) = run(&threads(2, 50), 2, TimedOptions::new(1 << 20, 0));
    assert_eq!(stats.accesses(), 100);
    assert!(clocks.order.is_sorted_by_key(|(_, time)| *time), "{:?}", clocks.order);
    assert_eq!(clocks.times[..2], [500, 5000]);
}

#[test]
fn threads_of_one_core_do_not_run_at_once() {
    let (_, clocks) = run(&threads(2, 50), 1, TimedOptions::new(200, 0));
    assert!(clocks.order.is_sorted_by_key(|(_, time)| *time), "{:?}", clocks.order);
    assert_eq!(clocks.times[..2].iter().max(), Some(&5500));
    let switches = clocks.order.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    assert!(switches > 4, "{switches}");
}

#[test]
fn threads_that_were_made_run_beside_the_one_that_shares_a_core_with_their_maker() {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, 1);
    let [start, made, first_start, other_made, other_start, end, joined] =
        std::array::from_fn(|_| builder.number());
    let mut maker = ThreadBuilder::new(7, 1);
    maker.point(SyncPoint::Start, start);
    maker.point(SyncPoint::Clone, made);
    maker.point(SyncPoint::Clone, other_made);
    maker.point(SyncPoint::Waited, joined);
    builder.thread(&mut maker);
    for (thread, start) in [(2, first_start), (3, other_start)] {
        let mut worker = ThreadBuilder::new(7, thread);
        worker.point(SyncPoint::Start, start);
        for _ in 0..50 {
            worker.access(first, 0x1000, 8, true, 1);
        }
        if thread == 3 {
            worker.point(SyncPoint::Exit, end);
        }
        builder.thread(&mut worker);
    }
    let (_, clocks) = run(&builder.finish(), 2, TimedOptions::new(1 << 20, 0));
    assert!(clocks.order.is_sorted_by_key(|(_, time)| *time), "{:?}", clocks.order);
    let switches = clocks.order.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    assert!(switches > 4, "{switches}");
}

#[test]
fn a_thread_begins_when_it_was_created_however_late_in_the_recording() {
    let begin = |in_time: bool| {
        let mut builder = Builder::new(1);
        let first = builder.instructions(0x40_0000, 2);
        let mut number = || builder.number();
        let (start, refused, made) = (number(), number(), number());
        let early = number();
        let (other_refused, other_made) = (number(), number());
        let (late, other_start) = (number(), number());
        let mut maker = ThreadBuilder::new(7, 1);
        maker.point(SyncPoint::Start, start);
        maker.access(first, 0x1000, 8, true, 1);
        // `clone3` fails, and `clone` follows
        maker.point(SyncPoint::Clone, refused);
        maker.point(SyncPoint::Clone, made);
        maker.access(first + 1, 0x1000, 8, true, 1000);
        maker.point(SyncPoint::Clone, other_refused);
        maker.point(SyncPoint::Clone, other_made);
        builder.thread(&mut maker);
        for (thread, start) in [(2, if in_time { early } else { late }), (3, other_start)] {
            let mut worker = ThreadBuilder::new(7, thread);
            worker.point(SyncPoint::Start, start);
            worker.access(first, 0x2000, 8, true, 1);
            builder.thread(&mut worker);
        }
        run(&builder.finish(), 3, TimedOptions::new(1 << 20, 0)).1.order
    };
    assert_eq!(begin(false), begin(true));
    let times: Vec<u64> =
        begin(false).iter().filter(|(place, _)| *place > 0).map(|(_, time)| *time).collect();
    assert!(times[0] < 110 && times[1] >= 110, "the second call comes at 110: {times:?}");
}

#[test]
fn one_that_waited_goes_on_when_the_other_has_come_so_far() {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, 2);
    let (start, other_start) = (builder.number(), builder.number());
    let (wake, waited) = (builder.number(), builder.number());
    let mut reader = ThreadBuilder::new(7, 2);
    reader.point(SyncPoint::Start, other_start);
    reader.point(SyncPoint::Waited, waited);
    reader.access(first, 0x1000, 8, false, 1);
    builder.thread(&mut reader);
    let mut writer = ThreadBuilder::new(7, 1);
    writer.point(SyncPoint::Start, start);
    for _ in 0..10 {
        writer.access(first + 1, 0x1000, 8, true, 1);
    }
    writer.point(SyncPoint::Wake, wake);
    builder.thread(&mut writer);
    let (_, clocks) = run(&builder.finish(), 2, TimedOptions::new(1 << 20, 30));
    assert_eq!(clocks.order.last(), Some(&(1, 1030)), "{:?}", clocks.order);
}

#[test]
fn a_seed_decides_when_threads_begin() {
    let trace = threads(3, 10);
    let with = |seed| run(&trace, 3, TimedOptions::new(1 << 20, 0).with_skew(5000, seed)).1.order;
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn a_seed_decides_when_a_thread_begins_after_its_creation() {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, 2);
    let (start, made, created) = (builder.number(), builder.number(), builder.number());
    let mut maker = ThreadBuilder::new(7, 1);
    maker.point(SyncPoint::Start, start);
    (0..500).for_each(|_| maker.access(first + 1, 0x1000, 8, true, 1));
    maker.point(SyncPoint::Clone, made);
    builder.thread(&mut maker);
    let mut worker = ThreadBuilder::new(7, 2);
    worker.point(SyncPoint::Start, created);
    worker.access(first, 0x2000, 8, true, 1);
    builder.thread(&mut worker);
    let trace = builder.finish();
    let begin = |seed| {
        let options = TimedOptions::new(1 << 20, 0).with_skew(5000, seed);
        let order = run(&trace, 2, options).1.order;
        let time = |of| order.iter().rev().find(|(place, _)| *place == of).expect("an access").1;
        time(1) - (time(0) + 100)
    };
    let delays: Vec<u64> = (1..=8).map(begin).collect();
    assert!(delays.iter().all(|delay| *delay < 5000), "{delays:?}");
    assert!(delays.windows(2).all(|pair| pair[0] != pair[1]), "{delays:?}");
}

#[test]
fn a_limit_replays_pieces_from_the_middle_of_each_part_of_a_thread() {
    let (stats, _) = run_within(&threads(2, 320), 2, TimedOptions::new(1 << 20, 0), 80);
    assert_eq!(stats.accesses(), 160);
    let with_end = |at: u64| {
        let mut builder = Builder::new(1);
        let first = builder.instructions(0x40_0000, 2);
        let start = builder.number();
        let mut thread = ThreadBuilder::new(7, 1);
        thread.point(SyncPoint::Start, start);
        (0..320).for_each(|now| thread.access(first + u64::from(now >= at), 0x1000, 8, true, 1));
        builder.thread(&mut thread);
        let (_, clocks) = run_within(&builder.finish(), 1, TimedOptions::new(1 << 20, 0), 80);
        assert_eq!(clocks.gaps, 16);
        clocks.times[0]
    };
    assert_eq!(with_end(160), 40 * 10 + 40 * 100, "half of the pieces are in each half");
    assert_eq!(with_end(314), 80 * 10, "an end in the last part of a part is not replayed");
}

#[test]
fn a_limit_of_less_than_a_piece_replays_the_last_accesses() {
    let (stats, clocks) = run_within(&threads(1, 50), 1, TimedOptions::new(1 << 20, 0), 3);
    assert_eq!((stats.accesses(), clocks.times[0], clocks.gaps), (3, 30, 1));
}

#[test]
fn who_spins_goes_on_as_soon_as_the_other_is_done() {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_0000, 2);
    let starts = [builder.number(), builder.number()];
    let (spins, spun) = (builder.number(), builder.number());
    let mut worker = ThreadBuilder::new(7, 100);
    worker.point(SyncPoint::Start, starts[0]);
    (0..50).for_each(|_| worker.access(first, 0x1000, 8, true, 1));
    worker.point(SyncPoint::Spins, spins);
    (0..50).for_each(|_| worker.access(first, 0x1000, 8, true, 1));
    builder.thread(&mut worker);
    let mut waiter = ThreadBuilder::new(7, 101);
    waiter.point(SyncPoint::Start, starts[1]);
    waiter.point(SyncPoint::Spun, spun);
    waiter.access(first, 0x2000, 8, true, 1);
    builder.thread(&mut waiter);
    let (_, clocks) = run(&builder.finish(), 2, TimedOptions::new(1 << 20, 4000));
    let waited = clocks.order.iter().find(|(place, _)| *place == 1).expect("an access").1;
    assert_eq!(waited, 500, "the fifty accesses, and no wake-up");
    assert_eq!(clocks.times[0], 1000, "who begins to spin waits for nobody");
}
