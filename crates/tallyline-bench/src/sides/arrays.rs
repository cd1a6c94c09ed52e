//! Ours, many of a kind: an update of one counter of many, by its index, as of ports or of flows. The indices come in
//! an irregular order; all counters' words and handles fit the first-level cache.

use super::fixed::Interface;
use super::looped::{Looped, Step};
use super::{PACKET_LENGTH, Side, packet_length};
use statctr::{Counter, CounterArray, GroupArray, Pool, Result, TrackedGroupArray};

/// Counters, or groups, of a side.
const LEN: usize = 256;

/// Returns the index that is updated in this turn: all in an irregular order.
#[inline(always)]
fn index(turn: u64) -> usize {
    (turn.wrapping_mul(0x9e37_79b9) >> 8) as usize % LEN
}

macro_rules! steps {
    ($($name:ident($state:ident: $type:ty, $turn:ident) $body:block)*) => {
        $(
            struct $name;

            impl Step for $name {
                type State = $type;

                #[inline(always)]
                fn step($state: &$type, $turn: u64) $body
            }
        )*
    };
}

steps! {
    VecInc(counters: Vec<Counter>, turn) {
        if let Some(counter) = counters.get(index(turn)) {
            counter.inc();
        }
    }
    ArrayInc(counters: CounterArray, turn) {
        if let Some(counter) = counters.get(index(turn)) {
            counter.inc();
        }
    }
    VecAdd(counters: Vec<Counter>, turn) {
        if let Some(counter) = counters.get(index(turn)) {
            counter.add(packet_length());
        }
    }
    GroupsAdd(groups: GroupArray, turn) {
        if let Some(group) = groups.get(index(turn)) {
            group.add(Interface::rx_bytes, packet_length());
        }
    }
}

steps! {
    TrackedAdd(groups: TrackedGroupArray, turn) {
        if let Some(group) = groups.get(index(turn)) {
            group.add(Interface::rx_bytes, packet_length());
        }
    }
}

fn counters(pool: &Pool) -> Result<Vec<Counter>> {
    (0..LEN).map(|_| Counter::new_in(pool, 0)).collect()
}

fn sum(counters: &[Counter]) -> u64 {
    counters.iter().map(Counter::read).sum()
}

/// Returns the benchmark loop `vec/inc`: it increments one of 256 separately created per-CPU counters, chosen
/// irregularly.
pub(crate) fn vec_inc(pool: &Pool) -> Result<Box<dyn Side>> {
    Ok(Looped::<VecInc>::with_shared_state(counters(pool)?, |counters| sum(counters)).boxed())
}

/// Returns the benchmark loop `vec/add`: it adds to one of 256 separately created per-CPU counters, chosen irregularly.
pub(crate) fn vec_add(pool: &Pool) -> Result<Box<dyn Side>> {
    Ok(Looped::<VecAdd>::with_shared_state(counters(pool)?, |counters| sum(counters))
        .counting(PACKET_LENGTH)
        .boxed())
}

/// Returns the benchmark loop `counter-array/inc`: it increments one element of a `CounterArray` of 256 per-CPU
/// counters, chosen irregularly.
pub(crate) fn array_inc(pool: &Pool) -> Result<Box<dyn Side>> {
    let counters = CounterArray::new_in(pool, LEN, 0)?;
    let sum = |counters: &CounterArray| counters.iter().map(|counter| counter.read()).sum();
    Ok(Looped::<ArrayInc>::with_shared_state(counters, sum).boxed())
}

/// Returns the benchmark loop `group-array/add`: it adds to one item (64-bit statistic) of one group of per-CPU
/// counters in a `GroupArray` of 256, chosen irregularly.
pub(crate) fn groups_add(pool: &Pool) -> Result<Box<dyn Side>> {
    let groups = GroupArray::new_in(pool, LEN, Interface::schema()?)?;
    let sum = |groups: &GroupArray| {
        let all = (0..groups.len()).filter_map(|index| groups.get(index));
        all.map(|group| group.read_item(Interface::rx_bytes)).sum()
    };
    Ok(Looped::<GroupsAdd>::with_shared_state(groups, sum).counting(PACKET_LENGTH).boxed())
}

/// Returns the benchmark loop `tracked/add`: it adds to one item (64-bit statistic) of one group of per-CPU counters in
/// a `TrackedGroupArray` of 256, which also marks the group as changed for incremental reads.
pub(crate) fn tracked_add(pool: &Pool) -> Result<Box<dyn Side>> {
    let groups = TrackedGroupArray::new_in(pool, LEN, Interface::schema()?)?;
    let sum = |groups: &TrackedGroupArray| {
        let all = (0..groups.len()).filter_map(|index| groups.get(index));
        all.map(|group| group.read_item(Interface::rx_bytes)).sum()
    };
    Ok(Looped::<TrackedAdd>::with_shared_state(groups, sum).counting(PACKET_LENGTH).boxed())
}
