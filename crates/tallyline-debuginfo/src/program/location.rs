//! The locations of variables: the part of DWARF's expressions that can be evaluated without running a program.

use super::Register;
use crate::dwarf::Slice;
use gimli::{Encoding, Expression, Operation, constants};

/// The storage of a local variable or of a piece of it: a register, a value computed from one, or memory at an address
/// relative to a register or the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A register that holds the value.
    Register(Register),
    /// No storage: the value is the sum of a register and a number.
    Sum(Register, i64),
    /// Memory at the sum of a register and a number.
    Memory(Register, i64),
    /// Memory at an offset from the canonical frame address (CFA).
    Frame(i64),
    /// Memory whose address is stored at an offset from the canonical frame address (CFA).
    Behind(i64),
    /// Memory whose address is stored at the sum of a register and a number.
    BehindRegister(Register, i64),
    /// Memory at a fixed address.
    Address(u64),
    /// Memory at an offset in thread-local storage.
    ThreadLocal(u64),
}

/// A piece of a local variable (byte offset and size in it) and its storage; usually the whole variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The storage of the piece: a register, memory or a computed value.
    pub holder: Holder,
    /// The offset of the piece's first byte in the variable.
    pub offset: u32,
    /// The size of the piece in bytes; `None` for the whole variable.
    pub size: Option<u32>,
}

/// The frame base, from which variables' offsets are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameBase {
    /// The canonical frame address (CFA).
    Frame,
    /// The value of a register.
    Register(Register),
    /// A frame base that is absent, or whose expression is not understood.
    Unknown,
}

/// The state between two operations of an expression.
#[derive(Clone, Copy, Debug)]
enum EvaluationStep {
    Empty,
    Register(Register),
    Sum(Register, i64),
    Frame(i64),
    Loaded(Holder),
    Number(u64),
    ThreadLocal(u64),
    Value(Register, i64),
    Lost,
}

/// The most steps of one expression.
const STEPS_LIMIT: usize = 256;

/// Returns the frame's base of a function.
pub(super) fn frame_base(expression: Expression<Slice<'_>>, encoding: Encoding) -> FrameBase {
    let mut operations = expression.operations(encoding);
    let (first, second) = (operations.next().ok().flatten(), operations.next().ok().flatten());
    if second.is_some() {
        return FrameBase::Unknown;
    }
    match first {
        Some(Operation::CallFrameCFA) => FrameBase::Frame,
        Some(Operation::Register { register })
        | Some(Operation::RegisterOffset { register, offset: 0, .. }) => {
            followed(register.0).map_or(FrameBase::Unknown, FrameBase::Register)
        }
        _ => FrameBase::Unknown,
    }
}

/// Returns the pieces of a variable that are somewhere. `address` finds an address by its index.
pub(super) fn pieces(
    expression: Expression<Slice<'_>>,
    encoding: Encoding,
    base: FrameBase,
    address: impl Fn(gimli::DebugAddrIndex<usize>) -> Option<u64>,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut operations = expression.operations(encoding);
    let (mut step, mut offset) = (EvaluationStep::Empty, 0_u32);
    for _ in 0..STEPS_LIMIT {
        let operation = match operations.next() {
            Ok(Some(operation)) => operation,
            Ok(None) => {
                if let Some(holder) = holder(step) {
                    pieces.push(Piece { holder, offset: 0, size: None });
                }
                return pieces;
            }
            Err(_) => return pieces,
        };
        if let Operation::Piece { size_in_bits, bit_offset } = operation {
            let size = u32::try_from(size_in_bits / 8).unwrap_or(u32::MAX);
            if let (Some(holder), None | Some(0)) = (holder(step), bit_offset) {
                pieces.push(Piece { holder, offset, size: Some(size) });
            }
            offset = offset.saturating_add(size);
            step = EvaluationStep::Empty;
            continue;
        }
        step = next(step, operation, base, &address);
    }
    pieces
}

