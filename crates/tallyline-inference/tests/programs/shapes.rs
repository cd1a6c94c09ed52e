// An enum whose variants share their bytes; two functions are told which variants there are.
#[repr(u64)]
pub enum Shape { Circle(u64), Square(u64), Oblong(u32, u32) }
use Shape::*;
#[no_mangle] pub extern "C" fn is_oblong(p: &Shape) -> bool { matches!(p, Oblong(..)) }
#[no_mangle] pub extern "C" fn even(p: &Shape) -> u64 {
    match p { Circle(x) | Square(x) => *x, _ => unsafe { std::hint::unreachable_unchecked() } }
}
#[no_mangle] pub extern "C" fn width(p: &Shape) -> u32 {
    match p { Oblong(x, _) => *x, _ => unsafe { std::hint::unreachable_unchecked() } }
}
