//! The options of commands that edit sources.

use super::assertions::AssertionStyle;
use super::place::parse_map;
use clap::Args;
use std::path::PathBuf;

/// Command-line options of `reorganize` and `advise` for edits of the program's sources.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ApplyArgs {
    /// Print a patch for `git apply` instead of editing the sources; members move with their comments
    #[arg(long)]
    pub(crate) patch: bool,

    /// Edit the sources in place after verification; --undo reverts it
    #[arg(long, conflicts_with = "patch")]
    pub(crate) apply: bool,

    /// Restore every byte that --apply changed, in the project of the current folder or of --root
    #[arg(long, conflicts_with_all = ["patch", "apply"])]
    pub(crate) undo: bool,

    /// Measure the speed-up: run this command in copies of the project without and with the edits, in alternating
    /// pairs
    #[arg(long, value_name = "COMMAND", requires = "apply")]
    pub(crate) measure: Option<String>,

    /// The command that builds the project. It is run in a copy of the project, and the program that it builds must
    /// have the new layouts
    #[arg(long, value_name = "COMMAND", requires = "apply")]
    pub(crate) build: Option<String>,

    /// Pairs of runs to measure
    #[arg(long, value_name = "COUNT", default_value_t = 15, requires = "measure")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) pairs: u16,

    /// Edit the sources only if the median speed-up is at least this, such as 1.05
    #[arg(long, value_name = "RATIO", requires = "measure")]
    pub(crate) keep_if: Option<f64>,

    /// The folder of the project, to which paths in a patch are relative [default: the root of the repository or
    /// the build]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    /// Replace a prefix of source paths in the debug information by a folder
    #[arg(long, value_name = "OLD=NEW", value_parser = parse_map)]
    pub(crate) source_map: Vec<(String, String)>,

    /// Installed headers, or a folder of them, whose types must not be edited
    #[arg(long, value_name = "PATH")]
    pub(crate) abi: Vec<PathBuf>,

    /// The project's compile_commands.json, or its folder; else it is looked for in the project. All units that
    /// include an edited file are compiled in a copy, and the layouts in them compared with the promised ones
    #[arg(long, value_name = "PATH")]
    pub(crate) compile_commands: Option<PathBuf>,

    /// Do not compile anything: the edit is not verified
    #[arg(long)]
    pub(crate) no_rebuild: bool,

    /// The style of the compile-time assertions below an edited declaration [default: for advise the language's, or
    /// the kernel's in its tree; for reorganize none]
    #[arg(long, value_name = "STYLE")]
    pub(crate) assertions: Option<AssertionStyle>,

    /// Edit even if the sources rely on the order of members: offsets, objects copied as bytes, positional
    /// initialisers, another declaration of the same struct
    #[arg(long)]
    pub(crate) trust: bool,
}

impl ApplyArgs {
    /// Returns `true` if the options ask for edits of source files, in place or as a patch.
    pub(crate) fn edits(&self) -> bool {
        self.patch || self.apply
    }
}
