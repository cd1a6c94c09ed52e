//! Debug information: types, functions and variables of programs and kernels, from ELF, DWARF and BTF.
//!
//! ```no_run
//! use tallyline_debuginfo::{Request, Wanted, abi, lookup, read, type_text};
//!
//! let bytes = std::fs::read("/sys/kernel/btf/vmlinux")?;
//! let request = Request { wanted: Wanted::named(["sk_buff"]), ..Request::default() };
//! let types = read(&bytes, &request)?;
//! if let Some(id) = lookup::find(&types, b"sk_buff") {
//!     println!("{} has {} bytes", type_text(&types, id), abi::size_of(&types, id));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//! - Files may be truncated, corrupt or malicious: no panic, no endless loop, memory bounded by the
//!   size of the file plus [`INFLATED_LIMIT`] for compressed sections, and one error with its offset.
//! - Memory is proportional to the requested types, not to the file.
//! - No unsafe code, and no files opened but by [`locate`]: the caller brings the bytes or the open file, and
//!   [`Companions`] for other files: split DWARF, and the supplementary files of dwz.
//!
//! # Limits
//! Debug files of stripped programs are the caller's to open, see [`debug_file_ref`]. Of C++ classes only
//! data members, bases and static members are read.
//!
//! # Modules
//! [`model`] holds the types; the readers (`dwarf`, `btf`) are private and fill it; [`abi`] answers
//! for sizes and alignments, [`lookup`] for names, [`program`] for functions, variables, scopes, lines and frames,
//! [`type_text()`] writes a type as C does.

pub mod abi;
mod btf;
mod companion;
mod dwarf;
mod elf;
mod error;
mod language;
pub mod locate;
pub mod lookup;
pub mod model;
pub mod program;
mod type_text;

pub use btf::Symbols;
pub use companion::{Companion, Companions, Contents, NoCompanions};
pub use dwarf::{DebugInfo, TypeReader, VariablesOf};
pub use error::Error;
pub(crate) use error::Result;
pub use language::{UnitFilter, language};
use model::Types;
use std::io::Read;
use std::ops::ControlFlow;
pub use type_text::{element_text, keyword, type_text};

/// The number of bytes that the compressed sections of one file may inflate to; a file that exceeds it is
/// refused.
pub const INFLATED_LIMIT: u64 = 4 << 30;

/// A format that describes types: DWARF or BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// DWARF 2 to 5, in ELF.
    Dwarf,
    /// BTF, in ELF or alone.
    Btf,
}

/// The choice of the types to read from a file, by name or all. Types that these need are read too.
#[derive(Clone, Debug, Default)]
pub enum Wanted {
    /// Every named struct, class and union at the top of a unit, equal ones once.
    #[default]
    Records,
    /// The types of these names, of whatever kind, also inside functions and other types: all that
    /// there are of each name, those that are made of the same once. Where a name has several, they mostly have
    /// their positions; where it has none, the model mostly has the names that are nearest to it
    /// ([`Types::nearest`]).
    Named(Vec<Vec<u8>>),
    /// The records at the top of a unit, in namespaces and in other records whose names, alone or with their
    /// scopes, match one of these patterns, or that are called so: those that are made of the same once.
    Matching(Vec<Vec<u8>>),
    /// Of each of these names the first type: no more of the file is read than that takes.
    First(Vec<Vec<u8>>),
    /// The enumerations that have a constant of this name, wherever they are, equal ones once.
    Enumerator(Vec<u8>),
}

impl Wanted {
    /// Returns the choice of all types that have one of these names.
    pub fn named<N: Into<Vec<u8>>>(names: impl IntoIterator<Item = N>) -> Wanted {
        Wanted::Named(names.into_iter().map(Into::into).collect())
    }
}

/// The extent to which the reader loads types that others only point to: whole, or their names alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointerTargets {
    /// Their names.
    #[default]
    Names,
    /// Also the types that typedefs stand for, and the constants of enumerations, as declarations in C need them.
    Declarations,
    /// Everything, so also the targets of their own pointers.
    Contents,
}

