//! Objects whose further instances come when a second CPU or node writes: where they lie, and what
//! they hold after a storm.

use super::Settings;
use super::cpus::{Aborts, CpuSwitch, online};
use super::hotplug_cycles::HotplugCycles;
use crate::os::{machine, memory, thread};
use crate::report::{ScenarioResult, say};
use statctr::topology::{CpuId, Topology};
use statctr::{Combine, Error, LazyGroup, LazyPool, Mode, PerConcurrencyId, PerCpu, PerNode, Scope};
use statctr::{fallback_reason, registration};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Packets, bytes, when last used, and flags, as of a flow.
const FLOW: [Combine; 4] = [Combine::Sum, Combine::Sum, Combine::Max, Combine::Or];
/// Objects whose places are looked at.
const PLACED: usize = 64;
/// Objects that everybody writes to in a storm.
const SHARED: usize = 50;

pub(super) fn run(settings: &Settings) -> ScenarioResult {
    all(settings).into()
}

fn all(settings: &Settings) -> Result<(), String> {
    let topology = Topology::current().map_err(|error| error.to_string())?;
    let nodes: Vec<u32> = topology.nodes().map(|(node, _)| node.get()).collect();
    let node_of = |cpu: usize| topology.node_of(CpuId::new(cpu as u32)).map(|node| node.get());
    scope::<PerCpu>("per CPU", settings, node_of)?;
    scope::<PerNode>("per node", settings, |place| nodes.get(place).copied())?;
    concurrency_ids(settings)
}

/// Bytes of an rseq area that a kernel with concurrency ids maintains: `mm_cid` is at 24 (Linux 6.3).
const FEATURE_SIZE_WITH_IDS: u64 = 28;

/// Checks that concurrency ids are used where the kernel gives them, by the feature size that it reports, and refused
/// elsewhere.
fn concurrency_ids(settings: &Settings) -> Result<(), String> {
    let size = machine::auxiliary(machine::RSEQ_FEATURE_SIZE);
    let expected = size >= FEATURE_SIZE_WITH_IDS && registration().is_some();
    match LazyPool::<PerConcurrencyId>::new(FLOW) {
        Ok(_) if !expected => Err(format!("concurrency ids are used at an rseq feature size of {size}")),
        Err(Error::BadSetting(why)) if !expected => {
            say!(
                "lazy",
                "per concurrency id: refused, as it must be at an rseq feature size of {size}: {why}"
            );
            Ok(())
        }
        Err(error) => Err(format!("no concurrency ids at an rseq feature size of {size}: {error}")),
        Ok(pool) => {
            // without sections the instances are the CPUs'
            if pool.mode() == Mode::Rseq {
                owners(&pool)?;
            } else if fallback_reason().is_none() {
                return Err(format!("concurrency ids in the mode {}", pool.mode()));
            }
            // such an instance lies where it was made: an id is no CPU
            scope::<PerConcurrencyId>("per concurrency id", settings, |_| None)
        }
    }
}

/// Checks that the instance of a writer is its concurrency id's, on threads that run at the same time.
fn owners(pool: &LazyPool<PerConcurrencyId>) -> Result<(), String> {
    let start = Barrier::new(4);
    let writer = || -> Result<Option<u32>, String> {
        start.wait();
        let flow = pool.create().map_err(|error| error.to_string())?;
        for _ in 0..1000 {
            let before = thread::concurrency_id();
            flow.update([1, 1500, 0, 1]);
            // an id that is the same afterwards was the update's
            if thread::concurrency_id() != before {
                continue;
            }
            let owners: Vec<_> =
                flow.instance_addresses().into_iter().filter_map(|(owner, _)| owner).collect();
            return match before {
                Some(id) if owners.contains(&(id as usize)) => Ok(before),
                id => Err(format!("a writer with the concurrency id {id:?}, instances of {owners:?}")),
            };
        }
        Err("the concurrency id changed in each of 1000 updates".to_owned())
    };
    let ids: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|_| scope.spawn(writer)).collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap_or_else(|_| Err("a panic".to_owned())))
            .collect()
    });
    let ids = ids.into_iter().collect::<Result<Vec<_>, _>>()?;
    say!(
        "lazy",
        "per concurrency id: instances of the kernel's ids {:?}",
        ids.into_iter().flatten().collect::<Vec<_>>()
    );
    Ok(())
}

fn scope<S: Scope>(
    name: &str,
    settings: &Settings,
    node_of: impl Fn(usize) -> Option<u32>,
) -> Result<(), String> {
    let pool = LazyPool::<S>::new(FLOW).map_err(|error| format!("{name}: {error}"))?;
    places(name, &pool, node_of)
        .and_then(|()| storm(name, &pool, settings))
        .map_err(|error| format!("{name}: {error}"))
}

