//! Prices of an option by simulation: every thread walks its paths and leaves its result for the sum.
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const THREADS: usize = 4;

static PAYOFFS: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];
static PATHS: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];

struct Walk {
    state: u64,
    table: Vec<f64>,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let table = (0..256).map(|i| 1.0 + (f64::from(i) - 127.5) / 12_800.0).collect();
        Walk { state: seed * 2 + 1, table }
    }

    fn step(&mut self, price: f64) -> f64 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        price * self.table[(self.state >> 56) as usize]
    }

    /// Computes the payoff of one path, a call at 100.
    fn path(&mut self, steps: u32) -> f64 {
        let mut price = 100.0;
        let mut highest = price;
        for _ in 0..steps {
            price = self.step(price);
            if price > highest {
                highest = price;
            }
        }
        if highest > 105.0 {
            0.0
        } else {
            (price - 100.0f64).max(0.0)
        }
    }
}

fn simulate(index: usize, paths: u64) {
    let mut walk = Walk::new(index as u64 + 1);
    let mut payoff = 0.0;
    for _ in 0..paths {
        payoff += walk.path(50);
    }
    PAYOFFS[index].store((payoff * 1e6) as u64, Ordering::Relaxed);
    PATHS[index].store(paths, Ordering::Relaxed);
}

fn main() {
    let paths: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1000);
    let threads: Vec<_> = (0..THREADS).map(|i| thread::spawn(move || simulate(i, paths))).collect();
    for t in threads {
        t.join().unwrap();
    }
    let payoff: u64 = PAYOFFS.iter().map(|p| p.load(Ordering::Relaxed)).sum();
    let count: u64 = PATHS.iter().map(|p| p.load(Ordering::Relaxed)).sum();
    println!("{count} paths, price {:.4}", payoff as f64 / 1e6 / count as f64);
}
