//! Types and code line by line, with the samples of each line, for `annotate` and the browser of reports.

pub(crate) mod code;
mod source;
pub(crate) mod text;
