//! `--help`, `--usage` and the version.

use super::argp::{Argument, Opt};
use super::key::Key;
use super::options::OPTIONS;
use std::fmt::Write;

/// The version that scripts ask for: that of the pahole whose output this is.
pub(super) const VERSION: &str = "v1.32";

/// The version that options are compatible with, as a number.
pub(super) const NUMERIC_VERSION: &str = "132";

/// The column of the descriptions.
const COLUMN: usize = 34;

const EXAMPLES: &str = "
Examples:
  pahole sk_buff                     a struct of the running kernel
  pahole -C sk_buff vmlinux
  pahole --sizes --sort program
  pahole -E --hex -C 'std::string' program

Options that pahole has and this program does not are passed on to the next pahole on the PATH.
Exit status: 0 for success, also where a type is not there; 1 for an error; 64 for an option that
cannot be understood.
";

/// Returns the list of options.
pub(super) fn help() -> String {
    let mut text =
        "Usage: pahole [OPTION...] FILE\nStructs as the cache sees them (tallyline).\n\n".to_string();
    let mut options: Vec<&Opt> = OPTIONS.iter().filter(|option| !option.doc.is_empty()).collect();
    options.sort_by_key(|option| option.long);
    for option in options {
        let short = option.short.map_or("    ".to_string(), |letter| format!("-{letter}, "));
        let argument = match option.argument {
            Argument::None => String::new(),
            Argument::Required(name) => format!("={name}"),
            Argument::Optional(name) => format!("[={name}]"),
        };
        let start = format!("  {short}--{}{argument}", option.long);
        let gap = COLUMN.saturating_sub(start.len()).max(2);
        let passed_on = if matches!(option.key, Key::Elsewhere(_)) { " (passed on)" } else { "" };
        let _ = writeln!(text, "{start}{}{}{passed_on}", " ".repeat(gap), option.doc);
    }
    text + EXAMPLES
}

/// Returns the names of the options alone.
pub(super) fn usage() -> String {
    let flags: String =
        OPTIONS.iter().filter(|option| option.argument == Argument::None).filter_map(|o| o.short).collect();
    let mut text = format!("Usage: pahole [-{flags}]");
    let mut width = text.len();
    for option in OPTIONS.iter().filter(|option| !option.doc.is_empty()) {
        let word = match option.argument {
            Argument::None => format!("[--{}]", option.long),
            Argument::Required(name) => format!("[--{}={name}]", option.long),
            Argument::Optional(name) => format!("[--{}[={name}]]", option.long),
        };
        if width + 1 + word.len() > 79 {
            text.push_str("\n           ");
            width = 11;
        }
        let _ = write!(text, " {word}");
        width += 1 + word.len();
    }
    text + " FILE\n"
}
