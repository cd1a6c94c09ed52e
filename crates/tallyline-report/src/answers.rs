//! Queries of a program's operand types.

use super::programs::Program;
use rustc_hash::FxHashMap;
use tallyline_inference::{self as infer, AddressQuery, TypeTable, Wanted};
use tallyline_perf_data::spaces::DsoId;

/// The answers to the queries of one program: the types of its instructions' operands.
pub(super) struct Answers {
    pub(super) table: TypeTable,
}

impl Answers {
    /// Returns the types of the operands of the program's instructions.
    pub(super) fn table(&self) -> &TypeTable {
        &self.table
    }
}

/// The answers of each program, by the file's index.
pub(super) type All = FxHashMap<DsoId, Result<Answers, String>>;

/// Answers queries about a program's addresses one by one.
pub(super) fn answers(
    program: &Program,
    asked: &mut dyn Iterator<Item = AddressQuery>,
) -> Result<Answers, String> {
    let table = match (&program.debug, &program.btf) {
        (Some(debug), _) => {
            let (image, file) = (&program.image, infer::Debug::File(&debug.file));
            let companions = debug.companions.as_ref();
            match &program.store {
                Some(store) => infer::cache::infer_cached(image, file, companions, asked, store.as_ref()),
                None => infer::infer_queries(image, file, companions, asked),
            }
        }
        (None, Some(btf)) => {
            let all: Vec<u64> = asked.flat_map(|asked| asked.code).collect();
            infer::infer_by_btf(&program.image, btf, Wanted::At(&all))
        }
        (None, None) => return Err("no debug information".to_owned()),
    };
    Ok(Answers { table: table.map_err(|error| error.to_string())? })
}
