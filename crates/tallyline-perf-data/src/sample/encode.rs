//! The other way round: a sample's bytes, in this machine's order.

use super::{Branch, Sample};
use crate::abi::{branch as branch_type, misc, read_format, sample as bit};
use crate::attr::Attr;
use crate::bytes::ByteOrder;

impl Sample<'_> {
    /// Returns the `misc` flags for the header of this sample's record: CPU mode and exactness of the address.
    pub(crate) fn header_misc(&self) -> u16 {
        self.mode.bits() | if self.exact { misc::EXACT_IP } else { 0 }
    }

    /// Appends the body of this sample's record to `out`, with the fields that an event with these attributes
    /// records. Fields that this sample lacks are written as 0 or empty.
    pub(crate) fn encode(&self, attr: &Attr, out: &mut Vec<u8>) {
        let asked = |field: u64| attr.sample_type & field != 0;
        let out = &mut Out(out);
        out.field(asked(bit::IDENTIFIER), self.id);
        out.field(asked(bit::IP), self.ip);
        if asked(bit::TID) {
            out.halves(self.pid.unwrap_or(-1).cast_unsigned(), self.tid.unwrap_or(-1).cast_unsigned());
        }
        out.field(asked(bit::TIME), self.time);
        out.field(asked(bit::ADDR), self.addr);
        out.field(asked(bit::ID), self.id);
        out.field(asked(bit::STREAM_ID), self.stream_id);
        if asked(bit::CPU) {
            out.halves(self.cpu.unwrap_or(0), 0);
        }
        out.field(asked(bit::PERIOD), self.period);
        if asked(bit::READ) {
            self.encode_read(attr.read_format, out);
        }
        if asked(bit::CALLCHAIN) {
            let chain = self.callchain.map(|chain| chain.iter().collect::<Vec<_>>()).unwrap_or_default();
            out.counted(&chain);
        }
        if asked(bit::RAW) {
            let raw = self.raw.unwrap_or_default();
            // the size counts the padding, so that the next field is aligned
            let padded = (raw.len() + 4).next_multiple_of(8) - 4;
            out.0.extend((padded as u32).to_ne_bytes());
            out.0.extend(raw);
            out.0.resize(out.0.len() + padded - raw.len(), 0);
        }
        if asked(bit::BRANCH_STACK) {
            self.encode_branches(attr.branch_sample_type, out);
        }
        if asked(bit::REGS_USER) {
            encode_registers(self.user_registers, attr.sample_regs_user, out);
        }
        if asked(bit::STACK_USER) {
            match self.user_stack {
                Some(stack) => {
                    let len = stack.bytes.len().next_multiple_of(8);
                    out.word(len as u64);
                    out.padded(stack.bytes);
                    out.word(stack.used);
                }
                None => out.word(0),
            }
        }
        self.encode_memory(attr, out);
        if asked(bit::AUX) {
            let aux = self.aux.unwrap_or_default();
            out.word(aux.len().next_multiple_of(8) as u64);
            out.padded(aux);
        }
    }

    fn encode_read(&self, format: u64, out: &mut Out<'_>) {
        let has = |bit: u64| format & bit != 0;
        let counters = self.read.map(|read| read.iter().collect::<Vec<_>>()).unwrap_or_default();
        let (enabled, running) =
            self.read.map(|read| (read.time_enabled, read.time_running)).unwrap_or_default();
        let times = |out: &mut Out<'_>| {
            out.field(has(read_format::TOTAL_TIME_ENABLED), enabled);
            out.field(has(read_format::TOTAL_TIME_RUNNING), running);
        };
        if has(read_format::GROUP) {
            out.word(counters.len() as u64);
            times(out);
            for counter in counters {
                out.word(counter.value);
                out.field(has(read_format::ID), counter.id);
                out.field(has(read_format::LOST), counter.lost);
            }
        } else {
            let counter = counters.first();
            out.word(counter.map_or(0, |counter| counter.value));
            times(out);
            out.field(has(read_format::ID), counter.and_then(|counter| counter.id));
            out.field(has(read_format::LOST), counter.and_then(|counter| counter.lost));
        }
    }

    fn encode_branches(&self, branch_type: u64, out: &mut Out<'_>) {
        let branches = self.branches.map(|stack| stack.iter().collect::<Vec<_>>()).unwrap_or_default();
        out.word(branches.len() as u64);
        if branch_type & branch_type::HW_INDEX != 0 {
            out.word(self.branches.and_then(|stack| stack.hardware_index).unwrap_or(u64::MAX));
        }
        for branch in &branches {
            out.word(branch.from);
            out.word(branch.to);
            out.word(branch_flags(branch));
        }
        if branch_type & branch_type::COUNTERS != 0 {
            for branch in &branches {
                out.word(branch.counters.unwrap_or(0));
            }
        }
    }

    fn encode_memory(&self, attr: &Attr, out: &mut Out<'_>) {
        let asked = |field: u64| attr.sample_type & field != 0;
        let weight = self.weight.unwrap_or_default();
        if asked(bit::WEIGHT_STRUCT) {
            let low = weight.weight & u64::from(u32::MAX);
            out.word(low | u64::from(weight.instruction_latency) << 32 | u64::from(weight.weight3) << 48);
        } else {
            out.field(asked(bit::WEIGHT), Some(weight.weight));
        }
        out.field(asked(bit::DATA_SRC), self.data_source.map(|source| source.0));
        out.field(asked(bit::TRANSACTION), self.transaction);
        if asked(bit::REGS_INTR) {
            encode_registers(self.interrupt_registers, attr.sample_regs_intr, out);
        }
        out.field(asked(bit::PHYS_ADDR), self.physical_address);
        out.field(asked(bit::CGROUP), self.cgroup);
        out.field(asked(bit::DATA_PAGE_SIZE), self.data_page_size);
        out.field(asked(bit::CODE_PAGE_SIZE), self.code_page_size);
    }
}

