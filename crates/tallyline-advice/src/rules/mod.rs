//! The rules: evidence to findings.

mod counter;
mod fields;
mod hot_path;
mod neighbours;
mod pointer;

use counter::CounterWords;

use super::address_map::AddressMap;
use super::conflicts::{ConflictKey, ConflictSum, Relation, conflicts, cured, overlap};
use super::evidence::{Evidence, MemberInfo, SharedLine, Site, Slot, Subject};
use super::policy::{self, HotPath};
use super::predict::Outlook;
use super::proposal::{Proposal, Separation};
use std::collections::{BTreeMap, BTreeSet};

/// The kind of problem that a finding of `tallyline advise` reports, such as false sharing or a contended counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// Several cores add to one word.
    ContendedCounter,
    /// Fields of one object that different threads write, or write and read, are on one line.
    FalseSharing,
    /// Objects or elements of different threads are on one line.
    SharedNeighbours,
    /// Variables of different threads are on one line.
    SharedStrangers,
    /// The fields of a hot path are on more lines than they need.
    HotPathLines,
    /// Holes in a type with many objects.
    Holes,
    /// Code waits for small objects behind a pointer.
    PointerChasing,
}

impl FindingKind {
    /// Returns the identifier of the kind of problem in JSON documents, such as `false-sharing`.
    pub fn id(self) -> &'static str {
        match self {
            Self::ContendedCounter => "contended-counter",
            Self::FalseSharing => "false-sharing",
            Self::SharedNeighbours => "shared-neighbours",
            Self::SharedStrangers => "shared-variables",
            Self::HotPathLines => "hot-path-lines",
            Self::Holes => "holes",
            Self::PointerChasing => "pointer-chasing",
        }
    }

    /// Returns a one-line description of the kind of problem, such as "several cores add to one word".
    pub fn about(self) -> &'static str {
        match self {
            Self::ContendedCounter => "several cores add to one word",
            Self::FalseSharing => "fields of one object that different threads use are on one cache line",
            Self::SharedNeighbours => "neighbours that different threads use are on one cache line",
            Self::SharedStrangers => "variables that different threads use are on one cache line",
            Self::HotPathLines => "the fields of a hot path are on more cache lines than they need",
            Self::Holes => "holes in a type with many objects",
            Self::PointerChasing => "a hot path waits for an object behind a pointer",
        }
    }
}

/// The confidence in a finding of `tallyline advise`: high if the proposed change is predicted to help on every
/// simulated thread schedule, medium if on most, low otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The model loses on some schedules, or names are missing.
    Low,
    /// The model gains by the median of the schedules and loses on none.
    Medium,
    /// The model gains on each schedule.
    High,
}

impl Confidence {
    /// Returns the identifier of the confidence in JSON documents: `low`, `medium` or `high`.
    pub fn id(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A field, array element or variable that a finding names, with the accesses to it by thread and by instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldEvidence {
    /// The type or variable, as an index of [`Evidence::subjects`].
    pub subject: usize,
    /// The path of the field; empty where there is none.
    pub field: String,
    /// The variable that it is in; empty where it is not always the same.
    pub variable: String,
    /// The first byte in the object.
    pub offset: u64,
    /// The size in bytes.
    pub size: u64,
    /// Each thread with its reads and writes.
    pub threads: Vec<(u32, u64, u64)>,
    /// Instructions, as indices of [`Evidence::sites`], with their reads and writes, the most frequent first.
    pub sites: Vec<(usize, u64, u64)>,
    /// Cycles that cores waited for the line.
    pub lost: u64,
}

impl FieldEvidence {
    /// Returns the program's own instructions that access the field or variable, each with its reads and writes, the
    /// most frequent first. Those of the C library are left out: an allocator links freed objects through their first
    /// bytes, and copies say nothing that their caller's line does not.
    pub fn own_sites<'e>(&'e self, evidence: &'e Evidence) -> impl Iterator<Item = (&'e Site, u64, u64)> {
        let site =
            |(at, reads, writes): &(usize, u64, u64)| Some((evidence.sites.get(*at)?, *reads, *writes));
        self.sites.iter().filter_map(site).filter(|(site, ..)| !site.is_runtime)
    }

    /// Returns the number of reads of the field or variable that a finding names, summed over all threads.
    pub fn reads(&self) -> u64 {
        self.threads.iter().map(|(_, reads, _)| reads).sum()
    }

    /// Returns the number of writes to the field or variable that a finding names, summed over all threads.
    pub fn writes(&self) -> u64 {
        self.threads.iter().map(|(.., writes)| writes).sum()
    }

    /// Returns the member of the struct `subject` whose bytes are exactly the field's; `None` if there is none or
    /// it must not move.
    pub fn member<'s>(&self, subject: &'s Subject) -> Option<&'s MemberInfo> {
        let is_all = |member: &&MemberInfo| member.offset == self.offset && member.size == self.size.max(1);
        subject.members.iter().find(is_all).filter(|member| member.is_free() && !member.name.is_empty())
    }

    /// Returns the number of threads that write to the field or variable that a finding names.
    pub fn writers(&self) -> usize {
        self.threads.iter().filter(|(.., writes)| *writes > 0).count()
    }
}

