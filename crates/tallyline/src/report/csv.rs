//! Comma-separated values (RFC 4180): a line for each row, with the event in front.

use super::view::Views;
use anyhow::Result;
use std::borrow::Cow;
use std::io::Write;
use tallyline_report::keys::Column;

/// Writes all tables as one.
pub(super) fn write(views: &Views<'_>, out: &mut dyn Write) -> Result<()> {
    let titles = views.columns.iter().map(|column| column.key().map_or(column.title(), |key| key.name));
    let titles: Vec<_> = ["event", "percent", "samples", "period"]
        .into_iter()
        .chain(titles.filter(|title| !["Samples", "Period"].contains(title)))
        .collect();
    writeln!(out, "{}", titles.join(","))?;
    for view in &views.views {
        let names: Vec<_> = view
            .events
            .iter()
            .filter_map(|event| views.profile.info().events.get(*event))
            .map(|event| event.name.as_str())
            .collect();
        let name = names.join(" + ");
        for row in view.rows(views.limit) {
            let counts = &row.counts();
            write!(
                out,
                "{},{:.4},{},{}",
                quoted(&name),
                counts.percent(&view.whole),
                counts.samples(),
                counts.period()
            )?;
            for (column, text) in views.columns.iter().zip(views.texts(row)) {
                if matches!(column, Column::Key(_)) {
                    write!(out, ",{}", quoted(text.trim()))?;
                }
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Formats a CSV field, quoted if it contains a comma, a quote or a line break.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_field_with_a_comma_or_a_quote_stays_one_field() {
        assert_eq!(quoted("map<int, int>"), "\"map<int, int>\"");
        assert_eq!(quoted("say \"a\""), "\"say \"\"a\"\"\"");
        assert_eq!(quoted("plain"), "plain");
    }
}
