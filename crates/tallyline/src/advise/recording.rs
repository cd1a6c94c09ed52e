//! Advice on a recording: samples alone.

use super::args::AdviseArgs;
use super::code_log::CodeLog;
use super::names::ProgramNames;
use super::observed_run::ObservedRun;
use super::{Advice, Basis};
use crate::profile::{self, InputArgs};
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use tallyline_advice::evidence::Evidence;
use tallyline_advice::{
    Confidence, Finding, FindingKind, Observations, ObservedAccess, Proposal, is_assumed, observe, rules,
};
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::DsoKind;
use tallyline_report::keys::Needs;
use tallyline_report::{Profile, SampleGroup};

/// Part of the samples that lines of a finding have to have.
const LEAST_SHARE: f64 = 0.05;

/// Part of the samples that the objects of a type have to have, so that another order of its members is worth a try:
/// a clock does not say what missed the cache.
const LEAST_LAYOUT_SHARE: f64 = 0.1;

/// Samples below which nothing is said.
const LEAST_SAMPLES: u64 = 50;

/// The samples of one process of a recording.
pub(super) struct SampledProcess {
    pub(super) process: u32,
    pub(super) code: CodeLog,
    /// Samples of instructions that access memory.
    pub(super) samples: Vec<ObservedAccess>,
    /// The number of all samples of the process.
    pub(super) total: u64,
    /// Threads that were sampled, with their names.
    pub(super) threads: BTreeMap<u32, String>,
    /// The number of other processes with samples.
    pub(super) others: usize,
}

impl SampledProcess {
    /// Reads the samples of a process, or of the one with the most.
    pub(super) fn read(path: &Path, symfs: Option<&Path>, process: Option<u32>) -> Result<SampledProcess> {
        let mut input = InputArgs::of(path);
        input.symfs = symfs.map(Path::to_path_buf);
        let profile = profile::load(&input, Needs::ADDRESSES)?;
        let name = path.display();
        let mut by_process: BTreeMap<i32, u64> = BTreeMap::new();
        for group in profile.groups() {
            *by_process.entry(group.pid).or_default() += group.samples;
        }
        let busiest = by_process.iter().filter(|(pid, _)| **pid > 0).max_by_key(|(_, samples)| **samples);
        let pid = match process {
            Some(process) => i32::try_from(process).unwrap_or(i32::MAX),
            None => busiest.map_or(0, |(pid, _)| *pid),
        };
        let total = by_process.get(&pid).copied().unwrap_or(0);
        match (total, process) {
            (0, Some(process)) => bail!("{name}: no samples of process {process}"),
            (0, None) => bail!(
                "{name}: no samples of programs in it; record a program that works: tallyline record -- COMMAND"
            ),
            _ => {}
        }
        let mut read = SampledProcess {
            process: pid.unsigned_abs(),
            code: CodeLog::default(),
            samples: Vec::new(),
            total,
            threads: BTreeMap::new(),
            others: by_process.len() - 1,
        };
        for group in profile.groups().iter().filter(|group| group.pid == pid) {
            let thread = group.tid.unsigned_abs();
            read.threads.insert(thread, profile.text(group.comm).to_owned());
            read.samples.extend(read.code.sample(&profile, group, symfs));
        }
        Ok(read)
    }

    /// Returns the number of samples with the address of the data.
    pub(super) fn addressed(&self) -> u64 {
        self.samples.iter().filter(|sample| sample.address != 0).count() as u64
    }

    /// Returns the evidence of the samples, and of other accesses if there are some, and warnings.
    pub(super) fn evidence(
        &self,
        accesses: Option<Vec<ObservedAccess>>,
        line_size: u64,
        symfs: Option<&Path>,
    ) -> (Evidence, Vec<String>) {
        let seen = Observations {
            accesses: accesses.unwrap_or_else(|| self.samples.clone()),
            samples: self.samples.clone(),
            total: self.total,
        };
        let mut names = ProgramNames::new(&self.code, symfs);
        let mut evidence = observe(&seen, line_size, &mut names);
        for thread in &mut evidence.threads {
            thread.name = self.threads.get(&thread.thread).cloned().unwrap_or_default();
        }
        (evidence, names.into_warnings())
    }
}

