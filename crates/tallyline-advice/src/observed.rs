//! Evidence from single accesses of a program that ran as usual: samples with addresses of data, or hits of breakpoints.
//!
//! What costs time is counted in samples; nothing is modelled. Accesses that are seen of one line by several threads, in
//! the order of time, say that threads share it; samples on it say what that may cost.

use super::collect::Builder;
use super::evidence::{Evidence, FieldUse, SharedLine, Slot, SlotUse, ThreadInfo, TypeUse};
use super::objects::{Found, ObjectVotes, grid};
use super::resolve::{Resolved, Resolver};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Instructions of a field that are kept.
const SITES_LIMIT: usize = 16;

/// The first of the addresses that are assumed: no program has them.
const ASSUMED: u64 = 1 << 63;

/// Bytes between the assumed objects of types.
const ASSUMED_STEP: u64 = 1 << 24;

/// Part of a field's accesses that a thread may have and still leave the field to others.
const MINOR: f64 = 0.05;

/// Returns `true` if an address is artificial: [`observe`] gave it to an object of a type for which samples had no
/// addresses.
pub fn is_assumed(address: u64) -> bool {
    address >= ASSUMED
}

/// One memory access of a running program that was observed by a sample or by a hit of a hardware breakpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedAccess {
    /// The instruction, by the caller's index.
    pub instruction: u32,
    /// The number of the thread that made the access.
    pub thread: u32,
    /// The time of the access, by which accesses are ordered.
    pub time: u64,
    /// The address of the data, or of the word that it is in; 0 where it is not known.
    pub address: u64,
    /// Bytes of the word that the address is known up to; 1 where it is exact.
    pub grain: u64,
    /// The size of the access in bytes; 0 where it is not known.
    pub size: u8,
    /// `true` if the access reads.
    pub reads: bool,
    /// `true` if the access writes.
    pub writes: bool,
}

/// The memory accesses that samples and hardware breakpoints observed in one process, the input of [`observe`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observations {
    /// Accesses that say who shares which line.
    pub accesses: Vec<ObservedAccess>,
    /// Samples of accesses, which say where the time goes; possibly the same.
    pub samples: Vec<ObservedAccess>,
    /// The number of all samples, also of instructions that access no memory.
    pub total: u64,
}

/// Builds the input of the advice rules from observed accesses instead of a trace. "Cycles" in it are samples;
/// "transfers" are accesses to a cache line that another thread accessed before, at least one of both writing.
///
/// Accesses of a type whose samples have no addresses are assigned to one artificial object at the start of a
/// line, if sharing is likely: several threads update a field atomically, or different threads use different
/// fields.
pub fn observe(seen: &Observations, line_size: u64, resolver: &mut dyn Resolver) -> Evidence {
    let both = || seen.accesses.iter().chain(&seen.samples);
    let instructions: BTreeSet<u32> = both().map(|access| access.instruction).collect();
    let with_address = || both().filter(|access| access.address != 0);
    let addresses: BTreeSet<u64> = with_address()
        .flat_map(|access| access.address..access.address.saturating_add(access.grain))
        .collect();
    let instructions: Vec<u32> = instructions.into_iter().collect();
    let addresses: Vec<u64> = addresses.into_iter().collect();
    let resolved = resolver.resolve(&instructions, &addresses);
    let mut samples = seen.samples.clone();
    let assumed = assume_objects(&mut samples, &resolved);
    let mut accesses: Vec<ObservedAccess> =
        seen.accesses.iter().filter(|access| access.address != 0).copied().collect();
    // where all accesses are samples, those of assumed objects are
    if seen.accesses.len() == seen.samples.len() {
        accesses.extend(assumed);
    }
    refine(&mut accesses, &seen.samples, &resolved);
    accesses.sort_by_key(|access| access.time);
    let transfers = transfers(&accesses, line_size);
    let shared: FxHashSet<u64> = transfers.keys().map(|(line, _)| *line).collect();
    let mut votes = ObjectVotes::default();
    for access in accesses.iter().chain(&samples).filter(|access| access.address != 0) {
        votes.add(access.instruction, access.address, &resolved);
    }
    let objects = votes.finish(line_size, &|line| shared.contains(&line), &resolved);
    let mut evidence = Evidence { line_size, cycles: seen.total, ..Evidence::default() };
    let threads: BTreeSet<u32> = both().map(|access| access.thread).collect();
    evidence.threads = threads.into_iter().map(|thread| ThreadInfo { thread, name: String::new() }).collect();
    let mut builder = Builder { resolved, resolver, objects: &objects, site_index: FxHashMap::default() };
    let on_shared = |access: &&ObservedAccess| shared.contains(&(access.address / line_size));
    let on_lines: Vec<ObservedAccess> = accesses.iter().filter(on_shared).copied().collect();
    let samples_on_lines: Vec<ObservedAccess> = samples.iter().filter(on_shared).copied().collect();
    lines(&mut builder, &on_lines, &samples_on_lines, &transfers, &mut evidence);
    let others: Vec<ObservedAccess> = accesses.iter().filter(|access| !on_shared(access)).copied().collect();
    let known = evidence.objects();
    let private = slots(&mut builder, &others, |object| known.contains(&object), &mut evidence);
    evidence.private_lines = as_lines(private, line_size);
    types(&mut builder, &samples, &objects, &mut evidence);
    evidence.subjects = builder.resolved.subjects;
    evidence
}

