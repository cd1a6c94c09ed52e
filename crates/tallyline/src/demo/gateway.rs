// SPDX-License-Identifier: MIT OR Apache-2.0
//! A gateway in small: workers take packets and count them, each in statistics of its own, which others may read.
//!
//!     rustc -O -g -o gateway gateway.rs
//!     ./gateway WORKERS PACKETS

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// The largest number of workers.
const WORKERS: usize = 8;

/// The packet statistics of one worker thread of the gateway.
#[repr(C)]
pub struct WorkerStats {
    packets: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
}

impl WorkerStats {
    const fn new() -> Self {
        Self { packets: AtomicU64::new(0), bytes: AtomicU64::new(0), dropped: AtomicU64::new(0) }
    }
}

/// The packet statistics of all worker threads of the gateway, aligned to a cache line.
#[repr(C, align(64))]
pub struct Gateway {
    stats: [WorkerStats; WORKERS],
}

static GATEWAY: Gateway = Gateway { stats: [const { WorkerStats::new() }; WORKERS] };

/// Takes packets, and counts them.
#[inline(never)]
fn work(stats: &WorkerStats, packets: u64) {
    let mut state = 1_u64;
    for _ in 0..packets {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length = 64 + (state >> 54);
        stats.packets.fetch_add(1, Relaxed);
        stats.bytes.fetch_add(length, Relaxed);
        if length > 1000 {
            stats.dropped.fetch_add(1, Relaxed);
        }
    }
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let (workers, packets) = (words.next().unwrap_or(2), words.next().unwrap_or(1_000_000));
    thread::scope(|scope| {
        for stats in GATEWAY.stats.iter().take(workers as usize) {
            scope.spawn(move || work(stats, packets));
        }
    });
    let sum = |word: fn(&WorkerStats) -> &AtomicU64| {
        GATEWAY.stats.iter().map(|stats| word(stats).load(Relaxed)).sum::<u64>()
    };
    let (packets, bytes) = (sum(|stats| &stats.packets), sum(|stats| &stats.bytes));
    println!("{packets} packets, {bytes} bytes, {} dropped", sum(|stats| &stats.dropped));
}
