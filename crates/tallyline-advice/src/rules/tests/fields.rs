use super::*;
use crate::address_map::AddressMap;

#[test]
fn a_field_of_another_line_goes_with_the_fields_of_its_thread() {
    let members = vec![
        member("name", 0, 48),
        member("head", 48, 8),
        member("polls", 56, 8),
        member("idle", 64, 8),
        member("spare", 72, 8),
    ];
    let private =
        |at: u64, uses: &[(u32, u64, u64)]| Slot { lost: 0, transfers: 0, ..slot(0x1000, at, uses, 0) };
    let queue = Subject { align: 64, ..record("queue", 128, members) };
    let mut evidence = evidence(
        vec![queue],
        vec![slot(0x1000, 48, &[(1, 900, 900)], 0), slot(0x1000, 56, &[(2, 900, 900)], 0)],
    );
    evidence.private_lines = vec![SharedLine { address: 0x1040, slots: vec![private(64, &[(2, 900, 900)])] }];
    let found = findings(&evidence);
    let Proposal::Layout(layout) = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    let group = |name: &str| {
        layout.members.iter().find(|member| member.name == name).map(|member| (member.group, member.offset))
    };
    assert_eq!(group("head").map(|place| place.0), group("name").map(|place| place.0));
    assert_eq!((group("polls"), group("idle")), (Some((1, 64)), Some((1, 72))));
    // the prediction has it where the layout does
    let [head, polls, idle] = [0x1030, 0x1038, 0x1040].map(|at| found[0].map.map(0, 0, at));
    assert_eq!((polls - head, idle - polls), (64 - 48, 8));
    let named: Vec<u64> = found[0].fields.iter().map(|field| field.offset).collect();
    assert_eq!(named, [48, 56], "it takes no part in the conflict");
}

/// The kinds of members beside two that different threads write, with the proposed order or the reason against one.
fn order_beside(others: Vec<MemberInfo>, slots: Vec<Slot>) -> Result<Vec<(String, u64)>, String> {
    let mut members = vec![member("in", 0, 8), member("out", 8, 8)];
    members.extend(others);
    members.sort_by_key(|member| member.offset);
    let mut all = vec![slot(0x1000, 0, &[(1, 900, 900)], 0)];
    all.extend(slots);
    let found = findings(&evidence(vec![record("flow", 64, members)], all));
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::FalseSharing]);
    assert_eq!(found[0].fields.len(), 2, "both fields are named");
    match &found[0].proposal {
        Proposal::Layout(layout) => {
            Ok(layout.members.iter().map(|member| (member.name.clone(), member.offset)).collect())
        }
        Proposal::Refused { why, .. } => Err(why.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn members_that_cannot_move_alone_keep_no_others_from_it() {
    let out = || vec![slot(0x1000, 8, &[(2, 900, 900)], 0)];
    let place = |name: &str, offset| (name.to_owned(), offset);
    let bits = |offset| MemberInfo {
        align: 4,
        mobility: Mobility::Attached("a bit-field"),
        ..member("bits", offset, 1)
    };
    assert_eq!(
        order_beside(vec![bits(16)], out()),
        Ok(vec![place("in", 0), place("out", 64), place("bits", 72)])
    );
    let unnamed = order_beside(vec![member("", 16, 8)], out());
    assert_eq!(unnamed, Ok(vec![place("in", 0), place("", 8), place("out", 64)]));
    let array = MemberInfo { mobility: Mobility::End, align: 1, ..member("bytes", 16, 0) };
    let with_array = order_beside(vec![array], out());
    assert_eq!(with_array, Ok(vec![place("in", 0), place("out", 64), place("bytes", 128)]));
    // the conflict is with the bits themselves
    let of_bits = vec![slot(0x1000, 16, &[(2, 900, 900)], 0)];
    let beside = vec![bits(16), member("next", 24, 8)];
    let why = order_beside(beside, of_bits).map(|order| order.len());
    assert_eq!(why, Ok(4), "they move with `out`");
    let union = vec![MemberInfo { align: 8, ..member("text", 4, 8) }];
    assert_eq!(
        order_beside(union, out()),
        Err("in and text stay together: members overlap there".to_owned())
    );
    let of_first = vec![MemberInfo { align: 4, ..bits(7) }];
    let slots = vec![slot(0x1000, 8, &[(2, 900, 900)], 0)];
    assert!(order_beside(of_first, slots).is_ok());
}

#[test]
fn a_type_whose_members_stay_together_is_named_with_the_reason() {
    let bits = MemberInfo { mobility: Mobility::Attached("a bit-field"), align: 4, ..member("bits", 8, 1) };
    let slots = vec![slot(0x1000, 0, &[(1, 900, 900)], 0), slot(0x1000, 8, &[(2, 900, 900)], 0)];
    let evidence = evidence(vec![record("flow", 16, vec![member("in", 0, 8), bits])], slots);
    let found = findings(&evidence);
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::FalseSharing]);
    let Proposal::Refused { ty, why, .. } = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    assert_eq!((ty.as_str(), why.as_str()), ("flow", "in and bits stay together: bits is a bit-field"));
    assert!(!found[0].is_edit(&evidence) && found[0].check.is_none() && found[0].fields.len() == 2);
}

