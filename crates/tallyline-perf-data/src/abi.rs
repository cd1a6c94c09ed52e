//! The numbers of the kernel's interface, `include/uapi/linux/perf_event.h`, under its names.

/// `PERF_SAMPLE_*`: what a sample holds.
pub mod sample {
    #![allow(missing_docs, reason = "the names are the kernel's, and described in perf_event_open(2)")]
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const AUX: u64 = 1 << 20;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;

    /// The fields that can be decoded; one beyond them shifts what follows by an unknown length.
    pub const KNOWN: u64 = (1 << 25) - 1;

    /// The fields of the trailer that other records carry with `sample_id_all`.
    pub const TRAILER: u64 = TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER;
}

/// `PERF_FORMAT_*`: what the values of a read hold.
pub mod read_format {
    #![allow(missing_docs, reason = "the names are the kernel's, and described in perf_event_open(2)")]
    pub const TOTAL_TIME_ENABLED: u64 = 1;
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub const ID: u64 = 1 << 2;
    pub const GROUP: u64 = 1 << 3;
    pub const LOST: u64 = 1 << 4;
}

/// Bits of `perf_event_attr` that follow `read_format`, as on a little-endian machine.
pub mod attr_flag {
    #![allow(missing_docs, reason = "the names are the kernel's, and described in perf_event_open(2)")]
    pub const DISABLED: u64 = 1;
    pub const INHERIT: u64 = 1 << 1;
    pub const EXCLUDE_USER: u64 = 1 << 4;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HV: u64 = 1 << 6;
    pub const MMAP: u64 = 1 << 8;
    pub const COMM: u64 = 1 << 9;
    pub const FREQ: u64 = 1 << 10;
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub const TASK: u64 = 1 << 13;
    pub const WATERMARK: u64 = 1 << 14;
    pub const MMAP_DATA: u64 = 1 << 17;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const EXCLUDE_GUEST: u64 = 1 << 20;
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub const MMAP2: u64 = 1 << 23;
    pub const COMM_EXEC: u64 = 1 << 24;
    pub const USE_CLOCKID: u64 = 1 << 25;
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
    pub const KSYMBOL: u64 = 1 << 29;
    pub const BPF_EVENT: u64 = 1 << 30;
    pub const BUILD_ID: u64 = 1 << 34;

    /// `precise_ip`, two bits: how close to the sampled instruction its address is.
    pub const PRECISE_SHIFT: u32 = 15;
}

/// `PERF_SAMPLE_BRANCH_*`: what a branch stack holds, and how it is laid out.
pub mod branch {
    #![allow(missing_docs, reason = "the names are the kernel's")]
    pub const USER: u64 = 1;
    pub const ANY: u64 = 1 << 3;
    pub const CALL_STACK: u64 = 1 << 11;
    pub const NO_FLAGS: u64 = 1 << 14;
    pub const NO_CYCLES: u64 = 1 << 15;
    pub const HW_INDEX: u64 = 1 << 17;
    pub const COUNTERS: u64 = 1 << 19;
}

/// `PERF_RECORD_MISC_*`: bits of a record's header.
pub mod misc {
    #![allow(missing_docs, reason = "the names are the kernel's")]
    pub const CPUMODE_MASK: u16 = 7;
    pub const KERNEL: u16 = 1;
    pub const USER: u16 = 2;
    pub const HYPERVISOR: u16 = 3;
    pub const GUEST_KERNEL: u16 = 4;
    pub const GUEST_USER: u16 = 5;
    pub const COMM_EXEC: u16 = 1 << 13;
    pub const MMAP_DATA: u16 = 1 << 13;
    pub const SWITCH_OUT: u16 = 1 << 13;
    pub const EXACT_IP: u16 = 1 << 14;
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// `PERF_RECORD_*`: the types of records. From 64 on they are the tool's, not the kernel's.
pub mod record {
    #![allow(missing_docs, reason = "the names are the kernel's and perf's")]
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const UNTHROTTLE: u32 = 6;
    pub const FORK: u32 = 7;
    pub const READ: u32 = 8;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const AUX: u32 = 11;
    pub const ITRACE_START: u32 = 12;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const KSYMBOL: u32 = 17;
    pub const TEXT_POKE: u32 = 20;
    pub const USER_TYPES: u32 = 64;
    pub const HEADER_ATTR: u32 = 64;
    pub const HEADER_EVENT_TYPE: u32 = 65;
    pub const HEADER_TRACING_DATA: u32 = 66;
    pub const HEADER_BUILD_ID: u32 = 67;
    pub const FINISHED_ROUND: u32 = 68;
    pub const AUXTRACE_INFO: u32 = 70;
    pub const AUXTRACE: u32 = 71;
    pub const EVENT_UPDATE: u32 = 78;
    pub const TIME_CONV: u32 = 79;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const FINISHED_INIT: u32 = 82;
    pub const COMPRESSED2: u32 = 83;
}

/// Traces of hardware: which, `PERF_AUXTRACE_*` of perf; and what became of them, `PERF_AUX_FLAG_*`.
pub mod auxtrace {
    #![allow(missing_docs, reason = "the names are perf's and the kernel's")]
    pub const ARM_SPE: u32 = 4;
    pub const TRUNCATED: u64 = 1;
    pub const PARTIAL: u64 = 4;
    pub const COLLISION: u64 = 8;
}

/// Bits that make a word of a call chain a mark instead of an address.
pub mod context {
    #![allow(missing_docs, reason = "the names are the kernel's")]
    pub const HV: u64 = -32_i64 as u64;
    pub const KERNEL: u64 = -128_i64 as u64;
    pub const USER: u64 = -512_i64 as u64;
    pub const GUEST: u64 = -2048_i64 as u64;
    pub const GUEST_KERNEL: u64 = -2176_i64 as u64;
    pub const GUEST_USER: u64 = -2560_i64 as u64;
    /// Words from here on are marks.
    pub const MAX: u64 = -4095_i64 as u64;
}
