//! `tallyline-bench incremental`: folds that read what was written since the last one, against folds of all lines and
//! against reading item by item; and what their writers pay.
//!
//! The CPUs are made up. Before each fold another thread, on a CPU of its own where there are two, writes a share of
//! the groups, chosen at random, on all CPUs; then each way reads, in all orders of the ways equally often, as each finds
//! in the caches what the one before it left. *Scattered* is what is worst: each CPU writes groups of its own choice, and
//! nearly all lines were written by some CPU.

use super::fill::{Counting, Real};
use super::report::{Bound, Case, Report, Scale, Target};
use super::sides::units::{self, Shape, Units};
use super::sides::{self, Side, os};
use super::{Context, runner};
use anyhow::{Context as _, Result, anyhow, ensure};
use statctr::topology::{CpuId, Topology};
use statctr::{GroupArray, Item, ItemSpec, Placement, Pool, Schema, TrackedGroupArray};
use std::hint::black_box;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Items of a group, as in `fold`.
const ITEMS: usize = 36;
/// Groups that are folded.
const GROUPS: usize = 3000;
/// Groups that two threads fold from the last level of the caches.
const FEW_GROUPS: usize = 300;
/// The size of the made-up machine.
const CPUS: u32 = 160;
/// Pieces that two threads take in turn: a thread that the host runs more slowly takes fewer.
const PARTS: usize = 16;
/// The suffix of what is folded from there.
const FEW: &str = "-in-llc";
/// Shares of the groups that are written between two folds.
const SHARES: [Share; 6] = [
    Share { percent: 5, is_scattered: false, huge_pages: false },
    Share { percent: 25, is_scattered: false, huge_pages: false },
    Share { percent: 100, is_scattered: false, huge_pages: false },
    Share { percent: 5, is_scattered: true, huge_pages: false },
    Share { percent: 5, is_scattered: false, huge_pages: true },
    Share { percent: 25, is_scattered: false, huge_pages: true },
];
/// Rounds where nobody says otherwise: of three and of four ways each order that is taken comes equally often.
const ROUNDS: usize = 24;
/// Rounds before the figures count: the first folds read all.
const WARM_UP: usize = 3;

/// A part of the groups that is written.
#[derive(Debug, Clone, Copy)]
struct Share {
    percent: usize,
    /// Each CPU writes others.
    is_scattered: bool,
    /// Both sides ask for huge pages.
    huge_pages: bool,
}

impl Share {
    /// Returns the name of a way to read.
    fn name(self, way: &str) -> String {
        let scattered = if self.is_scattered { " scattered" } else { "" };
        let pages = if self.huge_pages { ", huge pages" } else { "" };
        format!("{way}, {} %{scattered}{pages}", self.percent)
    }
}

/// Runs the benchmark `incremental`: the time of reading only those counter groups that changed since the last
/// read, against reading all.
pub(crate) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let (cpus, groups) = if context.quick { (8, 50) } else { (CPUS, GROUPS) };
    let rounds = context.rounds.unwrap_or(if context.quick { 2 } else { ROUNDS }).min(ROUNDS);
    for share in SHARES {
        folds(context, report, share, cpus, groups, rounds)?;
    }
    two_threads(context, report, cpus, (groups, ""), rounds)?;
    two_threads(context, report, cpus, (groups * FEW_GROUPS / GROUPS, FEW), rounds)?;
    updates(context, report)?;
    for share in SHARES {
        report.compare(&share.name("item-major"), &share.name("incremental"));
        report.compare(&share.name("all-lines"), &share.name("incremental"));
    }
    for few in ["", FEW] {
        report.compare(&format!("one-thread{few}"), &format!("two-threads{few}"));
        report.compare(&format!("one-thread-reads{few}"), &format!("two-threads-read{few}"));
    }
    report.compare("tracked/add", "group-array/add");
    if !context.quick {
        aim(report);
    }
    report.notes.extend([
        format!("ns/group: time for one group of {ITEMS} items over all CPUs."),
        "all-lines: fold_into, which reads every line; two-threads: the same by fold_parts, in pieces that two threads take in turn, each on a CPU of its own.".into(),
        "one-thread-reads, two-threads-read: as many bytes read and added up: no fold gains more by a second thread than that does.".into(),
        format!("{FEW}: {FEW_GROUPS} groups, whose lines the last level of the caches holds."),
        "huge pages: both sides ask for them; whether they are there is the kernel's choice.".into(),
        "5 %: so many of the groups were written since the last fold, all lines of them, on all CPUs; scattered: each CPU wrote others, so that nearly all were written on some CPU.".into(),
    ]);
    Ok(())
}

