// Where the time of a Rust program without the library's maps goes: each line says which fields it
// touches. With an argument it runs that many rounds.

pub struct Order {
    id: u64,
    flags: u32,
    price: f64,
    history: [u32; 8],
    owner: u16,
}

pub struct Node {
    key: u64,
    weight: u64,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

pub enum Message {
    Deposit { account: usize, amount: i64 },
    Transfer { from: usize, to: usize, amount: i64 },
    Close(usize),
}

#[derive(Default)]
pub struct Account {
    balance: i64,
    transfers: u32,
    closed: bool,
}

#[derive(Default)]
pub struct Bank {
    accounts: Vec<Account>,
    refused: u64,
    handled: u64,
}

pub struct Link {
    next: Option<Box<Link>>,
    value: u64,
    seen: u32,
}

pub struct Grid {
    cells: Vec<Cell>,
    width: usize,
}

#[derive(Clone, Copy)]
pub struct Cell {
    heat: f32,
    flow: f32,
    wall: bool,
}

#[inline(never)]
pub fn total(orders: &[Order]) -> f64 {
    let mut sum = 0.0;
    for order in orders {
        if order.flags & 1 == 1 { // Order.flags
            sum += order.price; // Order.price
        }
    }
    sum
}

#[inline(never)]
pub fn mark(orders: &mut [Order], round: usize) -> u64 {
    let mut sum = 0;
    for order in orders.iter_mut() {
        order.history[round & 7] += 1; // Order.history[] u32.
        order.owner ^= 1; // Order.owner
        sum += order.id; // Order.id
    }
    sum
}

#[inline(never)]
pub fn find(mut node: Option<&Node>, key: u64) -> u64 {
    while let Some(at) = node {
        if at.key == key { // Node.key
            return at.weight; // Node.weight
        }
        node = if key < at.key { at.left.as_deref() } else { at.right.as_deref() }; // Node.key Node.left Node.right Node.left.Some.__0 Node.right.Some.__0
    }
    0
}

#[inline(never)]
pub fn handle(bank: &mut Bank, messages: &[Message]) {
    for message in messages {
        bank.handled += 1; // Bank.handled
        match message { // Message.
            Message::Deposit { account, amount } => {
                bank.accounts[*account].balance += amount // Message.Deposit.account Message.Deposit.amount Account.balance Bank.accounts.buf.inner.ptr.pointer.pointer Bank.accounts.len
            }
            Message::Transfer { from, to, amount } => {
                if bank.accounts[*from].closed { // Account.closed Message.Transfer.from
                    bank.refused += 1; // Bank.refused
                } else {
                    bank.accounts[*from].balance -= amount; // Account.balance Message.Transfer.amount
                    bank.accounts[*to].balance += amount; // Account.balance Message.Transfer.to Message.Transfer.amount
                    bank.accounts[*to].transfers += 1; // Account.transfers
                }
            }
            Message::Close(account) => bank.accounts[*account].closed ^= true, // Account.closed Message.Close.__0
        }
    }
}

#[inline(never)]
pub fn visit(mut link: &mut Link) -> u64 {
    let mut sum = 0;
    loop {
        sum += link.value; // Link.value
        link.seen += 1; // Link.seen
        match &mut link.next { // Link.next Link.next.Some.__0
            Some(next) => link = next,
            None => return sum,
        }
    }
}

#[inline(never)]
pub fn spread(grid: &mut Grid) -> f32 {
    let mut hottest = 0.0_f32;
    for index in grid.width..grid.cells.len() - grid.width { // Grid.width Grid.cells.len
        if grid.cells[index].wall { // Cell.wall
            continue;
        }
        let above = grid.cells[index - grid.width].heat; // Cell.heat Grid.width
        let cell = &mut grid.cells[index];
        cell.flow += (above - cell.heat) * 0.25; // Cell.flow Cell.heat
        cell.heat += cell.flow; // Cell.heat Cell.flow
        hottest = hottest.max(cell.heat);
    }
    hottest
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(80);
    let n = 20_000;
    let order = |id: u64| Order { id, flags: id as u32, price: id as f64, history: [0; 8], owner: 1 };
    let mut orders: Vec<_> = (0..n as u64).map(order).collect();
    let mut root: Option<Box<Node>> = None;
    for i in 0..n as u64 {
        let key = i * 7919 % n as u64;
        let mut place = &mut root;
        while let Some(node) = place {
            place = if key < node.key { &mut node.left } else { &mut node.right };
        }
        *place = Some(Box::new(Node { key, weight: key * 3, left: None, right: None }));
    }
    let mut bank = Bank::default();
    bank.accounts.resize_with(1024, Account::default);
    let message = |i: usize| match i % 4 {
        0 => Message::Deposit { account: i * 7 % 1024, amount: 3 },
        1 | 2 => Message::Transfer { from: i * 13 % 1024, to: i * 5 % 1024, amount: 1 },
        _ => Message::Close(i * 3 % 1024),
    };
    let messages: Vec<_> = (0..n).map(message).collect();
    let mut head = Link { next: None, value: 1, seen: 0 };
    for i in 0..n as u64 {
        head = Link { next: Some(Box::new(head)), value: i, seen: 0 };
    }
    let mut grid = Grid { cells: vec![Cell { heat: 1.0, flow: 0.0, wall: false }; n], width: 100 };
    for index in (0..n).step_by(17) {
        grid.cells[index] = Cell { heat: 9.0, wall: true, ..grid.cells[index] };
    }
    let mut sum = 0.0;
    for round in 0..rounds {
        sum += total(&orders) + mark(&mut orders, round) as f64 + f64::from(spread(&mut grid));
        handle(&mut bank, &messages);
        sum += visit(&mut head) as f64;
        for i in 0..4000 {
            sum += find(root.as_deref(), i * 17 % n as u64) as f64;
        }
    }
    println!("{sum} {} {}", bank.handled, bank.refused);
}
