//! Edits of struct declarations in C, C++ and Rust.
//!
//! ```
//! use tallyline_source::{Change, Language, edit};
//!
//! let text = b"struct point {\n\tchar tag;\t/* kind */\n\tlong at;\n\tshort flags;\n};\n";
//! let change = Change::new(Language::C, 1, "point").with_order([("tag", 2), ("at", 3), ("flags", 4)], [1, 2, 0]);
//! let edited = edit(text, &change)?.applied_to(text);
//! assert_eq!(edited, b"struct point {\n\tlong at;\n\tshort flags;\n\tchar tag;\t/* kind */\n};\n");
//! # Ok::<(), tallyline_source::Refusal>(())
//! ```
//!
//! # Guarantees
//! - The edit is lossless: each byte of the body is in the result, but for blank lines that would double, and a
//!   declaration of several names that are torn apart is repeated with its specifiers.
//! - The members in the text are those that the caller names, in their order, or nothing is edited.
//! - A member moves with the comments above and behind it, its attributes, its initialiser, its `#if`s and
//!   the `#define`s below it. As few members move as the order permits.
//! - No panic on any text; time and memory in proportion to it.
//!
//! # Limits
//! No preprocessor and no compiler: a name that means something else through a macro is found by compiling
//! the result, which is the caller's. Conditionals with alternatives move whole or not at all.

mod body;
mod change;
mod counter;
mod declarator;
mod diff;
mod edit;
mod extent;
mod find;
mod foreign;
mod items;
mod lexer;
mod probe;
mod retype;
mod scan;
mod write;

pub use change::{Change, Edit, Refusal};
pub use counter::{counter_initialiser, counter_use, wrapped_value};
pub use diff::unified_diff;
pub use edit::edit;
pub use foreign::{defined_symbols, foreign_uses};
pub use probe::{PROBE_COLUMN, guarded_probe, has_constructor, probe};
pub use retype::{is_laid_out_in_order, member_name, member_type};
pub use scan::{SearchedType, UseKind, holders, size_names, typedefs, uses, wrapper_calls, wrappers};

/// The programming languages whose struct declarations can be edited: C, C++, Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The C language.
    C,
    /// The C++ language.
    Cpp,
    /// The Rust language.
    Rust,
}
