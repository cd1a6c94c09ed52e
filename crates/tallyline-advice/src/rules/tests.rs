use super::*;
use crate::evidence::{
    FieldUse, FollowedField, FollowedPointer, MemberInfo, Mobility, SharedLine, Site, SlotUse, Subject,
    SubjectKind, TypeUse, Update,
};
use crate::predict::Effect;

mod fields;
mod hot_path;

fn member(name: &str, offset: u64, size: u64) -> MemberInfo {
    MemberInfo { name: name.into(), offset, size, align: size.min(8), ..MemberInfo::default() }
}

fn record(name: &str, size: u64, members: Vec<MemberInfo>) -> Subject {
    Subject { kind: SubjectKind::Record, name: name.into(), size, align: 8, members, ..Subject::default() }
}

fn site(update: Update) -> Site {
    Site { function: "receive".into(), update, atomic: update != Update::None, ..Site::default() }
}

/// A slot at an offset in an object: thread, reads, writes, by the site of an index.
fn slot(base: u64, offset: u64, uses: &[(u32, u64, u64)], site: usize) -> Slot {
    let uses = uses.iter().map(|(thread, reads, writes)| SlotUse {
        thread: *thread,
        site,
        reads: *reads,
        writes: *writes,
    });
    let variable = "table".to_owned();
    let uses = uses.collect();
    Slot { base, offset, size: 8, uses, variable, lost: 10_000, transfers: 500, ..Slot::default() }
}

fn evidence(subjects: Vec<Subject>, slots: Vec<Slot>) -> Evidence {
    Evidence {
        line_size: 64,
        sites: vec![
            site(Update::None),
            site(Update::Add),
            site(Update::AddReturning),
            site(Update::Exchange),
        ],
        subjects,
        lines: vec![SharedLine { address: 0x1000, slots }],
        cycles: 100_000,
        ..Evidence::default()
    }
}

fn kinds(evidence: &Evidence) -> Vec<FindingKind> {
    findings(evidence).iter().map(|finding| finding.kind).collect()
}

fn flow() -> Subject {
    record(
        "flow",
        32,
        vec![member("limit", 0, 8), member("next", 8, 8), member("in", 16, 8), member("out", 24, 8)],
    )
}

#[test]
fn a_word_that_several_threads_add_to_is_a_counter() {
    let found = findings(&evidence(
        vec![flow()],
        vec![Slot { field: "in".into(), ..slot(0x1000, 16, &[(1, 900, 900), (2, 900, 900)], 1) }],
    ));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].confidence), (FindingKind::ContendedCounter, Confidence::High));
    let Proposal::Counter { names, .. } = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    assert_eq!(names, &["flow.in"]);
    assert_ne!(found[0].map.map(0, 9, 0x1010), found[0].map.map(1, 9, 0x1010));
}

#[test]
fn waits_that_no_finding_is_about_are_left_open() {
    let unnamed = Subject { kind: SubjectKind::Unknown, ..Subject::default() };
    let uses = [(1, 0, 1000), (2, 0, 1000)];
    let slots = vec![
        slot(0x1000, 0, &uses, 2),
        Slot { lost: 20_000, ..slot(0x1000, 8, &uses, 1) },
        Slot { subject: 1, ..slot(0x1010, 0, &uses, 0) },
        Slot { subject: 1, ..slot(0x1020, 0, &uses, 3) },
        Slot { lost: 10, ..slot(0x1000, 24, &uses, 1) },
    ];
    let evidence = Evidence { cycles: 100_000, ..evidence(vec![flow(), unnamed], slots) };
    let places = |confirmed: &[Finding], dropped: &[Finding]| -> Vec<(usize, u64, u64)> {
        let open = left_open(&evidence, confirmed, dropped);
        open.iter().map(|field| (field.subject, field.offset, field.lost)).collect()
    };
    assert_eq!(places(&[], &[]), [(0, 8, 20_000), (1, 0, 20_000), (0, 0, 10_000)]);
    let mut findings = findings(&evidence);
    findings.retain(|found| found.kind == FindingKind::ContendedCounter);
    assert_eq!(findings.len(), 1);
    assert_eq!(places(&[], &findings), [(1, 0, 20_000), (0, 0, 10_000)]);
}

