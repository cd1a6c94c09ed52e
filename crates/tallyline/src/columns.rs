//! Text in columns: as wide as a terminal shows it, and shortened where it does not fit.
//!
//! Widths are those of what is printed, never of rows that are left out. Without a limit nothing is
//! shortened, and a cell that is much longer than others runs over instead of pushing all rows apart.

use std::borrow::Cow;
use std::io::IsTerminal;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The replacement of the omitted middle of a text.
const ELLIPSIS: char = '…';

/// The widest that a column is made for the sake of its rows where nothing limits lines.
const PADDED_LIMIT: usize = 100;

/// The narrowest that a column of text is made.
const LEAST: usize = 8;

/// The blanks between columns.
const GAP: usize = 2;

/// The limits on a text table's width: of whole lines, and of single columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fit {
    /// The width of the terminal; none where lines may have any width.
    pub(crate) line: Option<usize>,
    /// The width of each column, in their order; 0 and those that are left out are free. Numbers stay whole.
    pub(crate) columns: Vec<usize>,
}

impl Fit {
    /// Limits lines to the terminal's width if the table goes to a terminal; not if it goes to a file (`has_file`)
    /// or whole lines are wanted (`is_wide`).
    pub(crate) fn of_terminal(is_wide: bool, has_file: bool) -> Fit {
        let is_limited = !is_wide && !has_file && std::io::stdout().is_terminal();
        let size = is_limited.then(terminal_size::terminal_size).flatten();
        Fit {
            line: size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0),
            columns: Vec::new(),
        }
    }

    /// Shortens the last cell of a text table's line, which starts at terminal column `behind`, to the width that is
    /// left.
    pub(crate) fn rest<'t>(&self, text: &'t str, behind: usize) -> Cow<'t, str> {
        match self.line {
            Some(line) => shortened(text, line.saturating_sub(behind).max(LEAST)),
            None => text.into(),
        }
    }
}

/// A column of a text table: its heading, its least width, and text or number alignment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    /// The heading of the column.
    pub(crate) title: String,
    /// `true` for text, which is left-aligned and may be shortened; `false` for a number.
    pub(crate) is_text: bool,
    /// The least width of the column, in terminal columns.
    pub(crate) least: usize,
}

/// Returns the number of terminal columns that a text occupies.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Shortens a text to at most `columns` terminal columns by an ellipsis in its middle; a text that fits is
/// unchanged.
pub(crate) fn shortened(text: &str, columns: usize) -> Cow<'_, str> {
    // a letter takes a byte at least, and two columns at most
    if text.len() <= columns || width(text) <= columns {
        return text.into();
    }
    let left = columns.saturating_sub(1);
    let (start, end) = (left.div_ceil(2), left / 2);
    let head = prefix(text, start);
    let mut tail = String::new();
    let mut used = 0;
    for letter in text.chars().rev() {
        used += letter.width().unwrap_or(0);
        if used > end {
            break;
        }
        tail.insert(0, letter);
    }
    let ellipsis = if columns == 0 { String::new() } else { ELLIPSIS.to_string() };
    // a mark that belongs to a letter that is left out would be set on the ellipsis
    let tail = tail.trim_start_matches(|letter: char| letter.width().unwrap_or(0) == 0);
    format!("{head}{ellipsis}{tail}").into()
}

/// Returns the longest prefix of a text that fits into `columns` terminal columns.
pub(crate) fn prefix(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, letter)| {
        used += letter.width().unwrap_or(0);
        used > columns
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// Pads a text with blanks to `columns` terminal columns: on the right if `is_text`, on the left for numbers.
pub(crate) fn padded(text: &str, columns: usize, is_text: bool) -> String {
    let blanks = " ".repeat(columns.saturating_sub(width(text)));
    if is_text { format!("{text}{blanks}") } else { format!("{blanks}{text}") }
}

/// Returns the width of each column of a text table with these rows, within the limits of `fit`.
pub(crate) fn widths<'c>(
    columns: &[Column],
    rows: impl Iterator<Item = &'c [String]>,
    fit: &Fit,
) -> Vec<usize> {
    fitted(columns, natural(columns, rows, fit.line.is_some()), fit)
}

/// Returns the width that each column of a text table needs for its heading and cells. If the table's lines are not
/// limited in width, cells of more than 100 terminal columns are ignored.
pub(crate) fn natural<'c>(
    columns: &[Column],
    rows: impl Iterator<Item = &'c [String]>,
    is_limited: bool,
) -> Vec<usize> {
    let mut widths: Vec<usize> =
        columns.iter().map(|column| width(&column.title).max(column.least)).collect();
    for row in rows {
        for (known, cell) in widths.iter_mut().zip(row) {
            let width = width(cell);
            if is_limited || width <= PADDED_LIMIT {
                *known = (*known).max(width);
            }
        }
    }
    widths
}

