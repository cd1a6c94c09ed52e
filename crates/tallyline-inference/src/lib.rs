//! Data types of memory operands: from machine code and debug information to the type and field of each access.
//!
//! [`infer()`] analyses functions in parallel and fills a [`TypeTable`] with one [`Outcome`] for each instruction that
//! touches memory. A function is analysed as a whole: variables at the locations that debug information gives, loads
//! through them, calls, and the edges between basic blocks. [`code`] decodes programs into functions, basic blocks and
//! machine-independent effects.
//!
//! # Cost
//! Units without a queried address are not opened, except for variables at fixed addresses, which are looked up once in
//! all units if the unit itself has none. Memory is proportional to the types that were touched.
//!
//! # Guarantees
//! Programs may be truncated, corrupt or malicious: no panic, no endless loop, bounded memory.

mod analysis;
mod base_loads;
mod btf;
pub mod cache;
mod callees;
mod candidates;
mod catalog;
pub mod code;
mod error;
mod evidence;
mod explain;
mod field;
mod fixpoint;
mod globals;
mod go_runtime;
mod inject;
mod join;
mod lookup;
mod nodes;
mod operand;
mod outcome;
mod query;
mod store;
mod strided_value;
mod table;
mod tag_facts;
mod tags;
mod thread_local;
mod transfer;
mod value;
mod value_number;
mod vector;

pub use base_loads::base_loads;
pub use btf::infer_by_btf;
pub use error::Error;
pub(crate) use error::Result;
pub use evidence::effective_address;
pub use explain::{Explanation, Step};
pub use field::members_of;
pub use field::{field_path, place_in_node_text, place_text};
pub use outcome::{Outcome, Pseudo, Reason, Typed, Within};
pub use query::AddressQuery;
pub use table::{Function as TableFunction, TypeTable};

use crate::code::{Body, Image};
use analysis::Analysis;
use catalog::Catalog;
use globals::Globals;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::fs::File;
use table::Part;
use tallyline_debuginfo::program::Function;
use tallyline_debuginfo::program::UnitCache;
use tallyline_debuginfo::{Companions, DebugInfo};

/// The functions of a program to analyse: all, or those that contain given addresses.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'w> {
    /// All functions that debug information describes.
    All,
    /// The functions that contain one of these addresses.
    At(&'w [u64]),
}

/// The DWARF that types are read from: an open file, or bytes in memory.
#[derive(Clone, Copy, Debug)]
pub enum Debug<'d> {
    /// An open file: the program, or its separate debug file.
    File(&'d File),
    /// The bytes of such a file.
    Bytes(&'d [u8]),
}

impl Debug<'_> {
    fn with_debug_info<T>(
        self,
        companions: &dyn Companions,
        each: impl FnOnce(&DebugInfo<'_, '_>) -> Result<T, tallyline_debuginfo::Error>,
    ) -> Result<(T, Vec<String>)> {
        Ok(match self {
            Debug::File(file) => tallyline_debuginfo::with_debug_info_without_lines(file, companions, each)?,
            Debug::Bytes(bytes) => tallyline_debuginfo::with_debug_info_of_bytes(bytes, companions, each)?,
        })
    }
}

/// Infers the type and field that each instruction with a memory operand accesses, from a program's code and DWARF.
///
/// Fails without DWARF or if its headers are damaged; damage inside a unit only costs the types of that unit.
pub fn infer(
    image: &Image,
    debug: Debug<'_>,
    companions: &dyn Companions,
    wanted: Wanted<'_>,
) -> Result<TypeTable, Error> {
    image.check_decodable()?;
    let ((parts, outside), warnings) = debug.with_debug_info(companions, |info| {
        Ok(match wanted {
            Wanted::All => (all(image, info), Vec::new()),
            Wanted::At(addresses) => {
                let asked = AddressQuery { code: addresses.to_vec(), data: Vec::new() };
                query::analyse(image, info, &mut std::iter::once(asked), |_| Vec::new())
            }
        })
    })?;
    TypeTable::join(parts, outside, warnings)
}

