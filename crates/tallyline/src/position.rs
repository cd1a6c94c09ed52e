//! Source positions of types, as text.

use tallyline_debuginfo::model::{Position, Types};
use tallyline_support::output::printable;

/// Formats a source position as `file:line` after the text `words`; empty if the position is unknown.
pub(crate) fn place(types: &Types, position: Position, words: &str) -> String {
    if !position.file.is_some() || position.line == 0 {
        return String::new();
    }
    format!("{words}{}:{}", printable(types.name(position.file)), position.line)
}
