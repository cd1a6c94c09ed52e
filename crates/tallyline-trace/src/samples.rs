//! A trace as samples in perf's format, with the exact instruction and the exact address of each.

use super::format::{Event, TraceHeader};
use super::{EventBlock, Trace};
use crate::Result;
use std::io::{Seek, Write};
use tallyline_perf_data::Attr;
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::{BuildId, Comm, Mmap};
use tallyline_perf_data::sample::{CpuMode, DataSource, Sample, level, level_number, op, snoop, tlb};
use tallyline_perf_data::writer::{Encoder, MachineDescription, Writer};

/// The event name, `memory-accesses`, in a perf.data file that is converted from a trace; each of its samples is
/// one memory access.
pub(crate) const EVENT: &str = "memory-accesses";

/// The number that samples carry.
const ID: u64 = 1;

/// Facts about a traced program that the trace lacks and a perf.data file made of it needs: name, command line,
/// address of the kernel.
#[derive(Clone, Debug, Default)]
pub struct ProgramInfo<'a> {
    /// The name of the traced program.
    pub(crate) name: &'a str,
    /// The command line that recorded the trace.
    pub(crate) command_line: Vec<String>,
    /// The address of the symbol `_text` in the kernel of a whole machine, if its addresses are to be
    /// resolved.
    pub(crate) kernel_text: Option<u64>,
}

impl<'a> ProgramInfo<'a> {
    /// Describes a traced program by its name and the command line that recorded it. For the trace of a whole
    /// machine, `kernel_text` is the address of the kernel's symbol `_text`; `None` leaves kernel addresses without
    /// symbols.
    pub fn new(name: &'a str, command_line: Vec<String>, kernel_text: Option<u64>) -> Self {
        Self { name, command_line, kernel_text }
    }

    /// Returns the traced program's name.
    #[inline]
    pub fn name(&self) -> &'a str {
        self.name
    }
}

/// Converts a trace to a perf.data file with one sample for each memory access; returns the number of samples.
/// `build_id` is asked for the build-id of each mapped file.
///
/// A sample's time is interpolated between the times of its block. In the trace of a whole machine threads are
/// CPUs, and addresses in the upper half of the address space belong to the kernel.
///
/// # Errors
/// Damage of the trace; errors of `out`.
pub fn write_samples<W>(
    trace: &Trace<'_>,
    out: W,
    about: &ProgramInfo<'_>,
    build_id: &dyn Fn(&str) -> Option<BuildId>,
) -> Result<u64>
where
    W: Write + Seek,
{
    let header = trace.header();
    let attr = attributes(header);
    let event = tallyline_perf_data::file::Event::new(EVENT, attr.clone(), vec![ID]);
    let mut writer = Writer::new(out, vec![event])?;
    write_places(trace, &mut writer, &attr, about, build_id)?;
    let mut samples = 0;
    let mut buffer = Vec::new();
    for (number, thread) in trace.threads().iter().enumerate() {
        // a CPU of a whole machine runs whatever it runs
        let (pid, tid) = match header.whole_machine {
            true => (0, 0),
            false => (thread.process as i32, thread.thread as i32),
        };
        let cpu = if header.whole_machine { thread.thread } else { number as u32 };
        for block in &thread.blocks {
            let mut events = trace.events(block, std::mem::take(&mut buffer))?;
            let mut at = 0;
            for event in events.by_ref() {
                let Event::Access(access) = event? else { continue };
                let Some(instruction) = trace.instructions().get(access.instruction) else { continue };
                let time = time_in(block, at);
                at += 1;
                let is_kernel = header.whole_machine && instruction.address >> 63 != 0;
                let sample = Sample {
                    mode: if is_kernel { CpuMode::Kernel } else { CpuMode::User },
                    exact: true,
                    ip: Some(instruction.address),
                    pid: Some(pid),
                    tid: Some(tid),
                    time: Some(time),
                    addr: Some(access.address),
                    id: Some(ID),
                    cpu: Some(cpu),
                    period: Some(header.every),
                    data_source: Some(source_of(access.store)),
                    ..Sample::default()
                };
                writer.sample_time(time);
                writer.records(Encoder::sample(&sample, &attr).finish())?;
                samples += 1;
            }
            buffer = events.into_buffer();
        }
    }
    let cpus = trace.threads().len() as u32;
    let machine = MachineDescription {
        arch: header.machine.clone(),
        cpus: (cpus, cpus),
        command_line: about.command_line.clone(),
        ..MachineDescription::default()
    };
    writer.finish(&machine, &[])?;
    Ok(samples)
}

/// Returns the attributes of an event whose addresses are exact: they are those of the instructions
/// themselves.
fn attributes(header: &TraceHeader) -> Attr {
    const SOFTWARE: u32 = 1;
    const EXACT: u64 = 3;
    // else perf misses the kernel's symbols
    let of_programs = if header.whole_machine { 0 } else { attr_flag::EXCLUDE_KERNEL };
    Attr {
        kind: SOFTWARE,
        sample_period: header.every,
        sample_type: bit::IP
            | bit::TID
            | bit::TIME
            | bit::ADDR
            | bit::ID
            | bit::CPU
            | bit::PERIOD
            | bit::DATA_SRC,
        flags: of_programs
            | attr_flag::MMAP
            | attr_flag::MMAP2
            | attr_flag::MMAP_DATA
            | attr_flag::COMM
            | attr_flag::SAMPLE_ID_ALL
            | EXACT << attr_flag::PRECISE_SHIFT,
        ..Attr::default()
    }
}

