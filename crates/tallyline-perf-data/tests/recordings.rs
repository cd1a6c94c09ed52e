//! Recordings of one small program, by perf 6.1 and by `tallyline record`: a file, a compressed one, a
//! stream, a group; and one with data sources that the example `memory_profile` wrote. The numbers
//! are those of `perf script`.

use tallyline_perf_data::file::RecordBody;
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::DsoKind;
use tallyline_perf_data::{AddressSpaces, Recording};

fn bytes(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}.data", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Counts the samples, those of programs, and those among them in the program itself.
fn count(recording: &Recording<'_>) -> (usize, usize, usize) {
    let mut spaces = AddressSpaces::new(recording);
    let (mut all, mut user, mut program) = (0, 0, 0);
    for record in recording.in_time_order().expect("well-formed") {
        let record = record.expect("well-formed");
        spaces.apply(record.body()).expect("within limits");
        let RecordBody::Sample(_, sample) = record.body() else { continue };
        all += 1;
        if sample.mode != CpuMode::User {
            continue;
        }
        user += 1;
        let place =
            spaces.resolve(sample.pid.expect("asked for"), sample.mode, sample.ip.expect("asked for"));
        let dso = spaces.dso(place.expect("mapped").dso());
        if dso.path() == "/opt/sample/walk" {
            assert_eq!(dso.kind(), DsoKind::File);
            program += 1;
        }
        let thread = spaces.comm(sample.tid.expect("asked for"));
        assert_eq!(thread.map(AsRef::as_ref), Some("walk"));
    }
    (all, user, program)
}

fn names(recording: &Recording<'_>) -> Vec<String> {
    recording.events().iter().map(|event| event.name().to_owned()).collect()
}

#[test]
fn our_own_recording_has_registers_call_chains_and_build_ids() {
    let bytes = bytes("ours");
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert_eq!(recording.warnings(), [""; 0]);
    assert_eq!(names(&recording), ["cpu-clock"]);
    let (all, user, program) = count(&recording);
    assert_eq!(all, 27);
    assert!(recording.build_ids().any(|(path, _)| path == b"/opt/sample/walk"));
    assert!(program > 0 && program <= user);
    for record in recording.records() {
        if let RecordBody::Sample(_, sample) = record.expect("well-formed").into_body() {
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
    let groups: Vec<_> = recording.events().iter().filter_map(|event| event.group()).collect();
    assert!(groups.len() == 2 && groups.iter().all(|group| (group.leader(), group.members()) == (0, 2)));
    assert_eq!(count(&recording).0, 56);
}

#[test]
fn data_sources_and_latencies_are_read() {
    let bytes = bytes("memory");
    let recording = Recording::parse(&bytes).expect("well-formed");
    let mut samples = 0;
    for record in recording.records() {
        let RecordBody::Sample(event, sample) = record.expect("well-formed").into_body() else { continue };
        let source = sample.data_source.expect("asked for");
        assert_eq!(source.is_store(), event == 1);
        assert_eq!(sample.weight.map(|weight| weight.weight()), Some(30 + samples));
        assert!(sample.exact && sample.physical_address.is_some());
        samples += 1;
    }
    assert_eq!(samples, 100);
}

/// `TALLYLINE_ROUNDS=100000 cargo test -p tallyline-perf-data --release --test recordings damaged` goes on for longer.
#[test]
fn damaged_recordings_are_read_or_refused() {
    let rounds = std::env::var("TALLYLINE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(150);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) as usize % limit.max(1)
    };
    let (mut read, mut refused) = (0, 0);
    for name in ["ours", "compressed", "stream", "group", "memory"] {
        let whole = bytes(name);
        for _ in 0..rounds {
            let mut damaged = whole.clone();
            for _ in 0..=below(6) {
                let place = below(damaged.len());
                let values = [0, 1, 0x7f, 0x80, 0xff, below(256) as u8];
                // single bytes, words, and pieces that are somewhere else
                match below(4) {
                    0 => damaged[place] = values[below(values.len())],
                    1 => damaged[place..].iter_mut().take(8).for_each(|byte| *byte = 0xff),
                    2 => damaged.copy_within(
                        place..place + below(whole.len() - place).min(64),
                        below(whole.len() - 64),
                    ),
                    _ if below(8) == 0 => damaged.truncate(place.max(64)),
                    _ => damaged[place] ^= 1 << below(8),
                }
                if damaged.len() < whole.len() {
                    break;
                }
            }
            let Ok(recording) = Recording::parse(&damaged) else {
                refused += 1;
                continue;
            };
            let mut spaces = AddressSpaces::new(&recording);
            for record in recording.in_time_order().into_iter().flatten().map_while(Result::ok) {
                if spaces.apply(record.body()).is_err() {
                    break;
                }
                if let RecordBody::Sample(_, sample) = record.body() {
                    let _ = spaces.resolve(sample.pid.unwrap_or(0), sample.mode, sample.ip.unwrap_or(0));
                    let _ = sample.callers().count();
                }
            }
            read += 1;
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}
