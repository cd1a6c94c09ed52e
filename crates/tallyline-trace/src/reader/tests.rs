use super::*;
use crate::build::{Builder, ThreadBuilder};

fn small() -> Vec<u8> {
    let mut builder = Builder::new(1);
    let first = builder.instructions(0x40_1000, 8);
    builder.mapping(0x40_1000, 0x1000, 0x200, "/bin/program");
    let mut thread = ThreadBuilder::new(7, 9);
    thread.point(SyncPoint::Start, builder.number());
    thread.access(first, 0x7fff_0000, 8, true, 1);
    thread.access(first + 2, 0x7fff_0008, 4, false, 2);
    builder.thread(&mut thread);
    thread.access(first, 0x7fff_0010, 8, true, 300);
    thread.access(first + 7, 0, 1, false, 7);
    builder.thread(&mut thread);
    builder.finish()
}

fn events_of(trace: &Trace<'_>) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    for block in trace.threads().iter().flat_map(|thread| &thread.blocks) {
        for event in trace.events(block, Vec::new())? {
            events.push(event?);
        }
    }
    Ok(events)
}

#[test]
fn what_was_written_is_read() {
    let bytes = small();
    let trace = Trace::from_bytes(bytes.as_slice()).expect("a trace");
    assert_eq!(trace.header().machine, "x86_64");
    assert_eq!((trace.threads().len(), trace.threads()[0].accesses(), trace.cut), (1, 4, 0));
    let seen: Vec<_> = events_of(&trace)
        .expect("events")
        .into_iter()
        .map(|event| match event {
            Event::Access(access) => {
                let pc = trace.instructions().get(access.instruction).expect("known").address;
                (pc, access.address, access.size, access.store, access.now)
            }
            Event::Sync { kind, number, now } => {
                assert_eq!((kind, number, now), (SyncPoint::Start, 0, 0));
                (0, 0, 0, false, 0)
            }
        })
        .collect();
    let expected = [
        (0, 0, 0, false, 0),
        (0x40_1000, 0x7fff_0000, 8, true, 1),
        (0x40_1008, 0x7fff_0008, 4, false, 3),
        (0x40_1000, 0x7fff_0010, 8, true, 303),
        (0x40_101c, 0, 1, false, 310),
    ];
    assert_eq!(seen, expected);
    let (mapping, offset) = trace.mapping_at(7, 0x40_1008).expect("mapped");
    assert_eq!((mapping.path.as_str(), offset), ("/bin/program", 0x208));
    assert!(trace.mapping_at(7, 0x40_2000).is_none());
}

#[test]
fn a_file_that_is_cut_anywhere_is_read_up_to_there() {
    let bytes = small();
    let header = 8 + usize::from(bytes[4]);
    for end in 0..bytes.len() {
        match Trace::from_bytes(&bytes[..end]) {
            Ok(trace) => {
                assert!(end >= header, "{end} bytes are no trace");
                let events = events_of(&trace).expect("whole blocks are whole");
                assert!(events.len() <= 5);
            }
            Err(error) => assert!(matches!(error, Error::NotTrace) && end < header, "{end}: {error}"),
        }
    }
}

#[test]
fn any_damaged_byte_is_an_error_or_another_trace_but_never_a_panic() {
    let bytes = small();
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            if let Ok(trace) = Trace::from_bytes(damaged.as_slice()) {
                let _ = events_of(&trace);
            }
        }
    }
}

#[test]
fn an_access_by_an_instruction_that_is_not_there_is_damage() {
    let mut builder = Builder::new(1);
    builder.instructions(0x1000, 1);
    let mut thread = ThreadBuilder::new(7, 7);
    thread.access(1, 0x10, 8, false, 1);
    builder.thread(&mut thread);
    let bytes = builder.finish();
    let trace = Trace::from_bytes(bytes.as_slice()).expect("the index is as it should be");
    let error = events_of(&trace).expect_err("there is no instruction 1");
    assert!(error.to_string().starts_with("damaged trace at offset 0x"), "{error}");
}

#[test]
fn unknown_and_overlong_blocks_are_named_with_their_offset() {
    let mut builder = Builder::new(1);
    builder.block(b"EVIL", &[]);
    let error = Trace::from_bytes(builder.finish().as_slice()).expect_err("an unknown block");
    assert_eq!(error.to_string(), "damaged trace at offset 0x2c: there are no blocks 'EVIL'");
    let mut bytes = Builder::new(1).finish();
    bytes.extend(b"ACCS\xff\xff\xff\xff");
    let error = Trace::from_bytes(bytes.as_slice()).expect_err("4 GiB");
    assert!(error.to_string().contains("a block of 4294967295 bytes"), "{error}");
}

#[test]
fn a_varint_of_more_than_64_bits_is_none() {
    let mut bytes = vec![0xff; 9];
    bytes.push(1);
    assert_eq!(Varints(&bytes).next(), Some(u64::MAX));
    bytes[9] = 2;
    assert_eq!(Varints(&bytes).next(), None);
    assert_eq!(Varints(&[0x80]).next(), None);
}
