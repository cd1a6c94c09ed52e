//! Records: the packets that one sampled operation left, up to the one that ends it.

use super::AuxtraceStats;
use super::packet::{self, LONGEST, Packet, PacketError, address, class, counter};
use crate::sample::CpuMode;

/// Bits of [`Record::events`]: the number of each event in the architecture.
pub(super) mod event {
    pub(in super::super) const L1_ACCESS: u64 = 1 << 2;
    pub(in super::super) const L1_MISS: u64 = 1 << 3;
    pub(in super::super) const TLB_ACCESS: u64 = 1 << 4;
    pub(in super::super) const TLB_MISS: u64 = 1 << 5;
    pub(in super::super) const LAST_ACCESS: u64 = 1 << 8;
    pub(in super::super) const LAST_MISS: u64 = 1 << 9;
    pub(in super::super) const REMOTE: u64 = 1 << 10;
    pub(in super::super) const L2_ACCESS: u64 = 1 << 19;
    pub(in super::super) const L2_MISS: u64 = 1 << 20;
    pub(in super::super) const MODIFIED: u64 = 1 << 21;
    pub(in super::super) const RECENTLY_FETCHED: u64 = 1 << 22;
    pub(in super::super) const SNOOPED: u64 = 1 << 23;
}

/// The kind of a sampled operation: memory access, branch, or other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A load or a store.
    Access {
        is_store: bool,
        /// `true` if the operation loads and stores at once.
        is_atomic: bool,
    },
    Branch,
    /// An operation that is neither, such as arithmetic.
    Other,
}

impl Operation {
    fn of(class: u8, bits: u8) -> Option<Self> {
        match class {
            class::MEMORY => Some(Self::Access {
                is_store: bits & 1 != 0,
                // the subclass of atomic, exclusive, acquiring and releasing accesses, and its bit for atomic
                is_atomic: bits & 0b1110_0010 == 0b10 && bits & 0b100 != 0,
            }),
            class::BRANCH => Some(Self::Branch),
            class::OTHER => Some(Self::Other),
            _ => None,
        }
    }
}

/// A sampled operation, as an SPE record describes it. `None` stands for what its packets do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The address of the sampled instruction, and the CPU's mode.
    pub(super) code: Option<(u64, CpuMode)>,
    /// The virtual address of the accessed data.
    pub(super) data: Option<u64>,
    pub(super) physical: Option<u64>,
    pub(super) operation: Option<Operation>,
    /// The events of the operation, [`event`] bits.
    pub(super) events: u64,
    /// The source of the data, as this CPU numbers it.
    pub(super) source: Option<u64>,
    /// The number of cycles from the operation's dispatch until it was complete.
    pub(super) latency: u64,
    /// The id of the thread that ran the operation, by the context packet.
    pub(super) context: Option<u64>,
    /// The time of the record, by the CPUs' counter.
    pub(super) timestamp: Option<u64>,
}

impl Record {
    fn take(&mut self, packet: Packet) {
        match packet {
            Packet::Address(address::PC, bits) => self.code = Some(code(bits)),
            Packet::Address(address::VIRTUAL, bits) => self.data = Some(extended(bits)),
            Packet::Address(address::PHYSICAL, bits) => self.physical = Some(bits & ADDRESS),
            Packet::Counter(counter::TOTAL, cycles) => self.latency = cycles,
            Packet::Context(thread) => self.context = Some(thread),
            Packet::Operation(class, bits) => self.operation = Operation::of(class, bits),
            Packet::Events(events) => self.events = events,
            Packet::DataSource(source) => self.source = Some(source),
            Packet::Timestamp(time) => self.timestamp = Some(time),
            // branches are counted, not described
            Packet::Address(..) | Packet::Counter(..) => {}
            Packet::Padding | Packet::End | Packet::Unknown => {}
        }
    }
}

/// The bits of an address; above them are tags or what else is known of it.
const ADDRESS: u64 = (1 << 56) - 1;

/// Extends an address by its bit 55, which selects the half of the address space: the kernel's has ones
/// above.
fn extended(bits: u64) -> u64 {
    if bits >> 55 & 1 != 0 { bits | !ADDRESS } else { bits & ADDRESS }
}

