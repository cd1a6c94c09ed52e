// A map of the standard library: one byte of control for each slot, and the elements below them, the first one last.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;

/// A hash without memory of its own.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

pub struct Order {
    hits: u64,
    bytes: u64,
    last: u64,
}

type Orders = HashMap<u64, Order, BuildHasherDefault<Mix>>;

#[inline(never)]
fn find(orders: &Orders, key: u64) -> u64 {
    orders.get(&key).map_or(0, |order| order.bytes)
}

#[inline(never)]
fn change(orders: &mut Orders, key: u64) -> bool {
    match orders.get_mut(&key) {
        Some(order) => {
            order.hits += 1;
            order.last = key;
            true
        }
        None => false,
    }
}

#[inline(never)]
fn sum(orders: &Orders) -> u64 {
    let mut sum = 0;
    for order in orders.values() {
        sum += order.bytes;
    }
    sum
}

#[inline(never)]
fn insert(orders: &mut Orders, key: u64) {
    orders.insert(key, Order { hits: 0, bytes: key, last: 0 });
}

#[inline(never)]
fn remove(orders: &mut Orders, key: u64) -> bool {
    orders.remove(&key).is_some()
}

fn main() {
    let mut orders = Orders::default();
    for key in 0..black_box(100_000) {
        insert(&mut orders, key);
    }
    let mut total = 0;
    for key in 0..black_box(200_000) {
        total += find(&orders, key) + u64::from(change(&mut orders, key));
    }
    for key in 0..black_box(50_000) {
        total += u64::from(remove(&mut orders, 2 * key));
    }
    println!("{} {total}", sum(&orders));
}
