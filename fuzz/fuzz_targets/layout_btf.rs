//! Any bytes as BTF, alone and on a base: no panic, no endless work.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::{Format, Request, Wanted, read, read_with_base};
use tallyline_layout::print::pahole::{Printer, Style};
use tallyline_layout::query;

fuzz_target!(|bytes: &[u8]| {
    let request = Request { format: Some(Format::Btf), ..Request::default() };
    let (base, rest) = bytes.split_at(bytes.len() / 2);
    let named = Request { wanted: Wanted::named(["kinds", "nested", "outer", "list"]), ..request.clone() };
    for types in [read(bytes, &request), read(bytes, &named), read_with_base(rest, base, &request)]
        .into_iter()
        .flatten()
    {
        let mut printer = Printer::new(&types, Style { budget: 1 << 20, ..Style::default() });
        for id in types.listed() {
            printer.print(*id);
            printer.clear();
        }
        for id in types.listed() {
            printer.print_compilable(*id, types.type_name(*id));
            printer.clear();
        }
        let records = lookup::distinct_records(&types);
        for (id, record) in records.into_iter().take(16) {
            query::count_members_of(&types, types.record(record), &[id]);
            query::pointer_members(&types, types.record(record), &[id]).count();
            query::first_biggest_member(&types, types.record(record));
        }
    }
});
