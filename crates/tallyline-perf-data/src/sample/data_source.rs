//! The source of a memory access's data: `union perf_mem_data_src`.

use std::fmt::Write;

/// The data source word of a sample (`PERF_SAMPLE_DATA_SRC`): how a memory access was served, by cache level,
/// snoop, TLB and lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DataSource(pub u64);

/// The bits of [`DataSource::op`]: the kind of memory access.
pub mod op {
    #![allow(missing_docs, reason = "the names are the kernel's, PERF_MEM_OP_*")]
    pub const NA: u8 = 1;
    pub const LOAD: u8 = 2;
    pub const STORE: u8 = 4;
    pub const PREFETCH: u8 = 8;
    pub const EXEC: u8 = 16;
}

/// The bits of [`DataSource::level`]: the cache level or memory that served the access, and hit or miss.
pub mod level {
    #![allow(missing_docs, reason = "the names are the kernel's, PERF_MEM_LVL_*")]
    pub const NA: u16 = 1;
    pub const HIT: u16 = 1 << 1;
    pub const MISS: u16 = 1 << 2;
    pub const L1: u16 = 1 << 3;
    pub const LFB: u16 = 1 << 4;
    pub const L2: u16 = 1 << 5;
    pub const L3: u16 = 1 << 6;
    pub const LOCAL_RAM: u16 = 1 << 7;
    pub const REMOTE_RAM_1: u16 = 1 << 8;
    pub const REMOTE_RAM_2: u16 = 1 << 9;
    pub const REMOTE_CACHE_1: u16 = 1 << 10;
    pub const REMOTE_CACHE_2: u16 = 1 << 11;
    pub const IO: u16 = 1 << 12;
    pub const UNCACHED: u16 = 1 << 13;
}

/// The values of [`DataSource::level_number`]: the cache or memory that served the access.
pub mod level_number {
    #![allow(missing_docs, reason = "the names are the kernel's, PERF_MEM_LVLNUM_*")]
    pub const L1: u8 = 1;
    pub const L2: u8 = 2;
    pub const L3: u8 = 3;
    pub const L4: u8 = 4;
    pub const L2_MHB: u8 = 5;
    pub const MSC: u8 = 6;
    pub const L0: u8 = 7;
    pub const UNCACHED: u8 = 8;
    pub const CXL: u8 = 9;
    pub const IO: u8 = 10;
    pub const ANY_CACHE: u8 = 11;
    pub const LFB: u8 = 12;
    pub const RAM: u8 = 13;
    pub const PMEM: u8 = 14;
    pub const NA: u8 = 15;
}

/// The bits of [`DataSource::snoop`]: the result of snooping other caches, and above them those of `mem_snoopx`.
pub mod snoop {
    #![allow(missing_docs, reason = "the names are the kernel's, PERF_MEM_SNOOP_*")]
    pub const NA: u8 = 1;
    pub const NONE: u8 = 2;
    pub const HIT: u8 = 4;
    pub const MISS: u8 = 8;
    pub const HITM: u8 = 16;
    pub const FORWARD: u8 = 32;
    pub const PEER: u8 = 64;
}

/// The bits of [`DataSource::tlb`]: the TLB level that translated the address, and hit or miss.
pub mod tlb {
    #![allow(missing_docs, reason = "the names are the kernel's, PERF_MEM_TLB_*")]
    pub const NA: u8 = 1;
    pub const HIT: u8 = 2;
    pub const MISS: u8 = 4;
    pub const L1: u8 = 8;
    pub const L2: u8 = 16;
    pub const WALKER: u8 = 32;
    pub const FAULT: u8 = 64;
}

const LEVELS: [&str; 14] = [
    "N/A",
    "HIT",
    "MISS",
    "L1",
    "LFB/MAB",
    "L2",
    "L3",
    "Local RAM",
    "Remote RAM (1 hop)",
    "Remote RAM (2 hops)",
    "Remote Cache (1 hop)",
    "Remote Cache (2 hops)",
    "I/O",
    "Uncached",
];
const LEVEL_NUMBERS: [&str; 16] = [
    "",
    "L1",
    "L2",
    "L3",
    "L4",
    "L2 MHB",
    "Memory-side Cache",
    "L0",
    "Uncached",
    "CXL",
    "I/O",
    "Any cache",
    "LFB/MAB",
    "RAM",
    "PMEM",
    "N/A",
];
const HOPS: [&str; 5] = ["", "core, same node", "node, same socket", "socket, same board", "board"];
const SNOOPS: [&str; 7] = ["N/A", "None", "Hit", "Miss", "HitM", "Fwd", "Peer"];
const TLBS: [&str; 7] = ["N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"];

impl DataSource {
    fn field(self, start: u32, width: u32) -> u16 {
        (self.0 >> start & ((1 << width) - 1)) as u16
    }

    /// Returns the kind of memory access (load, store, prefetch), as a mask of the bits in [`op`].
    pub fn op(self) -> u8 {
        self.field(0, 5) as u8
    }

    /// Returns the cache level or memory that served the access, as a mask of the bits in [`level`]: the older
    /// encoding, beside [`level_number`](Self::level_number).
    pub fn level(self) -> u16 {
        self.field(5, 14)
    }

