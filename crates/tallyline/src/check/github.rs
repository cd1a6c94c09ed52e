//! Findings as commands of GitHub's workflows, which become annotations of files.

use super::Shown;
use anyhow::Result;
use std::io::Write;

/// Writes a line for each finding that is not allowed.
pub(super) fn write(shown: &[Shown<'_>], out: &mut dyn Write) -> Result<()> {
    for one in shown.iter().filter(|one| one.finding.allowed().is_none()) {
        let (file, line) = one.place();
        let level = if one.is_warning() { "warning" } else { "error" };
        let title = property(&format!("layout: {}", one.finding.rule()));
        let reason = one.finding.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let text = data(&format!("{}: {}{reason}", one.subject(), one.finding.message));
        writeln!(out, "::{level} file={},line={line},title={title}::{text}", property(file))?;
    }
    Ok(())
}

/// Returns the text of a command: a line break would end it, and names come from a file.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_write_commands_of_their_own() {
        assert_eq!(data("a\n::error::b 100%"), "a%0A::error::b 100%25");
        assert_eq!(property("v<a::b, c>"), "v<a%3A%3Ab%2C c>");
    }
}
