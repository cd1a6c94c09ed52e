//! Any bytes as ELF with DWARF: no panic, no endless work. Start from the object files of
//! `crates/tallyline-layout/tests/data`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::{Format, Request, Wanted, read};
use tallyline_layout::print::pahole::{Printer, Style};

fuzz_target!(|bytes: &[u8]| {
    let named = Wanted::named(["nested", "arrays", "holes", "simple", "row_t", "signs"]);
    for wanted in [Wanted::Records, named] {
        let request = Request { format: Some(Format::Dwarf), wanted, ..Request::default() };
        let Ok(types) = read(bytes, &request) else { continue };
        let style = Style { budget: 1 << 20, expand_types: true, ..Style::default() };
        let mut printer = Printer::new(&types, style);
        for id in types.listed() {
            printer.print(*id);
            printer.clear();
        }
        lookup::distinct_records(&types);
    }
});
