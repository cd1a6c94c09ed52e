//! `tallyline-bench memory`: what a million counters take on a machine with 192 possible CPUs, a
//! few of which count.
//!
//! The pool's own mappings are looked at by the kernel's account (`/proc/self/smaps`), what is
//! outside of them by the growth of the whole process.

use super::Context;
use super::fill::on_cpu;
use super::report::{Bound, Case, Report, Scale, Target};
#[cfg(feature = "contatori")]
use super::sides;
use anyhow::{Context as _, Result, ensure};
use statctr::topology::{CpuId, Topology};
use statctr::{Counter, CounterArray, Description, Placement, Pool, Registry};
use std::fs;
use std::hint::black_box;
use std::sync::Arc;

/// Counters.
const COUNTERS: usize = 1_000_000;

/// Possible CPUs of the made-up machine, at least.
const POSSIBLE: u32 = 192;

/// Counters that get a name, to see what names take: few, as each registration looks at all before.
const NAMED: usize = 5000;

/// Runs the benchmark `memory`: the bytes that a million counters take on a machine with 192 possible CPUs,
/// with each number of CPUs in use.
pub(crate) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let counters = if context.quick { COUNTERS / 100 } else { COUNTERS };
    let possible = context.cpus.iter().max().map_or(POSSIBLE, |cpu| POSSIBLE.max(*cpu as u32 + 1));
    let bench = Bench { counters, possible };
    // first, while no memory that was given back to the allocator can hide what they take
    bench.extras(report)?;
    for &threads in &context.threads {
        let progress = context.progress(&format!("memory, {threads} CPUs in use"));
        progress.show(0, 1);
        let cpus: Vec<CpuId> = context.cpus[..threads].iter().map(|&cpu| CpuId::new(cpu as u32)).collect();
        bench.counted(report, &cpus, context.quick)?;
    }
    bench.others(report, context.threads.last().copied().unwrap_or(1));
    report.cases.sort_by_key(|case| case.threads);
    report.notes.extend([
        format!("{counters} counters on {possible} possible CPUs; MB: 10^6 bytes. Figures without \"(computed)\" are resident memory."),
        "pool/…: the pool's mappings; +…: what comes on top, of the whole process.".to_owned(),
    ]);
    Ok(())
}

struct Bench {
    counters: usize,
    possible: u32,
}

impl Bench {
    fn scale(&self, used: usize) -> Scale {
        Scale { cpus: Some(self.possible), used: Some(used as u32), groups: None }
    }

    fn pool(&self) -> Result<Pool> {
        let topology = Topology::synthetic(self.possible).build()?;
        Ok(Pool::builder().topology(topology).placement(Placement::Fixed).build()?)
    }

    /// Measures the memory of the counters when `cpus` have counted in all of them.
    fn counted(&self, report: &mut Report, cpus: &[CpuId], quick: bool) -> Result<()> {
        let threads = cpus.len();
        let (pool, tables) = (self.pool()?, page_tables()?);
        let array = CounterArray::new_in(&pool, self.counters, 0)?;
        let mut note = |name: &str, bytes: usize| {
            let scale = self.scale(if name == "pool/nothing-counted" { 0 } else { threads });
            report.cases.extend(Case::single(name, threads, scale, "bytes", bytes as f64));
        };
        note("pool/nothing-counted", pool.memory()?.resident);
        for &cpu in cpus {
            on_cpu(cpu, || array.iter().for_each(|counter| counter.inc()))?;
        }
        let resident = pool.memory()?.resident;
        note("pool/counted", resident);
        let mut values = vec![0; self.counters];
        array.fold_into(&mut values)?;
        ensure!(values.iter().all(|&value| value == threads as u64), "a counter comes to a wrong sum");
        note("pool/counted-and-read", pool.memory()?.resident);
        note("+page-tables", page_tables()?.saturating_sub(tables));
        if threads == 2 && !quick {
            let limit = 1.15 * (threads * self.counters * 8) as f64 + 4e6;
            let what = format!("one million counters, {} possible CPUs, 2 in use", self.possible);
            report.targets.push(Target::new(what, Bound::AtMost, limit, "bytes", resident as f64));
        }
        Ok(())
    }

    /// Measures the memory that handles, initial values and names add.
    fn extras(&self, report: &mut Report) -> Result<()> {
        let scale = self.scale(0);
        let mut note = |name: &str, bytes: usize| {
            report.cases.extend(Case::single(name, 1, scale, "bytes", bytes as f64));
        };
        let named = NAMED.min(self.counters);
        let per_name = self.names(named)? / named as f64;
        note(
            &format!("+names (of {named}, times {})", self.counters / named),
            (per_name * self.counters as f64) as usize,
        );

        let (pool, before) = (self.pool()?, resident()?);
        let array = CounterArray::new_in(&pool, self.counters, 0)?;
        note("+handles-of-an-array", (resident()? - pool.memory()?.resident).saturating_sub(before));
        drop(array);

        let (pool, before) = (self.pool()?, resident()?);
        let counters =
            (0..self.counters).map(|_| Counter::new_in(&pool, 0)).collect::<statctr::Result<Vec<_>>>()?;
        note("+handles-of-single-counters", (resident()? - pool.memory()?.resident).saturating_sub(before));
        drop(counters);

        let pool = self.pool()?;
        let array = CounterArray::new_in(&pool, self.counters, 1)?;
        note("+initial-values-other-than-0", pool.memory()?.resident);
        drop(array);
        Ok(())
    }

    /// Returns the memory of names for `named` counters: a name, a help text and a label that tells them apart.
    fn names(&self, named: usize) -> Result<f64> {
        let pool = self.pool()?;
        let counters = (0..named)
            .map(|_| Counter::new_in(&pool, 0).map(Arc::new))
            .collect::<statctr::Result<Vec<_>>>()?;
        let before = resident()?;
        let registry = Registry::new();
        for (index, counter) in counters.iter().enumerate() {
            let description =
                Description::new("packets").help("packets received").label("flow", index.to_string());
            registry.register(description, counter)?;
        }
        let after = resident()?;
        black_box(&registry);
        Ok(after.saturating_sub(before) as f64)
    }

    /// Measures the peers' memory for as many counters, by the size of one.
    fn others(&self, report: &mut Report, threads: usize) {
        let mut computed = |name: &str, bytes: usize| {
            let bytes = bytes as f64 * self.counters as f64;
            report.cases.extend(Case::single(
                format!("{name} (computed)"),
                1,
                self.scale(threads),
                "bytes",
                bytes,
            ));
        };
        computed("shared-atomic", 8);
        computed("thread-slots, one for each CPU in use", 64 * threads);
        computed("thread-slots, one for each possible CPU", 64 * self.possible as usize);
        #[cfg(feature = "contatori")]
        computed("contatori", sides::contatori::CONTATORI_COUNTER_BYTES);
    }
}

/// Returns bytes of this process that are in memory now.
fn resident() -> Result<usize> {
    kilobytes("/proc/self/smaps_rollup", "Rss")
}

/// Returns bytes of this process's page tables.
fn page_tables() -> Result<usize> {
    kilobytes("/proc/self/status", "VmPTE")
}

fn kilobytes(path: &str, name: &str) -> Result<usize> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
    Ok(number.with_context(|| format!("{path} has no {name}"))? * 1024)
}
