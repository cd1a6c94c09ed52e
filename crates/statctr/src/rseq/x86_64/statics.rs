//! `add_to_static` of the specification for x86-64.
//!
//! Where the sections of other counters test the displacement, these test the carry of an addition that they need
//! anyway: it is also what tells that the static has no home word yet. So an update that loads its home word each time
//! has no instruction more than one that has it in a register.

use super::{asm, offset_of_table};
use std::sync::atomic::AtomicPtr;

macro_rules! define_add_to_static {
    ($(#[$doc:meta])* $name:ident, $commit:expr $(, $value:ident)?) => {
        $(#[$doc])*
        ///
        /// Returns `false` if nothing was added and the slow path has to be taken.
        ///
        /// # Safety
        /// `table` is null or the tagged address of a live table whose displacements are negative. `home` is null or
        /// as `base` of [`add`](super::add).
        #[inline(always)]
        pub(crate) unsafe fn $name(home: &AtomicPtr<u8>, table: *const u8 $(, $value: u64)?) -> bool {
            // SAFETY: `table` is the caller's.
            let area = unsafe { offset_of_table(table) };
            if area == 0 {
                return false;
            }
            // SAFETY: as in `add`. The home word's address is loaded as it was stored, whole; with a displacement
            // below 0 it carries, with one of 0 it does not, nor does null with any.
            unsafe {
                section_by!(
                    prepare {}
                    address { "add {t}, qword ptr [{home}]", "jnc {slow}" }
                    body { ; commit $commit }
                    cleanup {}
                    area = in(reg) area,
                    table = in(reg) table,
                    home = in(reg) home.as_ptr(),
                    $($value = in(reg) $value,)?
                    t = out(reg) _,
                );
            }
            true
        }
    };
}

define_add_to_static!(
    /// `add_to_static` of the specification.
    add_to_static, "add qword ptr [{t}], {value}", value
);
define_add_to_static!(
    /// `add_to_static` of 1.
    inc_static, "add qword ptr [{t}], 1"
);
define_add_to_static!(
    /// `add_to_static` of −1.
    dec_static, "add qword ptr [{t}], -1"
);
