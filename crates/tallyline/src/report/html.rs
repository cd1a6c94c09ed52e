//! A page with the tables, and how the samples are accounted for.

use super::view::Views;
use anyhow::Result;
use std::io::Write;
use std::path::Path;
use tallyline_layout::print::html::escape;
use tallyline_report::keys::Column;
use tallyline_support::page;

/// The page is wider than others; shares are drawn as bars.
const STYLE: &str = "main, header, footer { max-width: 76rem; }\n\
    td.share { background: linear-gradient(90deg, var(--line) var(--part), transparent 0); }\n";

/// Writes the report's tables as an HTML page; `file` is the path of the recording.
pub(super) fn write(views: &Views<'_>, file: &Path, out: &mut dyn Write) -> Result<()> {
    let file = escape(&file.display().to_string());
    out.write_all(page::head(&format!("Profile of {file}"), STYLE)?.as_bytes())?;
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">tallyline report · <code>{file}</code></p>\n</header>\n<main>\n<h1>Where \
         the samples go</h1>"
    )?;
    for view in &views.views {
        for event in view.events.iter().filter_map(|event| views.profile.info().events.get(*event)) {
            writeln!(out, "<h2><code>{}</code></h2>", escape(&event.name))?;
        }
        write!(
            out,
            "<p>{} samples; percentages weigh the {}; {} samples were lost.",
            view.table.shown.samples(),
            views.weighs(),
            views.profile.info().lost
        )?;
        if views.has_types() {
            let account = &view.account;
            write!(
                out,
                " {} are eligible: in code with debug information, accessing memory that has a type; {} of them \
                 have one. Skid: {}.",
                account.eligible,
                account.typed,
                escape(&views.profile.skid().to_string())
            )?;
        }
        writeln!(
            out,
            "</p>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">share</th><th scope=\"col\">samples</th>"
        )?;
        for column in keys(views) {
            write!(out, "<th scope=\"col\" class=\"words\">{}</th>", escape(column))?;
        }
        writeln!(out, "</tr></thead>\n<tbody>")?;
        for row in view.rows(views.limit) {
            let share = row.counts().percent(&view.whole);
            write!(
                out,
                "<tr><td class=\"share\" style=\"--part:{share:.2}%\">{share:.2} %</td><td>{}</td>",
                row.counts().samples()
            )?;
            for (column, text) in views.columns.iter().zip(views.texts(row)) {
                if column.key().is_some() {
                    write!(out, "<td class=\"words\"><code>{}</code></td>", escape(text.trim()))?;
                }
            }
            writeln!(out, "</tr>")?;
        }
        writeln!(out, "</tbody>\n</table></div>")?;
        if views.has_types() && !view.account.untyped.is_empty() {
            writeln!(out, "<h3>Samples without a type</h3>\n<table>\n<tbody>")?;
            for (reason, samples) in &view.account.untyped {
                writeln!(out, "<tr><td class=\"words\">{}</td><td>{samples}</td></tr>", escape(reason))?;
            }
            writeln!(out, "</tbody>\n</table>")?;
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        out,
        "</main>\n<footer>\n<p>Made by <code>tallyline report --html</code> {version}. This page loads nothing from \
         anywhere.</p>\n</footer>\n</body>\n</html>"
    )?;
    Ok(())
}

fn keys<'v>(views: &'v Views<'_>) -> impl Iterator<Item = &'static str> + use<'v> {
    views.columns.iter().filter_map(Column::key).map(|key| key.title)
}
