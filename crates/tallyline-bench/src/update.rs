//! `tallyline-bench update`: what one update costs, ours and others', alone and in company.

use super::Context;
use super::report::{Bound, Case, Report, Scale, Target};
use super::runner;
use super::sides::{self, Available, Side};
use anyhow::Result;
use statctr::topology::{CpuId, Topology};
use statctr::{Placement, Pool, Registration};

/// The name of a side that thinks after each update.
const THINK: &str = "+think";

/// Runs the benchmark `update`: the time of counter updates by each number of threads, against other ways to count.
pub(crate) fn run(context: &Context, report: &mut Report) -> Result<()> {
    for &threads in &context.threads {
        let sides = sides(context, threads)?;
        let mut there: Vec<(&str, &dyn Side)> = Vec::new();
        for (name, side) in &sides {
            match side {
                Ok(side) => there.push((name, side.as_ref())),
                Err(reason) => report.skip(name, reason),
            }
        }
        let loops: Vec<&dyn Side> = there.iter().map(|(_, side)| *side).collect();
        let settings = context.settings_until_quiet(loops.len());
        let progress = context.progress(&format!("update, {threads} threads"));
        let outcomes = runner::measure(&context.cpus[..threads], &loops, settings, &mut |done, all| {
            progress.show(done, all)
        })?;
        for ((name, _), outcome) in there.iter().zip(outcomes) {
            let case = Case::measured(name.to_owned(), threads, Scale::default(), "ns/op", outcome);
            report.cases.extend(case);
        }
    }
    compare(report);
    if !context.quick {
        aim(report);
    }
    notes(report);
    Ok(())
}

/// Returns all sides, by name.
fn sides(context: &Context, threads: usize) -> Result<Vec<(String, Available)>> {
    let pool = Pool::builder().placement(Placement::Fixed).build()?;
    let striped = Pool::builder().placement(Placement::Striped).build()?;
    // one more than the largest CPU number there can be, also where a container hides CPUs in /sys
    let possible = Topology::current()?.possible().last().map_or(0, CpuId::index);
    let cpus = context.cpus.iter().fold(possible, |last, &cpu| last.max(cpu)) + 1;
    let ours = |side: statctr::Result<Box<dyn Side>>| side.map_err(|error| error.to_string());
    let mut all: Vec<(String, Available)> = Vec::new();
    let mut add = |name: &str, side: Available| all.push((name.to_owned(), side));
    for think in [false, true] {
        let name = |name: &str| if think { format!("{name}{THINK}") } else { name.to_owned() };
        add(&name("fixed/inc"), ours(sides::fixed::inc(&pool, think)));
        add(&name("fixed/inc-c"), sides::c::inc(think));
        add(&name("striped/inc"), ours(sides::fixed::inc(&striped, think)));
        add(&name("fixed/packet4"), ours(sides::fixed::packet4(&pool, think)));
        add(&name("rseq-minimal/inc"), sides::rseq_minimal::inc(cpus, think));
        add(&name("plain/inc"), Ok(sides::plain::inc(threads, think)));
        add(&name("nothing"), Ok(sides::plain::nothing(think)));
        add(&name("shared-atomic/inc"), Ok(sides::shared::inc(think)));
        add(&name("shared-atomic/packet4"), Ok(sides::shared::packet4(think)));
        add(&name("getcpu-atomic/inc"), Ok(sides::getcpu::inc(cpus, think)));
        add(&name("percpu-atomic/inc"), sides::percpu_atomic::inc(cpus, think));
        add(&name("thread-slots/inc"), Ok(sides::slots::inc(think)));
        #[cfg(feature = "contatori")]
        add(&name("contatori/inc"), Ok(sides::contatori::inc(think)));
        #[cfg(not(feature = "contatori"))]
        add(&name("contatori/inc"), Err("built without the feature `contatori`".into()));
    }
    add("fixed/inc-c-call", sides::c::call_inc());
    // processes with a registration each
    for (name, by) in [("libc-registers/inc", Registration::Libc), ("own-registers/inc", Registration::Own)] {
        add(name, sides::registered::inc(by, &context.cpus[..threads]));
    }
    // once: its counter is in no pool, and each side has its own
    add("static/inc", Ok(sides::fixed::static_inc()));
    add("static/inc-c", sides::c::static_inc());
    add("fixed/add", ours(sides::fixed::add(&pool)));
    add("fixed/add-c", sides::c::add());
    add("fixed/event2", ours(sides::fixed::event2(&pool)));
    add("fixed/observe", ours(sides::fixed::observe(&pool)));
    add("fixed/max", ours(sides::fixed::max(&pool)));
    add("fixed/max-rising", ours(sides::fixed::rising_max(&pool)));
    add("fixed/average", ours(sides::fixed::average(&pool)));
    add("rseq-minimal/add", sides::rseq_minimal::add(cpus));
    add("fixed/packet4-1group", ours(sides::fixed::packet4_one(&pool)));
    add("fixed/inc4", ours(sides::fixed::inc4(&pool)));
    add("fixed/inc4-1group", ours(sides::fixed::inc4_one(&pool)));
    add("shared-atomic/packet4-1group", Ok(sides::shared::packet4_one()));
    add("vec/inc", ours(sides::arrays::vec_inc(&pool)));
    add("vec/add", ours(sides::arrays::vec_add(&pool)));
    add("counter-array/inc", ours(sides::arrays::array_inc(&pool)));
    add("group-array/add", ours(sides::arrays::groups_add(&pool)));
    for (place, tables) in [("own", false), ("table", true)] {
        add(&format!("lazy/{place}"), ours(sides::lazy::update(tables)));
        add(&format!("lazy/{place}-c"), sides::lazy::update_c(tables));
    }
    Ok(all)
}

