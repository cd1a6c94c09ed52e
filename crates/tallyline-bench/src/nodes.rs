//! `tallyline-bench nodes`: what reads cost and what memory is taken on machines that may have many
//! more CPUs than write, by the way that readers find them.

use super::fill::{Counting, Real, on_cpu};
use super::report::{Bound, Case, Report, Scale};
use super::sides::looped::{Looped, Step, opaque};
use super::sides::units::{Shape, Units};
use super::sides::{self, Side};
use super::{Context, runner};
use anyhow::{Context as _, Result, ensure};
use statctr::topology::Topology;
use statctr::{Counter, CounterArray, Placement, Pool};
use std::sync::atomic::{AtomicU64, Ordering};

/// Possible CPUs of the made-up machines; the first is what the others are compared with.
const POSSIBLE: [u32; 3] = [8, 192, 1024];
/// The numbers of CPUs that write.
const USED: [usize; 3] = [1, 2, 32];
/// CPUs that are plugged in: those of the example that made others walk these and not all.
const PRESENT: u32 = 32;
/// Counters whose memory is looked at.
const COUNTERS: usize = 100_000;

/// Runs the benchmark `nodes`: the time and memory of counters on synthetic machines with far more CPUs than ever
/// write, read by one thread.
pub(crate) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let sizes = if context.quick { &POSSIBLE[..1] } else { &POSSIBLE };
    let sides = sides(sizes)?;
    let loops: Vec<&dyn Side> = sides.iter().map(|(.., side)| side.as_ref()).collect();
    let progress = context.progress("reads");
    let settings = context.settings(loops.len());
    let outcomes =
        runner::measure(&context.cpus[..1], &loops, settings, &mut |done, all| progress.show(done, all))?;
    for ((name, scale, _), outcome) in sides.iter().zip(outcomes) {
        report.cases.extend(Case::measured(*name, 1, *scale, "ns/read", outcome));
    }
    drop(progress);
    memory(context, report, sizes)?;
    compare(report, context.quick);
    report.notes.extend([
        "call/…: the read is a call; walk-possible and walk-present: every such CPU's word, each on a line of its own; fixed, flexible: the CPUs that wrote, by our mask.".to_owned(),
        format!("…/memory: of {COUNTERS} counters, all counted on by the CPUs in use; by the kernel's account."),
    ]);
    Ok(())
}

fn at(cpus: u32, used: usize) -> Scale {
    Scale { cpus: Some(cpus), used: Some(used as u32), groups: None }
}

struct CallCounter;

impl Step for CallCounter {
    type State = Counter;

    #[inline(always)]
    fn step(counter: &Counter, _turn: u64) {
        #[inline(never)]
        fn call(counter: &Counter) -> u64 {
            counter.read()
        }
        opaque(call(counter));
    }
}

struct CallWord;

impl Step for CallWord {
    type State = AtomicU64;

    #[inline(always)]
    fn step(word: &AtomicU64, _turn: u64) {
        #[inline(never)]
        fn call(word: &AtomicU64) -> u64 {
            opaque(word.load(Ordering::Relaxed))
        }
        opaque(call(word));
    }
}

