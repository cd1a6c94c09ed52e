//! `add_to_static` of the specification for x86-64.
//!
//! Where the sections of other counters test the displacement, these test the carry of an addition that they need
//! anyway: it is also what tells that the static has no home word yet.
//!
//! The home word's address is loaded in front of the section, by a block that loops execute once: each load in a loop of
//! updates takes three quarters of a cycle on Zen 3, as it waits for the address of the update before (3.2 cycles for
//! an update with that load, 2.0 without). Compilers merge such blocks in a whole function (the result of the first
//! update's is used by a loop behind it), and may move one before the stores that make a static at run time, which then
//! gives what that memory held before. So the address is used only if it is one of a home word; else all is loaded anew,
//! in order.

use super::super::first_block::{FirstBlock, HOME_BYTES};
use super::{asm, load_stored_once, offset_of_table};
use std::sync::atomic::{AtomicPtr, Ordering};

macro_rules! define_add_to_static {
    ($(#[$doc:meta])* $name:ident, $commit:expr $(, $value:ident)?) => {
        $(#[$doc])*
        ///
        /// Returns `false` if nothing was added and the slow path has to be taken.
        ///
        /// # Safety
        /// The block's table is null or the tagged address of a live table whose displacements are negative. `home` is
        /// null or as `base` of [`add`](super::add).
        #[inline(always)]
        pub(crate) unsafe fn $name(
            home: &'static AtomicPtr<u8>,
            block: &'static FirstBlock
            $(, $value: u64)?
        ) -> bool {
            let (mut table, mut base) = (load_stored_once(&block.table), load_stored_once(home));
            // SAFETY: `table` is null or the block's.
            let mut area = unsafe { offset_of_table(table) };
            let from_first = base.addr().wrapping_sub(load_stored_once(&block.homes).addr());
            if area == 0 || from_first >= HOME_BYTES {
                table = block.table.load(Ordering::Acquire);
                base = home.load(Ordering::Relaxed);
                // SAFETY: as above.
                area = unsafe { offset_of_table(table) };
                if area == 0 {
                    return false;
                }
            }
            // SAFETY: as in `add`. The home word's address is null or that of a word in the home unit; with a
            // displacement below 0 it carries, with one of 0 it does not, nor does null with any.
            unsafe {
                section_by!(
                    prepare {}
                    address { "add {t}, {base}", "jnc {slow}" }
                    body { ; commit $commit }
                    cleanup {}
                    area = in(reg) area,
                    table = in(reg) table,
                    base = in(reg) base,
                    $($value = in(reg) $value,)?
                    t = out(reg) _,
                );
            }
            true
        }
    };
}

define_add_to_static!(
    /// Adds `value` to the current CPU's word of a static counter (`add_to_static` of the specification).
    add_to_static, "add qword ptr [{t}], {value}", value
);
define_add_to_static!(
    /// Adds 1 to the current CPU's word of a static counter (`add_to_static` of the specification).
    inc_static, "add qword ptr [{t}], 1"
);
define_add_to_static!(
    /// Subtracts 1 from the current CPU's word of a static counter (`add_to_static` of the specification).
    dec_static, "add qword ptr [{t}], -1"
);
