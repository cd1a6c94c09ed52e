//! One page: lines of which one is selected, folded and filtered. Nothing here draws.

use crate::columns::{self, Column, Fit};
use std::borrow::Cow;

/// The number by which a [`Source`](super::Source) identifies the page that a line leads to.
pub(crate) type Target = usize;

/// A line in the terminal browser: its text, its share of samples, and the page that Enter opens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// The line's share in percent, which determines its colour.
    pub(crate) percent: Option<f64>,
    pub(crate) text: String,
    /// The line's cells, in place of its text, if the page has columns.
    pub(crate) cells: Vec<String>,
    /// The length in bytes of the text's prefix that is never shortened.
    pub(crate) fixed: usize,
    pub(crate) target: Option<Target>,
    /// The depth of the line in a tree.
    pub(crate) depth: usize,
    /// `true` if the line's children in the tree are hidden.
    pub(crate) is_closed: bool,
}

impl Line {
    /// Returns its text without a limit; cells side by side.
    fn whole(&self) -> Cow<'_, str> {
        if self.cells.is_empty() { self.text.as_str().into() } else { self.cells.join("  ").into() }
    }
}

/// A page of the terminal browser: lines under a heading, with selection, filter and folded branches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// Lines that stay on top.
    pub(crate) head: Vec<String>,
    pub(crate) lines: Vec<Line>,
    /// The columns of lines that have cells.
    columns: Vec<Column>,
    // as wide as the rows need that were looked at so far
    natural: Vec<usize>,
    filter: String,
    // indices of the lines that are there with this filter and these folds
    visible: Vec<usize>,
    selected: usize,
    top: usize,
}

impl Page {
    pub(crate) fn new(title: String, head: Vec<String>, lines: Vec<Line>) -> Page {
        let mut page = Page { title, head, lines, ..Page::default() };
        page.update();
        page
    }

    /// Creates a browser page whose lines consist of cells in columns.
    pub(crate) fn of_columns(title: String, columns: Vec<Column>, lines: Vec<Line>) -> Page {
        let mut page = Page::new(title, Vec::new(), lines);
        page.columns = columns;
        page
    }

    /// Returns `true` if the page has columns: its lines consist of cells.
    pub(super) fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Returns the heading of the columns and their layout: widths are those of the lines seen now or before.
    pub(super) fn layout(&mut self, rows: usize, fit: &Fit) -> Option<ColumnWidths> {
        if self.columns.is_empty() {
            return None;
        }
        let shown: Vec<Vec<String>> = self.window(rows).map(|(line, ..)| line.cells.clone()).collect();
        let mut natural = columns::natural(&self.columns, shown.iter().map(Vec::as_slice), true);
        natural.iter_mut().zip(&self.natural).for_each(|(width, before)| *width = (*width).max(*before));
        let widths = columns::fitted(&self.columns, natural.clone(), fit);
        self.natural = natural;
        Some(ColumnWidths { columns: self.columns.clone(), widths, fit: fit.clone() })
    }

    /// Selects the line of this browser page with the largest share of samples.
    pub(crate) fn select_largest(&mut self) {
        let share = |index: &usize| self.lines[*index].percent.unwrap_or(-1.0);
        let largest = self
            .visible
            .iter()
            .enumerate()
            .max_by(|a, b| share(a.1).total_cmp(&share(b.1)).then(b.0.cmp(&a.0)));
        self.selected = largest.map_or(0, |(position, _)| position);
    }

