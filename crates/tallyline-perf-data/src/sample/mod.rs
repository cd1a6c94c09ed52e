//! One sample: what it holds, and its decoding from the bytes of a `PERF_RECORD_SAMPLE`.
//!
//! The kernel writes the fields in an order of its own (`perf_output_sample` in
//! `kernel/events/core.c`), each only where its bit is set, so one field misread shifts all that
//! follow. Hence every bit is decoded here, and what is left over at the end is an error.

mod branch;
mod data_source;
mod encode;
mod read;
mod registers;
#[cfg(test)]
mod tests;

pub use branch::{Branch, BranchStack};
pub use data_source::{DataSource, level, level_number, op, snoop, tlb};
pub use read::{ReadValue, ReadValues};
pub use registers::{Registers, aarch64, x86_64};

use super::abi::{branch as branch_type, misc, sample as bit};
use super::attr::Attr;
use super::bytes::{Cursor, Words};
use crate::Result;

/// The privilege level at which a sample was taken: user code, kernel, hypervisor, or a guest's user code or
/// kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// A mode that the recording does not state.
    #[default]
    Unknown,
    /// Code of the kernel.
    Kernel,
    /// User code: a program.
    User,
    /// Code of the hypervisor.
    Hypervisor,
    /// Code of the kernel of a virtual machine (guest).
    GuestKernel,
    /// User code in a virtual machine (guest).
    GuestUser,
}

impl CpuMode {
    pub(crate) fn of(header_misc: u16) -> Self {
        match header_misc & misc::CPUMODE_MASK {
            misc::KERNEL => Self::Kernel,
            misc::USER => Self::User,
            misc::HYPERVISOR => Self::Hypervisor,
            misc::GUEST_KERNEL => Self::GuestKernel,
            misc::GUEST_USER => Self::GuestUser,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn bits(self) -> u16 {
        match self {
            Self::Unknown => 0,
            Self::Kernel => misc::KERNEL,
            Self::User => misc::USER,
            Self::Hypervisor => misc::HYPERVISOR,
            Self::GuestKernel => misc::GUEST_KERNEL,
            Self::GuestUser => misc::GUEST_USER,
        }
    }
}

/// The latencies that a sample carries (`PERF_SAMPLE_WEIGHT` or `PERF_SAMPLE_WEIGHT_STRUCT`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// The cost of the whole instruction's memory access in cycles (perf's `weight`): with
    /// `WEIGHT_STRUCT` the low 32 bits of what was recorded.
    pub(crate) weight: u64,
    /// Cycles from issue to retirement (`ins_lat`). 0 with the older `WEIGHT`.
    pub(crate) instruction_latency: u16,
    /// A third latency in cycles: `retire_lat` on x86, `p_stage_cyc` on PowerPC. 0 with the older `WEIGHT`.
    pub(crate) weight3: u16,
}

impl Weight {
    /// Returns the latency in cycles of the instruction's memory access (perf's `weight`): with `WEIGHT_STRUCT` the
    /// low 32 bits of the recorded word.
    #[inline]
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the number of cycles that the sampled instruction took from issue to retirement (perf's `ins_lat`); 0
    /// with the older `WEIGHT`.
    #[inline]
    pub fn instruction_latency(&self) -> u16 {
        self.instruction_latency
    }

    /// Returns the sample's third latency in cycles, `retire_lat` on x86, `p_stage_cyc` on PowerPC; 0 with the older
    /// `WEIGHT`.
    #[inline]
    pub fn weight3(&self) -> u16 {
        self.weight3
    }
}

impl Weight {
    /// Creates the latencies of a sample from perf's fields `weight`, `ins_lat` and `weight3`.
    pub fn new(weight: u64, instruction_latency: u16, weight3: u16) -> Self {
        Self { weight, instruction_latency, weight3 }
    }
}

/// The copy of the top of a thread's user stack in a sample (`PERF_SAMPLE_STACK_USER`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserStack<'a> {
    /// The copied bytes, from the stack pointer on; only the first `used` of them are valid.
    pub(crate) bytes: &'a [u8],
    /// The number of bytes that the stack really had.
    pub(crate) used: u64,
}

impl<'a> UserStack<'a> {
    /// Wraps the bytes that a sample has of a thread's user stack, of which the first `used` are valid.
    pub fn new(bytes: &'a [u8], used: u64) -> Self {
        Self { bytes, used }
    }