impl CodeLog {
    /// Returns the access of a sample; none where its instruction accesses no memory, or is not of a file.
    fn sample(
        &mut self,
        profile: &Profile,
        group: &SampleGroup,
        symfs: Option<&Path>,
    ) -> Option<ObservedAccess> {
        let (place, sampled) = (profile.place(group.charged), profile.place(group.place));
        let dso = place.dso.filter(|dso| group.mode == CpuMode::User && sampled.dso == Some(*dso))?;
        let file = profile.dso(dso).filter(|file| file.kind() == DsoKind::File)?;
        let program = profile.program(dso)?;
        let linked = profile.at(group.charged).address;
        let address = group.ip.wrapping_sub(profile.at(group.place).address).wrapping_add(linked);
        let offset = group.ip.wrapping_sub(address);
        let offset = sampled.offset.wrapping_sub(offset);
        let path = path_of(file.path(), group.pid, symfs);
        let instruction = self.add(address, &path, offset, program.image(), linked)?;
        Some(ObservedAccess {
            instruction: instruction.index,
            thread: group.tid.unsigned_abs(),
            time: group.time,
            // a variable of a function is its thread's own
            address: if instruction.is_local { 0 } else { group.address },
            grain: 1,
            size: instruction.size,
            reads: instruction.reads,
            // A clock's samples fall on the load of an update, which waits for the line, and hardly ever on its store: 22
            // of 11 651 on a Zen 3.
            writes: instruction.updates,
        })
    }
}

/// Returns the path of a process's file, which may be in another root folder.
pub(super) fn path_of(path: &str, pid: i32, symfs: Option<&Path>) -> String {
    let inside = format!("/proc/{pid}/root{path}");
    match symfs.is_none() && !Path::new(path).exists() && Path::new(&inside).exists() {
        true => inside,
        false => path.to_owned(),
    }
}

/// Advises on a recording.
pub(super) fn advise(args: &AdviseArgs, path: &Path) -> Result<Advice> {
    let symfs = args.model.symfs.as_deref();
    let sampled = SampledProcess::read(path, symfs, args.model.process)?;
    let (evidence, warnings) = sampled.evidence(None, args.model.cacheline_size.into(), symfs);
    let addressed = sampled.addressed();
    let findings = findings(args, &evidence, Confidence::Medium);
    let mut notes = Vec::new();
    if sampled.total < LEAST_SAMPLES {
        notes.push(format!("{} samples are too few to say more", sampled.total));
    }
    let mut slots = evidence.lines.iter().flat_map(|line| &line.slots);
    if addressed == 0 || slots.any(|slot| is_assumed(slot.address())) {
        notes.push(
            "samples have neither addresses of data nor registers: threads that access a field are assumed to access one \
             object; tallyline record keeps registers, perf record does with --user-regs"
                .to_owned(),
        );
    }
    if sampled.others > 0 {
        notes.push(format!(
            "{} other processes of the recording; --process PID advises on another than the busiest",
            sampled.others
        ));
    }
    notes.push(
        "samples have no order of accesses, and nothing is predicted: `tallyline advise -- COMMAND` models the changes, \
         --apply --measure COMMAND measures them"
            .to_owned(),
    );
    let run = ObservedRun { samples: sampled.total, addressed, watched: None };
    Ok(advice(sampled, evidence, findings, Basis::Observed(run), notes, warnings))
}

/// Puts advice together that is based on what was seen of a process.
pub(super) fn advice(
    sampled: SampledProcess,
    evidence: Evidence,
    findings: Vec<Finding>,
    basis: Basis,
    notes: Vec<String>,
    mut warnings: Vec<String>,
) -> Advice {
    warnings.sort();
    warnings.dedup();
    let (dropped, findings) = findings.into_iter().partition(Finding::is_refused);
    Advice {
        evidence,
        findings,
        basis,
        process: sampled.process,
        machine: std::env::consts::ARCH.to_owned(),
        accesses: sampled.samples.len() as u64,
        dropped,
        window: None,
        traced_seconds: None,
        full_after: None,
        notes,
        warnings,
    }
}

/// Returns the findings that samples bear, those with the most samples first. Their confidence is at most the one that is
/// given, and low for layouts, whose effect only a model or a measurement says.
pub(super) fn findings(args: &AdviseArgs, evidence: &Evidence, most: Confidence) -> Vec<Finding> {
    let mut all = match args.apply.edits() {
        true => rules::edits(evidence),
        false => Vec::new(),
    };
    let others = rules::findings(evidence).into_iter();
    all.extend(others.filter(|found| !args.apply.edits() || !found.is_edit(evidence)));
    all.retain(|finding| {
        let is_layout = matches!(finding.kind, FindingKind::HotPathLines | FindingKind::Holes);
        let least = if is_layout { LEAST_LAYOUT_SHARE } else { LEAST_SHARE };
        finding.lost as f64 >= evidence.cycles as f64 * least && evidence.cycles >= LEAST_SAMPLES
    });
    for finding in &mut all {
        let slots = evidence.lines.iter().flat_map(|line| &line.slots);
        if slots.filter(|slot| slot.subject == finding.subject).any(|slot| is_assumed(slot.address())) {
            finding.confidence = Confidence::Low;
        }
        finding.confidence = match (finding.kind, &finding.proposal) {
            (FindingKind::HotPathLines | FindingKind::Holes, _)
            | (_, Proposal::Embed { .. } | Proposal::CopyBeside { .. }) => Confidence::Low,
            _ => finding.confidence.min(most),
        };
    }
    all.sort_by_key(|finding| std::cmp::Reverse(finding.lost));
    all
}