/// The choice of types and details (members, positions, pointer targets) that a reader loads from a file.
#[derive(Clone, Debug)]
pub struct Request {
    /// The types to read.
    pub wanted: Wanted,
    /// The format; none for DWARF if there is any, else BTF.
    pub format: Option<Format>,
    /// The size of a cache line in bytes: what alignment is inferred to in BTF.
    pub cacheline: u64,
    /// The filter of units.
    pub units: UnitFilter,
    /// Of records, also those inside functions, namespaces and other types.
    pub inner: bool,
    /// Of records, also those without a name.
    pub anonymous: bool,
    /// Of records, also those that differ from others of their name only in what the types of their
    /// members are made of. Without it equal names at equal places make two records one, as in pahole.
    pub exact: bool,
    /// The extent to which types that others only point to are read.
    pub pointer_targets: PointerTargets,
    /// `true` if only sizes and holes are needed: classes that other units define are then not read from
    /// there, but have their size.
    pub sizes_only: bool,
    /// `true` if the sizes of members' types are enough: their names and contents may be left out, and the
    /// targets of pointers. The types of one unit may then come in several parts.
    pub shallow: bool,
    /// `true` to read the file, line and unit that declare each type.
    pub positions: bool,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            wanted: Wanted::default(),
            format: None,
            cacheline: 64,
            units: UnitFilter::default(),
            inner: false,
            anonymous: false,
            exact: false,
            pointer_targets: PointerTargets::default(),
            sizes_only: false,
            shallow: false,
            positions: false,
        }
    }
}

/// Returns `true` if bytes start with the magic number of ELF or BTF, which this crate can read.
pub fn is_readable(bytes: &[u8]) -> bool {
    elf::is_elf(bytes) || btf::is_btf(bytes)
}

/// Reads the types of an ELF file's DWARF or BTF, or of raw BTF, into a model. Those in further files are
/// left out, with a warning: see [`read_with`].
pub fn read(bytes: &[u8], request: &Request) -> Result<Types> {
    read_with(bytes, request, &NoCompanions)
}

/// Reads the types of an ELF file's DWARF or BTF, or of raw BTF, into a model, and those in the further files
/// that `companions` finds.
pub fn read_with(bytes: &[u8], request: &Request, companions: &dyn Companions) -> Result<Types> {
    if btf::is_btf(bytes) {
        return match request.format {
            Some(Format::Dwarf) => Err(Error::NoSuchFormat("DWARF")),
            _ => btf::read(bytes, None, request),
        };
    }
    if !elf::is_elf(bytes) {
        return Err(Error::UnknownFormat);
    }
    read_elf(elf::File::parse(bytes, elf::Input::Bytes(bytes))?, request, companions)
}

/// Reads the types of an open ELF file or raw BTF, and of the files that belong to it. Of ELF only
/// the sections that are needed are read, so a kernel with its debug information takes a third of
/// the memory.
pub fn read_file(file: &std::fs::File, request: &Request, companions: &dyn Companions) -> Result<Types> {
    let mut start = Vec::new();
    file.take(4).read_to_end(&mut start)?;
    if elf::is_elf(&start) {
        let headers = object::ReadCache::new(file);
        return read_elf(elf::File::parse(&headers, elf::Input::File(file))?, request, companions);
    }
    if !btf::is_btf(&start) {
        return Err(Error::UnknownFormat);
    }
    // its sizes have 32 bits
    file.take(INFLATED_LIMIT).read_to_end(&mut start)?;
    read_with(&start, request, companions)
}

/// Opens the DWARF of a file for readers of functions, variables and scopes, passes it to a closure, and
/// returns the closure's result, and with a line for each thing that is missing.
pub(crate) fn with_debug_info<T>(
    file: &std::fs::File,
    companions: &dyn Companions,
    each: impl FnOnce(&DebugInfo<'_, '_>) -> Result<T>,
) -> Result<(T, Vec<String>)> {
    let headers = object::ReadCache::new(file);
    with_debug_info_of_elf(&elf::File::parse(&headers, elf::Input::File(file))?, companions, true, each)
}

/// Opens the debug information of a file like `with_debug_info`, but without line tables.
pub fn with_debug_info_without_lines<T>(
    file: &std::fs::File,
    companions: &dyn Companions,
    each: impl FnOnce(&DebugInfo<'_, '_>) -> Result<T>,
) -> Result<(T, Vec<String>)> {
    let headers = object::ReadCache::new(file);
    with_debug_info_of_elf(&elf::File::parse(&headers, elf::Input::File(file))?, companions, false, each)
}

/// Opens debug information in memory like `with_debug_info`.
pub fn with_debug_info_of_bytes<T>(
    bytes: &[u8],
    companions: &dyn Companions,
    each: impl FnOnce(&DebugInfo<'_, '_>) -> Result<T>,
) -> Result<(T, Vec<String>)> {
    with_debug_info_of_elf(&elf::File::parse(bytes, elf::Input::Bytes(bytes))?, companions, true, each)
}

