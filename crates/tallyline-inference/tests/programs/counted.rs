// A loop over a slice that LLVM counts by bytes from 0: its debug information says of the counter that it is the
// pointer of the iterator, while the slice's start stays in a register without a variable.

use std::hint::black_box;

pub enum Entry {
    Listed(u64, [u64; 3]),
    Summed(u32, u64, [u32; 2]),
}

#[inline(never)]
fn all(entries: &mut Vec<Entry>) -> u64 {
    let mut sum = 0;
    for entry in entries.iter_mut() {
        match entry {
            Entry::Listed(count, parts) => {
                *count += 1; // Entry.Listed.__0
                sum += parts[0]; // Entry.Listed.__1[]
            }
            Entry::Summed(count, total, parts) => {
                *count += 1; // Entry.Summed.__0
                sum += *total + u64::from(parts[1]); // Entry.Summed.__1 Entry.Summed.__2[]
            }
        }
    }
    sum
}

/// A pointer that is null at first and an address later: no counter.
#[inline(never)]
fn last(entries: &Vec<Entry>) -> u64 {
    let mut last: *const Entry = std::ptr::null();
    for entry in entries.iter() {
        if let Entry::Summed(2.., ..) = entry {
            last = entry;
        }
    }
    match unsafe { last.as_ref() } {
        Some(Entry::Summed(_, total, _)) => *total, // Entry.Summed.__1
        _ => 0,
    }
}

fn main() {
    let entry = |number: u32| match number % 3 {
        0 => Entry::Listed(u64::from(number), [1, 2, 3]),
        _ => Entry::Summed(number, 3, [4, 5]),
    };
    let (mut entries, others): (Vec<Entry>, Vec<Entry>) =
        ((0..4000).map(entry).collect(), (0..black_box(100)).map(entry).collect());
    let mut sum = 0;
    for _ in 0..black_box(3) {
        sum += all(black_box(&mut entries));
    }
    println!("{sum} {}", last(black_box(&others)));
}
