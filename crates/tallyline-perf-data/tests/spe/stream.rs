//! Recordings as a machine with Arm's SPE makes them, for machines without: operations, the packets that the
//! hardware writes of them, and a file around those.

use std::io::{Result, Seek, Write};
use tallyline_perf_data::abi::{attr_flag, auxtrace, sample as bit};
use tallyline_perf_data::file::{Comm, Mmap};
use tallyline_perf_data::sample::{CpuMode, aarch64};
use tallyline_perf_data::spe::{self, AuxtraceBuffer, CpuMetadata, SampleId, TimeConversion};
use tallyline_perf_data::writer::{Encoder, Event, MachineDescription, NumaNode};
use tallyline_perf_data::{Attr, Writer};

pub(crate) const PID: i32 = 4000;
pub(crate) const CODE: u64 = 0xaaaa_0040_0000;
pub(crate) const DATA: u64 = 0xaaaa_0060_0000;
pub(crate) const KERNEL: u64 = 0xffff_8000_0800_0000;
const PMU: u32 = 9;

/// 25 MHz, from 5 seconds on.
pub(crate) const CLOCK: TimeConversion = TimeConversion::new(21, 40 << 21, 5_000_000_000);

/// The CPUs of the machine: designs that number the places of data in different ways, and one that is not known.
pub(crate) const MODELS: [u64; 6] = [0x413f_d0c1, 0x410f_d4f1, AMPERE, 0x480f_d061, 0x410f_d840, 0x610f_0220];
/// Of its numbers perf complains of those that mean nothing.
const AMPERE: u64 = 0xc00f_ac41;

/// Returns the events that a CPU can report: snoops on every other one.
pub(crate) fn known_events(cpu: usize) -> u64 {
    if cpu.is_multiple_of(2) { 0xffff_ffff } else { 0xffff }
}

/// Kinds of operations: class, and what the packet says of it.
pub(crate) const LOAD: (u8, u8) = (1, 0x00);
pub(crate) const STORE: (u8, u8) = (1, 0x01);
pub(crate) const ATOMIC: (u8, u8) = (1, 0x06);
pub(crate) const BRANCH: (u8, u8) = (2, 0x01);
pub(crate) const OTHER: (u8, u8) = (0, 0x00);
/// Arithmetic on vectors, which perf takes for an access of an unknown kind.
pub(crate) const VECTOR: (u8, u8) = (0, 0x08);

/// One operation as the hardware samples it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    pub(crate) pc: u64,
    /// The exception level.
    pub(crate) level: u64,
    pub(crate) operation: (u8, u8),
    pub(crate) data: u64,
    pub(crate) physical: Option<u64>,
    pub(crate) events: u64,
    pub(crate) source: Option<u8>,
    pub(crate) latency: u16,
    pub(crate) thread: Option<i32>,
    pub(crate) time: Option<u64>,
}

impl Sampled {
    pub(crate) fn is_access(&self) -> bool {
        self.operation.0 == 1
    }

    /// Appends the packets, filled up to 64 bytes as real records are.
    pub(crate) fn packets(&self, out: &mut Vec<u8>) {
        const NOT_SECURE: u64 = 1 << 63;
        const ADDRESS: u64 = (1 << 56) - 1;
        let start = out.len();
        let packet = |header: u8, value: u64, size: usize, out: &mut Vec<u8>| {
            out.push(header);
            out.extend(&value.to_le_bytes()[..size]);
        };
        packet(0xb0, self.pc & ADDRESS | self.level << 61 | NOT_SECURE, 8, out);
        if let Some(thread) = self.thread {
            packet(if self.level == 2 { 0x65 } else { 0x64 }, thread as u64, 4, out);
        }
        packet(0x48 | self.operation.0, self.operation.1.into(), 1, out);
        match self.events {
            0..0x100 => packet(0x42, self.events, 1, out),
            0x100..0x1_0000 => packet(0x52, self.events, 2, out),
            _ => packet(0x62, self.events, 4, out),
        }
        packet(0x99, u64::from(self.latency) / 3, 2, out);
        packet(0x98, self.latency.into(), 2, out);
        match self.operation.0 {
            1 => {
                packet(0x9a, 2, 2, out);
                // programs may put tags there
                let tag = if self.level == 0 { self.data << 50 & !ADDRESS } else { 0 };
                packet(0xb2, self.data & ADDRESS | tag, 8, out);
                if let Some(physical) = self.physical {
                    packet(0xb3, physical | NOT_SECURE, 8, out);
                }
                if let Some(source) = self.source {
                    packet(0x43, source.into(), 1, out);
                }
            }
            2 => packet(0xb1, self.pc & ADDRESS | self.level << 61 | NOT_SECURE | 64, 8, out),
            _ => {}
        }
        match self.time {
            Some(time) => packet(0x71, time, 8, out),
            None => out.push(1),
        }
        out.resize(start + (out.len() - start).next_multiple_of(64), 0);
    }
}

