//! `tallyline-bench fold`: what it costs to read whole groups of counters of many CPUs.
//!
//! The CPUs are made up, the memory and the reading are real: every unit is written with values
//! that are known, and each way to read them must come to the right sums before it is timed.

use super::fill::{Counting, Real, on_cpu};
use super::report::{Bound, Case, Report, Scale, Target};
use super::runner::{self, Settings, SideResult};
use super::sides::units::{self, Shape, Streams, Units};
use super::sides::{Calls, Side};
use super::{Context, machine};
use anyhow::{Context as _, Result, ensure};
use statctr::topology::{CpuId, Topology};
use statctr::{Group, GroupArray, Item, ItemSpec, Placement, Pool, Schema, VectorWidth, fold_groups};
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

/// Items of a group: as many as the IPv6 statistics of an interface that the kernel folds.
const ITEMS: usize = 36;

/// Groups that are folded: a thousand containers, each with an interface.
const GROUPS: usize = 1000;

/// The sizes of the made-up machines.
const CPUS: [u32; 5] = [8, 32, 160, 192, 1024];

/// The machine with many possible CPUs of which few are there.
const POSSIBLE: u32 = 192;
const PRESENT: u32 = 32;

/// At most so many rounds where nobody says otherwise: a pass over all CPUs takes milliseconds.
const ROUNDS: usize = 21;

/// Rounds of the comparison beyond the last-level cache, where one pass takes long.
const FAR_ROUNDS: usize = 7;

/// Runs the benchmark `fold`: the time of reading all items (64-bit statistics) of many counter groups, on synthetic
/// machines of several sizes, by each number of threads.
pub(crate) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let real = Real::find()?;
    let (cpus, groups) = if context.quick { (&CPUS[..2], GROUPS / 20) } else { (&CPUS[..], GROUPS) };
    for &cpus in cpus {
        ways_to_fold(context, report, &real, cpus, groups, "")?;
    }
    if !context.quick {
        match near_groups() {
            Some(groups) => ways_to_fold(context, report, &real, NEAR_CPUS, groups, NEAR)?,
            None => report.skip(
                &format!("item-major{NEAR}, cpu-major{NEAR}"),
                "the size of the second-level cache is not known",
            ),
        }
    }
    few_of_many(context, report, &real, &Few { groups, suffix: "", value, rounds: usize::MAX })?;
    if !context.quick {
        match far_groups() {
            Ok(groups) => {
                let far = Few { groups, suffix: FAR, value: value_per_line, rounds: FAR_ROUNDS };
                few_of_many(context, report, &real, &far)?;
            }
            Err(reason) => report.skip(&format!("possible-192{FAR}, present-32{FAR}"), &reason),
        }
    }
    report.cases.sort_by_key(|case| case.threads);
    compare(report);
    if !context.quick {
        aim(report);
    }
    notes(report);
    Ok(())
}

/// The suffix of the names of cases whose data fits the second-level cache, where the fold's algorithm shows
/// more than the memory's speed does.
const NEAR: &str = "-in-l2";
const NEAR_CPUS: u32 = 160;

/// Returns the number of groups of [`NEAR_CPUS`] CPUs that fill half of the second-level cache.
fn near_groups() -> Option<usize> {
    let group_bytes = (ITEMS.next_multiple_of(8) * 8) as u64 * u64::from(NEAR_CPUS);
    usize::try_from(machine::cache_bytes(2)? / 2 / group_bytes).ok().filter(|&groups| groups > 0)
}

/// The suffix of the names of cases whose data does not fit the last-level cache.
const FAR: &str = "-beyond-llc";

/// Returns the number of groups that make the data of the present CPUs alone half as large again as the last-level
/// cache, so that nothing of it is left there from pass to pass; or the reason why that cannot be had.
fn far_groups() -> Result<usize, String> {
    let cache = machine::last_level_cache_bytes().ok_or("the size of the last-level cache is not known")?;
    let memory = machine::memory_available().ok_or("how much memory is free is not known")?;
    let group_bytes = (ITEMS.next_multiple_of(8) * 8) as u64;
    let groups = (cache * 3 / 2).div_ceil(group_bytes * u64::from(PRESENT));
    // one pool with all units written and two with those of the present CPUs
    let wanted = groups * group_bytes * u64::from(POSSIBLE + 2 * PRESENT);
    if wanted > memory / 2 {
        return Err(format!(
            "the last-level cache is {} MiB, data beyond it takes {} MiB, and {} MiB of memory are free",
            cache >> 20,
            wanted >> 20,
            memory >> 20
        ));
    }
    usize::try_from(groups).map_err(|error| error.to_string())
}