    /// Returns the copied bytes of the user stack, from the stack pointer upwards; only the first [`used`](Self::used)
    /// of them are valid.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of bytes that the kernel really copied from the user stack.
    #[inline]
    pub fn used(&self) -> u64 {
        self.used
    }
}

/// A decoded sample record (`PERF_RECORD_SAMPLE`). Fields that its event does not record are `None`.
///
/// It borrows from the file: decoding allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The privilege level at the sample: the kind of code that `ip` is in.
    pub mode: CpuMode,
    /// `true` if the hardware says that `ip` is the very instruction (`PERF_RECORD_MISC_EXACT_IP`).
    pub exact: bool,
    /// The instruction pointer, an address of code.
    pub ip: Option<u64>,
    /// The id of the sampled process; −1 where there is none any more.
    pub pid: Option<i32>,
    /// The id of the sampled thread.
    pub tid: Option<i32>,
    /// The time of the sample, in nanoseconds of the recording's clock.
    pub time: Option<u64>,
    /// The address of the accessed data.
    pub addr: Option<u64>,
    /// The number that the kernel gave the event (`IDENTIFIER` or `ID`).
    pub id: Option<u64>,
    /// The number of the event's part for the one CPU or thread (`STREAM_ID`).
    pub stream_id: Option<u64>,
    /// The CPU that the sample was taken on.
    pub cpu: Option<u32>,
    /// The number of events that this sample stands for.
    pub period: Option<u64>,
    /// The counts that were read at the sample.
    pub read: Option<ReadValues<'a>>,
    /// The call chain: return addresses from the inside, with marks (`abi::context`) where the mode changes.
    pub callchain: Option<Words<'a>>,
    /// The raw data of a tracepoint or of the hardware (AMD IBS).
    pub raw: Option<&'a [u8]>,
    /// The last branches taken before the sample.
    pub branches: Option<BranchStack<'a>>,
    /// The registers of user code, in a sample of the kernel those with which it was entered.
    pub user_registers: Option<Registers<'a>>,
    /// The registers at the interrupt that took the sample.
    pub interrupt_registers: Option<Registers<'a>>,
    /// The copy of the top of the user stack.
    pub user_stack: Option<UserStack<'a>>,
    /// The latencies of the sampled instruction, in cycles.
    pub weight: Option<Weight>,
    /// The source of the accessed data: cache level, memory, snoop and so on.
    pub data_source: Option<DataSource>,
    /// The reason why a hardware transaction ended, as `PERF_TXN_*` bits.
    pub transaction: Option<u64>,
    /// The data's physical address.
    pub physical_address: Option<u64>,
    /// The number of the sampled thread's control group.
    pub cgroup: Option<u64>,
    /// The size of the data's page in bytes.
    pub data_page_size: Option<u64>,
    /// The size of the code's page in bytes.
    pub code_page_size: Option<u64>,
    /// A piece of a hardware trace.
    pub aux: Option<&'a [u8]>,
}

/// The fields in front, each of which is a word.
const TASK_AND_TIME: u64 = bit::IDENTIFIER
    | bit::IP
    | bit::TID
    | bit::TIME
    | bit::ADDR
    | bit::ID
    | bit::STREAM_ID
    | bit::CPU
    | bit::PERIOD;

impl<'a> Sample<'a> {
    /// Decodes the body of a sample record (without its header) that an event with these attributes recorded.
    pub(crate) fn decode(header_misc: u16, at: Cursor<'a>, attr: &Attr) -> Result<Self> {
        let mut sample = Self::default();
        sample.decode_over(header_misc, at, attr)?;
        Ok(sample)
    }

