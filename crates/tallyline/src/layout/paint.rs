//! Colours for definitions on a terminal: what is C stays plain, what is said about it steps back,
//! and what costs bytes stands out.

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use std::io::{self, Write};

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const LINE: Style = AnsiColor::Cyan.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// Writes text with colours.
pub(super) fn painted(out: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut painter = Painter { out, line: Vec::new() };
    let written = write(&mut painter);
    let rest = std::mem::take(&mut painter.line);
    painter.out.write_all(&rest)?;
    written
}

struct Painter<'o> {
    out: &'o mut dyn Write,
    // up to its end
    line: Vec<u8>,
}

impl Painter<'_> {
    fn paint(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let comment = text.windows(2).position(|pair| pair == b"/*");
        let (code, comment) = text.split_at(comment.unwrap_or(text.len()));
        let has = |what: &[u8]| comment.windows(what.len()).any(|part| part == what);
        let style = match () {
            () if has(b"/* XXX") || has(b"BRAIN FART") => NOTE,
            () if has(b"/* --- cacheline") => LINE,
            () => DIM,
        };
        let is_head = text.first().is_some_and(|first| !first.is_ascii_whitespace()) && code.ends_with(b"{");
        for (part, style) in [(code, if is_head { HEAD } else { Style::new() }), (comment, style)] {
            if !part.is_empty() {
                write!(self.out, "{style}")?;
                self.out.write_all(part)?;
                write!(self.out, "{style:#}")?;
            }
        }
        self.out.write_all(b"\n")?;
        self.line = line;
        self.line.clear();
        Ok(())
    }
}

impl Write for Painter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.paint()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_add_nothing_but_themselves() {
        let text = "struct s {\n\tchar a; /*     0     1 */\n\n\t/* XXX 7 bytes hole */\n\n\tlong b; /* 8 8 */\n\
                    \t/* --- cacheline 1 boundary (64 bytes) --- */\n};";
        let mut out = Vec::new();
        painted(&mut out, |out| {
            // in pieces that do not end where lines do
            Ok(text.as_bytes().chunks(7).try_for_each(|piece| out.write_all(piece))?)
        })
        .expect("written");
        let out = String::from_utf8(out).expect("text");
        assert_eq!(anstream::adapter::strip_str(&out).to_string(), text);
        assert!(out.contains("\u{1b}[1mstruct s {") && out.contains("\u{1b}[33m/* XXX"), "{out:?}");
        assert!(out.contains("\u{1b}[36m/* --- ") && out.contains("\u{1b}[2m/*     0"), "{out:?}");
    }
}
