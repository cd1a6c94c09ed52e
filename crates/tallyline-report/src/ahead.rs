//! Programs that are analysed while the recording is still being read: most functions that have samples
//! have some among the first.
//!
//! Whatever is found early is asked for again when all samples are known, and what is missing then is
//! analysed; so a report is the same as without. A program that turns out to be another one is left.

use super::answers::{Answers, answers};
use super::binaries::Addresses;
use super::programs::{Program, Programs};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use tallyline_inference::AddressQuery;
use tallyline_perf_data::sample::{CpuMode, Sample};
use tallyline_perf_data::spaces::{AddressSpaces, Dso, DsoId, DsoKind};

/// The number of samples that are looked at before the first programs are analysed.
const FIRST: usize = if cfg!(test) { 16 } else { 2048 };

/// The smallest number of programs analysed ahead, all of which are in memory at once; more with more CPUs.
const PROGRAMS: usize = 4;

/// The addresses of the first samples of a recording.
pub(super) struct First {
    // as of the last record
    spaces: AddressSpaces,
    // how many samples are at each address
    seen: FxHashMap<(i32, CpuMode, u64), usize>,
    samples: usize,
}

/// A file with samples.
struct Sampled {
    dso: Dso,
    offsets: Vec<u64>,
    samples: usize,
}

impl First {
    /// Creates the state before anything was read.
    pub(super) fn new(spaces: AddressSpaces) -> First {
        First { spaces, seen: FxHashMap::default(), samples: 0 }
    }

    /// Returns the address spaces: what is mapped in each process.
    pub(super) fn spaces(&mut self) -> &mut AddressSpaces {
        &mut self.spaces
    }

    /// Takes a sample; true when that is enough of them.
    pub(super) fn add(&mut self, sample: &Sample<'_>) -> bool {
        if let Some(ip) = sample.ip {
            *self.seen.entry((sample.pid.unwrap_or(-1), sample.mode, ip)).or_default() += 1;
        }
        self.samples += 1;
        self.samples >= FIRST
    }

    /// Returns the files, those with the most samples first.
    fn files(&self) -> Vec<Sampled> {
        let mut by_file: BTreeMap<DsoId, Sampled> = BTreeMap::new();
        for ((pid, mode, ip), samples) in &self.seen {
            let Some(found) = self.spaces.resolve(*pid, *mode, *ip) else { continue };
            let dso = self.spaces.dso(found.dso());
            if matches!(dso.kind(), DsoKind::File | DsoKind::Kernel | DsoKind::Module | DsoKind::Vdso) {
                let new = || Sampled { dso: dso.clone(), offsets: Vec::new(), samples: 0 };
                let file = by_file.entry(found.dso()).or_insert_with(new);
                file.offsets.push(found.offset());
                file.samples += samples;
            }
        }
        let mut files: Vec<Sampled> = by_file.into_values().collect();
        files.sort_by_key(|file| Reverse(file.samples));
        files
    }
}

/// The programs that are analysed.
pub(super) struct EagerAnalysis<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    programs: &'env dyn Programs,
    jobs: Vec<Job<'scope>>,
}

/// The analysis of one program, on a thread of its own.
struct Job<'scope> {
    dso: Dso,
    opened: Receiver<Result<Arc<Program>, String>>,
    asks: Sender<AddressQuery>,
    answers: ScopedJoinHandle<'scope, Option<Result<Answers, String>>>,
}

/// A program that was asked for everything.
pub(super) struct Asking<'scope> {
    answers: ScopedJoinHandle<'scope, Option<Result<Answers, String>>>,
}

impl<'scope, 'env> EagerAnalysis<'scope, 'env> {
    /// Creates the analysis; no program is analysed yet.
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        programs: &'env dyn Programs,
    ) -> EagerAnalysis<'scope, 'env> {
        EagerAnalysis { scope, programs, jobs: Vec::new() }
    }

    /// Begins with the programs that samples are in.
    pub(super) fn begin(&mut self, first: &First) {
        let most = rayon::current_num_threads().max(PROGRAMS);
        for Sampled { dso, offsets, .. } in first.files().into_iter().take(most) {
            let (opened_sender, opened) = channel();
            let (asks, asked) = channel();
            let (programs, file) = (self.programs, dso.clone());
            let work = move || {
                let program = programs.open(&file).map(Arc::new);
                // who asked for it may have gone
                let _ = opened_sender.send(program.clone());
                let program = program.ok().filter(|program| program.has_types())?;
                let addresses = Addresses::of(&file, &program);
                let code = offsets.iter().map(|offset| addresses.at(*offset)).collect();
                let first = AddressQuery { code, data: Vec::new() };
                Some(answers(&program, &mut iter::once(first).chain(asked)))
            };
            // without a thread it is done later
            if let Ok(answers) = thread::Builder::new().spawn_scoped(self.scope, work) {
                self.jobs.push(Job { dso, opened, asks, answers });
            }
        }
    }

    /// Returns the program of a file, if it was begun with.
    pub(super) fn program(&self, dso: &Dso) -> Option<Result<Arc<Program>, String>> {
        self.jobs.iter().find(|job| is_same(&job.dso, dso))?.opened.recv().ok()
    }

    /// Asks a program for everything; gives the question back if it was not begun with.
    pub(super) fn ask(&mut self, dso: &Dso, asked: AddressQuery) -> Result<Asking<'scope>, AddressQuery> {
        let Some(index) = self.jobs.iter().position(|job| is_same(&job.dso, dso)) else { return Err(asked) };
        let Job { asks, answers, .. } = self.jobs.swap_remove(index);
        asks.send(asked).map_err(|unsent| unsent.0)?;
        Ok(Asking { answers })
    }
}

impl Asking<'_> {
    /// Returns the answers, when they are there. Not for threads of the pool, whose help may be needed for
    /// them.
    pub(super) fn wait(self) -> Result<Answers, String> {
        let answers = self.answers.join().unwrap_or_else(|panic| resume_unwind(panic));
        answers.unwrap_or_else(|| Err("no debug information".to_owned()))
    }
}

/// Returns `true` if two mapped files are known to be one: path, kind, build-id and kernel symbol are equal.
fn is_same(one: &Dso, other: &Dso) -> bool {
    let what = |dso: &Dso| (dso.kind(), dso.build_id(), dso.reference().cloned());
    one.path() == other.path() && what(one) == what(other)
}

#[cfg(test)]
mod tests;
