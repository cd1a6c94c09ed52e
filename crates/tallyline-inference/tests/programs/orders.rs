use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

#[derive(Clone)]
pub struct Item {
    key: u64,
    flags: u32,
    weight: f64,
    next: Option<Box<Item>>,
}

pub enum Shape {
    Circle { radius: f64, id: u64 },
    Rect { width: f64, height: f64, id: u64 },
    Named(Box<Item>),
}

pub trait Cost {
    fn cost(&self) -> u64;
}

impl Cost for Item {
    fn cost(&self) -> u64 {
        self.key // Item.key
    }
}

pub struct Cache {
    entries: Vec<Box<Item>>,
    hits: u64,
    misses: u64,
}

#[inline(never)]
pub fn walk(mut item: &Item) -> u64 {
    let mut sum = 0;
    loop {
        sum += item.key; // Item.key
        match &item.next { // Item.next.Some.__0 Item.next
            Some(next) => item = next,
            None => return sum,
        }
    }
}

#[inline(never)]
pub fn sum_of(items: &[Item]) -> f64 {
    let mut sum = 0.0;
    for item in items {
        if item.flags & 1 == 1 { // Item.flags
            sum += item.weight; // Item.weight
        }
    }
    sum
}

#[inline(never)]
pub fn cached(cache: &mut Cache, index: usize) -> u64 {
    match cache.entries.get(index) {
        Some(entry) => {
            cache.hits += 1; // Cache.hits
            entry.key // Item.key Item*.
        }
        None => {
            cache.misses += 1; // Cache.misses
            0
        }
    }
}

#[inline(never)]
pub fn area(shape: &Shape) -> f64 {
    match shape { // Shape.
        Shape::Circle { radius, .. } => radius * radius, // Shape.Circle.radius
        Shape::Rect { width, height, id } => width * height + *id as f64,
        Shape::Named(item) => item.weight, // Item.weight Shape.Named.__0
    }
}

#[inline(never)]
pub fn hashed(map: &HashMap<u64, Item>, key: u64) -> u64 {
    match map.get(&key) {
        Some(item) => item.flags as u64, // Item.flags tuple.__1.flags
        None => 0,
    }
}

#[inline(never)]
pub fn all_hashed(map: &HashMap<u64, Item>) -> u64 {
    let mut sum = 0;
    for item in map.values() {
        sum += item.flags as u64; // Item.flags tuple.__1.flags
    }
    sum
}

#[inline(never)]
pub fn sorted(map: &BTreeMap<u64, Item>, key: u64) -> u64 {
    match map.get(&key) {
        Some(item) => item.flags as u64, // Item.flags LeafNode.vals[].value.value.__0.flags
        None => 0,
    }
}

#[inline(never)]
pub fn counted(items: &[Rc<RefCell<Item>>]) -> u64 {
    let mut sum = 0;
    for item in items {
        let mut item = item.borrow_mut();
        item.flags += 1; // RcInner.value.value.value.flags Item.flags
        sum += item.key; // RcInner.value.value.value.key Item.key
    }
    sum
}

#[inline(never)]
pub fn dynamic(items: &[Box<dyn Cost>]) -> u64 {
    let mut sum = 0;
    for item in items {
        sum += item.cost(); // Box.pointer Box.vtable
    }
    sum
}

fn main() {
    let mut items = vec![];
    let (mut hash, mut tree, mut counts) = (HashMap::new(), BTreeMap::new(), vec![]);
    let mut costs: Vec<Box<dyn Cost>> = vec![];
    let mut cache = Cache { entries: vec![], hits: 0, misses: 0 };
    let mut head: Option<Box<Item>> = None;
    for i in 0..1000u64 {
        let item = Item { key: i, flags: i as u32, weight: i as f64, next: None };
        items.push(item.clone());
        hash.insert(i, item.clone());
        tree.insert(i, item.clone());
        counts.push(Rc::new(RefCell::new(item.clone())));
        costs.push(Box::new(item.clone()));
        cache.entries.push(Box::new(item.clone()));
        head = Some(Box::new(Item { next: head, ..item }));
    }
    let shapes = [
        Shape::Circle { radius: 1.0, id: 3 },
        Shape::Rect { width: 1.0, height: 2.0, id: 4 },
        Shape::Named(Box::new(items[3].clone())),
    ];
    let mut sum = 0.0;
    for round in 0..100u64 {
        sum += sum_of(&items) + area(&shapes[round as usize % 3]);
        sum += (head.as_deref().map_or(0, walk) + all_hashed(&hash) + counted(&counts) + dynamic(&costs)) as f64;
        for i in 0..1000 {
            sum += (hashed(&hash, i) + sorted(&tree, i) + cached(&mut cache, i as usize)) as f64;
        }
    }
    println!("{sum}");
}
