//! Hyperlinks of terminals (OSC 8): places in sources become links to the file.
//!
//! Links are put in behind everything that measures text, on the way to the terminal: columns keep their widths.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The most bytes of a line that are looked at; a longer one has no links.
const LINE_LIMIT: usize = 1 << 16;

/// The settings of terminal hyperlinks (OSC 8) to source files: a URL template with `{path}` and `{line}`, and a
/// function that maps paths of debug information to files.
pub struct Links {
    format: String,
    resolve: Box<dyn Fn(&str) -> PathBuf + Send + Sync>,
}

impl Links {
    /// Creates settings for terminal hyperlinks. `format` is a URL template with `{path}`, optionally `{host}` and
    /// `{line}`; `resolve` maps a path from debug information to a file. Only existing files get links.
    pub fn new(format: &str, resolve: impl Fn(&str) -> PathBuf + Send + Sync + 'static) -> Links {
        Links { format: format.to_owned(), resolve: Box::new(resolve) }
    }

    fn address(&self, path: &Path, line: &str) -> String {
        let path = percent_encoded(path);
        self.format.replace("{path}", &path).replace("{line}", line).replace("{host}", &host())
    }
}

/// Returns `true` if the terminal is known to support hyperlinks (OSC 8), by environment variables such as `TERM`,
/// which `variable` looks up. Unknown terminals count as not: some print the escape sequences.
pub fn terminal_has_links(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let number = |name| variable(name).and_then(|value| value.parse::<u32>().ok()).unwrap_or(0);
    let term = variable("TERM").unwrap_or_default();
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    match () {
        () if term.is_empty() || term == "dumb" || term == "linux" => false,
        // hands them on since 3.4
        () if program == "tmux" => version(&variable("TERM_PROGRAM_VERSION").unwrap_or_default()) >= (3, 4),
        () if is_set("TMUX") || is_set("STY") || term.starts_with("screen") => false,
        // 0.50.0 crashed on them
        () if number("VTE_VERSION") > 5000 => true,
        () if number("KONSOLE_VERSION") >= 201_200 => true,
        () if is_set("KITTY_WINDOW_ID") || is_set("WT_SESSION") || is_set("DOMTERM") => true,
        () if ["iTerm.app", "WezTerm", "vscode", "ghostty", "rio", "Hyper", "mintty"]
            .contains(&program.as_str()) =>
        {
            true
        }
        () => ["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "foot-extra", "contour", "wezterm"]
            .contains(&term.as_str()),
    }
}

fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// A writer that turns source positions (`file:line`) in the text written to it into terminal hyperlinks and passes the
/// text on.
pub(crate) struct LinkWriter<'l, W> {
    links: &'l Links,
    out: W,
    line: Vec<u8>,
    known: HashMap<String, Option<PathBuf>>,
}

impl<'l, W: Write> LinkWriter<'l, W> {
    pub(crate) fn new(links: &'l Links, out: W) -> LinkWriter<'l, W> {
        LinkWriter { links, out, line: Vec::new(), known: HashMap::new() }
    }

    /// Ends a text whose source positions become hyperlinks: writes its last line, which may be incomplete, flushes,
    /// and returns the underlying writer with the result of these writes.
    pub(crate) fn into_inner(mut self) -> (W, io::Result<()>) {
        let ended = self.write_line().and_then(|()| self.out.flush());
        (self.out, ended)
    }

    fn write_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match std::str::from_utf8(&line) {
            Ok(text) if line.len() <= LINE_LIMIT => {
                let linked = self.linked(text);
                self.out.write_all(linked.as_bytes())?;
            }
            _ => self.out.write_all(&line)?,
        }
        self.line = line;
        self.line.clear();
        Ok(())
    }

