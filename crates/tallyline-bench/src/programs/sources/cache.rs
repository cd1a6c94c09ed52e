//! A list through a vector, a hash table, a tree of boxes, samples one after the other, a queue.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Default)]
struct Entry {
    key: u64,
    expires: u64,
    hits: u64,
    next: usize,
    body: [u64; 6],
}

#[derive(Default)]
struct Peer {
    bytes: u64,
    packets: u64,
    name: [u64; 5],
}

struct Limit {
    bound: u64,
    rate: u64,
    left: Option<Box<Limit>>,
    right: Option<Box<Limit>>,
}

#[derive(Default, Clone)]
struct Sample {
    value: f64,
    weight: f64,
    flags: u64,
    source: u64,
}

struct Task {
    due: u64,
    kind: u64,
}

#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    }
}

type Peers = HashMap<u64, Peer, BuildHasherDefault<Multiply>>;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[inline(never)]
fn expire(entries: &mut [Entry], mut at: usize, steps: u64) -> usize {
    for step in 0..steps {
        let entry = &mut entries[at];
        if entry.expires > step {
            entry.hits += 1;
        }
        at = entry.next;
    }
    at
}

#[inline(never)]
fn count(peers: &mut Peers, state: &mut u64, packets: u64) {
    for _ in 0..packets {
        if let Some(peer) = peers.get_mut(&(random(state) & 0xffff)) {
            peer.packets += 1;
        }
    }
}

#[inline(never)]
fn insert(limit: &mut Option<Box<Limit>>, bound: u64) {
    let mut place = limit;
    while let Some(limit) = place {
        place = if bound < limit.bound { &mut limit.left } else { &mut limit.right };
    }
    *place = Some(Box::new(Limit { bound, rate: bound & 15, left: None, right: None }));
}

#[inline(never)]
fn limits(root: &Option<Box<Limit>>, state: &mut u64, count: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..count {
        let wanted = random(state);
        let mut place = root;
        while let Some(limit) = place {
            if wanted < limit.bound {
                place = &limit.left;
            } else {
                sum += limit.rate;
                place = &limit.right;
            }
        }
    }
    sum
}

#[inline(never)]
fn mean(samples: &[Sample]) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for sample in samples {
        sum += sample.value * sample.weight;
        weight += sample.weight;
    }
    sum / weight
}

#[inline(never)]
fn work(queue: &mut VecDeque<Task>, count: u64) -> u64 {
    let mut sum = 0;
    for number in 0..count {
        queue.push_back(Task { due: number, kind: number & 3 });
        if queue.len() > 500
            && let Some(task) = queue.pop_front()
        {
            sum += task.due ^ task.kind;
        }
    }
    sum
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let mut state = 88_172_645_463_325_252;
    let size = 1 << 18;
    let mut entries: Vec<Entry> = Vec::new();
    entries.resize_with(size, Entry::default);
    for place in 0..size {
        entries[place].next = (place * 1_664_525 + 1_013_904_223) % size;
        entries[place].expires = place as u64;
        entries[place].key = entries[place].body[0] + place as u64;
    }
    let mut peers = Peers::default();
    for key in 0..1 << 16 {
        peers.insert(key, Peer { bytes: key, packets: 0, name: [key; 5] });
    }
    let mut root = None;
    (0..8000).for_each(|_| insert(&mut root, random(&mut state)));
    let mut samples = vec![Sample::default(); 1 << 18];
    for (number, sample) in samples.iter_mut().enumerate() {
        *sample = Sample { value: number as f64, weight: 1.0, flags: 1, source: number as u64 };
    }
    let mut queue = VecDeque::new();
    let (mut at, mut sum) = (0, 0.0);
    for _ in 0..rounds {
        at = expire(&mut entries, at, 80_000);
        count(&mut peers, &mut state, 200_000);
        sum += limits(&root, &mut state, 60_000) as f64;
        sum += mean(&samples);
        sum += work(&mut queue, 100_000) as f64;
    }
    let peer = peers.values().next().map_or(0, |peer| peer.bytes + peer.name[1]);
    println!("{sum} {at} {peer} {} {}", samples[at].flags + samples[at].source, entries[at].hits + entries[at].key);
}
