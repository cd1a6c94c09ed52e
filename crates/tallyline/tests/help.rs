//! The help of commands, word for word: it is part of what they promise.
//!
//! `TALLYLINE_UPDATE_HELP=1 cargo test -p tallyline --test help` writes the files anew.

mod common;

use common::{stdout, tallyline};
use std::path::Path;

/// The commands; the book's reference includes their files.
const COMMANDS: [&str; 19] = [
    "advise",
    "annotate",
    "check",
    "config",
    "demo",
    "demo counters",
    "diff",
    "doctor",
    "evlist",
    "groups",
    "layout",
    "lsp",
    "mem",
    "record",
    "reorganize",
    "replay",
    "report",
    "sharing",
    "sharing-check",
];

#[test]
fn help_is_as_it_was_read_and_approved() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    let update = std::env::var_os("TALLYLINE_UPDATE_HELP").is_some();
    for command in COMMANDS {
        // with the defaults of a user who has set nothing
        let mut program = tallyline();
        program.env_remove("TALLYLINE_HYPERLINKS");
        let help = program.args(command.split(' ')).arg("--help").output();
        let help = stdout(&help.expect("the program runs"));
        assert!(help.contains("Examples:"), "{command}");
        let path = folder.join(format!("{}.txt", command.replace(' ', "-")));
        if update {
            std::fs::write(&path, &help).expect("written");
        }
        let approved = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(help, approved, "{}: TALLYLINE_UPDATE_HELP=1 writes it anew", path.display());
    }
}
