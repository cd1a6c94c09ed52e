//! Contended counters: words that several threads add to.

use super::{Confidence, Conflicts, FieldEvidence, Finding, FindingKind, Relation};
use crate::address_map::AddressMap;
use crate::evidence::{Evidence, Slot, Subject, SubjectKind, Update};
use crate::predict::Outlook;
use crate::proposal::Proposal;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a counter for each CPU that counts, and of its handle.
const BYTES: (u64, u64) = (8, 16);

/// The part of a word's writes below which a thread initialises or resets: one of so many.
const MINOR: u64 = 100;

/// Writes for each read of a statistic, at least.
const READS: u64 = 8;

/// The part of the writes that have to be additions: the rest may initialise or reset.
const ADDITIONS: f64 = 0.9;

/// A contended counter: subject and offset, accesses, confidence, and the cache lines that it was seen on.
struct Counter {
    place: (usize, u64),
    field: FieldEvidence,
    confidence: Confidence,
    lines: BTreeSet<usize>,
}

/// The words that a counter is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterWords {
    /// A word for each CPU, which plain instructions add to.
    OfCpus,
    /// Stripes of threads, which atomic instructions add to.
    Striped,
}

/// Returns a finding for each contended counter; those that lie on one line are one, as each keeps the others' line
/// on its way.
pub(super) fn findings(evidence: &Evidence, sums: &Conflicts, words: CounterWords) -> Vec<Finding> {
    let same = sums.iter().filter(|(key, _)| key.relation == Relation::Same);
    let mut sets: Vec<Vec<Counter>> = Vec::new();
    for (key, conflict) in same {
        let Some(counter) = counter(evidence, key.victim, conflict.lines.iter().copied().collect()) else {
            continue;
        };
        let meets = |set: &Vec<Counter>| set.iter().any(|known| !known.lines.is_disjoint(&counter.lines));
        match sets.iter_mut().find(|set| meets(set)) {
            Some(set) => set.push(counter),
            None => sets.push(vec![counter]),
        }
    }
    let sets = sets.into_iter().map(|set| with_neighbours(evidence, set));
    sets.filter_map(|set| finding(evidence, sums, set, words)).collect()
}

/// Adds the counters that lie on the lines of others and wait for nothing themselves: who adds to one right behind
/// another has its line, and would wait for it in that one's place.
fn with_neighbours(evidence: &Evidence, mut set: Vec<Counter>) -> Vec<Counter> {
    let lines: BTreeSet<usize> = set.iter().flat_map(|counter| counter.lines.iter().copied()).collect();
    let mut places: BTreeMap<(usize, u64), BTreeSet<usize>> = BTreeMap::new();
    for line in lines {
        for slot in &evidence.lines[line].slots {
            places.entry((slot.subject, slot.offset)).or_default().insert(line);
        }
    }
    for counter in &set {
        places.remove(&counter.place);
    }
    set.extend(places.into_iter().filter_map(|(place, lines)| counter(evidence, place, lines)));
    set.sort_by_key(|counter| counter.place);
    set
}

fn counter(evidence: &Evidence, place: (usize, u64), lines: BTreeSet<usize>) -> Option<Counter> {
    let subject = evidence.subjects.get(place.0)?;
    let fields = super::field_evidence(evidence, |slot| (slot.subject, slot.offset) == place);
    if !super::is_named(Some(subject)) || super::is_runtimes(evidence, &fields) {
        return None;
    }
    let is_shared = evidence
        .lines
        .iter()
        .flat_map(|line| &line.slots)
        .any(|slot| (slot.subject, slot.offset) == place && main_writers(slot) >= 2);
    let field = fields
        .into_iter()
        .next()
        .filter(|field| is_shared && !is_polled(field) && !is_guarded(evidence, field))?;
    let confidence = additions(evidence, &field)?;
    Some(Counter { place, field, confidence, lines })
}

fn finding(evidence: &Evidence, sums: &Conflicts, set: Vec<Counter>, words: CounterWords) -> Option<Finding> {
    let places: BTreeSet<(usize, u64)> = set.iter().map(|counter| counter.place).collect();
    // what others lose to their line is their cost, too
    let (lost, transfers, _) = super::sum(sums, |key| places.contains(&key.culprit));
    if !super::is_worth(evidence, lost, transfers) {
        return None;
    }
    let lines: BTreeSet<usize> = set.iter().flat_map(|counter| counter.lines.iter().copied()).collect();
    let mut map = AddressMap::new(evidence.line_size);
    for slot in lines.iter().flat_map(|index| &evidence.lines[*index].slots) {
        if places.contains(&(slot.subject, slot.offset)) {
            map.split_by_thread(slot.address(), slot.size);
        }
    }
    let (mut names, mut code) = (Vec::new(), Vec::new());
    for counter in &set {
        let subject = &evidence.subjects[counter.place.0];
        names.push(name(subject, &counter.field));
        let more = self::code(subject, &counter.field);
        code.extend(
            more.into_iter()
                .filter(|line| !line.starts_with('#') || !code.contains(line))
                .collect::<Vec<_>>(),
        );
        let sites = counter.field.sites.iter().filter_map(|(site, ..)| evidence.sites.get(*site));
        let is_plain = words == CounterWords::OfCpus;
        sites.filter(|site| site.atomic && is_plain).for_each(|site| map.make_plain(site.instruction));
    }
    let writers = set.iter().map(|counter| counter.field.writers()).max().unwrap_or(0);
    Some(Finding {
        kind: FindingKind::ContendedCounter,
        subject: set.first()?.place.0,
        confidence: set.iter().map(|counter| counter.confidence).min()?,
        lines: lines.len() as u64,
        lost: lost as u64,
        transfers: transfers as u64,
        proposal: Proposal::Counter { names, code, bytes: BYTES },
        outlook: Outlook::default(),
        // a read adds the words of the CPUs that counted
        reader_lines: (1, writers as u64),
        check: None,
        map,
        fields: set.into_iter().map(|counter| counter.field).collect(),
    })
}

