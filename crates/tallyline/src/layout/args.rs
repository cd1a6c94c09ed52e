//! The command line of `tallyline layout`.

use crate::layout::operands;
use crate::layout::select::Names;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tallyline_layout::print::pahole::Style;
use tallyline_layout::query::Filter;

/// Show structs as the cache sees them: offsets, holes, padding, cache lines
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LayoutArgs {
    /// The types, then the file: without types all of them, without a file the running kernel
    #[arg(value_name = "TYPE… FILE")]
    operands: Vec<String>,

    /// Show these types: names with commas between, patterns with * and ?, or file://LIST
    #[arg(short = 'C', long = "class", value_name = "TYPE", value_delimiter = None)]
    classes: Vec<String>,

    /// Read this file, whatever the operands look like
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Read this format
    #[arg(short = 'F', long, alias = "format_path", value_enum, value_name = "FORMAT")]
    format_path: Option<FormatArg>,

    /// How to show the types
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    #[arg(conflicts_with_all = ["contains", "find_pointers_to"])]
    pub(super) format: Format,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// The BTF that the file's goes on from, for a kernel module
    #[arg(long, alias = "btf_base", value_name = "FILE")]
    pub(super) btf_base: Option<PathBuf>,

    /// The size of a cache line in bytes
    #[arg(short, long, alias = "cacheline_size", value_name = "BYTES", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(super) cacheline_size: u64,

    /// Show the size and the number of holes of each type
    #[arg(short, long, conflicts_with_all = ["contains", "find_pointers_to"])]
    pub(super) sizes: bool,

    /// Show the number of members of each type
    #[arg(short, long, alias = "nr_members", conflicts_with_all = ["sizes", "contains", "find_pointers_to"])]
    pub(super) nr_members: bool,

    /// What stands between the columns of sizes and numbers
    #[arg(short = 't', long, value_name = "CHARACTER", default_value = "\t", hide_default_value = true)]
    pub(super) separator: char,

    /// Show the structs that have a member of this type
    #[arg(short = 'i', long, value_name = "TYPE", conflicts_with = "find_pointers_to")]
    pub(super) contains: Option<String>,

    /// Show the members that point to this type
    #[arg(short, long, alias = "find_pointers_to", value_name = "TYPE")]
    pub(super) find_pointers_to: Option<String>,

    /// Sort by name
    #[arg(long)]
    pub(super) sort: bool,

    #[command(flatten)]
    style: StyleArgs,

    #[command(flatten)]
    filter: FilterArgs,
}

const EXAMPLES: &str = "\
Examples:
  tallyline layout sk_buff               a struct of the running kernel
  tallyline layout tcp_sock sock ./vmlinux
  tallyline layout ./program             every struct of a program with debug information
  tallyline layout --sizes ./program | sort -k2n | tail
  tallyline layout --format json -o types.json ./program
  tallyline layout --holes 2 --prefix tcp_";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Dwarf,
    Btf,
}

/// How types are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// As pahole does
    Text,
    /// For programs, one type a line
    Json,
}

#[derive(Debug, Args)]
struct StyleArgs {
    /// Unfold the types of members
    #[arg(short = 'E', long, alias = "expand_types")]
    expand_types: bool,

    /// Numbers in hexadecimal
    #[arg(long)]
    hex: bool,

    /// Only the declarations: no offsets, notes and sums
    #[arg(short, long)]
    quiet: bool,

    /// Several dimensions of an array as one
    #[arg(long, alias = "flat_arrays")]
    flat_arrays: bool,

    /// Offsets relative to the struct that a member is declared in
    #[arg(short, long, alias = "rel_offset")]
    relative_offsets: bool,

    /// `struct` also for classes
    #[arg(long, alias = "classes_as_structs")]
    classes_as_structs: bool,

    /// Leave out alignments
    #[arg(long, alias = "suppress_aligned_attribute")]
    suppress_aligned: bool,

    /// Leave out what is packed
    #[arg(long, alias = "suppress_packed")]
    suppress_packed: bool,

