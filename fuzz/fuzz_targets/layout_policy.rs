//! Any text as a policy, held against real types: no panic, no endless work.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Request, read};
use tallyline_layout::check::{Policy, check};

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let bytes = include_bytes!("../../crates/tallyline-layout/tests/data/holes.o");
    read(bytes, &Request { positions: true, ..Request::default() }).expect("a file of the tests")
});

fuzz_target!(|text: &str| match Policy::parse(text) {
    Ok(policy) => {
        policy.wanted();
        let report = check(&TYPES, &policy);
        for finding in &report.findings {
            assert!(!finding.message.contains('\n'), "a finding is one line");
        }
    }
    Err(error) => {
        assert!(error.line() >= 1 && error.line() as usize <= text.lines().count() + 1, "{error}");
    }
});
