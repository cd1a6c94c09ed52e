//! Profiles of the recordings that the tests of `tallyline-perf-data` describe.

#[path = "spe/stream.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod stream;

use std::io::Cursor;
use stream::CLOCK;
use tallyline_perf_data::abi::{attr_flag, read_format, sample as bit};
use tallyline_perf_data::file::{ChunkedRecording, RecordBody};
use tallyline_perf_data::sample::{CpuMode, Sample};
use tallyline_perf_data::spaces::DsoId;
use tallyline_perf_data::writer::{Encoder, Event, MachineDescription, Writer};
use tallyline_perf_data::{Attr, Recording};
use tallyline_report::{LoadedSamples, MergeGranularity};

fn bytes(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}.data", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The samples' number and period by file, offset, thread, name and event.
type Found = std::collections::BTreeMap<(Option<DsoId>, u64, i32, String, u32), (u64, u64)>;

fn found(samples: &LoadedSamples) -> Found {
    let mut found = Found::new();
    for group in samples.groups() {
        let place = samples.place(group.place);
        let name = samples.text(group.comm).to_owned();
        let entry = found.entry((place.dso, place.offset, group.tid, name, group.event)).or_default();
        *entry = (entry.0 + group.samples, entry.1 + group.period);
    }
    found
}

/// Returns a recording of `{one,two}:S` by perf: samples of the leader alone, with the counts of both.
fn counted_by_the_leader(counts: &[[u64; 2]], is_inherited: bool) -> Vec<u8> {
    let attr = |config| Attr {
        kind: 1,
        config,
        sample_type: bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::READ,
        read_format: read_format::ID | read_format::GROUP,
        flags: attr_flag::SAMPLE_ID_ALL | if is_inherited { attr_flag::INHERIT } else { 0 },
        ..Attr::default()
    };
    let events = ["one", "two"].iter().zip(1..).map(|(name, id)| Event::new(*name, attr(id), vec![id]));
    let mut writer = Writer::new(Cursor::new(Vec::new()), events.collect()).expect("memory");
    for (index, [one, two]) in counts.iter().enumerate() {
        let sample = Sample {
            mode: CpuMode::User,
            ip: Some(0x1000),
            pid: Some(7),
            tid: Some(7 + (index % 2) as i32),
            time: Some(10 + index as u64),
            id: Some(1),
            ..Sample::default()
        };
        // the counts are the last field
        let plain = Attr { sample_type: attr(1).sample_type & !bit::READ, ..attr(1) };
        let mut bytes = Encoder::sample(&sample, &plain).finish().to_vec();
        bytes.extend([2, *one, 1, *two, 2].iter().flat_map(|word: &u64| word.to_ne_bytes()));
        let size = bytes.len() as u16;
        bytes[6..8].copy_from_slice(&size.to_ne_bytes());
        writer.records(&bytes).expect("memory");
    }
    let machine = MachineDescription { arch: "x86_64".to_owned(), ..MachineDescription::default() };
    writer.finish(&machine, &[]).expect("memory").into_inner()
}

#[test]
fn each_event_of_a_group_has_samples_by_the_counts_at_the_leaders() {
    let periods = |counts: &[[u64; 2]], is_inherited: bool| {
        let bytes = counted_by_the_leader(counts, is_inherited);
        let recording = Recording::parse(&bytes).expect("well-formed");
        let loaded = LoadedSamples::load(&recording, MergeGranularity::Samples).expect("well-formed");
        loaded.groups().iter().map(|group| (group.event, group.period)).collect::<Vec<_>>()
    };
    // the second event did not count between the first two samples
    let counts = [[100, 5], [200, 5], [350, 25]];
    assert_eq!(periods(&counts, false), [(0, 100), (1, 5), (0, 100), (0, 150), (1, 20)]);
    // threads that inherit an event have its id, and counts of their own
    let counts = [[100, 5], [30, 3], [350, 5]];
    assert_eq!(periods(&counts, true), [(0, 100), (1, 5), (0, 30), (1, 3), (0, 250)]);
}

#[test]
fn samples_that_become_one_point_are_all_there() {
    for name in ["ours", "compressed", "group", "memory", "stream"] {
        let bytes = bytes(name);
        let recording = Recording::parse(&bytes).expect("well-formed");
        let apart = LoadedSamples::load(&recording, MergeGranularity::Samples).expect("well-formed");
        assert_eq!(apart.groups().len(), count_samples(&recording), "{name}");
        assert!(apart.groups().iter().all(|group| group.samples == 1));
        assert!(apart.groups().is_sorted_by_key(|group| group.time), "{name}");
        let together = LoadedSamples::load(&recording, MergeGranularity::None).expect("well-formed");
        assert_eq!(found(&together), found(&apart), "{name}");
        // a file a piece at a time has the same, where it can be read so
        let path = format!("{}/tests/data/{name}.data", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::File::open(path).expect("there");
        let pieces = ChunkedRecording::open(&file).expect("readable");
        let pieces = pieces.and_then(|pieces| {
            LoadedSamples::load_pieces(&pieces, MergeGranularity::Cpus).expect("well-formed")
        });
        assert_eq!(pieces.is_none(), ["compressed", "stream"].contains(&name), "{name}");
        assert!(pieces.is_none_or(|pieces| found(&pieces) == found(&apart)), "{name}");
    }
}

fn count_samples(recording: &Recording<'_>) -> usize {
    let is_sample = |body: &RecordBody<'_>| matches!(body, RecordBody::Sample(..));
    recording.records().filter(|record| is_sample(record.as_ref().expect("well-formed").body())).count()
}

#[test]
fn accesses_are_points_of_an_event_of_their_own() {
    let operations = stream::operations(3, 100);
    let mut writer = stream::begin(Cursor::new(Vec::new()), Some(&CLOCK)).expect("memory");
    stream::traces(&mut writer, &operations, &mut || 4096).expect("memory");
    let bytes = stream::end(writer).expect("memory").into_inner();
    let profile =
        LoadedSamples::load(&Recording::parse(&bytes).expect("well-formed"), MergeGranularity::Samples)
            .expect("well-formed");
    let event = profile.info().events.last().expect("it has one");
    assert_eq!((event.name.as_str(), event.is_precise, event.has_source), ("memory", true, true));
    assert!(profile.groups().iter().all(|point| point.event as usize == profile.info().events.len() - 1));
    assert_eq!(profile.groups().len() as u64, profile.info().traces.accesses());
    assert!(profile.groups().is_sorted_by_key(|point| point.time), "in the order of time");
    let in_program = profile.groups().iter().filter(|point| point.mode == CpuMode::User);
    assert!(in_program.clone().count() > 0);
    for point in in_program {
        assert_eq!(profile.dso_name(profile.place(point.place).dso), "sampled");
        assert_eq!(profile.text(point.comm), "sampled");
    }
    let [note] = &profile.info().warnings[..] else { panic!("{:?}", profile.info().warnings) };
    let traces = profile.info().traces;
    let (accesses, branches, others) = (traces.accesses(), traces.branches(), traces.others());
    assert_eq!(
        *note,
        format!(
            "SPE: {accesses} records are memory accesses; {} are not, and left out ({branches} branches, {others} other \
             operations)",
            branches + others
        )
    );
}
