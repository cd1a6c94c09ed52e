//! Writes a recording with data sources, as hardware that samples memory accesses makes them:
//! `cargo run --example memory_profile FILE [SAMPLES]`. For machines without such hardware.
//!
//! Two threads on two CPUs load and store on lines that they share; every field of the data source
//! takes all its values.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::{Comm, Mmap};
use tallyline_perf_data::recorder;
use tallyline_perf_data::sample::{CpuMode, DataSource, Weight};
use tallyline_perf_data::writer::{Encoder, Event};
use tallyline_perf_data::{Attr, Sample, Writer};

const PID: i32 = 4000;
const CODE: u64 = 0x40_0000;
const DATA: u64 = 0x60_0000;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: memory_profile FILE [SAMPLES]")?;
    let samples = std::env::args().nth(2).map_or(Ok(4096), |count| count.parse())?;
    let attrs = [0x1cd, 0x2cd].map(attr);
    let names = ["cpu/mem-loads,ldlat=30/P", "cpu/mem-stores/P"];
    let events = attrs.iter().zip(names).zip(1..);
    let events = events.map(|((attr, name), id)| Event::new(name, attr.clone(), vec![id])).collect();
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), events)?;
    for thread in 0..2 {
        let comm = Comm::new(PID, PID + thread, b"shares", thread == 0);
        writer.records(Encoder::comm(&comm, &attrs[0], 1).finish())?;
    }
    let text = 0xffff_ffff_8100_0000;
    for (pid, start, file_offset, path, is_executable) in [
        (-1, text, text, "[kernel.kallsyms]_text", true),
        (PID, CODE, 0, "/usr/bin/shares", true),
        (PID, DATA, DATA - CODE, "/usr/bin/shares", false),
    ] {
        let mapping = Mmap {
            pid,
            tid: pid,
            mode: if pid < 0 { CpuMode::Kernel } else { CpuMode::User },
            start,
            len: 0x10_0000,
            file_offset,
            path: path.as_bytes(),
            is_executable,
            build_id: None,
            shared_file: None,
        };
        writer.records(Encoder::mapping(&mapping, &attrs[0], 2).finish())?;
    }
    for index in 0..samples {
        let source = source(index);
        // loads and stores of one line by both CPUs, among lines of their own
        let line = if index % 3 == 0 { 0 } else { 1 + index % 61 };
        let event = usize::from(source.is_store());
        let sample = Sample {
            mode: CpuMode::User,
            exact: true,
            ip: Some(CODE + 0x1000 + index % 97 * 4),
            pid: Some(PID),
            tid: Some(PID + (index % 2) as i32),
            time: Some(1000 + index * 1000),
            addr: Some(DATA + line * 64 + index % 8 * 8),
            id: Some(event as u64 + 1),
            cpu: Some((index % 2) as u32),
            period: Some(1 + index % 1000),
            weight: Some(Weight::new(30 + index % 500, (index % 300) as u16, (index % 40) as u16)),
            data_source: Some(source),
            physical_address: Some(0x1_0000_0000 + index * 64),
            data_page_size: Some([4096, 2 << 20][(index % 2) as usize]),
            code_page_size: Some(4096),
            ..Sample::default()
        };
        writer.sample_time(1000 + index * 1000);
        writer.records(Encoder::sample(&sample, &attrs[event]).finish())?;
    }
    writer.finish_round()?;
    let mut machine = recorder::describe(&["memory_profile".to_owned()]);
    // the blocks of memory that the physical addresses are in
    machine.memory_block = 1 << 30;
    machine.nodes.truncate(1);
    machine.nodes.iter_mut().for_each(|node| node.blocks = (0..8).collect());
    writer.finish(&machine, &[])?;
    Ok(())
}

/// Returns the attributes of one of Intel's memory events.
fn attr(config: u64) -> Attr {
    Attr {
        kind: 4,
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
            | bit::DATA_SRC
            | bit::PHYS_ADDR
            | bit::DATA_PAGE_SIZE
            | bit::CODE_PAGE_SIZE,
        flags: attr_flag::SAMPLE_ID_ALL | attr_flag::FREQ | 2 << attr_flag::PRECISE_SHIFT,
        ..Attr::default()
    }
}

/// Returns each field on its own through all its values, then combinations that hardware makes.
fn source(index: u64) -> DataSource {
    // shift and width of operation, snoop, lock, translation, level's number, remote, more snoop,
    // blocked and hops
    const FIELDS: [(u32, u32); 9] =
        [(0, 5), (19, 5), (24, 2), (26, 7), (33, 4), (37, 1), (38, 2), (40, 3), (43, 3)];
    const LEVEL: u32 = 5;
    const LOAD: u64 = 2;
    const STORE: u64 = 4;
    const HIT: u64 = 2;
    const MISS: u64 = 4;
    let mut left = index;
    for (shift, width) in FIELDS {
        if left < 1 << width {
            // a load, except where the operation itself is the field
            return DataSource(left << shift | if shift == 0 { 0 } else { LOAD });
        }
        left -= 1 << width;
    }
    let mut random =
        index.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mut one_of = |choices: &[u64]| {
        random = random.rotate_left(13).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        choices[(random >> 40) as usize % choices.len()]
    };
    let operation = one_of(&[LOAD, LOAD, STORE]);
    let level = 8 << one_of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) | one_of(&[HIT, MISS]);
    let number = one_of(&[0, 1, 2, 3, 9, 12, 13, 14, 15]);
    let snoop = one_of(&[1, 2, 4, 8, 16]);
    let translation = one_of(&[1, 0b01_1010, 0b10_0100]);
    DataSource(
        operation
            | level << LEVEL
            | snoop << 19
            | one_of(&[0, 2]) << 24
            | translation << 26
            | number << 33
            | one_of(&[0, 1]) << 37
            | one_of(&[0, 1, 2]) << 38
            | one_of(&[1, 2, 4]) << 40
            | one_of(&[0, 1, 2, 3, 4]) << 43,
    )
}