type Named = (&'static str, Scale, Box<dyn Side>);

fn sides(sizes: &[u32]) -> Result<Vec<Named>> {
    let real = Real::find()?;
    let word = Looped::<CallWord>::with_shared_state(AtomicU64::new(0), |_| 0).counting(0).boxed();
    let mut all: Vec<Named> = vec![("call/one-word", Scale::default(), word)];
    for &possible in sizes {
        let countable = real.countable(possible);
        for used in USED.into_iter().filter(|&used| used <= countable.len()) {
            let names = [(Placement::Fixed, "call/fixed"), (Placement::Flexible, "call/flexible")];
            for (placement, name) in names {
                let pool = pool(possible, placement)?;
                let counter = Counter::new_in(&pool, 0)?;
                for counting in &countable[..used] {
                    match *counting {
                        Counting::On(cpu) => on_cpu(cpu, || counter.inc())?,
                        Counting::As(cpu) => counter.add_on_synthetic(cpu, 1)?,
                    }
                }
                ensure!(counter.read() == used as u64, "the counter comes to a wrong sum");
                let side = Looped::<CallCounter>::with_shared_state(counter, |_| 0).counting(0).boxed();
                all.push((name, at(possible, used), side));
            }
        }
        all.push(("walk-possible", at(possible, possible as usize), walk(possible)?));
        all.push((
            "walk-present",
            at(possible, PRESENT.min(possible) as usize),
            walk(PRESENT.min(possible))?,
        ));
    }
    Ok(all)
}

fn pool(possible: u32, placement: Placement) -> Result<Pool> {
    let topology = Topology::synthetic(possible).build()?;
    Ok(Pool::builder().topology(topology).placement(placement).build()?)
}

fn walk(cpus: u32) -> Result<Box<dyn Side>> {
    let shape = Shape { items: 1, group_words: 8, groups: 1, stride: 4096 + 64 };
    let units = Units::new(cpus as usize, shape).context("no memory for the units")?;
    units.populate(|cpu, _, _| cpu as u64);
    Ok(sides::units::read_one(units))
}

/// Measures the memory of counters when each number of CPUs has counted in all of them.
fn memory(context: &Context, report: &mut Report, sizes: &[u32]) -> Result<()> {
    let real = Real::find()?;
    let counters = if context.quick { COUNTERS / 100 } else { COUNTERS };
    for &possible in sizes.iter().filter(|&&possible| possible > 8 || context.quick) {
        let countable = real.countable(possible);
        for used in USED.into_iter().filter(|&used| used <= countable.len()) {
            for (placement, name) in
                [(Placement::Fixed, "fixed/memory"), (Placement::Flexible, "flexible/memory")]
            {
                let pool = pool(possible, placement)?;
                let array = CounterArray::new_in(&pool, counters, 0)?;
                let count = |counting: Counting| -> Result<()> {
                    match counting {
                        Counting::On(cpu) => on_cpu(cpu, || array.iter().for_each(|counter| counter.inc())),
                        Counting::As(cpu) => {
                            Ok(array.iter().try_for_each(|counter| counter.add_on_synthetic(cpu, 1))?)
                        }
                    }
                };
                countable[..used].iter().try_for_each(|&counting| count(counting))?;
                let memory = pool.memory()?;
                let scale = at(possible, used);
                report.cases.extend(Case::single(name, 1, scale, "bytes", memory.resident as f64));
                let name = format!("{name}-reserved");
                report.cases.extend(Case::single(name, 1, scale, "bytes", memory.reserved as f64));
            }
            let lines = (counters * 64 * possible as usize) as f64;
            let name = "line-per-counter-and-possible-cpu/memory (computed)";
            report.cases.extend(Case::single(name, 1, at(possible, used), "bytes", lines));
        }
    }
    Ok(())
}

fn compare(report: &mut Report, quick: bool) {
    let find = |report: &Report, name: &str, scale: Scale| report.case(name, 1, scale).cloned();
    for possible in POSSIBLE {
        for used in USED {
            for ours in ["call/fixed", "call/flexible"] {
                let Some(ours) = find(report, ours, at(possible, used)) else { continue };
                let present = PRESENT.min(possible) as usize;
                for (other, scale) in [
                    ("walk-possible", at(possible, possible as usize)),
                    ("walk-present", at(possible, present)),
                ] {
                    let other = find(report, other, scale);
                    let ratio = other.and_then(|other| report.ratio(&other, &ours));
                    report.ratios.extend(ratio.map(|mut ratio| {
                        ratio.scale = ours.scale;
                        ratio
                    }));
                }
            }
        }
    }
    if quick {
        return;
    }
    let one = find(report, "call/one-word", Scale::default());
    for name in ["call/fixed", "call/flexible"] {
        let (large, small) = (find(report, name, at(1024, 1)), find(report, name, at(8, 1)));
        for (under, limit) in [(&one, 2.0), (&small, 1.25)] {
            let Some((large, under)) = large.as_ref().zip(under.as_ref()) else { continue };
            let Some(ratio) = report.ratio(large, under) else { continue };
            let what = format!("{name}, 1 of 1024 CPUs, over {} {}", under.case, under.scale);
            let target =
                super::report::Target::new(what.trim_end(), Bound::AtMost, limit, "x", ratio.figure.median);
            report.ratios.push(ratio);
            report.targets.push(target);
        }
    }
}