/// Returns the address of an instruction: above it are the exception level and whether that was the secure
/// world's.
fn code(bits: u64) -> (u64, CpuMode) {
    let is_normal = bits >> 63 != 0;
    match bits >> 61 & 3 {
        0 => (extended(bits), CpuMode::User),
        // with virtual host extensions the kernel is at level 2
        1 | 2 if is_normal => (extended(bits), CpuMode::Kernel),
        _ => (bits & ADDRESS, CpuMode::Hypervisor),
    }
}

/// Bytes to records. They may come in pieces that end anywhere.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    record: Record,
    has_packets: bool,
    is_damaged: bool,
    /// The bytes that are not decoded yet, and their offset in the hardware's buffer.
    rest: Vec<u8>,
    offset: u64,
}

impl Decoder {
    /// Starts to decode at an offset of the hardware's buffer. A record that began elsewhere is lost.
    pub(super) fn start(&mut self, offset: u64, tally: &mut AuxtraceStats) {
        if offset != self.offset.wrapping_add(self.rest.len() as u64) {
            self.stop(tally);
            self.offset = offset;
        }
    }

    /// Ends decoding: a record without an end is lost.
    pub(super) fn stop(&mut self, tally: &mut AuxtraceStats) {
        tally.cut += u64::from(self.has_packets || self.is_damaged || !self.rest.is_empty());
        self.offset = self.offset.wrapping_add(self.rest.len() as u64);
        self.rest.clear();
        self.begin();
    }

    fn begin(&mut self) {
        (self.record, self.has_packets, self.is_damaged) = (Record::default(), false, false);
    }

    /// Hands on the records that end in these bytes, each with where its end is in the hardware's buffer.
    pub(super) fn feed<E>(
        &mut self,
        bytes: &[u8],
        tally: &mut AuxtraceStats,
        each: &mut dyn FnMut(&Record, u64, &mut AuxtraceStats) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let offset = self.offset.wrapping_add(at as u64);
            let packet = match packet::read(&all[at..], offset) {
                Ok((packet, len)) => {
                    at += len;
                    packet
                }
                Err(PacketError::Short) if all.len() - at < LONGEST => break,
                Err(_) => {
                    at += 1;
                    tally.damaged_bytes += 1;
                    self.is_damaged = true;
                    continue;
                }
            };
            match packet {
                Packet::Padding => {}
                Packet::End | Packet::Timestamp(_) => {
                    self.record.take(packet);
                    if self.is_damaged {
                        tally.damaged += 1;
                    } else {
                        each(&self.record, offset, tally)?;
                    }
                    self.begin();
                }
                packet => {
                    // each has one of these: the end of the one before is missing
                    if matches!(packet, Packet::Address(address::PC, _)) && self.record.code.is_some() {
                        tally.cut += 1;
                        self.begin();
                    }
                    self.record.take(packet);
                    self.has_packets = true;
                }
            }
        }
        all.drain(..at);
        (self.rest, self.offset) = (all, self.offset.wrapping_add(at as u64));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn decode(pieces: &[&[u8]]) -> (Vec<Record>, AuxtraceStats) {
        let (mut decoder, mut tally, mut records) =
            (Decoder::default(), AuxtraceStats::default(), Vec::new());
        for piece in pieces {
            let fed = decoder.feed(piece, &mut tally, &mut |record, _, _| {
                records.push(*record);
                Ok::<(), Infallible>(())
            });
            assert!(fed.is_ok());
        }
        decoder.stop(&mut tally);
        (records, tally)
    }

    /// A load by the kernel, then a store by a program that ends without a time.
    const TWO: [u8; 75] = [
        0xb0, 0x10, 0x00, 0x08, 0x00, 0x00, 0x80, 0xff, 0xa0, // pc, level 1, not secure
        0x65, 0x39, 0x30, 0x00, 0x00, // thread 12345
        0x49, 0x00, // load
        0x52, 0x16, 0x02, // retired, first level's access, translation's access; last level's miss
        0x98, 0x2c, 0x01, // 300 cycles
        0xb2, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0x00, // data
        0x43, 0x0e, // from memory
        0x71, 0x15, 0xcd, 0x5b, 0x07, 0x00, 0x00, 0x00, 0x00, // time 123456789
        0x00, 0x00, // padding
        0xb0, 0x00, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x80, // pc, level 0
        0x49, 0x01, // store
        0xb2, 0x08, 0x00, 0x60, 0x00, 0x00, 0x00, 0x00, 0x3a, // data with a tag
        0xb3, 0x00, 0x10, 0x00, 0x00, 0x04, 0x00, 0x00, 0x80, // physical, not secure
        0x01, 0x00,
    ];