    /// Decodes the body of a sample record into this sample, whose fields are replaced: as
    /// [`decode`](Self::decode), without moving some hundred bytes for each sample.
    pub(crate) fn decode_over(&mut self, header_misc: u16, mut at: Cursor<'a>, attr: &Attr) -> Result<()> {
        let has_field = |field: u64| attr.sample_type & field != 0;
        *self = Self {
            mode: CpuMode::of(header_misc),
            exact: header_misc & misc::EXACT_IP != 0,
            ..Self::default()
        };
        let (sample, at) = (self, &mut at);
        if attr.sample_type & !bit::KNOWN != 0 {
            return Err(at.error(format!(
                "a sample with fields {:#x} that are newer than this program",
                attr.sample_type & !bit::KNOWN
            )));
        }
        match at.words_if_there((attr.sample_type & TASK_AND_TIME).count_ones()) {
            Some(words) => sample.set_task_and_time(words, &has_field),
            None => sample.decode_task_and_time(at, &has_field)?,
        }
        if has_field(bit::READ) {
            sample.read = Some(ReadValues::decode(at, attr.read_format)?);
        }
        if has_field(bit::CALLCHAIN) {
            let count = at.u64("length of a call chain")?;
            sample.callchain = Some(at.words(count, "call chain")?);
        }
        if has_field(bit::RAW) {
            let size = at.u32("size of raw data")?;
            sample.raw = Some(at.take(size.into(), "raw data")?);
        }
        if has_field(bit::BRANCH_STACK) {
            let has = |flag: u64| attr.branch_sample_type & flag != 0;
            let (index, counters) = (has(branch_type::HW_INDEX), has(branch_type::COUNTERS));
            sample.branches = Some(BranchStack::decode(at, index, counters)?);
        }
        if has_field(bit::REGS_USER) {
            sample.user_registers = Registers::decode(at, attr.sample_regs_user)?;
        }
        if has_field(bit::STACK_USER) {
            sample.user_stack = user_stack(at)?;
        }
        sample.decode_memory(at, &has_field, attr)?;
        if has_field(bit::AUX) {
            let size = at.u64("size of a trace")?;
            sample.aux = Some(at.take(size, "trace")?);
        }
        // the kernel pads within the fields, never behind them
        if !at.is_empty() {
            return Err(at.error(format!("{} bytes after the last field of a sample", at.rest().len())));
        }
        Ok(())
    }

    /// Takes the fields in front from the words that they are.
    #[inline]
    fn set_task_and_time(&mut self, words: Words<'_>, has_field: &impl Fn(u64) -> bool) {
        let (order, mut words) = (words.order(), words.iter());
        let mut word = |field: u64| if has_field(field) { words.next() } else { None };
        let identifier = word(bit::IDENTIFIER);
        self.ip = word(bit::IP);
        if let Some([pid, tid]) = word(bit::TID).map(|word| order.halves(word)) {
            (self.pid, self.tid) = (Some(pid.cast_signed()), Some(tid.cast_signed()));
        }
        self.time = word(bit::TIME);
        self.addr = word(bit::ADDR);
        self.id = word(bit::ID).or(identifier);
        self.stream_id = word(bit::STREAM_ID);
        self.cpu = word(bit::CPU).map(|word| order.halves(word)[0]);
        self.period = word(bit::PERIOD);
    }

    /// Decodes the fields in front one by one, of a sample that ends among them: the error names the one.
    #[cold]
    fn decode_task_and_time(&mut self, at: &mut Cursor<'a>, has_field: &impl Fn(u64) -> bool) -> Result<()> {
        if has_field(bit::IDENTIFIER) {
            self.id = Some(at.u64("identifier")?);
        }
        if has_field(bit::IP) {
            self.ip = Some(at.u64("ip")?);
        }
        if has_field(bit::TID) {
            self.pid = Some(at.u32("pid")?.cast_signed());
            self.tid = Some(at.u32("tid")?.cast_signed());
        }
        if has_field(bit::TIME) {
            self.time = Some(at.u64("time")?);
        }
        if has_field(bit::ADDR) {
            self.addr = Some(at.u64("address")?);
        }
        if has_field(bit::ID) {
            self.id = Some(at.u64("id")?);
        }
        if has_field(bit::STREAM_ID) {
            self.stream_id = Some(at.u64("stream id")?);
        }
        if has_field(bit::CPU) {
            self.cpu = Some(at.u32("cpu")?);
            at.u32("cpu")?;
        }
        if has_field(bit::PERIOD) {
            self.period = Some(at.u64("period")?);
        }
        Ok(())
    }

