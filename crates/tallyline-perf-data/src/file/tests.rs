//! Containers: what the writer makes is read back; damaged ones are errors or warnings, never panics.

use super::*;
use crate::abi::{attr_flag, sample as bit};
use crate::attr::Attr;
use crate::sample::{CpuMode, DataSource, Sample, Weight};
use crate::spaces::AddressSpaces;
use crate::writer::{Encoder, Event, MachineDescription, NumaNode, Writer};
use std::io::Cursor as File;

fn attr(config: u64) -> Attr {
    Attr {
        kind: 1,
        config,
        sample_period: 1000,
        sample_type: bit::IDENTIFIER
            | bit::IP
            | bit::TID
            | bit::TIME
            | bit::ADDR
            | bit::CPU
            | bit::PERIOD
            | bit::WEIGHT_STRUCT
            | bit::DATA_SRC,
        flags: attr_flag::SAMPLE_ID_ALL | attr_flag::FREQ | attr_flag::EXCLUDE_KERNEL,
        ..Attr::default()
    }
}

fn machine() -> MachineDescription {
    MachineDescription {
        hostname: "host".to_owned(),
        os_release: "6.1".to_owned(),
        arch: "x86_64".to_owned(),
        cpus: (4, 3),
        total_memory: 1 << 20,
        command_line: vec!["tallyline".to_owned(), "record".to_owned()],
        topology: vec![(0, 0), (1, 0), (0, 1), (1, 1)],
        nodes: vec![NumaNode { number: 0, memory: (10, 5), cpus: "0-3".to_owned(), blocks: vec![0, 70] }],
        memory_block: 1 << 27,
        pmus: vec![(1, "software".to_owned())],
        caches: vec![CacheLevel {
            level: 1,
            line_size: 64,
            kind: "Data".to_owned(),
            size: "32K".to_owned(),
            cpus: "0".to_owned(),
        }],
        ..MachineDescription::default()
    }
}

fn sample(id: u64, time: u64, ip: u64) -> Sample<'static> {
    Sample {
        mode: CpuMode::User,
        ip: Some(ip),
        pid: Some(7),
        tid: Some(8),
        time: Some(time),
        addr: Some(0x1234),
        id: Some(id),
        cpu: Some(2),
        period: Some(99),
        weight: Some(Weight { weight: 100, instruction_latency: 20, weight3: 3 }),
        data_source: Some(DataSource(0x6810_0142)),
        ..Sample::default()
    }
}

/// Returns two events, records that are not in the order of time, all features.
fn recording() -> Vec<u8> {
    let events = ["first", "second"].iter().zip(0..);
    let events: Vec<_> = events
        .map(|(name, index)| {
            Event::new(format!("{name}:u"), attr(index), vec![index * 10 + 1, index * 10 + 2])
        })
        .collect();
    let mut writer = Writer::new(File::new(Vec::new()), events).expect("memory");
    let first = attr(0);
    let mapping = Mmap {
        pid: 7,
        tid: 7,
        mode: CpuMode::User,
        start: 0x40_0000,
        len: 0x1000,
        file_offset: 0x2000,
        path: b"/bin/program",
        is_executable: true,
        build_id: BuildId::new(&[0xab; 20]),
        shared_file: None,
    };
    let comm = Comm { pid: 7, tid: 8, name: b"program", is_exec: true };
    let task = Task { pid: 7, parent_pid: 1, tid: 8, parent_tid: 1 };
    for mut record in [
        Encoder::sample(&sample(11, 500, 0x40_0020), &first),
        Encoder::sample(&sample(2, 300, 0x40_0010), &first),
        Encoder::comm(&comm, &first, 100),
        Encoder::fork(&task, &first, 50),
        Encoder::mapping(&mapping, &first, 200),
        Encoder::lost_samples(5, &first, 600),
    ] {
        writer.records(record.finish()).expect("memory");
    }
    writer.finish_round().expect("memory");
    writer.sample_time(500);
    writer.sample_time(300);
    writer.build_id(false, b"/bin/program", BuildId::new(&[0xab; 20]).expect("not empty"));
    let groups = [EventGroup { name: String::new(), leader: 0, members: 2 }];
    writer.finish(&machine(), &groups).expect("memory").into_inner()
}