/// Makes objects on one CPU, and writes to them from the first one and from one of each node.
fn places<S: Scope>(
    name: &str,
    pool: &LazyPool<S>,
    node_of: impl Fn(usize) -> Option<u32>,
) -> Result<(), String> {
    let cpus = online();
    let failed = |error: std::io::Error| error.to_string();
    thread::pin(0, &cpus[..1]).map_err(failed)?;
    let flows: Vec<_> =
        (0..PLACED).map(|_| pool.create()).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    for _ in 0..100 {
        flows.iter().for_each(|flow| flow.update([1, 1500, 0, 1]));
    }
    if let Some(flow) = flows.iter().find(|flow| flow.instances() != 1) {
        return Err(format!("one writer, {} instances", flow.instances()));
    }
    for cpu in [cpus[cpus.len() / 2], cpus[cpus.len() - 1]] {
        thread::pin(0, &[cpu]).map_err(failed)?;
        flows.iter().for_each(|flow| flow.update([1, 1500, 7, 2]));
    }
    thread::pin(0, &cpus).map_err(failed)?;
    let (mut right, mut further) = (0, 0);
    for flow in &flows {
        // the first one came with the object
        for (index, address) in flow.instance_addresses().into_iter().skip(1) {
            further += 1;
            let Some(expected) = index.and_then(&node_of) else { continue };
            let node = memory::node_of(address).map_err(failed)?;
            if node != expected {
                return Err(format!("the instance of index {index:?} is on node {node}, not {expected}"));
            }
            right += 1;
        }
    }
    if flows.iter().any(|flow| flow.read() != [102, 102 * 1500, 7, 3]) {
        return Err("a value is wrong".to_owned());
    }
    say!(
        "lazy",
        "{name}, {}: {PLACED} objects, 1 instance each after one writer; {further} further ones after two more, {right} looked at and all on their node",
        pool.mode()
    );
    Ok(())
}

/// Lets everybody write to the same objects, and make and drop others, while CPUs go and come.
fn storm<S: Scope>(name: &str, pool: &LazyPool<S>, settings: &Settings) -> Result<(), String> {
    let flows: Vec<_> =
        (0..SHARED).map(|_| pool.create()).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let switches = CpuSwitch::all();
    let (aborts, course) = (Aborts::count(), HotplugCycles::new(settings.cycles.div_ceil(10)));
    let (stop, turns, churned) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let (reads, worst_step, most) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let wrong = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..=switches.len() {
            scope.spawn(|| {
                thread::lower_priority();
                let mut mine = 0;
                while !stop.load(Ordering::Relaxed) {
                    flows.iter().for_each(|flow| flow.update([1, 1500, mine, 1 << (mine % 8)]));
                    mine += 1;
                    // a short life beside them
                    let Ok(flow) = pool.create() else { continue };
                    flow.update([1, 60, mine, 1]);
                    flow.update([1, 60, mine, 2]);
                    wrong.fetch_add(u64::from(flow.read() != [2, 120, mine, 3]), Ordering::Relaxed);
                    churned.fetch_add(1, Ordering::Relaxed);
                }
                turns.fetch_add(mine, Ordering::Relaxed);
                most.fetch_max(mine, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            thread::lower_priority();
            let mut last = vec![[0u64; 4]; SHARED];
            while !stop.load(Ordering::Relaxed) {
                for (flow, last) in flows.iter().zip(&mut last) {
                    let now = flow.read();
                    for (now, last) in now.iter().zip(&*last) {
                        worst_step.fetch_max(last.saturating_sub(*now), Ordering::Relaxed);
                    }
                    *last = now;
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        if switches.is_empty() {
            std::thread::sleep(settings.time);
        } else {
            course.run(&switches, |_| ());
        }
        stop.store(true, Ordering::Relaxed);
    });
    let (turns, most) = (turns.into_inner(), most.into_inner());
    let expected = [turns, 1500 * turns, most - 1, if most < 8 { (1 << most) - 1 } else { 255 }];
    let instances = flows.iter().map(LazyGroup::instances).max().unwrap_or(0);
    say!(
        "lazy",
        "{name}: {course}, {} updates of {SHARED} objects with up to {instances} instances each, {} short lives, {} reads, worst read step {}, {} aborts, {} without memory at once",
        turns * SHARED as u64,
        churned.into_inner(),
        reads.into_inner(),
        worst_step.load(Ordering::Relaxed),
        Aborts::text(aborts),
        pool.shortfalls()
    );
    if let Some(flow) = flows.iter().find(|flow| flow.read() != expected) {
        return Err(format!("{:?} and not {expected:?}", flow.read()));
    }
    if wrong.load(Ordering::Relaxed) > 0 || worst_step.load(Ordering::Relaxed) > 0 {
        return Err(format!("{wrong:?} short lives wrong, or a read stepped back by {worst_step:?}"));
    }
    if switches.is_empty() { Ok(()) } else { course.verdict() }
}
