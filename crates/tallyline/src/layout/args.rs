//! The command line of `tallyline layout`.

use super::filter::FilterArgs;
use super::job::{Ask, Job, Show};
use super::operands;
use super::select::Names;
use super::style::StyleArgs;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Show structs as the cache sees them: offsets, holes, padding, cache lines
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LayoutArgs {
    /// The types, then the file [default: all types; the running kernel]
    #[arg(value_name = "TYPE… FILE")]
    operands: Vec<OsString>,

    /// Show these types: comma-separated names, patterns with * and ?, or file://LIST
    #[arg(short = 'C', long = "class", alias = "class_name", value_name = "TYPE", value_delimiter = None)]
    classes: Vec<String>,

    /// Read this file, and take all other arguments as types
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Read types from this format
    #[arg(short = 'F', long, alias = "format_path", value_enum, value_name = "FORMAT")]
    format_path: Option<FormatArg>,

    /// Output format of the types
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    #[arg(conflicts_with_all = ["contains", "find_pointers_to", "contains_enumerator"])]
    pub(super) format: Format,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// The base BTF that a kernel module's BTF extends
    #[arg(long, alias = "btf_base", value_name = "FILE")]
    btf_base: Option<PathBuf>,

    /// The size of a cache line in bytes
    #[arg(short, long, alias = "cacheline_size", value_name = "BYTES", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    cacheline_size: u64,

    /// Print the types that each type needs before it, so that the output compiles
    #[arg(long, conflicts_with_all = ["contains", "find_pointers_to", "contains_enumerator"])]
    compile: bool,

    #[command(flatten)]
    columns: ColumnArgs,

    /// Separator between the columns of sizes and numbers
    #[arg(short = 't', long, value_name = "CHARACTER", default_value = "\t", hide_default_value = true)]
    separator: char,

    /// Show the structs that have a member of this type
    #[arg(short = 'i', long, value_name = "TYPE")]
    #[arg(conflicts_with_all = ["find_pointers_to", "contains_enumerator"])]
    contains: Option<String>,

    /// With --contains, also list the types of members that contain it, indented
    #[arg(short = 'd', long, requires = "contains")]
    recursive: bool,

    /// With --contains, also show the number of such members
    #[arg(long, requires = "contains")]
    counted: bool,

    /// Show the members that point to this type
    #[arg(short, long, alias = "find_pointers_to", value_name = "TYPE")]
    #[arg(conflicts_with = "contains_enumerator")]
    find_pointers_to: Option<String>,

    /// Show the enumerations that have this constant
    #[arg(long, alias = "contains_enumerator", value_name = "NAME")]
    contains_enumerator: Option<String>,

    /// Print each type's unit and the place of its declaration before it
    #[arg(short = 'I', long = "positions", alias = "show_decl_info")]
    positions: bool,

    /// Also show unnamed types that have a typedef
    #[arg(short = 'a', long, alias = "anon_include")]
    anonymous: bool,

    /// With --anonymous, also show those without a typedef
    #[arg(short = 'A', long, alias = "nested_anon_include")]
    nested_anonymous: bool,

    /// Also show types inside functions, namespaces and other types
    #[arg(long, alias = "show_private_classes")]
    private: bool,

    /// Sort by name
    #[arg(long)]
    sort: bool,

    /// Ignore names of types that do not exist
    #[arg(long, alias = "skip_missing")]
    skip_missing: bool,

    #[command(flatten)]
    style: StyleArgs,

    #[command(flatten)]
    filter: FilterArgs,
}

/// The properties shown of a type instead of its definition.
#[derive(Debug, Args)]
#[group(multiple = false)]
#[command(next_help_heading = "Instead of definitions")]
struct ColumnArgs {
    /// Show the size and the number of holes of each type
    #[arg(short, long, conflicts_with_all = RELATIONS)]
    sizes: bool,

    /// Show the number of members of each type
    #[arg(short, long, alias = "nr_members", conflicts_with_all = RELATIONS)]
    nr_members: bool,

    /// Show the length of each type's name
    #[arg(short = 'N', long, alias = "class_name_len", conflicts_with_all = RELATIONS)]
    name_length: bool,

