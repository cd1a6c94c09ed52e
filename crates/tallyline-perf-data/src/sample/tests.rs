//! A test for each bit, in both byte orders, on bytes made by hand.

use super::super::abi::{attr_flag, branch, context, misc, read_format, sample as bit};
use super::super::attr::Attr;
use super::super::bytes::{ByteOrder, Cursor};
use super::*;

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

/// The body of a sample under construction.
struct Body {
    order: ByteOrder,
    bytes: Vec<u8>,
}

impl Body {
    fn u32(mut self, value: u32) -> Self {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }
}

fn attr(sample_type: u64) -> Attr {
    Attr { sample_type, ..Attr::default() }
}

/// Returns the body is decoded in both orders, and every shorter one is an error, never a panic.
fn decoded(attr: &Attr, body: impl Fn(Body) -> Body, check: impl Fn(&Sample<'_>)) {
    for order in ORDERS {
        let body = body(Body { order, bytes: Vec::new() });
        let sample =
            Sample::decode(misc::USER, Cursor::new(&body.bytes, order, 0), attr).expect("well-formed");
        check(&sample);
        if order == ByteOrder::NATIVE {
            let mut encoded = Vec::new();
            sample.encode(attr, &mut encoded);
            assert_eq!(encoded, body.bytes, "encoded differently than it was");
        }
        for len in 0..body.bytes.len() {
            let short = Sample::decode(0, Cursor::new(&body.bytes[..len], order, 0), attr);
            assert!(short.is_err(), "{len} of {} bytes are enough", body.bytes.len());
        }
        let mut long = body.bytes.clone();
        long.extend([0; 8]);
        assert!(
            Sample::decode(0, Cursor::new(&long, order, 0), attr).is_err(),
            "a word too many is accepted"
        );
    }
}

/// Checks that one word of a sample goes to one field.
fn word(sample_type: u64, field: impl Fn(&Sample<'_>) -> Option<u64>) {
    let value = 0x1122_3344_5566_7788;
    let neighbour = 0x99;
    // a field before and one after show that exactly one word was consumed
    let before = if sample_type == bit::IDENTIFIER || sample_type == bit::IP { 0 } else { bit::IP };
    decoded(
        &attr(before | sample_type | bit::CODE_PAGE_SIZE),
        |body| {
            let body = if before != 0 { body.u64(7) } else { body };
            let body = body.u64(value);
            if sample_type == bit::CODE_PAGE_SIZE { body } else { body.u64(neighbour) }
        },
        |sample| {
            assert_eq!(field(sample), Some(value));
            if sample_type != bit::CODE_PAGE_SIZE {
                assert_eq!(sample.code_page_size, Some(neighbour));
            }
        },
    );
}

#[test]
fn identifier() {
    word(bit::IDENTIFIER, |sample| sample.id);
}

#[test]
fn ip() {
    word(bit::IP, |sample| sample.ip);
}

#[test]
fn tid() {
    decoded(
        &attr(bit::TID | bit::TIME),
        |body| body.u32(u32::MAX).u32(42).u64(3),
        |sample| {
            assert_eq!((sample.pid, sample.tid, sample.time), (Some(-1), Some(42), Some(3)));
        },
    );
}

#[test]
fn time() {
    word(bit::TIME, |sample| sample.time);
}

#[test]
fn addr() {
    word(bit::ADDR, |sample| sample.addr);
}

#[test]
fn id() {
    word(bit::ID, |sample| sample.id);
}

#[test]
fn stream_id() {
    word(bit::STREAM_ID, |sample| sample.stream_id);
}

#[test]
fn cpu() {
    decoded(
        &attr(bit::CPU | bit::PERIOD),
        |body| body.u32(511).u32(0).u64(9),
        |sample| {
            assert_eq!((sample.cpu, sample.period), (Some(511), Some(9)));
        },
    );
}

#[test]
fn period() {
    word(bit::PERIOD, |sample| sample.period);
}

#[test]
fn read_of_one_counter_in_every_format() {
    for format in 0..32_u64 {
        if format & read_format::GROUP != 0 {
            continue;
        }
        let has = |bit: u64| format & bit != 0;
        let attr = Attr { read_format: format, ..attr(bit::READ | bit::WEIGHT) };
        decoded(
            &attr,
            |mut body| {
                body = body.u64(100);
                for (flag, value) in [
                    (read_format::TOTAL_TIME_ENABLED, 1),
                    (read_format::TOTAL_TIME_RUNNING, 2),
                    (read_format::ID, 3),
                    (read_format::LOST, 4),
                ] {
                    body = if has(flag) { body.u64(value) } else { body };
                }
                body.u64(77)
            },
            |sample| {
                let read = sample.read.expect("asked for");
                assert_eq!(read.time_enabled, has(read_format::TOTAL_TIME_ENABLED).then_some(1));
                assert_eq!(read.time_running, has(read_format::TOTAL_TIME_RUNNING).then_some(2));
                let id = has(read_format::ID).then_some(3);
                let lost = has(read_format::LOST).then_some(4);
                assert_eq!(read.iter().collect::<Vec<_>>(), [ReadValue { value: 100, id, lost }]);
                assert_eq!(sample.weight.map(|weight| weight.weight), Some(77));
            },
        );
    }
}

#[test]
fn read_of_a_group_in_every_format() {
    for format in 0..32_u64 {
        if format & read_format::GROUP == 0 {
            continue;
        }
        let has = |bit: u64| format & bit != 0;
        let attr = Attr { read_format: format, ..attr(bit::READ | bit::WEIGHT) };
        decoded(
            &attr,
            |mut body| {
                body = body.u64(2);
                body = if has(read_format::TOTAL_TIME_ENABLED) { body.u64(1) } else { body };
                body = if has(read_format::TOTAL_TIME_RUNNING) { body.u64(2) } else { body };
                for counter in [10, 20] {
                    body = body.u64(counter);
                    body = if has(read_format::ID) { body.u64(counter + 1) } else { body };
                    body = if has(read_format::LOST) { body.u64(counter + 2) } else { body };
                }
                body.u64(77)
            },
            |sample| {
                let read = sample.read.expect("asked for");
                assert_eq!(read.time_enabled, has(read_format::TOTAL_TIME_ENABLED).then_some(1));
                assert_eq!(read.time_running, has(read_format::TOTAL_TIME_RUNNING).then_some(2));
                let counter = |value| ReadValue {
                    value,
                    id: has(read_format::ID).then_some(value + 1),
                    lost: has(read_format::LOST).then_some(value + 2),
                };
                assert_eq!(read.iter().collect::<Vec<_>>(), [counter(10), counter(20)]);
                assert_eq!((read.len(), read.get(2)), (2, None));
            },
        );
    }
}

#[test]
fn callchain() {
    decoded(
        &attr(bit::CALLCHAIN | bit::WEIGHT),
        |body| {
            body.u64(4).u64(context::KERNEL).u64(0xffff_ffff_8000_0000).u64(context::USER).u64(0x40).u64(7)
        },
        |sample| {
            assert_eq!(sample.callchain.expect("asked for").len(), 4);
            let callers: Vec<_> = sample.callers().collect();
            assert_eq!(callers, [(CpuMode::Kernel, 0xffff_ffff_8000_0000), (CpuMode::User, 0x40)]);
            assert_eq!(sample.weight.map(|weight| weight.weight), Some(7));
        },
    );
}

#[test]
fn raw() {
    decoded(
        &attr(bit::RAW | bit::WEIGHT),
        |body| body.u32(12).raw(b"twelve bytes").u64(7),
        |sample| {
            assert_eq!(sample.raw, Some(&b"twelve bytes"[..]));
            assert_eq!(sample.weight.map(|weight| weight.weight), Some(7));
        },
    );
}

#[test]
fn branch_stack() {
    let flags = |order| match order {
        // mispredicted, abort, 300 cycles, kind 3, speculation 2, new kind 5, privilege 1
        ByteOrder::Little => 1 | 1 << 3 | 300 << 4 | 3 << 20 | 2 << 24 | 5 << 26 | 1 << 30,
        ByteOrder::Big => 1 << 63 | 1 << 60 | 300 << 44 | 3 << 40 | 2 << 38 | 5 << 34 | 1 << 31,
    };
    for (branch_type, index, counters) in [
        (0, false, false),
        (branch::HW_INDEX, true, false),
        (branch::HW_INDEX | branch::COUNTERS, true, true),
    ] {
        let attr = Attr { branch_sample_type: branch_type, ..attr(bit::BRANCH_STACK | bit::WEIGHT) };
        decoded(
            &attr,
            |mut body| {
                let flags = flags(body.order);
                body = body.u64(2);
                body = if index { body.u64(5) } else { body };
                body = body.u64(0x10).u64(0x20).u64(flags).u64(0x30).u64(0x40).u64(0);
                body = if counters { body.u64(8).u64(9) } else { body };
                body.u64(7)
            },
            |sample| {
                let stack = sample.branches.expect("asked for");
                assert_eq!(stack.hardware_index, index.then_some(5));
                let found: Vec<_> = stack.iter().collect();
                let expected = Branch {
                    from: 0x10,
                    to: 0x20,
                    mispredicted: true,
                    predicted: false,
                    in_transaction: false,
                    abort: true,
                    cycles: 300,
                    kind: 3,
                    speculation: 2,
                    new_kind: 5,
                    privilege: 1,
                    counters: counters.then_some(8),
                };
                assert_eq!((found.len(), found[0]), (2, expected));
                assert_eq!((found[1].from, found[1].cycles), (0x30, 0));
                assert_eq!(sample.weight.map(|weight| weight.weight), Some(7));
            },
        );
    }
}

#[test]
fn user_registers() {
    let mask = 1 << x86_64::SP | 1 << x86_64::IP | 1 << 23;
    let attr = Attr { sample_regs_user: mask, ..attr(bit::REGS_USER | bit::WEIGHT) };
    decoded(
        &attr,
        |body| body.u64(2).u64(0x7ff0).u64(0x401000).u64(15).u64(7),
        |sample| {
            let registers = sample.user_registers.expect("asked for");
            assert_eq!(registers.get(x86_64::SP), Some(0x7ff0));
            assert_eq!(registers.get(x86_64::IP), Some(0x401000));
            assert_eq!((registers.get(23), registers.get(0), registers.get(64)), (Some(15), None, None));
            assert_eq!(registers.iter().count(), 3);
        },
    );
    // a thread of the kernel has none
    decoded(
        &attr,
        |body| body.u64(0).u64(7),
        |sample| {
            assert_eq!(sample.user_registers, None);
            assert_eq!(sample.weight.map(|weight| weight.weight), Some(7));
        },
    );
}

#[test]
fn user_stack_with_and_without_bytes() {
    decoded(
        &attr(bit::STACK_USER | bit::WEIGHT),
        |body| body.u64(8).raw(b"stack...").u64(5).u64(7),
        |sample| {
            assert_eq!(sample.user_stack, Some(UserStack { bytes: b"stack...", used: 5 }));
            assert_eq!(sample.weight.map(|weight| weight.weight), Some(7));
        },
    );
    decoded(
        &attr(bit::STACK_USER | bit::WEIGHT),
        |body| body.u64(0).u64(7),
        |sample| {
            assert_eq!(sample.user_stack, None);
            assert_eq!(sample.weight.map(|weight| weight.weight), Some(7));
        },
    );
}

#[test]
fn weight() {
    word(bit::WEIGHT, |sample| sample.weight.map(|weight| weight.weight));
}

#[test]
fn weight_struct() {
    decoded(
        &attr(bit::WEIGHT_STRUCT | bit::DATA_SRC),
        |body| body.u64(3 << 48 | 2 << 32 | 0x9000_0001).u64(0x42),
        |sample| {
            assert_eq!(
                sample.weight,
                Some(Weight { weight: 0x9000_0001, instruction_latency: 2, weight3: 3 })
            );
            assert_eq!(sample.data_source, Some(DataSource(0x42)));
        },
    );
}

#[test]
fn data_source() {
    word(bit::DATA_SRC, |sample| sample.data_source.map(|source| source.0));
}

#[test]
fn transaction() {
    word(bit::TRANSACTION, |sample| sample.transaction);
}

#[test]
fn interrupt_registers() {
    let attr = Attr { sample_regs_intr: 1, ..attr(bit::REGS_INTR | bit::PHYS_ADDR) };
    decoded(
        &attr,
        |body| body.u64(2).u64(0xaa).u64(7),
        |sample| {
            assert_eq!(sample.interrupt_registers.and_then(|registers| registers.get(0)), Some(0xaa));
            assert_eq!(sample.physical_address, Some(7));
        },
    );
}

#[test]
fn physical_address() {
    word(bit::PHYS_ADDR, |sample| sample.physical_address);
}

#[test]
fn cgroup() {
    word(bit::CGROUP, |sample| sample.cgroup);
}

#[test]
fn data_page_size() {
    word(bit::DATA_PAGE_SIZE, |sample| sample.data_page_size);
}

#[test]
fn code_page_size() {
    word(bit::CODE_PAGE_SIZE, |sample| sample.code_page_size);
}

#[test]
fn aux() {
    decoded(
        &attr(bit::CODE_PAGE_SIZE | bit::AUX),
        |body| body.u64(4096).u64(8).raw(b"\x01\x02\x03\x04\x05\x06\x07\x08"),
        |sample| {
            assert_eq!(sample.code_page_size, Some(4096));
            assert_eq!(sample.aux, Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
        },
    );
}

#[test]
fn all_fields_in_the_order_of_the_kernel() {
    let attr = Attr {
        sample_type: bit::KNOWN & !bit::WEIGHT,
        read_format: 0,
        sample_regs_user: 1,
        sample_regs_intr: 1,
        flags: attr_flag::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    decoded(
        &attr,
        |body| {
            let body = body.u64(1).u64(2).u32(3).u32(4).u64(5).u64(6).u64(1).u64(8).u32(9).u32(0).u64(10);
            let body = body.u64(11).u64(1).u64(12).u32(4).raw(b"rawd").u64(0);
            let body = body.u64(2).u64(13).u64(8).raw(b"stack...").u64(8);
            body.u64(14).u64(15).u64(16).u64(2).u64(17).u64(18).u64(19).u64(20).u64(21).u64(0)
        },
        |sample| {
            assert_eq!(
                (sample.ip, sample.pid, sample.tid, sample.time),
                (Some(2), Some(3), Some(4), Some(5))
            );
            assert_eq!((sample.addr, sample.id, sample.stream_id), (Some(6), Some(1), Some(8)));
            assert_eq!((sample.cpu, sample.period), (Some(9), Some(10)));
            assert_eq!(sample.read.and_then(|read| read.get(0)).map(|value| value.value), Some(11));
            assert_eq!(sample.callchain.and_then(|chain| chain.get(0)), Some(12));
            assert_eq!(sample.raw, Some(&b"rawd"[..]));
            assert!(sample.branches.is_some_and(|stack| stack.is_empty()));
            assert_eq!(sample.user_registers.and_then(|registers| registers.get(0)), Some(13));
            assert_eq!(sample.user_stack.map(|stack| stack.used), Some(8));
            assert_eq!(sample.weight.map(|weight| weight.weight), Some(14));
            assert_eq!((sample.data_source, sample.transaction), (Some(DataSource(15)), Some(16)));
            assert_eq!(sample.interrupt_registers.and_then(|registers| registers.get(0)), Some(17));
            assert_eq!((sample.physical_address, sample.cgroup), (Some(18), Some(19)));
            assert_eq!((sample.data_page_size, sample.code_page_size), (Some(20), Some(21)));
            assert_eq!(sample.aux, Some(&[][..]));
        },
    );
}

#[test]
fn a_field_that_is_not_known_is_refused() {
    let error = Sample::decode(0, Cursor::new(&[0; 64], ByteOrder::Little, 0x20), &attr(1 << 25))
        .expect_err("its length is not known");
    assert_eq!(
        error.to_string(),
        "damaged perf.data at offset 0x20: a sample with fields 0x2000000 that are newer than this program"
    );
}

#[test]
fn lengths_beyond_the_sample_are_errors() {
    for field in [bit::CALLCHAIN, bit::RAW, bit::BRANCH_STACK, bit::STACK_USER, bit::AUX] {
        for length in [u64::MAX, u64::MAX / 8, 1 << 32, 9] {
            let bytes: Vec<u8> = length.to_le_bytes().into_iter().chain([0xff; 16]).collect();
            let result = Sample::decode(0, Cursor::new(&bytes, ByteOrder::Little, 0), &attr(field));
            assert!(result.is_err(), "field {field:#x} of length {length:#x}");
        }
    }
}

#[test]
fn the_header_says_the_mode_and_whether_the_address_is_exact() {
    let of =
        |header| Sample::decode(header, Cursor::new(&[], ByteOrder::Little, 0), &attr(0)).expect("empty");
    assert_eq!((of(misc::KERNEL).mode, of(misc::KERNEL).exact), (CpuMode::Kernel, false));
    assert_eq!((of(misc::USER | misc::EXACT_IP).mode, of(misc::EXACT_IP).exact), (CpuMode::User, true));
    for mode in 0..=5 {
        assert_eq!(CpuMode::of(mode).bits(), mode);
    }
}

#[test]
fn a_data_source_has_all_its_fields() {
    // op 2, level 0x22 (hit, L2), snoop 0x10, lock 2, tlb 0x1a, number 13, remote, snoopx 2, blocked 4, hops 3
    let source = DataSource(
        2 | 0x22 << 5 | 0x10 << 19 | 2 << 24 | 0x1a << 26 | 13 << 33 | 1 << 37 | 2 << 38 | 4 << 40 | 3 << 43,
    );
    assert_eq!((source.op(), source.level(), source.snoop(), source.lock()), (2, 0x22, 0x10 | 0x40, 2));
    assert_eq!((source.tlb(), source.level_number(), source.is_remote()), (0x1a, 13, true));
    assert_eq!((source.blocked(), source.hops()), (4, 3));
    assert!(source.is_load() && !source.is_store() && source.is_hitm());
    assert_eq!(source.op_text(), "LOAD");
    assert_eq!(source.level_text(), "Remote socket, same board RAM hit");
    assert_eq!(source.snoop_text(), "HitM or Peer");
    assert_eq!(source.tlb_text(), "L1 or L2 hit");
    assert_eq!((source.lock_text(), source.blocked_text()), ("Yes", "Addr"));

    // as quipper's file and perf say: 0x68100142
    let l1 = DataSource(0x6810_0142);
    assert_eq!((l1.op_text(), l1.level_text().as_str()), ("LOAD", "L1 hit"));
    assert_eq!((l1.snoop_text().as_str(), l1.tlb_text().as_str()), ("None", "L1 or L2 hit"));
    assert_eq!((l1.lock_text(), l1.blocked_text()), ("No", "N/A"));
    assert_eq!(DataSource(0).level_text(), "N/A");
}
