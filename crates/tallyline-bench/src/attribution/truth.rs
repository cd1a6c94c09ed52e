//! The shapes, and which field the time of each goes to: the one place that says it.
//!
//! In each shape of a stall the first access to a random node is the only one that misses the caches; the node
//! is one line, so that all others hit. What the bars leave open is what a shape does besides: random numbers,
//! its loop, and branches that are mispredicted.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A language that shapes are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Language {
    C,
    #[serde(rename = "C++")]
    Cpp,
    Rust,
}

/// A shape: the function `shape_NAME`, and those that it calls, `shape_NAME__…`.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) language: Language,
    pub(super) truth: Truth,
}

/// The fields that the time of a shape goes to, with the bars that its samples are held to, in percent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Truth {
    /// A single access that stalls.
    Stall {
        /// The field of the access that stalls.
        field: &'static str,
        /// The smallest share of samples that name the field.
        right: f64,
        /// The largest share of samples that name other fields.
        other: f64,
    },
    /// Several accesses that take known shares of the time.
    Shares {
        /// The fields with their shares.
        fields: &'static [(&'static str, f64)],
        /// The largest difference of a share.
        tolerance: f64,
    },
}

const fn shape(name: &'static str, language: Language, truth: Truth) -> Shape {
    Shape { name, language, truth }
}

const fn stall(field: &'static str) -> Truth {
    Truth::Stall { field, right: 85.0, other: 5.0 }
}

const COLD: Truth = stall("cold");

/// Control comes to the place behind the stall by several ways.
const JOIN: Truth = Truth::Stall { field: "cold", right: 75.0, other: 10.0 };

/// All shapes of the benchmark, in all languages.
pub(super) const SHAPES: &[Shape] = &[
    shape("load", Language::C, COLD),
    shape("load_test", Language::C, COLD),
    shape("load_cmp", Language::C, COLD),
    shape("load_decrement", Language::C, COLD),
    shape("cmp_taken", Language::C, COLD),
    shape("cmp_not_taken", Language::C, COLD),
    shape("cmp_either", Language::C, COLD),
    shape("cmp_register", Language::C, COLD),
    shape("cmp_immediate", Language::C, COLD),
    shape("cmp_signed", Language::C, COLD),
    shape("cmp_immediate_signed", Language::C, COLD),
    shape("test_taken", Language::C, COLD),
    shape("test_immediate", Language::C, COLD),
    shape("sub", Language::C, COLD),
    shape("add", Language::C, COLD),
    shape("and", Language::C, COLD),
    shape("or", Language::C, COLD),
    shape("xor", Language::C, COLD),
    shape("increment", Language::C, COLD),
    shape("decrement", Language::C, COLD),
    shape("loop_end", Language::C, COLD),
    shape("join_two", Language::C, JOIN),
    shape("join_three", Language::C, JOIN),
    shape("chain", Language::C, COLD),
    shape("rmw", Language::C, COLD),
    shape("locked", Language::C, COLD),
    shape("exchange", Language::C, COLD),
    shape("compare_and_swap", Language::C, COLD),
    shape("bit_set", Language::C, COLD),
    shape("cmov", Language::C, COLD),
    shape("push", Language::C, COLD),
    shape("vector", Language::C, COLD),
    shape("gather", Language::C, COLD),
    // the division itself takes its time, too
    shape("division", Language::C, Truth::Stall { field: "cold", right: 70.0, other: 5.0 }),
    // a store retires before its line is there: what waits is a later one, for room to be put in
    shape("store", Language::C, Truth::Stall { field: "cold", right: 65.0, other: 25.0 }),
    shape("string_move", Language::C, COLD),
    shape("byte_loop", Language::C, stall("bytes")),
    shape("leaf_return", Language::C, COLD),
    shape("call_memory", Language::C, stall("handler")),
    shape("tail_call", Language::C, stall("tail")),
    shape("jump_memory", Language::C, stall("label")),
    shape(
        "two_misses",
        Language::C,
        Truth::Shares { fields: &[("cold", 50.0), ("warm2", 50.0)], tolerance: 7.0 },
    ),
    shape(
        "hot",
        Language::C,
        Truth::Shares {
            fields: &[("warm0", 25.0), ("cold", 50.0), ("warm1", 12.5), ("warm2", 12.5)],
            tolerance: 3.0,
        },
    ),
    // gcc's and clang's name of the pointer to the virtual table
    shape("virtual_call", Language::Cpp, stall("_vptr")),
    shape("member", Language::Cpp, COLD),
    shape("member_inlined", Language::Cpp, COLD),
    shape("atomic_add", Language::Cpp, stall("uses")),
    shape("atomic_load", Language::Cpp, stall("uses")),
    shape("atomic_exchange", Language::Cpp, stall("uses")),
    shape("expires", Language::Rust, Truth::Stall { field: "expires", right: 75.0, other: 10.0 }),
    shape("compare", Language::Rust, stall("expires")),
    shape("enumeration", Language::Rust, stall("state")),
    shape("atomic", Language::Rust, stall("uses")),
    shape("dyn_trait", Language::Rust, stall("object")),
];

impl Truth {
    /// Returns `true` if `name`, as in reports, is the field `truth` or a part of it.
    pub(super) fn is_field(name: &str, truth: &str) -> bool {
        let rest = name.strip_prefix(truth);
        // `_vptr.Node`, `_vptr$Node`, `uses._M_i`, `bytes[]`
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '$']))
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Truth::Stall { field, right, other } => {
                write!(f, "{field} at least {right} %, other fields at most {other} %")
            }
            Truth::Shares { fields, tolerance } => {
                for (index, (field, share)) in fields.iter().enumerate() {
                    write!(f, "{}{field} {share}", if index == 0 { "" } else { ", " })?;
                }
                write!(f, " %, each ± {tolerance}")
            }
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Language::C => "C",
            Language::Cpp => "C++",
            Language::Rust => "Rust",
        })
    }
}