    /// Show the number of units that define each type
    #[arg(short = 'T', long, alias = "nr_definitions", conflicts_with_all = RELATIONS)]
    definitions: bool,

    /// Show the unit that defines each type
    #[arg(short = 'u', long, alias = "defined_in", conflicts_with_all = RELATIONS)]
    unit: bool,
}

const RELATIONS: [&str; 4] = ["contains", "find_pointers_to", "contains_enumerator", "compile"];

const EXAMPLES: &str = "\
Examples:
  tallyline layout sk_buff               a struct of the running kernel
  tallyline layout tcp_sock sock ./vmlinux
  tallyline layout ./program             every struct of a program with debug information
  tallyline layout --sizes ./program | sort -k2n | tail
  tallyline layout --format json -o types.json ./program
  tallyline layout --format html -o conn.html conn ./program
  tallyline layout --compile task_struct > task_struct.h
  tallyline layout --contains list_head --recursive
  tallyline layout --holes 2 --prefix tcp_";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Dwarf,
    Btf,
}

/// The output format of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// As printed by pahole
    Text,
    /// For programs, one type per line
    Json,
    /// An HTML page with each type as a grid of cache lines
    Html,
}

impl LayoutArgs {
    /// Returns the job that these arguments describe.
    pub(super) fn job(&self) -> Result<Job> {
        let (file, names) = self.file_and_names()?;
        if self.format != Format::Text && self.compile {
            bail!("--compile makes text: it does not go together with another --format");
        }
        if self.format == Format::Html && !matches!(self.show(), Show::Definition | Show::Name) {
            bail!("a page shows definitions: --sizes and the like do not go together with --format html");
        }
        let format = self.format_path.map(|format| match format {
            FormatArg::Dwarf => tallyline_debuginfo::Format::Dwarf,
            FormatArg::Btf => tallyline_debuginfo::Format::Btf,
        });
        Ok(Job {
            files: vec![file],
            formats: format.into_iter().collect(),
            btf_base: self.btf_base.clone(),
            ask: self.ask(names)?,
            show: self.show(),
            style: self.style.style(self.cacheline_size),
            filter: self.filter.filter(),
            units: self.filter.units()?,
            positions: self.positions || self.format != Format::Text,
            with_places: false,
            anonymous: self.anonymous,
            nested_anonymous: self.nested_anonymous,
            inner: self.private,
            sort: self.sort,
            separator: self.separator,
            skip_missing: self.skip_missing,
            widen_bitfields: false,
            stop_at_missing: false,
        })
    }

    /// Returns the file, and the types that are asked for.
    fn file_and_names(&self) -> Result<(PathBuf, Names)> {
        let (file, operands) = operands::split(&self.operands, self.file.as_deref());
        let mut names = Names::default();
        operands.iter().try_for_each(|name| names.add_one(name))?;
        self.classes.iter().try_for_each(|list| names.add_list(list))?;
        Ok((file, names))
    }

    fn ask(&self, names: Names) -> Result<Ask> {
        let related = match (&self.contains, &self.find_pointers_to, &self.contains_enumerator) {
            (Some(name), ..) => {
                Ask::Containers { name: name.clone(), recursive: self.recursive, counted: self.counted }
            }
            (_, Some(name), _) => Ask::PointersTo(name.clone()),
            (.., Some(name)) => Ask::Enumerator(name.clone()),
            _ => return Ok(Ask::Types(names)),
        };
        if !names.is_empty() {
            bail!("types do not go together with --contains, --find-pointers-to and --contains-enumerator");
        }
        Ok(related)
    }

    fn show(&self) -> Show {
        match &self.columns {
            ColumnArgs { sizes: true, .. } => Show::Sizes,
            ColumnArgs { nr_members: true, .. } => Show::Members,
            ColumnArgs { name_length: true, .. } => Show::NameLength,
            ColumnArgs { definitions: true, .. } => Show::Definitions,
            ColumnArgs { unit: true, .. } => Show::Unit,
            _ if self.compile => Show::Compilable,
            _ if self.filter.hole_size != 0 => Show::Name,
            _ => Show::Definition,
        }
    }
}