/// Returns the value that a CPU counts in an item of a group.
fn value(cpu: usize, group: usize, item: usize) -> u64 {
    (cpu * 1_000_003 + group * 1009 + item + 1) as u64
}

/// Returns the value to count in the comparisons beyond the cache: [`value`] once in every line, which makes
/// every page and line real at an eighth of the time.
fn value_per_line(cpu: usize, group: usize, item: usize) -> u64 {
    if item.is_multiple_of(8) { value(cpu, group, item) } else { 0 }
}

type Value = fn(usize, usize, usize) -> u64;

/// Returns the schema of the groups that are folded.
fn schema() -> Result<Schema> {
    let items = (0..ITEMS).map(|item| ItemSpec::new(format!("item{item}")));
    Ok(Schema::new(items, &[])?)
}

/// Returns a pool for a made-up machine, with room for all groups in one unit.
fn pool(cpus: u32, groups: usize, schema: &Schema) -> Result<Pool> {
    let unit_bytes = (groups * schema.chunks() * 64).next_multiple_of(4096);
    Ok(Pool::builder()
        .topology(Topology::synthetic(cpus).build()?)
        .placement(Placement::Fixed)
        .unit_bytes(unit_bytes)
        .build()?)
}

/// Counts on each CPU: `add` for one that we run on, `add_on_synthetic` for one that is made up.
fn count(
    counting: &[Counting],
    groups: usize,
    schema: &Schema,
    value: Value,
    add: impl Fn(usize, Item, u64) + Sync,
    add_as: impl Fn(CpuId, usize, Item, u64) -> statctr::Result<()>,
) -> Result<()> {
    let each = |cpu: CpuId| {
        let pairs = (0..groups).flat_map(|group| schema.items().map(move |item| (group, item)));
        pairs
            .map(move |(group, item)| (group, item, value(cpu.index(), group, item.index())))
            .filter(|(.., value)| *value != 0)
    };
    for &counting in counting {
        match counting {
            Counting::On(cpu) => {
                on_cpu(cpu, || each(cpu).for_each(|(group, item, value)| add(group, item, value)))?
            }
            Counting::As(cpu) => {
                each(cpu).try_for_each(|(group, item, value)| add_as(cpu, group, item, value))?
            }
        }
    }
    Ok(())
}

/// Returns the expected sums of a fold of all groups.
fn due(counting: &[Counting], groups: usize, value: Value) -> Vec<u64> {
    let sum = |group, item| {
        counting
            .iter()
            .map(|counting| value(counting.cpu().index(), group, item))
            .fold(0u64, u64::wrapping_add)
    };
    (0..groups * ITEMS).map(|index| sum(index / ITEMS, index % ITEMS)).collect()
}

/// A buffer for each thread that folds.
struct Buffers(Vec<Mutex<Vec<u64>>>);

impl Buffers {
    fn new(threads: usize, len: usize) -> Self {
        Buffers((0..threads).map(|_| Mutex::new(vec![0; len])).collect())
    }

    fn with(&self, thread: usize, work: impl FnOnce(&mut [u64])) {
        let mut buffer = self.0[thread].lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut buffer);
        black_box(&mut *buffer);
    }
}

/// Returns a side that folds all groups once by one of our methods, after a run that has to succeed.
fn folding(
    threads: usize,
    len: usize,
    fold: impl Fn(&mut [u64]) -> statctr::Result<()> + Sync + 'static,
) -> Box<dyn Side> {
    let buffers = Buffers::new(threads, len);
    Box::new(Calls(move |thread, n| {
        buffers.with(thread, |sums| (0..n).for_each(|_| fold(sums).expect("folded before")));
    }))
}

/// Folds group after group, CPU by CPU.
fn fold_cpu_major(groups: &[Group], sums: &mut [u64]) -> statctr::Result<()> {
    groups.iter().zip(sums.chunks_exact_mut(ITEMS)).try_for_each(|(group, sums)| group.fold_into(sums))
}

/// Folds all groups at once.
fn fold_bulk(groups: &[Group], sums: &mut [u64]) -> statctr::Result<()> {
    let groups: Vec<&Group> = groups.iter().collect();
    fold_groups(&groups, sums)
}

