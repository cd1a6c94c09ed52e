//! The options of commands that edit sources.

use super::place::parse_map;
use clap::Args;
use std::path::PathBuf;

/// Options for the edit of sources.
#[derive(Clone, Debug, Args)]
pub(crate) struct ApplyArgs {
    /// Print a patch of the sources instead: whole lines with their comments, as `git apply` takes it
    #[arg(long)]
    pub(crate) patch: bool,

    /// The folder of the project, to which paths in a patch are relative; else that of the repository or the build
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    /// Prefix of paths in the debug information, and the folder that it stands for
    #[arg(long, value_name = "OLD=NEW", value_parser = parse_map)]
    pub(crate) source_map: Vec<(String, String)>,

    /// Installed headers, or a folder of them: what they declare is left as it is
    #[arg(long, value_name = "PATH")]
    pub(crate) abi: Vec<PathBuf>,

    /// Edit also where the sources rely on the order: offsets, objects as bytes, initialisers by position
    #[arg(long)]
    pub(crate) trust: bool,
}