    fn linked(&mut self, text: &str) -> String {
        let mut linked = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = match rest.strip_prefix("\x1b[") {
                // what sets a colour ends with a letter that belongs to no word
                Some(code) => {
                    2 + code.find(|letter: char| letter.is_ascii_alphabetic()).map_or(code.len(), |at| at + 1)
                }
                None if is_between(first) => first.len_utf8(),
                None => rest.find(is_between).unwrap_or(rest.len()),
            };
            let (word, after) = rest.split_at(end);
            rest = after;
            let place = place(word).filter(|_| !is_between(first));
            match place.and_then(|(path, line)| Some((self.file(path)?, path, line))) {
                Some((file, path, line)) => {
                    let length = path.len() + 1 + line.len();
                    let address = self.links.address(&file, line);
                    linked += &format!(
                        "\x1b]8;;{address}\x1b\\{}\x1b]8;;\x1b\\{}",
                        &word[..length],
                        &word[length..]
                    );
                }
                None => linked.push_str(word),
            }
        }
        linked
    }

    /// Returns the file of a path, if there is one.
    fn file(&mut self, path: &str) -> Option<PathBuf> {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let file = (self.links.resolve)(path);
        let file = file.is_file().then(|| std::path::absolute(&file).ok()).flatten();
        self.known.insert(path.to_owned(), file.clone());
        file
    }
}

impl<W: Write> Write for LinkWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.write_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns `true` if a character separates words.
fn is_between(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control() || "\"'`()[]{}<>,;|*".contains(letter)
}

/// Returns the path and the line of `PATH:LINE`, with anything behind it that is no digit.
fn place(word: &str) -> Option<(&str, &str)> {
    let (colon, _) = word
        .match_indices(':')
        .find(|(at, _)| word[at + 1..].starts_with(|next: char| next.is_ascii_digit()))?;
    let (path, line) = (&word[..colon], &word[colon + 1..]);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    // times and addresses are no places
    let is_path = path.contains('/') || path.contains('.');
    (is_path && digits <= 9).then(|| (path, &line[..digits]))
}

fn percent_encoded(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b'+' => {
                text.push(char::from(*byte));
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// Returns the name of this machine, by which a terminal tells files of another one.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    percent_encoded(Path::new(name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(text: &str) -> String {
        let links =
            Links::new("x://{path}:{line}", |path| path.strip_prefix("/build").unwrap_or(path).into());
        let mut writer = LinkWriter::new(&links, Vec::new());
        // in pieces that do not end where lines do
        text.as_bytes().chunks(5).for_each(|piece| writer.write_all(piece).expect("memory"));
        String::from_utf8(writer.into_inner().0).expect("text")
    }

    #[test]
    fn places_of_files_that_exist_become_links() {
        let own = std::env::current_exe().expect("a path");
        let own = own.to_str().expect("plain");
        let link = format!("\x1b]8;;x://{own}:12\x1b\\/build{own}:12\x1b]8;;\x1b\\");
        assert_eq!(linked(&format!("a (/build{own}:12), b\n/none:3\n")), format!("a ({link}), b\n/none:3\n"));
        assert_eq!(linked(&format!("\x1b[31m/build{own}:12\x1b[0m")), format!("\x1b[31m{link}\x1b[0m"));
        assert_eq!(linked(&format!("/build{own}:12:7 x")), format!("{link}:7 x"));
        for text in ["12:30:15", "std::vector", "a::b:1", "\x1b[1mx\x1b[0m\n\n", ""] {
            assert_eq!(linked(text), text);
        }
    }

    #[test]
    fn paths_are_encoded_as_addresses_have_them() {
        assert_eq!(percent_encoded(Path::new("/a b/c#1%.c")), "/a%20b/c%231%25.c");
    }

    #[test]
    fn only_terminals_that_are_known_get_links() {
        let has = |variables: &[(&str, &str)]| {
            terminal_has_links(|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(has(&[("TERM", "xterm-256color"), ("VTE_VERSION", "6800")]));
        assert!(has(&[("TERM", "xterm-kitty")]));
        assert!(has(&[
            ("TERM", "tmux-256color"),
            ("TERM_PROGRAM", "tmux"),
            ("TERM_PROGRAM_VERSION", "3.4a"),
            ("TMUX", "x")
        ]));
        assert!(!has(&[
            ("TERM", "tmux-256color"),
            ("TERM_PROGRAM", "tmux"),
            ("TERM_PROGRAM_VERSION", "3.3a"),
            ("TMUX", "x")
        ]));
        assert!(!has(&[("TERM", "xterm-256color")]));
        assert!(!has(&[("TERM", "dumb"), ("VTE_VERSION", "6800")]));
        assert!(!has(&[]));
    }
}
