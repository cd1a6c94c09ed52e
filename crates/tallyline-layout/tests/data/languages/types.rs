// Types of every kind that rustc lays out.
#![allow(dead_code)]
use std::hint::black_box;
#[derive(Clone, Copy)]
enum C {
    A,
    B,
    D = 200,
}
enum Data {
    Unit,
    Tup(u8, u32),
    Named { a: u64, b: u8 },
    Neg(i16),
}
enum Niche {
    A(Box<u32>),
    B,
    Cc,
}
enum Multi {
    X(String),
    Y(u8),
    Z,
}
#[repr(C)]
struct Rc {
    a: u8,
    b: u32,
    c: u16,
}
#[repr(C, packed)]
struct Pk {
    a: u8,
    b: u32,
}
#[repr(align(64))]
struct Al {
    a: u8,
}
struct Holds {
    al: Al,
    x: u8,
}
struct Slices<'a> {
    s: &'a str,
    b: &'a [u64],
    d: &'a dyn std::fmt::Debug,
    f: fn(u8) -> u32,
    r: &'a u8,
    t: (u8, u32, u16),
    o: Option<Box<u8>>,
    arr: [[u16; 3]; 2],
    z: std::marker::PhantomData<u8>,
    ch: char,
    w: u128,
    un: Uu,
}
#[derive(Clone, Copy)]
union Uu {
    a: u32,
    b: [u8; 6],
}
#[repr(i8)]
enum Ri {
    M = -3,
    N(u32) = 5,
}
enum One {
    Only(u32, u8),
}
enum Never {}
async fn asy(x: u64) -> u64 {
    let y = [x; 4];
    other(x).await;
    y[1]
}
async fn other(x: u64) {
    black_box(x);
}
fn main() {
    let c = C::B;
    let d = [Data::Unit, Data::Tup(1, 2), Data::Named { a: 1, b: 2 }, Data::Neg(3)];
    let n = Niche::A(Box::new(1));
    let m = Multi::Y(1);
    let rc = Rc { a: 1, b: 2, c: 3 };
    let pk = Pk { a: 1, b: 2 };
    let h = Holds { al: Al { a: 1 }, x: 1 };
    let v = vec![1u64];
    let s = Slices {
        s: "a",
        b: &[1, 2],
        d: &1u8,
        f: |x| x as u32,
        r: &1,
        t: (1, 2, 3),
        o: None,
        arr: [[1; 3]; 2],
        z: std::marker::PhantomData,
        ch: 'a',
        w: 1,
        un: Uu { a: 1 },
    };
    let ri = Ri::N(1);
    let one = One::Only(1, 2);
    let o: Option<u32> = Some(1);
    let oc: Option<char> = None;
    let r: Result<u32, String> = Ok(1);
    let oo: Option<Option<bool>> = None;
    let cc = move || {
        black_box(&v);
    };
    let f = asy(1);
    let nev: Option<Never> = None;
    let u128e: Option<u128> = None;
    black_box((&c, &d, &n, &m, &rc, &pk, &h, &s, &ri, &one, &o, &oc, &r, &oo, &cc, &f, &nev, &u128e));
}