#[test]
fn a_base_stays_in_front_and_is_no_member_of_the_rule() {
    let base = MemberInfo { mobility: Mobility::Front, is_implicit: true, ..member("B <ancestor>", 0, 8) };
    let members = vec![base, member("limit", 8, 8), member("in", 16, 8), member("out", 24, 8)];
    let slots = vec![slot(0x1000, 16, &[(1, 900, 900)], 0), slot(0x1000, 24, &[(2, 900, 900)], 0)];
    let found = findings(&evidence(vec![record("flow", 32, members)], slots));
    let Proposal::Layout(layout) = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    let placed: Vec<_> =
        layout.members.iter().map(|of| (of.name.as_str(), of.offset, of.is_implicit)).collect();
    let expected = [("B <ancestor>", 0, true), ("limit", 8, false), ("in", 16, false), ("out", 64, false)];
    assert_eq!(placed, expected);
    let check = found[0].check.as_ref().expect("rules");
    assert!(check.contains("members = [[\"limit\", \"in\"], [\"out\"]]"), "{check}");
}

#[test]
fn objects_that_one_thread_has_initialised_do_not_outvote_the_used_ones() {
    let used = vec![slot(0x1000, 16, &[(1, 900, 900)], 0), slot(0x1000, 24, &[(2, 900, 900)], 0)];
    let mut evidence = evidence(vec![flow()], used);
    // read at the end by another thread than the one that has filled them
    let filled = (1..20).map(|object| {
        let base = 0x1000 + 64 * object;
        let of = |offset| Slot { lost: 10, transfers: 1, ..slot(base, offset, &[(3, 0, 1), (4, 1, 0)], 0) };
        SharedLine { address: base, slots: vec![of(16), of(24)] }
    });
    evidence.lines.extend(filled);
    let found = findings(&evidence);
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::FalseSharing]);
    let Proposal::Layout(layout) = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    assert_eq!(layout.groups, ["written by the thread of in", "written by the thread of out"]);
}

#[test]
fn a_virtual_base_stays_behind_all_members() {
    let base = MemberInfo { mobility: Mobility::End, is_implicit: true, ..member("B <ancestor>", 24, 8) };
    let members = vec![member("limit", 0, 8), member("in", 8, 8), member("out", 16, 8), base];
    let slots = vec![slot(0x1000, 8, &[(1, 900, 900)], 0), slot(0x1000, 16, &[(2, 900, 900)], 0)];
    let found = findings(&evidence(vec![record("flow", 32, members)], slots));
    let Proposal::Layout(layout) = &found[0].proposal else { panic!("{:?}", found[0].proposal) };
    let placed: Vec<_> = layout.members.iter().map(|of| (of.name.as_str(), of.offset)).collect();
    assert_eq!(placed, [("limit", 0), ("in", 8), ("out", 64), ("B <ancestor>", 72)]);
}

#[test]
fn members_of_damaged_types_overflow_nothing() {
    for (offset, size) in
        [(u64::MAX - 8, 8), (u64::MAX, 0), (u64::MAX - 3, 8), (24, u64::MAX), (u64::MAX, u64::MAX)]
    {
        for language in ["C", "Rust"] {
            let members = vec![member("in", 0, 8), member("out", 8, 8), member("far", offset, size)];
            let damaged =
                Subject { align: 64, language: language.into(), ..record("flow", u64::MAX, members) };
            let slots = vec![
                slot(0x1000, 0, &[(1, 900, 900)], 0),
                slot(0x1000, 8, &[(2, 900, 900)], 0),
                slot(0x1000, offset, &[(2, 900, 900)], 0),
                slot(0x1000, u64::MAX - 1, &[(3, 900, 900)], 0),
            ];
            let mut evidence = evidence(vec![damaged], slots);
            let field = |offset| FieldUse {
                offset,
                size: 8,
                misses: 9,
                cycles: 9_000,
                heat: 9,
                ..FieldUse::default()
            };
            evidence.types = vec![TypeUse {
                objects: 10_000,
                first_object: 0x1000,
                stride: u64::MAX,
                fields: vec![field(0), field(8), field(offset)],
                instructions: vec![(0, 0), (1, 8), (2, offset)],
                ..TypeUse::default()
            }];
            let found = findings(&evidence);
            let mut all = AddressMap::new(64);
            for finding in &found {
                all.merge(&finding.map);
                for address in [0x1000, 0x1008, offset, u64::MAX] {
                    let _ = all.map(0, 0, address);
                }
            }
            let kinds: Vec<_> = found.iter().map(|finding| finding.kind).collect();
            assert!(kinds.contains(&FindingKind::FalseSharing), "{offset} {size}: {kinds:?}");
        }
    }
}
