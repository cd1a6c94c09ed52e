//! The shape of an object in memory.

use super::cells::SIDE;
use crate::rseq::Instance;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

/// Bytes of a cell: whole cache lines, so that no two objects share one.
pub(super) const CELL_BYTES: usize = (size_of::<Instance>() + 16).next_multiple_of(64);
/// Instances that are found without a table.
pub(super) const PAIRS: usize = (CELL_BYTES - size_of::<Instance>() - 8) / 8;
/// Bytes of a further instance: a line, so that no two CPUs' share one however often they were given
/// back and taken again.
pub(super) const INSTANCE_BYTES: usize = size_of::<Instance>().next_multiple_of(64);
/// Addresses of user space fit into so many bits on the machines that have sections; the index is
/// kept above.
const ADDRESS_BITS: u32 = 48;

/// In an object's owner: others write, too, so that the owner has a further instance of its own from
/// its next update on. The object's line is then read by all of its writers and written by none.
pub(super) const SPREAD: u32 = 1 << 31;

/// Somebody used the atomic words.
pub(super) const SHARED: u32 = 1;
/// There is a table.
pub(super) const TABLE: u32 = 2;
/// The place of the node that the cell came from is kept above.
pub(super) const NODE_SHIFT: u32 = 8;

/// An object. Where it begins and what comes first is part of the C ABI.
#[repr(C, align(64))]
pub(super) struct Cell {
    pub(super) own: Instance,
    /// 1 + the owner's index, 0 before there is one; and [`SPREAD`].
    pub(super) owner: AtomicU32,
    /// [`SHARED`], [`TABLE`], and a place.
    pub(super) flags: AtomicU32,
    /// (1 + index) above, address of an instance below; filled from the first on.
    pub(super) pairs: [AtomicU64; PAIRS],
}

/// Rarely used part of an object, [`SIDE`] bytes behind its cell.
#[repr(C, align(64))]
pub(super) struct Side {
    /// Words that everybody updates atomically.
    pub(super) shared: [AtomicU64; crate::rseq::ITEMS],
    /// Address of a table by index, 0 before there is one.
    pub(super) table: AtomicUsize,
}

const _: () = assert!(size_of::<Cell>() == CELL_BYTES && size_of::<Side>() <= CELL_BYTES);
const _: () = assert!(PAIRS >= 3 && SIDE.is_multiple_of(CELL_BYTES));

/// An instance of an object.
pub(super) type InstancePtr = NonNull<Instance>;

/// Packs a mark and an instance into a pair, where they fit.
pub(super) fn pack(mark: u32, instance: InstancePtr) -> Option<u64> {
    let (mark, address) = (u64::from(mark), instance.addr().get() as u64);
    let fits = address >> ADDRESS_BITS == 0 && mark >> (64 - ADDRESS_BITS) == 0;
    fits.then_some(mark << ADDRESS_BITS | address)
}

/// Returns 1 + the index of a pair, and its instance.
pub(super) fn unpack(pair: u64) -> Option<(u32, InstancePtr)> {
    let instance = instance_at((pair & ((1 << ADDRESS_BITS) - 1)) as usize)?;
    Some(((pair >> ADDRESS_BITS) as u32, instance))
}

/// Returns the instance of a pair, if it is that of this mark.
#[inline(always)]
pub(super) fn unpack_of(pair: u64, mark: u32) -> Option<InstancePtr> {
    let same = pair >> ADDRESS_BITS == u64::from(mark);
    if same { instance_at((pair & ((1 << ADDRESS_BITS) - 1)) as usize) } else { None }
}

/// Returns the instance at an address that was kept as a number.
pub(super) fn instance_at(address: usize) -> Option<InstancePtr> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address))
}
