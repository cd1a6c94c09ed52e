//! The command line of `tallyline groups`.

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use tallyline_layout::groups::Dialect;

/// Show cache line groups: their members, and the lines they occupy
///
/// A group consists of the members between the markers __cacheline_group_begin__G and __cacheline_group_end__G, as
/// in the kernel, or of those that a policy lists, for programs without markers. Lines are counted as if the struct
/// started on one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GroupsArgs {
    /// The types, then the file [default: all types with groups; the running kernel]
    #[arg(value_name = "TYPE… FILE")]
    pub(super) operands: Vec<OsString>,

    /// Show these types: comma-separated names, patterns with * and ?, or file://LIST
    #[arg(short = 'C', long = "class", value_name = "TYPE")]
    pub(super) classes: Vec<String>,

    /// Read this file, and take all other arguments as types
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,

    /// The base BTF that a kernel module's BTF extends
    #[arg(long, alias = "btf_base", value_name = "FILE")]
    pub(super) btf_base: Option<PathBuf>,

    /// The size of a cache line in bytes
    #[arg(short, long, alias = "cacheline_size", value_name = "BYTES", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(super) cacheline_size: u64,

    /// Also show groups whose members this policy lists, for structs without markers
    #[arg(short, long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,

    /// Show one line for each group, without members
    #[arg(short, long)]
    pub(super) brief: bool,

    /// Write compile-time assertions that keep the groups as they are
    #[arg(long, value_enum, value_name = "LANGUAGE", conflicts_with_all = ["brief", "format"])]
    pub(super) asserts: Option<DialectArg>,

    /// Output format of the groups
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(super) format: Format,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tallyline groups tcp_sock              the groups of a struct of the running kernel
  tallyline groups --brief ./vmlinux     one line for each group of a kernel
  tallyline groups --asserts kernel tcp_sock ./vmlinux
  tallyline groups --asserts c11 connection ./server > groups_check.h
  tallyline groups --policy layout.toml --asserts rust ./server

Exit status: 0 for success, 2 for an error. To hold groups to rules, use tallyline check.";

/// The output format of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A table
    Text,
    /// For programs
    Json,
}

/// In which language assertions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DialectArg {
    /// CACHELINE_ASSERT_GROUP_MEMBER and _SIZE
    Kernel,
    /// _Static_assert
    C11,
    /// static_assert
    #[value(name = "c++")]
    Cpp,
    /// const _: () = assert!(…)
    Rust,
}

impl From<DialectArg> for Dialect {
    fn from(arg: DialectArg) -> Dialect {
        match arg {
            DialectArg::Kernel => Dialect::Kernel,
            DialectArg::C11 => Dialect::C11,
            DialectArg::Cpp => Dialect::Cpp,
            DialectArg::Rust => Dialect::Rust,
        }
    }
}