/// Measures folds item by item, CPU by CPU and all groups at once, against a plain read of the same bytes.
fn ways_to_fold(
    context: &Context,
    report: &mut Report,
    real: &Real,
    cpus: u32,
    groups: usize,
    suffix: &str,
) -> Result<()> {
    let schema = schema()?;
    let pool = pool(cpus, groups, &schema)?;
    let ours =
        Arc::new((0..groups).map(|_| Group::new_in(&pool, &schema)).collect::<statctr::Result<Vec<_>>>()?);
    let counting = real.countable(cpus);
    count(
        &counting,
        groups,
        &schema,
        value,
        |group, item, value| ours[group].add(item, value),
        |cpu, group, item, value| ours[group].add_on_synthetic(cpu, item, value),
    )?;
    let shape = Shape { items: ITEMS, group_words: schema.chunks() * 8, groups, stride: pool.cost().stride };
    let theirs = theirs(&ours, &counting, shape)?;
    let width = VectorWidth::detect().bytes();
    check(&ours, &theirs, &due(&counting, groups, value), width)?;
    report.note(match theirs.is_library() {
        true => "All ways read the same memory.",
        false => "item-major and read-bandwidth read a copy of the memory: the library's could not be found.",
    });

    let bytes = (counting.len() * groups * shape.group_words * 8) as u64;
    for &threads in &context.threads {
        let (cpu_major, bulk) = (Arc::clone(&ours), Arc::clone(&ours));
        let sides: [Box<dyn Side>; 5] = [
            units::item_major(&theirs, threads),
            folding(threads, groups * ITEMS, move |sums| fold_cpu_major(&cpu_major, sums)),
            folding(threads, groups * ITEMS, move |sums| fold_bulk(&bulk, sums)),
            units::read_bandwidth(&theirs, Streams::One, width),
            units::read_bandwidth(&theirs, Streams::Four, width),
        ];
        let names = ["item-major", "cpu-major", "bulk", BANDWIDTH, BANDWIDTH];
        let settings = settings(context, sides.len());
        let mut cases = Vec::new();
        let scale =
            Scale { cpus: Some(cpus), used: Some(counting.len() as u32), groups: Some(groups as u64) };
        for (name, outcome) in names.iter().zip(rounds(
            context,
            &sides,
            threads,
            settings,
            &format!("fold{suffix}, {cpus} CPUs"),
        )?) {
            cases.extend(case(&format!("{name}{suffix}"), threads, scale, groups, bytes, outcome));
        }
        keep_better_scan(&mut cases, &format!("{BANDWIDTH}{suffix}"));
        report.cases.extend(cases);
    }
    Ok(())
}

/// Returns the memory that the others' ways read: the library's, else a copy of it. In either case that of
/// the CPUs that count, as ours read.
fn theirs(ours: &Arc<Vec<Group>>, counting: &[Counting], shape: Shape) -> Result<Arc<Units>> {
    let real = counting.iter().find_map(|counting| match counting {
        Counting::On(cpu) => Some(cpu.index()),
        Counting::As(_) => None,
    });
    let cpus = || counting.iter().map(|counting| counting.cpu().index());
    if let Some(units) = real.and_then(|real| Units::of_groups(ours, cpus(), real, shape)) {
        return Ok(Arc::new(units));
    }
    let units = Units::new(counting.len(), shape)?;
    units.populate(|index, group, item| value(counting[index].cpu().index(), group, item));
    Ok(Arc::new(units))
}

/// Comparisons that a run is made of, to share the time out.
const PARTS: usize = CPUS.len() + 3;

fn settings(context: &Context, sides: usize) -> Settings {
    let mut settings = context.settings(sides * PARTS);
    if context.rounds.is_none() {
        settings.rounds = settings.rounds.min(ROUNDS);
    }
    settings
}

const BANDWIDTH: &str = "read-bandwidth";

/// Leaves of the two scans the one that is faster.
fn keep_better_scan(cases: &mut Vec<Case>, scan: &str) {
    for (case, streams) in cases.iter_mut().filter(|case| case.case == scan).zip([1, 4]) {
        case.streams = Some(streams);
    }
    let best = cases
        .iter()
        .filter(|case| case.case == scan)
        .map(|case| case.figure.median)
        .fold(f64::INFINITY, f64::min);
    cases.retain(|case| case.case != scan || case.figure.median == best);
}