fn encode_registers(registers: Option<super::Registers<'_>>, mask: u64, out: &mut Out<'_>) {
    let Some(registers) = registers else { return out.word(0) };
    out.word(registers.abi);
    for number in (0..64).filter(|number| mask >> number & 1 != 0) {
        out.word(registers.get(number).unwrap_or(0));
    }
}

fn branch_flags(branch: &Branch) -> u64 {
    let fields = [
        (u64::from(branch.mispredicted), 1),
        (u64::from(branch.predicted), 1),
        (u64::from(branch.in_transaction), 1),
        (u64::from(branch.abort), 1),
        (u64::from(branch.cycles), 16),
        (u64::from(branch.kind), 4),
        (u64::from(branch.speculation), 2),
        (u64::from(branch.new_kind), 4),
        (u64::from(branch.privilege), 3),
    ];
    let mut start = 0;
    fields.into_iter().fold(0, |flags, (value, width)| {
        let shift = if ByteOrder::NATIVE == ByteOrder::Little { start } else { 64 - start - width };
        start += width;
        flags | (value & ((1 << width) - 1)) << shift
    })
}

/// Bytes that grow by whole words.
struct Out<'o>(&'o mut Vec<u8>);

impl Out<'_> {
    fn word(&mut self, word: u64) {
        self.0.extend(word.to_ne_bytes());
    }

    fn field(&mut self, is_asked: bool, word: Option<u64>) {
        if is_asked {
            self.word(word.unwrap_or(0));
        }
    }

    fn halves(&mut self, first: u32, second: u32) {
        self.0.extend(first.to_ne_bytes());
        self.0.extend(second.to_ne_bytes());
    }

    fn counted(&mut self, words: &[u64]) {
        self.word(words.len() as u64);
        words.iter().for_each(|word| self.word(*word));
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.resize(self.0.len() + bytes.len().next_multiple_of(8) - bytes.len(), 0);
    }
}
