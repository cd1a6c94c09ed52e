//! The search for a declaration's body by line and name.

use crate::lexer::{Kind, Token};
use crate::{Language, Refusal};
use std::ops::Range;

/// The declaration of a struct as found in a source: the index ranges of its tokens, such as those between its braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The tokens between the braces.
    pub(crate) body: Range<usize>,
    /// The token that introduces it: `struct`, `class`.
    pub(crate) keyword: usize,
}

/// Finds a struct's declaration in a source by its name and line: one whose keyword, name or opening brace is on that
/// line, as debug information gives it.
pub(crate) fn find(
    text: &[u8],
    tokens: &[Token],
    language: Language,
    line: u32,
    name: &[u8],
) -> Result<Found, Refusal> {
    let wanted = line_span(text, line).ok_or(Refusal::NotFound)?;
    let on_line = |token: usize| tokens.get(token).is_some_and(|token| wanted.contains(&token.span.start));
    let mut unnamed = None;
    for at in 0..tokens.len() {
        if tokens[at].span.start > wanted.end {
            break;
        }
        let Some(head) = head(text, tokens, language, at) else { continue };
        if !(on_line(at) || head.name.is_some_and(on_line) || on_line(head.open)) {
            continue;
        }
        let own = head.name.map_or(&b""[..], |at| bytes(text, &tokens[at]));
        let found = || -> Result<Found, Refusal> {
            let close = closing(tokens, head.open).ok_or(Refusal::Unbalanced)?;
            Ok(Found { body: head.open + 1..close, keyword: at })
        };
        if own == name {
            return found();
        }
        // C++ gives an unnamed class the name of its typedef
        if own.is_empty() && unnamed.is_none() {
            unnamed = Some(found()?);
        }
    }
    unnamed.ok_or(Refusal::NotFound)
}

struct Head {
    name: Option<usize>,
    open: usize,
}

/// Reads the head of a definition: `struct NAME {` with attributes, macros and bases between.
fn head(text: &[u8], tokens: &[Token], language: Language, at: usize) -> Option<Head> {
    let first = tokens.get(at)?;
    let keyword = bytes(text, first);
    let is_head = match language {
        Language::C => keyword == b"struct",
        Language::Cpp => matches!(keyword, b"struct" | b"class"),
        Language::Rust => keyword == b"struct",
    };
    if first.kind != Kind::Word || !is_head {
        return None;
    }
    let mut name = None;
    let mut depth = 0_u32;
    let mut in_bases = false;
    for (index, token) in tokens.iter().enumerate().skip(at + 1) {
        match token.kind {
            _ if token.is_trivia() || token.kind == Kind::Directive => {}
            Kind::Punct(b'(' | b'[') => depth += 1,
            Kind::Punct(b')' | b']') => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            Kind::Punct(b'{') => return Some(Head { name, open: index }),
            Kind::Punct(b':') => {
                let is_path = next_is(tokens, index, b':')
                    || index.checked_sub(1).is_some_and(|before| tokens[before].is(b':'));
                in_bases |= !is_path;
            }
            Kind::Punct(b'<' | b'>' | b',' | b'\'') | Kind::Literal => {}
            Kind::Punct(b';') => return None,
            Kind::Punct(_) if language == Language::Rust => {}
            Kind::Word if in_bases => {}
            Kind::Word if language == Language::Rust => {
                name.get_or_insert(index);
            }
            // of several names the last is the type's: attributes and export macros stand before it
            Kind::Word
                if !matches!(
                    bytes(text, token),
                    b"final" | b"__attribute__" | b"alignas" | b"__declspec"
                ) =>
            {
                name = Some(index);
            }
            Kind::Word => {}
            _ => return None,
        }
    }
    None
}

fn next_is(tokens: &[Token], at: usize, byte: u8) -> bool {
    tokens.get(at + 1).is_some_and(|token| token.is(byte))
}

/// Returns the index of the closing brace that belongs to the opening brace at token `open` of a source; `None` if
/// there is none.
pub(crate) fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_u32;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Punct(b'{') => depth += 1,
            Kind::Punct(b'}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the text of a token of a source, as bytes.
pub(crate) fn bytes<'t>(text: &'t [u8], token: &Token) -> &'t [u8] {
    text.get(token.span.clone()).unwrap_or_default()
}

/// Returns the bytes of a line, counted from 1.
fn line_span(text: &[u8], line: u32) -> Option<Range<usize>> {
    let mut start = 0;
    for _ in 1..line {
        start += text.get(start..)?.iter().position(|byte| *byte == b'\n')? + 1;
    }
    let rest = text.get(start..).filter(|_| line != 0)?;
    Some(start..start + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()))
}