#[test]
fn what_is_written_is_read_back() {
    let bytes = recording();
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert_eq!(recording.warnings, [""; 0]);
    let names: Vec<_> = recording.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["first:u", "second:u"]);
    let second = recording.events.get(1).expect("two events");
    assert_eq!((&second.attr, second.ids.as_slice()), (&attr(1), &[11, 12][..]));
    assert_eq!(second.group.as_ref().map(|group| (group.leader, group.members)), Some((0, 2)));

    let features = &recording.features;
    assert_eq!(features.hostname.as_deref(), Some("host"));
    assert_eq!((features.cpus, features.total_memory), (Some((4, 3)), Some(1 << 20)));
    assert_eq!((features.topology()[3].1, features.line_size()), (1, Some(64)));
    assert_eq!(features.sample_time, Some((300, 500)));
    assert_eq!(features.command_line, ["tallyline", "record"]);
    assert_eq!(recording.build_ids.get(b"/bin/program"), BuildId::new(&[0xab; 20]));
}

/// A file on a disk that has so many bytes.
struct Disk {
    file: File<Vec<u8>>,
    room: u64,
}

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.room.saturating_sub(self.file.position());
        if room == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.file.write(&bytes[..bytes.len().min(room as usize)])
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl std::io::Seek for Disk {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn what_is_whole_of_the_records_that_the_disk_had_no_room_for_is_read() {
    let event = Event::new("first:u", attr(0), vec![11]);
    let mut disk = Disk { file: File::new(Vec::new()), room: 1000 };
    let mut writer = Writer::new(&mut disk, vec![event]).expect("room");
    let record = |time| Encoder::sample(&sample(11, time, 0x40_0020), &attr(0)).finish().to_vec();
    let all: Vec<u8> = (0..100).flat_map(|index| record(500 + index)).collect();
    let error = writer.records(&all).expect_err("more than there is room for");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    writer.cut_short().expect("the header has its place");
    let bytes = disk.file.into_inner();
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert_eq!(recording.warnings, [""; 0]);
    let (size, samples) =
        (record(500).len(), recording.records().inspect(|record| assert!(record.is_ok())).count());
    let room = bytes.len() - recording_start(&bytes);
    assert!(samples > 2 && samples == room / size, "{samples} records of {size} bytes in {room}");
}

/// Returns the offset of the first record of a file.
fn recording_start(bytes: &[u8]) -> usize {
    usize::from_ne_bytes(bytes[40..48].try_into().expect("eight bytes"))
}

#[test]
fn what_was_written_before_the_disk_was_full_is_read() {
    let events = (0..1).map(|index| Event::new("first:u", attr(index), vec![11]));
    let mut disk = Disk { file: File::new(Vec::new()), room: 1000 };
    let mut writer = Writer::new(&mut disk, events.collect()).expect("room");
    let mut whole = 0;
    let error = loop {
        let mut record = Encoder::sample(&sample(11, 500 + whole, 0x40_0020), &attr(0));
        match writer.records(record.finish()) {
            Ok(()) => whole += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    writer.cut_short().expect("the header has its place");
    let bytes = disk.file.into_inner();
    assert_eq!(bytes.len(), 1000);
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert_eq!(recording.warnings, [""; 0]);
    let samples = recording
        .records()
        .filter(|record| matches!(record.as_ref().expect("whole").body, RecordBody::Sample(..)));
    assert!(whole > 2 && samples.count() == whole as usize, "{whole} samples");
}

#[test]
fn records_come_in_the_order_of_time_and_with_their_events() {
    let bytes = recording();
    let recording = Recording::parse(&bytes).expect("well-formed");
    let mut spaces = AddressSpaces::new(&recording);
    let mut samples = Vec::new();
    let mut lost = 0;
    for record in recording.in_time_order().expect("well-formed") {
        let record = record.expect("well-formed");
        spaces.apply(&record.body).expect("within limits");
        match record.body {
            RecordBody::Sample(event, found) => {
                let place = spaces.resolve(7, found.mode, found.ip.expect("asked for")).expect("mapped");
                assert_eq!(spaces.dso(place.dso).path, "/bin/program");
                assert_eq!(spaces.dso(place.dso).build_id, BuildId::new(&[0xab; 20]));
                samples.push((event, record.time, place.offset));
                assert_eq!(
                    found,
                    sample([2, 11][event], found.time.expect("asked for"), found.ip.expect("asked for"))
                );
            }
            RecordBody::LostSamples(count) => lost += count,
            _ => {}
        }
    }
    assert_eq!(samples, [(0, Some(300), 0x2010), (1, Some(500), 0x2020)]);
    assert_eq!((lost, spaces.comm(8).map(AsRef::as_ref)), (5, Some("program")));
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_a_warning() {
    let bytes = recording();
    let whole = Recording::parse(&bytes).expect("well-formed").records().count();
    for len in 0..bytes.len() {
        match Recording::parse(&bytes[..len]) {
            Ok(cut) => {
                assert!(!cut.warnings.is_empty(), "{len} of {} bytes look whole", bytes.len());
                assert!(cut.records().all(|record| record.is_ok()), "an error behind the warning at {len}");
                assert!(cut.records().count() <= whole);
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}

#[test]
fn a_recording_that_was_not_finished_is_read_with_a_warning() {
    let mut bytes = recording();
    let word = |place: usize| u64::from_ne_bytes(*bytes[place..].first_chunk().expect("a header")) as usize;
    // killed in the middle of the last record, before anything behind the records was written
    let end = word(40) + word(48) - 4;
    bytes.truncate(end);
    bytes[48..56].fill(0);
    let recording = Recording::parse(&bytes).expect("the events are there");
    assert!(recording.warnings[0].contains("was not finished"), "{:?}", recording.warnings);
    let samples = recording
        .records()
        .filter(|record| matches!(record, Ok(Record { body: RecordBody::Sample(..), .. })));
    assert_eq!(samples.count(), 2);
}

#[test]
fn every_byte_may_be_wrong_without_a_panic() {
    let bytes = recording();
    for place in 0..bytes.len().min(2500) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] = value;
            let Ok(recording) = Recording::parse(&damaged) else { continue };
            let mut spaces = AddressSpaces::new(&recording);
            for record in recording.in_time_order().into_iter().flatten().map_while(Result::ok) {
                let _ = spaces.apply(&record.body);
            }
        }
    }
}

#[test]
fn other_files_are_refused() {
    assert_eq!(
        Recording::parse(b"\x7fELF").expect_err("not a recording").to_string(),
        "not a perf.data file: it does not start with PERFILE2"
    );
    assert!(Recording::parse(b"").expect_err("no bytes").to_string().contains("empty"));
    let mut odd = recording();
    odd[8] = 50;
    assert!(Recording::parse(&odd).is_err());
}

#[test]
fn records_in_front_of_garbage_are_read_and_a_warning_says_where_it_is() {
    let bytes = recording();
    let whole = Recording::parse(&bytes).expect("well-formed");
    let expected: Vec<_> = all(&whole).expect("well-formed");
    for (count, (position, _)) in expected.iter().enumerate() {
        let (mut bytes, at) = (bytes.clone(), *position as usize);
        // this record says it has 3 bytes
        bytes[at + 6..at + 8].copy_from_slice(&3_u16.to_ne_bytes());
        let damaged = Recording::parse(&bytes).expect("the events are there");
        assert_eq!(
            damaged.warnings[0],
            format!("damaged perf.data at offset {at:#x}: a record of 3 bytes: its header alone has 8")
        );
        // where several follow that look well they are read, too
        let behind = expected.get(count + 1..).filter(|behind| behind.len() > 1).unwrap_or_default();
        let left = behind.first().map_or(whole.data.end, |(position, _)| *position as usize) - at;
        let last = if behind.is_empty() { "the last " } else { "" };
        assert_eq!(
            damaged.warnings[1],
            format!("{last}{left} bytes of the records, at offset {at:#x}, cannot be read")
        );
        assert_eq!(all(&damaged).expect("no further errors"), [&expected[..count], behind].concat());
        // in pieces it is left to who reads it as a whole
        let file = stored(&bytes);
        let pieces = ChunkedRecording::open(&file).expect("readable").expect("a file");
        assert!(!pieces.visit(&mut |_, _| Ok(())).expect("readable"));
    }
}

#[test]
fn a_record_with_a_damaged_body_is_left_out_and_told() {
    let mut bytes = recording();
    let whole = Recording::parse(&bytes).expect("well-formed");
    let mut expected = all(&whole).expect("well-formed");
    // a name becomes a mapping that has no room for its addresses
    let comm = whole.raw().map(|raw| raw.expect("well-formed")).find(|raw| raw.kind == kind::COMM);
    let at = comm.expect("there is a name").offset as usize;
    let index = expected.iter().position(|(position, _)| *position == at as u64).expect("it is handed on");
    bytes[at..at + 4].copy_from_slice(&kind::MMAP2.to_ne_bytes());
    let (mut found, mut told) = (Vec::new(), Vec::new());
    let damaged = Recording::parse(&bytes).expect("the events are there");
    let read = damaged.visit(&mut |position, seen| {
        match seen {
            VisitedRecord::Damaged(error) => told.push((position, error.to_string())),
            _ => found.push(position),
        }
        Ok(())
    });
    assert!(read.expect("the others are read"));
    expected.remove(index);
    assert_eq!(found, expected.iter().map(|(position, _)| *position).collect::<Vec<_>>());
    assert!(told.len() == 1 && told[0].0 == at as u64, "{told:?}");
}

#[test]
fn a_stream_that_ends_within_a_record_is_read_with_a_warning() {
    let whole = stream(&[]);
    let count = Recording::parse(&whole).expect("well-formed").records().count();
    let cut = Recording::parse(&whole[..whole.len() - 3]).expect("the events are there");
    assert!(cut.warnings.iter().any(|warning| warning.contains("cannot be read")), "{:?}", cut.warnings);
    assert_eq!(cut.records().filter(|record| record.is_ok()).count(), count - 1);
}

#[test]
fn probes_of_a_stream_are_named_by_its_tracing_data() {
    let data = super::tracing::tests::tracing_data("probe_server", &[(0x531, "accept")]);
    let stream = stream(&data);
    let recording = Recording::parse(&stream).expect("well-formed");
    let names: Vec<_> = recording.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!((names, recording.warnings.as_slice()), (vec!["probe_server:accept"], &[][..]));
    // a probe that the data does not have
    let data = super::tracing::tests::tracing_data("probe_server", &[(7, "other")]);
    let recording = super::tests::stream(&data);
    let recording = Recording::parse(&recording).expect("well-formed");
    assert_eq!(recording.events.get(0).map(|event| event.name.as_str()), Some("tracepoint 1329"));
}

/// Returns the output of `perf record -e probe:… -o -`: an event without a name, perhaps tracing data, and two
/// samples.
fn stream(tracing_data: &[u8]) -> Vec<u8> {
    let attr = Attr { kind: 2, config: 0x531, sample_period: 1, sample_type: bit::IP, ..Attr::default() };
    let mut bytes = b"PERFILE2".to_vec();
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes.extend(16_u64.to_ne_bytes());
    let mut record = |kind: u32, body: &[u8]| {
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(0_u16.to_ne_bytes());
        bytes.extend((body.len() as u16 + 8).to_ne_bytes());
        bytes.extend(body);
        if kind == super::kind::HEADER_TRACING_DATA {
            bytes.extend(tracing_data);
            bytes.resize(bytes.len() + tracing_data.len().next_multiple_of(8) - tracing_data.len(), 0);
        }
    };
    record(kind::HEADER_ATTR, &attr.to_bytes());
    if !tracing_data.is_empty() {
        record(kind::HEADER_TRACING_DATA, &(tracing_data.len() as u32).to_ne_bytes());
    }
    record(kind::SAMPLE, &0x1000_u64.to_ne_bytes());
    record(kind::SAMPLE, &0x2000_u64.to_ne_bytes());
    bytes
}

/// Returns a file of its own with these bytes; it is gone when it is closed.
fn stored(bytes: &[u8]) -> std::fs::File {
    use std::io::Write;
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("tallyline-pieces-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.read(true).write(true).create_new(true).open(&path).expect("writable");
    file.write_all(bytes).expect("writable");
    std::fs::remove_file(path).expect("own file");
    file
}

/// Returns the records as text, with their positions.
fn all(records: &dyn RecordSource) -> Result<Vec<(u64, String)>> {
    let mut found = Vec::new();
    let read = records.visit(&mut |position, record| {
        let text = match record {
            VisitedRecord::Sample(_, sample) => format!("{sample:?}"),
            VisitedRecord::Access(sample) => format!("{sample:?}"),
            VisitedRecord::Traces(tally) => format!("{tally:?}"),
            VisitedRecord::Other(record) => format!("{record:?}"),
            VisitedRecord::Damaged(error) => format!("{error:?}"),
        };
        found.push((position, text));
        Ok(())
    })?;
    assert!(read);
    Ok(found)
}

#[test]
fn a_file_in_pieces_has_the_records_of_its_bytes() {
    // longer than some pieces
    let mut writer =
        Writer::new(File::new(Vec::new()), vec![Event::new("e", attr(0), vec![1])]).expect("memory");
    for time in 0..100 {
        let mut record = match time % 10 {
            0 => Encoder::comm(&Comm { pid: 7, tid: 8, name: &[b'n'; 700], is_exec: false }, &attr(0), time),
            _ => Encoder::sample(&sample(1, 1000 - time, 0x40_0000 + time), &attr(0)),
        };
        writer.records(record.finish()).expect("memory");
    }
    let long = writer.finish(&machine(), &[]).expect("memory").into_inner();
    for bytes in [recording(), long] {
        let whole = Recording::parse(&bytes).expect("well-formed");
        let file = stored(&bytes);
        let pieces = ChunkedRecording::open(&file).expect("readable").expect("not a stream");
        let expected = all(&whole).expect("well-formed");
        assert_eq!(all(&pieces).expect("well-formed"), expected);
        assert!(pieces.recording().events.iter().eq(whole.events.iter()));
        assert_eq!(format!("{:?}", pieces.recording().features), format!("{:?}", whole.features));
        // forward and backward
        let order = (0..expected.len()).chain((0..expected.len()).rev()).step_by(3);
        let mut asked = order.clone();
        let mut positions = order.map(|index| expected[index].0);
        pieces
            .visit_at(&mut positions, &mut |record| {
                let index = asked.next().expect("as many as were asked for");
                let text = match &record.body {
                    RecordBody::Sample(_, sample) => format!("{sample:?}"),
                    _ => format!("{record:?}"),
                };
                assert_eq!(text, expected[index].1);
                Ok(())
            })
            .expect("well-formed");
        assert_eq!(asked.next(), None);
    }
}

#[test]
fn further_files_go_on_where_the_first_one_ends() {
    let record = |time: u64| match time % 10 {
        0 => Encoder::comm(&Comm { pid: 7, tid: 8, name: &[b'n'; 300], is_exec: false }, &attr(0), time),
        _ => Encoder::sample(&sample(1, 1000 - time, 0x40_0000 + time), &attr(0)),
    };
    let written = |times: std::ops::Range<u64>| {
        let event = Event::new("e", attr(0), vec![1]);
        let mut writer = Writer::new(File::new(Vec::new()), vec![event]).expect("memory");
        times.for_each(|time| writer.records(record(time).finish()).expect("memory"));
        writer.finish(&machine(), &[]).expect("memory").into_inner()
    };
    let records = |times: std::ops::Range<u64>| {
        times.flat_map(|time| record(time).finish().to_vec()).collect::<Vec<u8>>()
    };
    let whole = written(0..60);
    // records but for where they are
    let text = |record: &Record<'_>| match &record.body {
        RecordBody::Sample(_, sample) => format!("{sample:?}"),
        body => format!("{:?} {body:?}", record.time),
    };
    let all = |records: &dyn RecordSource| {
        let mut found = Vec::new();
        let read = records.visit(&mut |position, seen| {
            found.push(match seen {
                VisitedRecord::Other(record) => (position, text(record)),
                VisitedRecord::Sample(_, sample) => (position, format!("{sample:?}")),
                VisitedRecord::Access(_) | VisitedRecord::Traces(_) => panic!("there are no traces"),
                VisitedRecord::Damaged(error) => (position, error.to_string()),
            });
            Ok(())
        });
        read.map(|_| found)
    };
    let texts = |found: Vec<(u64, String)>| found.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    let expected = texts(all(&Recording::parse(&whole).expect("well-formed")).expect("well-formed"));
    let first = stored(&written(0..20));
    let mut second = records(20..45);
    let more = [stored(&second), stored(&[]), stored(&records(45..60))];
    let named = |files: &'static str| files.split(' ').map(str::to_owned);
    let pieces = || ChunkedRecording::open(&first).expect("readable").expect("not a stream");
    let joined = pieces().with_more(more.iter().zip(named("data.0 data.1 data.2"))).expect("three files");
    let found = all(&joined).expect("well-formed");
    assert!(found.is_sorted_by_key(|(position, _)| *position));
    let positions: Vec<u64> = found.iter().map(|(position, _)| *position).rev().collect();
    let found = texts(found);
    assert!(found == expected, "{} records, {} expected", found.len(), expected.len());
    let mut backward = Vec::new();
    joined
        .visit_at(&mut positions.into_iter(), &mut |record| {
            backward.push(text(record));
            Ok(())
        })
        .expect("well-formed");
    backward.reverse();
    assert!(backward == found);
    // what is cut is named with its file
    second.truncate(second.len() - 5);
    let more = [stored(&second)];
    let joined = pieces().with_more(more.iter().zip(named("data.0"))).expect("a file");
    let (_, error) = all(&joined).expect("what is there is read").pop().expect("damage");
    assert!(
        error.contains("in data.0") && error.contains("offset 0x") && !error.contains("0x1000000000"),
        "{error}"
    );
}

#[test]
fn a_damaged_file_in_pieces_says_what_its_bytes_say_or_is_read_as_a_whole() {
    let bytes = recording();
    let data = Recording::parse(&bytes).expect("well-formed").data;
    for at in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        let file = stored(&damaged);
        let Ok(Some(pieces)) = ChunkedRecording::open(&file) else { continue };
        let whole = Recording::parse(&damaged).map(|whole| all(&whole));
        // kinds of records that describe others are not read in pieces
        let in_pieces = pieces.visit(&mut |_, _| Ok(()));
        match (in_pieces, whole) {
            (Ok(false), whole) => {
                let warns = Recording::parse(&damaged).is_ok_and(|whole| !whole.warnings.is_empty());
                assert!(data.contains(&at) || warns || whole.is_err(), "{at}");
            }
            (Ok(true), whole) => {
                let whole = whole.expect("it has no damage").expect("it has no damage");
                assert_eq!(all(&pieces).expect("the same"), whole, "{at}");
            }
            (Err(_), whole) => assert!(whole.map_or(true, |all| all.is_err()), "{at}"),
        }
    }
    for len in (0..bytes.len()).step_by(5) {
        let file = stored(&bytes[..len]);
        // cut: whoever reads it as a whole warns
        if let Some(pieces) = ChunkedRecording::open(&file).expect("readable") {
            assert!(len > data.end, "{len}");
            assert_eq!(all(&pieces).expect("all records are there").len(), 7);
        }
    }
}
