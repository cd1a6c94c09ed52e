//! The command line of `tallyline check`.

use crate::path_map::PrefixMap;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Check layouts against a policy: sizes, holes, groups, members that share a cache line
///
/// A policy is a TOML file. `tallyline check --suggest` writes one that the program satisfies; its rules are
/// `[[type]]`, `[[group]]`, `[[apart]]`, `[[together]]` and `[[allow]]`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// The file [default: the running kernel]. With --suggest, types or patterns come before it
    #[arg(value_name = "FILE")]
    pub(super) operands: Vec<OsString>,

    /// The policy [default: layout.toml, unless --net-cachelines is given]
    #[arg(short, long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,

    /// Check a struct of the kernel against a table of Documentation/networking/net_cachelines
    #[arg(long, value_name = "FILE")]
    pub(super) net_cachelines: Vec<PathBuf>,

    /// Write a policy that keeps types as they are: the named ones, or those with groups
    #[arg(long, visible_alias = "init", conflicts_with_all = ["policy", "net_cachelines", "format", "path_prefix_map"])]
    pub(super) suggest: bool,

    /// Read this file, and take all other arguments as types
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,

    /// The base BTF that a kernel module's BTF extends
    #[arg(long, alias = "btf_base", value_name = "FILE")]
    pub(super) btf_base: Option<PathBuf>,

    /// The size of a cache line in bytes, unless the policy states it
    #[arg(short, long, alias = "cacheline_size", value_name = "BYTES", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 16))]
    pub(super) cacheline_size: u64,

    /// Output format of the findings
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(super) format: Format,

    /// Accept the findings in this file, which --format json wrote: only new and worse ones fail
    #[arg(long, value_name = "FILE", conflicts_with = "suggest")]
    pub(super) baseline: Option<PathBuf>,

    /// Print a reference of all policy keys and rules, in Markdown
    #[arg(long, conflicts_with_all = ["operands", "file", "policy", "net_cachelines", "suggest", "baseline", "format"])]
    pub(super) reference: bool,

    /// Replace the prefix OLD of source paths by NEW, for programs built elsewhere, as compilers' -ffile-prefix-map
    /// does; may be repeated, the last match wins
    #[arg(long, value_name = "OLD=NEW")]
    pub(super) path_prefix_map: Vec<PrefixMap>,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tallyline check --suggest 'conn*' ./server > layout.toml
  tallyline check ./server --policy layout.toml
  tallyline check ./server --policy layout.toml --format github
  tallyline check ./server --policy layout.toml --format sarif -o layout.sarif
  tallyline check ./server --format gitlab -o gl-code-quality-report.json
  tallyline check ./server --format json -o baseline.json    # later, no worse than today:
  tallyline check ./server --baseline baseline.json
  tallyline check ./server --path-prefix-map /build/server=. --format github
  tallyline check ./vmlinux --net-cachelines Documentation/networking/net_cachelines/tcp_sock.rst

A policy:
  [[type]]
  name = \"conn\"           # or a pattern: conn_*
  max-size = 256          # also max-lines, max-holes, max-padding, align, …; see --reference
  [[group]]
  type = \"conn\"
  name = \"rx\"             # of markers in the struct, or of the members that are named
  members = [\"packets\", \"bytes\"]
  straddle = false        # also max-size, max-lines, max-hole-bytes, line, exclusive
  [[apart]]
  type = \"conn\"
  members = [\"tx_count\", \"rx_count\"]
  placement = \"array\"     # elements of an array: neighbours count; also line (default), any
  [[allow]]
  type = \"conn\"
  rule = \"max-holes\"
  reason = \"the protocol has it so\"

Exit status: 0 without findings (warnings and allowed ones do not count), 1 with findings, 2 for an error.";

/// The output format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub's workflows
    Github,
    /// GitLab's code quality report
    Gitlab,
}
