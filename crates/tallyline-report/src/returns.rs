//! Return addresses of samples, as places in files.
//!
//! A recording has one word of the stack for each sample, whatever it is: which samples are at a function's first
//! instruction, where it is the return address, is known when programs are open. Until then what is an address of
//! code is kept, and no more is.

use super::index::PlaceId;
use super::places::{PlaceCollector, place_of};
use rustc_hash::FxHashMap;
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::{AddressSpaces, DsoKind, ResolvedAddress};

/// The words of a recording's samples, and what has become of them.
pub(super) struct ReturnAddresses {
    // by sample; 0 where there is none
    words: Vec<u64>,
    // by process and word: as of which state of the address spaces, and the place if it is in code
    known: FxHashMap<(i32, u64), (u32, Option<PlaceId>)>,
    // the last one that was looked up: process, word, state
    last: Option<((i32, u64, u32), Option<PlaceId>)>,
    // points with places
    found: Vec<(u32, PlaceId)>,
}

impl ReturnAddresses {
    /// Takes the words of samples in the order of the file; those behind the end have none.
    pub(super) fn new(words: Vec<u64>) -> ReturnAddresses {
        ReturnAddresses { words, known: FxHashMap::default(), last: None, found: Vec::new() }
    }

    /// Notes the place that a sample of a point returns to, if its word is an address of code in a file. Of the
    /// process there is its number, and that of the state of the address spaces.
    pub(super) fn note(
        &mut self,
        sample: u32,
        point: u32,
        process: (i32, u32),
        spaces: &AddressSpaces,
        places: &mut PlaceCollector,
    ) {
        let Some(word) = self.words.get(sample as usize).copied().filter(|word| *word != 0) else { return };
        let (pid, state) = process;
        if let Some((key, place)) = self.last
            && key == (pid, word, state)
        {
            self.found.extend(place.map(|place| (point, place)));
            return;
        }
        let known = self.known.entry((pid, word)).or_insert((state.wrapping_sub(1), None));
        if known.0 != state {
            let location = spaces.resolve(pid, CpuMode::User, word);
            let is_file = |kind| matches!(kind, DsoKind::File | DsoKind::Vdso);
            let is_code =
                |found: &ResolvedAddress| found.is_executable() && is_file(spaces.dso(found.dso()).kind());
            let found = location.filter(is_code);
            let place = |found| places.intern(place_of(spaces, Some(found), pid, CpuMode::User, word));
            *known = (state, found.map(place));
        }
        self.last = Some(((pid, word, state), known.1));
        self.found.extend(known.1.map(|place| (point, place)));
    }

    /// Returns points with the places that they return to, one for each sample.
    pub(super) fn finish(self) -> Vec<(u32, PlaceId)> {
        self.found
    }
}