fn aim(report: &mut Report) {
    for (share, limit) in SHARES.into_iter().zip([20.0, 5.0]) {
        let [over, under] = ["item-major", "incremental"].map(|way| share.name(way));
        report.aim(&over, &under, 1, Some(CPUS), Bound::AtLeast, limit);
    }
    for share in &SHARES[2..4] {
        // within what two measurements of one thing differ by
        let [over, under] = ["all-lines", "incremental"].map(|way| share.name(way));
        report.aim(&over, &under, 1, Some(CPUS), Bound::AtLeast, 0.95);
    }
    for few in ["", FEW] {
        let [one, two] = ["one-thread", "two-threads"].map(|way| format!("{way}{few}"));
        report.aim(&one, &two, 1, Some(CPUS), Bound::AtLeast, 1.6);
    }
    let time = |side: &str| report.case(side, 1, Scale::default()).map(|case| case.figure.median);
    let more = time("tracked/add").zip(time("group-array/add")).map(|(tracked, plain)| tracked - plain);
    report.targets.push(Target::new("tracked/add less group-array/add", Bound::AtMost, 1.0, "ns", more));
}

fn schema() -> Result<Schema> {
    Ok(Schema::new((0..ITEMS).map(|item| ItemSpec::new(format!("item{item}"))), &[])?)
}

fn pool(cpus: u32, groups: usize, schema: &Schema, huge_pages: bool) -> Result<Pool> {
    let lines = groups * schema.chunks();
    // with the stamps in front
    let unit_bytes = ((lines + lines.div_ceil(64) + 1) * 64).next_power_of_two().max(4096);
    let topology = Topology::synthetic(cpus).build()?;
    let builder = Pool::builder().topology(topology).placement(Placement::Fixed);
    Ok(builder.unit_bytes(unit_bytes).huge_pages(huge_pages).build()?)
}

/// Writes lines as the made-up CPUs, from a thread of its own.
struct Writer<'a> {
    array: &'a TrackedGroupArray,
    cpus: Vec<CpuId>,
    /// An item of each line of a group.
    items: Vec<Item>,
    /// The CPU that the thread runs on.
    on: usize,
    random: u64,
}

impl Writer<'_> {
    fn random(&mut self, below: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % below
    }

    /// Returns a share of the groups, chosen at random.
    fn choose(&mut self, share: Share) -> Vec<usize> {
        (0..self.array.len()).filter(|_| share.percent == 100 || self.random(100) < share.percent).collect()
    }

    /// Writes a share of the groups, and returns the number of additions.
    fn write(&mut self, share: Share) -> Result<u64> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                os::pin(self.on)
                    .map_err(|error| anyhow!("cannot keep a thread on CPU {}: {error}", self.on))?;
                let (mut written, mut groups) = (0, self.choose(share));
                for cpu in self.cpus.clone() {
                    if share.is_scattered {
                        groups = self.choose(share);
                    }
                    for &group in &groups {
                        let group = self.array.get(group).context("no such group")?;
                        self.items.iter().try_for_each(|item| group.add_on_synthetic(cpu, *item, 1))?;
                        written += self.items.len() as u64;
                    }
                }
                Ok(written)
            });
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

