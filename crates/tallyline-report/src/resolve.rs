//! The resolution of addresses to files, symbols and source lines.

use super::ahead::EagerAnalysis;
use super::binaries::{Addresses, Binaries};
use super::demangle::demangle;
use super::index::SymbolId;
use super::keys::Needs;
use super::lines;
use super::names::{NameId, Names};
use super::places::Place;
use super::profile::{Profile, Symbol};
use super::programs::Programs;
use super::samples::{LoadedSamples, LocatedSamples, Samples, TypedSamples};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tallyline_perf_data::file::RecordSource;
use tallyline_perf_data::jit::JitMap;
use tallyline_perf_data::spaces::{Dso, DsoId, DsoKind};

impl LoadedSamples {
    /// Builds a profile from loaded samples: opens the programs and looks up what `needs` says (symbols, lines, types,
    /// …). `records`, the recording that the samples come from, is read again only for registers that decide types;
    /// `ahead` is an analysis that began while it was read. With `correct_skid`, samples of imprecise events are
    /// charged to the instruction that caused them.
    pub(crate) fn resolve(
        self,
        records: &dyn RecordSource,
        programs: &dyn Programs,
        needs: Needs,
        correct_skid: bool,
        ahead: Option<&mut EagerAnalysis<'_, '_>>,
    ) -> Profile {
        let located = self.locate(programs, needs, ahead.as_deref());
        let typed = match needs.types {
            true => super::join::join(located, records, needs, correct_skid, ahead),
            false => located.untyped(),
        };
        typed.look_up(programs, needs)
    }

    /// Opens the programs that are needed, and finds the linked address of each place.
    fn locate(
        self,
        programs: &dyn Programs,
        needs: Needs,
        ahead: Option<&EagerAnalysis<'_, '_>>,
    ) -> LocatedSamples {
        let LoadedSamples { mut samples, returns, branches } = self;
        let binaries = samples.open(programs, needs, ahead);
        let all: Vec<Option<Addresses<'_>>> = samples.addresses(&binaries);
        let addresses = samples.places.iter().map(|(_, place)| address(&all, place)).collect();
        let data_addresses = samples.data.places().iter().map(|place| address(&all, place)).collect();
        drop(all);
        samples.places.set_addresses(addresses);
        samples.data.set_linked_addresses(data_addresses);
        LocatedSamples { samples, returns, branches, binaries }
    }
}

impl TypedSamples {
    /// Looks up functions, variables and lines, as far as they are needed.
    fn look_up(self, programs: &dyn Programs, needs: Needs) -> Profile {
        let TypedSamples { mut samples, binaries, charges, operands } = self;
        let mut finder = Finder::new(programs, &binaries, &samples.dsos, &mut samples.names);
        if needs.symbols {
            let places = samples.places.linked();
            let symbols = places.map(|(_, place, address)| finder.find(place, address, false)).collect();
            samples.places.set_symbols(symbols);
        }
        if needs.data_symbols {
            let data = samples.data.with_addresses();
            let symbols = data.map(|(place, address)| finder.find(place, address, true)).collect();
            samples.data.set_symbols(symbols);
        }
        let symbols = finder.finish();
        if needs.lines {
            lines::look_up(&mut samples, &symbols, &binaries);
        }
        Profile { samples, charges, operands, symbols, binaries }
    }
}

impl Samples {
    fn open(&self, programs: &dyn Programs, needs: Needs, ahead: Option<&EagerAnalysis<'_, '_>>) -> Binaries {
        let mut wanted = FxHashSet::default();
        if needs.symbols || needs.lines || needs.types {
            wanted.extend(self.places.iter().filter_map(|(_, place)| place.dso));
        }
        if needs.data_symbols {
            wanted.extend(self.data.places().iter().filter_map(|place| place.dso));
        }
        let begun: Vec<_> = self.dsos.iter().map(|dso| ahead.and_then(|ahead| ahead.program(dso))).collect();
        let open = |((index, dso), begun): ((usize, &Dso), Option<_>)| {
            let has_file =
                matches!(dso.kind(), DsoKind::File | DsoKind::Kernel | DsoKind::Module | DsoKind::Vdso);
            (has_file && DsoId::from_position(index).is_some_and(|id| wanted.contains(&id)))
                .then(|| begun.unwrap_or_else(|| programs.open(dso).map(Arc::new)))
        };
        Binaries { list: self.dsos.par_iter().enumerate().zip(begun).map(open).collect() }
    }

