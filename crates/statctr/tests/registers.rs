//! An update keeps the registers of the code around it: vectors that a caller has in registers are
//! whole after commits and folds. Says something in optimised builds only.
#![cfg(all(target_arch = "x86_64", not(feature = "uniprocessor")))]
#![allow(unsafe_code)] // functions for CPUs that have AVX

mod common;

use common::{Named, pools_by_width};
use statctr::{Counter, Pool, Unit};
use std::arch::x86_64 as arch;
use std::hint::black_box;

statctr::group! {
    /// Half a line.
    struct Four {
        /// Everything.
        event four(a, b, c, d);
        item a: Unit::NONE, "";
        item b: Unit::NONE, "";
        item c: Unit::NONE, "";
        item d: Unit::NONE, "";
    }
}

statctr::group! {
    /// A line.
    struct Eight {
        /// Everything.
        event eight(a, b, c, d, e, f, g, h);
        item a: Unit::NONE, "";
        item b: Unit::NONE, "";
        item c: Unit::NONE, "";
        item d: Unit::NONE, "";
        item e: Unit::NONE, "";
        item f: Unit::NONE, "";
        item g: Unit::NONE, "";
        item h: Unit::NONE, "";
    }
}

/// Events that one store of a pool can hold, and such that need two copies.
struct All {
    counter: Counter,
    four: Four,
    eight: Eight,
}

impl All {
    fn new(pool: &Pool) -> All {
        All {
            counter: Counter::new_in(pool, 0).expect("counter"),
            four: Four::new_in(pool).expect("group"),
            eight: Eight::new_in(pool).expect("group"),
        }
    }
}

const TURNS: u64 = 1000;

#[inline(always)]
fn updates(all: &All, turn: u64) {
    all.counter.inc();
    all.four.four(1, 1, 1, 1);
    all.counter.add(turn);
    all.eight.eight(1, 1, 1, 1, 1, 1, 1, 1);
    all.counter.dec();
}

#[target_feature(enable = "avx2")]
fn with_avx2(all: &All, start: &[u64; 24]) -> [u64; 24] {
    let vector = |index: usize| {
        arch::_mm256_set_epi64x(
            start[index + 3] as i64,
            start[index + 2] as i64,
            start[index + 1] as i64,
            start[index] as i64,
        )
    };
    let step = vector(0);
    let mut sums: [arch::__m256i; 6] = std::array::from_fn(|index| vector(4 * index));
    for turn in 0..TURNS {
        for sum in &mut sums {
            *sum = arch::_mm256_add_epi64(*sum, step);
        }
        updates(all, turn);
    }
    // SAFETY: arrays of the same size, of plain numbers.
    unsafe { std::mem::transmute(sums) }
}

/// Runs all sections in whatever vectors the program is compiled for: see `ci/exactness`.
#[inline(never)]
fn as_compiled(all: &All, start: &[u64; 24]) -> [u64; 24] {
    let mut sums = *start;
    for turn in 0..TURNS {
        for (index, sum) in sums.iter_mut().enumerate() {
            *sum += start[index % 8];
        }
        updates(all, turn);
    }
    sums
}

#[test]
fn vectors_of_the_caller_survive_updates() {
    for Named { name, pool } in pools_by_width() {
        let all = All::new(&pool);
        let start: [u64; 24] = black_box(std::array::from_fn(|index| 1 + index as u64));
        let mut runs = 0;
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 is there.
            let sums = unsafe { with_avx2(&all, &start) };
            let expected: [u64; 24] = std::array::from_fn(|index| start[index] + TURNS * start[index % 4]);
            assert_eq!(sums, expected, "{name}: AVX2");
            runs += 1;
        }
        let sums = as_compiled(&all, &start);
        let expected: [u64; 24] = std::array::from_fn(|index| start[index] + TURNS * start[index % 8]);
        assert_eq!(sums, expected, "{name}: as compiled");
        runs += 1;
        assert_eq!(all.four.read(), [runs * TURNS; 4], "{name}");
        assert_eq!(all.eight.read(), [runs * TURNS; 8], "{name}");
        assert_eq!(all.counter.read(), runs * TURNS * (TURNS - 1) / 2, "{name}");
    }
}

#[target_feature(enable = "avx2")]
fn folds_with_avx2(all: &All, start: &[u64; 4]) -> ([u64; 4], u64) {
    let mut sum = arch::_mm256_set_epi64x(start[3] as i64, start[2] as i64, start[1] as i64, start[0] as i64);
    let step = sum;
    let mut read = 0;
    for _ in 0..TURNS {
        sum = arch::_mm256_add_epi64(sum, step);
        read += all.four.read().iter().chain(&all.eight.read()).sum::<u64>();
    }
    // SAFETY: arrays of the same size, of plain numbers.
    (unsafe { std::mem::transmute::<arch::__m256i, [u64; 4]>(sum) }, read)
}

#[test]
fn vectors_of_the_caller_survive_folds() {
    for Named { name, pool } in pools_by_width() {
        let all = All::new(&pool);
        updates(&all, 0);
        if std::is_x86_feature_detected!("avx2") {
            let start = black_box([1, 2, 3, 4]);
            // SAFETY: AVX2 is there.
            let (sum, read) = unsafe { folds_with_avx2(&all, &start) };
            assert_eq!(sum, start.map(|value| value * (TURNS + 1)), "{name}");
            assert_eq!(read, TURNS * 12, "{name}");
        }
    }
}
