//! Shapes of Rust: the first access to a random node is the only one that can stall.
//!
//! Without the standard library, so that the program is as small as those in C.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{CStr, c_char, c_double, c_int, c_long, c_void};
use core::mem::size_of;
use core::panic::PanicInfo;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

const NODES: u64 = 1 << 22;

#[repr(align(64))]
struct Entry {
    key: u64,
    expires: u64,
    hits: u64,
    refreshed: u64,
}

enum State {
    Free,
    Small(u64),
    Large { first: u64, second: u64 },
}

#[repr(align(64))]
struct Slot {
    state: State,
    uses: AtomicU64,
}

trait Visit {
    fn visit(&self, x: u64) -> u64;
}

struct Sum;
struct Parity;

impl Visit for Sum {
    #[inline(never)]
    fn visit(&self, x: u64) -> u64 {
        x + 1
    }
}

impl Visit for Parity {
    #[inline(never)]
    fn visit(&self, x: u64) -> u64 {
        x ^ 1
    }
}

#[repr(align(64))]
struct Owner {
    warm: u64,
    object: Box<dyn Visit>,
}

/// A node, of which there are many in memory.
trait Node: Sized {
    /// Returns the place of the pointer to the first one.
    fn first() -> *mut *mut Self;
}

static mut ENTRIES: *mut Entry = null_mut();
static mut SLOTS: *mut Slot = null_mut();
static mut OWNERS: *mut Owner = null_mut();

impl Node for Entry {
    fn first() -> *mut *mut Entry {
        &raw mut ENTRIES
    }
}

impl Node for Slot {
    fn first() -> *mut *mut Slot {
        &raw mut SLOTS
    }
}

impl Node for Owner {
    fn first() -> *mut *mut Owner {
        &raw mut OWNERS
    }
}

static mut MEMORY: *mut c_void = null_mut();
static mut RANDOM: u64 = 88172645463325252;

#[inline(always)]
fn index() -> usize {
    // SAFETY: the program has one thread.
    unsafe {
        RANDOM ^= RANDOM << 13;
        RANDOM ^= RANDOM >> 7;
        RANDOM ^= RANDOM << 17;
        (RANDOM & (NODES - 1)) as usize
    }
}

#[inline(always)]
fn pick<T: Node>() -> &'static mut T {
    // SAFETY: `prepare` has written nodes of this type, and only one is borrowed at a time.
    unsafe { &mut *(*T::first()).add(index()) }
}

/// Returns a random node whose values are those of the turn: branches on them go a way that is predicted.
#[inline(always)]
fn pick_for<T: Node>(turn: c_long) -> &'static mut T {
    // SAFETY: as in `pick`.
    unsafe { &mut *(*T::first()).add(index() & !3 | (turn & 3) as usize) }
}

fn barrier() {
    compiler_fence(Ordering::SeqCst);
}