#[test]
fn waits_for_a_line_that_a_finding_cures_are_not_left_open() {
    let (readers, writers) = ([(1, 900, 0), (2, 900, 0)], [(1, 0, 900), (2, 0, 900)]);
    let setting = Slot { lost: 14_000, ..slot(0x1000, 0, &readers, 0) };
    let counter = Slot { lost: 20_000, ..slot(0x1000, 8, &writers, 1) };
    let ticket = Slot { lost: 100, ..slot(0x1000, 16, &writers, 2) };
    let open = |slots: Vec<Slot>| -> Vec<(u64, u64)> {
        let evidence = Evidence { cycles: 100_000, ..evidence(vec![flow()], slots) };
        let mut confirmed = findings(&evidence);
        confirmed.retain(|found| found.kind == FindingKind::ContendedCounter);
        assert_eq!(confirmed.len(), 1);
        left_open(&evidence, &confirmed, &[]).iter().map(|field| (field.offset, field.lost)).collect()
    };
    assert_eq!(open(vec![setting.clone(), counter.clone()]), []);
    // half of the waits are for what another field's writes take, which stays
    assert_eq!(open(vec![setting, counter, ticket]), [(0, 7_000)]);
}

#[test]
fn tickets_locks_and_reference_counts_are_no_counters() {
    for site in [2, 3] {
        let shared = slot(0x1000, 16, &[(1, 900, 900), (2, 900, 900)], site);
        assert_eq!(kinds(&evidence(vec![flow()], vec![shared])), [], "site {site}");
    }
}

#[test]
fn a_word_that_others_wait_for_is_no_counter() {
    let mut shared = slot(0x1000, 16, &[(1, 0, 900), (2, 0, 900)], 1);
    shared.uses.push(SlotUse { thread: 2, site: 0, reads: 700, writes: 0 });
    assert_eq!(kinds(&evidence(vec![flow()], vec![shared])), []);
}

#[test]
fn fields_of_different_writers_go_to_lines_of_their_own() {
    let slots = vec![
        slot(0x1000, 0, &[(1, 500, 0), (2, 500, 0)], 0),
        slot(0x1000, 16, &[(1, 900, 900)], 0),
        slot(0x1000, 24, &[(2, 900, 900)], 0),
    ];
    let found = findings(&evidence(vec![flow()], slots));
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::FalseSharing]);
    let Proposal::Layout(layout) = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    let placed: Vec<_> = layout.members.iter().map(|member| (member.name.as_str(), member.offset)).collect();
    assert_eq!(placed, [("limit", 0), ("next", 8), ("in", 64), ("out", 128)]);
    assert_eq!((layout.sizes, layout.lines), ((32, 192), (1, 3)));
    assert!(
        found[0]
            .check
            .as_ref()
            .is_some_and(|check| check.contains("[\"limit\", \"next\"], [\"in\"], [\"out\"]"))
    );
    let lines: Vec<u64> = [0x1000, 0x1010, 0x1018].map(|at| found[0].map.map(0, 0, at) / 64).to_vec();
    assert!(lines[0] != lines[1] && lines[1] != lines[2] && lines[0] != lines[2], "{lines:?}");
}

#[test]
fn an_access_over_two_members_moves_the_first_alone() {
    let slots = vec![
        slot(0x1000, 16, &[(1, 900, 900)], 0),
        // by memcpy, of what was there before
        Slot { lost: 0, transfers: 0, ..slot(0x1000, 20, &[(1, 1, 0)], 0) },
        slot(0x1000, 24, &[(2, 900, 900)], 0),
    ];
    let found = findings(&evidence(vec![flow()], slots));
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::FalseSharing]);
    let lines = [0x1010, 0x1014, 0x1018].map(|at| found[0].map.map(0, 0, at) / 64);
    assert!(lines[0] == lines[1] && lines[1] != lines[2], "{lines:?}");
}

#[test]
fn fields_of_one_thread_in_each_object_stay_together() {
    // thread 1 has the first object, thread 2 the second, on another line
    let mut evidence = evidence(
        vec![flow()],
        vec![slot(0x1000, 16, &[(1, 900, 900)], 0), slot(0x1000, 24, &[(1, 900, 900)], 0)],
    );
    evidence.lines.push(SharedLine {
        address: 0x1040,
        slots: vec![slot(0x1040, 16, &[(2, 900, 900)], 0), slot(0x1040, 24, &[(2, 900, 900)], 0)],
    });
    assert_eq!(kinds(&evidence), []);
}

