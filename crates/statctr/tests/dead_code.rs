//! Functions that count and that nobody calls are not in a program: their sections' descriptors go
//! with them.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, feature = "uniprocessor"))
))]

use statctr::{Combine, Counter, LazyGroup, LazyPool, PerCpu};
use std::process::Command;

macro_rules! unused {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(unsafe_code)] // a name that a linker shows
            fn $name(counter: &Counter, flow: &LazyGroup<PerCpu>) {
                // two ways out, and two sections that may have one
                counter.inc();
                flow.update([1, 2, 3, 4]);
                if counter.read() > 5 { counter.add(7) } else { counter.add(8) }
            }
        )*
    };
}

unused!(statctr_unused_a statctr_unused_b statctr_unused_c statctr_unused_d statctr_unused_e);

#[unsafe(no_mangle)]
#[inline(never)]
#[allow(unsafe_code)] // a name that a linker shows
fn statctr_used(counter: &Counter, flow: &LazyGroup<PerCpu>) {
    counter.inc();
    flow.update([1, 2, 3, 4]);
    if counter.read() > 5 { counter.add(7) } else { counter.add(8) }
}

#[test]
fn functions_that_nobody_calls_are_dropped() {
    let counter = Counter::new(0).expect("counter");
    let pool = LazyPool::<PerCpu>::new([Combine::Sum; 4]).expect("pool");
    let flow = pool.create().expect("object");
    statctr_used(&counter, &flow);
    statctr_used(&counter, &flow);
    assert_eq!((counter.read(), flow.read()), (17, [2, 4, 6, 8]));

    let program = std::env::current_exe().expect("the path of this test");
    let Ok(output) = Command::new("nm").arg(program).output() else {
        println!("skipped: there is no nm (package binutils)");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    if names.is_empty() {
        println!("skipped: this program is stripped");
        return;
    }
    assert!(names.contains(&"statctr_used"));
    let unused: Vec<_> = names.iter().filter(|name| name.starts_with("statctr_unused")).collect();
    assert!(unused.is_empty(), "{unused:?}");
}
