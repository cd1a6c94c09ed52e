//! The source of an access's data, as `perf_mem_data_src` has it.
//!
//! A packet gives it in numbers of the CPU's own; event bits give it alike on every CPU that has them. Stores have
//! no such packet.

use super::record::{Operation, Record, event};
use crate::sample::{DataSource, level, level_number, op, snoop, tlb};

/// The numbering of data sources by a family of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataSourceEncoding {
    /// The numbering of Arm's own designs.
    Arm,
    /// The numbering of Ampere's CPUs.
    Ampere,
    /// The numbering of HiSilicon's CPUs.
    Hip,
}

const ARM: u64 = 0x41;
const HISILICON: u64 = 0x48;
const NVIDIA: u64 = 0x4e;
const AMPERE: u64 = 0xc0;

/// Designer and part of the CPUs whose manuals number places of data, and how.
const CPUS: [(u64, u64, DataSourceEncoding); 18] = [
    (ARM, 0xd0c, DataSourceEncoding::Arm),       // Neoverse N1
    (ARM, 0xd49, DataSourceEncoding::Arm),       // Neoverse N2
    (ARM, 0xd40, DataSourceEncoding::Arm),       // Neoverse V1
    (ARM, 0xd4f, DataSourceEncoding::Arm),       // Neoverse V2
    (ARM, 0xd84, DataSourceEncoding::Arm),       // Neoverse V3
    (ARM, 0xd4d, DataSourceEncoding::Arm),       // Cortex-A715
    (ARM, 0xd81, DataSourceEncoding::Arm),       // Cortex-A720
    (ARM, 0xd89, DataSourceEncoding::Arm),       // Cortex-A720AE
    (ARM, 0xd87, DataSourceEncoding::Arm),       // Cortex-A725
    (ARM, 0xd4b, DataSourceEncoding::Arm),       // Cortex-A78C
    (ARM, 0xd44, DataSourceEncoding::Arm),       // Cortex-X1
    (ARM, 0xd4c, DataSourceEncoding::Arm),       // Cortex-X1C
    (ARM, 0xd4e, DataSourceEncoding::Arm),       // Cortex-X3
    (ARM, 0xd82, DataSourceEncoding::Arm),       // Cortex-X4
    (ARM, 0xd85, DataSourceEncoding::Arm),       // Cortex-X925
    (NVIDIA, 0x010, DataSourceEncoding::Arm),    // Olympus
    (AMPERE, 0xac4, DataSourceEncoding::Ampere), // AmpereOne
    (HISILICON, 0xd06, DataSourceEncoding::Hip), // HIP12
];

/// The CPU that wrote a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cpu {
    /// `MIDR_EL1`: its designer, part and revision.
    pub(super) midr: u64,
    /// The events that it knows.
    pub(super) events: u64,
}

impl Cpu {
    fn numbers(self) -> Option<DataSourceEncoding> {
        let (designer, part) = (self.midr >> 24 & 0xff, self.midr >> 4 & 0xfff);
        CPUS.iter().find(|known| (known.0, known.1) == (designer, part)).map(|known| known.2)
    }
}

/// The parts of the word under construction; 0 is what is not known yet.
#[derive(Clone, Copy, Debug, Default)]
struct DataSourceFields {
    level: u16,
    number: u8,
    is_remote: bool,
    /// With the bit for a peer.
    snoop: u8,
}

/// Returns the source of an access's data. `None` for operations that access no memory.
pub(super) fn of(record: &Record, cpu: Option<Cpu>) -> Option<DataSource> {
    let Some(Operation::Access { is_store, is_atomic }) = record.operation else { return None };
    let mut parts = DataSourceFields::default();
    if let Some(numbers) = cpu.and_then(Cpu::numbers) {
        if is_store {
            (parts.level, parts.number, parts.snoop) = (level::NA, level_number::NA, snoop::NA);
        } else if let Some(source) = record.source {
            parts = parts_of(numbers, source);
        }
    }
    if parts.level == 0 {
        (parts.level, parts.number) = if is_store { stored(record.events) } else { loaded(record.events) };
    }
    if parts.snoop & !snoop::PEER == 0 {
        parts.snoop |= snooped(record.events, cpu);
    }
    parts.is_remote |= record.events & event::REMOTE != 0;
    let accesses =
        if is_store { op::STORE } else { op::LOAD } | if is_atomic { op::LOAD | op::STORE } else { 0 };
    Some(word(accesses, is_atomic, parts, translated(record.events)))
}

fn word(accesses: u8, is_locked: bool, parts: DataSourceFields, translation: u8) -> DataSource {
    const LOCKED: u64 = 2;
    DataSource(
        u64::from(accesses)
            | u64::from(parts.level) << 5
            | u64::from(parts.snoop & !snoop::PEER) << 19
            | if is_locked { LOCKED << 24 } else { 0 }
            | u64::from(translation) << 26
            | u64::from(parts.number) << 33
            | u64::from(parts.is_remote) << 37
            // the second bit of the field above the first snoops
            | u64::from(parts.snoop & snoop::PEER != 0) << 39,
    )
}

