//! Cache lines that the code before an access has touched: what it touched it does not wait for again.

use tallyline_inference::code::{Body, Effect, Flow, Machine, Memory, REGISTERS, Register, SegmentBase};

/// The bytes within which two accesses are likely in one cache line.
const LINE: u64 = 64;

/// The most instructions that are walked back over for earlier accesses to the line.
const WALK_LIMIT: usize = 96;

/// The most blocks that one is followed back to.
const PREDECESSORS_LIMIT: usize = 8;

/// The most earlier accesses through other registers that are followed back at a time.
const OTHERS_LIMIT: usize = 12;

/// The likelihood that a line has left the nearest caches when a function comes back that was called meanwhile.
const LOST_IN_CALL: f64 = 0.1;

/// The likelihood that a line is in another one than one that is surely the same.
const SURELY_TOUCHED: f64 = 0.02;

/// The address of an access as a sum of registers, with what these hold at one point of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    base: Option<Register>,
    index: Option<Register>,
    scale: u8,
    segment: SegmentBase,
    displacement: i64,
}

impl Address {
    /// Returns the address of an operand; none where its registers are not followed.
    pub(super) fn of(memory: &Memory) -> Option<Address> {
        let is_followed = |register: &Register| usize::from(register.0) < REGISTERS;
        let all = [memory.base(), memory.index()];
        (!memory.implicit() && all.iter().flatten().all(is_followed)).then_some(Address {
            base: memory.base(),
            index: memory.index(),
            scale: memory.scale(),
            segment: memory.segment(),
            displacement: memory.displacement(),
        })
    }

    /// Returns the register that the address is counted from.
    pub(super) fn base(&self) -> Option<Register> {
        self.base
    }

    /// Returns the address by what registers hold before an instruction, given it by what they hold behind; none
    /// where that is not known.
    pub(super) fn before(self, effects: &[Effect]) -> Option<Address> {
        effects.iter().rev().try_fold(self, Address::before_effect)
    }

    fn before_effect(self, effect: &Effect) -> Option<Address> {
        let has = |register: Register| self.base == Some(register) || self.index == Some(register);
        if !effect.written().any(has) {
            return Some(self);
        }
        let renamed = |register: Option<Register>, to: Register, from: Register| {
            if register == Some(to) { Some(from) } else { register }
        };
        match *effect {
            Effect::Copy { to, from } => Some(Address {
                base: renamed(self.base, to, from),
                index: renamed(self.index, to, from),
                ..self
            }),
            Effect::Swap { a, b } => {
                let swapped = |register| match register {
                    Some(register) if register == a => Some(b),
                    Some(register) if register == b => Some(a),
                    other => other,
                };
                Some(Address { base: swapped(self.base), index: swapped(self.index), ..self })
            }
            Effect::Constant { to, value } if self.base == Some(to) && self.index != Some(to) => {
                Some(Address { base: None, displacement: self.displacement.wrapping_add(value), ..self })
            }
            Effect::Address { to, base, index, scale, displacement } if self.base == Some(to) => {
                let (index, scale) = match (self.index, index) {
                    (own, None) => (own, self.scale),
                    (None, Some(_)) => (index, scale),
                    (Some(_), Some(_)) => return None,
                };
                let displacement = self.displacement.wrapping_add(displacement);
                (self.index != Some(to)).then_some(Address { base, index, scale, displacement, ..self })
            }
            _ => None,
        }
    }

    /// Returns the address before a call, which leaves few registers as they are.
    fn before_call(self, machine: Machine) -> Option<Address> {
        let is_kept = |register: &Register| match machine {
            Machine::X86_64 => matches!(register.0, 3 | 6 | 7 | 12..=15),
            Machine::Aarch64 => matches!(register.0, 19..=29 | 31),
            Machine::Other => false,
        };
        [self.base, self.index].iter().flatten().all(is_kept).then_some(self)
    }

    /// Returns how far an address with the same registers is behind this one.
    fn distance_to(&self, other: &Address) -> Option<i64> {
        let registers = |address: &Address| (address.base, address.index, address.scale, address.segment);
        let is_same = registers(self) == registers(other);
        is_same.then(|| other.displacement.wrapping_sub(self.displacement))
    }
}

/// A walk back from an access.
#[derive(Clone, Debug)]
struct Walk {
    own: Address,
    /// Accesses that were passed, whose registers may turn out to hold the same.
    others: Vec<Address>,
    /// The closest accesses before and behind it in memory.
    below: Option<u64>,
    above: Option<u64>,
    /// `true` if a call was passed before one of them was found.
    is_behind_call: bool,
}

impl Walk {
    /// Takes another access at the same point of the code.
    fn note(&mut self, other: &Address) {
        let Some(distance) = self.own.distance_to(other).filter(|distance| distance.unsigned_abs() < LINE)
        else {
            return;
        };
        let side = if distance <= 0 { &mut self.below } else { &mut self.above };
        let distance = distance.unsigned_abs();
        *side = Some(side.map_or(distance, |known| known.min(distance)));
    }

