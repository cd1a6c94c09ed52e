//! The first block of memory of statics, as their updates in line see it.

use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of the home words of a block.
pub(crate) const HOME_BYTES: usize = 32 << 10;

/// The addresses that are the same for all statics of the first block. Null at first, and stored once.
#[derive(Debug)]
pub(crate) struct FirstBlock {
    /// The tagged table, stored once a word of the block has its handle and sections are used.
    pub(super) table: AtomicPtr<u8>,
    /// The first home word.
    pub(super) homes: AtomicPtr<u8>,
}

impl FirstBlock {
    pub(crate) const fn unknown() -> FirstBlock {
        let null = std::ptr::null_mut();
        FirstBlock { table: AtomicPtr::new(null), homes: AtomicPtr::new(null) }
    }

    /// Stores the addresses.
    pub(crate) fn set(&self, table: *mut u8, homes: *mut u8) {
        self.homes.store(homes, Ordering::Release);
        self.table.store(table, Ordering::Release);
    }

    /// Returns the tagged table, null as long as sections are not used.
    pub(crate) fn table(&self) -> *mut u8 {
        self.table.load(Ordering::Acquire)
    }
}
