//! The Rust functions that `ci/golden/run` disassembles: those of probe.c.

use statctr::{Counter, LazyGroup, PerCpu, StaticCounter, Unit};

statctr::group! {
    /// Events of every width.
    pub struct Wide {
        /// Eight items.
        event eight(e0, e1, e2, e3, e4, e5, e6, e7);
        /// Four items.
        event four(f0, f1, f2, f3);
        /// Two items.
        event two(t0, t1);
        item e0: Unit::NONE, "";
        item e1: Unit::NONE, "";
        item e2: Unit::NONE, "";
        item e3: Unit::NONE, "";
        item e4: Unit::NONE, "";
        item e5: Unit::NONE, "";
        item e6: Unit::NONE, "";
        item e7: Unit::NONE, "";
        item f0: Unit::NONE, "";
        item f1: Unit::NONE, "";
        item f2: Unit::NONE, "";
        item f3: Unit::NONE, "";
        item t0: Unit::NONE, "";
        item t1: Unit::NONE, "";
    }
}

#[unsafe(no_mangle)]
pub fn probe_inc(counter: &Counter) {
    counter.inc();
}

#[unsafe(no_mangle)]
pub fn probe_dec(counter: &Counter) {
    counter.dec();
}

#[unsafe(no_mangle)]
pub fn probe_add(counter: &Counter, value: u64) {
    counter.add(value);
}

#[unsafe(no_mangle)]
pub fn probe_loop(counter: &Counter, n: u64) {
    for _ in 0..n {
        counter.inc();
    }
}

#[unsafe(no_mangle)]
pub fn probe_static(counter: &'static StaticCounter) {
    counter.inc();
}

/// The first update may be the static's first of all: the loop then does not go on with what that loaded.
#[unsafe(no_mangle)]
pub fn probe_static_loop(counter: &'static StaticCounter, n: u64) {
    counter.inc();
    for _ in 0..n {
        counter.inc();
    }
}

#[unsafe(no_mangle)]
pub fn probe_item(group: &Wide, value: u64) {
    group.add(Wide::e3, value);
}

#[unsafe(no_mangle)]
pub fn probe_event2(group: &Wide, value: u64) {
    group.two(1, value);
}

#[unsafe(no_mangle)]
pub fn probe_event4(group: &Wide, value: u64) {
    group.four(1, value, 1, value);
}

#[unsafe(no_mangle)]
pub fn probe_event8(group: &Wide, v: &[u64; 8]) {
    group.eight(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}

#[unsafe(no_mangle)]
pub fn probe_lazy(flow: &LazyGroup<PerCpu>, bytes: u64, time: u64) {
    flow.update([1, bytes, time, 2]);
}