    #[test]
    fn packets_become_records() {
        let (records, tally) = decode(&[&TWO]);
        let [load, store] = records[..] else { panic!("two records") };
        assert_eq!(
            load,
            Record {
                code: Some((0xffff_8000_0008_0010, CpuMode::Kernel)),
                data: Some(0xffff_0000_0000_0040),
                physical: None,
                operation: Some(Operation::Access { is_store: false, is_atomic: false }),
                events: 0x216,
                source: Some(0xe),
                latency: 300,
                context: Some(12345),
                timestamp: Some(123_456_789),
            }
        );
        assert_eq!(store.code, Some((0x40_1000, CpuMode::User)));
        assert_eq!((store.data, store.physical), (Some(0x60_0008), Some(0x4_0000_1000)));
        assert_eq!(store.operation, Some(Operation::Access { is_store: true, is_atomic: false }));
        assert_eq!((store.context, store.timestamp, store.source), (None, None, None));
        assert_eq!(tally, AuxtraceStats::default());
    }

    #[test]
    fn where_pieces_end_changes_nothing() {
        let (whole, _) = decode(&[&TWO]);
        for cut in 0..=TWO.len() {
            let (records, tally) = decode(&[&TWO[..cut], &TWO[cut..]]);
            assert_eq!(records, whole, "cut at {cut}");
            assert_eq!(tally, AuxtraceStats::default(), "cut at {cut}");
        }
    }

    #[test]
    fn a_record_without_an_end_is_counted() {
        let (records, tally) = decode(&[&TWO[..TWO.len() - 2]]);
        assert_eq!((records.len(), tally.cut), (1, 1));
        let (mut decoder, mut tally) = (Decoder::default(), AuxtraceStats::default());
        let mut none = |_: &Record, _: u64, _: &mut AuxtraceStats| Ok::<(), Infallible>(());
        assert!(decoder.feed(&TWO[..20], &mut tally, &mut none).is_ok());
        decoder.start(20, &mut tally);
        assert_eq!(tally.cut, 0, "it goes on there");
        decoder.start(4096, &mut tally);
        assert_eq!(tally.cut, 1);
    }

    #[test]
    fn a_record_that_begins_before_the_last_one_ended_is_told_from_it() {
        // a load without its end, and the store
        let (records, tally) = decode(&[&TWO[..33], &TWO[44..]]);
        assert_eq!(records, decode(&[&TWO[44..]]).0);
        assert_eq!((tally.cut, tally.damaged), (1, 0));
    }

    #[test]
    fn damage_costs_the_record_that_it_is_in() {
        let mut damaged = TWO;
        damaged[14] = 0xff;
        let (records, tally) = decode(&[&damaged]);
        assert_eq!(records, decode(&[&TWO[44..]]).0);
        assert_eq!((tally.damaged, tally.cut), (1, 0));
        assert!(tally.damaged_bytes > 0);
    }

    #[test]
    fn atomic_accesses_are_told_from_others() {
        let kind = |bits| Operation::of(class::MEMORY, bits);
        let access = |is_store, is_atomic| Some(Operation::Access { is_store, is_atomic });
        assert_eq!(kind(0b0000_0110), access(false, true));
        assert_eq!(kind(0b0001_0111), access(true, true), "with release");
        assert_eq!(kind(0b0000_1010), access(false, false), "exclusive");
        assert_eq!(kind(0b0000_0100), access(false, false), "of a vector register");
        assert_eq!((Operation::of(class::BRANCH, 1), Operation::of(3, 0)), (Some(Operation::Branch), None));
    }

    #[test]
    fn the_level_of_an_instruction_says_whose_it_is() {
        let at = |level: u64, is_normal: u64| code(is_normal << 63 | level << 61 | 0x00ff_8000_0000_1000);
        assert_eq!(at(1, 1), (0xffff_8000_0000_1000, CpuMode::Kernel));
        assert_eq!(at(2, 1), (0xffff_8000_0000_1000, CpuMode::Kernel));
        assert_eq!(at(3, 1).1, CpuMode::Hypervisor);
        assert_eq!(at(1, 0).1, CpuMode::Hypervisor, "the secure world");
        assert_eq!(code(0x8000_0000_0040_1000), (0x40_1000, CpuMode::User));
        // what the kernel has at low addresses while it starts
        assert_eq!(code(1 << 63 | 1 << 61 | 0x8_0000), (0x8_0000, CpuMode::Kernel));
    }
}