/// A finding of `tallyline advise`: a problem with its evidence, a proposed change, and the predicted speed-up.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The kind of finding.
    pub kind: FindingKind,
    /// The type or variable, as an index of [`Evidence::subjects`].
    pub subject: usize,
    /// The confidence in the finding.
    pub confidence: Confidence,
    /// The fields that take part, by offset.
    pub fields: Vec<FieldEvidence>,
    /// The number of cache lines on which it was seen.
    pub lines: u64,
    /// Cycles that cores lost, by the model.
    pub lost: u64,
    /// Lines that came from other cores.
    pub transfers: u64,
    /// The proposed change of the data.
    pub proposal: Proposal,
    /// The effect by the model.
    pub outlook: Outlook,
    /// Lines that a thread touches that reads all of it, before and after.
    pub reader_lines: (u64, u64),
    /// The rules of a `layout.toml` that hold it.
    pub check: Option<String>,
    /// The change of addresses that is the proposal.
    pub map: AddressMap,
}

/// The smallest predicted speed-up (a ratio of times) of a finding worth reporting; findings below it are dropped.
pub const LEAST_EFFECT: f64 = 1.02;

/// The factor by which the model may understate what fewer misses on a hot path gain: two that it gave 1.02 gained 1.06
/// and 1.14 on Zen 5.
const HOT_PATH_ERROR: f64 = 3.0;

/// The smallest effect that is worth more memory for each of many objects.
const LEAST_GROWTH_EFFECT: f64 = 1.05;

/// The lines in conflict from which there are many objects on them, whose sizes matter.
const MANY_LINES: u64 = 64;

/// The predicted speed-up below which a proposal is a loss.
const NO_EFFECT: f64 = 0.99;

/// Transfers of lines below which a predicted gain has to be larger than their count deviates by, one in its square root:
/// the model overstates atomic updates. A counter that each thread adds to once in 512 rounds, 45 times in all, had a
/// predicted 1.04; without it a Zen 3 gained nothing. Settings beside a field that a thread writes had 1.43 by 98.
const FEW_TRANSFERS: u64 = 100;

/// Parts of all cycles that a conflict has to cost to be looked at: one of so many.
const LEAST_SHARE: f64 = 1.0 / 500.0;

impl Finding {
    /// Returns `true` if the proposed change can be made by editing the declaration of a struct, as `tallyline
    /// advise --apply` does.
    pub fn is_edit(&self, evidence: &Evidence) -> bool {
        match &self.proposal {
            Proposal::Layout(_) => true,
            Proposal::Counter { .. } => self.fields.iter().all(|field| {
                let subject = evidence.subjects.get(field.subject);
                subject.is_some_and(|subject| field.member(subject).is_some())
            }),
            Proposal::Apart { .. } => {
                let subject = evidence.subjects.get(self.subject);
                self.kind == FindingKind::SharedNeighbours
                    && subject.is_some_and(|subject| !subject.members.is_empty())
            }
            _ => false,
        }
    }

    /// Returns `true` if the finding has a reason in place of a proposal: no order of a struct's members helps.
    pub fn is_refused(&self) -> bool {
        matches!(self.proposal, Proposal::Refused { .. })
    }

