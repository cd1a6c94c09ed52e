//! The errors of this crate, each with its position in the file.

use thiserror::Error;

/// The reason why debug information could not be read: not an ELF file, no such format, damage at an offset, a limit
/// exceeded, an I/O error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are neither ELF nor BTF.
    #[error("neither ELF nor BTF")]
    UnknownFormat,

    /// An ELF file without the sections that describe types.
    #[error("no type information: neither DWARF nor BTF; build it with -g")]
    NoTypes,

    /// The requested format is not in the file.
    #[error("no {0} in this file")]
    NoSuchFormat(&'static str),

    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),

    /// The ELF container is damaged.
    #[error("damaged ELF: {0}")]
    Elf(String),

    /// The DWARF is damaged.
    #[error("damaged DWARF at {section}+{offset:#x}: {reason}")]
    Dwarf {
        /// The damaged section, such as `.debug_info`.
        section: &'static str,
        /// The offset of the damage in the section.
        offset: u64,
        /// The description of the damage.
        reason: String,
    },

    /// The types are in another file, which is missing or of another build.
    #[error("{0}")]
    Companion(String),

    /// A stripped file whose debug file is nowhere.
    #[error(
        "no type information, and no debug file of this build (looked for in {0}); build it with -g, or install its debug file"
    )]
    NoDebugFile(String),

    /// The BTF is damaged.
    #[error("damaged BTF at offset {offset:#x}: {reason}")]
    Btf {
        /// The offset from the start of the BTF.
        offset: u64,
        /// The description of the damage.
        reason: &'static str,
    },

    /// Models that cannot be put together.
    #[error("files of different formats or pointer sizes do not go together")]
    Mixed,

    /// A stated limit was reached; such a file is taken for a hostile one.
    #[error("{what}: more than {limit}")]
    Limit {
        /// The quantity that exceeds its limit.
        what: &'static str,
        /// The largest quantity that is accepted.
        limit: u64,
    },
}

/// A `Result` with this crate's [`enum@Error`], the reason why debug information could not be read.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl From<object::Error> for Error {
    fn from(error: object::Error) -> Error {
        Error::Elf(error.to_string())
    }
}
