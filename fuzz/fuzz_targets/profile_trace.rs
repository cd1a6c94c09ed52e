//! Any bytes as a trace, read and replayed: no panic, no endless work.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tallyline_trace::Trace;
use tallyline_trace::coherence::{AtomicOrder, Geometry, Machine, ReplayOptions, replay};

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = Trace::from_bytes(bytes) else { return };
    for mapping in trace.mappings() {
        trace.mapping_at(mapping.process(), mapping.start());
    }
    let Ok(geometry) = Geometry::new(3, 64, 4096, 4) else { return };
    for atomics in [AtomicOrder::Free, AtomicOrder::Recorded] {
        let plan = ReplayOptions { quantum: 200, atomics, process: trace.header().first_process() };
        if let Ok((_, summary)) = replay(&trace, Machine::new(geometry), plan) {
            let total = summary.total();
            assert_eq!(total.accesses(), total.hits() + total.misses());
        }
    }
});
