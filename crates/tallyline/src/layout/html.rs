//! `tallyline layout --format html`: a page with the types as grids of cache lines.

use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_layout::print::html::{STYLE, Sections, escape};
use tallyline_support::page;

/// The page is wider than others: a cache line has 64 bytes.
const WIDE: &str = "main, header, footer { max-width: 76rem; }\n";

/// Writes the page, type by type. What is no struct, class or union is left out.
pub(super) fn write(
    files: &[PathBuf],
    cacheline: u64,
    types: &Types,
    ids: &[TypeId],
    out: &mut dyn Write,
) -> Result<()> {
    let ids: Vec<TypeId> = ids.iter().copied().filter(|id| types.as_record(*id).is_some()).collect();
    let mut sections = Sections::new(types, cacheline);
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let file = escape(&files.join(", "));
    let what = match ids.as_slice() {
        [one] => escape(&String::from_utf8_lossy(&types.qualified_name(*one))),
        many => format!("{} types", many.len()),
    };
    out.write_all(page::head(&format!("{what} in {file}"), &[STYLE, WIDE].concat())?.as_bytes())?;
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">tallyline layout · <code>{file}</code></p>\n</header>\n<main>"
    )?;
    // one type's own heading says it already
    let class = if ids.len() == 1 { " class=\"sr\"" } else { "" };
    writeln!(out, "<h1{class}>{what}</h1>")?;
    if ids.len() > 1 {
        writeln!(
            out,
            "<nav aria-label=\"Types\"><div class=\"scroll\"><table class=\"index\">\n<caption>Types; lines of \
             {cacheline} bytes</caption>\n<thead><tr><th scope=\"col\">type</th><th scope=\"col\">bytes</th>\
             <th scope=\"col\">lines</th><th scope=\"col\">bytes of holes</th><th scope=\"col\">padding</th></tr></thead>\n<tbody>"
        )?;
        for id in &ids {
            out.write_all(sections.index_row(*id).as_bytes())?;
        }
        writeln!(out, "</tbody>\n</table></div></nav>")?;
    }
    for id in &ids {
        out.write_all(sections.section(*id).as_bytes())?;
    }
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        out,
        "</main>\n<footer>\n<p>Made by <code>tallyline layout --format html</code> {version}. Lines are counted as \
         if each type started on one. This page loads nothing from anywhere.</p>\n</footer>\n</body>\n</html>"
    )?;
    Ok(())
}
