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
//! Debug files of stripped programs are the caller's to find and open, with [`locate::debug_file`] for
//! instance. Of C++ classes only data members, bases and static members are read.
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
pub use type_text::{element_text, keyword, qualified_type_text, type_text};

/// The most bytes that all compressed sections of one file may inflate to; a file that exceeds it is an error.
pub const INFLATED_LIMIT: u64 = 4 << 30;

/// A format of debug information that describes types: DWARF or BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// DWARF 2 to 5, in ELF.
    Dwarf,
    /// BTF, in ELF or alone.
    Btf,
}

/// The types to read from a file: all records (structs, classes, unions), those of some names or patterns, or the
/// enumerations with a given constant. Types that these need are read too.
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
    /// Selects all types with one of these names, for reading them from a file.
    pub fn named<N: Into<Vec<u8>>>(names: impl IntoIterator<Item = N>) -> Wanted {
        Wanted::Named(names.into_iter().map(Into::into).collect())
    }
}

/// The amount to read of types that others only point to: their names, what C declarations need, or everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointerTargets {
    /// Only the names of the types.
    #[default]
    Names,
    /// Also the types that typedefs stand for, and the constants of enumerations, as declarations in C need them.
    Declarations,
    /// Everything, so also the targets of their own pointers.
    Contents,
}

/// The parameters of reading types from a file: which types, from which compilation units and debug format, and which
/// details of them.
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
    /// Of records, also those at the top of a unit, in namespaces and in other records that only a typedef names
    /// (`typedef struct { … } name`): the typedef is listed. Of BTF all typedefs are.
    pub typedefs: bool,
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
    /// `true` to read the types of [`Wanted::Named`] once for each file and line that declares them, also those that
    /// are made of the same. Needs `positions`.
    pub each_place: bool,
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
            typedefs: false,
            exact: false,
            pointer_targets: PointerTargets::default(),
            sizes_only: false,
            shallow: false,
            positions: false,
            each_place: false,
        }
    }
}

/// Returns `true` if the bytes start with the magic number of ELF or BTF, the formats that this crate reads.
pub fn is_readable(bytes: &[u8]) -> bool {
    elf::is_elf(bytes) || btf::is_btf(bytes)
}

/// Reads the requested types from the DWARF or BTF of an ELF file in memory, or from raw BTF. Types in companion files
/// (`.dwo`, `.dwp`, dwz's alternate file) are left out, with a warning; [`read_with`] reads those too.
pub fn read(bytes: &[u8], request: &Request) -> Result<Types> {
    read_with(bytes, request, &NoCompanions)
}

/// Reads the requested types from the DWARF or BTF of an ELF file in memory, or from raw BTF, and from the companion
/// files (`.dwo`, `.dwp`, dwz's alternate file) that `companions` finds.
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

/// Reads the requested types from an open ELF file or raw BTF, and from its companion files (`.dwo`, `.dwp`, dwz's
/// alternate file). Only the ELF sections that are needed are read, which takes a third of the memory of [`read_with`]
/// for a kernel.
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

/// Opens the DWARF of a file, with line tables, and of the companion files (`.dwo`, `.dwp`, dwz's alternate file) that
/// `companions` finds, and calls `each` with it, to read functions, variables and scopes. Returns the closure's result
/// and warnings about missing companion files.
pub(crate) fn with_debug_info<T>(
    file: &std::fs::File,
    companions: &dyn Companions,
    each: impl FnOnce(&DebugInfo<'_, '_>) -> Result<T>,
) -> Result<(T, Vec<String>)> {
    let headers = object::ReadCache::new(file);
    with_debug_info_of_elf(&elf::File::parse(&headers, elf::Input::File(file))?, companions, true, each)
}

/// Opens the DWARF of a file, without line tables, and of the companion files (`.dwo`, `.dwp`, dwz's alternate file)
/// that `companions` finds, and calls `each` with it, to read functions, variables and types. Returns the closure's
/// result and warnings about missing companion files.
pub fn with_debug_info_without_lines<T>(
    file: &std::fs::File,
    companions: &dyn Companions,
    each: impl FnOnce(&DebugInfo<'_, '_>) -> Result<T>,
) -> Result<(T, Vec<String>)> {
    let headers = object::ReadCache::new(file);
    with_debug_info_of_elf(&elf::File::parse(&headers, elf::Input::File(file))?, companions, false, each)
}

/// Opens the DWARF of an ELF file in memory, with the companion files (`.dwo`, `.dwp`, dwz's alternate file) that
/// `companions` finds, and calls `each` with it, to read functions, variables and types. Returns the closure's result
/// and warnings about missing companion files.
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

/// Reads the requested types from an open ELF file or raw BTF, and from its companion files (`.dwo`, `.dwp`, dwz's
/// alternate file), and calls `each` with one part after the other in the order of the file, until it breaks. Each part
/// is a [`Types`] of its own that the reader does not keep, so a file with a million types takes the memory of a few
/// thousand.
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

/// Returns the formats of debug information that a file has, DWARF first. Reads only its headers.
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

/// A stripped file's reference to its separate debug file: build-id, name, and CRC-32 checksum, each if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DebugFileRef {
    /// The build-id; the debug file has the same.
    pub(crate) build_id: Option<Vec<u8>>,
    /// The name of the debug file.
    pub(crate) link: Option<Vec<u8>>,
    /// The checksum (CRC-32) of the debug file.
    pub(crate) checksum: Option<u32>,
}

/// Reads a stripped ELF file's reference to its separate debug file; its fields are `None` if the file has no such
/// reference. An error if the file is not ELF.
pub(crate) fn debug_file_ref(file: &std::fs::File) -> Result<DebugFileRef> {
    elf::File::parse(&object::ReadCache::new(file), elf::Input::File(file))?.debug_file_ref()
}

/// Reads an ELF file's build-id; `None` if it has none. An error if the file is not ELF.
pub fn build_id(file: &std::fs::File) -> Result<Option<Vec<u8>>> {
    Ok(debug_file_ref(file)?.build_id)
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

/// Reads the types of a BTF that extends a base BTF, as a kernel module's extends the kernel's. Both are raw or in ELF
/// files.
pub fn read_with_base(bytes: &[u8], base: &[u8], request: &Request) -> Result<Types> {
    btf::read(&raw_btf(bytes)?, Some(&raw_btf(base)?), request)
}

/// Reads the functions and global variables that a BTF describes, raw or in an ELF file. The ids of their types are
/// those that [`read`] gives for the whole of that BTF.
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
