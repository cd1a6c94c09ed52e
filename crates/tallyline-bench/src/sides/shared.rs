//! The counter of most programs: one atomic word that all threads add to.

use super::looped::{Looped, Step, opaque};
use super::{GROUPS, PACKET_SUM, Side, packet_length};
use std::sync::atomic::{AtomicU64, Ordering};

struct Inc;

impl Step for Inc {
    type State = AtomicU64;

    #[inline(always)]
    fn step(word: &AtomicU64, _turn: u64) {
        word.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the benchmark loop `shared-atomic/inc`: all threads increment one atomic word. With `think`, they
/// compute between increments.
pub(crate) fn inc(think: bool) -> Box<dyn Side> {
    Looped::<Inc>::with_shared_state(AtomicU64::new(0), |word| word.load(Ordering::Relaxed))
        .thinking(think)
        .boxed()
}

struct Read;

impl Step for Read {
    type State = AtomicU64;

    #[inline(always)]
    fn step(word: &AtomicU64, _turn: u64) {
        opaque(word.load(Ordering::Relaxed));
    }
}

/// Returns the benchmark loop `shared-atomic/read`: it loads one atomic word.
pub(crate) fn read() -> Box<dyn Side> {
    Looped::<Read>::with_shared_state(AtomicU64::new(0), |_| 0).counting(0).boxed()
}

/// The four counters of a network interface as shared atomics on one cache line, the best layout for counters
/// updated together.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct Interface([AtomicU64; 4]);

impl Interface {
    #[inline(always)]
    fn packet(&self, length: u64) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
        self.0[1].fetch_add(length, Ordering::Relaxed);
        self.0[2].fetch_add(1, Ordering::Relaxed);
        self.0[3].fetch_add(length, Ordering::Relaxed);
    }

    fn sum(&self) -> u64 {
        self.0.iter().fold(0u64, |sum, item| sum.wrapping_add(item.load(Ordering::Relaxed)))
    }
}

struct Packet4;

impl Step for Packet4 {
    type State = [Interface; GROUPS];

    #[inline(always)]
    fn step(interfaces: &[Interface; GROUPS], turn: u64) {
        interfaces[turn as usize % GROUPS].packet(packet_length());
    }
}

/// Returns the benchmark loop `shared-atomic/packet4`: for each packet it updates the four shared atomics of a
/// network interface, taking the interfaces in turn. With `think`, it computes between packets.
pub(crate) fn packet4(think: bool) -> Box<dyn Side> {
    Looped::<Packet4>::with_shared_state(Default::default(), |all| all.iter().map(Interface::sum).sum())
        .counting(PACKET_SUM)
        .thinking(think)
        .boxed()
}

struct Packet4One;

impl Step for Packet4One {
    type State = Interface;

    #[inline(always)]
    fn step(interface: &Interface, _turn: u64) {
        interface.packet(packet_length());
    }
}

/// Returns the benchmark loop `shared-atomic/packet4-1group`: for each packet it updates the four shared atomics of
/// one and the same network interface.
pub(crate) fn packet4_one() -> Box<dyn Side> {
    Looped::<Packet4One>::with_shared_state(Default::default(), Interface::sum).counting(PACKET_SUM).boxed()
}
