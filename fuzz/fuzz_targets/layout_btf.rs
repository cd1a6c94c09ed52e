//! Any bytes as BTF, alone and on a base: no panic, no endless work.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tallyline_layout::print::pahole::{Printer, Style};
use tallyline_layout::{Format, Request, query, read, read_with_base};

fuzz_target!(|bytes: &[u8]| {
    let request = Request { format: Some(Format::Btf), ..Request::default() };
    let (base, rest) = bytes.split_at(bytes.len() / 2);
    for types in [read(bytes, &request), read_with_base(rest, base, &request)].into_iter().flatten() {
        let mut printer = Printer::new(&types, Style { budget: 1 << 20, ..Style::default() });
        for id in types.listed() {
            printer.print(*id);
            printer.clear();
        }
        for (id, _) in query::distinct_records(&types).into_iter().take(16) {
            query::containers(&types, id);
            query::pointers_to(&types, id);
        }
    }
});