/// Gives samples of types without any address those of an assumed object, and returns these.
fn assume_objects(samples: &mut [ObservedAccess], resolved: &Resolved) -> Vec<ObservedAccess> {
    let addressed: FxHashSet<usize> = samples
        .iter()
        .filter(|sample| sample.address != 0)
        .filter_map(|sample| Some(resolved.operands.get(&sample.instruction)?.subject))
        .collect();
    // of each field: samples by thread, and whether one of them updates it atomically
    let mut fields: BTreeMap<(usize, u64), (BTreeMap<u32, u64>, bool)> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.address == 0) {
        let Some(operand) = resolved.operands.get(&sample.instruction) else { continue };
        if addressed.contains(&operand.subject) || operand.offset >= ASSUMED_STEP {
            continue;
        }
        let (threads, atomic) = fields.entry((operand.subject, operand.offset)).or_default();
        *threads.entry(sample.thread).or_default() += 1;
        *atomic |= resolved.sites.get(&sample.instruction).is_some_and(|site| site.atomic);
    }
    let owners = |threads: &BTreeMap<u32, u64>| -> BTreeSet<u32> {
        let all: u64 = threads.values().sum();
        let main = threads.iter().filter(|(_, samples)| **samples as f64 > all as f64 * MINOR);
        main.map(|(thread, _)| *thread).collect()
    };
    let is_likely = |place: &(usize, u64)| {
        let Some((threads, atomic)) = fields.get(place) else { return false };
        let own = owners(threads);
        let others = fields.range((place.0, 0)..(place.0 + 1, 0)).filter(|(other, _)| *other != place);
        *atomic && own.len() > 1
            || others.into_iter().any(|(_, (threads, _))| owners(threads).is_disjoint(&own))
    };
    let likely: FxHashSet<(usize, u64)> = fields.keys().filter(|place| is_likely(place)).copied().collect();
    let mut assumed = Vec::new();
    for sample in samples.iter_mut().filter(|sample| sample.address == 0) {
        let Some(operand) = resolved.operands.get(&sample.instruction) else { continue };
        if likely.contains(&(operand.subject, operand.offset)) {
            let object = (operand.subject as u64).saturating_mul(ASSUMED_STEP);
            sample.address = ASSUMED.saturating_add(object).saturating_add(operand.offset);
            assumed.push(*sample);
        }
    }
    assumed
}

