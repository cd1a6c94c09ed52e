//! Any bytes as a trace, read and replayed: no panic, no endless work.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tallyline_trace::Trace;
use tallyline_trace::coherence::{Atomics, Geometry, Machine, Plan, replay};

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = Trace::open(bytes) else { return };
    for mapping in trace.mappings() {
        trace.mapping_at(mapping.process, mapping.start);
    }
    let Ok(geometry) = Geometry::new(3, 64, 4096, 4) else { return };
    for atomics in [Atomics::Free, Atomics::Recorded] {
        let plan = Plan { quantum: 200, atomics, process: trace.header().process };
        if let Ok(replayed) = replay(&trace, Machine::new(geometry), plan) {
            let total = replayed.summary.total;
            assert_eq!(total.accesses, total.hits + total.misses());
        }
    }
});