/// Infers the types of the memory operands at the code addresses in a stream of queries, and the variables at their
/// data addresses ([`TypeTable::variable_at`]). Analysis starts with the first query; the result equals that of one
/// query with all addresses.
pub fn infer_queries(
    image: &Image,
    debug: Debug<'_>,
    companions: &dyn Companions,
    asked: &mut dyn Iterator<Item = AddressQuery>,
) -> Result<TypeTable, Error> {
    image.check_decodable()?;
    let ((parts, outside), warnings) =
        debug.with_debug_info(companions, |info| Ok(query::analyse(image, info, asked, |_| Vec::new())))?;
    TypeTable::join(parts, outside, warnings)
}

/// Explains how the type of the memory operand of the instruction at an address is inferred; `None` if no function
/// contains the address.
pub fn explain(
    image: &Image,
    debug: Debug<'_>,
    companions: &dyn Companions,
    address: u64,
) -> Result<Option<Explanation>, Error> {
    image.check_decodable()?;
    let (explanation, _) = debug.with_debug_info(companions, |info| {
        let globals = Globals::new(info);
        let Some(unit) = globals.unit_at(address) else { return Ok(None) };
        let mut catalog = Catalog::new(UnitCache::new(info));
        Ok(with_function(image, &globals, &mut catalog, unit, address, |analysis| analysis.explain(address)))
    })?;
    Ok(explanation.flatten())
}

/// Analyses all functions of a program.
fn all(image: &Image, info: &DebugInfo<'_, '_>) -> Vec<Part> {
    let globals = Globals::new(info);
    info.units().par_iter().map(|unit| unit_part(image, info, &globals, *unit, None)).collect()
}

/// Analyses functions of one unit.
fn unit_part(
    image: &Image,
    info: &DebugInfo<'_, '_>,
    globals: &Globals<'_>,
    unit: usize,
    addresses: Option<Vec<u64>>,
) -> Part {
    let mut catalog = Catalog::new(UnitCache::new(info));
    let mut part = Part::of_unit(unit);
    let Some(opened) = catalog.units.as_mut().and_then(|units| units.unit(unit)) else {
        part.outside = addresses.unwrap_or_default();
        return part;
    };
    let mut wanted: Vec<usize> = match addresses {
        None => (0..opened.functions.len()).collect(),
        Some(addresses) => addresses
            .iter()
            .filter_map(|address| {
                let function = opened.function_at(*address);
                if function.is_none() {
                    part.outside.push(*address);
                }
                function
            })
            .collect(),
    };
    wanted.sort_unstable();
    wanted.dedup();
    let is_assembly = ASSEMBLY.contains(&opened.language());
    for index in wanted {
        let entry = opened.functions[index].entry();
        with_function(image, globals, &mut catalog, unit, entry, |analysis| {
            let mut found = analysis.outcomes();
            if is_assembly {
                let all = found.rows.iter_mut().chain(&mut found.seconds);
                all.for_each(|(_, outcome)| without_types(outcome));
            }
            part.add(&analysis.function.name, &opened.functions[index].ranges, &found.rows);
            part.seconds.append(&mut found.seconds);
        });
    }
    part.finish(catalog);
    part
}

/// The DWARF language codes of assembly: the vendor code and that of version 5 on.
const ASSEMBLY: [u64; 2] = [0x8001, 0x31];

/// Replaces the reason of an untyped outcome: assemblers write lines and names, but no types.
fn without_types(outcome: &mut Outcome) {
    if let Outcome::Untyped(_) = outcome {
        *outcome = Outcome::Untyped(Reason::NoDebugInformation);
    }
}

/// Analyses the function of a unit that contains an address, and passes the result to `each`.
fn with_function<T>(
    image: &Image,
    globals: &Globals<'_>,
    catalog: &mut Catalog<'_, '_, '_>,
    unit: usize,
    address: u64,
    each: impl FnOnce(&mut Analysis<'_, '_, '_, '_>) -> T,
) -> Option<T> {
    let units = catalog.units.as_mut()?;
    let unit = units.unit(unit)?;
    let index = unit.function_at(address)?;
    let function = Function::read(units, &unit, index);
    let subprogram = &unit.functions[index];
    let body = Body::decode(image, &subprogram.ranges, subprogram.entry());
    let none = FxHashMap::default();
    let mut analysis = Analysis::new(image, &body, &function, Some(unit.clone()), globals, catalog, &none);
    analysis.seed_goroutine();
    analysis.run();
    Some(each(&mut analysis))
}
