// Where the time of a Rust program on the library's containers goes: each line says which fields it
// touches. With an argument it runs that many rounds.
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

#[derive(Clone)]
pub struct Order {
    id: u64,
    flags: u32,
    price: f64,
    name: String,
}

pub trait Task {
    fn run(&mut self) -> u64;
}

pub struct Sum {
    total: u64,
    step: u64,
}

pub struct Mean {
    seen: u64,
    mean: f64,
}

impl Task for Sum {
    fn run(&mut self) -> u64 {
        self.total += self.step; // Sum.total Sum.step
        self.total // Sum.total
    }
}

impl Task for Mean {
    fn run(&mut self) -> u64 {
        self.seen += 1; // Mean.seen
        self.mean += 0.5; // Mean.mean
        self.seen // Mean.seen
    }
}

pub struct Shared {
    orders: RefCell<Vec<Order>>,
    visits: Cell<u64>,
}

#[inline(never)]
pub fn in_hash(orders: &mut HashMap<u64, Order>, key: u64) -> u64 {
    match orders.get_mut(&key) {
        Some(order) => {
            order.flags ^= 1; // Order.flags tuple.__1.flags
            order.id // Order.id tuple.__1.id
        }
        None => 0,
    }
}

#[inline(never)]
pub fn all_hash(orders: &HashMap<u64, Order>) -> f64 {
    let mut sum = 0.0;
    for order in orders.values() {
        sum += order.price; // Order.price tuple.__1.price
    }
    sum
}

#[inline(never)]
pub fn in_tree(orders: &BTreeMap<u64, Order>, key: u64) -> u64 {
    orders.get(&key).map_or(0, |order| order.flags.into()) // Order.flags LeafNode.vals[].value.value.__0.flags
}

#[inline(never)]
pub fn all_tree(orders: &BTreeMap<u64, Order>) -> f64 {
    let mut sum = 0.0;
    for order in orders.values() {
        sum += order.price; // Order.price LeafNode.vals[].value.value.__0.price
    }
    sum
}

#[inline(never)]
pub fn counted(orders: &[Rc<RefCell<Order>>]) -> u64 {
    let mut sum = 0;
    for order in orders {
        let mut order = order.borrow_mut();
        order.flags += 1; // RcInner.value.value.value.flags Order.flags
        sum += order.id; // RcInner.value.value.value.id Order.id
    }
    sum
}

#[inline(never)]
pub fn dynamic(tasks: &mut Vec<Box<dyn Task>>) -> u64 {
    let mut sum = 0;
    for task in tasks {
        sum += task.run(); // Box.pointer Box.vtable
    }
    sum
}

#[inline(never)]
pub fn shared(all: &Rc<Shared>) -> f64 {
    all.visits.set(all.visits.get() + 1); // RcInner.value.visits.value.value Shared.visits.value.value
    let mut sum = 0.0;
    for order in all.orders.borrow().iter() {
        sum += order.price; // Order.price
    }
    sum
}

#[inline(never)]
pub fn queued(queue: &mut VecDeque<(u64, u32)>) -> u64 {
    let mut sum = 0;
    for _ in 0..2000 {
        if let Some((id, flags)) = queue.pop_front() {
            sum += id + u64::from(flags);
            queue.push_back((id, flags ^ 1));
        }
    }
    sum
}

#[inline(never)]
pub fn by_name(orders: &HashMap<String, Box<Order>>, name: &str) -> f64 {
    orders.get(name).map_or(0.0, |order| order.price) // Order.price tuple.__1
}

#[inline(never)]
pub fn boxed(orders: &mut [Box<Order>]) -> u64 {
    let mut sum = 0;
    for order in orders {
        order.flags |= 2; // Order.flags Order*.
        sum += order.name.len() as u64; // Order.name.vec.len Order*.
    }
    sum
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(60);
    let n = 8000_u64;
    let (mut hash, mut tree, mut names) = (HashMap::new(), BTreeMap::new(), HashMap::new());
    let (mut counts, mut boxes) = (Vec::new(), Vec::new());
    let mut tasks: Vec<Box<dyn Task>> = Vec::new();
    let all = Rc::new(Shared { orders: RefCell::new(Vec::new()), visits: Cell::new(0) });
    let mut queue = VecDeque::new();
    for i in 0..n {
        let id = i * 7919 % n;
        let order = Order { id, flags: i as u32, price: 1.5, name: format!("order {id}") };
        hash.insert(id, order.clone());
        tree.insert(id, order.clone());
        names.insert(order.name.clone(), Box::new(order.clone()));
        counts.push(Rc::new(RefCell::new(order.clone())));
        boxes.push(Box::new(order.clone()));
        all.orders.borrow_mut().push(order);
        queue.push_back((id, 1));
        tasks.push(if i % 3 == 0 { Box::new(Sum { total: 0, step: i }) } else { Box::new(Mean { seen: 0, mean: 0.0 }) });
    }
    let mut sum = 0.0;
    for _ in 0..rounds {
        sum += all_hash(&hash) + all_tree(&tree) + shared(&all);
        sum += (counted(&counts) + dynamic(&mut tasks) + queued(&mut queue) + boxed(&mut boxes)) as f64;
        for i in 0..n {
            sum += (in_hash(&mut hash, i * 17 % n) + in_tree(&tree, i * 31 % (n + 99))) as f64;
        }
        for i in 0..500 {
            sum += by_name(&names, if i % 3 == 0 { "order 77" } else { "nothing" });
        }
    }
    println!("{sum}");
}
