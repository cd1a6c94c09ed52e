//! Recordings: whatever the bytes are, all records are read or there is an error, and every address
//! is resolved or not. Read a piece at a time they have the same samples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
use tallyline_perf_data::file::{ChunkedRecording, RecordBody};
use tallyline_perf_data::{AddressSpaces, Recording};
use tallyline_report::{LoadedSamples, MergeGranularity};

/// A file without a name.
static FILE: LazyLock<File> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("tallyline-fuzz-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).expect("writable");
    std::fs::remove_file(path).expect("own file");
    file
});

fn samples(loaded: &LoadedSamples) -> u64 {
    loaded.groups().iter().map(|group| group.samples).sum()
}

fn read_in_pieces(bytes: &[u8], recording: &Recording<'_>) {
    FILE.set_len(bytes.len() as u64).expect("writable");
    FILE.write_all_at(bytes, 0).expect("writable");
    let Ok(Some(pieces)) = ChunkedRecording::open(&FILE) else { return };
    for apart in [MergeGranularity::None, MergeGranularity::Samples] {
        let Ok(Some(in_pieces)) = LoadedSamples::load_pieces(&pieces, apart) else { continue };
        let Ok(whole) = LoadedSamples::load(recording, apart) else { continue };
        assert_eq!(samples(&in_pieces), samples(&whole));
    }
    // what another file of a folder may hold: garbage, as a header is no record
    if let Ok(pieces) = pieces.with_more([(&*FILE, "data.0".to_owned())]) {
        let _ = LoadedSamples::load_pieces(&pieces, MergeGranularity::None);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::parse(bytes) else { return };
    read_in_pieces(bytes, &recording);
    let _ = recording.records().take_while(|record| record.is_ok()).count();
    let Ok(ordered) = recording.in_time_order() else { return };
    let mut spaces = AddressSpaces::new(&recording);
    for record in ordered.map_while(Result::ok) {
        if spaces.apply(record.body()).is_err() {
            return;
        }
        let RecordBody::Sample(event, sample) = record.body() else { continue };
        assert!(recording.events().get(*event).is_some());
        let (pid, ip) = (sample.pid.unwrap_or(0), sample.ip.unwrap_or(0));
        if let Some(place) = spaces.resolve(pid, sample.mode, ip) {
            assert!(place.start() <= ip);
            let _ = spaces.dso(place.dso());
        }
        let _ = spaces.resolve_data(pid, sample.mode, sample.addr.unwrap_or(0));
        let _ = sample.callers().count();
        let _ = ["x86_64", "aarch64", ""].map(|arch| sample.return_address(arch));
        let _ = sample.read.map(|read| read.iter().count());
        let _ = sample.branches.map(|stack| stack.iter().count());
        let _ = sample.user_registers.map(|registers| registers.iter().count());
        let _ =
            sample.data_source.map(|source| (source.level_text(), source.snoop_text(), source.tlb_text()));
    }
});
