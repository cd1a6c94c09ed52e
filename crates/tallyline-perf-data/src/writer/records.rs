//! Records that are made here and not by the kernel.

use crate::abi::{misc, record as kind, sample as bit};
use crate::attr::Attr;
use crate::file::{Comm, Mmap, Task};
use crate::sample::Sample;
use crate::spe::{AuxtraceBuffer, SampleId, TimeConversion};

/// The longest record: its size is a number of 16 bits.
const LONGEST: usize = u16::MAX as usize & !7;

/// Builder of the bytes of one perf.data record (`PERF_RECORD_*`), for [`Writer::records`](super::Writer::records).
#[derive(Clone, Debug)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Starts a record of type `kind` (a `PERF_RECORD_*` number) with these `misc` flags in its header.
    pub fn new(kind: u32, header_misc: u16) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(header_misc.to_ne_bytes());
        bytes.extend([0; 2]);
        Self { bytes }
    }

    /// Starts the record of a sample, with the fields that an event with these attributes records.
    pub fn sample(sample: &Sample<'_>, attr: &Attr) -> Self {
        let mut record = Self::new(kind::SAMPLE, sample.header_misc());
        sample.encode(attr, &mut record.bytes);
        record
    }

    /// Starts the record of a mapping (`PERF_RECORD_MMAP2`), with its build-id if it has one.
    pub fn mapping(mapping: &Mmap<'_>, attr: &Attr, time: u64) -> Self {
        let mut header_misc = mapping.mode.bits();
        if !mapping.is_executable {
            header_misc |= misc::MMAP_DATA;
        }
        let mut file = [0; 24];
        if let Some(id) = mapping.build_id {
            header_misc |= misc::MMAP_BUILD_ID;
            let id = id.as_bytes();
            file[0] = id.len() as u8;
            file[4..4 + id.len()].copy_from_slice(id);
        } else if let Some(id) = mapping.shared_file {
            file[..4].copy_from_slice(&id.0.to_ne_bytes());
            file[4..8].copy_from_slice(&id.1.to_ne_bytes());
            file[8..16].copy_from_slice(&id.2.to_ne_bytes());
        }
        const READABLE: u32 = 1;
        const EXECUTABLE: u32 = 4;
        const SHARED: u32 = 1;
        const PRIVATE: u32 = 2;
        let mut record = Self::new(kind::MMAP2, header_misc);
        record.halves(mapping.pid, mapping.tid);
        record.words(&[mapping.start, mapping.len, mapping.file_offset]);
        record.bytes.extend(file);
        let protection = READABLE | if mapping.is_executable { EXECUTABLE } else { 0 };
        record.bytes.extend(protection.to_ne_bytes());
        let flags = if mapping.shared_file.is_some() { SHARED } else { PRIVATE };
        record.bytes.extend(flags.to_ne_bytes());
        record.text(mapping.path);
        record.trailer(attr, mapping.pid, mapping.tid, time);
        record
    }

    /// Starts the record that a thread got a name (`PERF_RECORD_COMM`).
    pub fn comm(comm: &Comm<'_>, attr: &Attr, time: u64) -> Self {
        let mut record = Self::new(kind::COMM, if comm.is_exec { misc::COMM_EXEC } else { 0 });
        record.halves(comm.pid, comm.tid);
        record.text(comm.name);
        record.trailer(attr, comm.pid, comm.tid, time);
        record
    }

    /// Starts the record that a thread or process was created (`PERF_RECORD_FORK`).
    pub(crate) fn fork(task: &Task, attr: &Attr, time: u64) -> Self {
        let mut record = Self::new(kind::FORK, 0);
        record.halves(task.pid, task.parent_pid);
        record.halves(task.tid, task.parent_tid);
        record.words(&[time]);
        record.trailer(attr, task.parent_pid, task.parent_tid, time);
        record
    }

    /// Starts the record that `count` samples of an event with these attributes were lost (`PERF_RECORD_LOST_SAMPLES`).
    pub(crate) fn lost_samples(count: u64, attr: &Attr, time: u64) -> Self {
        let mut record = Self::new(kind::LOST_SAMPLES, 0);
        record.words(&[count]);
        record.trailer(attr, 0, 0, time);
        record
    }

    /// Starts the record that describes hardware traces (`PERF_RECORD_AUXTRACE_INFO`): the kind of trace and its
    /// metadata words.
    pub fn auxtrace_info(kind: u32, words: &[u64]) -> Self {
        let mut record = Self::new(kind::AUXTRACE_INFO, 0);
        record.halves(kind.cast_signed(), 0);
        record.words(words);
        record
    }

    /// Starts the record that converts the CPUs' time-stamp counter to nanoseconds (`PERF_RECORD_TIME_CONV`).
    pub fn time_conversion(clock: &TimeConversion) -> Self {
        let mut record = Self::new(kind::TIME_CONV, 0);
        record.words(&clock.words());
        record
    }

    /// Starts the record that the hardware wrote `size` bytes of trace at `offset` of its buffer
    /// (`PERF_RECORD_AUX`).
    pub fn aux(offset: u64, size: u64, flags: u64, attr: &Attr, sample_id: &SampleId) -> Self {
        let mut record = Self::new(kind::AUX, 0);
        record.words(&[offset, size, flags]);
        record.trailer_of(attr, sample_id);
        record
    }

    /// Starts the record that the hardware trace of a thread begins (`PERF_RECORD_ITRACE_START`).
    pub fn itrace_start(attr: &Attr, sample_id: &SampleId) -> Self {
        let mut record = Self::new(kind::ITRACE_START, 0);
        record.halves(sample_id.pid.unwrap_or(-1), sample_id.tid.unwrap_or(-1));
        record.trailer_of(attr, sample_id);
        record
    }

    /// Starts the record of a context switch (`PERF_RECORD_SWITCH`): a thread leaves its CPU, or gets it. With
    /// `other` it is `PERF_RECORD_SWITCH_CPU_WIDE`, which also names the next or previous process and thread.
    pub fn switch(leaves: bool, other: Option<(i32, i32)>, attr: &Attr, sample_id: &SampleId) -> Self {
        let kind = if other.is_some() { kind::SWITCH_CPU_WIDE } else { kind::SWITCH };
        let mut record = Self::new(kind, if leaves { misc::SWITCH_OUT } else { 0 });
        if let Some((pid, tid)) = other {
            record.halves(pid, tid);
        }
        record.trailer_of(attr, sample_id);
        record
    }

    /// Starts the record of a part of a trace, whose bytes follow ([`Writer::trace`](super::Writer::trace)).
    pub(super) fn auxtrace(part: &AuxtraceBuffer) -> Self {
        let mut record = Self::new(kind::AUXTRACE, 0);
        record.words(&[part.size, part.offset, 0]);
        record.halves(part.index.cast_signed(), part.tid.unwrap_or(-1));
        record.halves(part.cpu.map_or(-1, u32::cast_signed), 0);
        record
    }

    /// Sets the size in the header of the perf.data record and returns the record's bytes (at most 65528). An overlong
    /// path in it was cut before.
    pub fn finish(&mut self) -> &[u8] {
        self.bytes.truncate(LONGEST);
        let size = self.bytes.len() as u16;
        self.bytes[6..8].copy_from_slice(&size.to_ne_bytes());
        &self.bytes
    }

    fn halves(&mut self, first: i32, second: i32) {
        self.bytes.extend(first.to_ne_bytes());
        self.bytes.extend(second.to_ne_bytes());
    }

    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|word| self.bytes.extend(word.to_ne_bytes()));
    }

    /// Ends with a zero, and at a multiple of 8. The kernel's paths end at 4096.
    fn text(&mut self, text: &[u8]) {
        self.bytes.extend(&text[..text.len().min(4095)]);
        self.bytes.push(0);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    /// Writes the trailer that the event's other records have. No CPU and no id: perf takes the record for one
    /// that it synthesized.
    fn trailer(&mut self, attr: &Attr, pid: i32, tid: i32, time: u64) {
        self.trailer_of(attr, &SampleId { pid: Some(pid), tid: Some(tid), time: Some(time), cpu: Some(0) });
    }

    fn trailer_of(&mut self, attr: &Attr, sample_id: &SampleId) {
        if !attr.has_trailer() {
            return;
        }
        for field in [bit::TID, bit::TIME, bit::ID, bit::STREAM_ID, bit::CPU, bit::IDENTIFIER] {
            if attr.sample_type & field == 0 {
                continue;
            }
            match field {
                bit::TID => self.halves(sample_id.pid.unwrap_or(-1), sample_id.tid.unwrap_or(-1)),
                bit::TIME => self.words(&[sample_id.time.unwrap_or(0)]),
                bit::CPU => self.halves(sample_id.cpu.map_or(-1, u32::cast_signed), 0),
                _ => self.words(&[0]),
            }
        }
    }
}