fn with_debug_info_of_elf<'a, R: object::ReadRef<'a>, T>(
    file: &elf::File<'a, R>,
    companions: &dyn Companions,
    lines: bool,
    each: impl FnOnce(&DebugInfo<'_, '_>) -> Result<T>,
) -> Result<(T, Vec<String>)> {
    dwarf::with_debug_info(file, file.naming().ok_or(Error::NoSuchFormat("DWARF"))?, companions, lines, each)
}

/// Reads the types of an open ELF file or raw BTF, and of the files that belong to it, and hands them
/// on a part at a time, in the order of the file: each part is a model of its own, and is forgotten
/// by the reader. So the memory of a file with a million types is that of a few thousand. Parts end
/// when there are no more, or when `each` breaks.
///
/// A type is listed in one part only, unless two compilers have described it in two ways:
/// [`lookup::RecordDeduplicator`] finds those.
pub fn read_parts(
    mut file: &std::fs::File,
    request: &Request,
    companions: &dyn Companions,
    each: &mut dyn FnMut(Types) -> ControlFlow<()>,
) -> Result<()> {
    let mut start = Vec::new();
    file.take(4).read_to_end(&mut start)?;
    if elf::is_elf(&start) && request.format != Some(Format::Btf) {
        let headers = object::ReadCache::new(file);
        let elf = elf::File::parse(&headers, elf::Input::File(file))?;
        if let Some(naming) = elf.naming() {
            return dwarf::read_parts(&elf, naming, request, companions, each);
        }
    }
    std::io::Seek::rewind(&mut file)?;
    let _ = each(read_file(file, request, companions)?);
    Ok(())
}

/// Returns the formats of types that a file has, DWARF first. Only its headers are read.
pub fn formats(file: &std::fs::File) -> Result<Vec<Format>> {
    let mut start = Vec::new();
    file.take(4).read_to_end(&mut start)?;
    if btf::is_btf(&start) {
        return Ok(vec![Format::Btf]);
    }
    let headers = object::ReadCache::new(file);
    let elf = elf::File::parse(&headers, elf::Input::File(file))?;
    let dwarf = elf.naming().map(|_| Format::Dwarf);
    Ok(dwarf.into_iter().chain(elf.has_btf().then_some(Format::Btf)).collect())
}

/// The name, checksum and build-id by which a stripped file refers to its separate debug file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugFileRef {
    /// The build-id; the debug file has the same.
    pub build_id: Option<Vec<u8>>,
    /// The name of the debug file.
    pub(crate) link: Option<Vec<u8>>,
    /// The checksum (CRC-32) of the debug file.
    pub(crate) checksum: Option<u32>,
}

/// Returns the name and build-id by which a stripped ELF file refers to its separate debug file; none for
/// other files.
pub fn debug_file_ref(file: &std::fs::File) -> Result<DebugFileRef> {
    elf::File::parse(&object::ReadCache::new(file), elf::Input::File(file))?.debug_file_ref()
}

fn read_elf<'a, R: object::ReadRef<'a>>(
    file: elf::File<'a, R>,
    request: &Request,
    companions: &dyn Companions,
) -> Result<Types> {
    if request.format != Some(Format::Btf)
        && let Some(naming) = file.naming()
    {
        return dwarf::read(&file, naming, request, companions);
    }
    match (file.btf()?, request.format) {
        (Some(btf), None | Some(Format::Btf)) => {
            let mut types = btf::read(&btf, None, request)?;
            types.target = file.target();
            Ok(types)
        }
        (_, Some(Format::Dwarf)) => Err(Error::NoSuchFormat("DWARF")),
        (_, Some(Format::Btf)) => Err(Error::NoSuchFormat("BTF")),
        (None, None) => Err(Error::NoTypes),
    }
}

/// Reads the types of a BTF that continue those of another BTF, as a kernel module's continue the kernel's.
pub fn read_with_base(bytes: &[u8], base: &[u8], request: &Request) -> Result<Types> {
    btf::read(&raw_btf(bytes)?, Some(&raw_btf(base)?), request)
}

/// Reads the functions and variables of BTF, raw or in an ELF file. Their types have the ids that they have
/// when the same BTF is [`read`] whole.
pub fn symbols(bytes: &[u8]) -> Result<Symbols> {
    btf::read_symbols(&raw_btf(bytes)?)
}

fn raw_btf(bytes: &[u8]) -> Result<std::borrow::Cow<'_, [u8]>> {
    if btf::is_btf(bytes) {
        return Ok(bytes.into());
    }
    if !elf::is_elf(bytes) {
        return Err(Error::UnknownFormat);
    }
    elf::File::parse(bytes, elf::Input::Bytes(bytes))?.btf()?.ok_or(Error::NoSuchFormat("BTF"))
}