    /// Returns the map from offsets to addresses of each file that is there.
    fn addresses<'p>(&self, binaries: &'p Binaries) -> Vec<Option<Addresses<'p>>> {
        let of = |(index, dso)| Some(Addresses::of(dso, binaries.get(DsoId::from_position(index)?)?));
        self.dsos.iter().enumerate().map(of).collect()
    }
}

/// Returns the address of a place as the linker gave it; where the file is not there, the offset.
fn address(all: &[Option<Addresses<'_>>], place: &Place) -> u64 {
    let addresses = place.dso.and_then(|dso| all.get(dso.position())?.as_ref());
    addresses.map_or(place.offset, |addresses| addresses.at(place.offset))
}

/// Makes symbols, each once.
struct Finder<'p> {
    programs: &'p dyn Programs,
    binaries: &'p Binaries,
    dsos: &'p [Dso],
    names: &'p mut Names,
    list: Vec<Symbol>,
    ids: FxHashMap<Symbol, SymbolId>,
    jits: FxHashMap<i32, Option<JitMap>>,
    kernel: Option<Option<JitMap>>,
    // the demangled name by the linker's
    demangled: FxHashMap<String, NameId>,
}

impl<'p> Finder<'p> {
    fn new(
        programs: &'p dyn Programs,
        binaries: &'p Binaries,
        dsos: &'p [Dso],
        names: &'p mut Names,
    ) -> Self {
        Finder {
            programs,
            binaries,
            dsos,
            names,
            list: Vec::new(),
            ids: FxHashMap::default(),
            jits: FxHashMap::default(),
            kernel: None,
            demangled: FxHashMap::default(),
        }
    }

    /// Returns the symbols that were found.
    fn finish(self) -> Vec<Symbol> {
        self.list
    }

    /// Returns the symbol at a place: a function, or a variable.
    fn find(&mut self, place: &Place, address: u64, is_data: bool) -> SymbolId {
        let dso = place.dso.and_then(|id| Some((id, self.dsos.get(id.position())?)));
        let found = dso.and_then(|(id, dso)| match dso.kind() {
            DsoKind::Anonymous if !is_data => self.jit(place),
            DsoKind::KernelSymbol => Some((0, self.names.intern(dso.path()))),
            kind => {
                let symbol = self.binaries.get(id).and_then(|program| {
                    let symbols = program.symbols();
                    if is_data { symbols.data_at(address) } else { symbols.function_at(address) }
                });
                match symbol {
                    Some(symbol) => Some((symbol.address(), self.name(symbol.name()))),
                    None if kind == DsoKind::Kernel => self.in_kernel(place.offset),
                    None => None,
                }
            }
        });
        let symbol = match found {
            Some((start, name)) => Symbol { dso: place.dso, start, mode: place.mode, name, is_known: true },
            None => {
                let name = self.names.intern(&format!("{address:#018x}"));
                Symbol { dso: place.dso, start: address, mode: place.mode, name, is_known: false }
            }
        };
        *self.ids.entry(symbol).or_insert_with(|| {
            self.list.push(symbol);
            SymbolId::of(self.list.len() - 1)
        })
    }

    fn name(&mut self, linkage: &str) -> NameId {
        if let Some(id) = self.demangled.get(linkage) {
            return *id;
        }
        let id = self.names.intern(&demangle(linkage));
        self.demangled.insert(linkage.to_owned(), id);
        id
    }

    fn jit(&mut self, place: &Place) -> Option<(u64, NameId)> {
        let (programs, pid) = (self.programs, place.pid?);
        let map = self.jits.entry(pid).or_insert_with(|| programs.jit(pid)).as_ref()?;
        let (name, offset) = map.find(place.offset)?;
        Some((place.offset - offset, self.names.intern(name)))
    }

    fn in_kernel(&mut self, address: u64) -> Option<(u64, NameId)> {
        let programs = self.programs;
        let map = self.kernel.get_or_insert_with(|| programs.kernel()).as_ref()?;
        let (name, offset) = map.find(address)?;
        Some((address - offset, self.names.intern(name)))
    }
}