    /// Returns how likely no access that was passed is in the line.
    fn untouched(&self) -> f64 {
        let likely = match (self.below, self.above) {
            (None, None) => return 1.0,
            // between two there would have to be two ends of lines
            (Some(below), Some(above)) if below + above < LINE => SURELY_TOUCHED,
            // of all places of a line's end so many are between the two accesses
            (below, above) => {
                let closest = below.unwrap_or(LINE).min(above.unwrap_or(LINE));
                (closest as f64 / LINE as f64).max(SURELY_TOUCHED)
            }
        };
        if self.is_behind_call { likely.max(LOST_IN_CALL) } else { likely }
    }
}

/// A function whose accesses are followed back.
pub(super) struct Lines<'b> {
    pub(super) body: &'b Body,
    pub(super) machine: Machine,
}

impl Lines<'_> {
    /// Returns the register that the stack is counted from.
    pub(super) fn stack_pointer(&self) -> Register {
        match self.machine {
            Machine::X86_64 => Register(7),
            Machine::Aarch64 | Machine::Other => Register(31),
        }
    }

    /// Returns how likely the code that leads to an access has not touched its line, over all ways; `flow` says
    /// how often control comes out of a block.
    pub(super) fn untouched(&self, position: usize, memory: &Memory, flow: &dyn Fn(usize) -> f64) -> f64 {
        let Some(own) = Address::of(memory) else { return 1.0 };
        let walk = Walk { own, others: Vec::new(), below: None, above: None, is_behind_call: false };
        let mut left = WALK_LIMIT;
        self.walk_back(position, walk, flow, &mut Vec::new(), &mut left)
    }

    fn walk_back(
        &self,
        position: usize,
        mut walk: Walk,
        flow: &dyn Fn(usize) -> f64,
        passed: &mut Vec<usize>,
        left: &mut usize,
    ) -> f64 {
        let Some(block) = self.body.block_of(position) else { return walk.untouched() };
        let about = &self.body.blocks()[block];
        let start = about.instructions().start as usize;
        for before in (start..position).rev() {
            if *left == 0 || !self.pass(before, &mut walk) {
                return walk.untouched();
            }
            *left -= 1;
        }
        let is_too_wide = about.predecessors().len() > PREDECESSORS_LIMIT;
        if block == self.body.entry() || is_too_wide || passed.contains(&block) {
            return walk.untouched();
        }
        let end = |block: &u32| Some(self.body.blocks().get(*block as usize)?.instructions().end as usize);
        let ends: Vec<(usize, usize)> =
            about.predecessors().iter().filter_map(|block| Some((*block as usize, end(block)?))).collect();
        passed.push(block);
        let (mut sum, mut all) = (0.0, 0.0);
        for (predecessor, end) in &ends {
            // the walk stands behind the last instruction
            let Some(last) = end.checked_sub(1) else { continue };
            let mut walk = walk.clone();
            let untouched = match *left > 0 && self.pass(last, &mut walk) {
                true => self.walk_back(last, walk, flow, passed, left),
                false => walk.untouched(),
            };
            *left = left.saturating_sub(1);
            let flow = flow(*predecessor);
            sum += untouched * flow;
            all += flow;
        }
        passed.pop();
        if all > 0.0 { sum / all } else { walk.untouched() }
    }

    /// Goes back over one instruction; false where the address is not known before it, or nothing more matters.
    fn pass(&self, before: usize, walk: &mut Walk) -> bool {
        let instruction = &self.body.instructions()[before];
        let effects = self.body.effects(instruction);
        let is_call = matches!(instruction.flow(), Flow::Call(_));
        let back = |address: Address| match is_call {
            true => address.before_call(self.machine),
            false => address.before(effects),
        };
        let Some(own) = back(walk.own) else { return false };
        walk.own = own;
        walk.is_behind_call |= is_call && walk.below.is_none() && walk.above.is_none();
        let mut others = std::mem::take(&mut walk.others);
        others.retain_mut(|other| back(*other).map(|before| *other = before).is_some());
        others.extend(self.body.operands(before).filter_map(Address::of));
        let excess = others.len().saturating_sub(OTHERS_LIMIT);
        others.drain(..excess);
        others.iter().for_each(|other| walk.note(other));
        walk.others = others;
        walk.untouched() > SURELY_TOUCHED
    }

    /// Returns the address of an access with its registers followed back in its block.
    pub(super) fn origin(&self, position: usize, memory: &Memory) -> Option<Address> {
        let mut address = Address::of(memory)?;
        let start = self.body.blocks()[self.body.block_of(position)?].instructions().start as usize;
        for before in (start..position).rev().take(WALK_LIMIT) {
            let instruction = &self.body.instructions()[before];
            let next = match instruction.flow() {
                Flow::Call(_) => address.before_call(self.machine),
                _ => address.before(self.body.effects(instruction)),
            };
            match next {
                Some(next) => address = next,
                None => break,
            }
        }
        Some(address)
    }
}
