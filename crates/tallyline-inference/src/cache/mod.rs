//! A cache of type tables between runs.
//!
//! The outcome of an instruction depends on the program alone, so it is not computed again for each report. Functions
//! are cached by unit because their types are read unit by unit: a unit with functions that are not cached yet is
//! analysed again together with those that are, and the answers equal those without a cache.

mod file;
mod part;
#[cfg(test)]
mod tests;

use super::Debug;
use super::query::{AddressQuery, analyse};
use super::table::TypeTable;
use crate::code::Image;
use crate::error::{Error, Result};
pub use crate::store::Store;
use file::CachedTables;
use tallyline_debuginfo::Companions;

/// Parses the index of a cache file of inferred types, for fuzzing: returns `true` if it is well-formed, whatever
/// program it is for.
#[doc(hidden)]
pub fn read_index(index: &[u8]) -> bool {
    use tallyline_debuginfo::model::Unpacker;
    let stamp = Unpacker::new(index).bytes().unwrap_or_default();
    let kept = CachedTables::parse(index, stamp, u64::MAX);
    kept.is_some_and(|kept| kept.missing(&[0, 1 << 20, u64::MAX]).len() < 4)
}

/// Parses the cached type table of one compilation unit with a single function, for fuzzing; returns `true` if it
/// is well-formed.
#[doc(hidden)]
pub fn read_part(bytes: &[u8]) -> bool {
    let ranges = vec![std::iter::once(0..16).collect()];
    let part = part::unpack(0, bytes, &ranges, |_| true);
    part.is_some_and(|part| TypeTable::join(vec![part], Vec::new(), Vec::new()).is_ok())
}

/// Infers the types of memory operands from DWARF as [`infer_queries`](super::infer_queries) does, reading results
/// of earlier runs from `store` and writing new ones to it. Debug information is opened only for functions that are
/// not in the store. Results are not stored if a part of the debug information was missing.
pub fn infer_cached(
    image: &Image,
    debug: Debug<'_>,
    companions: &dyn Companions,
    asked: &mut dyn Iterator<Item = AddressQuery>,
    store: &dyn Store,
) -> Result<TypeTable, Error> {
    image.check_decodable()?;
    let request = Request { image, debug, companions, store };
    let mut all = AddressQuery::default();
    let mut noted = asked.inspect(|asked| all.add(asked));
    match request.answer(&CachedTables::open(store), &mut noted)? {
        Some(table) => Ok(table),
        // what is kept turned out to be damaged
        None => {
            noted.by_ref().for_each(drop);
            Ok(request.answer(&CachedTables::default(), &mut std::iter::once(all))?.unwrap_or_default())
        }
    }
}

struct Request<'r> {
    image: &'r Image,
    debug: Debug<'r>,
    companions: &'r dyn Companions,
    store: &'r dyn Store,
}

impl Request<'_> {
    /// Takes what is kept, and finds the rest. None where what is kept is damaged.
    fn answer(
        &self,
        kept: &CachedTables,
        asked: &mut dyn Iterator<Item = AddressQuery>,
    ) -> Result<Option<TypeTable>> {
        let (mut all, mut sought) = (AddressQuery::default(), Vec::new());
        // what of each is not kept; variables are kept together
        let mut missing = asked.map(|asked| {
            all.add(&asked);
            let data = if kept.has_data(&asked.data) { Vec::new() } else { asked.data };
            sought.extend(&data);
            AddressQuery { code: kept.missing(&asked.code), data }
        });
        let (mut found, mut outside, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(first) = missing.find(|missing| !missing.is_empty()) {
            let mut missing = std::iter::once(first).chain(missing);
            let also = |unit| kept.entries(unit).collect();
            ((found, outside), warnings) = self
                .debug
                .with_debug_info(self.companions, |info| Ok(analyse(self.image, info, &mut missing, also)))?;
            drop(missing);
            sought.sort_unstable();
            sought.dedup();
            if warnings.is_empty()
                && let Some(file) = kept.with(self.store.stamp(), &found, &outside, &sought)
            {
                self.store.keep(&file);
            }
        }
        all.sort();
        let Some((parts, known_outside)) = kept.parts(&all.code, &found) else { return Ok(None) };
        outside.extend(known_outside);
        for part in &mut found {
            part.retain(&all.code);
        }
        found.extend(parts);
        if sought.is_empty() && !all.data.is_empty() {
            let Some(part) = kept.variables() else { return Ok(None) };
            found.push(part);
        }
        // as one analysis has them
        found.sort_by_key(|part| part.unit);
        TypeTable::join(found, outside, warnings).map(Some)
    }
}

/// The file extensions of the two cache files that type inference keeps of a program: its type tables, and its decoded
/// functions.
pub const EXTENSIONS: [&str; 2] = ["types", "code"];

/// Returns the names of the two cache files that type inference keeps of the program with this build-id: type tables,
/// and decoded functions.
pub fn files_of_build(build_id: &[u8]) -> [String; 2] {
    let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    EXTENSIONS.map(|extension| format!("{id}.{extension}"))
}