/// Returns a load or a store; of where the data was, nothing is known.
fn source_of(store: bool) -> DataSource {
    let operation = if store { op::STORE } else { op::LOAD };
    const LOCK_NOT_KNOWN: u64 = 1;
    DataSource(
        u64::from(operation)
            | u64::from(level::NA) << 5
            | u64::from(snoop::NA) << 19
            | LOCK_NOT_KNOWN << 24
            | u64::from(tlb::NA) << 26
            | u64::from(level_number::NA) << 33,
    )
}

/// Estimates the time of an event, taking the events of a block for evenly spread over its time.
fn time_in(block: &EventBlock, at: u64) -> u64 {
    let (first, last) = block.times;
    let distance = u128::from(last.saturating_sub(first)) * u128::from(at);
    first.saturating_add((distance / u128::from(block.accesses.max(1))) as u64)
}

/// Writes names of processes and what is mapped in them.
fn write_places<W: Write + Seek>(
    trace: &Trace<'_>,
    writer: &mut Writer<W>,
    attr: &Attr,
    about: &ProgramInfo<'_>,
    build_id: &dyn Fn(&str) -> Option<BuildId>,
) -> Result<()> {
    let header = trace.header();
    // before the first block's time
    let time = header.time;
    if header.whole_machine {
        if let Some(text) = about.kernel_text {
            let kernel = Mmap {
                pid: -1,
                tid: 0,
                mode: CpuMode::Kernel,
                start: text,
                len: u64::MAX - text,
                file_offset: text,
                path: b"[kernel.kallsyms]_text",
                is_executable: true,
                build_id: None,
                shared_file: None,
            };
            writer.records(Encoder::mapping(&kernel, attr, time).finish())?;
        }
        return Ok(());
    }
    for thread in trace.threads() {
        let (pid, tid) = (thread.process as i32, thread.thread as i32);
        let comm = Comm::new(pid, tid, about.name.as_bytes(), false);
        writer.records(Encoder::comm(&comm, attr, time).finish())?;
    }
    let mut processes: Vec<u32> = trace.threads().iter().map(|thread| thread.process).collect();
    processes.sort_unstable();
    processes.dedup();
    for process in processes {
        // what is forked has its parent's mappings
        let of = |mapping: &&super::format::Mapping| [process, header.process].contains(&mapping.process);
        for mapping in trace.mappings().iter().filter(of) {
            let id = build_id(&mapping.path);
            if let Some(id) = id {
                writer.build_id(false, mapping.path.as_bytes(), id);
            }
            let mapping = Mmap {
                pid: process as i32,
                tid: process as i32,
                mode: CpuMode::User,
                start: mapping.start,
                len: mapping.length,
                file_offset: mapping.offset,
                path: mapping.path.as_bytes(),
                is_executable: mapping.is_code(),
                build_id: None,
                shared_file: None,
            };
            writer.records(Encoder::mapping(&mapping, attr, time).finish())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Builder, ThreadBuilder};
    use std::io::Cursor;
    use tallyline_perf_data::Recording;
    use tallyline_perf_data::file::RecordBody;

    #[test]
    fn every_access_is_a_sample_with_its_instruction_and_address() {
        let mut builder = Builder::new(100);
        let first = builder.instructions(0x40_1000, 4);
        builder.mapping(0x40_0000, 0x2000, 0, "/bin/program");
        let mut thread = ThreadBuilder::new(7, 9);
        thread.access(first, 0x7f00_0000, 8, true, 0);
        thread.access(first + 3, 0x7f00_0040, 4, false, 3);
        builder.thread(&mut thread);
        let bytes = builder.finish();
        let trace = Trace::from_bytes(bytes.as_slice()).expect("a trace");
        let mut file = Cursor::new(Vec::new());
        let about = ProgramInfo::new("program", Vec::new(), None);
        let id = BuildId::new(&[1, 2, 3]).expect("an id");
        assert_eq!(write_samples(&trace, &mut file, &about, &|_| Some(id)).expect("written"), 2);
        let file = file.into_inner();
        let recording = Recording::parse(&file).expect("a recording");
        let mut seen = Vec::new();
        let mut mapped = Vec::new();
        for record in recording.in_time_order().expect("records") {
            match record.expect("a record").into_body() {
                RecordBody::Sample(_, sample) => {
                    assert!(sample.exact);
                    assert_eq!((sample.pid, sample.tid, sample.period), (Some(7), Some(9), Some(100)));
                    seen.push((sample.ip, sample.addr, sample.data_source.map(DataSource::op)));
                }
                RecordBody::Mmap(mapping) => mapped.push((mapping.start, mapping.path.to_vec())),
                _ => {}
            }
        }
        let expected = [(0x40_1000, 0x7f00_0000, op::STORE), (0x40_100c, 0x7f00_0040, op::LOAD)];
        assert_eq!(seen, expected.map(|(ip, address, op)| (Some(ip), Some(address), Some(op))));
        assert_eq!(mapped, [(0x40_0000, b"/bin/program".to_vec())]);
    }
}
