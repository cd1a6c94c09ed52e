//! Ours: counters and groups of `statctr` in the *fixed* placement, through its public interface.

use super::looped::{Looped, Step, opaque, opaque_constant};
use super::{GROUPS, PACKET_LENGTH, PACKET_SUM, Side, packet_length};
use statctr::{ApproximateCounter, Average, Counter, Histogram, Max, Pool, Result, StaticCounter, Unit};

statctr::group! {
    /// Traffic of one interface.
    pub(crate) struct Interface {
        /// Counts one packet that is looped back.
        event packet(rx_packets, rx_bytes, tx_packets, tx_bytes);
        /// Counts a request and its length.
        event request(requests, request_bytes);
        item rx_packets: Unit::PACKETS, "packets received";
        item rx_bytes: Unit::BYTES, "bytes received";
        item tx_packets: Unit::PACKETS, "packets sent";
        item tx_bytes: Unit::BYTES, "bytes sent";
        item requests: Unit::OPERATIONS, "requests served";
        item request_bytes: Unit::BYTES, "bytes of requests";
    }
}

/// Updates the four counters of a packet by one commit.
#[inline(always)]
fn one_commit(interface: &Interface) {
    let length = packet_length();
    interface.packet(1, length, 1, length);
}

/// Returns a value between 1000 and 2023 that differs from turn to turn.
#[inline(always)]
fn latency(turn: u64) -> u64 {
    1000 + (turn.wrapping_mul(0x9e37_79b9) & 1023)
}

/// Updates the four counters of a packet one by one.
#[inline(always)]
fn four_updates(interface: &Interface) {
    let length = packet_length();
    interface.add(Interface::rx_packets, 1);
    interface.add(Interface::rx_bytes, length);
    interface.add(Interface::tx_packets, 1);
    interface.add(Interface::tx_bytes, length);
}

fn sum(interface: &Interface) -> u64 {
    interface.read().iter().fold(0, |sum, item| sum.wrapping_add(*item))
}

/// Interfaces that the packets go round.
type Interfaces = [Interface; GROUPS];

fn interfaces(pool: &Pool) -> Result<Interfaces> {
    let made = (0..GROUPS).map(|_| Interface::new_in(pool)).collect::<Result<Vec<_>>>()?;
    Ok(made.try_into().unwrap_or_else(|_| unreachable!("as many as were asked for")))
}

fn sum_of_all(interfaces: &Interfaces) -> u64 {
    interfaces.iter().fold(0, |all, interface| all.wrapping_add(sum(interface)))
}

/// The counter of the side `static/inc`, in no pool.
static STATIC: StaticCounter =
    StaticCounter::new("bench_static", "updates of the side static/inc", Unit::OPERATIONS);

