//! Output formats. Each is a folder or file of its own and only formats what
//! [`query`](crate::query) answers.

pub mod html;
pub mod json;
pub mod pahole;
