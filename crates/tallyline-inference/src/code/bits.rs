//! Bits of a memory operand that an instruction uses: tells bitfields apart that share bytes.
//!
//! Compilers test a bitfield with a mask, extract it by shifts and masks, and update it by assembling a word anew. A
//! loaded value is followed forward to its uses, and a stored one back to its load.

use super::body::Body;
use super::image::{Image, Machine};
use super::instruction::{Access, Effect, Flow, Instruction, Memory};
use iced_x86::{
    Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register as Native,
};

/// The maximum number of instructions that a value is followed through.
const STEPS_LIMIT: usize = 96;

/// The maximum distance in instructions from a store back to the load that it belongs to.
const BACK_LIMIT: usize = 48;

/// A register that holds bits of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Carrier {
    register: Native,
    /// The bits of the operand that the register holds unchanged.
    mask: u64,
    /// The distance in bits that they are shifted down from their position in the operand.
    shift: i32,
    /// `true` once the value has been stored back; then it is no longer a return value of the function.
    is_back: bool,
}

/// A point to continue from: an instruction, and the carriers before it.
type TracePoint = (usize, Vec<Carrier>);

/// Returns a mask of the bits of its memory operand that the instruction at a position really uses: those that a
/// later result depends on, or that a store changes. `None` if that cannot be told, and on AArch64.
pub(crate) fn bits_of(image: &Image, body: &Body, position: usize) -> Option<u64> {
    // of other machines all bitfields that share the bytes are candidates
    if image.machine() != Machine::X86_64 {
        return None;
    }
    let memory = body.instructions().get(position)?.memory?;
    let all = mask_of(memory.size.into());
    if memory.size == 0 || memory.size > 8 {
        return None;
    }
    let native = native(image, body, position)?;
    if native.op0_kind() == OpKind::Memory && is_immediate(&native, 1) {
        let number = native.immediate(1);
        let bit = || 1_u64.checked_shl(u32::try_from(number).ok()?);
        let bits = match native.mnemonic() {
            Mnemonic::Test | Mnemonic::Or | Mnemonic::Xor => number,
            Mnemonic::And => !number,
            Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => bit()?,
            _ => return None,
        };
        return Some(bits & all).filter(|bits| *bits != 0);
    }
    match (memory.access, native.mnemonic()) {
        (Access::Read, Mnemonic::Test) => {
            let bits = constant(body, position, native.op1_register())? & all;
            Some(bits).filter(|bits| *bits != 0)
        }
        (Access::Read, _) => {
            let carrier = loaded(body, position, &native, &memory)?;
            let mut follow = ValueTrace::new(image, body, memory);
            if native.mnemonic() == Mnemonic::And && follow.sets_flags_that_count(position) {
                follow.used = carrier.mask;
            }
            let used = follow.run(position + 1, carrier)?.0;
            Some(used).filter(|used| *used != 0)
        }
        (Access::Write, Mnemonic::Mov) => stored(image, body, position, &memory),
        _ => None,
    }
}

/// Returns the register that an instruction loads an operand to, with its bits; some are cleared where a mask
/// is in the register before.
fn loaded(body: &Body, position: usize, native: &iced_x86::Instruction, memory: &Memory) -> Option<Carrier> {
    let all = mask_of(memory.size.into());
    if native.op0_kind() != OpKind::Register || is_high(native.op0_register()) {
        return None;
    }
    let mask = match native.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => all,
        Mnemonic::And => constant(body, position, native.op0_register())? & all,
        _ => return None,
    };
    let register = native.op0_register().full_register();
    Some(Carrier { register, mask, shift: 0, is_back: false })
}

/// Returns the number that a register has before an instruction, if the block says it.
fn constant(body: &Body, position: usize, register: Native) -> Option<u64> {
    let register = super::x86_operands::register(register)?;
    let block = body.block_of(position)?;
    let start = body.blocks()[block].instructions.start as usize;
    for before in (start.max(position.saturating_sub(BACK_LIMIT))..position).rev() {
        let instruction = &body.instructions()[before];
        if matches!(instruction.flow, Flow::Call(_)) {
            return None;
        }
        let effects = body.effects(instruction);
        if effects.iter().flat_map(Effect::written).any(|written| written == register) {
            return match effects {
                [Effect::Constant { value, .. }, ..] => Some(*value as u64),
                _ => None,
            };
        }
    }
    None
}