#[test]
fn elements_of_different_threads_are_neighbours() {
    let elements = (0..4).map(|at| slot(0x1000 + 16 * at, 0, &[(at as u32, 900, 900)], 0)).collect();
    let stats = record("stats", 16, vec![member("received", 0, 8), member("dropped", 8, 8)]);
    let found = findings(&evidence(vec![stats], elements));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, FindingKind::SharedNeighbours);
    assert_eq!(found[0].reader_lines, (1, 4), "the reader's price");
    assert!(found[0].check.as_ref().is_some_and(|check| check.contains("per-cpu = true")));
}

#[test]
fn objects_of_an_allocator_are_padded_where_it_may_not_keep_alignments() {
    let stats = |language: &str| Subject {
        language: language.into(),
        ..record("stats", 16, vec![member("received", 0, 8), member("dropped", 8, 8)])
    };
    let sizes = |language| {
        let elements: Vec<Slot> =
            (0..4).map(|at| slot(0x1000 + 16 * at, 0, &[(at as u32, 900, 900)], 0)).collect();
        let unnamed = elements.into_iter().map(|slot| Slot { variable: String::new(), ..slot }).collect();
        let found = edits(&evidence(vec![stats(language)], unnamed));
        let Proposal::Apart { pad, sizes, .. } = found[0].proposal else { panic!("{:?}", found[0]) };
        (pad, sizes.1, found[0].check.is_some())
    };
    assert_eq!(sizes("C"), (64, 80, false));
    assert_eq!(sizes("Rust"), (0, 64, true));
}

#[test]
fn edits_stripe_counters_that_are_members_and_keep_their_additions_atomic() {
    let slots = vec![
        slot(0x1000, 0, &[(1, 500, 0), (2, 500, 0)], 0),
        slot(0x1000, 16, &[(1, 900, 900), (2, 900, 900)], 1),
    ];
    let of_member = evidence(vec![flow()], slots.clone());
    let (whole, found) = (findings(&of_member), edits(&of_member));
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::ContendedCounter]);
    assert!(found[0].is_edit(&of_member));
    assert!(found[0].map.plain().is_empty() && !whole[0].map.plain().is_empty());
    // half of a member is no counter that a declaration could make
    let half = Subject { members: vec![member("limit", 0, 8), member("pair", 16, 16)], ..flow() };
    let of_half = evidence(vec![half], slots);
    assert_eq!(kinds(&of_half), [FindingKind::ContendedCounter]);
    let found = edits(&of_half);
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::FalseSharing]);
}

#[test]
fn variables_of_different_threads_are_strangers() {
    let variable = |name: &str| Subject {
        kind: SubjectKind::Variable,
        name: name.into(),
        size: 8,
        ..Subject::default()
    };
    let mut slots = vec![slot(0x1000, 0, &[(1, 900, 900)], 0), slot(0x1008, 0, &[(2, 900, 900)], 0)];
    slots[1].subject = 1;
    slots.iter_mut().for_each(|slot| slot.variable.clear());
    let found = findings(&evidence(vec![variable("head"), variable("tail")], slots));
    assert_eq!(found.len(), 1);
    let Proposal::Apart { names, .. } = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    assert_eq!(names, &["head", "tail"]);
}

#[test]
fn words_of_the_allocator_are_no_strangers_to_the_block_beside_them() {
    let chunk = Subject { is_library_type: true, ..record("malloc_chunk", 16, Vec::new()) };
    let found = |is_runtime| {
        let mut slots = vec![slot(0x1000, 0, &[(1, 900, 900)], 0), slot(0x1010, 0, &[(2, 900, 900)], 1)];
        slots[1].subject = 1;
        slots.iter_mut().for_each(|slot| slot.variable.clear());
        let mut evidence = evidence(vec![record("page", 16, Vec::new()), chunk.clone()], slots);
        evidence.sites[1] = Site { is_runtime, ..site(Update::None) };
        kinds(&evidence)
    };
    assert_eq!(found(true), []);
    assert_eq!(found(false), [FindingKind::SharedStrangers], "a type of the library in the program's hands");
}

#[test]
fn no_type_of_a_library_is_to_be_aligned() {
    let of_library = |name: &str| Subject { is_library_type: true, ..record(name, 16, Vec::new()) };
    let found = |first: Subject| {
        let mut slots = vec![slot(0x1000, 0, &[(1, 900, 900)], 0), slot(0x1010, 0, &[(2, 900, 900)], 0)];
        slots[1].subject = 1;
        slots.iter_mut().for_each(|slot| slot.variable.clear());
        findings(&evidence(vec![first, of_library("std::map")], slots))
    };
    assert!(found(of_library("std::counts")).is_empty());
    let own = found(record("page", 16, Vec::new()));
    let Proposal::Apart { names, .. } = &own[0].proposal else { panic!("{:?}", own[0].proposal) };
    assert_eq!(names, &["page"]);
}

