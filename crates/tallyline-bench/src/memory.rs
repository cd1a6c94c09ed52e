//! `tallyline-bench memory`: what a million counters take on a machine with 192 possible CPUs, a
//! few of which count.
//!
//! The pool's own mappings are looked at by the kernel's account (`/proc/self/smaps`), what is
//! outside of them by the growth of the whole process.

use super::Context;
use super::fill::{Counting, Real, on_cpu};
use super::report::{Bound, Case, Report, Scale, Target};
#[cfg(feature = "contatori")]
use super::sides;
use super::sides::os::BenchMemory;
use super::sides::percpu_atomic::BYTES_PER_CPU;
use anyhow::{Context as _, Result, ensure};
use statctr::topology::{CpuId, Topology};
use statctr::{Counter, CounterArray, Description, Placement, Pool, Registry};
use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The number of counters whose memory is measured.
const COUNTERS: usize = 1_000_000;

/// Possible CPUs of the made-up machine, at least.
const POSSIBLE: u32 = 192;

/// Counters that get a name, to see what names take: few, as each registration looks at all before.
const NAMED: usize = 5000;

/// Counters of the comparison with padded words.
const PADDED: usize = 10_000;

/// CPUs that count in that comparison.
const COUNTING: u32 = 32;

/// Runs the benchmark `memory`: the bytes that a million counters take on a machine with 192 possible CPUs, by the
/// number of CPUs that count.
pub(crate) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let counters = if context.quick { COUNTERS / 100 } else { COUNTERS };
    let possible = context.cpus.iter().max().map_or(POSSIBLE, |cpu| POSSIBLE.max(*cpu as u32 + 1));
    let bench = Bench { counters, possible };
    // first, while no memory that was given back to the allocator can hide what they take
    bench.extras(report)?;
    for counters in [1, if context.quick { PADDED / 100 } else { PADDED }] {
        bench.beside_padded(report, counters, context.quick)?;
    }
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
        "percpu-atomic: a cache line for each possible CPU and counter, ClickHouse's shape; one counter alone takes a page of each CPU that counts with us.".to_owned(),
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

    /// Measures what `counters` take of which 32 CPUs count in each, beside a padded word for each CPU and counter.
    ///
    /// The peer has two forms: memory that is zero as it comes, of which only pages that somebody counts in are
    /// there, and words that a constructor stores zeros to.
    fn beside_padded(&self, report: &mut Report, counters: usize, quick: bool) -> Result<()> {
        let s = if counters == 1 { "" } else { "s" };
        let name = |side: &str| format!("{side}, {counters} counter{s}");
        let counting = Real::find()?.countable(self.possible);
        let counting = counting.get(..COUNTING as usize).context("fewer CPUs can count than are wanted")?;
        let (pool, tables) = (self.pool()?, page_tables()?);
        let array = CounterArray::new_in(&pool, counters, 0)?;
        for counting in counting {
            match *counting {
                Counting::On(cpu) => on_cpu(cpu, || array.iter().for_each(|counter| counter.inc()))?,
                Counting::As(cpu) => array.iter().try_for_each(|counter| counter.add_on_synthetic(cpu, 1))?,
            }
        }
        let mut values = vec![0; counters];
        array.fold_into(&mut values)?;
        ensure!(values.iter().all(|&value| value == u64::from(COUNTING)), "a counter comes to a wrong sum");
        let ours = pool.memory()?.resident + page_tables()?.saturating_sub(tables);
        drop((array, pool));

        let row = self.possible as usize * BYTES_PER_CPU;
        let padded = |is_constructed: bool| -> Result<usize> {
            let (before, tables) = (resident()?, page_tables()?);
            let memory = BenchMemory::new(counters * row).context("cannot map memory")?;
            for counter in 0..counters {
                let word = |cpu: usize| memory.word(counter * row + cpu * BYTES_PER_CPU);
                if is_constructed {
                    (0..self.possible as usize).for_each(|cpu| word(cpu).store(0, Ordering::Relaxed));
                }
                for counting in counting {
                    word(counting.cpu().index()).fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(resident()?.saturating_sub(before) + page_tables()?.saturating_sub(tables))
        };
        let (zeroed, constructed) = (padded(false)?, padded(true)?);
        let scale = self.scale(COUNTING as usize);
        for (side, bytes) in [
            ("ours, with page tables", ours),
            ("percpu-atomic, memory zero as it comes", zeroed),
            ("percpu-atomic, zeros stored", constructed),
        ] {
            report.cases.extend(Case::single(name(side), 1, scale, "bytes", bytes as f64));
        }
        if counters > 1 && !quick {
            let what = name("memory over percpu-atomic's, zero as it comes");
            let figure = ours as f64 / zeroed.max(1) as f64;
            report.targets.push(Target::new(what, Bound::AtMost, 0.125, "x", figure));
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
