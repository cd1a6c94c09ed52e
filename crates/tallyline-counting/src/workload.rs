//! The packets, and the methods of counting them.
//!
//! A thread carries packets round sixteen loop-back interfaces: each packet is sent and received on
//! the same interface, which raises four counters of it. Every interface carries packets of one
//! length, so that whoever reads its counters can tell whether packets and bytes fit together.
//!
//! A new method is one type here and one line in [`LABELS`] and [`Store::methods`].

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of network interfaces whose packets the compared methods count; packets visit them in turn.
pub const INTERFACES: usize = 16;

/// The number of counters of a network interface, all of which each of its packets updates: packets and bytes, received
/// and sent.
pub const COUNTERS: usize = 4;

/// The packet length in bytes of each network interface: 64, 594 and 1518 at about 7 : 4 : 1, a mix
/// that is common in tests of network equipment ("simple IMIX").
pub(crate) const LENGTHS: [u64; INTERFACES] =
    [64, 594, 64, 64, 1518, 64, 594, 64, 594, 64, 64, 1518, 594, 64, 594, 64];

/// The values of one network interface's four counters: packets and bytes received, packets and bytes sent.
pub type Values = [u64; COUNTERS];

/// Returns the correct values of a network interface's counters after `packets` packets.
pub(crate) fn values_after(interface: usize, packets: u64) -> Values {
    let bytes = packets.wrapping_mul(LENGTHS[interface]);
    [packets, bytes, packets, bytes]
}

statctr::group! {
    /// The traffic of one interface.
    pub(crate) struct Traffic {
        /// Counts one packet that went round the loop-back interface.
        event looped(rx_packets, rx_bytes, tx_packets, tx_bytes);
        item rx_packets: statctr::Unit::PACKETS, "packets received";
        item rx_bytes: statctr::Unit::BYTES, "bytes received";
        item tx_packets: statctr::Unit::PACKETS, "packets sent";
        item tx_bytes: statctr::Unit::BYTES, "bytes sent";
    }
}

/// A packet, as far as counting is concerned.
#[derive(Debug, Clone, Copy)]
struct Packet {
    interface: u32,
    length: u32,
}

/// The packets that a thread counts over and over: one of each network interface.
#[derive(Debug)]
#[repr(align(128))]
pub struct Ring([Packet; INTERFACES]);

impl Ring {
    /// Creates the packets of a thread. Each thread starts at another network interface, so that they do not contend in
    /// lock-step.
    pub(crate) fn new(thread: usize, threads: usize) -> Ring {
        let first = thread * INTERFACES / threads.max(1);
        Ring(std::array::from_fn(|place| {
            let interface = (first + place) % INTERFACES;
            Packet { interface: interface as u32, length: LENGTHS[interface] as u32 }
        }))
    }
}

/// A method of counting packets that is compared with others, such as shared atomics.
pub trait CountingMethod: Sync {
    /// Counts `rounds` times the packets of the ring.
    fn carry(&self, ring: &Ring, rounds: u64);

    /// Reads the counters of one interface.
    fn read(&self, interface: usize) -> Values;
}

/// A method's update for one packet.
trait Count: Sync {
    fn count(&self, interface: usize, length: u64);
    fn read(&self, interface: usize) -> Values;
}

impl<C: Count> CountingMethod for C {
    // a loop of its own for each method, the same source for all of them
    #[inline(never)]
    fn carry(&self, ring: &Ring, rounds: u64) {
        for _ in 0..rounds {
            for packet in &ring.0 {
                self.count(packet.interface as usize % INTERFACES, u64::from(packet.length));
            }
        }
    }

    fn read(&self, interface: usize) -> Values {
        Count::read(self, interface)
    }
}

/// The loop without counting: how much of the time is not the counters'.
struct Nothing;

impl Count for Nothing {
    #[inline(always)]
    fn count(&self, interface: usize, length: u64) {
        black_box((interface, length));
    }

    fn read(&self, _interface: usize) -> Values {
        [0; COUNTERS]
    }
}

/// The four counters of an interface as atomic words.
type Atomics = [AtomicU64; COUNTERS];

#[inline(always)]
fn count_atomically(atomics: &Atomics, length: u64) {
    let [rx_packets, rx_bytes, tx_packets, tx_bytes] = atomics;
    rx_packets.fetch_add(1, Ordering::Relaxed);
    rx_bytes.fetch_add(length, Ordering::Relaxed);
    tx_packets.fetch_add(1, Ordering::Relaxed);
    tx_bytes.fetch_add(length, Ordering::Relaxed);
}

fn read_atomics(atomics: &Atomics) -> Values {
    std::array::from_fn(|item| atomics[item].load(Ordering::Relaxed))
}

/// Shared atomics, interface after interface: what most programs do. Two interfaces share a cache
/// line.
#[derive(Default)]
struct Packed([Atomics; INTERFACES]);

impl Count for &Packed {
    #[inline(always)]
    fn count(&self, interface: usize, length: u64) {
        count_atomically(&self.0[interface], length);
    }

