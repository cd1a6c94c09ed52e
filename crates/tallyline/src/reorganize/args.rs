//! The command line of `tallyline reorganize`.

use super::pins::Pins;
use crate::apply::ApplyArgs;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use tallyline_debuginfo::Format;
use tallyline_layout::reorganize::{EXACT_MEMBERS, ReorganizeOptions};

/// Propose smaller structs by reordering members, verified by compiling them
///
/// Only the order of members changes, and only where the struct gets smaller, with as few moves as
/// possible. Alignments are recomputed from the types; `aligned` and `packed` are honoured; runs of
/// bitfields move as one. The first and the last member stay (structs are cast to their first
/// member, and the last may be longer than declared), and so do flexible arrays, and members
/// without a size, such as the markers of cache line groups: nothing moves past them. What more
/// could be saved if the ends moved is said (`--unpin`).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReorganizeArgs {
    /// The types, then the file [default: all types; the running kernel]
    #[arg(value_name = "TYPE… FILE")]
    pub(super) operands: Vec<OsString>,

    /// Reorganize these types: comma-separated names, patterns with * and ?, or file://LIST
    #[arg(short = 'C', long = "class", value_name = "TYPE")]
    pub(super) classes: Vec<String>,

    /// Read this file, and take all other arguments as types
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,

    /// Read types from this format
    #[arg(short = 'F', long, alias = "format_path", value_enum, value_name = "FORMAT")]
    format_path: Option<FormatArg>,

    /// The base BTF that a kernel module's BTF extends
    #[arg(long, alias = "btf_base", value_name = "FILE")]
    pub(super) btf_base: Option<PathBuf>,

    /// The size of a cache line in bytes
    #[arg(short, long, alias = "cacheline_size", value_name = "BYTES", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(super) cacheline_size: u64,

    /// Rank the types by the bytes saved; the default if no types are named
    #[arg(long)]
    all: bool,

    /// Number of instances of each type, to rank by: lines `TYPE COUNT`, or /proc/slabinfo
    #[arg(long, value_name = "FILE")]
    pub(super) instances: Option<PathBuf>,

    /// Keep a member where it is, and move no other member past it
    #[arg(long, value_name = "MEMBER", value_delimiter = ',')]
    pin: Vec<String>,

    /// Allow a pinned member to move: `first`, `last`, `ends`, or its name
    #[arg(long, value_name = "MEMBER", value_delimiter = ',')]
    unpin: Vec<String>,

    /// Also reorganize types whose layout others may rely on: packed ones, those declared in uapi/, classes without
    /// standard layout
    #[arg(long)]
    force: bool,

    /// Order the members by this table of who uses which field, as those of the kernel's
    /// Documentation/networking/net_cachelines: what a path uses lies together, between markers of groups, on as
    /// few cache lines as it takes. The struct may get larger. May be given again, for another struct
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["classes", "all", "instances", "steps", "verify"])]
    pub(super) groups: Vec<PathBuf>,

    /// Show the moves step by step, with the layout after each
    #[arg(short = 'S', long, alias = "show_reorg_steps")]
    pub(super) steps: bool,

    /// Compile both declarations and compare sizes, alignments and the offset of every member; for a named C type,
    /// the printed text itself is compiled. For C++ and Rust only the layout is verified, restated in C, as the
    /// text refers to types of the program
    #[arg(long)]
    pub(super) verify: bool,

    /// The C compiler to verify with [default: $CC, or cc]
    #[arg(long, value_name = "COMMAND", requires = "verify")]
    pub(super) cc: Option<String>,

    #[command(flatten)]
    pub(super) apply: ApplyArgs,

    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tallyline reorganize files_struct      a struct of the running kernel
  tallyline reorganize --verify connection ./server
  tallyline reorganize --steps --unpin first,private connection ./server
  tallyline reorganize --verify ./vmlinux | head -20        where a kernel can save most
  tallyline reorganize --instances /proc/slabinfo --json -o savings.json
  tallyline reorganize --groups tcp_sock.rst --patch ./vmlinux

A proposal says if it is optimal or the best one found. It is optimal for up to 20 members between two pinned ones, and for more if they have few different sizes, as nearly all structs do. BTF does not record alignments, so these are inferred.

Exit status: 0 for success, also if nothing can be made smaller; 2 for an error, such as a type that cannot be reorganized, a member to pin that no type has, or a proposal that a compiler lays out differently (it is not shown then).";

// the help says the number
const _: () = assert!(EXACT_MEMBERS == 20);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Dwarf,
    Btf,
}

impl ReorganizeArgs {
    /// Returns the format to read, if one is wanted.
    pub(super) fn format_path(&self) -> Option<Format> {
        self.format_path.map(|format| match format {
            FormatArg::Dwarf => Format::Dwarf,
            FormatArg::Btf => Format::Btf,
        })
    }

    /// Returns `true` if types are ranked rather than shown one by one; `named` says that types are named.
    pub(super) fn ranks(&self, named: bool) -> bool {
        self.all || !named
    }

    /// Returns the members that stay, and those that may move.
    pub(super) fn pins(&self) -> Pins<'_> {
        Pins { pin: &self.pin, unpin: &self.unpin }
    }

    /// Returns the permitted moves.
    pub(super) fn options(&self) -> ReorganizeOptions {
        let freed = |end: &str| self.unpin.iter().any(|name| name == end || name == "ends");
        let bytes = |names: &[String]| names.iter().map(|name| name.clone().into_bytes()).collect();
        ReorganizeOptions {
            cacheline: self.cacheline_size,
            pin_first: !freed("first"),
            pin_last: !freed("last"),
            pin: bytes(&self.pin),
            unpin: bytes(&self.unpin),
            force: self.force,
        }
    }
}
