//! What a page looks like: rows of text in styles. No terminal is needed for that.

use super::Browser;
use crate::output::printable;
use anstyle::{AnsiColor, Style};

/// A row of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) text: String,
    pub(super) style: Style,
}

const BAR: Style = Style::new().invert();

/// The style of a share, as perf chooses colours.
fn of_share(percent: Option<f64>) -> Style {
    match percent {
        Some(percent) if percent >= 5.0 => AnsiColor::Red.on_default(),
        Some(percent) if percent >= 0.5 => AnsiColor::Green.on_default(),
        _ => Style::new(),
    }
}

/// Makes exactly `height` rows of `width` characters.
pub(super) fn frame(browser: &mut Browser<'_>, width: usize, height: usize) -> Vec<Row> {
    let mut rows = Vec::with_capacity(height);
    let shift = browser.shift;
    let moved = |text: &str| text.replace('\t', " ").chars().skip(shift).collect::<String>();
    let page = browser.page();
    rows.push(Row { text: page.title.clone(), style: BAR });
    // heads give way where there is little room
    let head = page.head.len().min(height.saturating_sub(4));
    rows.extend(page.head[..head].iter().map(|text| Row { text: moved(text), style: Style::new().bold() }));
    let body = height.saturating_sub(rows.len() + 1).max(1);
    let is_tree = page.is_tree();
    for (line, is_selected, has_children) in page.window(body) {
        let fold = match (is_tree, has_children, line.is_closed) {
            (false, ..) => "",
            (true, false, _) => "  ",
            (true, true, true) => "+ ",
            (true, true, false) => "- ",
        };
        let style = if is_selected { BAR } else { of_share(line.percent) };
        rows.push(Row { text: format!("{fold}{}", moved(&line.text)), style });
    }
    rows.resize(height.saturating_sub(1), Row { text: String::new(), style: Style::new() });
    rows.push(Row { text: status(browser), style: BAR });
    browser.rows = body;
    rows.truncate(height);
    rows.iter_mut().for_each(|row| row.text = fitted(&row.text, width));
    rows
}

fn status(browser: &mut Browser<'_>) -> String {
    if let Some(text) = &browser.typing {
        return format!("/{text}_");
    }
    let message = browser.message.clone();
    let (at, all) = browser.page().position();
    let filter = match browser.page().filter() {
        "" => String::new(),
        filter => format!("  filter: {filter}"),
    };
    format!("{at}/{all}{filter}  {message}")
}

/// Exactly so many characters; tabs as blanks, and nothing that a terminal would obey.
fn fitted(text: &str, width: usize) -> String {
    let text = text.replace('\t', " ");
    let text = printable(text.as_bytes());
    let mut fitted: String = text.chars().take(width).collect();
    let missing = width - fitted.chars().count();
    fitted.extend(std::iter::repeat_n(' ', missing));
    fitted
}
