//! Output formats. Each is a folder or file of its own and only formats what
//! [`query`](crate::query) answers.

pub mod html;
pub mod json;
pub mod pahole;
mod type_text;

pub(crate) use type_text::keyword;
pub use type_text::{element_text, type_text};