fn parts_of(numbers: DataSourceEncoding, source: u64) -> DataSourceFields {
    match numbers {
        DataSourceEncoding::Arm => arm(source),
        // the same places by other numbers
        DataSourceEncoding::Ampere => match source {
            0x0 => arm(0x9),
            0x3 => arm(0xb),
            0x5 => arm(0xd),
            0x7 => arm(0xe),
            0x8 => arm(0x0),
            0x9 => arm(0x8),
            _ => DataSourceFields::default(),
        },
        DataSourceEncoding::Hip => hip(source),
    }
}

fn hit(level: u16, number: u8, snoop: u8) -> DataSourceFields {
    DataSourceFields { level: level | level::HIT, number, is_remote: false, snoop }
}

fn arm(source: u64) -> DataSourceFields {
    match source {
        0x0 => hit(level::L1, level_number::L1, snoop::NONE),
        0x8 => hit(level::L2, level_number::L2, snoop::NONE),
        // another core of the cluster
        0x9 => hit(level::L2, level_number::L2, snoop::PEER),
        // this cluster's cache and another's: from cache to cache
        0xa | 0xc => hit(level::L3, level_number::L3, snoop::PEER),
        // the system's cache
        0xb => hit(level::L3, level_number::L3, snoop::HIT),
        // another socket: which of its caches is not known
        0xd => DataSourceFields {
            level: level::NA,
            number: level_number::NA,
            is_remote: true,
            snoop: snoop::PEER,
        },
        0xe => hit(level::LOCAL_RAM, level_number::RAM, snoop::NONE),
        _ => DataSourceFields::default(),
    }
}

fn hip(source: u64) -> DataSourceFields {
    // the odd ones of the first eight are lines that were modified there
    let modified = if source & 1 != 0 { snoop::HITM } else { 0 };
    let far = |parts: DataSourceFields| DataSourceFields { is_remote: true, ..parts };
    match source {
        0 | 1 => hit(level::L2, level_number::L2, snoop::PEER | modified),
        2 => hit(level::L3, level_number::L3, snoop::HIT),
        3 => hit(level::L3, level_number::L3, snoop::HITM),
        4 | 5 => hit(level::REMOTE_CACHE_1, level_number::L3, snoop::PEER | modified),
        6 | 7 => DataSourceFields {
            level: level::REMOTE_CACHE_2,
            number: level_number::ANY_CACHE,
            is_remote: true,
            snoop: snoop::PEER | modified,
        },
        8 => hit(level::LOCAL_RAM, level_number::RAM, snoop::NONE),
        9 => far(hit(level::REMOTE_RAM_1, level_number::RAM, 0)),
        13 => hit(level::IO, level_number::IO, snoop::NONE),
        16 => hit(level::L2, level_number::L2, snoop::NONE),
        17 => hit(level::L2, level_number::L2, snoop::HITM),
        18 => hit(level::L1, level_number::L1, snoop::NONE),
        _ => DataSourceFields::default(),
    }
}

/// The caches that events tell of, the closest first: its access, its miss, its names.
const CACHES: [(u64, u64, u16, u8); 3] = [
    (event::L1_ACCESS, event::L1_MISS, level::L1, level_number::L1),
    (event::L2_ACCESS, event::L2_MISS, level::L2, level_number::L2),
    (event::LAST_ACCESS, event::LAST_MISS, level::L3, level_number::L3),
];

/// Returns the data source of a load: the closest cache that hit, else the farthest that missed.
fn loaded(events: u64) -> (u16, u8) {
    let hits = |(access, miss, ..): &(u64, u64, u16, u8)| events & (access | miss) == *access;
    let (first, others) = (&CACHES[..1], &CACHES[1..]);
    if let Some((_, _, level, number)) = first.iter().find(|cache| hits(cache)) {
        return (level | level::HIT, *number);
    }
    if events & event::RECENTLY_FETCHED != 0 {
        return (level::LFB | level::HIT, level_number::LFB);
    }
    if let Some((_, _, level, number)) = others.iter().find(|cache| hits(cache)) {
        return (level | level::HIT, *number);
    }
    match CACHES.iter().rev().find(|(_, miss, ..)| events & miss != 0) {
        Some((_, _, level, number)) => (level | level::MISS, *number),
        None => (level::NA, level_number::NA),
    }
}

/// Returns the data source of a store: the farthest cache that was accessed.
fn stored(events: u64) -> (u16, u8) {
    match CACHES.iter().rev().find(|(access, miss, ..)| events & (access | miss) != 0) {
        Some((_, miss, level, number)) => {
            (level | if events & miss != 0 { level::MISS } else { level::HIT }, *number)
        }
        None => (level::NA, level_number::NA),
    }
}

/// Returns a CPU that has no event for snoops cannot say that there was none.
fn snooped(events: u64, cpu: Option<Cpu>) -> u8 {
    match events & event::SNOOPED != 0 {
        true if events & event::MODIFIED != 0 => snoop::HITM,
        true => snoop::HIT,
        false if cpu.is_some_and(|cpu| cpu.events & event::SNOOPED != 0) => snoop::NONE,
        false => snoop::NA,
    }
}

