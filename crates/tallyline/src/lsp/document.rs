//! Texts that an editor has open, and positions in them.

use serde_json::{Value, json};

/// The programming language of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// C or C++, or a language based on them: Objective-C, CUDA.
    C,
    Rust,
    Go,
}

impl Language {
    /// Returns the language that an editor names, or that a file's name tells.
    pub(super) fn of(id: &str, path: &str) -> Option<Language> {
        match (id, path.rsplit('.').next().unwrap_or_default()) {
            ("c" | "cpp" | "objc" | "objcpp" | "cuda-cpp", _) => Some(Language::C),
            ("rust", _) => Some(Language::Rust),
            ("go", _) => Some(Language::Go),
            (_, "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" | "inl" | "C" | "H") => {
                Some(Language::C)
            }
            (_, "rs") => Some(Language::Rust),
            (_, "go") => Some(Language::Go),
            _ => None,
        }
    }
}

/// A text that an editor has open, with its language.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) language: Language,
    text: String,
    /// The byte offset of each line's start in the text.
    starts: Vec<usize>,
}

impl Document {
    pub(super) fn new(language: Language, text: String) -> Document {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Document { language, text, starts }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text of a line, counted from 0, without its end.
    pub(super) fn line(&self, line: usize) -> Option<&str> {
        let start = *self.starts.get(line)?;
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        self.text.get(start..end).map(|text| text.trim_end_matches('\r'))
    }

    /// Returns the line of an offset, counted from 0.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Returns an offset as the protocol has it: a line, and the number of UTF-16 units before it there.
    pub(super) fn position(&self, offset: usize) -> Value {
        let line = self.line_of(offset);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        json!({"line": line, "character": before.encode_utf16().count()})
    }

    /// Returns the end of a line as the protocol has it.
    pub(super) fn end_of_line(&self, line: usize) -> Value {
        json!({"line": line, "character": self.line(line).unwrap_or_default().encode_utf16().count()})
    }

    /// Returns the range of some bytes as the protocol has it.
    pub(super) fn range(&self, bytes: &std::ops::Range<usize>) -> Value {
        json!({"start": self.position(bytes.start), "end": self.position(bytes.end)})
    }

    /// Returns the offset of a position of the protocol.
    pub(super) fn offset(&self, position: &Value) -> Option<usize> {
        let line = usize::try_from(position["line"].as_u64()?).ok()?;
        let mut units = position["character"].as_u64()?;
        let (start, text) = (*self.starts.get(line)?, self.line(line)?);
        for (at, letter) in text.char_indices() {
            if units == 0 {
                return Some(start + at);
            }
            units = units.saturating_sub(letter.len_utf16() as u64);
        }
        Some(start + text.len())
    }

    /// Returns the identifier at an offset, with its bytes.
    pub(super) fn word(&self, offset: usize) -> Option<(&str, std::ops::Range<usize>)> {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
        let (before, after) = self.text.split_at_checked(offset)?;
        let start = before
            .rfind(|letter| !is_part(letter))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let end = offset + after.find(|letter| !is_part(letter)).unwrap_or(after.len());
        let word = &self.text[start..end];
        (!word.is_empty() && !word.starts_with(|first: char| first.is_ascii_digit()))
            .then_some((word, start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_utf_16_units() {
        let document = Document::new(Language::C, "a\r\né𝄞x = y;\n".into());
        let at = |line: u64, character: u64| document.offset(&json!({"line": line, "character": character}));
        assert_eq!(at(1, 3), document.text().find('x'));
        assert_eq!(
            document.position(document.text().find('x').expect("there")),
            json!({"line": 1, "character": 3})
        );
        assert_eq!(at(0, 9), Some(1));
        assert_eq!(at(7, 0), None);
        let (word, range) = document.word(document.text().find('y').expect("there") + 1).expect("a word");
        assert_eq!((word, range.len()), ("y", 1));
        assert_eq!(document.word(1).map(|(word, _)| word), Some("a"));
        assert!(document.word(document.text().find('=').expect("there")).is_none());
        assert_eq!(document.end_of_line(1), json!({"line": 1, "character": 9}));
    }
}