/// Declares a side: a type, its state and its step.
macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident($state:ident: $type:ty, $turn:ident) $body:block)*) => {
        $(
            $(#[$doc])*
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
    Inc(counter: Counter, _turn) { counter.inc(); }
    StaticInc(_nothing: (), _turn) { STATIC.inc(); }
    Read(counter: Counter, _turn) { opaque(counter.read()); }
    Approximate(counter: ApproximateCounter, _turn) { opaque(counter.approximate()); }
    Add(counter: Counter, _turn) { counter.add(opaque_constant(PACKET_LENGTH)); }
    Event2(interfaces: Interfaces, turn) { interfaces[turn as usize % GROUPS].request(1, latency(turn)); }
    Observe(histogram: Histogram, turn) { histogram.observe(latency(turn)); }
    Extreme(max: Max, turn) { max.observe(latency(turn)); }
    Rising(max: Max, turn) { max.observe(turn); }
    Mean(average: Average, turn) { average.observe(latency(turn)); }
    Packet4(interfaces: Interfaces, turn) { one_commit(&interfaces[turn as usize % GROUPS]); }
    Packet4One(interface: Interface, _turn) { one_commit(interface); }
    Inc4(interfaces: Interfaces, turn) { four_updates(&interfaces[turn as usize % GROUPS]); }
    Inc4One(interface: Interface, _turn) { four_updates(interface); }
}

/// Returns the benchmark loop `fixed/inc`: it increments one per-CPU counter. With `think`, it computes between
/// increments.
pub(crate) fn inc(pool: &Pool, think: bool) -> Result<Box<dyn Side>> {
    Ok(Looped::<Inc>::with_shared_state(Counter::new_in(pool, 0)?, Counter::read).thinking(think).boxed())
}

/// Returns the benchmark loop `static/inc`: it increments a per-CPU counter that is a Rust `static`.
pub(crate) fn static_inc() -> Box<dyn Side> {
    Looped::<StaticInc>::with_shared_state((), |()| STATIC.read()).boxed()
}

/// Returns the benchmark loop `fixed/event2`: it updates two per-CPU counters of one group by one commit (a single
/// store), taking several groups in turn. Only the first counter is checked for lost counts.
pub(crate) fn event2(pool: &Pool) -> Result<Box<dyn Side>> {
    let events = |interfaces: &Interfaces| {
        interfaces.iter().map(|interface| interface.read()[Interface::requests.index()]).sum()
    };
    Ok(Looped::<Event2>::with_shared_state(interfaces(pool)?, events).boxed())
}

/// Returns the benchmark loop `fixed/observe`: it records values in a per-CPU histogram with 1 % resolution, up to
/// a minute in nanoseconds.
pub(crate) fn observe(pool: &Pool) -> Result<Box<dyn Side>> {
    let histogram = Histogram::new_in(pool, 60_000_000_000, 0.01)?;
    Ok(Looped::<Observe>::with_shared_state(histogram, |histogram| histogram.snapshot().count()).boxed())
}

/// Returns the benchmark loop `fixed/max`: it updates a per-CPU maximum with values that rarely exceed it.
pub(crate) fn max(pool: &Pool) -> Result<Box<dyn Side>> {
    Ok(Looped::<Extreme>::with_shared_state(Max::new_in(pool)?, |_| 0).counting(0).boxed())
}

/// Returns the benchmark loop `fixed/max-rising`: it updates a per-CPU maximum with values that exceed it every time.
pub(crate) fn rising_max(pool: &Pool) -> Result<Box<dyn Side>> {
    Ok(Looped::<Rising>::with_shared_state(Max::new_in(pool)?, |_| 0).counting(0).boxed())
}

/// Returns the benchmark loop `fixed/average`: it adds values to one per-CPU average.
pub(crate) fn average(pool: &Pool) -> Result<Box<dyn Side>> {
    let average = Average::new_in(pool)?;
    Ok(Looped::<Mean>::with_shared_state(average, |average| average.read().count()).boxed())
}

/// Returns the benchmark loop `fixed/read`: it reads one per-CPU counter.
pub(crate) fn read(counter: Counter) -> Box<dyn Side> {
    Looped::<Read>::with_shared_state(counter, |_| 0).counting(0).boxed()
}

/// Returns the benchmark loop `approximate/read`: it reads one approximate counter without its CPUs.
pub(crate) fn approximate(counter: ApproximateCounter) -> Box<dyn Side> {
    Looped::<Approximate>::with_shared_state(counter, |_| 0).counting(0).boxed()
}

/// Returns the benchmark loop `fixed/add`: it adds a number that the compiler does not know to one per-CPU counter.
pub(crate) fn add(pool: &Pool) -> Result<Box<dyn Side>> {
    Ok(Looped::<Add>::with_shared_state(Counter::new_in(pool, 0)?, Counter::read)
        .counting(PACKET_LENGTH)
        .boxed())
}

/// Returns the benchmark loop `fixed/packet4`: for each packet it updates the four counters of a network interface by
/// one commit (a single store), taking the interfaces in turn. With `think`, it computes between packets.
pub(crate) fn packet4(pool: &Pool, think: bool) -> Result<Box<dyn Side>> {
    let side = Looped::<Packet4>::with_shared_state(interfaces(pool)?, sum_of_all);
    Ok(side.counting(PACKET_SUM).thinking(think).boxed())
}

/// Returns the benchmark loop `fixed/packet4-1group`: for each packet it updates the four counters of one and the same
/// network interface by one commit (a single store).
pub(crate) fn packet4_one(pool: &Pool) -> Result<Box<dyn Side>> {
    Ok(Looped::<Packet4One>::with_shared_state(Interface::new_in(pool)?, sum).counting(PACKET_SUM).boxed())
}

/// Returns the benchmark loop `fixed/inc4`: for each packet it updates the four counters of a network interface one
/// by one, taking the interfaces in turn.
pub(crate) fn inc4(pool: &Pool) -> Result<Box<dyn Side>> {
    Ok(Looped::<Inc4>::with_shared_state(interfaces(pool)?, sum_of_all).counting(PACKET_SUM).boxed())
}

/// Returns the benchmark loop `fixed/inc4-1group`: for each packet it updates the four counters of one and the same
/// network interface one by one.
pub(crate) fn inc4_one(pool: &Pool) -> Result<Box<dyn Side>> {
    Ok(Looped::<Inc4One>::with_shared_state(Interface::new_in(pool)?, sum).counting(PACKET_SUM).boxed())
}