#[test]
fn all_variables_of_a_line_are_set_apart_at_once_by_their_threads() {
    let variable = |name: &str| Subject {
        kind: SubjectKind::Variable,
        name: name.into(),
        size: 8,
        ..Subject::default()
    };
    let names = ["rx_frames", "rx_bytes", "tx_frames", "tx_bytes"];
    let slots = (0..4).map(|at: usize| Slot {
        subject: at,
        variable: String::new(),
        ..slot(0x1000 + 8 * at as u64, 0, &[(1 + at as u32 / 2, 900, 900), (7, 1, 0)], 0)
    });
    let found = findings(&evidence(names.map(variable).to_vec(), slots.collect()));
    assert_eq!(found.len(), 1);
    let Proposal::Apart { names, .. } = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    assert_eq!(names, &["rx_bytes", "rx_frames", "tx_bytes", "tx_frames"]);
    let lines = [0x1000, 0x1008, 0x1010, 0x1018].map(|at| found[0].map.map(0, 9, at) / 64);
    assert!(lines[0] == lines[1] && lines[2] == lines[3] && lines[0] != lines[2], "{lines:?}");
}

#[test]
fn a_count_of_references_may_stay_beside_what_its_holders_read() {
    // who reads has counted itself, and has the line
    let object = vec![
        slot(0x1000, 16, &[(1, 0, 900), (2, 0, 900)], 2),
        Slot { lost: 100, ..slot(0x1000, 0, &[(1, 450, 0), (2, 450, 0), (3, 0, 1)], 0) },
    ];
    assert_eq!(kinds(&evidence(vec![flow()], object)), []);
}

#[test]
fn fields_that_are_only_initialised_or_come_with_a_lock_are_not_named() {
    let slots = vec![
        slot(0x1000, 0, &[(1, 900, 0), (2, 900, 0), (9, 0, 1)], 0),
        slot(0x1000, 8, &[(9, 0, 1)], 0),
        slot(0x1000, 16, &[(3, 0, 900)], 3),
        Slot { lost: 10, ..slot(0x1000, 24, &[(3, 450, 0)], 0) },
    ];
    let found = findings(&evidence(vec![flow()], slots));
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::FalseSharing]);
    let offsets: Vec<u64> = found[0].fields.iter().map(|field| field.offset).collect();
    assert_eq!(offsets, [0, 16], "the settings that others read, and the lock");
}

#[test]
fn parts_of_one_member_and_members_of_one_group_are_no_false_sharing() {
    // a shard behind a mutex, whose kind is read in front of the exchange: the lock comes with its line, the capacity
    // behind it, and who counts hits has the lock of the shard on another line
    let members = vec![
        member("lock", 0, 40),
        member("capacity", 40, 8),
        member("hits", 64, 8),
        member("misses", 72, 8),
    ];
    let shard = Subject { align: 64, ..record("shard", 128, members) };
    let lock = |uses: &[(u32, u64, u64)]| {
        vec![
            slot(0x1000, 0, uses, 3),
            slot(0x1000, 16, &[(1, 900, 0), (2, 900, 0)], 0),
            Slot { lost: 10, ..slot(0x1000, 40, &[(1, 450, 0), (2, 450, 0)], 0) },
        ]
    };
    let counts = vec![
        slot(0x1000, 64, &[(1, 300, 300), (2, 300, 300)], 0),
        slot(0x1000, 72, &[(1, 150, 150), (2, 150, 150)], 0),
    ];
    let with = |slots: Vec<Slot>| {
        let mut evidence = evidence(vec![shard.clone()], slots);
        evidence.lines.push(SharedLine { address: 0x1040, slots: counts.clone() });
        evidence
    };
    assert_eq!(kinds(&with(lock(&[(1, 0, 900), (2, 0, 900)]))), []);
    // a thread that reads the capacity without the lock waits for those that take it
    let mut slots = lock(&[(1, 0, 900), (2, 0, 900)]);
    slots[2] = slot(0x1000, 40, &[(1, 450, 0), (2, 450, 0), (3, 5000, 0)], 0);
    let found = findings(&with(slots));
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::FalseSharing]);
    let offsets: Vec<u64> = found[0].fields.iter().map(|field| field.offset).collect();
    assert_eq!((offsets, found[0].lines), (vec![0, 40], 1));
}