/// Runs the sides; what each came to, in nanoseconds per pass.
fn rounds(
    context: &Context,
    sides: &[Box<dyn Side>],
    threads: usize,
    settings: Settings,
    what: &str,
) -> Result<Vec<SideResult>> {
    let sides: Vec<&dyn Side> = sides.iter().map(AsRef::as_ref).collect();
    let progress = context.progress(&format!("{what}, {threads} threads"));
    runner::measure(&context.cpus[..threads], &sides, settings, &mut |done, all| progress.show(done, all))
}

/// Returns a case from its outcome, whose rounds are nanoseconds for all groups.
fn case(
    name: &str,
    threads: usize,
    scale: Scale,
    groups: usize,
    bytes: u64,
    outcome: SideResult,
) -> Option<Case> {
    let per_group = outcome.rounds.iter().map(|time| time / groups as f64).collect();
    let outcome = SideResult { rounds: per_group, ..outcome };
    let mut case = Case::measured(name, threads, scale, "ns/group", outcome)?;
    case.bytes = Some(bytes);
    case.gb_per_s = Some(bytes as f64 / (case.figure.median * groups as f64));
    Some(case)
}

/// Checks that every method comes to the right sums before it is timed.
fn check(ours: &[Group], theirs: &Arc<Units>, due: &[u64], width: usize) -> Result<()> {
    let mut sums = vec![0; due.len()];
    fold_cpu_major(ours, &mut sums)?;
    ensure!(sums == due, "cpu-major comes to wrong sums");
    sums.fill(0);
    fold_bulk(ours, &mut sums)?;
    ensure!(sums == due, "bulk comes to wrong sums");
    ensure!(units::item_major_sums(theirs) == due, "item-major comes to wrong sums");
    let all = due.iter().fold(0u64, |all, sum| all.wrapping_add(*sum));
    for streams in [Streams::One, Streams::Four] {
        ensure!(units::scan_sum(theirs, streams, width) == all, "the scan comes to a wrong sum");
    }
    Ok(())
}

/// A comparison of many possible CPUs with few present ones.
struct Few {
    groups: usize,
    /// Behind the names of its cases.
    suffix: &'static str,
    value: Value,
    /// At most so many rounds.
    rounds: usize,
}

/// Measures the walk over all possible CPUs against the walk over those that are present.
fn few_of_many(context: &Context, report: &mut Report, real: &Real, few: &Few) -> Result<()> {
    let counted = |cpus| counted_array(real, cpus, few);
    let cow = counted(PRESENT)?;
    announce_all(&cow, real)?;
    // those of the CPUs that can count here
    let [all, some] = [POSSIBLE, PRESENT].map(|cpus| real.countable(cpus).len() as u32);
    let arrays = [
        ("possible-192", all, all, Arc::new(counted(POSSIBLE)?)),
        ("present-32", some, some, Arc::new(counted(PRESENT)?)),
        ("possible-192-cow", some, all, Arc::new(cow)),
    ];
    let chunks = schema()?.chunks();
    for &threads in &context.threads {
        let sides: Vec<Box<dyn Side>> = arrays
            .iter()
            .map(|(.., array)| {
                let array = Arc::clone(array);
                folding(threads, few.groups * ITEMS, move |sums| array.fold_into(sums))
            })
            .collect();
        let mut settings = settings(context, sides.len());
        settings.rounds = settings.rounds.min(few.rounds);
        let series =
            rounds(context, &sides, threads, settings, &format!("fold{}, 32 of 192 CPUs", few.suffix))?;
        let mut cases = Vec::new();
        for ((name, used, walked, _), rounds) in arrays.iter().zip(series) {
            let scale = Scale { cpus: Some(POSSIBLE), used: Some(*used), groups: Some(few.groups as u64) };
            let bytes = (*walked as usize * few.groups * chunks * 64) as u64;
            cases.extend(case(&format!("{name}{}", few.suffix), threads, scale, few.groups, bytes, rounds));
        }
        if let [possible, present, cow] = cases.as_slice() {
            let ratios = [report.ratio(possible, present), report.ratio(cow, present)];
            report.ratios.extend(ratios.into_iter().flatten());
        }
        report.cases.extend(cases);
    }
    Ok(())
}

