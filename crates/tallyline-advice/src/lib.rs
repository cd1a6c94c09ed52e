//! Advice from a trace, samples or breakpoints: what to change in a program's data, the evidence, and what the change would do by a model.
//!
//! [`evidence`] is what a trace has: cache lines that cores take from each other, the fields on them, who accesses
//! these from where, and what each type's fields cost. [`collect()`] reads it from a trace with the names that a
//! [`Resolver`] knows. [`rules`] make [`Finding`]s of it, each with a [`Proposal`]; [`predict()`] replays the
//! trace with the proposal carried out, on many schedules, and says by how much it would be faster.
//!
//! # Guarantees
//! A finding names fields, functions and threads that are in the trace. Its effect is the model's, as a range over
//! schedules; one that the model does not confirm is dropped. The same trace gives the same advice.
//!
//! # Limits
//! Code that the traced run did not execute gets no advice. Source text is not edited here.

mod address_map;
mod collect;
mod conflicts;
pub mod evidence;
mod objects;
mod observed;
mod pointers;
mod policy;
mod predict;
mod proposal;
mod resolve;
pub mod rules;
pub mod sharing_diff;

pub use address_map::AddressMap;
pub use collect::{CollectLimits, collect};
pub use observed::{Observations, ObservedAccess, is_assumed, observe};
pub use predict::{Effect, Model, Outlook, predict, run_times};
pub use proposal::{LayoutProposal, PlacedMember, Proposal, heap_block};
pub use resolve::{Operand, Resolved, Resolver, VariablePart};
pub use rules::{Confidence, FieldEvidence, Finding, FindingKind};
