//! Values in Rust's containers, published where the containers put them.
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

include!("publish.rs");

#[derive(Clone, Default)]
pub struct Item {
    key: u64,
    flags: u32,
    uses: u32,
    weight: f64,
    label: String,
}

#[derive(Default)]
pub struct Session {
    packets: u64,
    bytes: u64,
    port: u16,
    item: Rc<Item>,
}

#[inline(never)]
fn in_hash(items: &mut HashMap<u64, Item>, key: u64) -> f64 {
    match items.get_mut(&key) {
        Some(item) => {
            item.uses += 1;
            item.weight
        }
        None => 0.0,
    }
}

#[inline(never)]
fn all_hash(items: &HashMap<u64, Item>) -> f64 {
    items.values().map(|item| item.weight * f64::from(item.flags)).sum()
}

#[inline(never)]
fn in_tree(sessions: &mut BTreeMap<u64, Session>, key: u64, size: u64) -> u64 {
    let Some(session) = sessions.get_mut(&key) else { return 0 };
    session.packets += 1;
    session.bytes += size;
    u64::from(session.port) + session.item.key
}

#[inline(never)]
fn all_tree(sessions: &BTreeMap<u64, Session>) -> u64 {
    sessions.iter().map(|(key, session)| key ^ session.bytes ^ session.item.key).sum()
}

#[inline(never)]
fn queued(queue: &mut VecDeque<Item>) -> f64 {
    let mut sum = 0.0;
    for item in queue.iter_mut() {
        item.flags += 1;
        sum += item.weight;
    }
    sum
}

#[inline(never)]
fn shared(all: &[Arc<Item>]) -> u64 {
    all.iter().map(|item| item.key + item.label.len() as u64).sum()
}

#[inline(never)]
fn boxed(all: &mut Vec<Box<Item>>) -> u32 {
    let mut sum = 0;
    for item in all {
        item.uses += 1;
        sum += item.flags;
    }
    sum
}

fn main() {
    let item = |key| Item { key, flags: 1, uses: 0, weight: 2.0, label: "label".into() };
    let mut hashed: HashMap<u64, Item> = (0..50).map(|key| (key * 3, item(key))).collect();
    let mut sessions: BTreeMap<u64, Session> =
        (0..60).map(|key| (key * 2, Session { item: Rc::new(item(key)), ..Session::default() })).collect();
    let mut queue: VecDeque<Item> = (0..20).map(item).collect();
    let all: Vec<Arc<Item>> = (0..20).map(|key| Arc::new(item(key))).collect();
    let mut boxes: Vec<Box<Item>> = (0..20).map(|key| Box::new(item(key))).collect();
    hashed.values().for_each(|item| publish("Item", item, 1));
    for session in sessions.values() {
        publish("Session", session, 1);
        publish("Item", &*session.item, 1);
    }
    queue.iter().for_each(|item| publish("Item", item, 1));
    all.iter().for_each(|item| publish("Item", &**item, 1));
    boxes.iter().for_each(|item| publish("Item", &**item, 1));
    let (mut total, mut sum) = (0.0, 0);
    for key in 0..60 {
        total += in_hash(&mut hashed, key);
        sum += in_tree(&mut sessions, key, 64);
    }
    total += all_hash(&hashed) + queued(&mut queue);
    sum += all_tree(&sessions) + shared(&all) + u64::from(boxed(&mut boxes));
    std::process::exit(i32::from(total == 1.0 && sum == 1));
}
