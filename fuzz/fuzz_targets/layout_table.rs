//! Any text as a table of the kernel's `net_cachelines`, held against real types: no panic, no endless work.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Request, read};
use tallyline_layout::check::{Table, check_table};

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let bytes = include_bytes!("../../crates/tallyline-layout/tests/data/holes.o");
    read(bytes, &Request { positions: true, ..Request::default() }).expect("a file of the tests")
});

fuzz_target!(|text: &str| {
    if let Ok(table) = Table::parse(text) {
        assert!(table.member_count() <= text.lines().count());
        check_table(&TYPES, &table, 64);
    }
});
