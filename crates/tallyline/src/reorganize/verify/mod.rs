//! Compiles structs as they are and as proposed, and compares what the compiler makes of them.

mod batch;
mod compiler;
mod printed;

use anyhow::{Context, Result};
use batch::Batch;
use compiler::Compiler;
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tallyline_debuginfo::model::{RecordId, Types};
use tallyline_layout::reorganize::declare::{self, VerificationSource};
use tallyline_layout::reorganize::{CombinedProposal, CompilableProposal, Proposal, Reorganizer};

/// The number of proposals in one source: enough to share the types that they hold.
const BATCH: usize = 200;

/// A compiler's verdict on a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No verdict: the compiler was not asked.
    NotAsked,
    /// A proposal whose old and new layouts the compiler confirms, with the compiler's name and version.
    Verified(String),
    /// A proposal that no compiler could verify, with the reason.
    Unverified(String),
    /// A proposal whose old or new layout the compiler contradicts, with the first difference.
    Wrong(String),
}

/// Verifies the proposals for some types.
pub(super) struct Verifier {
    compiler: Result<Compiler, String>,
}

impl Verifier {
    /// Looks for the compiler.
    pub(super) fn new(named: Option<&str>, types: &Types) -> Verifier {
        Verifier { compiler: Compiler::find(named, types) }
    }

    /// Returns one verdict for each proposal, in order.
    pub(super) fn verify(&self, by: &Reorganizer<'_>, proposals: &[&Proposal]) -> Result<Vec<Verdict>> {
        self.verify_all(proposals, |some| declare::source(by, some))
    }

    /// Returns one verdict for each record as it is with all proposals applied, in order.
    pub(super) fn verify_together(
        &self,
        by: &Reorganizer<'_>,
        together: &CombinedProposal,
        records: &[RecordId],
    ) -> Result<Vec<Verdict>> {
        self.verify_all(records, |some| declare::source_together(by, together, some))
    }

    /// Compiles the text of a proposal as it is printed; a verdict if it is not what was promised, or
    /// cannot be compiled.
    pub(super) fn verify_text(
        &self,
        types: &Types,
        proposal: &Proposal,
        printed: &CompilableProposal,
    ) -> Result<Option<Verdict>> {
        match &self.compiler {
            Ok(compiler) => printed::verify(compiler, types, proposal, printed),
            Err(_) => Ok(None),
        }
    }

    fn verify_all<L: Copy + Sync>(
        &self,
        layouts: &[L],
        write: impl Fn(&[L]) -> VerificationSource + Sync,
    ) -> Result<Vec<Verdict>> {
        let compiler = match &self.compiler {
            Ok(compiler) => compiler,
            Err(why) => return Ok(vec![Verdict::Unverified(why.clone()); layouts.len()]),
        };
        if layouts.is_empty() {
            return Ok(Vec::new());
        }
        crate::interrupt::listen()?;
        let folder = Folder::new()?;
        let batches: Vec<&[L]> = layouts.chunks(BATCH).collect();
        let bar = ProgressBar::with_draw_target(Some(batches.len() as u64), ProgressDrawTarget::stderr());
        let done: Vec<Option<Result<Vec<Verdict>>>> = batches.iter().map(|_| None).collect();
        let done = Mutex::new(done);
        let next = AtomicUsize::new(0);
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(batches.len());
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some((index, batch)) = take(&next, &batches) {
                        let verdicts = Batch { compiler, folder: &folder.0, index }.verify(batch, &write);
                        if let Ok(mut done) = done.lock() {
                            done[index] = Some(verdicts);
                        }
                        bar.inc(1);
                    }
                });
            }
        });
        bar.finish_and_clear();
        drop(folder);
        super::end_if_asked();
        let mut verdicts = Vec::with_capacity(layouts.len());
        for batch in done.into_inner().unwrap_or_default() {
            verdicts.extend(batch.context("a compiler's run was lost")??);
        }
        Ok(verdicts)
    }
}

/// Returns the next of some things, unless Ctrl-C was pressed.
fn take<'b, T>(next: &AtomicUsize, of: &'b [T]) -> Option<(usize, &'b T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    if crate::interrupt::asked() { None } else { of.get(index).map(|batch| (index, batch)) }
}

/// A folder of our own, gone in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        use std::os::unix::fs::DirBuilderExt;
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tallyline-{}-{number}", std::process::id()));
        // it must not be there already: it could be another's
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all::<&Path>(&self.0);
    }
}
