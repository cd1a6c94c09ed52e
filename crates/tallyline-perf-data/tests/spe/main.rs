//! Traces of Arm's SPE that were made up packet by packet: what was sampled is what is read, however the trace
//! is cut into parts, from memory and from a file. Real recordings of such hardware were not at hand; `ci/profile-peers`
//! compares what is read of these with perf.

mod stream;

use std::fs::File;
use std::io::{Cursor, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use stream::{BRANCH, CLOCK, LOAD, MODELS, PID, Random, STORE, Sampled};
use tallyline_perf_data::abi::auxtrace;
use tallyline_perf_data::file::{ChunkedRecording, RecordSource, VisitedRecord};
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spe::{AuxtraceBuffer, AuxtraceStats, SampleId};
use tallyline_perf_data::writer::Encoder;
use tallyline_perf_data::{Attr, Recording, Sample, Writer};

type Memory = Cursor<Vec<u8>>;

/// Returns a recording of these operations, in parts of such sizes.
fn recording(operations: &[Vec<Sampled>], size: &mut dyn FnMut() -> usize) -> Vec<u8> {
    let mut writer = stream::begin(Memory::default(), Some(&CLOCK)).expect("memory");
    stream::traces(&mut writer, operations, size).expect("memory");
    stream::end(writer).expect("memory").into_inner()
}

/// Returns a recording of one operation on the first CPU, with more records in front.
fn one(
    operation: Sampled,
    clock: bool,
    part: AuxtraceBuffer,
    more: &dyn Fn(&mut Writer<Memory>, &Attr),
) -> Vec<u8> {
    let mut writer = stream::begin(Memory::default(), clock.then_some(&CLOCK)).expect("memory");
    more(&mut writer, &stream::attr(stream::FIELDS));
    let mut bytes = Vec::new();
    operation.packets(&mut bytes);
    writer.trace(&part, [&bytes, &[]]).expect("memory");
    stream::end(writer).expect("memory").into_inner()
}

const PLAIN: Sampled = Sampled {
    pc: stream::CODE + 0x1000,
    level: 0,
    operation: LOAD,
    data: stream::DATA + 8,
    physical: None,
    events: 0x16,
    source: Some(0),
    latency: 30,
    thread: None,
    time: Some(1000),
};

const FIRST: AuxtraceBuffer = AuxtraceBuffer::of_cpu(0, 0);

/// Accesses as `each` hands them on, and what became of the rest.
fn accesses(records: &dyn RecordSource) -> (Vec<Sample<'static>>, AuxtraceStats) {
    let (mut samples, mut tally) = (Vec::new(), AuxtraceStats::default());
    let read = records.visit(&mut |_, seen| {
        match seen {
            VisitedRecord::Access(sample) => {
                let Sample {
                    mode, exact, ip, pid, tid, time, addr, cpu, period, weight, data_source, ..
                } = *sample;
                let physical_address = sample.physical_address;
                samples.push(Sample {
                    mode,
                    exact,
                    ip,
                    pid,
                    tid,
                    time,
                    addr,
                    cpu,
                    period,
                    weight,
                    data_source,
                    physical_address,
                    ..Sample::default()
                });
            }
            VisitedRecord::Traces(found) => tally = *found,
            _ => {}
        }
        Ok(())
    });
    assert!(read.expect("well-formed"));
    (samples, tally)
}

fn read(bytes: &[u8]) -> (Vec<Sample<'static>>, AuxtraceStats) {
    accesses(&Recording::parse(bytes).expect("well-formed"))
}

fn stored(bytes: &[u8]) -> File {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("tallyline-spe-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).expect("writable");
    file.write_all(bytes).expect("writable");
    std::fs::remove_file(path).expect("own file");
    file
}

/// Compares samples with the accesses among operations, field by field.
fn compare(samples: &[Sample<'_>], operations: &[Vec<Sampled>]) {
    let wanted = operations.iter().enumerate();
    let mut wanted: Vec<_> =
        wanted.flat_map(|(cpu, list)| list.iter().map(move |one| (cpu as u32, one))).collect();
    wanted.retain(|(_, operation)| operation.is_access());
    assert_eq!(samples.len(), wanted.len());
    for (sample, (cpu, operation)) in samples.iter().zip(wanted) {
        let mode = if operation.level == 0 { CpuMode::User } else { CpuMode::Kernel };
        assert_eq!((sample.ip, sample.mode, sample.exact), (Some(operation.pc), mode, true));
        assert_eq!((sample.addr, sample.physical_address), (Some(operation.data), operation.physical));
        assert_eq!((sample.cpu, sample.pid, sample.tid), (Some(cpu), Some(PID), operation.thread));
        assert_eq!(sample.time, operation.time.map(|time| CLOCK.zero() + time * 40));
        assert_eq!(
            (sample.weight.map(|found| found.weight()), sample.period),
            (Some(operation.latency.into()), Some(1))
        );
        let source = sample.data_source.expect("an access");
        assert_eq!(source.is_store(), operation.operation != LOAD, "{operation:x?}");
    }
}

/// Returns the numbers of losses, by their reason.
fn losses(tally: &AuxtraceStats) -> [u64; 8] {
    [
        tally.unknown_threads(),
        tally.incomplete(),
        tally.damaged(),
        tally.damaged_bytes(),
        tally.cut(),
        tally.truncated(),
        tally.collisions(),
        tally.partial(),
    ]
}

#[test]
fn what_was_sampled_is_what_is_read() {
    for seed in 1..20 {
        let operations = stream::operations(seed, 50);
        let mut random = Random(seed);
        // whole records, and parts that end anywhere
        for unit in [64, 8, 1] {
            let bytes = recording(&operations, &mut || (unit * (1 + random.below(300))) as usize);
            let (samples, tally) = read(&bytes);
            compare(&samples, &operations);
            let all = operations.iter().flatten();
            let of = |class| all.clone().filter(|operation| operation.operation.0 == class).count() as u64;
            assert_eq!((tally.accesses(), tally.branches(), tally.others()), (of(1), of(2), of(0)));
            assert_eq!((losses(&tally), tally.foreign()), ([0; 8], 0));
            assert!(tally.bytes() >= 64 * all.count() as u64);

            let file = stored(&bytes);
            let pieces = ChunkedRecording::open(&file).expect("readable").expect("nothing that needs more");
            assert_eq!(accesses(&pieces), (samples, tally), "a piece at a time");
        }
    }
}

#[test]
fn without_a_context_switches_say_whose_it_was() {
    let at = |time: u64| CLOCK.zero() + time * 40;
    let sample_id = |tid, time, cpu| SampleId::new(PID, tid, at(time), cpu);
    let switches = |writer: &mut Writer<Memory>, attr: &Attr| {
        for (leaves, sample_id) in [
            (false, sample_id(PID + 2, 1500, 0)),
            (true, sample_id(PID + 1, 900, 0)),
            (false, sample_id(PID + 1, 500, 0)),
            (false, sample_id(PID + 2, 100, 1)),
        ] {
            writer.records(Encoder::switch(leaves, None, attr, &sample_id).finish()).expect("memory");
        }
    };
    let tid = |time| {
        let bytes = one(Sampled { time: Some(time), ..PLAIN }, true, FIRST, &switches);
        let (samples, tally) = read(&bytes);
        (samples[0].tid, samples[0].pid, tally.unknown_threads())
    };
    assert_eq!(tid(600), (Some(PID + 1), Some(PID), 0));
    assert_eq!(tid(1000), (Some(-1), Some(-1), 1), "nobody of whom is known");
    assert_eq!(tid(2000), (Some(PID + 2), Some(PID), 0));
    // what the packets say is better
    let bytes = one(Sampled { thread: Some(PID), ..PLAIN }, true, FIRST, &switches);
    assert_eq!(read(&bytes).0[0].tid, Some(PID));
}

#[test]
fn old_recordings_have_their_cpus_in_the_header_and_threads_by_turns() {
    let mut operations = stream::operations(4, 100);
    let mut writer = stream::begin_old(Memory::default()).expect("memory");
    stream::without_threads(&mut writer, &mut operations).expect("memory");
    stream::traces(&mut writer, &operations, &mut || 640).expect("memory");
    let (samples, tally) = read(&stream::end(writer).expect("memory").into_inner());
    assert_eq!(tally.unknown_threads(), 0);
    // ten operations each, one thread after the other
    let each = operations.iter().flat_map(|list| list.iter().enumerate());
    let accesses = each.filter(|(_, operation)| operation.is_access());
    for (sample, (index, operation)) in samples.iter().zip(accesses) {
        assert_eq!((sample.tid, sample.pid), (Some(PID + (index / 10 % 3) as i32), Some(PID)));
        // all are what the header says of one: Arm's numbers
        let source = sample.data_source.expect("an access");
        assert!(operation.source != Some(0xe) || source.level_text().ends_with("RAM hit"), "{source:?}");
    }
}

#[test]
fn where_a_thread_begins_to_be_traced_it_runs() {
    let sample_id = SampleId::new(77, 78, CLOCK.zero(), 0);
    let starts = |writer: &mut Writer<Memory>, attr: &Attr| {
        writer.records(Encoder::itrace_start(attr, &sample_id).finish()).expect("memory");
    };
    let (samples, _) = read(&one(PLAIN, true, FIRST, &starts));
    assert_eq!((samples[0].tid, samples[0].pid), (Some(78), Some(77)));
}

#[test]
fn a_threads_own_buffer_says_whose_it_is_and_the_kernel_where_it_ran() {
    let sample_id = SampleId::new(PID, PID + 1, 4321, 2);
    let part = AuxtraceBuffer::of_thread(PID + 1, 0);
    let written = |writer: &mut Writer<Memory>, attr: &Attr| {
        writer.records(Encoder::aux(0, 64, 0, attr, &sample_id).finish()).expect("memory");
    };
    let (samples, _) = read(&one(PLAIN, true, part, &written));
    assert_eq!((samples[0].tid, samples[0].pid, samples[0].cpu), (Some(PID + 1), Some(PID), Some(2)));
    // without a time of its own, or a clock, the time is that when the kernel saw it
    for (operation, has_clock) in [(Sampled { time: None, ..PLAIN }, true), (PLAIN, false)] {
        assert_eq!(read(&one(operation, has_clock, part, &written)).0[0].time, Some(4321));
    }
}

#[test]
fn what_the_kernel_says_of_losses_is_counted_and_said() {
    let flags = auxtrace::TRUNCATED | auxtrace::COLLISION | auxtrace::PARTIAL;
    let sample_id = SampleId::of_cpu(0);
    let written = |writer: &mut Writer<Memory>, attr: &Attr| {
        writer.records(Encoder::aux(0, 64, flags, attr, &sample_id).finish()).expect("memory");
        writer.records(Encoder::aux(64, 0, auxtrace::TRUNCATED, attr, &sample_id).finish()).expect("memory");
    };
    let (_, tally) = read(&one(Sampled { thread: Some(PID), ..PLAIN }, true, FIRST, &written));
    assert_eq!((tally.truncated(), tally.collisions(), tally.partial()), (2, 1, 1));
    let notes = tally.notes().join("\n");
    assert!(
        notes.contains("full 2 times")
            && notes.contains("collided 1 time:")
            && notes.contains("1 piece ends"),
        "{notes}"
    );
}

#[test]
fn a_record_that_the_kernel_knows_to_be_damaged_takes_no_other_with_it() {
    let (mut load, mut store) = (Vec::new(), Vec::new());
    PLAIN.packets(&mut load);
    Sampled { operation: STORE, source: None, thread: Some(PID), ..PLAIN }.packets(&mut store);
    // in the middle of an address, and the next record begins there
    let (cut, whole) = (26, store.len() as u64);
    let sample_id = SampleId::of_cpu(0);
    let mut writer = stream::begin(Memory::default(), Some(&CLOCK)).expect("memory");
    for (offset, size, flags) in [(0, cut, auxtrace::PARTIAL | auxtrace::TRUNCATED), (cut, whole, 0)] {
        let mut aux = Encoder::aux(offset, size, flags, &stream::attr(stream::FIELDS), &sample_id);
        writer.records(aux.finish()).expect("memory");
    }
    writer.trace(&FIRST, [&load[..cut as usize], &store]).expect("memory");
    let (samples, tally) = read(&stream::end(writer).expect("memory").into_inner());
    assert_eq!(samples.len(), 1, "{tally:?}");
    assert_eq!((samples[0].ip, samples[0].addr), (Some(PLAIN.pc), Some(PLAIN.data)));
    assert!(samples[0].data_source.is_some_and(|source| source.is_store()));
    assert_eq!((tally.cut(), tally.damaged(), tally.partial()), (1, 0, 1));
}

#[test]
fn a_trace_that_is_longer_than_the_file_is_a_warning_and_in_pieces_left_to_who_reads_all() {
    let mut bytes = recording(&stream::operations(1, 40), &mut || 64 * 40);
    let header = [71, 0, 0, 0, 0, 0, 48, 0];
    let at = bytes.windows(8).position(|window| window == header).expect("a trace");
    bytes[at + 8..at + 16].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let file = stored(&bytes);
    let whole = Recording::parse(&bytes).expect("the records before it are there");
    assert!(whole.warnings()[0].contains("data of a trace"), "{:?}", whole.warnings());
    let pieces = ChunkedRecording::open(&file).expect("readable").expect("nothing that needs more");
    assert!(!pieces.visit(&mut |_, _| Ok(())).expect("readable"));
}

#[test]
fn a_trace_that_goes_on_behind_the_last_offset_is_refused() {
    let sample_id = SampleId::of_cpu(0);
    let mut writer = stream::begin(Memory::default(), Some(&CLOCK)).expect("memory");
    let mut aux = Encoder::aux(0, u64::MAX, auxtrace::PARTIAL, &stream::attr(stream::FIELDS), &sample_id);
    writer.records(aux.finish()).expect("memory");
    let mut packets = Vec::new();
    (0..4).for_each(|_| PLAIN.packets(&mut packets));
    writer.trace(&AuxtraceBuffer::of_cpu(0, u64::MAX - 10), [&packets, &[]]).expect("memory");
    let bytes = stream::end(writer).expect("memory").into_inner();
    let recording = Recording::parse(&bytes).expect("the rest is well-formed");
    let mut damage = Vec::new();
    let outcome = recording.visit(&mut |_, seen| {
        if let VisitedRecord::Damaged(error) = seen {
            damage.push(error.to_string());
        }
        Ok(())
    });
    assert!(outcome.expect("the rest is read"));
    assert!(damage.len() == 1 && damage[0].contains("of its buffer"), "no buffer is so large: {damage:?}");
}

#[test]
fn traces_of_other_hardware_are_skipped_and_said() {
    let mut writer = stream::begin(Memory::default(), None).expect("memory");
    stream::traces(&mut writer, &stream::operations(1, 3), &mut || 64).expect("memory");
    let mut bytes = stream::end(writer).expect("memory").into_inner();
    let at =
        bytes.windows(8).position(|window| window == [70, 0, 0, 0, 0, 0, 0x80, 1]).expect("the description");
    // Intel's
    bytes[at + 8] = 1;
    let (samples, tally) = read(&bytes);
    assert_eq!((samples.len(), tally.bytes(), losses(&tally)), (0, 0, [0; 8]));
    assert_eq!(tally.foreign(), 3 * 64 * MODELS.len() as u64);
    assert!(tally.notes()[0].contains("skipped"));
}

#[test]
fn a_gap_costs_the_record_that_goes_over_it() {
    let (mut store, mut bytes) = (Vec::new(), Vec::new());
    Sampled { operation: STORE, source: None, ..PLAIN }.packets(&mut store);
    [PLAIN, Sampled { operation: BRANCH, ..PLAIN }, PLAIN].iter().for_each(|one| one.packets(&mut bytes));
    let mut writer = stream::begin(Memory::default(), Some(&CLOCK)).expect("memory");
    writer.trace(&FIRST, [&bytes[..160], &[]]).expect("memory");
    writer.trace(&AuxtraceBuffer::of_cpu(0, 256), [&store, &[]]).expect("memory");
    let (samples, tally) = read(&stream::end(writer).expect("memory").into_inner());
    assert_eq!((samples.len(), tally.branches(), tally.cut()), (2, 1, 1));
    assert!(samples[1].data_source.is_some_and(|source| source.is_store()));
    assert!(tally.notes().iter().any(|note| note.contains("1 have no end")));
}

/// `TALLYLINE_ROUNDS=100000 cargo test -p tallyline-perf-data --release --test spe damaged` goes on for longer.
#[test]
fn damaged_traces_are_read_or_refused() {
    let rounds = std::env::var("TALLYLINE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(300);
    let whole = recording(&stream::operations(5, 20), &mut || 640);
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut same, mut refused) = (0, 0);
    for _ in 0..rounds {
        let mut damaged = whole.clone();
        for _ in 0..=random.below(8) {
            let place = random.below(damaged.len() as u64) as usize;
            match random.below(3) {
                0 => damaged[place] = random.below(256) as u8,
                1 => damaged[place..].iter_mut().take(9).for_each(|byte| *byte = 0xff),
                _ => damaged.copy_within(place / 2..place / 2 + place / 8, place - place / 8),
            }
        }
        let Ok(recording) = Recording::parse(&damaged) else { continue };
        let (mut accesses, mut tally) = (0, AuxtraceStats::default());
        let outcome = recording.visit(&mut |_, seen| {
            match seen {
                VisitedRecord::Access(_) => accesses += 1,
                VisitedRecord::Traces(found) => tally = *found,
                _ => {}
            }
            Ok(())
        });
        match outcome {
            Ok(_) => assert_eq!(accesses, tally.accesses(), "each is counted"),
            Err(_) => refused += 1,
        }
        same += 1;
    }
    assert!(same > refused, "{same} {refused}");
}