/// Makes addresses exact that are known up to a word: that of a sample of the instruction in the word, else by the
/// offset of the field in an object that is as aligned as the word.
fn refine(accesses: &mut [ObservedAccess], samples: &[ObservedAccess], resolved: &Resolved) {
    let mut sampled: FxHashMap<(u32, u64), u64> = FxHashMap::default();
    let grain = accesses.iter().map(|access| access.grain).max().unwrap_or(1).max(1);
    for sample in samples.iter().filter(|sample| sample.address != 0) {
        sampled.insert((sample.instruction, sample.address / grain), sample.address);
    }
    for access in accesses.iter_mut().filter(|access| access.grain > 1) {
        if let Some(address) = sampled.get(&(access.instruction, access.address / grain)) {
            access.address = *address;
        } else if let Some(operand) = resolved.operands.get(&access.instruction)
            && let Some(subject) = resolved.subjects.get(operand.subject)
            && subject.align.is_multiple_of(access.grain)
        {
            access.address += operand.offset % access.grain;
        }
        access.grain = 1;
    }
}

/// Returns, of each line and address that several threads access, one of which writes, the accesses to it that follow
/// one of another thread, of which one writes. The first access of a thread is none: threads that use the memory of
/// others which have ended, their stacks for one, do not contend for it.
fn transfers(accesses: &[ObservedAccess], line_size: u64) -> BTreeMap<(u64, u64), u64> {
    let mut last: FxHashMap<u64, (u32, bool)> = FxHashMap::default();
    let mut known: FxHashSet<(u64, u32)> = FxHashSet::default();
    let mut transfers: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for access in accesses {
        let line = access.address / line_size;
        let is_first = known.insert((line, access.thread));
        if let Some((before, wrote)) = last.insert(line, (access.thread, access.writes))
            && before != access.thread
            && !is_first
            && (wrote || access.writes)
        {
            *transfers.entry((line, access.address)).or_default() += 1;
        }
    }
    transfers
}

/// The accessed parts of lines by address and subject, by the number of the line.
type SlotsByLine = BTreeMap<u64, BTreeMap<(u64, usize), Slot>>;

/// Returns the parts of lines that are accessed, of the objects (type or variable, and start) that a condition admits.
fn slots(
    builder: &mut Builder<'_>,
    accesses: &[ObservedAccess],
    admits: impl Fn((usize, u64)) -> bool,
    evidence: &mut Evidence,
) -> SlotsByLine {
    let mut by_line = SlotsByLine::new();
    for access in accesses {
        let (subject, base, field, variable) = builder.owner(access.address, access.instruction);
        if !admits((subject, base)) {
            continue;
        }
        let site = builder.site(access.instruction, evidence);
        let line = by_line.entry(access.address / evidence.line_size).or_default();
        let slot = line.entry((access.address, subject)).or_insert_with(|| Slot {
            subject,
            base,
            offset: access.address.wrapping_sub(base),
            field,
            variable,
            ..Slot::default()
        });
        slot.size = slot.size.max(u64::from(access.size));
        let counts = (u64::from(access.reads), u64::from(access.writes));
        match slot.uses.iter_mut().find(|used| (used.thread, used.site) == (access.thread, site)) {
            Some(used) => {
                used.reads += counts.0;
                used.writes += counts.1;
            }
            None => {
                slot.uses.push(SlotUse { thread: access.thread, site, reads: counts.0, writes: counts.1 })
            }
        }
    }
    by_line
}

fn as_lines(by_line: SlotsByLine, line_size: u64) -> Vec<SharedLine> {
    let line = |(line, slots): (u64, BTreeMap<_, Slot>)| SharedLine {
        address: line * line_size,
        slots: slots.into_values().collect(),
    };
    by_line.into_iter().map(line).collect()
}