#[test]
fn a_field_has_no_instructions_of_the_runtime() {
    let mut evidence = evidence(vec![flow()], Vec::new());
    evidence.sites[1].is_runtime = true;
    let field = FieldEvidence { sites: vec![(1, 9, 9), (0, 5, 1), (7, 1, 1)], ..FieldEvidence::default() };
    let own: Vec<_> =
        field.own_sites(&evidence).map(|(site, reads, writes)| (site.update, reads, writes)).collect();
    assert_eq!(own, [(Update::None, 5, 1)]);
}

#[test]
fn the_runtimes_own_lines_and_cheap_ones_are_left_out() {
    let slots = || vec![slot(0x1000, 16, &[(1, 900, 900)], 0), slot(0x1000, 24, &[(2, 900, 900)], 0)];
    let mut of_runtime = evidence(vec![flow()], slots());
    of_runtime.sites[0].is_runtime = true;
    assert_eq!(kinds(&of_runtime), []);
    let mut cheap = evidence(vec![flow()], slots());
    cheap.cycles = 1 << 40;
    assert_eq!(kinds(&cheap), []);
    let unknown = evidence(vec![Subject { kind: SubjectKind::Unknown, ..Subject::default() }], slots());
    assert_eq!(kinds(&unknown), []);
}

#[test]
fn a_counter_that_waits_for_nothing_goes_with_the_one_in_front_of_it() {
    let uses = [(1, 900, 900), (2, 900, 900)];
    let behind = Slot { lost: 0, transfers: 0, field: "out".into(), ..slot(0x1000, 24, &uses, 1) };
    let read = Slot { lost: 0, transfers: 0, field: "limit".into(), ..slot(0x1000, 0, &[(1, 900, 0)], 0) };
    let found = findings(&evidence(
        vec![flow()],
        vec![read, Slot { field: "in".into(), ..slot(0x1000, 16, &uses, 1) }, behind],
    ));
    let Proposal::Counter { names, .. } = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    assert_eq!(names, &["flow.in", "flow.out"]);
}

#[test]
fn a_word_that_is_added_to_behind_a_lock_is_no_contended_counter() {
    let plain = Site { atomic: false, ..site(Update::Add) };
    let evidence = |locked| {
        let threads: Vec<u32> = vec![1, 2];
        let uses = |reads: u64, writes: u64| -> Vec<(u32, u64, u64)> {
            threads.iter().map(|thread| (*thread, reads, writes)).collect()
        };
        let lock = slot(0x1000, 0, &uses(0, locked), 1);
        let dropped = slot(0x1000, 8, &uses(1000, 1000), 0);
        Evidence {
            sites: vec![plain.clone(), site(Update::Exchange)],
            ..self::evidence(
                vec![record("journey", 16, vec![member("lock", 0, 4), member("dropped", 8, 8)])],
                vec![lock, dropped],
            )
        }
    };
    let is_counter = |locked| {
        let all = findings(&evidence(locked));
        all.iter().any(|finding| finding.kind == FindingKind::ContendedCounter)
    };
    assert!(!is_counter(2000));
    assert!(is_counter(10), "a lock that is hardly taken guards something else");
}

#[test]
fn an_alignment_that_a_type_declares_stays() {
    let members =
        vec![member("key", 0, 8), member("name", 8, 100), member("value", 112, 8), member("note", 120, 100)];
    let of_field = |offset| FieldUse {
        offset,
        size: 8,
        accesses: 10_000,
        cycles: 20_000,
        heat: 20_000,
        misses: 5_000,
        ..FieldUse::default()
    };
    let evidence = Evidence {
        line_size: 64,
        subjects: vec![Subject { align: 64, ..record("device", 256, members) }],
        types: vec![TypeUse {
            fields: vec![of_field(0), of_field(112)],
            instructions: vec![(5, 0), (6, 112)],
            objects: 4096,
            stride: 256,
            ..TypeUse::default()
        }],
        cycles: 100_000,
        ..Evidence::default()
    };
    let found = findings(&evidence);
    let Proposal::Layout(layout) = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    assert_eq!(layout.sizes, (256, 256));
    assert_eq!(found[0].map.map(0, 6, 3 * 256 + 112), 3 * 256 + 8, "objects stay where they are");
}

