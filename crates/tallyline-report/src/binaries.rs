//! Open programs of a profile's files, and the addresses in them.

use super::programs::Program;
use std::sync::Arc;
use tallyline_perf_data::spaces::{Dso, DsoId, DsoKind};

/// The programs and libraries in which a recording's samples are, each opened or with the reason why not.
#[derive(Default)]
pub(crate) struct Binaries {
    pub(super) list: Vec<Option<Result<Arc<Program>, String>>>,
}

impl Binaries {
    /// Returns the opened program (code, symbols, debug information) of a file in the recording; `None` if it was not
    /// needed or could not be opened.
    pub(crate) fn get(&self, dso: DsoId) -> Option<&Arc<Program>> {
        self.list.get(dso.position())?.as_ref()?.as_ref().ok()
    }

    /// Writes the functions whose machine code was decoded in this run to the programs' persistent caches, for the next
    /// run.
    pub(crate) fn keep_functions(&self) {
        self.list.iter().flatten().flatten().for_each(|program| program.image.keep_functions());
    }

    /// Returns the reason why a file of the recording (program, library, kernel) could not be opened; `None` if it was,
    /// or was not needed.
    pub(crate) fn why_not(&self, dso: DsoId) -> Option<&str> {
        self.list.get(dso.position())?.as_ref()?.as_ref().err().map(String::as_str)
    }
}

/// The map from a file's offsets to the addresses that the linker assigned.
pub(super) struct Addresses<'p> {
    kind: DsoKind,
    program: &'p Program,
    // how far the kernel was moved when it was started
    slide: u64,
}

impl<'p> Addresses<'p> {
    /// Returns those of a file, with its program.
    pub(super) fn of(dso: &Dso, program: &'p Program) -> Addresses<'p> {
        Addresses { kind: dso.kind(), program, slide: slide(dso, program) }
    }

    /// Returns the address of an offset.
    pub(super) fn at(&self, offset: u64) -> u64 {
        match self.kind {
            DsoKind::File | DsoKind::Vdso => self.program.image.address_of(offset).unwrap_or(offset),
            DsoKind::Kernel => offset.wrapping_sub(self.slide),
            _ => offset,
        }
    }
}

/// Returns the distance by which the kernel was relocated at boot.
fn slide(dso: &Dso, program: &Program) -> u64 {
    if dso.kind() != DsoKind::Kernel {
        return 0;
    }
    let Some((name, address)) = &dso.reference() else { return 0 };
    // it names a place, not a function
    program.symbols().address_of_symbol(name).map_or(0, |own| address.wrapping_sub(own))
}
