//! Findings for people.

use super::Shown;
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use std::io::Write;
use tallyline_support::output::printable;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const DENIED: Style = AnsiColor::Red.on_default().bold();
const WARNED: Style = AnsiColor::Yellow.on_default();

/// Writes two lines for each finding, and their number.
pub(super) fn write(shown: &[Shown<'_>], types: usize, out: &mut dyn Write) -> Result<()> {
    let (mut denied, mut warned, mut allowed) = (0, 0, 0);
    for one in shown {
        let finding = one.finding;
        let (style, word) = match (&finding.allowed(), one.is_warning()) {
            (Some(_), _) => (DIM, "allowed"),
            (None, true) => (WARNED, "warning"),
            (None, false) => (DENIED, "error"),
        };
        *match word {
            "allowed" => &mut allowed,
            "warning" => &mut warned,
            _ => &mut denied,
        } += 1;
        let (subject, message) = (one.subject(), printable(finding.message.as_bytes()));
        let subject = printable(subject.as_bytes());
        writeln!(out, "{style}{word}{style:#}: {BOLD}{subject}{BOLD:#}: {message} [{}]", finding.rule())?;
        let mut places = Vec::new();
        if let Some((file, line)) = &one.declared_at {
            places.push(format!("{}:{line}", printable(file.as_bytes())));
        }
        if let Some(unit) = &finding.unit() {
            places.push(format!("unit {unit}"));
        }
        if finding.line() != 0 {
            places.push(format!("rule at {}:{}", one.rules, finding.line()));
        }
        let reason = finding.reason().map(|reason| format!("because: {reason}"));
        let allowed = finding.allowed().map(|reason| format!("allowed: {reason}"));
        places.extend(reason.into_iter().chain(allowed));
        writeln!(out, "  {DIM}{}{DIM:#}", printable(places.join("; ").as_bytes()))?;
    }
    let checks = if types == 1 { "1 check" } else { &format!("{types} checks") };
    writeln!(out, "{checks}: {denied} denied, {warned} warned of, {allowed} allowed")?;
    Ok(())
}
