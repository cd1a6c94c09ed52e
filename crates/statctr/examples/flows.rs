//! Statistics of many flows: what one CPU's flows take, and what those take that several CPUs see.
//!
//! `cargo run --release -p statctr --example flows`

use statctr::{Combine, LazyGroup, LazyPool, PerCpu};
use std::time::Instant;

const FLOWS: usize = 100_000;

/// Counts a packet of a flow: one more, its bytes, its arrival time, its TCP flags.
fn packet(flow: &LazyGroup<PerCpu>, bytes: u64, time: u64, flags: u64) {
    flow.update([1, bytes, time, flags]);
}

fn main() -> statctr::Result<()> {
    let pool = LazyPool::<PerCpu>::new([Combine::Sum, Combine::Sum, Combine::Max, Combine::Or])?;
    let start = Instant::now();
    let flows = (0..FLOWS).map(|_| pool.create()).collect::<statctr::Result<Vec<_>>>()?;
    flows.iter().for_each(|flow| packet(flow, 60, 1, 0x02));
    let each = start.elapsed().as_nanos() / FLOWS as u128;
    println!("{}: {each} ns to make a flow and count its first packet", pool.mode());
    report("one writer", &pool, &flows)?;

    // the first tenth is seen by every thread
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let flows = &flows[..FLOWS / 10];
            scope.spawn(move || flows.iter().for_each(|flow| packet(flow, 1500, 2 + thread, 0x10)));
        }
    });
    report("a tenth with several", &pool, &flows)?;
    let [packets, bytes, last, flags] = flows[0].read();
    println!("flow 0: {packets} packets, {bytes} bytes, last at {last}, flags {flags:#04x}");
    let start = Instant::now();
    drop(flows);
    println!("{} ns to free a flow", start.elapsed().as_nanos() / FLOWS as u128);
    Ok(())
}

fn report(what: &str, pool: &LazyPool<PerCpu>, flows: &[LazyGroup<PerCpu>]) -> statctr::Result<()> {
    let instances: usize = flows.iter().map(LazyGroup::instances).sum();
    let bytes = pool.memory()?.resident / flows.len();
    println!("{what}: {instances} instances of {} flows, {bytes} bytes each", flows.len());
    Ok(())
}
