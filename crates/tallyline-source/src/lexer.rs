//! Tokens of C, C++ and Rust, lossless: every byte of the text is in exactly one of them.

use crate::Language;
use std::ops::Range;

/// The kinds of tokens of a C, C++ or Rust source: blanks, line ends, comments, directives, words, literals,
/// punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Blanks within a line, and line ends that a backslash hides.
    Space,
    /// The end of a line.
    Newline,
    /// A comment up to the end of its line, which is not in it.
    LineComment,
    /// A comment between delimiters.
    BlockComment,
    /// A preprocessor directive with its continuation lines, without the last line end.
    Directive,
    /// A name, a keyword or a number.
    Word,
    /// A string or a character.
    Literal,
    /// A character of punctuation, as its byte.
    Punct(u8),
}

/// A token of a C, C++ or Rust source: its kind and its range of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The kind of the token.
    pub(crate) kind: Kind,
    /// The byte range of the token in the text.
    pub(crate) span: Range<usize>,
}

impl Token {
    /// Returns `true` if the token is a comment, blanks or a line end, which compilers ignore.
    pub(crate) fn is_trivia(&self) -> bool {
        matches!(self.kind, Kind::Space | Kind::Newline | Kind::LineComment | Kind::BlockComment)
    }

    /// Returns `true` if the token is a line comment or a block comment.
    pub(crate) fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::LineComment | Kind::BlockComment)
    }

    /// Returns `true` if the token is this one byte of punctuation, such as `b'{'`.
    pub(crate) fn is(&self, byte: u8) -> bool {
        self.kind == Kind::Punct(byte)
    }
}

/// Splits the text of a C, C++ or Rust source into tokens without losing a byte: blanks and comments are tokens too.
pub(crate) fn tokens(text: &[u8], language: Language) -> Vec<Token> {
    let mut lexer = Lexer { text, language, at: 0, fresh_line: true };
    let mut tokens = Vec::new();
    while let Some(kind) = {
        let start = lexer.at;
        let kind = lexer.next();
        if let Some(kind) = kind {
            // a rule that takes nothing would never end
            lexer.at = lexer.at.clamp(start + 1, text.len());
            tokens.push(Token { kind, span: start..lexer.at });
        }
        kind
    } {
        lexer.fresh_line = match kind {
            Kind::Newline => true,
            Kind::Space | Kind::BlockComment => lexer.fresh_line,
            _ => false,
        };
    }
    tokens
}