/// Reduces the column widths of a text table to what the limit on its lines leaves room for; text columns shrink first,
/// the widest before others.
pub(crate) fn fitted(columns: &[Column], mut widths: Vec<usize>, fit: &Fit) -> Vec<usize> {
    let mut asked = fit.columns.iter().copied().chain(std::iter::repeat(0));
    let mut is_free = vec![false; columns.len()];
    for (index, column) in columns.iter().enumerate() {
        match asked.next() {
            Some(wanted @ 1..) if column.is_text => widths[index] = wanted,
            Some(wanted @ 1..) => widths[index] = widths[index].max(wanted),
            _ => is_free[index] = column.is_text,
        }
    }
    let Some(line) = fit.line else { return widths };
    let taken: usize =
        widths.iter().zip(&is_free).map(|(width, is_free)| if *is_free { 0 } else { *width }).sum();
    let mut room = line.saturating_sub(taken + GAP * columns.len());
    let mut free: Vec<usize> = (0..columns.len()).filter(|index| is_free[*index]).collect();
    free.sort_by_key(|index| widths[*index]);
    // each gets its equal part of what is left, or less if it needs less
    for (done, index) in free.iter().enumerate() {
        let share = (room / (free.len() - done)).max(LEAST);
        widths[*index] = widths[*index].min(share);
        room = room.saturating_sub(widths[*index]);
    }
    widths
}

/// Formats one line of a text table from its cells, at the given column widths. Text is shortened only if the line
/// or the column has a limit.
pub(crate) fn line<'c>(
    columns: &[Column],
    widths: &[usize],
    cells: impl Iterator<Item = &'c str>,
    fit: &Fit,
) -> String {
    let mut text = String::new();
    let mut asked = fit.columns.iter().copied().chain(std::iter::repeat(0));
    for ((column, width), cell) in columns.iter().zip(widths).zip(cells) {
        let is_given = asked.next().is_some_and(|wanted| wanted > 0);
        let cell = match column.is_text && (is_given || fit.line.is_some()) {
            true => shortened(cell, *width),
            false => cell.into(),
        };
        text.push_str("  ");
        text += &padded(&cell, *width, column.is_text);
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(title: &str, is_text: bool) -> Column {
        Column { title: title.to_owned(), is_text, least: 0 }
    }

    #[test]
    fn a_text_is_shortened_in_its_middle_to_exactly_the_width() {
        assert_eq!(shortened("struct order", 12), "struct order");
        assert_eq!(shortened("struct order", 11), "struc…order");
        assert_eq!(shortened("struct order", 4), "st…r");
        assert_eq!(shortened("struct order", 1), "…");
        assert_eq!(shortened("struct order", 0), "");
    }

    #[test]
    fn wide_letters_take_two_columns_and_marks_none() {
        // ideographs, and an e with a combining accent
        assert_eq!((width("構造体"), width("e\u{301}t")), (6, 2));
        for columns in 0..14 {
            for text in [
                "構造体の名前です",
                "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
                "a構b造c体d",
            ] {
                let short = shortened(text, columns);
                assert!(width(&short) <= columns, "{short} in {columns}");
                assert!(width(&padded(&short, columns, true)) == columns, "{short} in {columns}");
            }
        }
        assert_eq!(prefix("構造体", 5), "構造");
    }

    #[test]
    fn columns_fit_the_line_and_only_wide_ones_give_way() {
        let columns = [column("Overhead", false), column("Type", true), column("Field", true)];
        let row = |ty: &str, field: &str| vec!["99.00%".to_owned(), ty.to_owned(), field.to_owned()];
        let long = "x".repeat(1124);
        let rows = [row("int", &long), row("struct order", "y")];
        let fit = Fit { line: Some(80), columns: vec![] };
        let widths = widths(&columns, rows.iter().map(Vec::as_slice), &fit);
        assert_eq!(widths, [8, 12, 80 - 6 - 8 - 12]);
        for row in &rows {
            let text = line(&columns, &widths, row.iter().map(String::as_str), &fit);
            assert!(width(&text) <= 80, "{text}");
        }
        assert!(line(&columns, &widths, rows[0].iter().map(String::as_str), &fit).contains("xx…xx"));
    }

    #[test]
    fn without_a_limit_one_long_name_pushes_no_other_row_apart() {
        let columns = [column("Type", true), column("Field", true)];
        let long = "x".repeat(1124);
        let rows = [vec![long.clone(), "a".to_owned()], vec!["int".to_owned(), "b".to_owned()]];
        let fit = Fit::default();
        let widths = widths(&columns, rows.iter().map(Vec::as_slice), &fit);
        assert_eq!(widths, [4, 5]);
        assert!(
            line(&columns, &widths, rows[0].iter().map(String::as_str), &fit).contains(&long),
            "it is whole"
        );
        assert_eq!(line(&columns, &widths, rows[1].iter().map(String::as_str), &fit), "  int   b");
    }

    #[test]
    fn given_widths_hold_and_zero_leaves_a_column_free() {
        let columns = [column("Share", false), column("Type", true), column("Field", true)];
        let rows = [vec!["1".to_owned(), "struct order".to_owned(), "member".to_owned()]];
        let fit = Fit { line: None, columns: vec![7, 0, 4] };
        let widths = widths(&columns, rows.iter().map(Vec::as_slice), &fit);
        assert_eq!(widths, [7, 12, 4]);
        let text = line(&columns, &widths, rows[0].iter().map(String::as_str), &fit);
        assert_eq!(text, "        1  struct order  me…r");
    }
}
