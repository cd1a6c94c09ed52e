//! Memory of the CPUs' own nodes.

use super::Settings;
use super::cpus::online;
use crate::os::{memory, thread};
use crate::report::{ScenarioResult, say};
use statctr::raw::RawCounter;
use statctr::topology::{CpuId, Topology};
use statctr::{Counter, Mode, Pool, thread_mode};

pub(super) fn run(_settings: &Settings) -> ScenarioResult {
    let several = Topology::current().is_ok_and(|topology| topology.nodes().count() > 1);
    if !several {
        return ScenarioResult::Skipped("this machine has one node");
    }
    if thread_mode() != Mode::Rseq {
        return ScenarioResult::Skipped("there is no rseq here");
    }
    first_touch().and_then(|()| prefault()).into()
}

/// Returns the address of one CPU's word of a counter: the table of displacements is the library's
/// C interface.
fn word(counter: RawCounter, cpu: u32) -> usize {
    let entry = (counter.table & !63) + cpu as usize * size_of::<usize>();
    let displacement = crate::os::memory::load(entry);
    counter.base + displacement
}

fn check(what: &str, counter: RawCounter, topology: &Topology) -> Result<(), String> {
    let mut right = 0;
    for cpu in online() {
        let address = word(counter, cpu);
        if address == counter.base {
            return Err(format!("{what}: CPU {cpu} has not counted"));
        }
        let node = memory::node_of(address).map_err(|error| format!("get_mempolicy: {error}"))?;
        let expected = topology.node_of(CpuId::new(cpu)).map(|node| node.get());
        if expected != Some(node) {
            return Err(format!("{what}: CPU {cpu}, of node {expected:?}, counts in memory of node {node}"));
        }
        right += 1;
    }
    say!("nodes", "{what}: {right} of {right} CPUs count in memory of their own node");
    Ok(())
}

fn count_everywhere(counter: &Counter) -> Result<(), String> {
    let cpus = online();
    for &cpu in &cpus {
        thread::pin(0, &[cpu]).map_err(|error| format!("CPU {cpu}: {error}"))?;
        counter.inc();
    }
    thread::pin(0, &cpus).map_err(|error| error.to_string())
}

/// Checks pages without a prefault: a CPU's first update touches the page there.
fn first_touch() -> Result<(), String> {
    let topology = Topology::current().map_err(|error| error.to_string())?;
    let pool = Pool::builder().build().map_err(|error| error.to_string())?;
    let counter = Counter::new_in(&pool, 0).map_err(|error| error.to_string())?;
    count_everywhere(&counter)?;
    let raw = RawCounter::from_counter(counter);
    check("first touch", raw, &topology)
}

/// Prefaults all units from one thread, on one CPU, before anybody counts.
fn prefault() -> Result<(), String> {
    let topology = Topology::current().map_err(|error| error.to_string())?;
    let pool = Pool::builder().build().map_err(|error| error.to_string())?;
    let counter = Counter::new_in(&pool, 0).map_err(|error| error.to_string())?;
    pool.prefault(topology.online()).map_err(|error| error.to_string())?;
    count_everywhere(&counter)?;
    let raw = RawCounter::from_counter(counter);
    check("prefault", raw, &topology)
}
