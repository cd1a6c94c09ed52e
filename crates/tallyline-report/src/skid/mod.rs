//! Rules by which samples lie behind the instruction that caused them: learnt from a recording, or its vendor's.

pub(crate) mod fusion;
pub(crate) mod shift;
mod vendors;

pub(crate) use fusion::FusionRules;
pub use fusion::{PairRule, RuleSource};
pub use shift::EventShift;

use std::fmt;

/// The correction for skid that was applied to a profile's samples, with the number of samples that it moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Skid {
    /// No correction: samples are charged to the instruction that they were recorded at.
    #[default]
    None,
    /// A correction that charges samples to the instruction that retired before the recorded one.
    Corrected {
        /// The number of samples that are charged to another instruction than the recorded one.
        samples: u64,
        /// The number of moved samples that are divided among several instructions.
        divided: u64,
    },
}

impl fmt::Display for Skid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skid::None => f.write_str("not corrected"),
            Skid::Corrected { samples: 0, .. } => f.write_str("nothing to correct"),
            Skid::Corrected { samples, divided } => {
                write!(f, "corrected, {samples} samples are charged to the instruction before")?;
                match divided {
                    0 => Ok(()),
                    _ => write!(f, ", {divided} of them divided among several"),
                }
            }
        }
    }
}

/// The rule by which samples were charged to another instruction than the one at their address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The instruction in front, which is the only one that control comes from.
    Previous,
    /// The first half of a pair that this CPU retires as one.
    FusedPair,
    /// The only instruction of several that control comes from which can have stalled.
    OnlyStall,
    /// Several instructions that control comes from and that can have stalled: samples are divided.
    Divided,
    /// The instruction that control came from by the branch stack of each sample.
    BranchStack,
    /// The string instruction at the place itself, which is interrupted between its turns.
    Repeated,
    /// The store that the one in front only waits for.
    StoreWaitedFor,
    /// The instruction at the place itself, which waits: those in front cannot have stalled.
    Itself,
    /// A call or a return.
    CallOrReturn,
    /// The call through memory in front of the return address.
    Call,
    /// A jump through memory in the function that the call in front of the return address entered.
    TailCall,
    /// The only call or jump through memory with samples that can have entered this function.
    AssumedCall,
    /// An indirect call of which is not known which.
    IndirectCall,
}

impl Rule {
    /// Returns a phrase for reports that explains the rule: the instruction to which samples were charged, and why.
    pub fn text(self) -> &'static str {
        match self {
            Rule::Previous => "the instruction that retired before it",
            Rule::FusedPair => "the compare that this CPU retires together with the jump in front",
            Rule::OnlyStall => "the only instruction that leads here and can have stalled",
            Rule::Divided => "samples here are divided among the instructions that lead here",
            Rule::BranchStack => "the instruction that control came from, by the branch stack of each sample",
            Rule::Repeated => "the string instruction itself, which is interrupted between its turns",
            Rule::StoreWaitedFor => {
                "the only store before it that can miss: the one in front, to a line that was touched, waits for it"
            }
            Rule::Itself => {
                "the instruction itself, which most samples are behind: the one in front cannot have stalled"
            }
            Rule::CallOrReturn => "a call or a return came before",
            Rule::Call => "the call through memory in front of the return address on the stack",
            Rule::TailCall => {
                "a jump through memory that leaves the function which the call in front of the return address entered"
            }
            Rule::AssumedCall => {
                "the only call through memory with samples that can have entered this function, as the recording \
                 has no return address (assumed)"
            }
            Rule::IndirectCall => "the function was entered by an indirect call, and it is not known which",
        }
    }
}

/// Numbers of samples at functions' first instructions, by what is known about the call that led there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Charged to the call or jump that the return address on the stack leads to.
    pub by_return_address: u64,
    /// Charged to the only indirect call with samples that may have been it.
    pub assumed: u64,
    /// Entered by an indirect call of which is not known which.
    pub unknown: u64,
}

impl fmt::Display for CallCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallCounts { by_return_address, assumed, unknown } = self;
        write!(
            f,
            "{by_return_address} samples charged by the return address, {assumed} to the only call that may have \
             been it (assumed), {unknown} entered by an indirect call that is not known"
        )
    }
}
