//! A kernel from its BTF alone: prototypes say what functions get and give back, and what is at
//! addresses; everything else follows from the code.

use super::Wanted;
use super::analysis::Analysis;
use super::catalog::Catalog;
use super::globals::Globals;
use super::table::{Part, TypeTable};
use super::value::Value;
use crate::code::{Body, Image, Machine, Register, Symbol};
use crate::error::{Error, Result};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use tallyline_debuginfo::model::{Type, TypeId};
use tallyline_debuginfo::program::Function;
use tallyline_debuginfo::{Request, Symbols};

/// The number of functions per task; each task has its own copy of the types.
const FUNCTIONS: usize = 4096;

/// Infers the type and field of each memory operand of a program from BTF instead of DWARF. `btf` is raw or in an
/// ELF file; the code ranges of functions and the addresses of variables come from the image's symbols.
pub fn infer_by_btf(image: &Image, btf: &[u8], wanted: Wanted<'_>) -> Result<TypeTable, Error> {
    image.check_decodable()?;
    let symbols = tallyline_debuginfo::symbols(btf)?;
    let prototypes = prototypes(image, &symbols);
    let parts = Split::new(image);
    let mut outside = Vec::new();
    let functions: Vec<&Symbol> = match wanted {
        Wanted::All => image.functions().iter().filter(|symbol| parts.main_of(symbol).is_none()).collect(),
        Wanted::At(addresses) => {
            let mut seen = FxHashSet::default();
            let mut found = Vec::new();
            for address in addresses {
                let symbol = image.function_at(*address);
                match symbol.map(|symbol| parts.main_of(symbol).unwrap_or(symbol)) {
                    Some(function) if seen.insert(function.address) => found.push(function),
                    Some(_) => {}
                    None => outside.push(*address),
                }
            }
            found
        }
    };
    let parts: Vec<Result<Part>> = functions
        .par_chunks(FUNCTIONS)
        .map(|functions| {
            let request = Request { format: Some(tallyline_debuginfo::Format::Btf), ..Request::default() };
            let mut catalog = Catalog::whole(tallyline_debuginfo::read(btf, &request)?);
            let globals = Globals::by_type(variables(image, &symbols));
            let mut part = Part::default();
            for function in functions {
                analyse(
                    image,
                    (function, parts.cold_of(function)),
                    &globals,
                    &mut catalog,
                    &prototypes,
                    &mut part,
                );
            }
            part.finish(catalog);
            Ok(part)
        })
        .collect();
    let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
    TypeTable::join(parts, outside, Vec::new())
}

fn analyse(
    image: &Image,
    (symbol, cold): (&Symbol, Option<&Symbol>),
    globals: &Globals<'_>,
    catalog: &mut Catalog<'_, '_, '_>,
    prototypes: &FxHashMap<u64, TypeId>,
    part: &mut Part,
) {
    let ranges: Vec<Range<u64>> =
        std::iter::once(symbol).chain(cold).map(|symbol| range_of(image, symbol)).collect();
    let body = Body::decode(image, &ranges, symbol.address);
    let function = Function { name: symbol.name.to_string(), ..Function::default() };
    let at_entry = prototypes.get(&symbol.address).map_or(Vec::new(), |ty| arguments(image, catalog, *ty));
    let mut analysis = Analysis::new(image, &body, &function, None, globals, catalog, prototypes);
    analysis.at_entry = at_entry;
    analysis.run();
    let mut found = analysis.outcomes();
    part.add(&symbol.name, &ranges, &found.rows);
    part.seconds.append(&mut found.seconds);
}

/// Returns the code of a symbol; where the file does not say how much, up to the next.
fn range_of(image: &Image, symbol: &Symbol) -> Range<u64> {
    let end = match symbol.size {
        0 => image.region(symbol.address).map_or(symbol.address, |region| {
            let after = image.functions().partition_point(|function| function.address <= symbol.address);
            let next = image.functions().get(after).map_or(u64::MAX, |next| next.address);
            region.address.saturating_add(region.size).min(next)
        }),
        size => symbol.address.saturating_add(size),
    };
    symbol.address..end
}

/// The suffix of the symbol of a function's cold part, which compilers move out of line.
const COLD: &str = ".cold";

/// Functions that are split into a main and a cold part. Symbols whose name is ambiguous are left out.
#[derive(Default)]
struct Split<'s> {
    // each part by the address of the other
    cold: FxHashMap<u64, &'s Symbol>,
    main: FxHashMap<u64, &'s Symbol>,
}

impl<'s> Split<'s> {
    fn new(image: &'s Image) -> Split<'s> {
        let mut by_name: FxHashMap<&str, Option<&Symbol>> = FxHashMap::default();
        for symbol in image.functions() {
            by_name.entry(&*symbol.name).and_modify(|known| *known = None).or_insert(Some(symbol));
        }
        let mut split = Split::default();
        for (name, cold) in &by_name {
            if let (Some(main), Some(cold)) = (name.strip_suffix(COLD), cold)
                && let Some(Some(main)) = by_name.get(main)
            {
                split.cold.insert(main.address, cold);
                split.main.insert(cold.address, main);
            }
        }
        split
    }

    fn cold_of(&self, main: &Symbol) -> Option<&'s Symbol> {
        self.cold.get(&main.address).copied()
    }

    fn main_of(&self, cold: &Symbol) -> Option<&'s Symbol> {
        self.main.get(&cold.address).copied()
    }
}

/// Returns the values of a function's argument registers at entry, from its prototype.
fn arguments(image: &Image, catalog: &mut Catalog<'_, '_, '_>, prototype: TypeId) -> Vec<(Register, Value)> {
    let registers: &[u8] = match image.machine() {
        Machine::X86_64 => &[5, 4, 1, 2, 8, 9],
        Machine::Aarch64 => &[0, 1, 2, 3, 4, 5, 6, 7],
        Machine::Other => &[],
    };
    let mut free = registers.iter().copied().map(Register);
    let prototype = catalog.strip(prototype);
    let Type::Function(function) = catalog.types().get(prototype) else { return Vec::new() };
    let function = catalog.types().function(function);
    let parameters: Vec<TypeId> = catalog.types().parameters(function).iter().map(|item| item.ty).collect();
    let mut found = Vec::new();
    for ty in parameters {
        let size = catalog.size(ty);
        if size > 16 {
            // passed on the stack
            continue;
        }
        for word in 0..size.div_ceil(8).max(1) {
            let Some(register) = free.next() else { return found };
            let value = catalog.value(ty, word * 8, 8, &[]);
            found.push((register, value));
        }
    }
    found
}

fn prototypes(image: &Image, symbols: &Symbols) -> FxHashMap<u64, TypeId> {
    let by_name: FxHashMap<&[u8], TypeId> =
        symbols.functions.iter().map(|(name, ty)| (name.as_slice(), *ty)).collect();
    let of = |symbol: &Symbol| Some((symbol.address, *by_name.get(symbol.name.as_bytes())?));
    image.functions().iter().filter_map(of).collect()
}

fn variables(image: &Image, symbols: &Symbols) -> Vec<(u64, TypeId)> {
    let by_name: FxHashMap<&[u8], TypeId> =
        symbols.variables.iter().map(|(name, ty)| (name.as_slice(), *ty)).collect();
    let of = |symbol: &Symbol| Some((symbol.address, *by_name.get(symbol.name.as_bytes())?));
    image.data().iter().filter_map(of).collect()
}
