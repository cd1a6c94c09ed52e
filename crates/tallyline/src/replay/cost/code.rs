//! The code of a traced process, as its addresses were.

use crate::replay::traced_file::under;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use tallyline_inference::code::{Flow, Image, Operation, operation_at};
use tallyline_timing::Code;
use tallyline_trace::Trace;

/// The machine code of a traced process, decoded from the files that it had mapped.
pub(crate) struct ProcessCode<'t> {
    trace: &'t Trace<'t>,
    process: u32,
    images: BTreeMap<String, Image>,
}

impl<'t> ProcessCode<'t> {
    /// Opens the files that a traced process had mapped as code; `symfs` is another root to look under. Files that
    /// cannot be read add a line to `warnings`.
    pub(crate) fn open(
        trace: &'t Trace<'t>,
        process: u32,
        symfs: Option<&Path>,
        warnings: &mut Vec<String>,
    ) -> Self {
        let mut images = BTreeMap::new();
        // under emulation what is mapped as code may be only readable to the host
        let instructions = trace.instructions().iter();
        let mapped = instructions.filter_map(|instruction| trace.mapping_at(process, instruction.address()));
        let paths: BTreeSet<&str> = mapped.map(|(mapping, _)| mapping.path()).collect();
        for mapped in paths {
            let path = under(symfs, mapped);
            let image = File::open(&path)
                .map_err(|error| error.to_string())
                .and_then(|file| Image::read(&file).map_err(|error| error.to_string()));
            match image {
                Ok(image) => drop(images.insert(mapped.to_owned(), image)),
                Err(why) => warnings.push(format!("{}: {why}", path.display())),
            }
        }
        Self { trace, process, images }
    }
}

impl Code for ProcessCode<'_> {
    fn operation(&self, address: u64) -> Option<Operation> {
        let (mapping, offset) = self.trace.mapping_at(self.process, address)?;
        let image = self.images.get(mapping.path())?;
        let linked = image.address_of(offset)?;
        let operation = operation_at(image, linked)?;
        let bias = address.wrapping_sub(linked);
        let moved = |target: u64| target.wrapping_add(bias);
        let flow = match operation.flow {
            Flow::Jump(target) => Flow::Jump(target.map(moved)),
            Flow::Call(target) => Flow::Call(target.map(moved)),
            Flow::Branch(target) => Flow::Branch(moved(target)),
            other => other,
        };
        Some(Operation { end: moved(operation.end), flow, ..operation })
    }
}
