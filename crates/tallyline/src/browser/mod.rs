//! Looking around in a profile on a terminal: pages of lines that lead to further pages.
//!
//! [`Browser`] is the state and what keys do to it, [`draw`] makes a frame of it, [`terminal`] shows frames and
//! reads keys. Where the pages come from is a [`Source`].

mod draw;
mod keys;
mod page;
mod terminal;

pub(crate) use page::{Line, Page, Target};
pub(crate) use terminal::{is_wanted, run};

use keys::Key;

/// Where pages come from.
pub(crate) trait Source {
    /// How many pages there are to start with: one for each event.
    fn roots(&self) -> usize;
    /// One of them.
    fn root(&self, index: usize) -> Page;
    /// What a line leads to: types and their fields, or the code with `code`.
    fn open(&self, target: Target, code: bool) -> Option<Page>;
}

/// What is to be done after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Draw,
    Quit,
    /// Write the page to a file.
    Write,
}

/// The pages that are open, and what is being typed.
struct Browser<'s> {
    source: &'s dyn Source,
    root: usize,
    /// The page that is shown is the last.
    pages: Vec<Page>,
    typing: Option<String>,
    message: String,
    /// How far the lines are moved to the left.
    shift: usize,
    /// Rows for lines in the last frame: what a page key moves by.
    rows: usize,
}

/// What one key moves lines to the side.
const SHIFT: usize = 8;

const HELP: [&str; 18] = [
    "Up, Down, k, j     the line before, the next",
    "PgUp, PgDn, Space  a screen up, down",
    "Home, End          the first line, the last",
    "Enter, Right       into the line: a type's fields, who accesses a field, a function's code;",
    "                   in a tree what is below",
    "Left, Esc, q       back; q on the first page ends",
    "a                  the code of the function with most samples in the line",
    "e, +               open or close the branch of a tree",
    "E, C               open, close all branches",
    "/                  show only lines with a text; empty shows all",
    "<, >               the other parts of long lines",
    "Tab, Shift-Tab     the next event, the one before",
    "P                  write the page to perf.hist.N",
    "h, ?, F1           this help",
    "Ctrl-C             end",
    "",
    "Colours: red from 5 % on, green from 0.5 % on.",
    "Without a browser: --stdio, or with the output in a pipe or a file.",
];

impl<'s> Browser<'s> {
    fn new(source: &'s dyn Source) -> Browser<'s> {
        let message = "For help press h".to_owned();
        Browser { source, root: 0, pages: vec![source.root(0)], typing: None, message, shift: 0, rows: 1 }
    }

    fn page(&mut self) -> &mut Page {
        if self.pages.is_empty() {
            self.pages.push(self.source.root(self.root));
        }
        let last = self.pages.len() - 1;
        &mut self.pages[last]
    }

    fn press(&mut self, key: Key) -> Action {
        self.message.clear();
        if key == Key::Interrupt {
            return Action::Quit;
        }
        if let Some(text) = self.typing.take() {
            self.type_on(text, key);
            return Action::Draw;
        }
        let screen = self.rows.cast_signed();
        match key {
            Key::Up | Key::Char('k') => self.page().step(-1),
            Key::Down | Key::Char('j') => self.page().step(1),
            Key::PageUp => self.page().step(-screen),
            Key::PageDown | Key::Char(' ') => self.page().step(screen),
            Key::Home => self.page().step(isize::MIN),
            Key::End => self.page().step(isize::MAX),
            Key::Enter | Key::Right => self.enter(),
            Key::Left => {
                let is_tree = self.page().is_tree();
                if !(is_tree && (self.page().fold(Some(true)) || self.page().select_parent())) {
                    self.back();
                }
            }
            Key::Char('<') => self.shift = self.shift.saturating_sub(SHIFT),
            Key::Char('>') => self.shift += SHIFT,
            Key::Char('a') => self.open(true),
            Key::Char('e' | '+') => {
                self.page().fold(None);
            }
            Key::Char('E') => self.page().fold_all(false),
            Key::Char('C') => self.page().fold_all(true),
            Key::Char('/') => self.typing = Some(self.page().filter().to_owned()),
            Key::Tab => self.event(1),
            Key::BackTab => self.event(self.source.roots().saturating_sub(1)),
            Key::Char('h' | '?') => {
                let line = |text: &&str| Line { text: format!("  {text}"), ..Line::default() };
                self.pages.push(Page::new("Help".to_owned(), Vec::new(), HELP.iter().map(line).collect()));
            }
            Key::Char('P') => return Action::Write,
            Key::Char('q') if self.pages.len() == 1 => return Action::Quit,
            Key::Escape if !self.page().filter().is_empty() => self.page().set_filter(""),
            Key::Char('q') | Key::Escape | Key::Backspace => self.back(),
            _ => {}
        }
        Action::Draw
    }

    fn type_on(&mut self, mut text: String, key: Key) {
        match key {
            Key::Escape => return self.page().set_filter(""),
            Key::Enter => return self.page().set_filter(&text),
            Key::Backspace => {
                text.pop();
            }
            Key::Char(letter) => text.push(letter),
            _ => {}
        }
        self.page().set_filter(&text);
        self.typing = Some(text);
    }

    fn enter(&mut self) {
        if self.page().is_tree() && self.page().fold(Some(false)) {
            return;
        }
        self.open(false);
    }

    fn open(&mut self, code: bool) {
        let Some(target) = self.page().current().and_then(|line| line.target) else {
            self.message = "Nothing more is known about this line".to_owned();
            return;
        };
        match self.source.open(target, code) {
            Some(page) => self.pages.push(page),
            None if code => self.message = "No code to show: no program, or no debug information".to_owned(),
            None => self.message = "Nothing more is known about this line".to_owned(),
        }
    }

    fn back(&mut self) {
        if self.pages.len() > 1 {
            self.pages.pop();
        }
    }

    fn event(&mut self, by: usize) {
        let roots = self.source.roots().max(1);
        if roots == 1 {
            self.message = "There is only one event".to_owned();
            return;
        }
        self.root = (self.root + by) % roots;
        self.pages = vec![self.source.root(self.root)];
    }
}

#[cfg(test)]
mod tests;