struct Lexer<'t> {
    text: &'t [u8],
    language: Language,
    at: usize,
    // nothing but blanks and comments so far on this line
    fresh_line: bool,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at.saturating_add(ahead)).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Option<Kind> {
        let byte = *self.text.get(self.at)?;
        let is_rust = self.language == Language::Rust;
        Some(match byte {
            b'\n' => self.take(1, Kind::Newline),
            // a byte order mark
            0xef if self.at == 0 && self.text.starts_with(b"\xef\xbb\xbf") => self.take(3, Kind::Space),
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c));
                Kind::Space
            }
            b'\\' if self.continuation(self.at) != 0 => self.take(self.continuation(self.at), Kind::Space),
            b'/' if self.peek(1) == b'/' => {
                self.skip_to_line_end(!is_rust);
                Kind::LineComment
            }
            b'/' if self.peek(1) == b'*' => {
                self.block_comment();
                Kind::BlockComment
            }
            b'#' if self.fresh_line && !is_rust => {
                self.directive();
                Kind::Directive
            }
            b'"' => {
                self.quoted(b'"');
                Kind::Literal
            }
            b'\'' if is_rust && !self.is_rust_char() => {
                // a lifetime or a label
                self.at += 1;
                self.skip_while(is_word);
                Kind::Word
            }
            b'\'' => {
                self.quoted(b'\'');
                Kind::Literal
            }
            _ if is_word(byte) => self.word(),
            _ => self.take(1, Kind::Punct(byte)),
        })
    }

    fn take(&mut self, count: usize, kind: Kind) -> Kind {
        self.at += count;
        kind
    }

    fn skip_while(&mut self, of: impl Fn(u8) -> bool) {
        while self.text.get(self.at).is_some_and(|byte| of(*byte)) {
            self.at += 1;
        }
    }

    /// Returns the length of a hidden line end at a position; 0 if there is none.
    fn continuation(&self, at: usize) -> usize {
        match self.text.get(at..) {
            Some([b'\\', b'\n', ..]) => 2,
            Some([b'\\', b'\r', b'\n', ..]) => 3,
            _ => 0,
        }
    }

    fn skip_to_line_end(&mut self, continues: bool) {
        while let Some(byte) = self.text.get(self.at) {
            match self.continuation(self.at) {
                0 if *byte == b'\n' => break,
                0 => self.at += 1,
                _ if !continues => self.at += 1,
                hidden => self.at += hidden,
            }
        }
        // the carriage return of a line end is no part of the comment
        if self.text.get(..self.at).is_some_and(|before| before.ends_with(b"\r")) {
            self.at -= 1;
        }
    }

    fn block_comment(&mut self) {
        self.at += 2;
        let mut depth = 1;
        while self.at < self.text.len() {
            if self.peek(0) == b'*' && self.peek(1) == b'/' {
                self.at += 2;
                depth -= 1;
                if depth == 0 {
                    return;
                }
            } else if self.language == Language::Rust && self.peek(0) == b'/' && self.peek(1) == b'*' {
                self.at += 2;
                depth += 1;
            } else {
                self.at += 1;
            }
        }
    }

    /// Takes a directive; a comment between delimiters may span lines of it, and one at its end is its own.
    fn directive(&mut self) {
        while let Some(byte) = self.text.get(self.at) {
            match (byte, self.peek(1)) {
                (b'\n', _) => break,
                (b'/', b'*') => self.block_comment(),
                (b'/', b'/') => return self.skip_to_line_end(true),
                (b'"', _) => self.quoted(b'"'),
                _ => self.at += self.continuation(self.at).max(1),
            }
        }
        if self.text.get(..self.at).is_some_and(|before| before.ends_with(b"\r")) {
            self.at -= 1;
        }
    }

    /// Takes what is between quotes. In C it ends with its line: an apostrophe may stand in text that is left out.
    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += self.continuation(self.at).max(2),
                b'\n' if self.language != Language::Rust => return,
                byte => {
                    self.at += 1;
                    if *byte == quote {
                        return;
                    }
                }
            }
        }
    }

    fn is_rust_char(&self) -> bool {
        match self.peek(1) {
            b'\\' => true,
            byte if byte < 0x80 => self.peek(2) == b'\'',
            // one character of several bytes
            _ => (2..=5).any(|ahead| self.peek(ahead) == b'\''),
        }
    }

    fn word(&mut self) -> Kind {
        let start = self.at;
        self.skip_while(is_word);
        let word = self.text.get(start..self.at).unwrap_or_default();
        let is_number = word.first().is_some_and(u8::is_ascii_digit);
        if is_number {
            self.number();
            return Kind::Word;
        }
        match (self.language, word, self.peek(0)) {
            (Language::Cpp, b"R" | b"u8R" | b"uR" | b"UR" | b"LR", b'"') => self.cpp_raw(),
            (Language::Rust, b"r" | b"br" | b"cr", b'"' | b'#') if self.rust_raw() => Kind::Literal,
            (Language::Rust, b"b" | b"c", b'"') | (_, b"L" | b"u" | b"U" | b"u8", b'"') => {
                self.quoted(b'"');
                Kind::Literal
            }
            (Language::Rust, b"b", b'\'')
            | (Language::C | Language::Cpp, b"L" | b"u" | b"U" | b"u8", b'\'') => {
                self.quoted(b'\'');
                Kind::Literal
            }
            _ => Kind::Word,
        }
    }

    /// Takes the rest of a number: digits after separators and points, and signs of exponents.
    fn number(&mut self) {
        loop {
            let last = self.at.checked_sub(1).and_then(|at| self.text.get(at)).copied().unwrap_or(0);
            let next = self.peek(1);
            match self.peek(0) {
                b'\'' if self.language == Language::Cpp && next.is_ascii_alphanumeric() => self.at += 1,
                b'.' if next.is_ascii_digit() => self.at += 1,
                b'+' | b'-' if matches!(last, b'e' | b'E' | b'p' | b'P') && next.is_ascii_digit() => {
                    self.at += 1
                }
                _ => return,
            }
            self.skip_while(is_word);
        }
    }

    fn cpp_raw(&mut self) -> Kind {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let Some(open) = rest.iter().take(17).position(|byte| *byte == b'(') else {
            self.quoted(b'"');
            return Kind::Literal;
        };
        let end = [&b")"[..], &rest[..open], b"\""].concat();
        let found = rest.windows(end.len()).position(|window| window == end);
        self.at = found.map_or(self.text.len(), |at| self.at + 1 + at + end.len());
        Kind::Literal
    }

    /// Takes a raw string of Rust; false for a raw name.
    fn rust_raw(&mut self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
        if rest.get(hashes) != Some(&b'"') {
            return false;
        }
        let end = [&b"\""[..], &rest[..hashes]].concat();
        let body = rest.get(hashes + 1..).unwrap_or_default();
        let found = body.windows(end.len()).position(|window| window == end);
        self.at = found.map_or(self.text.len(), |at| self.at + hashes + 1 + at + end.len());
        true
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Converter of byte offsets in a source's text to line numbers, counted from 1. Ascending offsets cost one pass over
/// the text; a lower offset starts again at the beginning.
pub(crate) struct LineCounter<'t> {
    text: &'t [u8],
    at: usize,
    line: u32,
}

