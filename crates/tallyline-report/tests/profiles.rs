//! Profiles of the recordings that the tests of `tallyline-perf-data` describe.

#[path = "spe/stream.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod stream;

use std::io::Cursor;
use stream::CLOCK;
use tallyline_perf_data::Recording;
use tallyline_perf_data::file::{ChunkedRecording, RecordBody};
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::DsoId;
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