fn folds(
    context: &Context,
    report: &mut Report,
    share: Share,
    cpus: u32,
    groups: usize,
    rounds: usize,
) -> Result<()> {
    let schema = schema()?;
    let pool = pool(cpus, groups, &schema, share.huge_pages)?;
    let array = TrackedGroupArray::new_in(&pool, groups, &schema)?;
    if !array.is_tracked() {
        report.skip(&share.name("incremental"), "updates leave no marks on this machine");
        return Ok(());
    }
    let synthetic: Vec<CpuId> = Real::find()?
        .countable(cpus)
        .into_iter()
        .filter_map(|counting| if let Counting::As(cpu) = counting { Some(cpu) } else { None })
        .collect();
    let shape = Shape { items: ITEMS, group_words: schema.chunks() * 8, groups, stride: pool.cost().stride };
    let units = if share.huge_pages { Units::in_huge_pages } else { Units::new };
    let theirs = Arc::new(units(synthetic.len(), shape)?);
    theirs.populate(|cpu, group, item| (cpu * 1_000_003 + group * 1009 + item + 1) as u64);
    let item_major = units::item_major(&theirs, 1);
    let items: Vec<Item> = schema.items().step_by(8).collect();
    let mut writer = Writer {
        array: &array,
        cpus: synthetic.clone(),
        items,
        on: context.cpus.get(1).copied().unwrap_or(context.cpus[0]),
        random: 1,
    };
    let mut folds = array.incremental_fold()?;
    let mut all = vec![0; groups * ITEMS];
    let mut due = writer.write(Share { percent: 100, is_scattered: false, ..share })?;
    let mut series = [Vec::new(), Vec::new(), Vec::new()];
    let progress = context.progress(&share.name("incremental"));
    os::pin(context.cpus[0]).map_err(|error| anyhow!("cannot keep this thread on a CPU: {error}"))?;
    let mut read = 0;
    for round in 0..WARM_UP + rounds {
        due += writer.write(share)?;
        for way in runner::order(round, 3) {
            let start = Instant::now();
            match way {
                0 => _ = black_box(folds.fold()),
                1 => array.fold_into(black_box(&mut all))?,
                _ => item_major.run(0, 0, 1),
            }
            let time = start.elapsed().as_nanos() as f64 / groups as f64;
            if round >= WARM_UP {
                series[way].push(time);
            }
        }
        read = folds.lines_read();
        ensure!(folds.values() == all, "an incremental fold comes to other sums");
        ensure!(all.iter().sum::<u64>() == due, "updates were lost");
        progress.show(round as u64 + 1, (WARM_UP + rounds) as u64);
    }
    let scale = Scale { cpus: Some(cpus), used: Some(synthetic.len() as u32), groups: Some(groups as u64) };
    for (way, series) in ["incremental", "all-lines", "item-major"].into_iter().zip(series) {
        report.cases.extend(Case::new(share.name(way), 1, scale, "ns/group", series));
    }
    let lines = groups * schema.chunks();
    report.note(&format!(
        "{}: the last fold read {:.1} % of the lines.",
        share.name("incremental"),
        100.0 * read as f64 / lines as f64
    ));
    Ok(())
}

