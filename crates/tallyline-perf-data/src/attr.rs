//! The attributes of an event, `perf_event_attr`, in any of its sizes and either byte order.

use super::abi::{attr_flag, sample};
use super::bytes::{ByteOrder, Cursor};
use crate::Result;

/// The size of the first published `perf_event_attr`; a smaller one cannot be.
const SIZE_VER0: u32 = 64;

/// The largest size that is known here: with `config3`.
const SIZE: u32 = 136;

/// The kernel's `perf_event_attr`: the attributes with which an event was opened. Fields unknown to the kernel of
/// the recording are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// `PERF_TYPE_*`, or the number of a PMU in sysfs.
    pub kind: u32,
    /// The event's number among those of its kind.
    pub config: u64,
    /// Events between samples, or samples a second with `attr_flag::FREQ`.
    pub sample_period: u64,
    /// `abi::sample` bits.
    pub sample_type: u64,
    /// `abi::read_format` bits.
    pub read_format: u64,
    /// `abi::attr_flag` bits, as on a little-endian machine.
    pub flags: u64,
    /// Bytes (with the flag `watermark`) or events between wake-ups.
    pub wakeup_events: u32,
    /// The kind of a breakpoint.
    pub bp_type: u32,
    /// More of the event; a breakpoint's address.
    pub config1: u64,
    /// More of the event; a breakpoint's length.
    pub config2: u64,
    /// `PERF_SAMPLE_BRANCH_*` bits.
    pub branch_sample_type: u64,
    /// The user registers that are sampled, a bit for each.
    pub sample_regs_user: u64,
    /// The number of bytes of the user's stack that are sampled.
    pub sample_stack_user: u32,
    /// The clock of timestamps, with the flag `use_clockid`.
    pub clockid: i32,
    /// The registers that are sampled at the interrupt, a bit for each.
    pub sample_regs_intr: u64,
    /// Bytes of a hardware trace between wake-ups.
    pub aux_watermark: u32,
    /// The longest call chain.
    pub sample_max_stack: u16,
    /// Bytes of a hardware trace in each sample.
    pub aux_sample_size: u32,
    /// More of the event.
    pub config3: u64,
}

impl Attr {
    /// Returns `true` if the event samples at a frequency (`freq`), `false` if with a fixed period.
    pub fn is_frequency(&self) -> bool {
        self.flags & attr_flag::FREQ != 0
    }

    /// Returns the event's `precise_ip`, from 0 (sampled addresses have arbitrary skid) to 3 (they are exact).
    pub(crate) fn precise(&self) -> u8 {
        (self.flags >> attr_flag::PRECISE_SHIFT & 3) as u8
    }

    /// Returns `true` if records other than samples end with a `sample_id`, that is, task, time and CPU
    /// (`sample_id_all`).
    pub(crate) fn has_trailer(&self) -> bool {
        self.flags & attr_flag::SAMPLE_ID_ALL != 0
    }

    /// Returns the length in bytes of the `sample_id` (task, time, CPU) that ends the event's records other than
    /// samples; 0 without one.
    pub(crate) fn trailer_len(&self) -> usize {
        if self.has_trailer() { 8 * (self.sample_type & sample::TRAILER).count_ones() as usize } else { 0 }
    }