/// Numbers that follow from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// Returns the operations that the CPUs sample: for each of them in the order of time.
pub(crate) fn operations(seed: u64, each: u64) -> Vec<Vec<Sampled>> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..MODELS.len() as u64)
        .map(|cpu| {
            let mut time = 1_000_000 + cpu;
            (0..each).map(|_| operation(&mut random, cpu, &mut time)).collect()
        })
        .collect()
}

fn operation(random: &mut Random, cpu: u64, time: &mut u64) -> Sampled {
    // a time is never one of another CPU, so that there is one order
    *time += MODELS.len() as u64 * (1 + random.below(100));
    let level = random.one_of(&[0, 0, 1, 2]);
    let operation = random.one_of(&[LOAD, LOAD, LOAD, STORE, STORE, ATOMIC, BRANCH, OTHER, VECTOR]);
    let (code, data) = if level == 0 { (CODE, DATA) } else { (KERNEL, KERNEL + 0x100_0000) };
    let events = 0x2 | random.below(1 << 26) & random.below(1 << 26);
    Sampled {
        pc: code + 0x1000 + random.below(0x400) * 4,
        level,
        operation,
        data: data + random.below(0x1_0000),
        physical: (random.below(3) > 0).then(|| 0x8_0000_0000 + random.below(1 << 30)),
        events: if random.below(3) == 0 { events & 0xfff } else { events },
        // stores have none; perf takes the number 0 for one that is missing, so it never is
        source: (operation.0 == 1 && operation.1 & 1 == 0).then(|| match MODELS[cpu as usize] {
            AMPERE => random.one_of(&[0, 3, 5, 7, 8, 9]),
            _ => random.below(20) as u8,
        }),
        latency: random.below(0x1000) as u16,
        thread: Some(PID + (cpu % 3) as i32),
        time: Some(*time),
    }
}

/// Returns the attributes of an event of SPE.
pub(crate) fn attr(sample_type: u64) -> Attr {
    Attr {
        kind: PMU,
        config: 1 | 3 << 33,
        sample_period: 1024,
        sample_type,
        sample_regs_user: aarch64::ALL,
        flags: attr_flag::SAMPLE_ID_ALL,
        ..Attr::default()
    }
}

/// The sample fields that `tallyline record` asks for.
pub(crate) const FIELDS: u64 = bit::IDENTIFIER
    | bit::IP
    | bit::TID
    | bit::TIME
    | bit::ADDR
    | bit::CPU
    | bit::PERIOD
    | bit::REGS_USER
    | bit::DATA_SRC
    | bit::WEIGHT_STRUCT
    | bit::PHYS_ADDR;

/// A program and a kernel.
const MAPS: [Map<'static>; 3] = [
    (-1, KERNEL, 0x200_0000, KERNEL, "[kernel.kallsyms]_text", true),
    (PID, CODE, 0x10_0000, 0, "/opt/made/sampled", true),
    (PID, DATA, 0x10_0000, DATA - CODE, "/opt/made/sampled", false),
];

/// Writes the start of the file in front of its traces, with a program and a kernel.
pub(crate) fn begin<W: Write + Seek>(out: W, clock: Option<&TimeConversion>) -> Result<Writer<W>> {
    begin_with(out, clock, &MAPS)
}

/// A mapping: process, start, length, offset in the file, the file, and whether code can run there.
pub(crate) type Map<'p> = (i32, u64, u64, u64, &'p str, bool);

/// Begins a recording as perf wrote it before Linux 6.14: the CPUs' model is in the header.
pub(crate) fn begin_old<W: Write + Seek>(out: W) -> Result<Writer<W>> {
    begin_described(out, Some(&CLOCK), &MAPS, &[PMU.into(), 1])
}

