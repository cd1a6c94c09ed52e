//! Profiles of data types: which types, fields and cache lines the time goes to.
//!
//! A sample says where a program was; with the debug information of the program that becomes the
//! type and the field of the memory operand there.
//!
//! # What it promises
//! - Every `PERF_SAMPLE_*` field is decoded, in either byte order; nothing is skipped over.
//! - The packets of Arm's SPE are decoded, in bounded memory; what is lost, damaged or left out is counted.
//! - Files may be truncated, corrupt or malicious: no panic, no endless loop, memory bounded by the
//!   size of the file plus [`perfdata::INFLATED_LIMIT`] for compressed records, and one error that says where.
//! - Every sample is accounted for: typed, or with the reason why not.
//!
//! # What it leaves out
//! Hardware traces but for Arm's SPE (Intel PT, CoreSight) are skipped, and how much that is is said; what the kernel
//! decodes of them into samples is read. Of SPE's records those that are memory accesses become samples; branches
//! and other operations are counted. Text is made by the caller: this crate answers in values.
//!
//! # Where things are
//! [`perfdata`] reads and writes recordings; [`code`] decodes programs; [`infer`] says what type the
//! operand of each of their instructions is; [`report`] joins both. [`mod@trace`] makes and reads recordings of every access,
//! where there are no hardware counters; [`coherence`] replays them on a model of a machine's caches,
//! [`timing`] on one of a processor's time.

pub mod code;
pub mod coherence;
mod error;
pub mod infer;
pub mod perfdata;
pub mod report;
pub mod timing;
pub mod trace;

pub use error::{Error, Result};
