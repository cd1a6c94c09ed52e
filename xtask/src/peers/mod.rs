//! Comparisons with perf and pahole that take more than a shell.

pub(crate) mod report;
