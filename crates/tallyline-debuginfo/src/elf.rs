//! The ELF container: sections by name, inflated and relocated where needed.

mod checkpoints;
mod deflate;
mod input;
mod link;

pub(crate) use checkpoints::Checkpoints;
pub(crate) use input::Input;
pub(crate) use link::Alternate;

use self::checkpoints::{Inflated, Range};
use crate::INFLATED_LIMIT;
use crate::error::{Error, Result};
use crate::model::Target;
use object::{
    CompressedData, CompressedFileRange, Object, ObjectSection, ObjectSymbol, ReadRef, RelocationTarget,
};
use std::borrow::Cow;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns `true` if the bytes start with ELF's magic number.
pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// The naming scheme of a file's DWARF sections: plain (`.debug_info`), with `.dwo` suffix in split DWARF, or with the
/// `.gnu.debuglto_` prefix of LTO objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// `.debug_info`: a program, library or object file.
    Plain,
    /// `.debug_info.dwo`: what was split off from a program.
    Split,
    /// `.gnu.debuglto_.debug_info`: an object file that waits for its link-time optimisation.
    Lto,
}

impl Naming {
    fn name(self, section: gimli::SectionId) -> Option<Cow<'static, str>> {
        match self {
            Naming::Plain => Some(section.name().into()),
            Naming::Split => section.dwo_name().map(Cow::from),
            Naming::Lto => Some(format!(".gnu.debuglto_{}", section.name()).into()),
        }
    }
}

/// A parsed ELF file: its headers, and the source from which section contents are read on demand.
pub(crate) struct File<'a, R: ReadRef<'a>> {
    object: object::File<'a, R>,
    input: Input<'a>,
}

/// A section of an ELF file, not read yet: the source of its bytes, their compression, and the relocations to apply.
pub(crate) struct Part<'a> {
    input: Input<'a>,
    range: CompressedFileRange,
    relocations: Vec<PendingRelocation>,
    little_endian: bool,
}

/// A relocation that a linker would apply.
struct PendingRelocation {
    offset: usize,
    size: usize,
    value: u64,
    // whether what is there is a part of the value
    adds: bool,
}

impl<'a, R: ReadRef<'a>> File<'a, R> {
    /// Parses the headers of an ELF file. `headers` and `input` must be the same file, read by `object` and by this
    /// crate.
    pub(crate) fn parse(headers: R, input: Input<'a>) -> Result<File<'a, R>> {
        Ok(File { object: object::File::parse(headers)?, input })
    }

    /// Returns `true` if the ELF file's numbers are little-endian.
    pub(crate) fn is_little_endian(&self) -> bool {
        self.object.is_little_endian()
    }

    /// Returns the ELF file's machine (`e_machine`) and byte order.
    pub(crate) fn target(&self) -> Target {
        use object::read::elf::FileHeader;
        let machine = match &self.object {
            object::File::Elf32(file) => file.elf_header().e_machine(file.endian()).0,
            object::File::Elf64(file) => file.elf_header().e_machine(file.endian()).0,
            _ => 0,
        };
        Target { machine, big_endian: !self.is_little_endian() }
    }

    /// Returns the naming scheme of the ELF file's DWARF sections; `None` if it has no DWARF.
    pub(crate) fn naming(&self) -> Option<Naming> {
        [Naming::Plain, Naming::Split, Naming::Lto].into_iter().find(|naming| self.has_units(*naming))
    }

    /// Returns `true` if the ELF file has a `.debug_info` or `.debug_types` section under this naming scheme.
    pub(crate) fn has_units(&self, naming: Naming) -> bool {
        let has = |section| naming.name(section).is_some_and(|name| self.sections(&name).next().is_some());
        has(gimli::SectionId::DebugInfo) || has(gimli::SectionId::DebugTypes)
    }

    /// Returns `true` if the ELF file has a `.BTF` section.
    pub(crate) fn has_btf(&self) -> bool {
        self.object.section_by_name(".BTF").is_some()
    }

    /// Returns the contents of the ELF file's `.BTF` section; `None` if it has none.
    pub(crate) fn btf(&self) -> Result<Option<Cow<'a, [u8]>>> {
        match self.object.section_by_name(".BTF") {
            Some(section) => Ok(Some(self.part(&section)?.bytes(&AtomicU64::new(INFLATED_LIMIT))?)),
            None => Ok(None),
        }
    }

    /// Returns the ELF file's sections of one DWARF kind; object files have several `.debug_types`, one for each type
    /// unit.
    pub(crate) fn parts(&self, section: gimli::SectionId, naming: Naming) -> Result<Vec<Part<'a>>> {
        let Some(name) = naming.name(section) else { return Ok(Vec::new()) };
        self.sections(&name).map(|section| self.part(&section)).collect()
    }

    /// Returns `true` if linkers have merged the strings of this DWARF section of the ELF file, such as `.debug_str`
    /// (`SHF_MERGE` and `SHF_STRINGS`), so that equal strings have equal offsets; `false` for an object file.
    pub(crate) fn merges(&self, section: gimli::SectionId, naming: Naming) -> bool {
        const MERGED_STRINGS: u64 = object::elf::SHF_MERGE.0 | object::elf::SHF_STRINGS.0;
        let is_linked = self.object.kind() != object::ObjectKind::Relocatable;
        let merges = |section: object::Section<'a, '_, R>| match section.flags() {
            object::SectionFlags::Elf { sh_flags, .. } => sh_flags.0 & MERGED_STRINGS == MERGED_STRINGS,
            _ => false,
        };
        is_linked && naming.name(section).is_some_and(|name| self.sections(&name).all(merges))
    }

    fn part(&self, section: &object::Section<'a, '_, R>) -> Result<Part<'a>> {
        Ok(Part {
            input: self.input,
            range: section.compressed_file_range()?,
            // in anything but an object file the linker has done it
            relocations: match self.object.kind() {
                object::ObjectKind::Relocatable => self.places(section),
                _ => Vec::new(),
            },
            little_endian: self.is_little_endian(),
        })
    }

    /// Returns the sections of a name, or of the old name of compressed ones.
    fn sections<'f>(&'f self, name: &str) -> impl Iterator<Item = object::Section<'a, 'f, R>> {
        let compressed = name.replacen(".debug_", ".zdebug_", 1);
        let name = name.to_string();
        self.object.sections().filter(move |section| {
            section.name().is_ok_and(|own| own == name || own == compressed) && section.size() != 0
        })
    }

    /// Returns the places that refer to other sections. Those that cannot be understood stay as they are, as
    /// they are addresses of code.
    fn places(&self, section: &object::Section<'a, '_, R>) -> Vec<PendingRelocation> {
        let place = |(offset, relocation): (u64, object::Relocation)| {
            let size = match relocation.size() {
                32 => 4,
                64 => 8,
                _ => return None,
            };
            let base = match relocation.target() {
                _ if relocation.kind() != object::RelocationKind::Absolute => return None,
                RelocationTarget::Symbol(index) => self.object.symbol_by_index(index).ok()?.address(),
                RelocationTarget::Section(_) | RelocationTarget::Absolute => 0,
                _ => return None,
            };
            let value = base.wrapping_add(relocation.addend() as u64);
            let adds = relocation.has_implicit_addend();
            Some(PendingRelocation { offset: usize::try_from(offset).ok()?, size, value, adds })
        };
        section.relocations().filter_map(place).collect()
    }
}

