//! Sizes and alignments of types, by attributes and by the ABI of the target.

mod align;
mod scalar;
mod size;

pub use align::Alignments;
pub use scalar::{Rules, is_alignment, is_atomic, member_align, rules, type_align};
pub use size::size_of;