#[test]
fn holes_matter_where_objects_lie_side_by_side() {
    let members =
        vec![member("open", 0, 1), member("price", 8, 8), member("side", 16, 1), member("size", 24, 8)];
    let of_field = |offset| FieldUse {
        offset,
        size: 8,
        accesses: 10_000,
        cycles: 20_000,
        heat: 20_000,
        misses: 5_000,
        ..FieldUse::default()
    };
    let evidence = |stride| Evidence {
        line_size: 64,
        subjects: vec![record("order", 32, members.clone())],
        types: vec![TypeUse {
            fields: vec![of_field(0), of_field(8), of_field(16), of_field(24)],
            objects: 4096,
            stride,
            ..TypeUse::default()
        }],
        cycles: 100_000,
        ..Evidence::default()
    };
    let found = findings(&evidence(32));
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::Holes]);
    let Proposal::Layout(layout) = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    assert_eq!(layout.sizes, (32, 24));
    assert_eq!(kinds(&evidence(48)), [], "objects that the allocator rounds up");
    let mut initialised = evidence(32);
    initialised.types[0].fields.iter_mut().for_each(|field| field.heat = 0);
    assert_eq!(findings(&initialised)[0].fields.len(), found[0].fields.len());
}

#[test]
fn what_the_model_does_not_confirm_is_dropped() {
    let elements = (0..4).map(|at| slot(0x1000 + 16 * at, 0, &[(at as u32, 900, 900)], 0)).collect();
    let found = findings(&evidence(vec![record("stats", 16, vec![member("a", 0, 8)])], elements));
    let finding = found.into_iter().next().expect("a finding");
    let outlook = |low, median, high| {
        let run = Effect { low, median, high, mean: (low + median + high) / 3.0 };
        Outlook { run, cores: run }
    };
    assert!(!finding.clone().judge(outlook(0.9, 1.0, 1.3), Confidence::High));
    let mut unsure = finding.clone();
    assert!(unsure.judge(outlook(0.95, 1.2, 1.3), Confidence::High));
    assert_eq!(unsure.confidence, Confidence::Low);
    let mut at_times = finding.clone();
    assert!(at_times.judge(outlook(1.0, 1.01, 1.8), Confidence::High), "it loses on no schedule");
    assert_eq!(at_times.confidence, Confidence::Low);
    assert!(!finding.clone().judge(outlook(0.98, 1.01, 1.8), Confidence::High));
    let mut seldom = Finding { transfers: 45, ..finding.clone() };
    assert!(!seldom.judge(outlook(1.02, 1.04, 1.08), Confidence::High), "it rests on a few transfers");
    assert!(
        seldom.judge(outlook(1.3, 1.4, 1.5), Confidence::High),
        "it gains more than their number deviates by"
    );
    let mut path = Finding { kind: FindingKind::HotPathLines, ..seldom };
    assert!(path.judge(outlook(1.02, 1.04, 1.08), Confidence::High), "it does not rest on them");
    assert!(path.judge(outlook(0.995, 1.008, 1.01), Confidence::High), "the model understates it");
    assert!(!path.judge(outlook(0.995, 1.005, 1.03), Confidence::High), "one schedule alone");
    assert!(!path.judge(outlook(0.98, 1.008, 1.01), Confidence::High), "it may lose");
    let mut many = Finding { lines: 1000, ..finding.clone() };
    assert!(!many.judge(outlook(1.02, 1.04, 1.05), Confidence::High), "64 bytes for 16, a thousand times");
    assert!(many.judge(outlook(1.06, 1.07, 1.08), Confidence::High));
    let mut sure = finding;
    assert!(sure.judge(outlook(1.1, 1.2, 1.3), Confidence::High));
    assert_eq!(sure.confidence, Confidence::High);
}

