//! References of an ELF file to other files that belong to it.

use super::{File, Part};
use crate::error::Result;
use crate::{DebugFileRef, INFLATED_LIMIT};
use object::{Object, ReadRef};
use std::sync::atomic::AtomicU64;

/// A debug file's reference to its alternate file, into which dwz moved debug information shared by several files: path
/// and build-id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alternate {
    /// The path of the alternate file, as the debug file has it.
    pub(crate) name: Vec<u8>,
    /// The identifier of the alternate file: its build-id, or its checksum in DWARF 5.
    pub(crate) build_id: Vec<u8>,
}

impl Alternate {
    /// Returns the path of dwz's alternate file as text for messages.
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }
}

impl<'a, R: ReadRef<'a>> File<'a, R> {
    /// Returns the identifier by which other files refer to this debug file: the checksum in it if dwz made the file,
    /// else its build-id; `None` if it has neither.
    pub(crate) fn id(&self) -> Result<Option<Vec<u8>>> {
        match self.supplementary()? {
            Some(Supplementary { itself: true, checksum, .. }) => Ok(Some(checksum)),
            _ => Ok(self.object.build_id()?.map(<[u8]>::to_vec)),
        }
    }

    /// Returns the reference of a stripped ELF file to its separate debug file: name and checksum from
    /// `.gnu_debuglink`, and the build-id.
    pub(crate) fn debug_file_ref(&self) -> Result<DebugFileRef> {
        let link = self.object.gnu_debuglink()?;
        Ok(DebugFileRef {
            build_id: self.object.build_id()?.map(<[u8]>::to_vec),
            link: link.map(|(name, _)| name.to_vec()),
            checksum: link.map(|(_, checksum)| checksum),
        })
    }

    /// Returns the debug file's reference to dwz's alternate file (`.gnu_debugaltlink` or DWARF 5's `.debug_sup`);
    /// `None` if it has none.
    pub(crate) fn alternate(&self) -> Result<Option<Alternate>> {
        if let Some((name, build_id)) = self.object.gnu_debugaltlink()? {
            return Ok(Some(Alternate { name: name.to_vec(), build_id: build_id.to_vec() }));
        }
        Ok(match self.supplementary()? {
            Some(Supplementary { itself: false, name, checksum }) => {
                Some(Alternate { name, build_id: checksum })
            }
            _ => None,
        })
    }

    fn supplementary(&self) -> Result<Option<Supplementary>> {
        let Some(section) = self.object.section_by_name(".debug_sup") else { return Ok(None) };
        let part: Part<'a> = self.part(&section)?;
        Ok(Supplementary::parse(&part.bytes(&AtomicU64::new(INFLATED_LIMIT))?))
    }
}

/// The contents of DWARF 5's section about a supplementary file.
#[derive(Debug, PartialEq, Eq)]
struct Supplementary {
    // whether this is the other file
    itself: bool,
    name: Vec<u8>,
    checksum: Vec<u8>,
}

impl Supplementary {
    /// Returns a version, whether this is the other file, its name, and a checksum with its length before.
    fn parse(section: &[u8]) -> Option<Supplementary> {
        let (&itself, rest) = section.get(2..)?.split_first()?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (name, rest) = rest.split_at(end);
        // a length above 127 bytes, which would take two, is of no checksum
        let (&length, checksum) = rest.get(1..)?.split_first()?;
        let checksum = checksum.get(..usize::from(length))?;
        Some(Supplementary { itself: itself != 0, name: name.to_vec(), checksum: checksum.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supplementary_file_is_named_with_its_checksum() {
        let expected = Supplementary { itself: false, name: b"a.sup".to_vec(), checksum: vec![1, 2] };
        assert_eq!(Supplementary::parse(b"\x05\0\0a.sup\0\x02\x01\x02"), Some(expected));
        let itself = Supplementary { itself: true, name: Vec::new(), checksum: vec![9] };
        assert_eq!(Supplementary::parse(b"\x05\0\x01\0\x01\x09"), Some(itself));
        for length in 0..12 {
            assert_eq!(Supplementary::parse(&b"\x05\0\0a.sup\0\x02\x01\x02"[..length]), None, "{length}");
        }
    }
}
