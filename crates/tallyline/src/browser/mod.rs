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

/// The data behind the terminal browser: provides its pages, and the pages that their lines lead to.
pub(crate) trait Source {
    /// Returns the number of root pages: one for each event.
    fn roots(&self) -> usize;
    /// Returns one of the root pages.
    fn root(&self, index: usize) -> Page;
    /// Opens a line's page: types and their fields, or the code with `code`.
    fn open(&self, target: Target, code: bool) -> Option<Page>;
    /// Returns the sort keys of the first pages; `None` where they have none.
    fn sort_keys(&self) -> Option<String>;
    /// Makes the first pages anew by other sort keys.
    fn sort(&self, keys: &str) -> Result<(), String>;
    /// Makes the first pages anew of those samples alone that have the line's thread or file, or of all again;
    /// returns what was done.
    fn zoom(&self, target: Option<Target>, zoom: Zoom) -> Result<String, String>;
}

/// A command of the terminal browser that restricts its pages to the selected line's thread or file, or lifts the
/// last such restriction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zoom {
    /// The thread of a line; all threads if it is one already.
    Thread,
    /// The file of a line; all files if it is one already.
    File,
    /// The last of these again all.
    Out,
}

/// The action that a key requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Draw,
    Quit,
    /// Write the page to a file.
    Write,
}

/// The purpose of the text being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    Filter,
    Sort,
}

/// The pages that are open, and what is being typed.
struct Browser<'s> {
    source: &'s dyn Source,
    root: usize,
    /// The page that is shown is the last.
    pages: Vec<Page>,
    typing: Option<(Prompt, String)>,
    message: String,
    /// The number of columns that lines are scrolled to the left.
    shift: usize,
    /// `true` if names are shown whole, even where lines become longer than the terminal.
    is_wide: bool,
    /// Rows for lines in the last frame: what a page key moves by.
    rows: usize,
}

/// The number of columns that one key scrolls.
const SHIFT: usize = 8;

const HELP: [&str; 24] = [
    "Up, Down, k, j     the line before, the next",
    "PgUp, PgDn, Space  a screen up, down",
    "Home, End          the first line, the last",
    "Enter, Right       into the line: what a function accesses, a type's fields, who accesses a",
    "                   field, a function's code; in a tree what is below",
    "Left, Esc, q       back; Esc on the first page zooms out, q there ends",
    "a                  the code of the function with most samples in the line",
    "s                  other sort keys, such as type,sym (Ctrl-U erases those that there are)",
    "t, d               only the line's thread, only its file; once more: all again",
    "e, +               open or close the branch of a tree",
    "E, C               open, close all branches",
    "/                  show only lines with a text; empty shows all, Esc as well",
    "Ctrl-U, Ctrl-W     while typing: erase everything, the last word",
    "w                  names whole, or shortened to the width of the terminal",
    "<, >               the other parts of long lines",
    "Tab, Shift-Tab     the next event, the one before",
    "P                  write the page to perf.hist.N, with names whole",
    "h, ?, F1           this help",
    "Ctrl-C             end",
    "",
    "Colours: red from 5 % on, green from 0.5 % on.",
    "Keys are perf's where perf has them; s, w and the arrows to the side are not.",
    "",
    "Without a browser: --stdio, or with the output in a pipe or a file.",
];

impl<'s> Browser<'s> {
    fn new(source: &'s dyn Source) -> Browser<'s> {
        let message = "For help press h".to_owned();
        let pages = vec![source.root(0)];
        Browser { source, root: 0, pages, typing: None, message, shift: 0, is_wide: false, rows: 1 }
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
        if let Some((prompt, text)) = self.typing.take() {
            self.type_on(prompt, text, key);
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
            Key::Char('/') => self.typing = Some((Prompt::Filter, String::new())),
            Key::Char('s') => match self.source.sort_keys() {
                Some(keys) => self.typing = Some((Prompt::Sort, keys)),
                None => self.message = "Only reports have sort keys".to_owned(),
            },
            Key::Char('t') => self.zoom(Zoom::Thread),
            Key::Char('d') => self.zoom(Zoom::File),
            Key::Char('w') => self.is_wide = !self.is_wide,
            Key::Tab => self.event(1),
            Key::BackTab => self.event(self.source.roots().saturating_sub(1)),
            Key::Char('h' | '?') => {
                let line = |text: &&str| Line { text: format!("  {text}"), ..Line::default() };
                self.pages.push(Page::new("Help".to_owned(), Vec::new(), HELP.iter().map(line).collect()));
            }
            Key::Char('P') => return Action::Write,
            Key::Char('q') if self.pages.len() == 1 => return Action::Quit,
            Key::Escape if !self.page().filter().is_empty() => self.page().set_filter(""),
            Key::Escape if self.pages.len() == 1 => self.zoom(Zoom::Out),
            Key::Char('q') | Key::Escape | Key::Backspace => self.back(),
            _ => {}
        }
        Action::Draw
    }

    fn type_on(&mut self, prompt: Prompt, mut text: String, key: Key) {
        match key {
            Key::Escape if prompt == Prompt::Filter => return self.page().set_filter(""),
            Key::Escape => return,
            Key::Enter if prompt == Prompt::Filter => return self.page().set_filter(&text),
            Key::Enter => match self.source.sort(&text) {
                Ok(()) => return self.start_over(),
                Err(why) => self.message = why,
            },
            Key::Backspace => {
                text.pop();
            }
            Key::EraseLine => text.clear(),
            Key::EraseWord => {
                let word = text.trim_end_matches([' ', ',']).rfind([' ', ',']);
                text.truncate(word.map_or(0, |end| end + 1));
            }
            Key::Char(letter) => text.push(letter),
            _ => {}
        }
        if prompt == Prompt::Filter {
            self.page().set_filter(&text);
        }
        self.typing = Some((prompt, text));
    }

    /// Shows the first pages as they are now.
    fn start_over(&mut self) {
        self.root = self.root.min(self.source.roots().saturating_sub(1));
        self.pages = vec![self.source.root(self.root)];
    }

    fn zoom(&mut self, zoom: Zoom) {
        let target = self.page().current().and_then(|line| line.target);
        match self.source.zoom(target, zoom) {
            Ok(done) => {
                self.start_over();
                self.message = done;
            }
            Err(why) => self.message = why,
        }
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
