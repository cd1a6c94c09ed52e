//! Static counters take no memory before the first update: in a program of its own with one test and no constructor, as
//! each other use of a static would be seen here.
#![cfg(not(feature = "uniprocessor"))]

use statctr::{Mode, Registry, StaticCounter, Unit};

static USED: StaticCounter = StaticCounter::new("used", "", Unit::NONE);
static UNUSED: [StaticCounter; 1000] = [const { StaticCounter::new("unused", "", Unit::NONE) }; 1000];

/// Returns the bytes reserved, the bytes resident and the slots of all statics.
fn memory() -> (usize, usize, usize) {
    let memory = StaticCounter::memory().expect("smaps");
    assert_eq!(memory.reservations > 0, memory.reserved > 0, "{memory:?}");
    (memory.reserved, memory.resident, memory.slots)
}

#[test]
fn statics_take_no_memory_before_the_first_update() {
    assert_eq!(memory(), (0, 0, 0), "at the start of the program");
    StaticCounter::prepare();
    assert_eq!(memory(), (0, 0, 0), "prepared");
    UNUSED.iter().chain([&USED]).for_each(StaticCounter::list);
    assert!(UNUSED.iter().chain([&USED]).all(|counter| counter.read() == 0));
    let mut listed = 0;
    Registry::global().visit(|sample| listed += usize::from(sample.description.name() == "unused"));
    assert_eq!(listed, 1, "statics of one name");
    assert_eq!(memory(), (0, 0, 0), "listed and read");

    USED.inc();
    // prepared, so that the first update is on per-CPU words whoever registers threads
    assert!(matches!(USED.mode(), Mode::Rseq | Mode::Striped), "{}", USED.mode());
    assert_eq!((USED.read(), USED.fallback_part()), (1, 0));
    let (reserved, resident, slots) = memory();
    assert!(reserved > 0 && resident > 0, "{reserved} bytes reserved, {resident} of them resident");
    assert_eq!(slots, 1, "of {} counters", UNUSED.len() + 1);
}
