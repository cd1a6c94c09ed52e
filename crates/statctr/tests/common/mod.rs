//! Support for the tests of this folder: pools of every kind, a kit of everything that counts with
//! its expected sums, and ways to move threads about.

#![allow(dead_code)] // each test binary uses a part
#![allow(unsafe_code)] // system calls that std does not have

pub(crate) mod kit;
pub(crate) mod os;

use statctr::topology::{CpuId, CpuSet, Topology};
use statctr::{Placement, Pool, VectorWidth};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Returns the duration of each test that runs for a time: a short while, or `STATCTR_TEST_SECONDS`.
pub(crate) fn budget() -> Duration {
    let seconds = std::env::var("STATCTR_TEST_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(0.3))
}

/// Returns `count`, multiplied as the time of the tests is, and at least 1.
pub(crate) fn scaled(count: usize) -> usize {
    ((count as f64 * (budget().as_secs_f64() / 0.3)) as usize).max(1)
}

/// The end of a span of time that begins now.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(span: Duration) -> Deadline {
        Deadline(Instant::now() + span)
    }

    pub(crate) fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}

/// Stops the threads of a test when dropped, also where an assertion failed: the test would wait for them forever.
pub(crate) struct StopAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A pool and what it is.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) pool: Pool,
}

fn named(name: &'static str, builder: statctr::PoolBuilder) -> Named {
    Named { name, pool: builder.build().expect(name) }
}

/// Returns the vector widths that this machine has.
pub(crate) fn widths() -> Vec<VectorWidth> {
    let all = [VectorWidth::Bytes8, VectorWidth::Bytes16, VectorWidth::Bytes32, VectorWidth::Bytes64];
    all.into_iter().filter(|width| *width <= VectorWidth::detect()).collect()
}

/// Returns fresh pools of this machine's CPUs, one per vector width, in units of one page.
pub(crate) fn pools_by_width() -> Vec<Named> {
    let name = |width| match width {
        VectorWidth::Bytes8 => "fixed, no vectors",
        VectorWidth::Bytes16 => "fixed, 16-byte vectors",
        VectorWidth::Bytes32 => "fixed, 32-byte vectors",
        _ => "fixed, 64-byte vectors",
    };
    let builder = |width| Pool::builder().placement(Placement::Fixed).unit_bytes(4096).max_vector(width);
    widths().into_iter().map(|width| named(name(width), builder(width))).collect()
}

/// Returns fresh pools of every kind that may be used by threads on any CPU.
pub(crate) fn pools() -> Vec<Named> {
    let sparse: CpuSet = "700,5000".parse().expect("list");
    let strangers = Topology::synthetic_sparse(sparse).build().expect("topology");
    let half = Topology::synthetic_sparse([CpuId::new(os::cpus()[0] as u32)].into_iter().collect());
    let half = half.build().expect("topology");
    let mut pools = pools_by_width();
    pools.push(named("default settings", Pool::builder().placement(Placement::Fixed)));
    pools.push(named("made for CPUs that are not here", Pool::builder().topology(strangers)));
    let one = Pool::builder().placement(Placement::Fixed).topology(half);
    pools.push(named("made for one of our CPUs", one.max_vector(VectorWidth::Bytes8)));
    pools.push(named("striped", Pool::builder().placement(Placement::Striped)));
    pools.push(named("shared", Pool::builder().placement(Placement::Shared)));
    pools.extend(flexible_pools());
    pools
}

/// Returns fresh pools whose units come and go.
pub(crate) fn flexible_pools() -> Vec<Named> {
    let strangers = Topology::synthetic_sparse("700,5000".parse().expect("list"));
    let builder = || Pool::builder().placement(Placement::Flexible).unit_bytes(8192);
    vec![
        named("flexible", builder()),
        named("flexible, 16-byte vectors", builder().max_vector(VectorWidth::Bytes16)),
        named("flexible, nobody expected", builder().topology(strangers.build().expect("topology"))),
    ]
}
