//! Traces of Arm's SPE: whatever the packets are, records are decoded or counted; the same in parts as in one
//! piece, and from a file as from memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs::File;
use std::io::Cursor;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
use tallyline_perf_data::abi::{attr_flag, auxtrace, sample as bit};
use tallyline_perf_data::file::{ChunkedRecording, RecordSource, VisitedRecord};
use tallyline_perf_data::spe::{self, AuxtraceBuffer, AuxtraceStats, CpuMetadata, TimeConversion};
use tallyline_perf_data::writer::{Encoder, Event, MachineDescription};
use tallyline_perf_data::{Attr, Recording, Writer};

/// A file without a name.
static FILE: LazyLock<File> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("tallyline-fuzz-spe-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).expect("writable");
    std::fs::remove_file(path).expect("own file");
    file
});

/// Returns a recording of a trace in parts of so many bytes.
fn recording(trace: &[u8], size: usize) -> Vec<u8> {
    let attr = Attr {
        kind: 9,
        sample_type: bit::IDENTIFIER | bit::TID | bit::TIME | bit::CPU,
        flags: attr_flag::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let event = Event::new("arm_spe_0//", attr, vec![1]);
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event]).expect("memory");
    let cpu = CpuMetadata::new(0, 0x410f_d0c0, 9, 256, u64::MAX);
    let info = spe::auxtrace_info(9, &[cpu]);
    writer.records(Encoder::auxtrace_info(auxtrace::ARM_SPE, &info).finish()).expect("memory");
    let clock = TimeConversion::new(20, 10 << 20, 7);
    writer.records(Encoder::time_conversion(&clock).finish()).expect("memory");
    for (index, bytes) in trace.chunks(size).enumerate() {
        let offset = (index * size) as u64;
        writer.trace(&AuxtraceBuffer::of_cpu(0, offset), [bytes, &[]]).expect("memory");
    }
    writer.finish(&MachineDescription::default(), &[]).expect("memory").into_inner()
}

fn read(records: &dyn RecordSource) -> (Vec<String>, AuxtraceStats) {
    let (mut samples, mut tally) = (Vec::new(), AuxtraceStats::default());
    let outcome = records.visit(&mut |_, seen| {
        match seen {
            VisitedRecord::Access(sample) => samples.push(format!("{sample:?}")),
            VisitedRecord::Traces(found) => tally = *found,
            _ => {}
        }
        Ok(())
    });
    outcome.expect("well-formed but for the packets");
    (samples, tally)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((size, packets)) = bytes.split_first() else { return };
    // nothing that fills up the last part belongs to a packet
    let trace = &[packets, &[0; 32]].concat();
    let in_parts = recording(trace, usize::from(*size).max(1));
    let parsed = Recording::parse(&in_parts).expect("well-formed");
    let (samples, tally) = read(&parsed);
    assert_eq!(samples.len() as u64, tally.accesses());
    // each takes bytes of its own
    let whole = tally.accesses() + tally.branches() + tally.others() + tally.incomplete();
    let lost = tally.damaged() + tally.cut();
    assert!(whole + lost <= trace.len() as u64 && tally.damaged_bytes() <= trace.len() as u64);
    // what fills up a part is bytes of it
    let at_once = recording(trace, trace.len());
    let whole = read(&Recording::parse(&at_once).expect("well-formed"));
    let counts = |tally: &AuxtraceStats| (tally.accesses(), tally.damaged_bytes(), tally.notes());
    assert_eq!((&whole.0, counts(&whole.1)), (&samples, counts(&tally)));

    FILE.set_len(in_parts.len() as u64).expect("writable");
    FILE.write_all_at(&in_parts, 0).expect("writable");
    let pieces = ChunkedRecording::open(&FILE).expect("readable").expect("nothing that needs more");
    assert_eq!(read(&pieces), (samples, tally));
});