    /// Stores the predicted speed-up in the finding and sets its confidence: `evident` if the proposed change gains on
    /// all simulated thread schedules, lower if not. Returns `false` if the finding should be dropped: the median
    /// speed-up, and the mean of one that loses on no schedule, is below [`LEAST_EFFECT`] (below 1.05 where each of
    /// many objects gets larger by half of its size or more), or the run gets slower, or too few lines were transferred
    /// to tell. Two threads may lose nothing between near CPUs and half of their time between far ones. A hot path is
    /// kept from a third of the least effect on, as the model understates what fewer misses gain.
    pub fn judge(&mut self, outlook: Outlook, evident: Confidence) -> bool {
        self.outlook = outlook;
        let least_effect = if self.grows_many() { LEAST_GROWTH_EFFECT } else { LEAST_EFFECT };
        let of = if outlook.run.median >= outlook.cores.median { outlook.run } else { outlook.cores };
        self.confidence = match of.low {
            least if least >= least_effect => evident,
            least if least >= 1.0 && of.median >= least_effect => evident.min(Confidence::Medium),
            _ => Confidence::Low,
        };
        let gains_at_times = of.mean >= least_effect && of.low >= NO_EFFECT;
        let may_gain = self.kind == FindingKind::HotPathLines
            && of.low >= NO_EFFECT
            && 1.0 + (of.median - 1.0) * HOT_PATH_ERROR >= least_effect;
        let is_shared = !matches!(
            self.kind,
            FindingKind::HotPathLines | FindingKind::Holes | FindingKind::PointerChasing
        );
        let deviation = 1.0 / (self.transfers.max(1) as f64).sqrt();
        let is_seldom = is_shared && self.transfers < FEW_TRANSFERS && of.median < 1.0 + deviation;
        !is_seldom
            && (of.median >= least_effect || gains_at_times || may_gain)
            && outlook.run.median >= NO_EFFECT
    }

    /// Returns `true` if the proposal makes many objects larger by half of their size or more.
    fn grows_many(&self) -> bool {
        let (before, after) = match &self.proposal {
            Proposal::Layout(layout) => layout.sizes,
            Proposal::Apart { sizes, .. } => *sizes,
            Proposal::Embed { sizes, .. } | Proposal::CopyBeside { sizes, .. } => *sizes,
            Proposal::Counter { .. } | Proposal::Refused { .. } => return false,
        };
        self.lines >= MANY_LINES && before > 0 && after >= before.saturating_add(before / 2)
    }
}

/// Applies all rules of `tallyline advise` to the evidence of a program's run and returns the findings, the most costly
/// first, without predicted speed-ups: [`predict`](crate::predict()) and [`Finding::judge`] add those.
pub fn findings(evidence: &Evidence) -> Vec<Finding> {
    let sums = conflicts(evidence);
    with_counters(evidence, &sums, counter::findings(evidence, &sums, CounterWords::OfCpus))
}

/// Returns the findings whose change an edit of a struct's declaration can make, the most costly first. Contended
/// counters get striped words, which threads add to atomically, in place of per-CPU counters; other counters stay,
/// and other findings bear the cost shared with them.
pub fn edits(evidence: &Evidence) -> Vec<Finding> {
    let sums = conflicts(evidence);
    let mut counters = counter::findings(evidence, &sums, CounterWords::Striped);
    counters.retain(|finding| finding.is_edit(evidence));
    let mut all = with_counters(evidence, &sums, counters);
    all.retain(|finding| finding.is_edit(evidence));
    all
}

/// The part of all cycles from which a wait is worth a word though nothing is advised: one of so many.
const LEAST_LEFT_OPEN: u64 = 20;

