//! The rings, and their way into the file; and that of the packets that hardware writes beside them.

use super::build_id_cache::BuildIdCache;
use super::os::{self, Ring};
use crate::abi::{auxtrace, misc, record as kind};
use crate::file::BuildId;
use crate::spe::{AuxtraceBuffer, TimeConversion};
use crate::writer::Writer;
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{OwnedFd, RawFd};

/// The numbers of samples, losses and bytes of packets that went through the rings.
#[derive(Debug, Default)]
pub(super) struct RecordingStats {
    pub(super) samples: u64,
    /// The number of lost records by the kernel's own count, which may lack those that were lost last.
    pub(super) lost: u64,
    pub(super) last_time: u64,
    /// The number of bytes of packets that hardware (Arm SPE) wrote.
    pub(super) packets: u64,
    /// The number of times that the hardware found no room for its packets.
    pub(super) full: u64,
    /// The values of `packets` and `full` when events that had stopped were last enabled again.
    pub(super) before: (u64, u64),
    /// The programs that may have to be copied into perf's build-id cache.
    pub(super) keeper: BuildIdCache,
}

/// The ring of a CPU.
#[derive(Debug)]
struct CpuRing {
    cpu: u32,
    /// The event descriptor that becomes readable when the ring fills.
    descriptor: RawFd,
    ring: Ring,
    /// The descriptors of the events that write packets into the ring's buffer for them.
    writers: Vec<RawFd>,
}

/// The ring buffers of a recording, one for each CPU.
#[derive(Debug, Default)]
pub(super) struct Rings {
    rings: Vec<CpuRing>,
    buffer: Vec<u8>,
    /// The size in pages that the kernel granted each buffer for packets.
    packet_pages: Option<usize>,
    /// The size in pages that was asked for each buffer for packets.
    wanted_pages: usize,
}

/// The ratio of the size of buffers for packets to that of rings.
const PACKETS: usize = 8;

/// The smallest buffer that hardware takes, in pages.
const SMALLEST: usize = 2;

impl Rings {
    pub(super) fn add(&mut self, descriptor: RawFd, cpu: u32, ring: Ring) {
        self.rings.push(CpuRing { cpu, descriptor, ring, writers: Vec::new() });
    }

    /// Adds an event that writes packets to the ring of this CPU.
    pub(super) fn add_writer(&mut self, cpu: u32, event: RawFd) {
        let ring = self.rings.iter_mut().rev().find(|ring| ring.cpu == cpu);
        ring.into_iter().for_each(|ring| ring.writers.push(event));
    }

    /// Adds a buffer for packets to a ring: as large as the kernel has it, and all of the same size.
    pub(super) fn map_packets(&mut self, ring: &mut Ring, event: &OwnedFd, ring_pages: usize) -> Result<()> {
        self.wanted_pages = ring_pages.saturating_mul(PACKETS).max(SMALLEST);
        let mut pages = self.packet_pages.unwrap_or(self.wanted_pages);
        loop {
            match ring.map_packets(event, pages) {
                Err(error) if is_too_much(&error) && pages / 2 >= SMALLEST => pages /= 2,
                result => {
                    self.packet_pages = Some(pages);
                    return result;
                }
            }
        }
    }

    /// Returns the note on buffers for packets, if there is one.
    pub(super) fn packets_note(&self) -> Option<String> {
        let pages = self.packet_pages.filter(|pages| *pages < self.wanted_pages)?;
        Some(format!(
            "{} KB for the packets of each CPU: more needs root, or a higher kernel.perf_event_mlock_kb",
            pages * os::page_size() / 1024
        ))
    }

    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        self.rings.iter().map(|ring| ring.descriptor).collect()
    }

    /// Returns the conversion of the hardware's counter to the time of records.
    pub(super) fn clock(&self) -> Option<TimeConversion> {
        self.rings.first()?.ring.clock()
    }

    /// Empties all into the file, and marks the round: what comes later is not older than what was
    /// there in the round before.
    pub(super) fn drain_round(
        &mut self,
        writer: &mut Writer<File>,
        tally: &mut RecordingStats,
    ) -> Result<()> {
        let before = writer.written();
        self.drain(writer, tally)?;
        if writer.written() > before { writer.finish_round() } else { Ok(()) }
    }

    /// Empties all into the file; without the mark perf keeps these records until there is one.
    pub(super) fn drain(&mut self, writer: &mut Writer<File>, tally: &mut RecordingStats) -> Result<()> {
        for (index, CpuRing { cpu, ring, .. }) in self.rings.iter_mut().enumerate() {
            // before the ring is: what the kernel says of these packets is in it
            let packets = ring.packets_end();
            let buffer = &mut self.buffer;
            buffer.clear();
            // copied first, so that the kernel has its room back before the disk is waited for
            ring.drain(|first, second| {
                buffer.extend_from_slice(first);
                buffer.extend_from_slice(second);
                Ok(())
            })?;
            scan(&self.buffer, writer, tally);
            if !self.buffer.is_empty() {
                writer.records(&self.buffer)?;
            }
            ring.drain_packets(packets, |offset, first, second| {
                tally.packets += (first.len() + second.len()) as u64;
                let part =
                    AuxtraceBuffer { size: 0, offset, index: index as u32, tid: None, cpu: Some(*cpu) };
                writer.trace(&part, [first, second])
            })?;
        }
        Ok(())
    }

    /// Lets events go on that write packets, where there were some since the last time: the kernel stops one whose
    /// buffer is full.
    pub(super) fn resume(&self, tally: &mut RecordingStats) {
        let now = (tally.packets, tally.full);
        if std::mem::replace(&mut tally.before, now) == now {
            return;
        }
        for event in self.rings.iter().flat_map(|ring| &ring.writers) {
            // it may have ended with its thread
            let _ = os::enable_again(*event);
        }
    }
}