    fn read(&self, interface: usize) -> Values {
        read_atomics(&self.0[interface])
    }
}

/// Two cache lines: processors fetch lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct NoCompanions<T>(T);

/// Shared atomics, each interface on cache lines of its own: what is left is the sharing of the
/// counters themselves. A line for each single counter is worse: four lines move for one packet.
#[derive(Default)]
struct Padded([NoCompanions<Atomics>; INTERFACES]);

impl Count for &Padded {
    #[inline(always)]
    fn count(&self, interface: usize, length: u64) {
        count_atomically(&self.0[interface].0, length);
    }

    fn read(&self, interface: usize) -> Values {
        read_atomics(&self.0[interface].0)
    }
}

/// The groups of per-CPU counters of all network interfaces, one group of four counters for each.
pub(crate) type Groups = [Traffic; INTERFACES];

/// Creates a group of four per-CPU counters (packets and bytes, received and sent), all zero, in `pool` for each
/// network interface.
pub(crate) fn groups(pool: &statctr::Pool) -> statctr::Result<Groups> {
    let made: Vec<Traffic> = (0..INTERFACES).map(|_| Traffic::new_in(pool)).collect::<Result<_, _>>()?;
    Ok(made.try_into().unwrap_or_else(|_| unreachable!("as many as were made")))
}

/// `statctr`, counter by counter.
struct FourUpdates<'g>(&'g Groups);

impl Count for FourUpdates<'_> {
    #[inline(always)]
    fn count(&self, interface: usize, length: u64) {
        let traffic = &self.0[interface];
        traffic.add(Traffic::rx_packets, 1);
        traffic.add(Traffic::rx_bytes, length);
        traffic.add(Traffic::tx_packets, 1);
        traffic.add(Traffic::tx_bytes, length);
    }

    fn read(&self, interface: usize) -> Values {
        self.0[interface].read()
    }
}

/// `statctr`, the four counters by one commit.
struct OneCommit<'g>(&'g Groups);

impl Count for OneCommit<'_> {
    #[inline(always)]
    fn count(&self, interface: usize, length: u64) {
        self.0[interface].looped(1, length, 1, length);
    }

    fn read(&self, interface: usize) -> Values {
        self.0[interface].read()
    }
}

/// The kind of counters that a method of counting packets uses: none, shared atomics, or `statctr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// No counters: the loop alone.
    Nobody,
    /// Atomic words that all threads share.
    Atomics,
    /// The per-CPU counters of `statctr`.
    Statctr,
}

/// The identifier, the display name and the kind of counters of a method of counting packets (such as shared atomics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The identifier, as in JSON.
    pub key: &'static str,
    /// The name that people read.
    pub name: &'static str,
    /// The kind of counters that it uses.
    pub family: Family,
}

const fn label(key: &'static str, name: &'static str, family: Family) -> Label {
    Label { key, name, family }
}

/// The identifiers, display names and kinds of counters of the compared methods of counting packets.
pub const LABELS: [Label; 5] = [
    label("shared-atomic/packed", "shared atomics", Family::Atomics),
    label("shared-atomic/padded", "shared atomics, padded", Family::Atomics),
    label("statctr/four-updates", "statctr, four updates", Family::Statctr),
    label("statctr/one-commit", "statctr, one commit", Family::Statctr),
    label("loop", "the loop alone", Family::Nobody),
];

/// The index in [`LABELS`] of the recommended counting method: `statctr` with one commit (a single store to all four
/// counters) per packet.
pub const ONE_COMMIT: usize = 3;

/// The counters of network interfaces that the compared methods of counting packets update: shared atomic words, and
/// groups of `statctr` counters.
pub struct Store {
    packed: Packed,
    padded: Padded,
    one_by_one: Groups,
    together: Groups,
}

impl Store {
    /// Creates the counters, all zero, of the compared methods of counting packets; those of `statctr` are in `pool`.
    ///
    /// # Errors
    /// Those of creating groups, such as a pool that has no room left.
    pub fn new(pool: &statctr::Pool) -> statctr::Result<Box<Store>> {
        Ok(Box::new(Store {
            packed: Packed::default(),
            padded: Padded::default(),
            one_by_one: groups(pool)?,
            together: groups(pool)?,
        }))
    }

    /// Returns the compared methods of counting packets, which update these counters, in the order of [`LABELS`].
    pub fn methods(&self) -> [Box<dyn CountingMethod + '_>; 5] {
        [
            Box::new(&self.packed),
            Box::new(&self.padded),
            Box::new(FourUpdates(&self.one_by_one)),
            Box::new(OneCommit(&self.together)),
            Box::new(Nothing),
        ]
    }

    /// Returns the groups of `statctr` counters of the recommended method of counting packets (one commit for each
    /// packet), by network interface.
    pub(crate) fn groups(&self) -> &Groups {
        &self.together
    }

    /// Returns the shared atomic word of one counter (`item`) of one network interface.
    pub(crate) fn shared_word(&self, interface: usize, item: usize) -> &AtomicU64 {
        &self.packed.0[interface][item]
    }
}
