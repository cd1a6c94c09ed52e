//! Objects of Rust programs, published: slices, enums, boxes, trait objects, arrays in structs, counted references.
use std::cell::{Cell, RefCell};
use std::rc::Rc;

include!("publish.rs");

pub struct Node {
    key: u64,
    weight: f64,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
    visits: u32,
    red: bool,
}

#[derive(Clone, Default)]
pub struct Sample {
    time: u64,
    value: f64,
    channel: u16,
    quality: u16,
    count: u32,
    history: [u32; 6],
}

pub struct Slot {
    sequence: u64,
    length: u32,
    port: u16,
    data: [u8; 34],
}

pub struct Ring {
    head: usize,
    tail: usize,
    drops: u64,
    slots: Box<[Slot]>,
}

pub enum Shape {
    Circle { radius: f64, id: u64 },
    Rect { width: f64, height: f64, id: u64, tag: u8 },
}

pub trait Meter {
    fn add(&mut self, value: u64) -> u64;
}
pub struct Sum {
    total: u64,
    calls: u32,
}
pub struct Peak {
    most: u64,
    least: u64,
    changes: u32,
    last: [u64; 4],
}
impl Meter for Sum {
    #[inline(never)]
    fn add(&mut self, value: u64) -> u64 {
        self.calls += 1;
        self.total += value;
        self.total
    }
}
impl Meter for Peak {
    #[inline(never)]
    fn add(&mut self, value: u64) -> u64 {
        if value > self.most {
            self.most = value;
            self.changes += 1;
        }
        if value < self.least {
            self.least = value;
        }
        self.last[value as usize & 3] = value;
        self.most - self.least
    }
}

pub struct Shared {
    uses: Cell<u32>,
    name: RefCell<u64>,
    sum: Cell<u64>,
}

pub struct Grid {
    rows: usize,
    cells: [[f64; 5]; 7],
    sums: [f64; 7],
}

#[inline(never)]
fn insert(mut node: &mut Node, fresh: Box<Node>) {
    loop {
        node.visits += 1;
        let place = if fresh.key < node.key { &mut node.left } else { &mut node.right };
        match place {
            Some(next) => node = next,
            None => {
                *place = Some(fresh);
                return;
            }
        }
    }
}

#[inline(never)]
fn weigh(node: &Node) -> f64 {
    let mut sum = node.weight + f64::from(node.visits);
    if let Some(left) = &node.left {
        sum += weigh(left);
    }
    if let Some(right) = &node.right {
        sum -= weigh(right);
    }
    if node.red { sum } else { -sum }
}

#[inline(never)]
fn smooth(samples: &mut [Sample]) -> f64 {
    let mut sum = 0.0;
    for sample in samples.iter_mut() {
        sample.count += 1;
        sample.value *= 0.5;
        if sample.channel == 3 {
            sum += sample.value + sample.time as f64;
        }
    }
    sum
}

#[inline(never)]
fn histories(samples: &mut [Sample], which: usize) -> u32 {
    let mut sum = 0;
    for sample in samples {
        sum += sample.history[which];
        for past in &mut sample.history {
            *past += 1;
        }
        sample.quality ^= 1;
    }
    sum
}

#[inline(never)]
fn by_index(samples: &[Sample], indices: &[usize]) -> u64 {
    indices.iter().map(|index| samples[*index].time + u64::from(samples[*index].quality)).sum()
}

#[inline(never)]
fn put(ring: &mut Ring, length: u32, port: u16) {
    let next = (ring.head + 1) % ring.slots.len();
    if next == ring.tail {
        ring.drops += 1;
        return;
    }
    let slot = &mut ring.slots[ring.head];
    slot.sequence += 1;
    slot.length = length;
    slot.port = port;
    slot.data[length as usize % 34] = port as u8;
    ring.head = next;
}

