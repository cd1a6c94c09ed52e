//! The options of commands that edit sources.

use super::assertions::AssertionStyle;
use super::place::parse_map;
use clap::Args;
use std::path::PathBuf;

/// Command-line options of `reorganize` and `advise` for edits of the program's sources.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ApplyArgs {
    /// Print a patch of the sources instead: whole lines with their comments, as `git apply` takes it
    #[arg(long)]
    pub(crate) patch: bool,

    /// Edit the sources in place, after verification; --undo takes it back
    #[arg(long, conflicts_with = "patch")]
    pub(crate) apply: bool,

    /// Put back every byte that --apply changed, in the project of the current folder or of --root
    #[arg(long, conflicts_with_all = ["patch", "apply"])]
    pub(crate) undo: bool,

    /// Compare the time of this command before and after, in alternating pairs, each in a copy of the project
    #[arg(long, value_name = "COMMAND", requires = "apply")]
    pub(crate) measure: Option<String>,

    /// The command that builds the project, run in a copy of it: the program that it makes must have the new layouts
    #[arg(long, value_name = "COMMAND", requires = "apply")]
    pub(crate) build: Option<String>,

    /// Pairs of runs to measure
    #[arg(long, value_name = "COUNT", default_value_t = 15, requires = "measure")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) pairs: u16,

    /// Leave the sources as they are if the median speed-up is smaller, such as 1.05
    #[arg(long, value_name = "RATIO", requires = "measure")]
    pub(crate) keep_if: Option<f64>,

    /// The folder of the project, to which paths in a patch are relative; else that of the repository or the build
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    /// Prefix of paths in the debug information, and the folder that it stands for
    #[arg(long, value_name = "OLD=NEW", value_parser = parse_map)]
    pub(crate) source_map: Vec<(String, String)>,

    /// Installed headers, or a folder of them: what they declare is left as it is
    #[arg(long, value_name = "PATH")]
    pub(crate) abi: Vec<PathBuf>,

    /// The list of compiler's calls, or its folder; else it is looked for in the project: what includes an edited file is
    /// compiled again in a copy, and every layout there compared with what was promised
    #[arg(long, value_name = "PATH")]
    pub(crate) compile_commands: Option<PathBuf>,

    /// Compile nothing: the patch is not verified
    #[arg(long)]
    pub(crate) no_rebuild: bool,

    /// The assertions at compile time that are written below an edited declaration [default: of advise the language's, or
    /// the kernel's in its tree; of reorganize none]
    #[arg(long, value_name = "STYLE")]
    pub(crate) assertions: Option<AssertionStyle>,

    /// Edit also where the sources rely on the order: offsets, objects as bytes, initialisers by position
    #[arg(long)]
    pub(crate) trust: bool,
}

impl ApplyArgs {
    /// Returns `true` if the options ask for edits of source files, in place or as a patch.
    pub(crate) fn edits(&self) -> bool {
        self.patch || self.apply
    }
}