/// Reads these ELF sections, inflated and relocated, and concatenates them. `budget` is the number of bytes that may
/// still be inflated, and is reduced; an error if it is exceeded.
pub(crate) fn join<'a>(parts: &[Part<'a>], budget: &AtomicU64) -> Result<Cow<'a, [u8]>> {
    let Some((first, rest)) = parts.split_first() else { return Ok(Cow::Borrowed(&[])) };
    let mut data = first.bytes(budget)?;
    for part in rest {
        data.to_mut().extend_from_slice(&part.bytes(budget)?);
    }
    Ok(data)
}

impl<'a> Part<'a> {
    /// Creates an uncompressed section without relocations whose contents are the first `size` bytes of an input.
    #[cfg(test)]
    pub(crate) fn plain(input: Input<'a>, size: u64) -> Part<'a> {
        let format = object::CompressionFormat::None;
        let range = CompressedFileRange { format, offset: 0, compressed_size: size, uncompressed_size: size };
        Part { input, range, relocations: Vec::new(), little_endian: true }
    }

    /// Returns `true` if the ELF section's bytes are compressed in the file.
    pub(crate) fn is_compressed(&self) -> bool {
        self.range.format != object::CompressionFormat::None
    }

    /// Returns the ELF section's uncompressed size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.range.uncompressed_size
    }

