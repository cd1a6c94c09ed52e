//! Rendering of pages as styled rows of text, independent of a terminal.

use super::{Browser, Prompt};
use crate::columns::{self, Fit};
use anstyle::{AnsiColor, Style};
use tallyline_support::output::printable;

/// A row of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) text: String,
    pub(super) style: Style,
}

const BAR: Style = Style::new().invert();

/// Returns the style of a share, as perf chooses colours.
fn of_share(percent: Option<f64>) -> Style {
    match percent {
        Some(percent) if percent >= 5.0 => AnsiColor::Red.on_default(),
        Some(percent) if percent >= 0.5 => AnsiColor::Green.on_default(),
        _ => Style::new(),
    }
}

/// Makes exactly `height` rows of `width` columns.
pub(super) fn frame(browser: &mut Browser<'_>, width: usize, height: usize) -> Vec<Row> {
    let mut rows = Vec::with_capacity(height);
    let (shift, is_wide) = (browser.shift, browser.is_wide);
    let page = browser.page();
    let is_tree = page.is_tree();
    let room = width.saturating_sub(if is_tree { FOLD.len() } else { 0 });
    let fit = Fit { line: (!is_wide).then_some(room), ..Fit::default() };
    rows.push(Row { text: columns::shortened(&printed(&page.title), width).into_owned(), style: BAR });
    // heads give way where there is little room
    let head = (page.head.len() + usize::from(page.has_columns())).min(height.saturating_sub(4));
    let body = height.saturating_sub(rows.len() + head + 1).max(1);
    let layout = page.layout(body, &fit);
    let fold = if is_tree { FOLD } else { "" };
    let titles =
        page.head.iter().cloned().chain(layout.iter().map(|layout| format!("{fold}{}", layout.head())));
    let titles = titles.take(head).map(|text| moved(&printed(&text), shift).to_owned());
    rows.extend(titles.map(|text| Row { text, style: Style::new().bold() }));
    for (line, is_selected, has_children) in page.window(body) {
        let fold = match (is_tree, has_children, line.is_closed) {
            (false, ..) => "",
            (true, false, _) => FOLD,
            (true, true, true) => "+ ",
            (true, true, false) => "- ",
        };
        let style = if is_selected { BAR } else { of_share(line.percent) };
        let text = match &layout {
            Some(layout) if !line.cells.is_empty() => printed(&layout.line(&line.cells)),
            _ => {
                let (fixed, rest) = line.text.split_at_checked(line.fixed).unwrap_or(("", &line.text));
                let (fixed, rest) = (printed(fixed), printed(rest));
                let rest = fit.rest(&rest, columns::width(&fixed));
                format!("{fixed}{rest}")
            }
        };
        rows.push(Row { text: format!("{fold}{}", moved(&text, shift)), style });
    }
    rows.resize(height.saturating_sub(1), Row { text: String::new(), style: Style::new() });
    rows.push(Row { text: status(browser), style: BAR });
    browser.rows = body;
    rows.truncate(height);
    rows.iter_mut().for_each(|row| row.text = fitted(&row.text, width));
    rows
}

/// The blanks in front of a line without branches.
const FOLD: &str = "  ";

/// Returns a text without so many columns of its start.
fn moved(text: &str, columns: usize) -> &str {
    &text[columns::prefix(text, columns).len()..]
}

fn status(browser: &mut Browser<'_>) -> String {
    if let Some((prompt, text)) = &browser.typing {
        return match prompt {
            Prompt::Filter => format!("/{text}_"),
            Prompt::Sort => format!("sort by: {text}_  {}", browser.message),
        };
    }
    let message = browser.message.clone();
    let (at, all) = browser.page().position();
    let filter = match browser.page().filter() {
        "" => String::new(),
        filter => format!("  filter: {filter}"),
    };
    format!("{at}/{all}{filter}  {message}")
}

/// Tabs as blanks, and nothing that a terminal would obey.
fn printed(text: &str) -> String {
    printable(text.replace('\t', " ").as_bytes()).into_owned()
}

/// Cuts or pads a text to exactly `width` columns.
fn fitted(text: &str, width: usize) -> String {
    columns::padded(columns::prefix(&printed(text), width), width, true)
}
