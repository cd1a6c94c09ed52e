// Enums whose variants lie on top of each other: which variant it is only the tag says.

use std::hint::black_box;

pub struct Std {
    pub scale: u64,
    pub weight: [u64; 4],
    pub limit: u32,
}

pub struct Sum {
    pub count: u64,
    pub total: u64,
    pub least: u64,
    pub most: u64,
    pub last: u32,
}

pub enum Reducer {
    Std(Std),
    Sum(Sum),
}

pub enum Shape {
    A(u32, u64),
    B(u64, u64),
    C { x: u16, y: u64 },
    D(u64),
    E(u32, [u64; 3]),
}

/// The tag of `Named` is a number that no capacity of a string is.
pub enum Label {
    Text(String, u64),
    Number { low: u64, high: u64, other: u64 },
}

#[inline(never)]
pub fn feed(reducer: &mut Reducer, by: u64) {
    match reducer {
        Reducer::Sum(sum) => {
            sum.count += 1;
            sum.total += by;
            sum.last = by as u32;
        }
        Reducer::Std(std) => {
            std.scale = by;
            std.limit += 1;
        }
    }
}

#[inline(never)]
pub fn by_table(shape: &Shape) -> u64 {
    match shape {
        Shape::A(a, b) => *a as u64 * *b,
        Shape::B(a, b) => *a + *b,
        Shape::C { x, y } => *x as u64 ^ *y,
        Shape::D(a) => *a << 3,
        Shape::E(a, b) => *a as u64 + b[0] * b[2],
    }
}

#[inline(never)]
pub fn in_loop(shapes: &[Shape]) -> u64 {
    let mut sum = 0;
    for shape in shapes {
        if let Shape::B(_, b) = shape {
            sum += *b;
        }
    }
    sum
}

#[inline(never)]
pub fn by_niche(label: &Label) -> u64 {
    match label {
        Label::Text(_, size) => *size,
        Label::Number { low, high, .. } => *low + *high,
    }
}

/// No tag is tested here: the caller promises the variant, and nothing in the code shows which.
///
/// # Safety
/// The shape is a `B`.
#[inline(never)]
pub unsafe fn unproven(shape: &Shape) -> u64 {
    match shape {
        Shape::B(a, b) => *a * 7 + *b,
        _ => unsafe { std::hint::unreachable_unchecked() },
    }
}

fn main() {
    let mut sum = Reducer::Sum(Sum { count: 0, total: 0, least: 0, most: 0, last: 0 });
    let mut std = Reducer::Std(Std { scale: 0, weight: [0; 4], limit: 0 });
    for by in 0..1000 {
        feed(black_box(&mut sum), by);
        feed(black_box(&mut std), by);
    }
    let shapes = [Shape::A(1, 2), Shape::B(2, 3), Shape::C { x: 2, y: 3 }, Shape::D(9), Shape::E(1, [1, 2, 3])];
    let mut all = in_loop(black_box(&shapes));
    for shape in &shapes {
        all += by_table(black_box(shape));
    }
    all += unsafe { unproven(black_box(&shapes[1])) };
    all += by_niche(black_box(&Label::Text(String::new(), 2)));
    all += by_niche(black_box(&Label::Number { low: 2, high: 3, other: 1 }));
    println!("{all}");
}