    /// Returns the result of snooping other CPUs' caches for the accessed line, as a mask of the bits in [`snoop`].
    pub fn snoop(self) -> u8 {
        (self.field(19, 5) | self.field(38, 2) << 5) as u8
    }

    /// Returns the bits that tell if the access was locked (atomic), `PERF_MEM_LOCK_*`: 1 if not known, 2 if it was,
    /// 0 if not.
    pub fn lock(self) -> u8 {
        self.field(24, 2) as u8
    }

    /// Returns the TLB level that translated the access's address, and hit or miss, as a mask of the bits in
    /// [`tlb`].
    pub fn tlb(self) -> u8 {
        self.field(26, 7) as u8
    }

    /// Returns the cache or memory that served the access, as one of the numbers in [`level_number`]; 0 where the
    /// recording has only [`level`](Self::level).
    pub fn level_number(self) -> u8 {
        self.field(33, 4) as u8
    }

    /// Returns `true` if the access was served by another NUMA node or core.
    pub fn is_remote(self) -> bool {
        self.field(37, 1) != 0
    }

    /// Returns the reason why the memory access was blocked, as a mask of `PERF_MEM_BLK_*`: 1 if not known, 2 if data
    /// could not be forwarded to it, 4 for an address conflict; 0 where the recording does not have it.
    pub fn blocked(self) -> u8 {
        self.field(40, 3) as u8
    }

    /// Returns the distance of the cache or memory that served the access: from 1, another core of the same node, to 4,
    /// another board; 0 if not known.
    pub fn hops(self) -> u8 {
        self.field(43, 3) as u8
    }

    /// Returns `true` if the access read memory.
    pub fn is_load(self) -> bool {
        self.op() & op::LOAD != 0
    }

    /// Returns `true` if the access wrote memory.
    pub fn is_store(self) -> bool {
        self.op() & op::STORE != 0
    }

    /// Returns `true` if another CPU's cache served the access from a modified line (HITM).
    pub fn is_hitm(self) -> bool {
        self.snoop() & snoop::HITM != 0
    }

    /// Returns perf's text for the kind of memory access, such as `LOAD` or `STORE`.
    pub fn op_text(self) -> &'static str {
        let op = self.op();
        match () {
            () if op & op::NA != 0 => "N/A",
            () if op & op::LOAD != 0 => "LOAD",
            () if op & op::STORE != 0 => "STORE",
            () if op & op::PREFETCH != 0 => "PFETCH",
            () if op & op::EXEC != 0 => "EXEC",
            () => "No",
        }
    }

    /// Returns perf's text for the cache level or memory that served the access, such as `L3 hit`.
    pub fn level_text(self) -> String {
        let level = self.level();
        let outcome = match level {
            hit if hit & level::HIT != 0 => "hit",
            miss if miss & level::MISS != 0 => "miss",
            _ => "",
        };
        let number = self.level_number();
        if number != 0 && number != level_number::NA {
            let mut text = String::new();
            if self.is_remote() {
                text.push_str("Remote ");
            }
            if let Some(hops) = HOPS.get(usize::from(self.hops())).filter(|hops| !hops.is_empty()) {
                text.push_str(hops);
                text.push(' ');
            }
            text.push_str(LEVEL_NUMBERS[usize::from(number)]);
            let _ = write!(text, " {outcome}");
            return text;
        }
        let names = either(level & !(level::NA | level::HIT | level::MISS), &LEVELS);
        if names.is_empty() { "N/A".to_owned() } else { format!("{names} {outcome}") }
    }

    /// Returns perf's text for the result of snooping other CPUs' caches, such as `HitM`.
    pub fn snoop_text(self) -> String {
        or_na(either(self.snoop().into(), &SNOOPS))
    }

    /// Returns perf's text for the TLB level that translated the access's address, such as `L1 or L2 hit`.
    pub fn tlb_text(self) -> String {
        let tlb = self.tlb();
        let mut text = or_na(either((tlb & !(tlb::HIT | tlb::MISS)).into(), &TLBS));
        if tlb & tlb::HIT != 0 {
            text.push_str(" hit");
        }
        if tlb & tlb::MISS != 0 {
            text.push_str(" miss");
        }
        text
    }

    /// Returns perf's text that says if the access was locked (atomic): `Yes`, `No` or `N/A`.
    pub fn lock_text(self) -> &'static str {
        match self.lock() {
            na if na & 1 != 0 => "N/A",
            locked if locked & 2 != 0 => "Yes",
            _ => "No",
        }
    }

    /// Returns perf's text for the reason why the memory access was blocked, `Data`, `Addr`, both, or `N/A`, without
    /// perf's leading space.
    pub fn blocked_text(self) -> &'static str {
        match self.blocked() {
            0 => "N/A",
            na if na & 1 != 0 => "N/A",
            6 => "Data Addr",
            2 => "Data",
            _ => "Addr",
        }
    }
}

/// Returns the names of the bits that are set.
fn either(bits: u16, names: &[&str]) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate().filter(|(index, _)| bits >> index & 1 != 0) {
        if index > 0 && !text.is_empty() {
            text.push_str(" or ");
        }
        text.push_str(name);
    }
    text
}

fn or_na(text: String) -> String {
    if text.is_empty() { "N/A".to_owned() } else { text }
}
