//! A file of a traced program, with the types of the operands of the instructions that ran.

use crate::profile::{Cache, open};
use std::path::{Path, PathBuf};
use tallyline_inference::cache::infer_cached;
use tallyline_inference::{AddressQuery, Debug, TypeTable, infer_queries};
use tallyline_perf_data::spaces::{Dso, DsoKind};
use tallyline_report::programs::Program;

/// An instruction of a traced program or library, of which the accessed data type is to be inferred: its index in the
/// trace, its address in memory, and its offset in the file.
pub(crate) type TracedInstruction = (u32, u64, u64);

/// A program or library that a traced process mapped, with the inferred types of its memory accesses and variables.
pub(crate) struct TracedFile {
    pub(crate) program: Program,
    /// `None` without debug information.
    pub(crate) table: Option<TypeTable>,
    /// The difference between addresses in memory and those that the linker assigned.
    pub(crate) bias: u64,
}

impl TracedFile {
    /// Opens a program or library and infers the types that the given instructions access and the variables at the
    /// given data addresses. Results cached by build-id are reused.
    ///
    /// # Errors
    /// A text that says why the file cannot be read.
    pub(crate) fn open(
        path: &Path,
        symfs: Option<&Path>,
        cache: Option<&Cache>,
        found: &[TracedInstruction],
        data: &[u64],
    ) -> Result<TracedFile, String> {
        let dso = Dso::new(path.display().to_string(), DsoKind::File);
        let program = open(path, &dso, symfs)?;
        let image = program.image();
        if let Some(machine) = image.undecoded() {
            return Err(format!("code of {machine} is not decoded"));
        }
        let code = found.iter().filter_map(|(_, _, offset)| image.address_of(*offset)).collect();
        let bias = found
            .iter()
            .find_map(|(_, address, offset)| Some(address.wrapping_sub(image.address_of(*offset)?)))
            .unwrap_or(0);
        let data = data.iter().map(|address| address.wrapping_sub(bias));
        let data = data.filter(|address| program.symbols().data_at(*address).is_some()).collect();
        let asked = &mut std::iter::once(AddressQuery { code, data });
        let kept = cache.and_then(|cache| cache.of_build(image.build_id())).map(|[types, _]| types);
        let table = program.debug().as_ref().and_then(|debug| {
            let (file, companions) = (Debug::File(debug.file()), debug.companions());
            match kept {
                Some(kept) => infer_cached(image, file, companions, asked, &kept).ok(),
                None => infer_queries(image, file, companions, asked).ok(),
            }
        });
        Ok(TracedFile { program, table, bias })
    }
}

/// Returns the path of a program under the root folder `symfs`: in the same folders or, if it is not there,
/// directly in it. Without `symfs` it is the path itself.
pub(crate) fn under(symfs: Option<&Path>, path: &str) -> PathBuf {
    let path = Path::new(path);
    let Some(root) = symfs else { return path.to_path_buf() };
    let with = root.join(path.strip_prefix("/").unwrap_or(path));
    match path.file_name().map(|name| root.join(name)) {
        Some(without) if !with.exists() && without.exists() => without,
        _ => with,
    }
}