/// The pairs of sides that are compared: the first's time over the second's.
const RATIOS: [(&str, &str); 34] = [
    ("own-registers/inc", "libc-registers/inc"),
    ("shared-atomic/inc", "striped/inc"),
    ("shared-atomic/inc+think", "striped/inc+think"),
    ("striped/inc", "fixed/inc"),
    ("fixed/inc", "rseq-minimal/inc"),
    ("fixed/inc-c", "rseq-minimal/inc"),
    ("fixed/add", "rseq-minimal/add"),
    ("fixed/add-c", "rseq-minimal/add"),
    ("fixed/inc", "plain/inc"),
    ("fixed/inc-c-call", "fixed/inc-c"),
    ("static/inc", "fixed/inc"),
    ("fixed/observe", "fixed/event2"),
    ("fixed/max", "fixed/inc"),
    ("fixed/max-rising", "fixed/inc"),
    ("fixed/average", "fixed/event2"),
    ("static/inc-c", "fixed/inc-c"),
    ("shared-atomic/inc", "fixed/inc"),
    ("fixed/inc", "percpu-atomic/inc"),
    ("fixed/inc+think", "percpu-atomic/inc+think"),
    ("getcpu-atomic/inc", "fixed/inc"),
    ("thread-slots/inc", "fixed/inc"),
    ("contatori/inc", "fixed/inc"),
    ("shared-atomic/packet4", "fixed/packet4"),
    ("shared-atomic/packet4-1group", "fixed/packet4-1group"),
    ("fixed/packet4", "fixed/inc4"),
    ("fixed/packet4-1group", "fixed/inc4-1group"),
    ("shared-atomic/inc+think", "fixed/inc+think"),
    ("shared-atomic/packet4+think", "fixed/packet4+think"),
    ("fixed/inc+think", "rseq-minimal/inc+think"),
    ("fixed/inc+think", "nothing+think"),
    ("counter-array/inc", "vec/inc"),
    ("group-array/add", "vec/add"),
    ("lazy/table", "lazy/own"),
    ("lazy/table-c", "lazy/table"),
];

fn compare(report: &mut Report) {
    for (over, under) in RATIOS {
        report.compare(over, under);
    }
}

fn aim(report: &mut Report) {
    for threads in [1, 2] {
        report.aim("fixed/inc", "rseq-minimal/inc", threads, None, Bound::AtMost, 1.10);
        report.aim("fixed/inc-c", "rseq-minimal/inc", threads, None, Bound::AtMost, 1.10);
        report.aim("fixed/add", "rseq-minimal/add", threads, None, Bound::AtMost, 1.10);
        report.aim("fixed/add-c", "rseq-minimal/add", threads, None, Bound::AtMost, 1.10);
        report.aim("static/inc", "fixed/inc", threads, None, Bound::AtMost, 1.10);
        report.aim("static/inc-c", "fixed/inc-c", threads, None, Bound::AtMost, 1.10);
        report.aim("fixed/observe", "fixed/event2", threads, None, Bound::AtMost, 1.60);
        report.aim("fixed/inc", "percpu-atomic/inc", threads, None, Bound::AtMost, 0.60);
    }
    for threads in [1, 2] {
        report.aim("own-registers/inc", "libc-registers/inc", threads, None, Bound::AtMost, 1.05);
    }
    report.aim("shared-atomic/inc", "striped/inc", 2, None, Bound::AtLeast, 5.0);
    report.aim("shared-atomic/inc", "fixed/inc", 2, None, Bound::AtLeast, 20.0);
    report.aim("shared-atomic/packet4", "fixed/packet4", 2, None, Bound::AtLeast, 35.0);
    for threads in [1, 2] {
        report.aim("fixed/packet4", "fixed/inc4", threads, None, Bound::AtMost, 0.70);
        report.aim("fixed/packet4-1group", "fixed/inc4-1group", threads, None, Bound::AtMost, 0.70);
        report.aim("counter-array/inc", "vec/inc", threads, None, Bound::AtMost, 1.30);
        report.aim("group-array/add", "vec/add", threads, None, Bound::AtMost, 1.30);
        for side in ["lazy/table", "lazy/table-c"] {
            let s = if threads == 1 { "" } else { "s" };
            let case = report.case(side, threads, Scale::default());
            let (figure, quiet) = (case.map(|case| case.figure.median), case.and_then(|case| case.quiet));
            let what = format!("{side}, {threads} thread{s}");
            report.targets.push(Target::new(what, Bound::AtMost, 6.0, "ns", figure).with_quiet(quiet));
        }
    }
}

fn notes(report: &mut Report) {
    report.notes.push(
        "ns/op: time of one thread for one update (one packet: four counters), the mean of the threads."
            .into(),
    );
    report.notes.push(format!(
        "{THINK}: after each update {} multiplications that wait for one another; `nothing{THINK}` is those alone.",
        sides::looped::THINK_MULTIPLICATIONS
    ));
    report.notes.push(
        "percpu-atomic: a padded atomic word for each CPU, whose number the rseq area tells; ClickHouse's shape.".into(),
    );
    report.notes.push(
        "own-registers, libc-registers: in processes of their own, where glibc's registration is switched off and on."
            .into(),
    );
    let inexact: Vec<&str> =
        report.cases.iter().filter(|case| case.exact == Some(false)).map(|case| case.case.as_str()).collect();
    report.notes.push(if inexact.is_empty() {
        "Every count was found again in the sum.".into()
    } else {
        format!("Counts were lost or doubled by {}.", inexact.join(", "))
    });
}