    /// Decodes a `perf_event_attr` of the size that it states itself; newer fields than are known here are skipped.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut peek = *cursor;
        peek.u32("event type")?;
        // the very first files have 0 there
        let size = match peek.u32("size of an event's attributes")? {
            0 => SIZE_VER0,
            size if size < SIZE_VER0 || size % 8 != 0 => {
                return Err(cursor.error(format!("an event's attributes of {size} bytes")));
            }
            size => size,
        };
        let offset = cursor.offset();
        let bytes = cursor.take(size.into(), "an event's attributes")?;
        let order = cursor.order();
        let mut padded = [0; SIZE as usize];
        let known = bytes.len().min(padded.len());
        padded[..known].copy_from_slice(&bytes[..known]);
        Self::fields(Cursor::new(&padded, order, offset))
    }

    fn fields(mut at: Cursor<'_>) -> Result<Self> {
        const WHAT: &str = "an event's attributes";
        let order = at.order();
        let kind = at.u32(WHAT)?;
        at.u32(WHAT)?;
        let config = at.u64(WHAT)?;
        let sample_period = at.u64(WHAT)?;
        let sample_type = at.u64(WHAT)?;
        let read_format = at.u64(WHAT)?;
        let flags = flags_from(at.u64(WHAT)?, order);
        let wakeup_events = at.u32(WHAT)?;
        let bp_type = at.u32(WHAT)?;
        let config1 = at.u64(WHAT)?;
        let config2 = at.u64(WHAT)?;
        let branch_sample_type = at.u64(WHAT)?;
        let sample_regs_user = at.u64(WHAT)?;
        let sample_stack_user = at.u32(WHAT)?;
        let clockid = at.u32(WHAT)?.cast_signed();
        let sample_regs_intr = at.u64(WHAT)?;
        let aux_watermark = at.u32(WHAT)?;
        let sample_max_stack = at.u16(WHAT)?;
        at.u16(WHAT)?;
        let aux_sample_size = at.u32(WHAT)?;
        at.u32(WHAT)?;
        at.u64(WHAT)?;
        let config3 = at.u64(WHAT)?;
        Ok(Self {
            kind,
            config,
            sample_period,
            sample_type,
            read_format,
            flags,
            wakeup_events,
            bp_type,
            config1,
            config2,
            branch_sample_type,
            sample_regs_user,
            sample_stack_user,
            clockid,
            sample_regs_intr,
            aux_watermark,
            sample_max_stack,
            aux_sample_size,
            config3,
        })
    }

    /// Returns the size in bytes of the oldest published version of `perf_event_attr` that has all nonzero fields
    /// of this one. Larger is not better: perf refuses attributes larger than those it knows.
    pub(crate) fn size(&self) -> u32 {
        let sizes = [
            (SIZE, self.config3 != 0),
            (120, self.aux_sample_size != 0),
            (112, self.aux_watermark != 0 || self.sample_max_stack != 0),
            (104, self.sample_regs_intr != 0),
            (96, self.sample_regs_user != 0 || self.sample_stack_user != 0 || self.clockid != 0),
            (80, self.branch_sample_type != 0),
            (72, self.config2 != 0),
        ];
        sizes.into_iter().find_map(|(size, is_used)| is_used.then_some(size)).unwrap_or(SIZE_VER0)
    }

    /// Encodes the attributes as a `perf_event_attr` in this machine's byte order, of [`size`](Self::size) bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_of(self.size())
    }

    /// Encodes the attributes as a `perf_event_attr` of `size` bytes, zero-padded; at least [`size`](Self::size).
    /// Tables of perf.data need entries of one size.
    pub(crate) fn to_bytes_of(&self, size: u32) -> Vec<u8> {
        debug_assert!(size >= self.size());
        let mut bytes = vec![0; SIZE as usize];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&self.kind.to_ne_bytes());
        put(&size.to_ne_bytes());
        put(&self.config.to_ne_bytes());
        put(&self.sample_period.to_ne_bytes());
        put(&self.sample_type.to_ne_bytes());
        put(&self.read_format.to_ne_bytes());
        put(&flags_to(self.flags, ByteOrder::NATIVE).to_ne_bytes());
        put(&self.wakeup_events.to_ne_bytes());
        put(&self.bp_type.to_ne_bytes());
        put(&self.config1.to_ne_bytes());
        put(&self.config2.to_ne_bytes());
        put(&self.branch_sample_type.to_ne_bytes());
        put(&self.sample_regs_user.to_ne_bytes());
        put(&self.sample_stack_user.to_ne_bytes());
        put(&self.clockid.to_ne_bytes());
        put(&self.sample_regs_intr.to_ne_bytes());
        put(&self.aux_watermark.to_ne_bytes());
        put(&self.sample_max_stack.to_ne_bytes());
        put(&[0; 2]);
        put(&self.aux_sample_size.to_ne_bytes());
        put(&[0; 12]);
        put(&self.config3.to_ne_bytes());
        bytes.truncate(size as usize);
        bytes
    }
}

/// Flags as on a little-endian machine, from a recording's: a big-endian one fills words of bit
/// fields from the most significant bit on.
fn flags_from(flags: u64, order: ByteOrder) -> u64 {
    match order {
        ByteOrder::Little => flags,
        ByteOrder::Big => swap_precise(flags.reverse_bits()),
    }
}

