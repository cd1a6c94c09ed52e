//! The elements of vector registers, as far as gathers and scatters need them for their addresses.

use super::bits::native;
use super::body::Body;
use super::image::{Image, Machine};
use super::instruction::Register;
use super::x86_operands::register;
use iced_x86::{EncodingKind, Mnemonic, OpKind};

/// The elements (lanes) of a vector register whose values the analysis of a gather or scatter instruction asks for: the
/// register, and the width of an element and of the register in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LaneQuery {
    /// The vector register that the elements are in.
    pub(crate) register: Register,
    /// The width of an element in bytes.
    pub(crate) width: u8,
    /// The number of bytes of the register that are asked for, from the lowest on.
    pub(crate) bytes: u8,
}

/// The values that an instruction writes to the elements (lanes) of a vector register: constants, elements of
/// another register, sums or products of those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// Of one at least nothing is known.
    Unknown,
    /// Numbers, the lowest element first.
    Constants(Vec<i64>),
    /// The elements of a vector register, in their places.
    Vector(LaneQuery),
    /// The elements of a vector register, in any places.
    Permuted(LaneQuery),
    /// The lowest element of a vector register, in each place.
    Lowest(LaneQuery),
    /// A general register, in each place.
    General(Register),
    /// Elements of one of two; the lowest is the first's.
    Either(Box<Lanes>, Box<Lanes>),
    /// Sums of the elements of two registers; differences where the flag is set.
    Sum(LaneQuery, LaneQuery, bool),
    /// Products of the elements of two registers.
    Product(LaneQuery, LaneQuery),
    /// Elements times a number.
    Multiple(LaneQuery, i64),
}

impl Lanes {
    fn either(one: Lanes, other: Lanes) -> Lanes {
        Lanes::Either(Box::new(one), Box::new(other))
    }

    fn zero() -> Lanes {
        Lanes::Constants(vec![0])
    }
}

/// Returns the vector register with the indices of the gather or scatter instruction at a position. `None` if it is
/// no such instruction or its register cannot be tracked.
pub(crate) fn vector_index(image: &Image, body: &Body, position: usize) -> Option<LaneQuery> {
    if image.machine() != Machine::X86_64 {
        return None;
    }
    let native = native(image, body, position).filter(iced_x86::Instruction::is_vsib)?;
    let index = native.memory_index();
    let width = if native.is_vsib64() { 8 } else { 4 };
    let bytes = u8::try_from(index.size()).ok()?;
    // an index of four bytes has as many elements as the data, of which each may have eight
    Some(LaneQuery { register: register(index)?, width, bytes })
}

/// Returns the values that the instruction at a position writes to the elements (lanes) of a vector register, in
/// terms of constants and other registers.
pub(crate) fn lanes_written(image: &Image, body: &Body, position: usize, query: LaneQuery) -> Lanes {
    let Some(native) = native(image, body, position).filter(|_| image.machine() == Machine::X86_64) else {
        return Lanes::Unknown;
    };
    let is_own = native.op_count() >= 2
        && native.op0_kind() == OpKind::Register
        && register(native.op0_register()) == Some(query.register)
        && !native.has_op_mask();
    let is_whole = native.encoding() != EncodingKind::Legacy || query.bytes <= 16;
    if !is_own || !is_whole {
        return Lanes::Unknown;
    }
    let written = native.op0_register().size();
    let bytes = query.bytes.min(u8::try_from(written).unwrap_or(u8::MAX));
    let lanes = Writer { image, native: &native, query: LaneQuery { bytes, ..query } }.lanes();
    match bytes < query.bytes {
        // what is above is cleared
        true => Lanes::either(lanes, Lanes::zero()),
        false => lanes,
    }
}

/// A reader of the elements that one instruction writes to a vector register.
struct Writer<'w> {
    image: &'w Image,
    native: &'w iced_x86::Instruction,
    query: LaneQuery,
}

