//! Any bytes as tables of types and decoded functions that were kept: no panic, and no memory beyond what they have bytes for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tallyline_inference::cache::{read_index, read_part};
use tallyline_inference::code::read_functions;

fuzz_target!(|bytes: &[u8]| {
    read_index(bytes);
    read_part(bytes);
    read_functions(bytes);
});
