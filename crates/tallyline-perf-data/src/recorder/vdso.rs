//! The code that the kernel gives to each process, `[vdso]`: it is in no file, so it is read from this process.

use crate::file::BuildId;
use object::Object;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The largest size of a vDSO that is believed, in bytes.
const LIMIT: u64 = 1 << 20;

/// A copy of the vDSO, the ELF image that the kernel maps into every process, with its build-id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vdso {
    /// The build-id of the vDSO.
    pub(crate) build_id: BuildId,
    /// The bytes of the vDSO, an ELF file.
    pub(crate) bytes: Vec<u8>,
}

impl Vdso {
    /// Returns the build-id of the vDSO.
    #[inline]
    pub fn build_id(&self) -> BuildId {
        self.build_id
    }

    /// Returns the vDSO's bytes, an ELF file.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Copies the vDSO of this process, which all processes of the same word size share; `None` if there is none.
    pub fn own() -> Option<Self> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        Vdso::of_process("self", &range(&maps)?)
    }

    /// Copies the vDSO that a process, by its folder in `/proc`, has at a range; `None` if the process has ended or must
    /// not be read.
    pub(super) fn of_process(process: &str, range: &Range<u64>) -> Option<Self> {
        let len = range.end.checked_sub(range.start).filter(|len| *len <= LIMIT)?;
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        File::open(format!("/proc/{process}/mem")).ok()?.read_exact_at(&mut bytes, range.start).ok()?;
        let object = object::File::parse(&*bytes).ok()?;
        let build_id = BuildId::new(object.build_id().ok()??)?;
        Some(Self { build_id, bytes })
    }
}

/// Returns the vdso's range by `/proc/PID/maps`.
fn range(maps: &str) -> Option<Range<u64>> {
    let line = maps.lines().find(|line| line.ends_with(" [vdso]"))?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vdso_is_found_among_mappings() {
        let maps = "7f00-7f10 r--p 00000000 00:00 0    [vvar]\n7f10-7f12 r-xp 00000000 00:00 0    [vdso]\n";
        assert_eq!(range(maps), Some(0x7f10..0x7f12));
        assert_eq!(range(""), None);
    }
}
