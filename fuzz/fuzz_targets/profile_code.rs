//! Any bytes as a program with debug information: its code is decoded, and the types of its operands are
//! looked for. No panic, no endless work. Start from small programs with DWARF or BTF.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tallyline_debuginfo::NoCompanions;
use tallyline_inference::code::Image;
use tallyline_inference::{Debug, Outcome, Wanted, explain, field_path, infer, infer_by_btf};

fuzz_target!(|bytes: &[u8]| {
    let Ok(image) = Image::parse(bytes) else { return };
    let tables =
        [infer(&image, Debug::Bytes(bytes), &NoCompanions, Wanted::All), infer_by_btf(&image, bytes, Wanted::All)];
    for table in tables.into_iter().flatten() {
        for (address, outcome) in table.rows().iter().take(100) {
            if let Outcome::Typed(typed) = outcome {
                field_path(table.types(), typed);
            }
            table.function_at(*address);
        }
        if let Some((address, _)) = table.rows().first() {
            let _ = explain(&image, Debug::Bytes(bytes), &NoCompanions, *address);
        }
    }
});
