//! The resolution of a profile's addresses to files, symbols and source lines.

use super::ahead::EagerAnalysis;
use super::binaries::{Addresses, Binaries};
use super::demangle::demangle;
use super::keys::Needs;
use super::lines;
use super::names::NameId;
use super::profile::{NONE, Place, Profile, Symbol};
use super::programs::Programs;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tallyline_perf_data::file::RecordSource;
use tallyline_perf_data::jit::JitMap;
use tallyline_perf_data::spaces::{Dso, DsoKind};

impl Profile {
    /// Opens the programs, and looks up what is needed of each place. Each file is read once; of the
    /// records, which are those that it was loaded from, only those whose registers are looked at.
    /// With `correct_skid` samples of imprecise events are charged to the instruction before.
    pub fn resolve(
        &mut self,
        records: &dyn RecordSource,
        programs: &dyn Programs,
        needs: Needs,
        correct_skid: bool,
    ) -> Binaries {
        self.resolve_after(records, programs, needs, correct_skid, None)
    }

    /// Resolves with programs whose analysis began during loading.
    pub(super) fn resolve_after(
        &mut self,
        records: &dyn RecordSource,
        programs: &dyn Programs,
        needs: Needs,
        correct_skid: bool,
        ahead: Option<&mut EagerAnalysis<'_, '_>>,
    ) -> Binaries {
        let binaries = self.open(programs, needs, ahead.as_deref());
        let all: Vec<Option<Addresses<'_>>> = self.addresses(&binaries);
        let address = |place: &Place| address(&all, place);
        let addresses: Vec<u64> = self.places.iter().map(address).collect();
        let data_addresses = self.data.places().iter().map(address).collect();
        drop(all);
        self.data.set_linked(data_addresses);
        for (resolved, address) in self.resolved.iter_mut().zip(&addresses) {
            resolved.address = *address;
        }
        if needs.types {
            super::join::join(self, records, &binaries, correct_skid, ahead);
        }
        let mut finder = Finder::new(programs);
        if needs.symbols {
            for index in 0..self.places.len() {
                let (place, address) = (self.places[index], self.resolved[index].address);
                let symbol = finder.find(self, &binaries, &place, address, false);
                self.resolved[index].symbol = symbol;
            }
        }
        if needs.data_symbols {
            let mut data = std::mem::take(&mut self.data);
            data.look_up(|place, address| finder.find(self, &binaries, place, address, true));
            self.data = data;
        }
        if needs.lines {
            lines::look_up(self, &binaries);
        }
        binaries
    }

    fn open(&self, programs: &dyn Programs, needs: Needs, ahead: Option<&EagerAnalysis<'_, '_>>) -> Binaries {
        let mut wanted = FxHashSet::default();
        if needs.symbols || needs.lines || needs.types {
            wanted.extend(self.places.iter().map(|place| place.dso));
        }
        if needs.data_symbols {
            wanted.extend(self.data.places().iter().map(|place| place.dso));
        }
        let begun: Vec<_> = self.dsos.iter().map(|dso| ahead.and_then(|ahead| ahead.program(dso))).collect();
        let open = |((index, dso), begun): ((usize, &Dso), Option<_>)| {
            let has_file =
                matches!(dso.kind(), DsoKind::File | DsoKind::Kernel | DsoKind::Module | DsoKind::Vdso);
            (has_file && wanted.contains(&(index as u32)))
                .then(|| begun.unwrap_or_else(|| programs.open(dso).map(Arc::new)))
        };
        Binaries { list: self.dsos.par_iter().enumerate().zip(begun).map(open).collect() }
    }

    /// Returns the map from offsets to addresses of each file that is there.
    fn addresses<'p>(&self, binaries: &'p Binaries) -> Vec<Option<Addresses<'p>>> {
        let of = |(index, dso): (u32, _)| Some(Addresses::of(dso, binaries.get(index)?));
        (0..).zip(&self.dsos).map(of).collect()
    }
}

/// The address of a place as the linker gave it; where the file is not there, the offset.
fn address(all: &[Option<Addresses<'_>>], place: &Place) -> u64 {
    match all.get(place.dso as usize) {
        Some(Some(addresses)) => addresses.at(place.offset),
        _ => place.offset,
    }
}

/// Makes symbols, each once.
struct Finder<'p> {
    programs: &'p dyn Programs,
    ids: FxHashMap<Symbol, u32>,
    jits: FxHashMap<i32, Option<JitMap>>,
    kernel: Option<Option<JitMap>>,
    // the demangled name by the linker's
    demangled: FxHashMap<String, NameId>,
}

impl<'p> Finder<'p> {
    fn new(programs: &'p dyn Programs) -> Self {
        Finder {
            programs,
            ids: FxHashMap::default(),
            jits: FxHashMap::default(),
            kernel: None,
            demangled: FxHashMap::default(),
        }
    }

    /// The symbol at a place: a function, or a variable.
    fn find(
        &mut self,
        profile: &mut Profile,
        binaries: &Binaries,
        place: &Place,
        address: u64,
        is_data: bool,
    ) -> u32 {
        let kind = profile.dso(place.dso).map(|dso| dso.kind());
        let found = match kind {
            Some(DsoKind::Anonymous) if !is_data => self.jit(profile, place),
            Some(DsoKind::KernelSymbol) => {
                let name = profile.dso(place.dso).map_or_else(String::new, |dso| dso.path().to_owned());
                Some((0, profile.names.intern(&name)))
            }
            Some(_) => {
                let symbol = binaries.get(place.dso).and_then(|program| {
                    let symbols = program.symbols();
                    if is_data { symbols.data_at(address) } else { symbols.function_at(address) }
                });
                match symbol {
                    Some(symbol) => Some((symbol.address(), self.name(profile, symbol.name()))),
                    None if kind == Some(DsoKind::Kernel) => self.in_kernel(profile, place.offset),
                    None => None,
                }
            }
            None => None,
        };
        let symbol = match found {
            Some((start, name)) => Symbol { dso: place.dso, start, mode: place.mode, name, is_known: true },
            None => {
                let name = profile.names.intern(&format!("{address:#018x}"));
                Symbol { dso: place.dso, start: address, mode: place.mode, name, is_known: false }
            }
        };
        *self.ids.entry(symbol).or_insert_with(|| {
            profile.symbols.push(symbol);
            u32::try_from(profile.symbols.len() - 1).unwrap_or(NONE)
        })
    }

    fn name(&mut self, profile: &mut Profile, linkage: &str) -> NameId {
        if let Some(id) = self.demangled.get(linkage) {
            return *id;
        }
        let id = profile.names.intern(&demangle(linkage));
        self.demangled.insert(linkage.to_owned(), id);
        id
    }

    fn jit(&mut self, profile: &mut Profile, place: &Place) -> Option<(u64, NameId)> {
        let programs = self.programs;
        let map = self.jits.entry(place.pid).or_insert_with(|| programs.jit(place.pid)).as_ref()?;
        let (name, offset) = map.find(place.offset)?;
        Some((place.offset - offset, profile.names.intern(name)))
    }

    fn in_kernel(&mut self, profile: &mut Profile, address: u64) -> Option<(u64, NameId)> {
        let programs = self.programs;
        let map = self.kernel.get_or_insert_with(|| programs.kernel()).as_ref()?;
        let (name, offset) = map.find(address)?;
        Some((address - offset, profile.names.intern(name)))
    }
}
