// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cache server's core: workers look keys up in shards of their own and count hits and misses in shared atomics.
//!
//! The layout is naive on purpose: the statistics of the server are shared atomics of one struct, beside the settings
//! that every request reads.
//!
//!     rustc -O -g -o cache_server cache_server.rs
//!     ./cache_server WORKERS REQUESTS
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

/// The server: settings, and statistics of all requests.
#[repr(C)]
pub struct Server {
    max_value: u64,
    ttl: u64,
    accepting: AtomicBool,
    hits: AtomicU64,
    misses: AtomicU64,
    bytes: AtomicU64,
}

/// An entry of a shard.
#[derive(Clone, Default)]
pub struct Entry {
    key: u64,
    expires: u64,
    value: u64,
}

fn mix(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^ (value >> 33)
}

#[inline(never)]
fn serve(server: &Server, shard: &mut [Entry], request: u64) -> u64 {
    let key = mix(request) & 0xffff | 1;
    let place = (key as usize).wrapping_mul(31) % shard.len();
    let entry = &mut shard[place];
    if !server.accepting.load(Relaxed) {
        return 0;
    }
    if entry.key == key && entry.expires > request {
        server.hits.fetch_add(1, Relaxed);
        server.bytes.fetch_add(entry.value, Relaxed);
        return entry.value;
    }
    server.misses.fetch_add(1, Relaxed);
    *entry = Entry { key, expires: request + server.ttl, value: key % server.max_value };
    0
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let workers = words.next().unwrap_or(2);
    let requests = words.next().unwrap_or(1_000_000);
    let server = Arc::new(Server {
        max_value: 4096,
        ttl: 1 << 20,
        accepting: AtomicBool::new(true),
        hits: AtomicU64::new(0),
        misses: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let threads: Vec<_> = (0..workers)
        .map(|worker| {
            let server = Arc::clone(&server);
            thread::spawn(move || {
                let mut shard = vec![Entry::default(); 1 << 10];
                (0..requests).fold(0_u64, |sum, at| sum.wrapping_add(serve(&server, &mut shard, at * workers + worker)))
            })
        })
        .collect();
    let sum = threads.into_iter().fold(0_u64, |sum, thread| sum.wrapping_add(thread.join().expect("a worker")));
    let (hits, misses) = (server.hits.load(Relaxed), server.misses.load(Relaxed));
    println!("{hits} hits, {misses} misses, {} bytes, {sum}", server.bytes.load(Relaxed));
    assert_eq!(hits + misses, workers * requests);
}