#[inline(never)]
fn take(ring: &mut Ring) -> u64 {
    let mut sum = 0;
    while ring.tail != ring.head {
        let slot = &ring.slots[ring.tail];
        sum += slot.sequence + u64::from(slot.length) + u64::from(slot.data[3]);
        ring.tail = (ring.tail + 1) % ring.slots.len();
    }
    sum
}

#[inline(never)]
fn area(shapes: &[Shape]) -> f64 {
    let mut sum = 0.0;
    for shape in shapes {
        sum += match shape {
            Shape::Circle { radius, id } => radius * radius + *id as f64,
            Shape::Rect { width, height, id, tag } => width * height + (*id + u64::from(*tag)) as f64,
        };
    }
    sum
}

#[inline(never)]
fn dynamic(meters: &mut [Box<dyn Meter>]) -> u64 {
    meters.iter_mut().enumerate().map(|(index, meter)| meter.add(index as u64 * 3)).sum()
}

#[inline(never)]
fn counted(all: &[Rc<Shared>]) -> u64 {
    let mut sum = 0;
    for shared in all {
        shared.uses.set(shared.uses.get() + 1);
        *shared.name.borrow_mut() += 2;
        sum += shared.sum.get();
    }
    sum
}

#[inline(never)]
fn grid(grid: &mut Grid, column: usize) -> f64 {
    let mut sum = 0.0;
    for row in 0..grid.rows.min(7) {
        sum += grid.cells[row][column];
        grid.sums[row] += grid.cells[row].iter().sum::<f64>();
    }
    sum
}

fn main() {
    let node = |key| Box::new(Node { key, weight: 1.0, left: None, right: None, visits: 0, red: key & 1 == 0 });
    let mut root = node(50);
    publish("Node", &*root, 1);
    for key in 0..60 {
        let fresh = node(key * 37 % 100);
        publish("Node", &*fresh, 1);
        insert(&mut root, fresh);
    }
    let mut samples = vec![Sample::default(); 50];
    publish("Sample", samples.as_ptr(), samples.len());
    let slots: Vec<Slot> = (0..16).map(|_| Slot { sequence: 0, length: 0, port: 0, data: [0; 34] }).collect();
    let mut ring = Box::new(Ring { head: 0, tail: 0, drops: 0, slots: slots.into() });
    publish("Ring", &*ring, 1);
    publish("Slot", ring.slots.as_ptr(), 16);
    let shapes: Vec<Shape> = (0..30)
        .map(|id| match id % 2 {
            0 => Shape::Circle { radius: 1.5, id },
            _ => Shape::Rect { width: 1.0, height: 2.0, id, tag: 3 },
        })
        .collect();
    publish("Shape", shapes.as_ptr(), shapes.len());
    let mut meters: Vec<Box<dyn Meter>> = Vec::new();
    for _ in 0..5 {
        let (sum, peak) = (Box::new(Sum { total: 0, calls: 0 }), Box::new(Peak { most: 0, least: 9, changes: 0, last: [0; 4] }));
        publish("Sum", &*sum, 1);
        publish("Peak", &*peak, 1);
        meters.push(sum);
        meters.push(peak);
    }
    let all: Vec<Rc<Shared>> =
        (0..10).map(|_| Rc::new(Shared { uses: Cell::new(0), name: RefCell::new(1), sum: Cell::new(4) })).collect();
    for shared in &all {
        publish("Shared", &**shared, 1);
    }
    let mut cells = Box::new(Grid { rows: 7, cells: [[1.0; 5]; 7], sums: [0.0; 7] });
    publish("Grid", &*cells, 1);
    let mut sum = 0;
    for round in 0..40 {
        put(&mut ring, round, round as u16);
        if round % 9 == 0 {
            sum += take(&mut ring);
        }
    }
    sum += by_index(&samples, &[3, 5, 17]) + dynamic(&mut meters) + counted(&all) + u64::from(histories(&mut samples, 2));
    let total = weigh(&root) + smooth(&mut samples) + area(&shapes) + grid(&mut cells, 2);
    std::process::exit(i32::from(total == 1.0 && sum == 1));
}