/// Returns `true` if an error says that there was no memory for a buffer, or no right to so much of it.
fn is_too_much(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

/// Counts samples, and notes what the file's header will say of files.
fn scan(mut bytes: &[u8], writer: &mut Writer<File>, tally: &mut RecordingStats) {
    while let Some((header, _)) = bytes.split_first_chunk::<8>() {
        let [k0, k1, k2, k3, m0, m1, s0, s1] = *header;
        let size = usize::from(u16::from_ne_bytes([s0, s1]));
        let Some((record, rest)) = bytes.split_at_checked(size).filter(|_| size >= 8) else { return };
        bytes = rest;
        let body = &record[8..];
        let word = |index: usize| body.get(index * 8..)?.first_chunk().copied().map(u64::from_ne_bytes);
        let half = |index: usize| body.get(index * 4..)?.first_chunk().copied().map(i32::from_ne_bytes);
        let header_misc = u16::from_ne_bytes([m0, m1]);
        match u32::from_ne_bytes([k0, k1, k2, k3]) {
            kind::SAMPLE => {
                tally.samples += 1;
                // behind the identifier: the address and the process
                if header_misc & misc::CPUMODE_MASK == misc::USER
                    && let (Some(address), Some(pid)) = (word(1), half(4))
                {
                    tally.keeper.sample(pid, address);
                }
                // behind the identifier, the address and the thread, which are always asked for
                if let Some(time) = word(3) {
                    tally.last_time = tally.last_time.max(time);
                    writer.sample_time(time);
                }
            }
            kind::LOST => tally.lost += word(1).unwrap_or(0),
            // where it was, how many bytes, what became of it
            kind::AUX => {
                tally.full += u64::from(word(2).unwrap_or(0) & auxtrace::TRUNCATED != 0);
                // the trailer ends with time, stream's number, CPU and event's number: see `open`
                if let Some(time) = word(4) {
                    tally.last_time = tally.last_time.max(time);
                    writer.sample_time(time);
                }
            }
            kind::MMAP2 => {
                // process, start, length, offset; then the length of the id, three bytes, the id
                let id = body.get(36..56).filter(|_| header_misc & misc::MMAP_BUILD_ID != 0).and_then(|id| {
                    let len = usize::from(*body.get(32)?).min(id.len());
                    BuildId::new(&id[..len])
                });
                let Some(path) = body.get(64..).and_then(|path| path.split(|byte| *byte == 0).next()) else {
                    continue;
                };
                if let Some(id) = id {
                    writer.build_id(false, path, id);
                }
                if header_misc & misc::MMAP_DATA == 0
                    && let (Some(pid), Some(start), Some(len)) = (half(0), word(1), word(2))
                {
                    tally.keeper.map(pid, start..start.saturating_add(len), path, id);
                }
            }
            // process and its parent
            kind::FORK => {
                if let (Some(pid), Some(parent)) = (half(0), half(1)) {
                    tally.keeper.fork(pid, parent);
                }
            }
            // process and thread
            kind::COMM if header_misc & misc::COMM_EXEC != 0 => {
                half(0).into_iter().for_each(|pid| tally.keeper.forget(pid));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recording;
    use crate::abi::{attr_flag, sample as bit};
    use crate::attr::Attr;
    use crate::file::{RecordBody, RecordSource, VisitedRecord};
    use crate::spe::{CpuMetadata, SampleId, auxtrace_info};
    use crate::writer::{Encoder, Event, MachineDescription};

    /// Returns a load of a program, with its number in the address of the data.
    fn packets(number: u64) -> Vec<u8> {
        let mut bytes = vec![0xb0, 0x00, 0x10, 0x40, 0, 0, 0, 0, 0x80, 0x49, 0, 0x42, 0x16, 0xb2];
        bytes.extend((0x60_0000 + number).to_le_bytes());
        bytes.push(0x71);
        bytes.extend((1000 + number).to_le_bytes());
        bytes.resize(64, 0);
        bytes
    }

    fn attr() -> Attr {
        Attr {
            kind: 9,
            sample_type: bit::IDENTIFIER | bit::TID | bit::TIME | bit::CPU,
            flags: attr_flag::SAMPLE_ID_ALL,
            ..Attr::default()
        }
    }

    /// Returns a recording's beginning.
    fn begin(path: &std::path::Path) -> Writer<File> {
        let event = Event::new("arm_spe_0//", attr(), vec![1]);
        let mut writer = Writer::new(File::create(path).expect("writable"), vec![event]).expect("writable");
        let cpus = [3, 5].map(|number| CpuMetadata { number, pmu: Some(9), ..CpuMetadata::default() });
        let mut info = Encoder::auxtrace_info(auxtrace::ARM_SPE, &auxtrace_info(9, &cpus));
        writer.records(info.finish()).expect("writable");
        writer
    }

    #[test]
    fn packets_go_into_the_file_behind_what_the_kernel_says_of_them() {
        let path = std::env::temp_dir().join(format!("tallyline-rings-{}", std::process::id()));
        let mut writer = begin(&path);
        let (mut rings, mut tally) = (Rings::default(), RecordingStats::default());
        for cpu in [3, 5] {
            rings.add(-1, cpu, Ring::made_up());
        }
        // more than a buffer has room for at once, and not the same on each CPU
        let (mut number, mut offsets) = (0, [0, 0]);
        for round in 0..10 {
            for (index, cpu) in [3, 5].into_iter().enumerate() {
                let count = 7 + 20 * index as u64 + round;
                let bytes: Vec<u8> = (number..number + count).flat_map(packets).collect();
                number += count;
                let who = SampleId { pid: Some(7), tid: Some(8), time: Some(1000 + number), cpu: Some(cpu) };
                let flags = if round == 4 { auxtrace::TRUNCATED } else { 0 };
                let mut aux = Encoder::aux(offsets[index], bytes.len() as u64, flags, &attr(), &who);
                offsets[index] += bytes.len() as u64;
                rings.rings[index].ring.fill(&bytes, aux.finish());
            }
            rings.drain_round(&mut writer, &mut tally).expect("writable");
        }
        assert_eq!((tally.packets, tally.full, tally.samples), (64 * number, 2, 0));
        assert_eq!(tally.last_time, 1000 + number);
        writer.finish(&MachineDescription::default(), &[]).expect("writable");

        let bytes = std::fs::read(&path).expect("readable");
        std::fs::remove_file(&path).expect("own file");
        let recording = Recording::parse(&bytes).expect("well-formed");
        let (mut kinds, mut addresses, mut found) = (Vec::new(), Vec::new(), None);
        let outcome = recording.visit(&mut |_, seen| {
            match seen {
                VisitedRecord::Other(record) => {
                    if let RecordBody::Other(kind @ (kind::AUX | kind::AUXTRACE)) = record.body {
                        kinds.push(kind);
                    }
                }
                VisitedRecord::Access(sample) => addresses.push((sample.addr, sample.cpu)),
                VisitedRecord::Traces(tally) => found = Some(*tally),
                VisitedRecord::Sample(..) | VisitedRecord::Damaged(_) => {}
            }
            Ok(())
        });
        assert!(outcome.is_ok());
        assert_eq!(kinds, [kind::AUX, kind::AUXTRACE].repeat(20));
        let found = found.expect("traces");
        assert_eq!((found.accesses, found.truncated, found.cut, found.damaged), (number, 2, 0, 0));
        // each once, in the order of its CPU
        let of = |cpu| addresses.iter().filter(move |(_, of)| *of == Some(cpu)).map(|(address, _)| *address);
        assert!(of(3).is_sorted() && of(5).is_sorted());
        let mut all: Vec<_> = addresses.iter().filter_map(|(address, _)| *address).collect();
        all.sort_unstable();
        assert_eq!(all, (0..number).map(|number| 0x60_0000 + number).collect::<Vec<_>>());
    }

    #[test]
    fn buffers_are_as_large_as_the_kernel_has_them_and_that_is_said() {
        let error = Error::from_raw_os_error;
        assert!(is_too_much(&error(libc::EPERM)) && is_too_much(&error(libc::ENOMEM)));
        assert!(!is_too_much(&error(libc::EINVAL)));
        let mut rings = Rings { wanted_pages: 64, packet_pages: Some(64), ..Rings::default() };
        assert_eq!(rings.packets_note(), None);
        rings.packet_pages = Some(16);
        assert!(rings.packets_note().is_some_and(|note| note.contains("mlock_kb")));
    }
}