    /// Opens the ELF section as a stream that inflates while it is read. Takes its size from `budget`, an error if that
    /// is exceeded. `None` if the section cannot be streamed, as it has relocations or an unknown compression.
    pub(crate) fn stream(&self, budget: &AtomicU64) -> Result<Option<Box<dyn Read + Send + 'a>>> {
        let CompressedFileRange { format, offset, compressed_size, uncompressed_size } = self.range;
        if !self.relocations.is_empty() {
            return Ok(None);
        }
        Ok(match format {
            object::CompressionFormat::None => Some(Box::new(self.input.pieces(offset, compressed_size)?)),
            object::CompressionFormat::Zlib => {
                self.charge(budget)?;
                let pieces = self.input.pieces(offset, compressed_size)?;
                let inflated = flate2::bufread::ZlibDecoder::new(pieces);
                Some(Box::new(Whole { inner: inflated.take(uncompressed_size), left: uncompressed_size }))
            }
            _ => None,
        })
    }

    /// Opens the ELF section as a stream from an uncompressed offset on, which resumes at the nearest of `checkpoints`
    /// (saved decompressor states) and adds new ones; `None` beyond the section's end, and where
    /// [`stream`](Self::stream) returns `None`.
    pub(crate) fn stream_from<'c>(
        &self,
        offset: u64,
        checkpoints: &'c Checkpoints,
    ) -> Result<Option<Box<dyn Read + Send + 'c>>>
    where
        'a: 'c,
    {
        let CompressedFileRange { format, offset: start, compressed_size, uncompressed_size } = self.range;
        if !self.relocations.is_empty() || offset > uncompressed_size {
            return Ok(None);
        }
        let left = uncompressed_size - offset;
        Ok(match format {
            object::CompressionFormat::None => {
                let start = start.saturating_add(offset);
                Some(Box::new(self.input.pieces(start, compressed_size.saturating_sub(offset))?))
            }
            object::CompressionFormat::Zlib => {
                let (input, compressed, inflated) = (self.input, compressed_size, uncompressed_size);
                let range = Range { input, start, compressed, inflated };
                let inflated = Inflated::new(range, offset, checkpoints)?;
                Some(Box::new(Whole { inner: inflated.take(left), left }))
            }
            _ => None,
        })
    }

    /// Returns `true` if the ELF section can be read directly from an open file at any offset: it is neither compressed
    /// nor relocated.
    pub(crate) fn is_in_place(&self) -> bool {
        !self.is_compressed() && self.relocations.is_empty() && matches!(self.input, Input::File(_))
    }

    /// Reads bytes of an uncompressed ELF section at an offset into a buffer; returns their number, which is less than
    /// the buffer's length at the section's end.
    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let left = self.size().saturating_sub(offset);
        let size = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let start = self.range.offset.checked_add(offset).ok_or(std::io::ErrorKind::UnexpectedEof)?;
        self.input.fill(start, &mut into[..size])?;
        Ok(size)
    }

    /// Takes what the bytes inflate to from a budget.
    fn charge(&self, budget: &AtomicU64) -> Result<()> {
        let CompressedFileRange { compressed_size, uncompressed_size, .. } = self.range;
        budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(uncompressed_size))
            .map_err(|_| Error::Limit { what: "bytes of compressed sections", limit: INFLATED_LIMIT })?;
        // no compressor makes more of debug information; a header that promises more lies
        let most = compressed_size.saturating_mul(1 << 15).max(1 << 20);
        if uncompressed_size > most {
            return Err(Error::Limit { what: "bytes of a compressed section of this length", limit: most });
        }
        Ok(())
    }

    /// Returns the bytes, inflated if they are compressed, within a budget.
    fn inflated(&self, budget: &AtomicU64) -> Result<Cow<'a, [u8]>> {
        let CompressedFileRange { format, offset, compressed_size, uncompressed_size } = self.range;
        if format == object::CompressionFormat::None {
            return self.input.take(offset, compressed_size);
        }
        self.charge(budget)?;
        if format == object::CompressionFormat::Zlib {
            // a piece at a time: what is compressed is not kept beside what comes of it
            let size = usize::try_from(uncompressed_size).map_err(|_| Error::Limit {
                what: "bytes of a compressed section",
                limit: usize::MAX as u64,
            })?;
            let mut bytes = vec![0; size];
            let pieces = self.input.pieces(offset, compressed_size)?;
            flate2::bufread::ZlibDecoder::new(pieces).read_exact(&mut bytes)?;
            return Ok(Cow::Owned(bytes));
        }
        let data = self.input.take(offset, compressed_size)?;
        let compressed = CompressedData { format, data: &data, uncompressed_size };
        Ok(Cow::Owned(compressed.decompress()?.into_owned()))
    }

    fn bytes(&self, budget: &AtomicU64) -> Result<Cow<'a, [u8]>> {
        let mut data = self.inflated(budget)?;
        for place in &self.relocations {
            let Some(end) = place.offset.checked_add(place.size).filter(|end| *end <= data.len()) else {
                continue;
            };
            let bytes = &mut data.to_mut()[place.offset..end];
            let there = if place.adds { load(bytes, self.little_endian) } else { 0 };
            store(bytes, self.little_endian, place.value.wrapping_add(there));
        }
        Ok(data)
    }
}

/// A stream that has to be so long.
struct Whole<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(into)?;
        self.left = self.left.saturating_sub(read as u64);
        if read == 0 && !into.is_empty() && self.left != 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(read)
    }
}

fn load(place: &[u8], little: bool) -> u64 {
    let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    if little { place.iter().rev().fold(0, fold) } else { place.iter().fold(0, fold) }
}

fn store(place: &mut [u8], little: bool, value: u64) {
    let bytes = value.to_le_bytes();
    for (index, byte) in bytes.iter().take(place.len()).enumerate() {
        let at = if little { index } else { place.len() - 1 - index };
        place[at] = *byte;
    }
}