/// Returns an array of groups on the machine with many possible CPUs, counted in on the first `used`.
fn counted_array(real: &Real, used: u32, few: &Few) -> Result<GroupArray> {
    let schema = schema()?;
    let array = GroupArray::new_in(&pool(POSSIBLE, few.groups, &schema)?, few.groups, &schema)?;
    let counting = real.countable(used);
    let group = |group| array.get(group).context("as many groups as were made");
    group(few.groups - 1)?;
    count(
        &counting,
        few.groups,
        &schema,
        few.value,
        |group, item, value| array.get(group).into_iter().for_each(|group| group.add(item, value)),
        |cpu, group, item, value| {
            array.get(group).map_or(Ok(()), |group| group.add_on_synthetic(cpu, item, value))
        },
    )?;
    let mut sums = vec![0; few.groups * ITEMS];
    array.fold_into(&mut sums)?;
    ensure!(sums == due(&counting, few.groups, few.value), "bulk comes to wrong sums");
    Ok(array)
}

/// Lets readers walk every CPU: adds nothing, on each CPU that has not counted. One page of its
/// unit becomes real, the rest stays the kernel's one page of zeros.
fn announce_all(array: &GroupArray, real: &Real) -> Result<()> {
    let item = array.schema().item(0).context("no items")?;
    let group = array.get(0).context("no groups")?;
    for counting in real.countable(POSSIBLE) {
        match counting {
            Counting::On(cpu) => on_cpu(cpu, || group.add(item, 0))?,
            Counting::As(cpu) => group.add_on_synthetic(cpu, item, 0)?,
        }
    }
    Ok(())
}

/// The pairs of algorithms that are compared: the first's time over the second's.
const RATIOS: [(&str, &str); 5] = [
    ("item-major", "cpu-major"),
    ("item-major", "bulk"),
    ("item-major", BANDWIDTH),
    ("cpu-major", "bulk"),
    (BANDWIDTH, "bulk"),
];

fn compare(report: &mut Report) {
    for (over, under) in RATIOS {
        for suffix in ["", NEAR] {
            report.compare(&format!("{over}{suffix}"), &format!("{under}{suffix}"));
        }
    }
    report.ratios.sort_by_key(|ratio| ratio.threads);
}

fn aim(report: &mut Report) {
    report.aim("item-major", "cpu-major", 1, Some(160), Bound::AtLeast, 4.0);
    report.aim("item-major", "bulk", 1, Some(160), Bound::AtLeast, 5.0);
    report.aim(&format!("item-major{NEAR}"), &format!("cpu-major{NEAR}"), 1, None, Bound::AtLeast, 4.0);
    report.aim(&format!("item-major{NEAR}"), &format!("bulk{NEAR}"), 1, None, Bound::AtLeast, 5.0);
    for cpus in CPUS {
        if let Some(share) = report.find_ratio(BANDWIDTH, "bulk", 1, Some(cpus)) {
            let what = format!("bulk, in parts of {BANDWIDTH}, {cpus} CPUs, 1 thread");
            report.targets.push(Target::new(what, Bound::AtLeast, 70.0, "%", share * 100.0));
        }
    }
    report.aim("possible-192", "present-32", 1, None, Bound::AtLeast, 5.0);
    report.aim(&format!("possible-192{FAR}"), &format!("present-32{FAR}"), 1, None, Bound::AtLeast, 5.0);
    if let Some(limit) = report.find_ratio("item-major", BANDWIDTH, 1, Some(160)) {
        report.notes.push(format!(
            "At 160 CPUs item-major takes {limit:.2} times as long as only reading the same bytes: no fold that \
             reads every line can be further ahead of it on this machine."
        ));
    }
}

fn notes(report: &mut Report) {
    let notes = [
        format!("ns/group: time for one group of {ITEMS} items over all CPUs that are walked, in one thread; GB/s: of whole lines, 10^9 bytes."),
        "item-major: every item over all CPUs, one accumulator, a table of offsets; cpu-major: each group CPU by CPU, all items at once; bulk: all groups at once.".into(),
        "read-bandwidth: the faster of 1 and 4 streams, with the library's vector width.".into(),
        format!("{NEAR}: so few groups that their data fills half of the second-level cache."),
        format!("{FAR}: the data of the 32 present CPUs alone is 1.5 times the last-level cache as reported; one item in each line was counted."),
        "possible-192-cow: 32 CPUs counted, all 192 are walked; the others' memory is the kernel's page of zeros.".into(),
    ];
    report.notes.extend(notes);
}