/// Returns the other way round.
fn flags_to(flags: u64, order: ByteOrder) -> u64 {
    match order {
        ByteOrder::Little => flags,
        ByteOrder::Big => swap_precise(flags).reverse_bits(),
    }
}

/// Exchanges the bits of `precise_ip`, the one field that has two.
fn swap_precise(flags: u64) -> u64 {
    let shift = attr_flag::PRECISE_SHIFT;
    let precise = flags >> shift & 3;
    flags & !(3 << shift) | (precise >> 1 | (precise & 1) << 1) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_field() -> Attr {
        Attr {
            kind: 1,
            config: 2,
            sample_period: 3,
            sample_type: 4,
            read_format: 5,
            flags: attr_flag::SAMPLE_ID_ALL | 2 << attr_flag::PRECISE_SHIFT | attr_flag::DISABLED,
            wakeup_events: 6,
            bp_type: 7,
            config1: 8,
            config2: 9,
            branch_sample_type: 10,
            sample_regs_user: 11,
            sample_stack_user: 12,
            clockid: -1,
            sample_regs_intr: 13,
            aux_watermark: 14,
            sample_max_stack: 15,
            aux_sample_size: 16,
            config3: 17,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let bytes = every_field().to_bytes();
        let read = Attr::read(&mut Cursor::new(&bytes, ByteOrder::NATIVE, 0)).expect("well-formed");
        assert_eq!(read, every_field());
    }

    #[test]
    fn attributes_are_no_larger_than_what_is_asked_for_needs() {
        type Set = fn(&mut Attr);
        let fields: [(Set, u32); 9] = [
            (|attr| attr.config1 = 1, 64),
            (|attr| attr.config2 = 1, 72),
            (|attr| attr.branch_sample_type = 1, 80),
            (|attr| attr.sample_regs_user = 1, 96),
            (|attr| attr.clockid = -1, 96),
            (|attr| attr.sample_regs_intr = 1, 104),
            (|attr| attr.sample_max_stack = 1, 112),
            (|attr| attr.aux_sample_size = 1, 120),
            (|attr| attr.config3 = 1, 136),
        ];
        for (set, size) in fields {
            let mut attr = Attr { kind: 1, sample_period: 1000, ..Attr::default() };
            set(&mut attr);
            let bytes = attr.to_bytes();
            assert_eq!((attr.size(), bytes.len()), (size, size as usize));
            let mut cursor = Cursor::new(&bytes, ByteOrder::NATIVE, 0);
            assert_eq!(Attr::read(&mut cursor).expect("well-formed"), attr);
        }
    }

    #[test]
    fn an_older_and_a_newer_size_are_read() {
        let mut bytes = every_field().to_bytes();
        bytes[4..8].copy_from_slice(&64_u32.to_ne_bytes());
        let mut cursor = Cursor::new(&bytes, ByteOrder::NATIVE, 0);
        let read = Attr::read(&mut cursor).expect("the first size");
        assert_eq!((read.config1, read.config2, read.branch_sample_type), (8, 0, 0));
        assert_eq!(cursor.offset(), 64);

        let mut bytes = every_field().to_bytes();
        bytes[4..8].copy_from_slice(&(SIZE + 16).to_ne_bytes());
        bytes.extend([0xff; 16]);
        let mut cursor = Cursor::new(&bytes, ByteOrder::NATIVE, 0);
        assert_eq!(Attr::read(&mut cursor).expect("a newer size"), every_field());
        assert!(cursor.is_empty());

        bytes[4..8].copy_from_slice(&12_u32.to_ne_bytes());
        assert!(Attr::read(&mut Cursor::new(&bytes, ByteOrder::NATIVE, 0)).is_err());
    }

    #[test]
    fn a_big_endian_machine_fills_bit_fields_from_the_top() {
        // disabled is the first bit, sample_id_all the 19th, precise_ip = 2 the first of its two
        let big = 1 << 63 | 1 << (63 - 18) | 1 << (63 - 15);
        let flags = flags_from(big, ByteOrder::Big);
        assert_eq!(flags, every_field().flags);
        assert_eq!(flags_to(flags, ByteOrder::Big), big);
        assert_eq!(every_field().precise(), 2);
    }
}