/// Writes the start of the file in front of its traces.
pub(crate) fn begin_with<W: Write + Seek>(
    out: W,
    clock: Option<&TimeConversion>,
    maps: &[Map<'_>],
) -> Result<Writer<W>> {
    let cpus = MODELS
        .iter()
        .enumerate()
        .map(|(number, midr)| CpuMetadata::new(number as u32, *midr, PMU, 256, known_events(number)));
    begin_described(out, clock, maps, &spe::auxtrace_info(PMU, &cpus.collect::<Vec<_>>()))
}

fn begin_described<W: Write + Seek>(
    out: W,
    clock: Option<&TimeConversion>,
    maps: &[Map<'_>],
    description: &[u64],
) -> Result<Writer<W>> {
    let attrs = [attr(FIELDS), Attr { kind: 1, config: 9, sample_period: 1, ..attr(FIELDS) }];
    let events =
        attrs.iter().zip(["arm_spe_0/ts_enable=1,load_filter=1,store_filter=1/", "dummy:u"]).zip(1..);
    let events = events.map(|((attr, name), id)| Event::new(name, attr.clone(), vec![id]));
    let mut writer = Writer::new(out, events.collect())?;
    if let Some(clock) = clock {
        writer.records(Encoder::time_conversion(clock).finish())?;
    }
    writer.records(Encoder::auxtrace_info(auxtrace::ARM_SPE, description).finish())?;
    let attr = &attrs[1];
    for thread in 0..3 {
        let comm = Comm::new(PID, PID + thread, b"sampled", thread == 0);
        writer.records(Encoder::comm(&comm, attr, 0).finish())?;
    }
    for &(pid, start, len, file_offset, path, is_executable) in maps {
        let mode = if pid < 0 { CpuMode::Kernel } else { CpuMode::User };
        let mapping = Mmap {
            pid,
            tid: pid,
            mode,
            start,
            len,
            file_offset,
            path: path.as_bytes(),
            is_executable,
            build_id: None,
            shared_file: None,
        };
        writer.records(Encoder::mapping(&mapping, attr, 0).finish())?;
    }
    Ok(writer)
}

/// Makes operations into those of an older machine: packets do not say whose they are, the kernel does when threads
/// take turns.
pub(crate) fn without_threads<W: Write + Seek>(
    writer: &mut Writer<W>,
    operations: &mut [Vec<Sampled>],
) -> Result<()> {
    for (cpu, operations) in operations.iter_mut().enumerate() {
        for (index, operation) in operations.iter_mut().enumerate() {
            let Some(time) = operation.time.filter(|_| index % 10 == 0) else {
                operation.thread = None;
                continue;
            };
            let (tid, next) = (PID + (index / 10 % 3) as i32, PID + ((index / 10 + 1) % 3) as i32);
            operation.thread = None;
            // the last one before the operation is the one that ran
            for (turn, tid, next) in [(1, next, tid), (0, tid, next)] {
                let sample_id =
                    SampleId::new(PID, tid, CLOCK.zero() + time * 40 - 20 * (turn + 1), cpu as u32);
                writer.records(
                    Encoder::switch(turn == 1, Some((PID, next)), &attr(FIELDS), &sample_id).finish(),
                )?;
            }
        }
    }
    Ok(())
}

/// Writes the traces of all CPUs, in parts of the sizes that `size` returns, with the kernel's records about
/// them.
pub(crate) fn traces<W: Write + Seek>(
    writer: &mut Writer<W>,
    operations: &[Vec<Sampled>],
    size: &mut dyn FnMut() -> usize,
) -> Result<()> {
    for (cpu, operations) in operations.iter().enumerate() {
        let mut bytes = Vec::new();
        operations.iter().for_each(|operation| operation.packets(&mut bytes));
        let last = operations.iter().filter_map(|operation| operation.time).max().unwrap_or(0);
        let sample_id = SampleId::new(PID, PID, CLOCK.zero() + last * 40, cpu as u32);
        let mut offset = 0;
        while offset < bytes.len() {
            let len = size().clamp(1, bytes.len() - offset);
            writer.records(Encoder::aux(offset as u64, len as u64, 0, &attr(FIELDS), &sample_id).finish())?;
            let part = AuxtraceBuffer::of_cpu(cpu as u32, offset as u64);
            // in two pieces, as where the buffer begins anew
            let (first, second) = bytes[offset..offset + len].split_at(len / 3);
            writer.trace(&part, [first, second])?;
            offset += len;
        }
    }
    writer.finish_round()
}

/// Writes the end of the file: the descriptions of the machine and of its memory.
pub(crate) fn end<W: Write + Seek>(writer: Writer<W>) -> Result<W> {
    let count = MODELS.len() as u32;
    // one block of memory, which physical addresses are in
    let node = NumaNode::new(0, (1 << 26, 1 << 25), format!("0-{}", count - 1), vec![0]);
    let machine = MachineDescription {
        hostname: "made-up".to_owned(),
        arch: "aarch64".to_owned(),
        cpu_id: format!("0x{:016x}", MODELS[0]),
        cpus: (count, count),
        command_line: vec!["spe_profile".to_owned()],
        topology: (0..count).map(|cpu| (cpu, 0)).collect(),
        nodes: vec![node],
        memory_block: 1 << 36,
        pmus: vec![(1, "software".to_owned()), (PMU, "arm_spe_0".to_owned())],
        ..MachineDescription::default()
    };
    writer.finish(&machine, &[])
}