fn lines(
    builder: &mut Builder<'_>,
    accesses: &[ObservedAccess],
    samples: &[ObservedAccess],
    transfers: &BTreeMap<(u64, u64), u64>,
    evidence: &mut Evidence,
) {
    let line_size = evidence.line_size;
    let mut by_line = slots(builder, accesses, |_| true, evidence);
    for ((line, address), count) in transfers {
        let Some(slots) = by_line.get_mut(line) else { continue };
        if let Some(slot) = slots.range_mut((*address, 0)..).next().map(|(_, slot)| slot) {
            slot.transfers += count;
        }
    }
    for sample in samples {
        let Some(slots) = by_line.get_mut(&(sample.address / line_size)) else { continue };
        // of a part that starts in front, the sample may be anywhere
        let slot = slots.range_mut(..=(sample.address, usize::MAX)).next_back().map(|(_, slot)| slot);
        if let Some(slot) = slot {
            slot.lost += 1;
            evidence.cycles_shared += 1;
        }
    }
    evidence.lines = as_lines(by_line, line_size);
}

/// Adds the types that samples access. A clock does not say where an access was answered: each sample counts as one
/// that waited.
fn types(builder: &mut Builder<'_>, samples: &[ObservedAccess], objects: &Found, evidence: &mut Evidence) {
    let mut by_type: BTreeMap<usize, BTreeMap<u64, FieldUse>> = BTreeMap::new();
    for sample in samples {
        let Some(operand) = builder.resolved.operands.get(&sample.instruction).cloned() else { continue };
        let site = builder.site(sample.instruction, evidence);
        let fields = by_type.entry(operand.subject).or_default();
        let field = fields.entry(operand.offset).or_insert_with(|| FieldUse {
            offset: operand.offset,
            field: operand.field.clone(),
            ..FieldUse::default()
        });
        field.size = field.size.max(u64::from(sample.size));
        field.accesses += 1;
        field.misses += 1;
        field.cycles += 1;
        field.heat += 1;
        match field.sites.iter_mut().find(|(known, _)| *known == site) {
            Some((_, count)) => *count += 1,
            None => field.sites.push((site, 1)),
        }
    }
    for (subject, fields) in by_type {
        let starts = objects.starts.get(&subject);
        let (first_object, stride) = starts.map_or((0, 0), |starts| grid(starts));
        let mut fields: Vec<FieldUse> = fields.into_values().collect();
        for field in &mut fields {
            field.sites.sort_by_key(|(site, count)| (std::cmp::Reverse(*count), *site));
            field.sites.truncate(SITES_LIMIT);
        }
        evidence.types.push(TypeUse {
            subject,
            fields,
            instructions: Vec::new(),
            objects: starts.map_or(0, |starts| starts.len() as u64),
            first_object,
            stride,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{MemberInfo, Site, Subject, SubjectKind, Update};
    use crate::resolve::{Operand, VariablePart};
    use crate::{FindingKind, rules};

    /// Names for a type of four words, whose fields instructions 0 to 3 add to, in objects from 0x1000 on.
    struct FourWords;

    impl Resolver for FourWords {
        fn resolve(&mut self, instructions: &[u32], _: &[u64]) -> Resolved {
            let member = |index: u64| MemberInfo {
                name: format!("word{index}"),
                offset: index * 8,
                size: 8,
                align: 8,
                ..MemberInfo::default()
            };
            let mut resolved = Resolved {
                subjects: vec![Subject {
                    kind: SubjectKind::Record,
                    name: "words".into(),
                    size: 32,
                    align: 8,
                    members: (0..4).map(member).collect(),
                    ..Subject::default()
                }],
                ..Resolved::default()
            };
            for instruction in instructions {
                let offset = u64::from(*instruction) * 8;
                let field = format!("word{instruction}");
                resolved.operands.insert(*instruction, Operand { subject: 0, offset, field });
                let site = Site { update: Update::Add, atomic: true, ..Site::default() };
                resolved.sites.insert(*instruction, Site { instruction: *instruction, ..site });
            }
            assert_eq!(resolved.variables.get(&0), None::<&VariablePart>);
            resolved
        }

        fn field(&self, _: usize, offset: u64) -> String {
            format!("word{}", offset / 8)
        }
    }

    fn add(instruction: u32, thread: u32, time: u64, address: u64) -> ObservedAccess {
        ObservedAccess { instruction, thread, time, address, grain: 1, size: 8, reads: true, writes: true }
    }

    fn kinds(accesses: Vec<ObservedAccess>) -> Vec<FindingKind> {
        let seen = Observations { total: accesses.len() as u64, samples: accesses.clone(), accesses };
        let evidence = observe(&seen, 64, &mut FourWords);
        rules::findings(&evidence).iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn a_word_that_two_threads_add_to_is_a_contended_counter() {
        let both = (0..100).map(|time| add(0, (time % 2) as u32, time, 0x1000)).collect();
        assert_eq!(kinds(both), [FindingKind::ContendedCounter]);
    }

    #[test]
    fn words_of_one_line_with_a_thread_each_are_shared_falsely() {
        let both =
            (0..100).map(|time| add((time % 2) as u32, (time % 2) as u32, time, 0x1000 + time % 2 * 8));
        assert_eq!(kinds(both.collect()), [FindingKind::FalseSharing]);
    }

    #[test]
    fn threads_that_use_memory_one_after_the_other_share_nothing() {
        let each = (0..1000).map(|time| add(0, (time / 20) as u32, time, 0x1000));
        assert_eq!(kinds(each.collect()), []);
    }

    #[test]
    fn threads_with_lines_of_their_own_share_nothing() {
        let both = (0..100).map(|time| add(0, (time % 2) as u32, time, 0x1000 + time % 2 * 64));
        assert_eq!(kinds(both.collect()), []);
    }

    #[test]
    fn a_line_that_is_only_read_is_not_shared() {
        let reads = (0..100).map(|time| ObservedAccess {
            writes: false,
            ..add((time % 2) as u32, (time % 2) as u32, time, 0x1000 + time % 2 * 8)
        });
        assert_eq!(kinds(reads.collect()), []);
    }

    #[test]
    fn without_addresses_one_object_is_assumed_where_threads_have_fields_of_their_own() {
        let of = |fields: fn(u64) -> u32| {
            let all = (0..100).map(|time| add(fields(time), (time % 2) as u32, time, 0));
            kinds(all.map(|access| ObservedAccess { size: 8, ..access }).collect())
        };
        assert_eq!(of(|time| (time % 2) as u32), [FindingKind::FalseSharing]);
        // an atomic word of all, and words that all threads write in turn, as of an object of each
        assert_eq!(of(|_| 0), [FindingKind::ContendedCounter]);
        let seen =
            (0..100).map(|time| add((time / 2 % 2) as u32, (time % 2) as u32, time, 0)).collect::<Vec<_>>();
        let mut resolved = FourWords.resolve(&[0, 1], &[]);
        resolved.sites.values_mut().for_each(|site| site.atomic = false);
        assert_eq!(assume_objects(&mut seen.clone(), &resolved), []);
    }

    #[test]
    fn addresses_of_words_become_those_of_fields() {
        let mut hits = [ObservedAccess { grain: 8, ..add(1, 7, 0, 0x1008) }];
        let mut resolved = FourWords.resolve(&[1], &[]);
        refine(&mut hits, &[add(1, 7, 0, 0x100c)], &resolved);
        assert_eq!((hits[0].address, hits[0].grain), (0x100c, 1));
        resolved.operands.get_mut(&1).expect("named").offset = 12;
        let mut hits = [ObservedAccess { grain: 8, ..add(1, 7, 0, 0x1008) }];
        refine(&mut hits, &[], &resolved);
        assert_eq!(hits[0].address, 0x100c);
    }
}