    /// Returns the lines to draw in so many rows, each with a flag for the selected one.
    pub(super) fn window(&mut self, rows: usize) -> impl Iterator<Item = (&Line, bool, bool)> {
        let rows = rows.max(1);
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(rows));
        let page = &*self;
        let shown = page.visible.iter().enumerate().skip(page.top).take(rows);
        shown.map(|(position, index)| {
            (&page.lines[*index], position == page.selected, page.has_children(*index))
        })
    }

    pub(super) fn position(&self) -> (usize, usize) {
        (if self.visible.is_empty() { 0 } else { self.selected + 1 }, self.visible.len())
    }

    pub(super) fn current(&self) -> Option<&Line> {
        self.visible.get(self.selected).map(|index| &self.lines[*index])
    }

    pub(super) fn has_children(&self, index: usize) -> bool {
        self.lines.get(index + 1).is_some_and(|next| next.depth > self.lines[index].depth)
    }

    pub(super) fn is_tree(&self) -> bool {
        self.lines.iter().any(|line| line.depth > 0)
    }

    pub(super) fn step(&mut self, by: isize) {
        let last = self.visible.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    /// Opens or closes the branch at the selected line; whether there was one.
    pub(super) fn fold(&mut self, closed: Option<bool>) -> bool {
        let Some(index) = self.visible.get(self.selected).copied().filter(|index| self.has_children(*index))
        else {
            return false;
        };
        let line = &mut self.lines[index];
        let before = line.is_closed;
        line.is_closed = closed.unwrap_or(!before);
        let changed = line.is_closed != before;
        self.update();
        changed
    }

    /// Opens or closes all branches.
    pub(super) fn fold_all(&mut self, closed: bool) {
        let current = self.visible.get(self.selected).copied();
        self.lines.iter_mut().for_each(|line| line.is_closed = closed);
        self.update();
        self.selected = current.map_or(0, |current| self.visible.partition_point(|index| *index < current));
        self.step(0);
    }

    /// Selects the parent line in the tree.
    pub(super) fn select_parent(&mut self) -> bool {
        let Some(depth) = self.current().map(|line| line.depth) else { return false };
        let above = self.visible[..self.selected].iter().rposition(|index| self.lines[*index].depth < depth);
        above.is_some_and(|position| {
            self.selected = position;
            true
        })
    }

    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// Shows only lines that have this text, whatever its case, with what they are below in the tree.
    pub(super) fn set_filter(&mut self, filter: &str) {
        self.filter = filter.to_lowercase();
        self.update();
        self.selected = 0;
        self.top = 0;
    }

    fn update(&mut self) {
        self.visible.clear();
        // ancestors of the line that is looked at
        let mut above: Vec<usize> = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            while above.last().is_some_and(|last| self.lines[*last].depth >= line.depth) {
                above.pop();
            }
            if self.filter.is_empty() {
                if !above.iter().any(|above| self.lines[*above].is_closed) {
                    self.visible.push(index);
                }
            } else if line.whole().to_lowercase().contains(&self.filter) {
                let shown = self.visible.last().map_or(0, |last| last + 1);
                self.visible.extend(above.iter().filter(|above| **above >= shown));
                self.visible.push(index);
            }
            above.push(index);
        }
        self.selected = self.selected.min(self.visible.len().saturating_sub(1));
    }

    /// Returns the page as text: what `P` writes, with names whole.
    pub(super) fn text(&self) -> String {
        let fit = Fit::default();
        let lines = || self.visible.iter().map(|index| &self.lines[*index]);
        let widths = columns::widths(&self.columns, lines().map(|line| line.cells.as_slice()), &fit);
        let layout = ColumnWidths { columns: self.columns.clone(), widths, fit };
        let head = (!self.columns.is_empty()).then(|| layout.head());
        let lines = lines().map(|line| match line.cells.is_empty() {
            true => line.text.clone(),
            false => layout.line(&line.cells),
        });
        self.head.iter().cloned().chain(head).chain(lines).fold(String::new(), |all, line| all + &line + "\n")
    }
}

/// The widths of a page's columns.
pub(super) struct ColumnWidths {
    columns: Vec<Column>,
    widths: Vec<usize>,
    fit: Fit,
}

impl ColumnWidths {
    /// Returns the line with the titles of the columns.
    pub(super) fn head(&self) -> String {
        let titles = self.columns.iter().map(|column| column.title.as_str());
        columns::line(&self.columns, &self.widths, titles, &self.fit)
    }

    /// Returns a line of cells.
    pub(super) fn line(&self, cells: &[String]) -> String {
        columns::line(&self.columns, &self.widths, cells.iter().map(String::as_str), &self.fit)
    }
}
