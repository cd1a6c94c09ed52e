//! Arrays that a program registers in Rust, as its functions in C see them.
#![allow(unsafe_code)] // the boundary to C

use statctr::{Counter, CounterArray, Description, Registry};
use statctr_capi::{StatctrReading, statctr_visit_all};
use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

/// Adds index and membership of a reading to a list, but for those of other names.
unsafe extern "C" fn collect(reading: *const StatctrReading, list: *mut c_void) -> c_int {
    // SAFETY: a reading that lives, and the list of the test.
    let (reading, list) = unsafe { (&*reading, &mut *list.cast::<Vec<(u64, u64)>>()) };
    // SAFETY: the reading has a name.
    if unsafe { CStr::from_ptr(reading.desc.name) }.to_bytes().starts_with(b"of_array") {
        list.push((reading.index, reading.in_array));
    }
    0
}

#[test]
fn elements_of_arrays_are_told_from_single_values() {
    let array = Arc::new(CounterArray::new(3, 0).expect("array"));
    let counter = Arc::new(Counter::new(0).expect("counter"));
    Registry::global().register(Description::new("of_array"), &array).expect("free");
    Registry::global().register(Description::new("of_array_none"), &counter).expect("free");
    let mut list: Vec<(u64, u64)> = Vec::new();
    // SAFETY: the list is what the function takes.
    assert_eq!(unsafe { statctr_visit_all(Some(collect), (&raw mut list).cast()) }, 0);
    assert_eq!(list, [(0, 1), (1, 1), (2, 1), (0, 0)]);
}
