//! The derivation of one instruction's outcome, for people to read.

use super::analysis::Analysis;
use super::outcome::Outcome;
use super::value::{State, Value};
use crate::code::Register;
use tallyline_debuginfo::program::Holder;
use tallyline_debuginfo::type_text;

/// A readable derivation of the type that was inferred for one instruction's memory operand.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    pub(crate) function: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) variables: Vec<String>,
    pub(crate) steps: Vec<Step>,
    /// The outcome of the memory operand; none without one.
    pub(crate) outcome: Option<Outcome>,
    /// The outcome of the second memory operand, if there is one.
    pub(crate) second: Option<Outcome>,
    pub(crate) answer: String,
}

impl Explanation {
    /// Returns the name of the function that contains the explained instruction, whose memory operand's type was
    /// inferred.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// Returns the names of the functions that contain the explained instruction, innermost first: those inlined around
    /// it, and last the function itself.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the variables that are live at the explained instruction in a register or on the stack, each with
    /// its location, as text.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Returns the instructions of the explained instruction's basic block, up to itself, each with the register
    /// values known before it.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns a sentence with the type and field of the explained instruction's memory operand, or with the reason
    /// why they are unknown.
    pub fn answer(&self) -> &str {
        &self.answer
    }
}

/// A step of the [`Explanation`] of an inferred type: an instruction, with the values of registers and stack slots
/// known before it.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) address: u64,
    pub(crate) known: Vec<String>,
}

impl Step {
    /// Returns the address of the instruction that this step of an explanation is about.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the registers and stack slots whose inferred values are new since the explanation's previous step, each
    /// with its value before this step's instruction, as text.
    pub fn known(&self) -> &[String] {
        &self.known
    }
}

impl Analysis<'_, '_, '_, '_> {
    /// Returns the derivation of an instruction's outcome; `None` if no instruction starts at the address.
    pub(super) fn explain(&mut self, address: u64) -> Option<Explanation> {
        let position = self.body.position(address)?;
        let block = self.body.block_of(position)?;
        let mut explanation = Explanation { function: self.function.name.clone(), ..Explanation::default() };
        for scope in self.function.scopes_at(address) {
            let Some(function) = self.function.scopes[scope].function else { continue };
            explanation.scopes.extend(self.catalog.units.as_mut().and_then(|units| units.name(function)));
        }
        explanation.variables = self.variables_at(address);
        let Some(state) = self.state_at(block).cloned() else {
            explanation.answer = "nothing that can be seen leads here".into();
            return Some(explanation);
        };
        let mut before: Option<State> = None;
        self.transfer_block(block, state, |analysis, at, state| {
            if at > position {
                return;
            }
            let known = analysis.changes(before.as_ref(), state);
            explanation.steps.push(Step { address: analysis.body.instructions()[at].address, known });
            before = Some(state.clone());
            if at == position {
                let memory = analysis.body.instructions()[at].memory;
                explanation.outcome = memory.map(|memory| analysis.outcome(state, at, &memory));
                let second = analysis.body.second_operand(at);
                explanation.second = second.map(|memory| analysis.outcome(state, at, memory));
            }
        });
        explanation.answer = self.answer(explanation.outcome);
        if explanation.second.is_some() {
            explanation.answer += &format!("; its second operand: {}", self.answer(explanation.second));
        }
        Some(explanation)
    }

    fn answer(&self, outcome: Option<Outcome>) -> String {
        match outcome {
            None => "touches no memory".into(),
            Some(Outcome::Pseudo(pseudo)) => pseudo.name().into(),
            Some(Outcome::Untyped(reason)) => reason.to_string(),
            Some(Outcome::Typed(typed)) => {
                let or = typed.or.map_or_else(String::new, |or| format!(" or +{:#x}", or.offset));
                format!("{} +{:#x}{or}", type_text(self.catalog.types(), typed.ty), typed.offset)
            }
        }
    }

    fn changes(&self, before: Option<&State>, state: &State) -> Vec<String> {
        let mut found = Vec::new();
        for (register, value) in state.registers() {
            if before.map_or(value.is_unknown(), |before| before.get(register) == value) {
                continue;
            }
            found.push(format!("{} = {}", self.register_name(register), self.text(value)));
        }
        for (place, value) in state.slots() {
            if before.is_none_or(|before| before.slot(*place) != Some(*value)) {
                found.push(format!("stack{place:+#x} = {}", self.text(*value)));
            }
        }
        found
    }

    fn variables_at(&mut self, address: u64) -> Vec<String> {
        let function = self.function;
        let mut found = Vec::new();
        for location in function.live(address) {
            let variable = &function.variables[location.variable as usize];
            let ty = self.variable_type(location.variable);
            let ty = ty.map_or_else(|| "?".into(), |ty| type_text(self.catalog.types(), ty));
            let place = match location.piece.holder {
                Holder::Register(register) => self.register_name(register).to_string(),
                Holder::Sum(register, sum) => format!("the value {}{sum:+#x}", self.register_name(register)),
                Holder::Memory(register, sum) => {
                    format!("memory at {}{sum:+#x}", self.register_name(register))
                }
                Holder::Frame(sum) => format!("stack{sum:+#x}"),
                Holder::Behind(sum) => format!("memory that stack{sum:+#x} points to"),
                Holder::BehindRegister(register, sum) => {
                    format!("memory that what is at {}{sum:+#x} points to", self.register_name(register))
                }
                Holder::Address(at) => format!("{at:#x}"),
                Holder::ThreadLocal(at) => format!("thread-local {at:#x}"),
            };
            let piece = match (location.piece.offset, location.piece.size) {
                (0, None) => String::new(),
                (offset, size) => format!(" (its bytes from {offset} on, {})", size.unwrap_or(0)),
            };
            let what = if variable.parameter { "parameter" } else { "variable" };
            found.push(format!("{what} {} ({ty}) in {place}{piece}", variable.name));
        }
        found
    }

    fn register_name(&self, register: Register) -> String {
        self.image.machine().register_name(register)
    }

    fn text(&self, value: Value) -> String {
        match value {
            Value::Unknown(0) => "nothing known".into(),
            Value::Unknown(position) => match self.body.instructions().get(position as usize - 1) {
                Some(instruction) => format!("lost at {:#x}", instruction.address),
                None => "nothing known".into(),
            },
            Value::Constant(number) => format!("{number:#x}"),
            Value::Number(number) => match (number.base, number.magnitude()) {
                (at, _) if number.is_choice => format!("{at} or {}", at.wrapping_add(number.stride)),
                (_, 1) => "a number".into(),
                (0, step) => format!("a multiple of {step}"),
                (at, step) => format!("{at} and a multiple of {step}"),
            },
            Value::Thread(number) => {
                let more = match number.magnitude() {
                    0 => String::new(),
                    step => format!(", by steps of {step}"),
                };
                format!("the thread's pointer {:+#x}{more}", number.base)
            }
            Value::Vtable => "a table of functions".into(),
            Value::Stack(at) => format!("the address stack{at:+#x}"),
            Value::Pointer(pointer) => {
                let more = match pointer.stride {
                    0 => String::new(),
                    step if pointer.is_choice => format!(" or {step} further"),
                    step => format!(", by steps of {step}"),
                };
                format!(
                    "pointer to {} {:+#x}{more}",
                    type_text(self.catalog.types(), pointer.to),
                    pointer.offset
                )
            }
        }
    }
}