/// Sessions, each with a pointer to its own object of two words and more bytes.
fn sessions(rest: u64) -> Evidence {
    let subjects = vec![
        record("session", 16, vec![member("id", 0, 8), member("to", 8, 8)]),
        record("object", 16 + rest, vec![member("key", 0, 8), member("bytes", 8, 8)]),
    ];
    let field = |offset, name: &str, visits, stores| FollowedField {
        offset,
        size: 8,
        field: name.into(),
        visits,
        stores,
        cycles: 4000,
        misses: 900,
        instructions: vec![(offset as u32 + 10, visits, 0)],
        sites: vec![(0, visits, 0)],
    };
    let of_type = |subject, instruction| TypeUse {
        subject,
        objects: 1000,
        stride: 16,
        first_object: 0x10_0000,
        instructions: vec![(instruction, 0), (instruction + 8, 8)],
        ..TypeUse::default()
    };
    Evidence {
        cycles: 20_000,
        types: vec![of_type(0, 1), of_type(1, 10)],
        pointers: vec![FollowedPointer {
            subject: 0,
            offset: 8,
            field: "to".into(),
            target: 1,
            visits: 1000,
            slots: 1000,
            target_loads: (2000, 10),
            targets: (0..1000).map(|at| (0x90_0000 + 48 * (at * 7 % 1000), 0x10_0008 + 16 * at)).collect(),
            // every hundredth has not been followed
            holders: (0..1010).map(|at| 0x10_0000 + 16 * at).collect(),
            fields: vec![field(0, "key", 1000, 0), field(8, "bytes", 1000, 0)],
            ..FollowedPointer::default()
        }],
        ..evidence(subjects, Vec::new())
    }
}

#[test]
fn a_small_object_goes_into_the_place_of_the_only_pointer_to_it() {
    let evidence = sessions(0);
    // all 16 bytes are read: the object moves as a whole
    let found = findings(&evidence);
    assert_eq!(kinds(&evidence), [FindingKind::PointerChasing]);
    let named: Vec<_> = found[0].fields.iter().map(|of| (of.subject, of.field.as_str())).collect();
    assert_eq!(named, [(0, "to"), (1, "key"), (1, "bytes")]);
    let sizes = (16, 24);
    let embedded = Proposal::Embed { pointer: "session.to".into(), target: "object".into(), sizes };
    assert_eq!(found[0].proposal, embedded);
    let map = &found[0].map;
    // the third session and its object, which is the 15th
    let (session, object) = (0x10_0020, 0x90_0000 + 48 * 14);
    assert_eq!(map.map(0, 18, object + 8) - map.map(0, 10, object), 8);
    assert_eq!(map.map(0, 10, object) - map.map(0, 1, session), 8, "in the pointer's place");
    assert_eq!(map.map(0, 1, session + 16) - map.map(0, 1, session), 24, "side by side as before");
    let unfollowed = 0x10_0000 + 16 * 1005;
    assert_eq!(
        map.map(0, 1, unfollowed) - map.map(0, 1, session),
        24 * 1003,
        "holders that are not followed, too"
    );
}

#[test]
fn alignments_and_members_behind_a_pointer_are_kept() {
    let sizes = |change: fn(&mut Evidence)| {
        let mut evidence = sessions(0);
        change(&mut evidence);
        match &findings(&evidence)[..] {
            [Finding { proposal: Proposal::Embed { sizes, .. }, .. }] => Some(*sizes),
            _ => None,
        }
    };
    let aligned = |evidence: &mut Evidence| {
        (evidence.subjects[1].size, evidence.subjects[1].align) = (32, 32);
        evidence.pointers[0].fields[0].stores = 5000;
    };
    assert_eq!(sizes(aligned), Some((16, 64)));
    let damaged = |evidence: &mut Evidence| {
        evidence.subjects[1].align = 1 << 63;
        evidence.pointers[0].fields[0].stores = 5000;
    };
    assert_eq!(sizes(damaged), None, "an alignment that no object has");
    let small = |evidence: &mut Evidence| {
        (evidence.subjects[1].size, evidence.subjects[1].align) = (12, 4);
        evidence.subjects[0].members[0] = member("id", 0, 4);
    };
    assert_eq!(sizes(small), Some((16, 16)), "12 bytes behind 4, where 8 were behind 4 and 4 of padding");
    let union = |evidence: &mut Evidence| evidence.subjects[0].members.push(member("number", 8, 8));
    assert_eq!(sizes(union), None, "members that overlap");
    let nested = |evidence: &mut Evidence| {
        evidence.subjects[0].members =
            vec![member("id", 0, 8), MemberInfo { align: 8, ..member("both", 8, 16) }];
        evidence.subjects[0].size = 24;
        evidence.types[0].stride = 24;
    };
    assert_eq!(sizes(nested), Some((24, 32)));
    let heap = |evidence: &mut Evidence| evidence.types[0].stride = 0;
    assert_eq!(sizes(heap), Some((16, 24)));
}