/// Returns the bits that a store changes of what was loaded from there before.
fn stored(image: &Image, body: &Body, position: usize, memory: &Memory) -> Option<u64> {
    let block = body.block_of(position)?;
    let start = body.blocks()[block].instructions.start as usize;
    for before in (start.max(position.saturating_sub(BACK_LIMIT))..position).rev() {
        let Some(other) = body.operands(before).find(|other| is_at_same_place(memory, other)).copied() else {
            continue;
        };
        if other.access != Access::Read {
            return None;
        }
        let native = native(image, body, before)?;
        let Some(carrier) = loaded(body, before, &native, &other) else { continue };
        let (_, stores) = ValueTrace::new(image, body, other).run(before + 1, carrier)?;
        let found = stores.iter().find(|(store, _)| *store == position).map(|(_, bits)| *bits);
        return found.filter(|bits| *bits != 0);
    }
    None
}

/// A loaded value that is followed.
struct ValueTrace<'f> {
    image: &'f Image,
    body: &'f Body,
    memory: Memory,
    factory: InstructionInfoFactory,
    used: u64,
    /// Stores of the value back to where it was loaded, and the bits that they change.
    stores: Vec<(usize, u64)>,
}

impl<'f> ValueTrace<'f> {
    fn new(image: &'f Image, body: &'f Body, memory: Memory) -> ValueTrace<'f> {
        ValueTrace {
            image,
            body,
            memory,
            factory: InstructionInfoFactory::new(),
            used: 0,
            stores: Vec::new(),
        }
    }

    /// Returns the bits that are used of a value that is in a register before an instruction, and the stores
    /// back.
    fn run(mut self, position: usize, carrier: Carrier) -> Option<(u64, Vec<(usize, u64)>)> {
        let mut open: Vec<TracePoint> = vec![(position, vec![carrier])];
        let mut seen: Vec<TracePoint> = Vec::new();
        let mut steps = 0;
        while let Some(at) = open.pop() {
            if seen.contains(&at) {
                continue;
            }
            seen.push(at.clone());
            let (mut position, mut carriers) = at;
            let block = self.body.block_of(position)?;
            let end = self.body.blocks()[block].instructions.end as usize;
            while position < end && !carriers.is_empty() {
                steps += 1;
                if steps > STEPS_LIMIT {
                    carriers.iter().for_each(|carrier| self.used |= carrier.mask);
                    return Some((self.used, self.stores));
                }
                self.step(position, &mut carriers)?;
                position += 1;
            }
            if carriers.is_empty() {
                continue;
            }
            for successor in &self.body.blocks()[block].successors {
                let start = self.body.blocks()[*successor as usize].instructions.start as usize;
                open.push((start, carriers.clone()));
            }
        }
        Some((self.used, self.stores))
    }

    fn step(&mut self, position: usize, carriers: &mut Vec<Carrier>) -> Option<()> {
        let instruction = &self.body.instructions()[position];
        let native = native(self.image, self.body, position)?;
        match instruction.flow {
            Flow::Return | Flow::Stop => {
                // a result comes back in these
                self.use_of(carriers, |register| matches!(register, Native::RAX | Native::RDX));
                carriers.clear();
                return Some(());
            }
            Flow::Call(_) | Flow::Jump(None) => {
                self.use_of(carriers, |register| !is_kept(register));
                carriers.retain(|carrier| is_kept(carrier.register));
                return Some(());
            }
            _ => {}
        }
        let own = |operand: u32| {
            (native.op_count() > operand && native.op_kind(operand) == OpKind::Register)
                .then(|| native.op_register(operand))
                .filter(|register| !is_high(*register))
        };
        let (to, from) = (own(0), own(1));
        let number = is_immediate(&native, 1).then(|| native.immediate(1));
        let find = |carriers: &[Carrier], register: Option<Native>| {
            let register = register?.full_register();
            carriers.iter().position(|carrier| carrier.register == register)
        };
        let (one, other) = (find(carriers, to), find(carriers, from));
        let width = to.map_or(64, |to| 8 * to.size() as u32);
        match (native.mnemonic(), one, other) {
            (Mnemonic::Test, Some(one), _) => {
                let carrier = carriers[one];
                let seen = number.unwrap_or(u64::MAX) & low_bits(width);
                self.used |= up(seen, carrier.shift) & carrier.mask;
                return Some(());
            }
            (Mnemonic::Bt, Some(one), _) if number.is_some() => {
                let bit = 1_u64.checked_shl(number? as u32)?;
                self.used |= up(bit, carriers[one].shift) & carriers[one].mask;
                return Some(());
            }
            (Mnemonic::And, Some(one), None) if number.is_some() => {
                let carrier = &mut carriers[one];
                let kept = up(number? & low_bits(width), carrier.shift);
                carrier.mask &= kept;
                let mask = carrier.mask;
                if self.sets_flags_that_count(position) {
                    self.used |= mask;
                }
                return Some(());
            }
            (Mnemonic::Or | Mnemonic::Xor, Some(one), None) if number.is_some() && from.is_none() => {
                let carrier = &mut carriers[one];
                let changed = up(number? & low_bits(width), carrier.shift);
                carrier.mask &= !changed;
                return Some(());
            }
            (Mnemonic::Or, Some(_), None) if from.is_some() => return Some(()),
            (Mnemonic::Or, None, Some(other)) if to.is_some() => {
                // what was put beside the kept bits takes them over
                let carrier = Carrier { register: to?.full_register(), ..carriers[other] };
                carriers.push(carrier);
                return Some(());
            }
            (Mnemonic::Shr | Mnemonic::Sar, Some(one), _) if number.is_some() => {
                let count = number? as u32 & if width == 64 { 63 } else { 31 };
                let carrier = &mut carriers[one];
                let seen = up(low_bits(width) & !low_bits(count), carrier.shift);
                carrier.mask &= seen;
                carrier.shift += count as i32;
                let mask = carrier.mask;
                if self.sets_flags_that_count(position) {
                    self.used |= mask;
                }
                return Some(());
            }
            (Mnemonic::Shl | Mnemonic::Sal, Some(one), _) if number.is_some() => {
                let count = number? as u32 & if width == 64 { 63 } else { 31 };
                let carrier = &mut carriers[one];
                let seen = up(low_bits(width.saturating_sub(count)), carrier.shift);
                carrier.mask &= seen;
                carrier.shift -= count as i32;
                return Some(());
            }
            (Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd, _, Some(other))
                if to.is_some() =>
            {
                let from = carriers[other];
                let seen = up(low_bits(8 * native.op1_register().size() as u32), from.shift);
                let register = to?.full_register();
                carriers.retain(|carrier| carrier.register != register);
                carriers.push(Carrier { register, mask: from.mask & seen, ..from });
                return Some(());
            }
            (Mnemonic::Mov, _, Some(other)) if native.op0_kind() == OpKind::Memory => {
                let carrier = &mut carriers[other];
                let size = native.memory_size().size() as u64;
                let is_back =
                    instruction.memory.is_some_and(|memory| is_at_same_place(&memory, &self.memory));
                if is_back && carrier.shift == 0 {
                    let changed = mask_of(size) & !carrier.mask;
                    self.used |= changed;
                    carrier.is_back = true;
                    self.stores.push((position, changed));
                } else {
                    self.used |= carrier.mask & up(mask_of(size), carrier.shift);
                }
                return Some(());
            }
            _ => {}
        }
        self.other(&native, carriers, instruction);
        Some(())
    }

    /// Handles an instruction without a rule of its own: it uses what it reads, and ends what it writes.
    fn other(
        &mut self,
        native: &iced_x86::Instruction,
        carriers: &mut Vec<Carrier>,
        instruction: &Instruction,
    ) {
        let same = native.mnemonic() == Mnemonic::Xor
            && native.op_count() == 2
            && native.op1_kind() == OpKind::Register
            && native.op0_register() == native.op1_register();
        let used: Vec<_> = self.factory.info(native).used_registers().to_vec();
        for register in &used {
            let reads = !matches!(register.access(), OpAccess::Write | OpAccess::CondWrite);
            if reads && !same {
                let (name, size) = (register.register().full_register(), register.register().size() as u32);
                for carrier in carriers.iter().filter(|carrier| carrier.register == name) {
                    self.used |= carrier.mask & up(low_bits(8 * size), carrier.shift);
                }
            }
        }
        for register in &used {
            let name = register.register().full_register();
            match register.access() {
                OpAccess::Write | OpAccess::ReadWrite if register.register().size() >= 4 => {
                    carriers.retain(|carrier| carrier.register != name);
                }
                OpAccess::Read => {}
                // a part of it is another value now
                _ => {
                    for carrier in carriers.iter().filter(|carrier| carrier.register == name) {
                        self.used |= carrier.mask;
                    }
                    carriers.retain(|carrier| carrier.register != name);
                }
            }
        }
        // behind a change of the base the same operand is another place
        let mut written = self.body.effects(instruction).iter().flat_map(Effect::written);
        if written.any(|written| [self.memory.base, self.memory.index].contains(&Some(written))) {
            self.memory.size = 0;
        }
    }

    fn use_of(&mut self, carriers: &[Carrier], is_used: impl Fn(Native) -> bool) {
        let used = carriers.iter().filter(|carrier| is_used(carrier.register) && !carrier.is_back);
        used.for_each(|carrier| self.used |= carrier.mask);
    }

    /// Returns true if a later instruction may read the flags that an instruction sets.
    fn sets_flags_that_count(&self, position: usize) -> bool {
        for next in position + 1..(position + 4).min(self.body.instructions().len()) {
            let Some(native) = native(self.image, self.body, next) else { return true };
            if native.rflags_read() != 0 {
                return true;
            }
            if native.rflags_modified() != 0 || self.body.instructions()[next].flow != Flow::Next {
                return false;
            }
        }
        false
    }
}