/// Returns the fields for which all cores together wait more than 5 % of the run's cycles, and that none of the
/// findings is about, the most costly first. Waits that `confirmed` findings cure, as their changes put what takes the
/// line elsewhere, do not count; those of `dropped` ones do. Memory of which neither a type nor a variable is known is one
/// field, of size 0.
pub fn left_open(evidence: &Evidence, confirmed: &[Finding], dropped: &[Finding]) -> Vec<FieldEvidence> {
    let advised: BTreeSet<(usize, u64)> = confirmed
        .iter()
        .chain(dropped)
        .flat_map(|finding| finding.fields.iter().map(|field| (field.subject, field.offset)))
        .collect();
    let mut map = AddressMap::new(evidence.line_size);
    confirmed.iter().for_each(|finding| map.merge(&finding.map));
    let cured = cured(evidence, &map);
    let mut all = field_evidence(evidence, |slot| !advised.contains(&(slot.subject, slot.offset)));
    for field in &mut all {
        let cycles = cured.get(&(field.subject, field.offset)).copied().unwrap_or(0);
        field.lost = field.lost.saturating_sub(cycles);
    }
    let (mut fields, unnamed): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|field| is_named(evidence.subjects.get(field.subject)));
    let unnamed = unnamed.into_iter().map(|field| FieldEvidence { offset: 0, size: 0, ..field });
    fields.extend(unnamed.reduce(|mut all, other| {
        all.lost = all.lost.saturating_add(other.lost);
        all.sites.extend(other.sites);
        all.sites.sort_by_key(|(site, reads, writes)| (std::cmp::Reverse(reads + writes), *site));
        all
    }));
    fields.retain(|field| field.lost > evidence.cycles / LEAST_LEFT_OPEN);
    fields.sort_by_key(|field| (std::cmp::Reverse(field.lost), field.subject, field.offset));
    fields
}

/// Adds the findings beside those of counters, which do not cost what goes with these.
fn with_counters(evidence: &Evidence, sums: &Conflicts, counters: Vec<Finding>) -> Vec<Finding> {
    let mut all = counters;
    let counters: BTreeSet<(usize, u64)> =
        all.iter().flat_map(|found| found.fields.iter().map(|field| (field.subject, field.offset))).collect();
    all.extend(fields::findings(evidence, sums, &counters));
    all.extend(neighbours::findings(evidence, sums, &counters));
    all.extend(hot_path::findings(evidence));
    all.extend(pointer::findings(evidence));
    finish(evidence, &mut all);
    all
}

/// Adds the checks, and sorts by cost.
fn finish(evidence: &Evidence, all: &mut [Finding]) {
    for finding in &mut *all {
        let reason = format!("tallyline advise: {}", finding.kind.about());
        let fields = finding.fields.iter().filter(|_| finding.kind == FindingKind::HotPathLines);
        let hot =
            HotPath { offsets: fields.map(|field| field.offset).collect(), line_size: evidence.line_size };
        let subject = evidence.subjects.get(finding.subject);
        finding.check = policy::rules(&finding.proposal, subject, &hot, &reason);
    }
    all.sort_by_key(|finding| (std::cmp::Reverse(finding.lost), finding.kind, finding.subject));
}

/// Returns the means to separate parts of a type's objects: alignments hold for variables, and for Rust's allocator; not
/// every allocator of C and C++ keeps them, and compilers rely on them.
fn separation(evidence: &Evidence, subject: usize) -> Separation {
    let line = evidence.line_size;
    let is_rust = evidence.subjects.get(subject).is_some_and(|subject| subject.language == "Rust");
    let mut slots = evidence.lines.iter().flat_map(|line| &line.slots).filter(|slot| slot.subject == subject);
    match is_rust || slots.all(|slot| !slot.variable.is_empty()) {
        true => Separation::Aligned(line),
        false => Separation::Padded(line),
    }
}

type Conflicts = BTreeMap<ConflictKey, ConflictSum>;

/// Moves `size` bytes of a slot of a line to the address `target`; where objects before or after had the memory, too,
/// only for the instructions that access this one.
fn move_slot(
    map: &mut AddressMap,
    evidence: &Evidence,
    line: &SharedLine,
    slot: &Slot,
    (size, target): (u64, u64),
) {
    if !line.slots.iter().any(|other| overlap(&evidence.subjects, slot, other)) {
        map.move_bytes(slot.address(), size, target);
        return;
    }
    for site in slot.uses.iter().filter_map(|of| evidence.sites.get(of.site)) {
        map.move_access(site.instruction, slot.address(), target);
    }
}