impl<'t> LineCounter<'t> {
    /// Creates a converter of byte offsets in a source's text to line numbers, at the start of the text.
    pub(crate) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// Goes back to the start of the source's text, before a new pass of ascending byte offsets.
    pub(crate) fn rewind(&mut self) {
        (self.at, self.line) = (0, 1);
    }

    /// Returns the number, counted from 1, of the line that has the byte at offset `at` of the source's text.
    pub(crate) fn of(&mut self, at: usize) -> u32 {
        if at < self.at {
            self.rewind();
        }
        let passed = self.text.get(self.at..at).unwrap_or_default();
        let lines = passed.iter().filter(|byte| **byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.at = at;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, language: Language) -> Vec<(Kind, &str)> {
        let all = tokens(text.as_bytes(), language);
        all.iter().map(|token| (token.kind, &text[token.span.clone()])).collect()
    }

    #[test]
    fn every_byte_is_in_one_token() {
        for language in [Language::C, Language::Cpp, Language::Rust] {
            let text = "#if A /* x\n y */ \\\n B // c\nint a = 'x', b; R\"x(a)\"b)x\" r#\"q\"#' \"open";
            let all = tokens(text.as_bytes(), language);
            let mut at = 0;
            for token in all {
                assert_eq!(token.span.start, at);
                at = token.span.end;
            }
            assert_eq!(at, text.len());
        }
    }

    #[test]
    fn directives_have_their_continuation_lines_and_comments() {
        let found = texts("  # if A && \\\n B /* c\n d */ // e\nint x; # y\n", Language::C);
        assert_eq!(found[1], (Kind::Directive, "# if A && \\\n B /* c\n d */ // e"));
        assert!(found.contains(&(Kind::Punct(b'#'), "#")));
    }

    #[test]
    fn lifetimes_are_no_characters() {
        let found = texts("&'a str, 'x', '\\'', b'q', r#type", Language::Rust);
        let literals: Vec<&str> =
            found.iter().filter(|(kind, _)| *kind == Kind::Literal).map(|(_, text)| *text).collect();
        assert_eq!(literals, ["'x'", "'\\''", "b'q'"]);
    }

    #[test]
    fn raw_strings_end_with_their_delimiter() {
        assert_eq!(texts("R\"x(a)\" )x\";", Language::Cpp)[0], (Kind::Literal, "R\"x(a)\" )x\""));
        assert_eq!(texts("r##\"a\"# \"##;", Language::Rust)[0], (Kind::Literal, "r##\"a\"# \"##"));
        assert_eq!(texts("1'000'000;", Language::Cpp)[0], (Kind::Word, "1'000'000"));
    }
}