/// Folds an array on one thread, and divided between two, and reads as many bytes in the same ways. The cases are named
/// by the suffix of the number of groups.
fn two_threads(
    context: &Context,
    report: &mut Report,
    cpus: u32,
    (groups, suffix): (usize, &str),
    rounds: usize,
) -> Result<()> {
    let [first, second, ..] = context.cpus[..] else {
        report.skip(&format!("two-threads{suffix}"), "this process may run on one CPU");
        return Ok(());
    };
    let on = [first, second];
    let schema = schema()?;
    let pool = pool(cpus, groups, &schema, false)?;
    let array = GroupArray::new_in(&pool, groups, &schema)?;
    let counting = Real::find()?.countable(cpus);
    let synthetic = counting
        .iter()
        .filter_map(|counting| if let Counting::As(cpu) = counting { Some(*cpu) } else { None });
    let mut used = 0;
    for cpu in synthetic {
        used += 1;
        for group in (0..groups).filter_map(|group| array.get(group)) {
            schema.items().step_by(8).try_for_each(|item| group.add_on_synthetic(cpu, item, 1))?;
        }
    }
    let mut values = vec![0; groups * ITEMS];
    let lines = groups * schema.chunks();
    // written, so that each page is memory of its own
    let words: Vec<u64> = (0..lines * 8 * used as usize).map(|at| at as u64).collect();
    let mut series = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for round in 0..WARM_UP + rounds {
        for way in runner::order(round, series.len()) {
            let threads = 1 + way % 2;
            let parts = if threads == 1 { 1 } else { PARTS };
            let time = if way < 2 {
                let folds = array.fold_parts(parts, &mut values)?;
                let time = in_parallel(folds.into_iter().map(|part| move || part.fold()), &on[..threads])?;
                ensure!(values.iter().sum::<u64>() == lines as u64 * used, "a fold comes to a wrong sum");
                time
            } else {
                let pieces = words.chunks(words.len().div_ceil(parts).max(1));
                let sum = |piece: &[u64]| {
                    _ = black_box(piece.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
                };
                in_parallel(pieces.map(|piece| move || sum(piece)), &on[..threads])?
            };
            if round >= WARM_UP {
                series[way].push(time.as_nanos() as f64 / groups as f64);
            }
        }
    }
    let scale = Scale { cpus: Some(cpus), used: Some(used as u32), groups: Some(groups as u64) };
    let names = ["one-thread", "two-threads", "one-thread-reads", "two-threads-read"];
    for (name, series) in names.into_iter().zip(series) {
        report.cases.extend(Case::new(format!("{name}{suffix}"), 1, scale, "ns/group", series));
    }
    Ok(())
}

/// Runs pieces of work on a thread for each CPU of `on`, which take one after the other, as a pool's threads do, and
/// returns the time from when all threads run to when the last one ends. They wait for each other without sleep: to wake a
/// thread on an idle virtual CPU takes longer than some of the work.
fn in_parallel<W: FnOnce() + Send>(work: impl Iterator<Item = W>, on: &[usize]) -> Result<Duration> {
    let work = Mutex::new(work.collect::<Vec<W>>());
    let next = || work.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let running = AtomicUsize::new(0);
    let time = std::thread::scope(|scope| {
        let workers: Vec<_> = on
            .iter()
            .map(|&cpu| {
                let running = &running;
                scope.spawn(move || {
                    let pinned = os::pin(cpu);
                    running.fetch_add(1, Ordering::AcqRel);
                    while running.load(Ordering::Acquire) < on.len() {
                        std::hint::spin_loop();
                    }
                    let start = Instant::now();
                    while let Some(work) = next() {
                        work();
                    }
                    pinned.map(|()| start.elapsed())
                })
            })
            .collect();
        let mut times =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        times.try_fold(Duration::ZERO, |longest, time| time.map(|time| longest.max(time)))
    });
    time.context("cannot keep a thread on a CPU")
}

/// Times updates of an array that is tracked, and of one that is not.
fn updates(context: &Context, report: &mut Report) -> Result<()> {
    let pool = Pool::builder().placement(Placement::Fixed).build()?;
    let names = ["group-array/add", "tracked/add"];
    let both = [sides::arrays::groups_add(&pool)?, sides::arrays::tracked_add(&pool)?];
    let loops: Vec<&dyn Side> = both.iter().map(AsRef::as_ref).collect();
    for &threads in &context.threads {
        let progress = context.progress(&format!("updates, {threads} threads"));
        let settings = context.settings(loops.len());
        let outcomes = runner::measure(&context.cpus[..threads], &loops, settings, &mut |done, all| {
            progress.show(done, all)
        })?;
        for (name, outcome) in names.into_iter().zip(outcomes) {
            report.cases.extend(Case::measured(name, threads, Scale::default(), "ns/op", outcome));
        }
    }
    Ok(())
}