    #[inline]
    fn decode_memory(
        &mut self,
        at: &mut Cursor<'a>,
        has_field: &impl Fn(u64) -> bool,
        attr: &Attr,
    ) -> Result<()> {
        if has_field(bit::WEIGHT_STRUCT) {
            let word = at.u64("weights")?;
            self.weight = Some(Weight {
                weight: word & u64::from(u32::MAX),
                instruction_latency: (word >> 32) as u16,
                weight3: (word >> 48) as u16,
            });
        } else if has_field(bit::WEIGHT) {
            self.weight = Some(Weight { weight: at.u64("weight")?, ..Weight::default() });
        }
        if has_field(bit::DATA_SRC) {
            self.data_source = Some(DataSource(at.u64("data source")?));
        }
        if has_field(bit::TRANSACTION) {
            self.transaction = Some(at.u64("transaction")?);
        }
        if has_field(bit::REGS_INTR) {
            self.interrupt_registers = Registers::decode(at, attr.sample_regs_intr)?;
        }
        if has_field(bit::PHYS_ADDR) {
            self.physical_address = Some(at.u64("physical address")?);
        }
        if has_field(bit::CGROUP) {
            self.cgroup = Some(at.u64("control group")?);
        }
        if has_field(bit::DATA_PAGE_SIZE) {
            self.data_page_size = Some(at.u64("size of the data's page")?);
        }
        if has_field(bit::CODE_PAGE_SIZE) {
            self.code_page_size = Some(at.u64("size of the code's page")?);
        }
        Ok(())
    }

    /// Returns the return address of a sampled function, valid only if the sample is at the function's first
    /// instruction: the word on top of the user stack on x86-64, the link register on AArch64. `None` for 32-bit
    /// programs, and if the sample lacks registers or stack.
    pub fn return_address(&self, arch: &str) -> Option<u64> {
        /// A program of 32 bits, by its registers.
        const ABI_32: u64 = 1;
        let registers = self.user_registers.filter(|_| self.mode == CpuMode::User);
        if self.mode != CpuMode::User || registers.is_some_and(|registers| registers.abi == ABI_32) {
            return None;
        }
        match arch {
            "x86_64" => {
                let stack = self.user_stack.filter(|stack| stack.used >= 8)?;
                stack.bytes.first_chunk().copied().map(u64::from_le_bytes)
            }
            "aarch64" => registers?.get(aarch64::LINK),
            _ => None,
        }
    }

    /// Returns an iterator over the code addresses of the sample's call chain, innermost first, each with its CPU mode.
    /// Context markers are left out.
    pub fn callers(&self) -> impl Iterator<Item = (CpuMode, u64)> + use<'a> {
        let mut mode = self.mode;
        self.callchain.into_iter().flat_map(|words| words.iter()).filter_map(move |word| {
            use super::abi::context;
            if word < context::MAX {
                return Some((mode, word));
            }
            mode = match word {
                context::KERNEL => CpuMode::Kernel,
                context::USER => CpuMode::User,
                context::HV => CpuMode::Hypervisor,
                context::GUEST | context::GUEST_KERNEL => CpuMode::GuestKernel,
                context::GUEST_USER => CpuMode::GuestUser,
                _ => CpuMode::Unknown,
            };
            None
        })
    }
}

fn user_stack<'a>(at: &mut Cursor<'a>) -> Result<Option<UserStack<'a>>> {
    let size = at.u64("size of a stack")?;
    if size == 0 {
        return Ok(None);
    }
    let bytes = at.take(size, "stack")?;
    let used = at.u64("used size of a stack")?;
    if used > size {
        return Err(at.error(format!("a stack of {size} bytes, {used} of them used")));
    }
    Ok(Some(UserStack { bytes, used }))
}
