// Enums whose tag is a number that no capacity of a string is: more variants than one have such a number.

use std::hint::black_box;
pub enum Label {
    Text(String, u64),
    Number { low: u64, high: u64, other: u64 },
    Pair(u64, u64, u64),
}
pub enum Many {
    Text(String, u64),
    Number { low: u64, high: u64, other: u64 },
    Pair(u64, u64, u64),
    Half(u32, u32),
    Nothing,
}
#[inline(never)]
pub fn three(label: &Label) -> u64 {
    match label {
        Label::Text(_, size) => *size,
        Label::Number { low, high, .. } => *low + *high,
        Label::Pair(a, b, c) => *a * *b ^ *c,
    }
}
#[inline(never)]
pub fn many(label: &Many) -> u64 {
    match label {
        Many::Text(_, size) => *size,
        Many::Number { low, high, .. } => *low + *high,
        Many::Pair(a, b, c) => *a * *b ^ *c,
        Many::Half(a, b) => (*a ^ *b) as u64,
        Many::Nothing => 0,
    }
}
#[inline(never)]
pub fn only_pairs(labels: &[Label]) -> u64 {
    let mut sum = 0;
    for label in labels {
        if let Label::Pair(a, b, _) = label { sum += *a + *b; }
    }
    sum
}
#[inline(never)]
pub fn change(label: &mut Many, by: u64) {
    match label {
        Many::Text(_, size) => *size += by,
        Many::Number { low, .. } => *low += by,
        Many::Pair(_, b, _) => *b ^= by,
        Many::Half(_, b) => *b = 3,
        Many::Nothing => {}
    }
}
fn main() {
    let mut all = 0;
    for label in [Label::Text(String::new(), 2), Label::Number { low: 2, high: 3, other: 1 }, Label::Pair(1,2,3)] {
        all += three(black_box(&label));
    }
    for label in [Many::Text(String::new(), 2), Many::Number { low: 2, high: 3, other: 1 }, Many::Pair(1,2,3), Many::Half(1,2), Many::Nothing] {
        let mut label = label;
        change(black_box(&mut label), all);
        all += many(black_box(&label));
    }
    all += only_pairs(black_box(&[Label::Text(String::new(), 2), Label::Pair(1,2,3)]));
    println!("{all}");
}