/// Returns `true` if the lost cycles and the transfers of lines are enough for a finding.
fn is_worth(evidence: &Evidence, lost: f64, transfers: f64) -> bool {
    lost > evidence.cycles as f64 * LEAST_SHARE && transfers >= 16.0
}

/// Collects the evidence of all slots that a condition admits, by subject and offset.
fn field_evidence(evidence: &Evidence, mut admits: impl FnMut(&Slot) -> bool) -> Vec<FieldEvidence> {
    let mut by_place: BTreeMap<(usize, u64), FieldEvidence> = BTreeMap::new();
    for slot in evidence.lines.iter().flat_map(|line| &line.slots) {
        if !admits(slot) {
            continue;
        }
        let is_new = !by_place.contains_key(&(slot.subject, slot.offset));
        let field = by_place.entry((slot.subject, slot.offset)).or_insert_with(|| FieldEvidence {
            subject: slot.subject,
            offset: slot.offset,
            field: slot.field.clone(),
            variable: slot.variable.clone(),
            ..FieldEvidence::default()
        });
        if !is_new && field.variable != slot.variable {
            field.variable = common_variable(&field.variable, &slot.variable);
        }
        field.size = field.size.max(slot.size);
        field.lost += slot.lost;
        for (thread, reads, writes) in slot.by_thread() {
            match field.threads.iter_mut().find(|known| known.0 == thread) {
                Some(known) => {
                    known.1 += reads;
                    known.2 += writes;
                }
                None => field.threads.push((thread, reads, writes)),
            }
        }
        for used in &slot.uses {
            match field.sites.iter_mut().find(|known| known.0 == used.site) {
                Some(known) => {
                    known.1 += used.reads;
                    known.2 += used.writes;
                }
                None => field.sites.push((used.site, used.reads, used.writes)),
            }
        }
    }
    let mut all: Vec<FieldEvidence> = by_place.into_values().collect();
    for field in &mut all {
        field.threads.sort_unstable();
        field.sites.sort_by_key(|(site, reads, writes)| (std::cmp::Reverse(reads + writes), *site));
    }
    all
}

/// Accesses for each of those to the field with the most up to which a field takes no part: it is initialised or printed.
const RARE_ACCESS: f64 = 0.01;

/// Returns those of some fields that are accessed more than now and then.
fn taking_part(fields: Vec<FieldEvidence>) -> Vec<FieldEvidence> {
    let accesses = |field: &FieldEvidence| field.reads() + field.writes();
    let most = fields.iter().map(accesses).max().unwrap_or(0);
    fields.into_iter().filter(|field| accesses(field) as f64 > most as f64 * RARE_ACCESS).collect()
}

/// The part of two variables' names that is the same: the name without its index.
fn common_variable(one: &str, other: &str) -> String {
    let name = |text: &str| text.split(['[', '.', '+']).next().unwrap_or_default().to_owned();
    if name(one) == name(other) { name(one) } else { String::new() }
}

/// Returns `true` if no known access to the fields is by the program's own code, as opposed to the runtime's.
fn is_runtimes(evidence: &Evidence, fields: &[FieldEvidence]) -> bool {
    let is_own = |site: &usize| evidence.sites.get(*site).is_some_and(|site| !site.is_runtime);
    !fields.iter().flat_map(|field| &field.sites).any(|(site, ..)| is_own(site))
}

/// Returns `true` if there is a subject and it can be named to a user.
fn is_named(subject: Option<&Subject>) -> bool {
    subject.is_some_and(Subject::is_named)
}

/// Sums of the conflicts that a condition admits: cycles lost, transfers, lines.
fn sum(sums: &Conflicts, mut admits: impl FnMut(&ConflictKey) -> bool) -> (f64, f64, BTreeSet<usize>) {
    let mut total = (0.0, 0.0, BTreeSet::new());
    for (_, sum) in sums.iter().filter(|(key, _)| admits(key)) {
        total.0 += sum.lost;
        total.1 += sum.transfers;
        total.2.extend(sum.lines.iter().copied());
    }
    total
}

/// The subjects that have a relation.
fn subjects_with(sums: &Conflicts, relation: Relation) -> BTreeSet<usize> {
    sums.keys().filter(|key| key.relation == relation).map(|key| key.victim.0).collect()
}

#[cfg(test)]
mod tests;
