//! Every way to fold gives the sums that an addition by hand gives, for every shape: few and many
//! CPUs, items and groups, each vector width, CPU numbers with gaps.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::kit::schema;
use statctr::topology::{CpuId, CpuSet, Topology};
use statctr::{CounterArray, Error, Group, GroupArray, Placement, Pool, VectorWidth, fold_groups};

/// Returns a number that tells CPU and item apart, and whose sums use all bits.
fn number(cpu: CpuId, item: usize) -> u64 {
    (u64::from(cpu.get()) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(item as u32 % 64) ^ item as u64
}

/// Returns the CPUs that no machine that runs this has, with gaps.
fn strangers(count: u32) -> CpuSet {
    (0..count).map(|index| CpuId::new(20_000 + index * 7 + index * index % 5)).collect()
}

fn pool(cpus: &CpuSet, width: VectorWidth) -> Pool {
    // one more that never counts, so that it is not a machine with one CPU
    let all = cpus.iter().chain([CpuId::new(19_999)]).collect();
    let topology = Topology::synthetic_sparse(all).build().expect("topology");
    let builder = Pool::builder().topology(topology).placement(Placement::Fixed);
    builder.unit_bytes(32 << 10).max_vector(width).build().expect("pool")
}

fn sum(cpus: &CpuSet, item: usize) -> u64 {
    cpus.iter().fold(0, |sum, cpu| sum.wrapping_add(number(cpu, item)))
}

#[test]
fn arrays_of_all_shapes_fold_to_their_sums() {
    for width in common::widths() {
        for count in [1, 2, 4, 5, 9, 260] {
            let cpus = strangers(count);
            let pool = pool(&cpus, width);
            for len in [1, 7, 8, 9, 60, 64, 65, 130, 700, 5000] {
                let array = CounterArray::new_in(&pool, len, 3).expect("array");
                // some, for time
                let touched = |index: usize| len < 100 || index.is_multiple_of(61) || index + 1 == len;
                for cpu in cpus.iter() {
                    for (index, counter) in array.iter().enumerate().filter(|(index, _)| touched(*index)) {
                        counter.add_on_synthetic(cpu, number(cpu, index)).expect("synthetic");
                    }
                }
                let mut values = vec![u64::MAX; len + 1];
                array.fold_into(&mut values).expect("room");
                assert_eq!(values.pop(), Some(u64::MAX), "what lies behind is left alone");
                for range in [0..1, 0..len, len / 2..len, len / 3..len / 2, len - 1..len, len..len] {
                    let mut part = vec![u64::MAX; range.len() + 1];
                    array.fold_range(range.clone(), &mut part).expect("room");
                    assert_eq!(part.pop(), Some(u64::MAX), "what lies behind is left alone");
                    assert_eq!(part, values[range.clone()], "{len} counters, {range:?}");
                }
                assert_eq!(array.fold_range(0..len + 1, &mut []), Err(Error::OutOfRange { index: len, len }));
                for (index, value) in values.into_iter().enumerate() {
                    let expected = 3 + u128::from(if touched(index) { sum(&cpus, index) } else { 0 });
                    let context = format!("{width:?}, {count} CPUs, {len} counters, {index}");
                    assert_eq!(value, expected as u64, "{context}");
                    assert_eq!(array.get(index).map(|counter| counter.read()), Some(value), "{context}");
                }
            }
        }
    }
}

#[test]
fn groups_of_all_shapes_fold_to_their_sums() {
    for width in common::widths() {
        for count in [1, 3, 4, 6, 33] {
            let cpus = strangers(count);
            for (event, others) in [(1, 0), (2, 9), (3, 33), (8, 28), (4, 100), (8, 600)] {
                // fresh: what one CPU counted is told from the last time that its words were zero
                let pool = pool(&cpus, width);
                let schema = schema(event, others);
                let items = schema.len();
                let groups: Vec<Group> =
                    (0..9).map(|_| Group::new_in(&pool, &schema).expect("group")).collect();
                let array = GroupArray::new_in(&pool, 5, &schema).expect("groups");
                for cpu in cpus.iter() {
                    for (row, group) in groups.iter().enumerate() {
                        for item in schema.items() {
                            let value = number(cpu, item.index() + row * items);
                            group.add_on_synthetic(cpu, item, value).expect("synthetic");
                            if let Some(group) = array.get(row) {
                                group.add_on_synthetic(cpu, item, value).expect("synthetic");
                            }
                        }
                    }
                }
                let context = format!("{width:?}, {count} CPUs, event of {event} and {others} items");
                let expected: Vec<u64> = (0..9 * items).map(|index| sum(&cpus, index)).collect();
                // in order, and in an order in which not all lie side by side
                for order in [[0, 1, 2, 3, 4, 5, 6, 7, 8], [8, 0, 1, 3, 4, 2, 6, 7, 5]] {
                    let borrowed: Vec<&Group> = order.iter().map(|&row| &groups[row]).collect();
                    let mut values = vec![0; 9 * items];
                    fold_groups(&borrowed, &mut values).expect("room");
                    for (row, values) in order.into_iter().zip(values.chunks(items)) {
                        assert_eq!(values, &expected[row * items..(row + 1) * items], "{context}, {order:?}");
                    }
                }
                let mut values = vec![0; 5 * items];
                array.fold_into(&mut values).expect("room");
                assert_eq!(values, expected[..5 * items], "{context}");
                for range in [0..5, 0..1, 1..4, 4..5, 2..2] {
                    let mut part = vec![0; range.len() * items];
                    array.fold_range(range.clone(), &mut part).expect("room");
                    assert_eq!(
                        part,
                        expected[range.start * items..range.end * items],
                        "{context}, {range:?}"
                    );
                }
                let beyond = array.fold_range(4..6, &mut vec![0; 2 * items]);
                assert_eq!(beyond, Err(Error::OutOfRange { index: 5, len: 5 }), "{context}");
                for parts in [0, 1, 2, 3, 5, 7] {
                    let mut values = vec![0; 5 * items];
                    std::thread::scope(|scope| {
                        for part in array.fold_parts(parts, &mut values).expect("room") {
                            scope.spawn(move || part.fold());
                        }
                    });
                    assert_eq!(values, expected[..5 * items], "{context}, {parts} parts");
                }
                for (row, group) in groups.iter().enumerate() {
                    let expected = &expected[row * items..(row + 1) * items];
                    assert_eq!(group.read(), expected, "{context}");
                    let last = schema.item(items - 1).expect("an item");
                    assert_eq!(group.read_item(last), expected[items - 1], "{context}");
                    let cpu = cpus.iter().next().expect("a CPU");
                    assert_eq!(group.read_cpu(cpu, last), number(cpu, (row + 1) * items - 1), "{context}");
                }
            }
        }
    }
}

#[test]
fn real_cpus_cannot_be_impersonated() {
    let pool = Pool::builder().build().expect("pool");
    let counter = statctr::Counter::new_in(&pool, 0).expect("counter");
    for cpu in pool.topology().possible().iter() {
        assert!(counter.add_on_synthetic(cpu, 1).is_err(), "{cpu}");
    }
    assert_eq!(counter.read(), 0);
}