pub(super) fn native(image: &Image, body: &Body, position: usize) -> Option<iced_x86::Instruction> {
    let instruction = body.instructions().get(position)?;
    let (_, bytes) = image.bytes(instruction.address, instruction.length.into())?;
    let native = Decoder::with_ip(64, &bytes, instruction.address, DecoderOptions::NONE).decode();
    (!native.is_invalid()).then_some(native)
}

fn is_immediate(native: &iced_x86::Instruction, operand: u32) -> bool {
    native.op_count() > operand
        && matches!(
            native.op_kind(operand),
            OpKind::Immediate8
                | OpKind::Immediate16
                | OpKind::Immediate32
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64
        )
}

/// Returns true if two operands have the same address, provided that their registers hold the same values.
fn is_at_same_place(one: &Memory, other: &Memory) -> bool {
    (one.base, one.index, one.scale, one.displacement)
        == (other.base, other.index, other.scale, other.displacement)
        && one.size != 0
        && other.size != 0
}

/// Returns true for a call-saved register.
fn is_kept(register: Native) -> bool {
    matches!(register, Native::RBX | Native::RBP | Native::R12 | Native::R13 | Native::R14 | Native::R15)
}

fn is_high(register: Native) -> bool {
    matches!(register, Native::AH | Native::BH | Native::CH | Native::DH)
}

/// Returns a register's bits as bits of the operand.
fn up(bits: u64, shift: i32) -> u64 {
    let count = shift.unsigned_abs();
    match shift >= 0 {
        true => bits.checked_shl(count).unwrap_or(0),
        false => bits.checked_shr(count).unwrap_or(0),
    }
}

fn low_bits(count: u32) -> u64 {
    1_u64.checked_shl(count).map_or(u64::MAX, |bit| bit - 1)
}

fn mask_of(size: u64) -> u64 {
    low_bits(u32::try_from(8 * size.min(8)).unwrap_or(64))
}