impl Writer<'_> {
    fn lanes(&self) -> Lanes {
        let native = self.native;
        let width = self.query.width;
        // of two operands the first is a source, too
        let (one, other) = if native.op_count() > 2 { (1, 2) } else { (0, 1) };
        let is_register = |operand: u32| native.op_kind(operand) == OpKind::Register;
        match native.mnemonic() {
            Mnemonic::Pxor
            | Mnemonic::Vpxor
            | Mnemonic::Vpxord
            | Mnemonic::Vpxorq
            | Mnemonic::Xorps
            | Mnemonic::Vxorps
            | Mnemonic::Xorpd
            | Mnemonic::Vxorpd
                if is_register(other) && native.op_register(one) == native.op_register(other) =>
            {
                Lanes::zero()
            }
            Mnemonic::Movdqa
            | Mnemonic::Vmovdqa
            | Mnemonic::Vmovdqa32
            | Mnemonic::Vmovdqa64
            | Mnemonic::Movdqu
            | Mnemonic::Vmovdqu
            | Mnemonic::Vmovdqu32
            | Mnemonic::Vmovdqu64
            | Mnemonic::Movaps
            | Mnemonic::Vmovaps
            | Mnemonic::Movups
            | Mnemonic::Vmovups
            | Mnemonic::Movapd
            | Mnemonic::Vmovapd
            | Mnemonic::Movupd
            | Mnemonic::Vmovupd
                if native.op_count() == 2 =>
            {
                self.vector(1, Lanes::Vector)
            }
            Mnemonic::Movq | Mnemonic::Vmovq if width == 8 => Lanes::either(self.scalar(1), Lanes::zero()),
            Mnemonic::Movd | Mnemonic::Vmovd if width == 4 => Lanes::either(self.scalar(1), Lanes::zero()),
            Mnemonic::Pinsrq | Mnemonic::Vpinsrq if width == 8 => self.inserted(one, other),
            Mnemonic::Pinsrd | Mnemonic::Vpinsrd if width == 4 => self.inserted(one, other),
            Mnemonic::Vpbroadcastq | Mnemonic::Vbroadcastsd | Mnemonic::Movddup | Mnemonic::Vmovddup
                if width == 8 && (written_is_small(native) || !is_pairwise(native)) =>
            {
                self.scalar(1)
            }
            Mnemonic::Vpbroadcastd | Mnemonic::Vbroadcastss if width == 4 => self.scalar(1),
            Mnemonic::Punpcklqdq | Mnemonic::Vpunpcklqdq if width == 8 && self.query.bytes <= 16 => {
                Lanes::either(self.vector(one, Lanes::Lowest), self.vector(other, Lanes::Lowest))
            }
            Mnemonic::Vinserti128 | Mnemonic::Vinsertf128 if is_register(2) && self.query.bytes == 32 => {
                let half = LaneQuery { bytes: 16, ..self.query };
                let (below, above) = (self.of(1, half, Lanes::Vector), self.of(2, half, Lanes::Vector));
                match native.immediate8() & 1 {
                    1 => Lanes::either(below, above),
                    _ => Lanes::either(above, self.vector(1, Lanes::Permuted)),
                }
            }
            Mnemonic::Vpermq | Mnemonic::Vpermpd if width == 8 => self.vector(1, Lanes::Permuted),
            Mnemonic::Pshufd | Mnemonic::Vpshufd if width == 4 => self.vector(1, Lanes::Permuted),
            Mnemonic::Paddq | Mnemonic::Vpaddq if width == 8 => self.sum(one, other, false),
            Mnemonic::Paddd | Mnemonic::Vpaddd if width == 4 => self.sum(one, other, false),
            Mnemonic::Psubq | Mnemonic::Vpsubq if width == 8 => self.sum(one, other, true),
            Mnemonic::Psubd | Mnemonic::Vpsubd if width == 4 => self.sum(one, other, true),
            Mnemonic::Psllq | Mnemonic::Vpsllq if width == 8 => self.shifted(one, other),
            Mnemonic::Pslld | Mnemonic::Vpslld if width == 4 => self.shifted(one, other),
            Mnemonic::Pmulld | Mnemonic::Vpmulld if width == 4 => self.product(one, other),
            Mnemonic::Pmuludq | Mnemonic::Vpmuludq | Mnemonic::Vpmullq if width == 8 => {
                self.product(one, other)
            }
            Mnemonic::Pmovsxdq | Mnemonic::Vpmovsxdq | Mnemonic::Pmovzxdq | Mnemonic::Vpmovzxdq
                if width == 8 && is_register(1) =>
            {
                let narrow = LaneQuery { width: 4, bytes: self.query.bytes / 2, ..self.query };
                self.of(1, narrow, Lanes::Vector)
            }
            _ => Lanes::Unknown,
        }
    }

    /// Returns an operand: a vector register, or constants in memory.
    fn vector(&self, operand: u32, make: impl FnOnce(LaneQuery) -> Lanes) -> Lanes {
        match self.native.op_kind(operand) {
            OpKind::Memory => self.constants(self.query.bytes / self.query.width.max(1)),
            _ => self.of(operand, self.query, make),
        }
    }

    fn of(&self, operand: u32, query: LaneQuery, make: impl FnOnce(LaneQuery) -> Lanes) -> Lanes {
        self.source(operand, query).map_or(Lanes::Unknown, make)
    }

    fn source(&self, operand: u32, query: LaneQuery) -> Option<LaneQuery> {
        let native =
            (self.native.op_kind(operand) == OpKind::Register).then(|| self.native.op_register(operand));
        let native = native.filter(|native| native.is_vector_register())?;
        Some(LaneQuery { register: register(native)?, ..query })
    }

    /// Returns the one element of an operand: a general register, the lowest element of a vector register, or
    /// a constant in memory.
    fn scalar(&self, operand: u32) -> Lanes {
        match self.native.op_kind(operand) {
            OpKind::Memory => self.constants(1),
            OpKind::Register if self.native.op_register(operand).is_gpr() => {
                let native = self.native.op_register(operand);
                let general = register(native).filter(|_| native.size() == usize::from(self.query.width));
                general.map_or(Lanes::Unknown, Lanes::General)
            }
            _ => self.of(operand, LaneQuery { bytes: 16, ..self.query }, Lanes::Lowest),
        }
    }

    fn inserted(&self, rest: u32, element: u32) -> Lanes {
        // of the old form the register is the first operand, the element the second
        let (rest, element) = if self.native.op_count() > 3 { (rest, element) } else { (0, 1) };
        let (rest, element) = (self.vector(rest, Lanes::Vector), self.scalar(element));
        match self.native.immediate8() {
            0 => Lanes::either(element, rest),
            _ => Lanes::either(rest, element),
        }
    }

    fn sum(&self, one: u32, other: u32, subtract: bool) -> Lanes {
        let sources = self.source(one, self.query).zip(self.source(other, self.query));
        sources.map_or(Lanes::Unknown, |(one, other)| Lanes::Sum(one, other, subtract))
    }

    fn product(&self, one: u32, other: u32) -> Lanes {
        let sources = self.source(one, self.query).zip(self.source(other, self.query));
        sources.map_or(Lanes::Unknown, |(one, other)| Lanes::Product(one, other))
    }

    fn shifted(&self, one: u32, other: u32) -> Lanes {
        let by = self.native.op_kind(other) == OpKind::Immediate8 && self.native.immediate8() < 48;
        match self.source(one, self.query).filter(|_| by) {
            Some(source) => Lanes::Multiple(source, 1 << self.native.immediate8()),
            None => Lanes::Unknown,
        }
    }

    /// Constants at a fixed address that nobody writes.
    fn constants(&self, count: u8) -> Lanes {
        let native = self.native;
        let address = native.is_ip_rel_memory_operand().then(|| native.memory_displacement64());
        let width = usize::from(self.query.width);
        let read = address.filter(|address| self.image.is_constant(*address)).and_then(|address| {
            let (_, bytes) = self.image.bytes(address, usize::from(count) * width)?;
            let numbers = bytes.chunks_exact(width).map(|bytes| match bytes.first_chunk::<8>() {
                Some(bytes) => i64::from_le_bytes(*bytes),
                None => bytes.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes).into()),
            });
            Some(numbers.collect::<Vec<i64>>()).filter(|numbers| numbers.len() == usize::from(count))
        });
        read.map_or(Lanes::Unknown, Lanes::Constants)
    }
}

/// Returns true for a duplication of elements pair by pair rather than over the whole register.
fn is_pairwise(native: &iced_x86::Instruction) -> bool {
    matches!(native.mnemonic(), Mnemonic::Movddup | Mnemonic::Vmovddup)
}

/// Returns true if the destination is at most 16 bytes wide.
fn written_is_small(native: &iced_x86::Instruction) -> bool {
    native.op0_register().size() <= 16
}