fn translated(events: u64) -> u8 {
    match events {
        _ if events & event::TLB_MISS != 0 => tlb::WALKER | tlb::MISS,
        _ if events & event::TLB_ACCESS != 0 => tlb::WALKER | tlb::HIT,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N1: Cpu = Cpu { midr: 0x413f_d0c1, events: 0 };
    const UNKNOWN: Cpu = Cpu { midr: 0x610f_0220, events: 0 };

    fn text(is_store: bool, events: u64, source: Option<u64>, cpu: Cpu) -> String {
        let operation = Some(Operation::Access { is_store, is_atomic: false });
        let record = Record { operation, events, source, ..Record::default() };
        let source = of(&record, Some(cpu)).expect("an access");
        format!("{} {} {}", source.op_text(), source.level_text(), source.snoop_text())
    }

    #[test]
    fn arms_numbers_are_those_of_its_manuals() {
        for (source, wanted) in [
            (0x0, "LOAD L1 hit None"),
            (0x8, "LOAD L2 hit None"),
            (0x9, "LOAD L2 hit N/A or Peer"),
            (0xa, "LOAD L3 hit N/A or Peer"),
            (0xb, "LOAD L3 hit Hit"),
            (0xc, "LOAD L3 hit N/A or Peer"),
            (0xe, "LOAD RAM hit None"),
            (0x77, "LOAD N/A N/A"),
        ] {
            assert_eq!(text(false, 0, Some(source), N1), wanted, "{source:#x}");
        }
        let far = Record {
            operation: Some(Operation::Access { is_store: false, is_atomic: false }),
            source: Some(0xd),
            ..Record::default()
        };
        assert!(of(&far, Some(N1)).is_some_and(DataSource::is_remote));
        // a CPU whose numbers are not known says it by events alone
        assert_eq!(text(false, event::L1_ACCESS, Some(0xe), UNKNOWN), "LOAD L1 hit N/A");
        // and no packet at all is not the number 0
        assert_eq!(text(false, event::L1_ACCESS | event::L1_MISS, None, N1), "LOAD L1 miss N/A");
    }

    #[test]
    fn other_designers_have_other_numbers() {
        let ampere = Cpu { midr: 0xc00f_ac40, events: 0 };
        assert_eq!(text(false, 0, Some(7), ampere), "LOAD RAM hit None");
        assert_eq!(text(false, 0, Some(8), ampere), "LOAD L1 hit None");
        let hip = Cpu { midr: 0x480f_d060, events: 0 };
        assert_eq!(text(false, 0, Some(1), hip), "LOAD L2 hit HitM or Peer");
        assert_eq!(text(false, 0, Some(18), hip), "LOAD L1 hit None");
    }

    #[test]
    fn events_tell_of_loads_what_is_closest_and_of_stores_what_is_farthest() {
        let (l1, l2) = (event::L1_ACCESS | event::L1_MISS, event::L2_ACCESS);
        for (events, load, store) in [
            (event::L1_ACCESS, "LOAD L1 hit N/A", "STORE L1 hit N/A"),
            (l1 | l2, "LOAD L2 hit N/A", "STORE L2 hit N/A"),
            (l1 | event::RECENTLY_FETCHED, "LOAD LFB/MAB hit N/A", "STORE L1 miss N/A"),
            (l1 | event::LAST_ACCESS | event::LAST_MISS, "LOAD L3 miss N/A", "STORE L3 miss N/A"),
            (event::L1_ACCESS | event::LAST_ACCESS, "LOAD L1 hit N/A", "STORE L3 hit N/A"),
            (event::SNOOPED | event::MODIFIED, "LOAD N/A HitM", "STORE N/A HitM"),
            (event::SNOOPED, "LOAD N/A Hit", "STORE N/A Hit"),
        ] {
            assert_eq!(text(false, events, None, UNKNOWN), load, "{events:#x}");
            assert_eq!(text(true, events, None, UNKNOWN), store, "{events:#x}");
        }
        let knows_snoops = Cpu { events: event::SNOOPED, ..UNKNOWN };
        assert_eq!(text(false, event::L1_ACCESS, None, knows_snoops), "LOAD L1 hit None");
    }

    #[test]
    fn an_atomic_access_loads_and_stores() {
        let operation = Some(Operation::Access { is_store: false, is_atomic: true });
        let source = of(&Record { operation, ..Record::default() }, None).expect("an access");
        assert!(source.is_load() && source.is_store());
        assert_eq!((source.op_text(), source.lock_text()), ("LOAD", "Yes"));
        assert_eq!(of(&Record { operation: Some(Operation::Branch), ..Record::default() }, None), None);
    }

    #[test]
    fn translations_are_told() {
        let operation = Some(Operation::Access { is_store: false, is_atomic: false });
        let told =
            |events| of(&Record { operation, events, ..Record::default() }, None).map(DataSource::tlb_text);
        assert_eq!(told(event::TLB_ACCESS).as_deref(), Some("Walker hit"));
        assert_eq!(told(event::TLB_ACCESS | event::TLB_MISS).as_deref(), Some("Walker miss"));
        assert_eq!(told(0).as_deref(), Some("N/A"));
    }
}
