//! C sides: the update as `statctr.h` inlines it, and the same behind a call.
//!
//! Their loops are in `inline.c` and `call.c`, which `build.rs` compiles where there is a C
//! compiler.

use super::Available;

/// The name and version of the compiler that built the benchmarks' C loops, or the reason why they were not built.
pub(crate) const COMPILER: &str = env!("TALLYLINE_C_COMPILER");

#[cfg(c_sides)]
pub(crate) use built::{add, call_inc, inc, static_inc};

/// Returns an error with the reason why the C loop `fixed/inc-c`, which increments a per-CPU counter by the inline
/// function of `statctr.h`, was not built.
#[cfg(not(c_sides))]
pub(crate) fn inc(_think: bool) -> Available {
    Err(COMPILER.into())
}

/// Returns an error with the reason why the C loop `static/inc-c`, which increments a static per-CPU counter by the
/// inline function of `statctr.h`, was not built.
#[cfg(not(c_sides))]
pub(crate) fn static_inc() -> Available {
    Err(COMPILER.into())
}

/// Returns an error with the reason why the C loop `fixed/add-c`, which adds a number that the compiler does not know by
/// the inline function of `statctr.h`, was not built.
#[cfg(not(c_sides))]
pub(crate) fn add() -> Available {
    Err(COMPILER.into())
}

/// Returns an error with the reason why the C loop `fixed/inc-c-call`, which calls the library for each increment of a
/// per-CPU counter, was not built.
#[cfg(not(c_sides))]
pub(crate) fn call_inc() -> Available {
    Err(COMPILER.into())
}

#[cfg(c_sides)]
mod built {
    use super::Available;
    use crate::sides::looped::PLACEMENTS;
    use crate::sides::{PACKET_LENGTH, Side};
    use std::ptr::NonNull;
    // its functions are what the C code calls
    use statctr_capi as _;

    /// The C type `struct tallyline_counter`, opaque here.
    #[repr(C)]
    struct Opaque {
        _private: [u8; 0],
    }

    type Loop = unsafe extern "C" fn(*mut Opaque, u64);

    // SAFETY: the declarations of `sides.h`.
    unsafe extern "C" {
        static tallyline_c_inc: [Loop; PLACEMENTS];
        static tallyline_c_static_inc: [Loop; PLACEMENTS];
        static tallyline_c_add: [Loop; PLACEMENTS];
        static tallyline_c_inc_think: [Loop; PLACEMENTS];
        static tallyline_c_call_inc: [Loop; PLACEMENTS];
        fn tallyline_counter_new() -> *mut Opaque;
        fn tallyline_counter_read(counter: *mut Opaque) -> u64;
        fn tallyline_static_read(counter: *mut Opaque) -> u64;
        fn tallyline_counter_free(counter: *mut Opaque);
    }

    struct Counter {
        counter: NonNull<Opaque>,
        loops: &'static [Loop; PLACEMENTS],
        total: unsafe extern "C" fn(*mut Opaque) -> u64,
        per_operation: u64,
    }

    // SAFETY: a `statctr_t` may be used by all threads at once.
    unsafe impl Send for Counter {}
    // SAFETY: as above.
    unsafe impl Sync for Counter {}

    impl Side for Counter {
        fn placements(&self) -> usize {
            PLACEMENTS
        }

        fn run(&self, _thread: usize, placement: usize, n: u64) {
            // SAFETY: the loop of sides.h on a live counter.
            unsafe { self.loops[placement % PLACEMENTS](self.counter.as_ptr(), n) };
        }

        fn total(&self) -> Option<u64> {
            // SAFETY: a live counter.
            Some(unsafe { (self.total)(self.counter.as_ptr()) })
        }

        fn per_operation(&self) -> u64 {
            self.per_operation
        }
    }

    impl Drop for Counter {
        fn drop(&mut self) {
            // SAFETY: made by `tallyline_counter_new`, freed once.
            unsafe { tallyline_counter_free(self.counter.as_ptr()) };
        }
    }

    fn side(
        loops: &'static [Loop; PLACEMENTS],
        total: unsafe extern "C" fn(*mut Opaque) -> u64,
        per_operation: u64,
    ) -> Available {
        // SAFETY: has no preconditions.
        let counter = NonNull::new(unsafe { tallyline_counter_new() })
            .ok_or_else(|| format!("statctr_init: {}", std::io::Error::last_os_error()))?;
        Ok(Box::new(Counter { counter, loops, total, per_operation }))
    }

    /// Returns the side `fixed/inc-c`: C's inline update of a counter.
    pub(crate) fn inc(think: bool) -> Available {
        // SAFETY: constants, never written.
        let loops = unsafe { if think { &tallyline_c_inc_think } else { &tallyline_c_inc } };
        side(loops, tallyline_counter_read, 1)
    }

    /// Returns the side `static/inc-c`: C's inline update of a static.
    pub(crate) fn static_inc() -> Available {
        // SAFETY: as above.
        side(unsafe { &tallyline_c_static_inc }, tallyline_static_read, 1)
    }

    /// Returns the side `fixed/add-c`: C's inline addition of a number that the compiler does not know.
    pub(crate) fn add() -> Available {
        // SAFETY: as above.
        side(unsafe { &tallyline_c_add }, tallyline_counter_read, PACKET_LENGTH)
    }

    /// Returns the side `fixed/inc-c-call`: a call of the C library for each update.
    pub(crate) fn call_inc() -> Available {
        // SAFETY: as above.
        side(unsafe { &tallyline_c_call_inc }, tallyline_counter_read, 1)
    }
}
