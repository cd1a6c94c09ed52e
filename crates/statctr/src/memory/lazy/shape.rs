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
/// Pairs have the marks below; indices with this mark and those above have their instances in tables alone. The last
/// pair is negative where it is the complement of the address of a table by index, in which the instance of the pair that
/// it replaced is, too: one instruction tells, and one gets the address. Part of the C ABI.
pub(super) const TABLE_MARK: u32 = 1 << (63 - ADDRESS_BITS);
/// The place of the node that the cell came from is kept above.
pub(super) const NODE_SHIFT: u32 = 8;

/// An object. Where it begins and what comes first is part of the C ABI.
#[repr(C, align(64))]
pub(super) struct Cell {
    pub(super) own: Instance,
    /// 1 + the owner's index, 0 before there is one; and [`SPREAD`].
    pub(super) owner: AtomicU32,
    /// [`SHARED`], and a place.
    pub(super) flags: AtomicU32,
    /// (1 + index) above, address of an instance below; filled from the first on. Part of the C ABI.
    pub(super) pairs: [AtomicU64; PAIRS],
}

/// Rarely used part of an object, [`SIDE`] bytes behind its cell.
#[repr(C, align(64))]
pub(super) struct Side {
    /// Words that everybody updates atomically.
    pub(super) shared: [AtomicU64; crate::rseq::ITEMS],
}

const _: () = assert!(size_of::<Cell>() == CELL_BYTES && size_of::<Side>() <= CELL_BYTES);
const _: () = assert!(std::mem::offset_of!(Cell, pairs) == size_of::<Instance>() + 8);
const _: () = assert!(PAIRS >= 3 && SIDE.is_multiple_of(CELL_BYTES));

/// The first word of a table: addresses of instances by index.
pub(super) type TablePtr = NonNull<AtomicUsize>;

/// An instance of an object.
pub(super) type InstancePtr = NonNull<Instance>;

/// Packs a mark and an instance into a pair, where they fit.
pub(super) fn pack(mark: u32, instance: InstancePtr) -> Option<u64> {
    let address = address_of(instance.addr().get())?;
    (mark < TABLE_MARK).then_some(u64::from(mark) << ADDRESS_BITS | address)
}

/// Packs the address of a table into the last pair, where it fits.
pub(super) fn pack_table(table: TablePtr) -> Option<u64> {
    address_of(table.addr().get()).map(|address| !address)
}

fn address_of(address: usize) -> Option<u64> {
    Some(address as u64).filter(|address| address >> ADDRESS_BITS == 0)
}

#[inline(always)]
fn address(pair: u64) -> usize {
    (pair & ((1 << ADDRESS_BITS) - 1)) as usize
}

/// Returns 1 + the index of a pair, and its instance; `None` where there is none, or a table.
pub(super) fn unpack(pair: u64) -> Option<(u32, InstancePtr)> {
    let mark = (pair >> ADDRESS_BITS) as u32;
    if mark < TABLE_MARK { Some((mark, instance_at(address(pair))?)) } else { None }
}

/// Returns `true` if a pair is that of this mark, which is below [`TABLE_MARK`].
#[inline(always)]
pub(super) fn is_of(pair: u64, mark: u32) -> bool {
    pair >> ADDRESS_BITS == u64::from(mark)
}

/// Returns the instance of a pair, if it is that of this mark, which is below [`TABLE_MARK`].
#[inline(always)]
pub(super) fn unpack_of(pair: u64, mark: u32) -> Option<InstancePtr> {
    if is_of(pair, mark) { instance_at(address(pair)) } else { None }
}

/// Returns the table whose address the last pair has; `None` where it has another.
#[inline(always)]
pub(super) fn unpack_table(pair: u64) -> Option<TablePtr> {
    if pair.cast_signed() >= 0 {
        return None;
    }
    let table = std::ptr::with_exposed_provenance_mut(!pair as usize);
    // SAFETY: `pack_table` turned over the bits of an address that is not 0, and no other pair is negative.
    Some(unsafe { NonNull::new_unchecked(table) })
}

/// Returns the instance at an address that was kept as a number.
pub(super) fn instance_at(address: usize) -> Option<InstancePtr> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address))
}