/// Returns the place that a compare jumps to is also reached by falling through.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shape_expires(n: c_long) -> u64 {
    let mut now = 0;
    for _ in 0..n {
        let entry = pick::<Entry>();
        now += 1;
        if entry.expires < now {
            entry.expires = now + entry.key;
            entry.refreshed += 1;
        }
        entry.hits += 1;
    }
    now
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shape_compare(n: c_long) -> u64 {
    let mut sum = 0;
    for turn in 0..n {
        let entry = pick_for::<Entry>(turn);
        if entry.expires > 10 && entry.hits != 7 && entry.key != 3 {
            sum += entry.refreshed;
        }
        sum += 1;
    }
    sum
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shape_enumeration(n: c_long) -> u64 {
    let mut sum = 0;
    for turn in 0..n {
        let slot = pick_for::<Slot>(turn);
        match slot.state {
            State::Free => sum += 1,
            State::Small(value) => sum ^= value,
            State::Large { first, second } => sum += first * second,
        }
    }
    sum
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shape_atomic(n: c_long) -> u64 {
    let mut sum = 0;
    for _ in 0..n {
        let slot = pick::<Slot>();
        sum += slot.uses.fetch_add(1, Ordering::Relaxed);
        barrier();
        if let State::Small(value) = slot.state {
            sum ^= value;
        }
    }
    sum
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shape_dyn_trait(n: c_long) -> u64 {
    let mut sum = 0;
    for turn in 0..n {
        // the object's type is that of 256 turns: some CPUs predict an indirect call by its last target alone
        let owner = pick_for::<Owner>(turn >> 8);
        sum = owner.object.visit(sum);
        barrier();
        owner.warm += 1;
    }
    sum
}

/// Writes a node of each index.
fn prepare<T: Node>(make: impl Fn(u64) -> T) {
    assert!(size_of::<T>() == 64);
    // SAFETY: the program has one thread.
    unsafe { *T::first() = MEMORY.cast() }
    for index in 0..NODES {
        // SAFETY: there is memory for so many nodes of 64 bytes.
        unsafe { MEMORY.cast::<T>().add(index as usize).write(make(index)) }
    }
}

fn prepare_entries() {
    prepare(|index| Entry { key: index & 7, expires: 9 + index % 4, hits: 0, refreshed: 0 });
}

fn prepare_slots() {
    prepare(|index| {
        let state = match index % 4 {
            0 => State::Free,
            1 => State::Small(index),
            _ => State::Large { first: index, second: 3 },
        };
        Slot { state, uses: AtomicU64::new(index) }
    });
}

fn prepare_owners() {
    prepare(|index| {
        let object: Box<dyn Visit> = if index % 2 == 0 { Box::new(Sum) } else { Box::new(Parity) };
        Owner { warm: 0, object }
    });
}

struct Shape {
    name: &'static CStr,
    function: extern "C" fn(c_long) -> u64,
    prepare: fn(),
}

static SHAPES: [Shape; 5] = [
    Shape { name: c"expires", function: shape_expires, prepare: prepare_entries },
    Shape { name: c"compare", function: shape_compare, prepare: prepare_entries },
    Shape { name: c"enumeration", function: shape_enumeration, prepare: prepare_slots },
    Shape { name: c"atomic", function: shape_atomic, prepare: prepare_slots },
    Shape { name: c"dyn_trait", function: shape_dyn_trait, prepare: prepare_owners },
];

#[repr(C)]
struct TimeSpec {
    seconds: c_long,
    nanoseconds: c_long,
}

const CLOCK_PROCESS_CPUTIME_ID: c_int = 2;
const MADV_HUGEPAGE: c_int = 14;

#[link(name = "c")]
unsafe extern "C" {
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn madvise(memory: *mut c_void, size: usize, advice: c_int) -> c_int;
    fn abort() -> !;
    fn puts(text: *const c_char) -> c_int;
    fn strcmp(one: *const c_char, other: *const c_char) -> c_int;
    fn strtod(text: *const c_char, end: *mut *mut c_char) -> c_double;
    fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
}

struct Memory;

// SAFETY: the C library's.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: both are as the layout says.
        unsafe { aligned_alloc(layout.align(), layout.size()).cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: it is of `alloc`.
        unsafe { free(memory.cast()) }
    }
}

#[global_allocator]
static GLOBAL: Memory = Memory;

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    // SAFETY: it has no conditions.
    unsafe { abort() }
}

/// Does nothing; the unwinder asks for this symbol in code that was compiled to unwind.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

fn seconds_on_cpu() -> f64 {
    let mut now = TimeSpec { seconds: 0, nanoseconds: 0 };
    // SAFETY: it writes to the time that it is given.
    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    now.seconds as f64 + now.nanoseconds as f64 / 1e9
}

/// Runs the shapes as `run_shapes` in `shapes.h` does.
#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    let size = 64 * NODES as usize;
    // SAFETY: memory of that size and alignment; there are `count` words, each a string.
    let words = unsafe {
        MEMORY = aligned_alloc(1 << 21, size);
        if MEMORY.is_null() {
            return 2;
        }
        madvise(MEMORY, size, MADV_HUGEPAGE);
        core::slice::from_raw_parts(words, count as usize)
    };
    let mut sum = 0;
    let [_, seconds, names @ ..] = words else {
        for shape in &SHAPES {
            // SAFETY: a string.
            unsafe { puts(shape.name.as_ptr()) };
        }
        return 0;
    };
    // SAFETY: a string.
    let seconds = unsafe { strtod(*seconds, null_mut()) };
    for name in names {
        // SAFETY: both are strings.
        let is_named = |shape: &&Shape| unsafe { strcmp(shape.name.as_ptr(), *name) == 0 };
        let Some(shape) = SHAPES.iter().find(is_named) else { return 1 };
        (shape.prepare)();
        let end = seconds_on_cpu() + seconds;
        while seconds_on_cpu() < end {
            sum ^= (shape.function)(20_000);
        }
    }
    (sum == 1) as c_int
}
