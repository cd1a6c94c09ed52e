use super::*;

fn field_use(offset: u64, field: &str, heat: u64, sites: Vec<(usize, u64)>) -> FieldUse {
    FieldUse {
        offset,
        size: 8,
        field: field.into(),
        accesses: 10_000,
        cycles: 20_000,
        heat,
        misses: 5_000,
        sites,
    }
}

#[test]
fn a_hot_path_over_several_lines_gets_its_fields_together() {
    let members = vec![
        member("key", 0, 8),
        member("name", 8, 56),
        member("value", 64, 8),
        member("next", 72, 8),
        member("note", 80, 48),
    ];
    let of_field = |offset, field: &str| field_use(offset, field, 20_000, vec![(0, 10_000)]);
    let used = TypeUse {
        subject: 0,
        // an instruction takes the last two members at once
        fields: vec![of_field(0, "key"), FieldUse { size: 16, ..of_field(64, "value") }],
        instructions: vec![(5, 0), (6, 64)],
        objects: 4096,
        first_object: 0x1000,
        stride: 128,
    };
    let mut evidence = Evidence {
        line_size: 64,
        sites: vec![site(Update::None)],
        subjects: vec![record("entry", 128, members)],
        types: vec![used],
        cycles: 100_000,
        ..Evidence::default()
    };
    let found = findings(&evidence);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].reader_lines), (FindingKind::HotPathLines, (2, 1)));
    assert_eq!(found[0].map.map(0, 6, 0x1000 + 64), 0x1000 + 8);
    let named: Vec<&str> = found[0].fields.iter().map(|field| field.field.as_str()).collect();
    assert_eq!(named, ["key", "value", "next"]);
    let check = found[0].check.as_ref().expect("rules");
    assert!(
        check.starts_with("[[together]]\ntype = \"entry\"\nmembers = [\"key\", \"value\", \"next\"]\n"),
        "{check}"
    );
    assert!(!check.contains("max-"), "sizes and lines that the type has now protect nothing: {check}");
    // what is only initialised has no hot path
    evidence.types[0].fields.iter_mut().for_each(|field| field.heat = 0);
    assert_eq!(findings(&evidence).len(), 0);
}

#[test]
fn what_a_hot_path_touches_now_and_then_fills_its_line() {
    let members = vec![
        member("x", 0, 8),
        member("name", 8, 56),
        member("vx", 64, 8),
        member("history", 72, 72),
        member("collisions", 144, 8),
        member("note", 152, 8),
        member("printed", 160, 8),
        member("trail", 168, 24),
    ];
    let fields = vec![
        field_use(0, "x", 20_000, vec![(0, 10_000)]),
        field_use(64, "vx", 20_000, vec![(0, 10_000)]),
        field_use(144, "collisions", 300, vec![(0, 200), (2, 150)]),
        // less than once in a hundred times; by a function that runs seldom; more than the line has room for
        field_use(152, "note", 300, vec![(0, 50)]),
        field_use(160, "printed", 300, vec![(1, 2000)]),
        field_use(168, "trail", 300, vec![(0, 4000)]),
    ];
    let used = TypeUse {
        subject: 0,
        fields,
        instructions: vec![(5, 0), (6, 64), (7, 144)],
        objects: 4096,
        first_object: 0x1000,
        stride: 192,
    };
    let step = |name: &str| Site { function: name.into(), ..site(Update::None) };
    let mut evidence = Evidence {
        line_size: 64,
        sites: vec![step("step"), step("print"), step("step")],
        subjects: vec![record("body", 192, members)],
        types: vec![used],
        cycles: 100_000,
        ..Evidence::default()
    };
    let named = |evidence: &Evidence| -> Vec<String> {
        let found = findings(evidence);
        assert_eq!(found[0].reader_lines, (2, 1));
        found[0].fields.iter().map(|field| field.field.clone()).collect()
    };
    assert_eq!(named(&evidence), ["x", "vx", "collisions", "trail"]);
    assert_eq!(findings(&evidence)[0].map.map(0, 7, 0x1000 + 144) / 64, 0x1000 / 64);
    evidence.subjects[0].members[7].size = 56;
    evidence.subjects[0].size = 224;
    assert_eq!(named(&evidence), ["x", "vx", "collisions"], "the larger one has no room");
}