#[test]
fn holders_of_the_heap_keep_the_memory_between_them() {
    let mut evidence = sessions(24);
    evidence.types[0].stride = 0;
    evidence.pointers[0].holders = vec![0x10_0000, 0x10_0040, 0x20_0000];
    evidence.pointers[0].fields.iter_mut().for_each(|field| field.stores = 5000);
    let found = findings(&evidence);
    let start = |address| found[0].map.map(0, 1, address) - found[0].map.map(0, 1, 0x10_0000);
    // 48 bytes for 16: blocks of 64 for 32
    assert_eq!((start(0x10_0040), start(0x20_0000)), (0x40 + 32, 0x10_0000 + 64));
}

#[test]
fn a_key_is_copied_beside_the_pointer_where_most_visits_read_no_more() {
    let with = |change: fn(&mut FollowedPointer)| {
        let mut evidence = sessions(200);
        evidence.pointers[0].fields[1].visits = 100;
        change(&mut evidence.pointers[0]);
        findings(&evidence)
    };
    let found = with(|_| {});
    let copied = match &found[..] {
        [Finding { proposal: Proposal::CopyBeside { fields, sizes, .. }, .. }] => {
            Some((fields.clone(), *sizes))
        }
        _ => None,
    };
    assert_eq!(copied, Some((vec!["object.key".to_owned()], (16, 24))));
    let object = 0x90_0000 + 48 * 7;
    assert_eq!(found[0].map.map(0, 10, object) - found[0].map.map(0, 1, 0x10_0010), 16);
    assert_eq!(found[0].map.map(0, 18, object + 8), object + 8, "the rest stays");
    assert_eq!(with(|pointer| pointer.fields[0].stores = 1000).len(), 1, "filled once");
    assert_eq!(
        with(|pointer| pointer.fields[0].stores = 5000).len(),
        0,
        "a copy of what is written goes stale"
    );
    assert_eq!(with(|pointer| pointer.other_visits = 900).len(), 0, "its bytes are compared");
    assert_eq!(with(|pointer| pointer.fields[1].visits = 600).len(), 0, "most read more");
}

#[test]
fn members_that_one_instruction_accesses_are_named_each() {
    let mut evidence = sessions(0);
    evidence.pointers[0].fields[0].size = 16;
    evidence.pointers[0].fields.truncate(1);
    let found = findings(&evidence);
    let named: Vec<_> = found[0].fields.iter().map(|of| (of.field.as_str(), of.size)).collect();
    assert_eq!(named, [("to", 8), ("key", 8), ("bytes", 8)]);
}

#[test]
fn pointers_that_cost_little_or_lead_to_what_others_have_are_left() {
    let changed = |change: fn(&mut FollowedPointer)| {
        let mut evidence = sessions(0);
        change(&mut evidence.pointers[0]);
        findings(&evidence).len()
    };
    assert_eq!(changed(|_| {}), 1);
    assert_eq!(changed(|pointer| pointer.shared = 100), 0, "several pointers");
    assert_eq!(changed(|pointer| pointer.slots = 1), 0, "a cursor");
    assert_eq!(changed(|pointer| pointer.replaced = 100), 0, "another object now and then");
    let mut counted = sessions(0);
    counted.sites[0].atomic = true;
    assert_eq!(findings(&counted).len(), 0, "a count of references");
    assert_eq!(changed(|pointer| pointer.parts = 100), 0, "bases of larger objects");
    assert_eq!(changed(|pointer| pointer.conflicts = 100), 0, "not one object each");
    assert_eq!(changed(|pointer| pointer.target_loads = (10, 5000)), 0, "found in other ways");
    assert_eq!(changed(|pointer| pointer.fields.iter_mut().for_each(|field| field.misses = 0)), 0, "close");
    assert_eq!(changed(|pointer| pointer.targets.retain(|object, _| *object < 0x90_1000)), 0, "few");
    assert_eq!(changed(|pointer| pointer.holders = vec![0, u64::MAX]), 0, "a damaged trace");
}

#[test]
fn of_two_pointers_to_one_type_the_costlier_is_advised() {
    let mut evidence = sessions(0);
    let mut other = evidence.pointers[0].clone();
    other.fields[0].cycles = 5000;
    other.offset = 0;
    other.field = "id".into();
    evidence.pointers.push(other);
    let found = findings(&evidence);
    assert_eq!((found.len(), found[0].fields[0].field.as_str()), (1, "id"));
}
