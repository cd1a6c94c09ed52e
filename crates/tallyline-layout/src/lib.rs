//! Struct layouts as the cache sees them: questions, pahole's format, checks, differences, proposals.
//!
//! ```no_run
//! use tallyline_debuginfo::{Request, Wanted, lookup, read};
//! use tallyline_layout::print::pahole;
//!
//! let bytes = std::fs::read("/sys/kernel/btf/vmlinux")?;
//! let request = Request { wanted: Wanted::named(["sk_buff"]), ..Request::default() };
//! let types = read(&bytes, &request)?;
//! if let Some(id) = lookup::find(&types, b"sk_buff") {
//!     let mut printer = pahole::Printer::new(&types, pahole::Style::default());
//!     printer.print(id);
//!     println!("{}", String::from_utf8_lossy(printer.text()));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//! - The text of a C program equals pahole 1.32 to the byte, except where pahole is wrong.
//! - A proposal that is printed compiles as printed and has the promised layout.
//! - No unsafe code, and no files opened: types come from `tallyline-debuginfo`.
//!
//! # Modules
//! [`query`] answers one question per function; [`mod@print`] formats the answers; [`check`] holds layouts
//! to a policy, [`diff`] compares two, [`groups`] finds cache-line groups, [`reorganize`] proposes orders.

pub mod check;
pub mod diff;
mod explain;
pub mod groups;
pub mod print;
pub mod query;
pub mod reorganize;
