//! Recordings: whatever the bytes are, all records are read or there is an error, and every address
//! is resolved or not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tallyline_profile::perfdata::file::Body;
use tallyline_profile::perfdata::{AddressSpaces, Recording};

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::parse(bytes) else { return };
    let _ = recording.records().take_while(|record| record.is_ok()).count();
    let Ok(ordered) = recording.in_time_order() else { return };
    let mut spaces = AddressSpaces::new(&recording);
    for record in ordered.map_while(Result::ok) {
        if spaces.apply(&record.body).is_err() {
            return;
        }
        let Body::Sample(event, sample) = &record.body else { continue };
        assert!(recording.events.get(*event).is_some());
        let (pid, ip) = (sample.pid.unwrap_or(0), sample.ip.unwrap_or(0));
        if let Some(place) = spaces.resolve(pid, sample.mode, ip) {
            assert!(place.start <= ip);
            let _ = spaces.dso(place.dso);
        }
        let _ = spaces.resolve_data(pid, sample.mode, sample.addr.unwrap_or(0));
        let _ = sample.callers().count();
        let _ = sample.read.map(|read| read.iter().count());
        let _ = sample.branches.map(|stack| stack.iter().count());
        let _ = sample.user_registers.map(|registers| registers.iter().count());
        let _ = sample.data_source.map(|source| (source.level_text(), source.snoop_text(), source.tlb_text()));
    }
});