/// Returns `true` if a word is read so often that a sum over CPUs costs more than the additions save: a word that
/// others wait for is no statistic.
fn is_polled(field: &FieldEvidence) -> bool {
    let reads: u64 = field.sites.iter().filter(|(.., writes)| *writes == 0).map(|(_, reads, _)| reads).sum();
    reads > field.writes() / READS
}

/// Returns `true` if the threads that add to a word by plain instructions take a lock as often as they do: threads wait
/// for the lock, and a counter beside it saves nothing.
fn is_guarded(evidence: &Evidence, field: &FieldEvidence) -> bool {
    let is_atomic = |site: usize| evidence.sites.get(site).is_some_and(|site| site.atomic);
    if field.sites.iter().any(|(site, _, writes)| *writes > 0 && is_atomic(*site)) {
        return false;
    }
    let is_exchange = |site: usize| {
        evidence.sites.get(site).is_some_and(|site| site.atomic && site.update == Update::Exchange)
    };
    let slots = evidence.lines.iter().flat_map(|line| &line.slots);
    let locks = slots.filter(|slot| slot.uses.iter().any(|used| used.writes > 0 && is_exchange(used.site)));
    // by lock, as a field of all objects: writes by thread
    let mut writes: BTreeMap<(usize, u64), BTreeMap<u32, u64>> = BTreeMap::new();
    for slot in locks {
        let of = writes.entry((slot.subject, slot.offset)).or_default();
        slot.by_thread().iter().for_each(|(thread, _, writes)| *of.entry(*thread).or_default() += writes);
    }
    let total = field.writes();
    let writers = || field.threads.iter().filter(|(.., writes)| *writes * MINOR > total);
    writes.values().any(|lock| {
        writers().all(|(thread, reads, writes)| {
            // a lock is written twice for each turn, and an addition may be a read and a write
            lock.get(thread).is_some_and(|taken| taken.saturating_mul(2) >= reads + writes)
        })
    })
}

/// Returns the number of threads with more than a small part of a word's writes.
fn main_writers(slot: &Slot) -> usize {
    let threads = slot.by_thread();
    let total: u64 = threads.iter().map(|(.., writes)| writes).sum();
    threads.iter().filter(|(.., writes)| *writes * MINOR > total).count()
}

/// Returns how sure it is that a word is a counter; none if it is something else.
fn additions(evidence: &Evidence, field: &FieldEvidence) -> Option<Confidence> {
    let (mut adds, mut unknown, mut others) = (0, 0, 0);
    for (site, _, writes) in field.sites.iter().filter(|(.., writes)| *writes > 0) {
        let site = evidence.sites.get(*site)?;
        match site.update {
            Update::Add => adds += writes,
            Update::None if site.atomic => unknown += writes,
            _ => others += writes,
        }
    }
    let total = (adds + unknown + others).max(1) as f64;
    match () {
        () if adds as f64 / total >= ADDITIONS => Some(Confidence::High),
        // an atomic read-modify-write of a machine whose code is not decoded
        () if (adds + unknown) as f64 / total >= ADDITIONS => Some(Confidence::Low),
        () => None,
    }
}

/// Returns the full name of a field or variable.
fn name(subject: &Subject, field: &FieldEvidence) -> String {
    let own = match (subject.kind, field.variable.is_empty()) {
        (SubjectKind::Variable, false) => return field.variable.clone(),
        (SubjectKind::Variable, true) => return subject.name.clone(),
        _ => &subject.name,
    };
    if field.field.is_empty() { own.clone() } else { format!("{own}.{}", field.field) }
}

/// Returns the lines of code that make it a counter of statctr.
fn code(subject: &Subject, field: &FieldEvidence) -> Vec<String> {
    let word = match field.field.rsplit(['.', ':']).next() {
        Some(last) if !last.is_empty() => last.to_owned(),
        _ => subject.name.rsplit(':').next().unwrap_or_default().to_owned(),
    };
    let is_rust = subject.language == "Rust";
    let place = match (subject.kind, field.variable.is_empty()) {
        (_, false) => field.variable.rsplit("::").next().unwrap_or_default().to_owned(),
        (SubjectKind::Record, true) if is_rust => format!("self.{word}"),
        (SubjectKind::Record, true) => format!("object->{word}"),
        (_, true) => word.clone(),
    };
    let lines = match is_rust {
        true => vec![
            (format!("{word}: statctr::Counter,"), "instead of an atomic integer"),
            (format!("{word}: statctr::Counter::new()?,"), "where it is made"),
            (format!("{place}.add(n);"), "instead of fetch_add"),
            (format!("{place}.read()"), "instead of load: the sum over CPUs"),
        ],
        false => vec![
            ("#include <statctr.h>".to_owned(), ""),
            (format!("statctr_t {word};"), "instead of the shared word"),
            (format!("statctr_init(&{place}, 0);"), "before its first use"),
            (format!("statctr_add(&{place}, n);"), "instead of the atomic addition"),
            (format!("statctr_read(&{place})"), "instead of a load: the sum over CPUs"),
            (format!("statctr_cleanup(&{place});"), "at its end"),
        ],
    };
    let commented = |(code, comment): (String, &str)| match comment {
        "" => code,
        comment => format!("{code:<44} // {comment}"),
    };
    lines.into_iter().map(commented).collect()
}
