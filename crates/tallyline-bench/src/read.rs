//! `tallyline-bench read`: what reading one counter costs, by how many CPUs are possible and how
//! many of them counted. Again and again the same counter: its lines are in the nearest cache, and
//! what is left is the walk.

use super::fill::{Counting, Real, on_cpu};
use super::report::{Bound, Case, Report, Scale, Target};
use super::sides::units::{Shape, Units};
use super::sides::{self, Side};
use super::{Context, runner};
use anyhow::{Context as _, Result, ensure};
use statctr::topology::Topology;
use statctr::{ApproximateCounter, Counter, Placement, Pool};

/// The sizes of the made-up machines.
const CPUS: [u32; 4] = [8, 32, 192, 1024];

/// The name of reads of an approximate counter.
const APPROXIMATE: &str = "approximate/read";

/// A side with its name and scale.
type Named = (&'static str, Scale, Box<dyn Side>);

/// Runs the benchmark `read`: the time of reading one counter while each number of threads reads.
pub(crate) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let sides = sides(if context.quick { &CPUS[..2] } else { &CPUS })?;
    let loops: Vec<&dyn Side> = sides.iter().map(|(.., side)| side.as_ref()).collect();
    #[cfg(not(feature = "contatori"))]
    report.skip("contatori/read", "built without the feature `contatori`");
    for &threads in &context.threads {
        let progress = context.progress(&format!("read, {threads} threads"));
        let settings = context.settings(loops.len());
        let outcomes = runner::measure(&context.cpus[..threads], &loops, settings, &mut |done, all| {
            progress.show(done, all)
        })?;
        let cases: Vec<Case> = sides
            .iter()
            .zip(outcomes)
            .filter_map(|((name, scale, _), outcome)| {
                Case::measured(*name, threads, *scale, "ns/read", outcome)
            })
            .collect();
        compare(report, &cases);
        report.cases.extend(cases);
    }
    if !context.quick {
        aim(report, &CPUS);
    }
    report.notes.extend([
        "ns/read: time of one thread for one read of the same counter again and again.".to_owned(),
        "walk-possible/read: every possible CPU's word, each on a line of its own; thread-slots/read: as many slots as CPUs.".to_owned(),
    ]);
    Ok(())
}

fn sides(sizes: &[u32]) -> Result<Vec<Named>> {
    let real = Real::find()?;
    let at = |cpus, used| Scale { cpus: Some(cpus), used: Some(used), groups: None };
    let mut all: Vec<Named> = vec![("shared-atomic/read", Scale::default(), sides::shared::read())];
    #[cfg(feature = "contatori")]
    all.push(("contatori/read", Scale::default(), sides::contatori::read()));
    for &cpus in sizes {
        let everyone = real.countable(cpus);
        let first = everyone.first().copied().into_iter().collect::<Vec<_>>();
        for counting in [first, everyone] {
            let scale = at(cpus, counting.len() as u32);
            let (counter, approximate) = counted(cpus, &counting)?;
            all.push(("fixed/read", scale, sides::fixed::read(counter)));
            all.push((APPROXIMATE, scale, sides::fixed::approximate(approximate)));
        }
        all.push(("thread-slots/read", at(cpus, cpus), sides::slots::read(cpus as usize)));
        let shape = Shape { items: 1, group_words: 8, groups: 1, stride: 4096 + 64 };
        let units = Units::new(cpus as usize, shape).context("no memory for the units")?;
        units.populate(|cpu, _, _| cpu as u64);
        all.push(("walk-possible/read", at(cpus, cpus), sides::units::read_one(units)));
    }
    Ok(all)
}

/// Returns a counter on a machine with `cpus` possible CPUs, on which the given ones have counted 1 each, and an
/// approximate one beside it, whose readers would have to walk as many.
fn counted(cpus: u32, counting: &[Counting]) -> Result<(Counter, ApproximateCounter)> {
    let topology = Topology::synthetic(cpus).build()?;
    let pool = Pool::builder().topology(topology).placement(Placement::Fixed).unit_bytes(4096).build()?;
    let counter = Counter::new_in(&pool, 0)?;
    let approximate = ApproximateCounter::new_in(&pool, 0, 32)?;
    for counting in counting {
        match *counting {
            Counting::On(cpu) => on_cpu(cpu, || counter.inc())?,
            Counting::As(cpu) => counter.add_on_synthetic(cpu, 1)?,
        }
    }
    ensure!(counter.read() == counting.len() as u64, "the counter comes to a wrong sum");
    Ok((counter, approximate))
}

/// Aims at reads of an approximate counter that take as long on a large machine as on a small one.
fn aim(report: &mut Report, sizes: &[u32]) {
    let most = |cpus: u32| {
        let of_size =
            |case: &&Case| case.case == APPROXIMATE && case.threads == 1 && case.scale.cpus == Some(cpus);
        report.cases.iter().filter(of_size).map(|case| case.figure.median).reduce(f64::max)
    };
    if let [few, .., many] = sizes {
        let name = format!("{APPROXIMATE}, {many} CPUs over {few}");
        let ratio = most(*many).zip(most(*few)).map(|(over, under)| over / under);
        report.targets.push(Target::new(name, Bound::AtMost, 1.25, "x", ratio));
    }
}

/// Compares the walk over all possible CPUs with ours, with one CPU used and with all.
fn compare(report: &mut Report, cases: &[Case]) {
    for ours in cases.iter().filter(|case| case.case == "fixed/read") {
        let theirs =
            cases.iter().find(|case| case.case == "walk-possible/read" && case.scale.cpus == ours.scale.cpus);
        if let Some(mut ratio) = theirs.and_then(|theirs| report.ratio(theirs, ours)) {
            ratio.scale = ours.scale;
            report.ratios.push(ratio);
        }
    }
}
