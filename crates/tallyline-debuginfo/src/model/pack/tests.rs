use super::*;
use crate::{Request, Wanted};

fn packed(types: &Types) -> Vec<u8> {
    let mut out = Packer::default();
    types.pack(&mut out);
    out.into_bytes()
}

/// Returns the types of this test's own program: every kind that Rust has.
fn own() -> Option<Types> {
    let bytes = std::fs::read(std::env::current_exe().expect("known")).expect("readable");
    let wanted = Wanted::named(["Types", "Variant", "Option<core::num::nonzero::NonZero<u32>>"]);
    let types = crate::read(&bytes, &Request { wanted, ..Request::default() }).ok();
    if types.is_none() {
        eprintln!("skipped: this test is built without debug information");
    }
    types
}

/// Returns a few of each kind, also of those that Rust does not have.
fn some() -> Types {
    let mut types = Types::new(Origin::Dwarf, 8);
    let name = |types: &mut Types, name: &str| types.intern(name.as_bytes()).expect("room");
    let (int, field) = (name(&mut types, "int"), name(&mut types, "field"));
    let base = types.push(Type::Base { name: int, bits: 32 }).expect("room");
    let bits = Some(Bitfield { offset: 3, size: 5 });
    let member = Member { bitfield: bits, size: 4, bit_offset: 67, ..Member::new(field, base, 8) };
    let unplaced = Member { kind: MemberKind::VirtualBase, ..Member::new(field, base, u64::MAX) };
    let members = types.push_members(&[member, unplaced]).expect("room");
    let record = Record { members, align: 16, ..Record::new(RecordKind::Class, field, 24) };
    let record = types.push_record(record).expect("room");
    let record = types.push(Type::Record(record)).expect("room");
    let variant = |tag| Variant { name: field, tag, ty: record, members };
    types.push_variants(&[variant(None), variant(Some(-1)), variant(Some(i128::MIN + 7))]).expect("room");
    let array = types.push_array(record, &[3, 0, u64::MAX], true).expect("room");
    types.push(Type::Array(array)).expect("room");
    let parameter = Parameter { name: NameId::NONE, ty: TypeId::VOID };
    let function = types.push_function(base, &[parameter], true).expect("room");
    types.push(Type::Function(function)).expect("room");
    let enumerators = types.push_enumerators(&[Enumerator { name: int, value: u64::MAX }]).expect("room");
    let declared_at = Position { file: field, line: 7 };
    let item = Enum { name: int, size: 4, signed: true, declaration: false, enumerators, declared_at };
    let item = types.push_enum(item).expect("room");
    types.push(Type::Enum(item)).expect("room");
    types.push(Type::MemberPointer { class: record, to: base }).expect("room");
    types.push(Type::Qualified { qualifier: Qualifier::Atomic, of: base }).expect("room");
    types.push(Type::Pointer { kind: Pointer::RvalueReference, to: record }).expect("room");
    let typedef = types.push(Type::Typedef { name: int, of: base }).expect("room");
    types.push(Type::Text { length: 12 }).expect("room");
    types.push(Type::Opaque { name: int }).expect("room");
    types.set_path(typedef, field);
    types.set_path(record, int);
    types.alignments.insert(typedef, 64);
    types.warnings.push("a warning".to_owned());
    types.listed.push(record);
    types.sources.push(TypeSource { unit: int, entry: 300, declared_at, definitions: 2 });
    types
}

#[test]
fn what_was_packed_is_unpacked_as_it_was() {
    for types in [Some(some()), own()].into_iter().flatten() {
        let bytes = packed(&types);
        let mut from = Unpacker::new(&bytes);
        let again = Types::unpack(&mut from).expect("well formed");
        assert!(from.is_empty());
        // the table of names is hashed with a key of its own
        assert_eq!(packed(&again), bytes);
        let shown = |types: &Types| {
            format!("{:?} {:?} {:?} {:?}", types.types, types.members, types.records, types.variants)
        };
        assert_eq!(shown(&again), shown(&types));
        assert_eq!(format!("{:?}", again.alignments), format!("{:?}", types.alignments));
        assert!(again.sources().eq(types.sources()));
    }
}

#[test]
fn names_of_a_table_that_was_taken_over_come_back() {
    let bytes = include_bytes!("../../../tests/data/kinds.btf");
    let types = crate::read(bytes, &Request::default()).expect("BTF");
    let bytes = packed(&types);
    let again = Types::unpack(&mut Unpacker::new(&bytes)).expect("well formed");
    let texts = |types: &Types| -> Vec<String> {
        let named = |id| crate::type_text(types, TypeId(id));
        let members = types.members.iter().map(|member| types.name(member.name));
        (0..types.len() as u32)
            .map(named)
            .chain(members.map(|name| String::from_utf8_lossy(name).into_owned()))
            .collect()
    };
    assert_eq!(texts(&again), texts(&types));
    assert!(texts(&types).iter().any(|text| text.starts_with("struct ")));
}

#[test]
fn bytes_that_were_cut_or_changed_are_refused_or_make_sound_types() {
    let bytes = packed(&some());
    for end in 0..bytes.len() {
        assert!(Types::unpack(&mut Unpacker::new(&bytes[..end])).is_none(), "{end}");
    }
    for at in 0..bytes.len() {
        for value in [0, 1, 2, 0x7f, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let Some(types) = Types::unpack(&mut Unpacker::new(&damaged)) else { continue };
            // all of it can be looked at, and added to others
            for index in 0..types.len() as u32 {
                let _ = crate::abi::size_of(&types, TypeId(index));
                let _ = crate::type_text(&types, TypeId(index));
            }
            let mut all = some();
            let _ = all.absorb(types);
        }
    }
}

#[test]
fn numbers_of_any_size_come_back() {
    let numbers = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), 1 << 63, u64::MAX];
    let mut out = Packer::default();
    numbers.iter().for_each(|number| out.number(*number));
    numbers.iter().for_each(|number| out.signed(number.cast_signed()));
    let bytes = out.into_bytes();
    let mut from = Unpacker::new(&bytes);
    numbers.iter().for_each(|number| assert_eq!(from.number(), Some(*number)));
    numbers.iter().for_each(|number| assert_eq!(from.signed(), Some(number.cast_signed())));
    assert!(from.is_empty() && from.number().is_none());
    // more than 64 bits, and no end
    assert_eq!(Unpacker::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number(), None);
    assert_eq!(Unpacker::new(&[0x80; 20]).number(), None);
}