fn next(
    step: EvaluationStep,
    operation: Operation<Slice<'_>>,
    base: FrameBase,
    address: &impl Fn(gimli::DebugAddrIndex<usize>) -> Option<u64>,
) -> EvaluationStep {
    match (step, operation) {
        (EvaluationStep::Empty, Operation::Register { register }) => {
            followed(register.0).map_or(EvaluationStep::Lost, EvaluationStep::Register)
        }
        (EvaluationStep::Empty, Operation::RegisterOffset { register, offset, .. }) => followed(register.0)
            .map_or(EvaluationStep::Lost, |register| EvaluationStep::Sum(register, offset)),
        (EvaluationStep::Empty, Operation::FrameOffset { offset }) => match base {
            FrameBase::Frame => EvaluationStep::Frame(offset),
            FrameBase::Register(register) => EvaluationStep::Sum(register, offset),
            FrameBase::Unknown => EvaluationStep::Lost,
        },
        (EvaluationStep::Empty, Operation::CallFrameCFA) => EvaluationStep::Frame(0),
        (EvaluationStep::Empty, Operation::Address { address }) => EvaluationStep::Number(address),
        (EvaluationStep::Empty, Operation::AddressIndex { index } | Operation::ConstantIndex { index }) => {
            address(index).map_or(EvaluationStep::Lost, EvaluationStep::Number)
        }
        (EvaluationStep::Empty, Operation::UnsignedConstant { value }) => EvaluationStep::Number(value),
        (EvaluationStep::Empty, Operation::SignedConstant { value }) => EvaluationStep::Number(value as u64),
        (EvaluationStep::Number(offset), Operation::TLS) => EvaluationStep::ThreadLocal(offset),
        (EvaluationStep::Sum(register, sum), Operation::PlusConstant { value }) => {
            EvaluationStep::Sum(register, sum.wrapping_add(value as i64))
        }
        (EvaluationStep::Frame(sum), Operation::PlusConstant { value }) => {
            EvaluationStep::Frame(sum.wrapping_add(value as i64))
        }
        (EvaluationStep::Sum(register, sum), Operation::Deref { space: false, .. }) => {
            EvaluationStep::Loaded(Holder::BehindRegister(register, sum))
        }
        (EvaluationStep::Frame(sum), Operation::Deref { space: false, .. }) => {
            EvaluationStep::Loaded(Holder::Behind(sum))
        }
        (EvaluationStep::Sum(register, sum), Operation::StackValue) => EvaluationStep::Value(register, sum),
        (step, Operation::Nop) => step,
        _ => EvaluationStep::Lost,
    }
}

fn holder(step: EvaluationStep) -> Option<Holder> {
    Some(match step {
        EvaluationStep::Register(register) => Holder::Register(register),
        EvaluationStep::Sum(register, sum) => Holder::Memory(register, sum),
        EvaluationStep::Value(register, sum) => Holder::Sum(register, sum),
        EvaluationStep::Frame(sum) => Holder::Frame(sum),
        EvaluationStep::Loaded(holder) => holder,
        EvaluationStep::Number(address) => Holder::Address(address),
        EvaluationStep::ThreadLocal(offset) => Holder::ThreadLocal(offset),
        EvaluationStep::Empty | EvaluationStep::Lost => return None,
    })
}

fn followed(register: u16) -> Option<Register> {
    u8::try_from(register).ok().filter(|number| usize::from(*number) < super::REGISTERS).map(Register)
}

/// Returns the address that a whole expression is: `DW_OP_addr` alone, which is what most globals have.
pub(super) fn only_address(bytes: Slice<'_>) -> Option<u64> {
    let bytes = bytes.slice();
    let (operation, rest) = bytes.split_first()?;
    let number: [u8; 8] = rest.try_into().ok()?;
    (constants::DwOp(*operation) == constants::DW_OP_addr).then(|| u64::from_le_bytes(number))
}
