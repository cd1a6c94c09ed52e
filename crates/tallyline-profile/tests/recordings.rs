//! Recordings of one small program, by perf 6.1 and by `tallyline record`: a file, a compressed one, a
//! stream, a group; and one with data sources that the example `memory_profile` wrote. The numbers
//! are those of `perf script`.

use tallyline_profile::perfdata::file::Body;
use tallyline_profile::perfdata::sample::CpuMode;
use tallyline_profile::perfdata::spaces::DsoKind;
use tallyline_profile::perfdata::{AddressSpaces, Recording};

fn bytes(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}.data", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Samples, those of programs, and those among them in the program itself.
fn count(recording: &Recording<'_>) -> (usize, usize, usize) {
    let mut spaces = AddressSpaces::new(recording);
    let (mut all, mut user, mut program) = (0, 0, 0);
    for record in recording.in_time_order().expect("well-formed") {
        let record = record.expect("well-formed");
        spaces.apply(&record.body).expect("within limits");
        let Body::Sample(_, sample) = &record.body else { continue };
        all += 1;
        if sample.mode != CpuMode::User {
            continue;
        }
        user += 1;
        let place =
            spaces.resolve(sample.pid.expect("asked for"), sample.mode, sample.ip.expect("asked for"));
        let dso = spaces.dso(place.expect("mapped").dso);
        if dso.path == "/opt/sample/walk" {
            assert_eq!(dso.kind, DsoKind::File);
            program += 1;
        }
        let thread = spaces.comm(sample.tid.expect("asked for"));
        assert_eq!(thread.map(AsRef::as_ref), Some("walk"));
    }
    (all, user, program)
}

fn names(recording: &Recording<'_>) -> Vec<String> {
    recording.events.iter().map(|event| event.name.clone()).collect()
}

#[test]
fn our_own_recording_has_registers_call_chains_and_build_ids() {
    let bytes = bytes("ours");
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert_eq!(recording.warnings, [""; 0]);
    assert_eq!(names(&recording), ["cpu-clock"]);
    let (all, user, program) = count(&recording);
    assert_eq!(all, 27);
    assert!(recording.build_ids.get(b"/opt/sample/walk").is_some());
    assert!(program > 0 && program <= user);
    for record in recording.records() {
        if let Body::Sample(_, sample) = record.expect("well-formed").body {
            assert!(sample.user_registers.is_some_and(|registers| registers.iter().count() == 20));
            assert_eq!(sample.callers().next().map(|(_, ip)| ip), sample.ip);
        }
    }
}

#[test]
fn compressed_records_are_inflated() {
    let bytes = bytes("compressed");
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert_eq!(names(&recording), ["cpu-clock:u"]);
    assert_eq!(count(&recording).0, 27);
}

#[test]
fn a_stream_has_its_events_in_records() {
    let bytes = bytes("stream");
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert!(recording.is_stream());
    assert_eq!(names(&recording), ["cpu-clock:u", "page-faults:u"]);
    assert_eq!(count(&recording).0, 37);
}

#[test]
fn groups_are_known() {
    let bytes = bytes("group");
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert_eq!(names(&recording), ["cpu-clock:u", "task-clock:u"]);
    let groups: Vec<_> = recording.events.iter().filter_map(|event| event.group.as_ref()).collect();
    assert!(groups.len() == 2 && groups.iter().all(|group| (group.leader, group.members) == (0, 2)));
    assert_eq!(count(&recording).0, 56);
}

#[test]
fn data_sources_and_latencies_are_read() {
    let bytes = bytes("memory");
    let recording = Recording::parse(&bytes).expect("well-formed");
    let mut samples = 0;
    for record in recording.records() {
        let Body::Sample(event, sample) = record.expect("well-formed").body else { continue };
        let source = sample.data_source.expect("asked for");
        assert_eq!(source.is_store(), event == 1);
        assert_eq!(sample.weight.map(|weight| weight.weight), Some(30 + samples));
        assert!(sample.exact && sample.physical_address.is_some());
        samples += 1;
    }
    assert_eq!(samples, 100);
}
