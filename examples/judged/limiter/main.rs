//! A limiter of requests: a bucket of tokens that one thread draws on, and quotes that others compute.
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;

#[repr(align(64))]
struct Limiter {
    rate: AtomicU64,
    burst: AtomicU64,
    quantum: AtomicU64,
    tokens: AtomicI64,
    refused: AtomicU64,
}

impl Limiter {
    fn new(rate: u64, burst: u64, quantum: u64) -> Self {
        Limiter {
            rate: AtomicU64::new(rate),
            burst: AtomicU64::new(burst),
            quantum: AtomicU64::new(quantum),
            tokens: AtomicI64::new(burst as i64),
            refused: AtomicU64::new(0),
        }
    }

    /// Takes `cost` tokens if there are so many.
    fn draw(&self, cost: i64) -> bool {
        let mut have = self.tokens.load(Relaxed);
        loop {
            if have < cost {
                self.refused.store(self.refused.load(Relaxed) + 1, Relaxed);
                return false;
            }
            match self.tokens.compare_exchange_weak(have, have - cost, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => have = now,
            }
        }
    }

    fn refill(&self, tokens: i64) {
        self.tokens.fetch_add(tokens, Relaxed);
    }

    /// Estimates the delay of a request of `bytes`, in ticks.
    #[inline(never)]
    fn quote(&self, bytes: u64) -> u64 {
        let units = bytes / self.quantum.load(Relaxed) + 1;
        let over = units.saturating_sub(self.burst.load(Relaxed));
        over * 1000 / self.rate.load(Relaxed)
    }
}

fn next(x: &mut u64) -> u64 {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    *x
}

fn admit(limiter: &Limiter, n: u64) -> u64 {
    let mut x = 4711;
    let mut admitted = 0;
    for i in 0..n {
        let cost = 1 + (next(&mut x) & 7) as i64;
        if limiter.draw(cost) {
            admitted += 1;
        }
        if i % 8 == 7 {
            limiter.refill(32);
        }
    }
    admitted
}

fn plan(limiter: &Limiter, n: u64, seed: u64) -> u64 {
    let mut x = seed;
    let mut delay = 0;
    for _ in 0..n {
        let bytes = next(&mut x) & 0xffff;
        delay += limiter.quote(bytes);
    }
    delay
}

fn main() {
    let n: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(20_000);
    let limiter = Arc::new(Limiter::new(40, 100, 64));
    let planners: Vec<_> = (1..3)
        .map(|seed| {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || plan(&limiter, n, seed))
        })
        .collect();
    let gate = {
        let limiter = Arc::clone(&limiter);
        thread::spawn(move || admit(&limiter, n))
    };
    let delay: u64 = planners.into_iter().map(|t| t.join().unwrap()).sum();
    let admitted = gate.join().unwrap();
    println!("{admitted} admitted, {} refused, delay {delay}", limiter.refused.load(Relaxed));
}