    /// Leave out the bitfields that stand for padding
    #[arg(long, alias = "suppress_force_paddings")]
    suppress_force_padding: bool,
}

#[derive(Debug, Args)]
struct FilterArgs {
    /// Only types with so many holes or more
    #[arg(short = 'H', long, value_name = "NUMBER", default_value_t = 0)]
    holes: u32,

    /// Only types with so many holes of bits or more
    #[arg(short = 'B', long, alias = "bit_holes", value_name = "NUMBER", default_value_t = 0)]
    bit_holes: u32,

    /// Only types with a hole of so many bytes or more; prints their names
    #[arg(short = 'z', long, alias = "hole_size_ge", value_name = "BYTES", default_value_t = 0)]
    hole_size: u64,

    /// Only types with so many bytes of padding at the end
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    padding: u64,

    /// Only types with so many bytes of padding at the end or more
    #[arg(long, alias = "padding_ge", value_name = "BYTES", default_value_t = 0)]
    padding_at_least: u64,

    /// Only types whose names start so
    #[arg(short = 'y', long, alias = "prefix_filter", value_name = "PREFIX")]
    prefix: Option<String>,

    /// No types whose names start so
    #[arg(short = 'x', long, value_name = "PREFIX")]
    exclude: Option<String>,

    /// Only structs and classes
    #[arg(long)]
    structs: bool,

    /// Only unions
    #[arg(long)]
    unions: bool,

    /// Only what is packed
    #[arg(long)]
    packed: bool,

    /// Only what ends with a flexible array
    #[arg(long, alias = "with_flexible_array")]
    with_flexible_array: bool,

    /// Only what holds a struct that ends with a flexible array
    #[arg(long, alias = "with_embedded_flexible_array")]
    with_embedded_flexible_array: bool,
}

impl LayoutArgs {
    /// The file, and the types that are asked for.
    pub(super) fn file_and_names(&self) -> Result<(PathBuf, Names)> {
        let (file, operands) = operands::split(&self.operands, self.file.as_deref());
        let mut names = Names::default();
        for name in operands {
            names.add_one(&name)?;
        }
        for list in &self.classes {
            names.add_list(list)?;
        }
        if !names.is_empty() && (self.contains.is_some() || self.find_pointers_to.is_some()) {
            bail!("types and --contains or --find-pointers-to do not go together");
        }
        Ok((file, names))
    }

    /// The format to read, if one is wanted.
    pub(super) fn format_path(&self) -> Option<tallyline_layout::Format> {
        self.format_path.map(|format| match format {
            FormatArg::Dwarf => tallyline_layout::Format::Dwarf,
            FormatArg::Btf => tallyline_layout::Format::Btf,
        })
    }

    /// How to print.
    pub(super) fn style(&self) -> Style {
        let args = &self.style;
        let style = Style {
            cacheline: self.cacheline_size,
            expand_types: args.expand_types,
            hex: args.hex,
            flat_arrays: args.flat_arrays,
            relative_offsets: args.relative_offsets,
            classes_as_structs: args.classes_as_structs,
            aligned: !args.suppress_aligned,
            packed: !args.suppress_packed,
            force_padding: !args.suppress_force_padding,
            ..Style::default()
        };
        if args.quiet { style.quiet() } else { style }
    }

    /// What to show.
    pub(super) fn filter(&self) -> Filter {
        let args = &self.filter;
        let bytes = |text: &Option<String>| text.as_ref().map(|text| text.clone().into_bytes());
        Filter {
            structs: args.structs || args.packed,
            unions: args.unions,
            packed: args.packed,
            prefix: bytes(&args.prefix),
            exclude: bytes(&args.exclude),
            holes: args.holes,
            bit_holes: args.bit_holes,
            hole_size: args.hole_size,
            padding: args.padding,
            padding_at_least: args.padding_at_least,
            flexible: args.with_flexible_array,
            embedded_flexible: args.with_embedded_flexible_array,
        }
    }

    /// Whether only names are shown.
    pub(super) fn names_only(&self) -> bool {
        self.filter.hole_size != 0
    }
}
