//! The extents of elements: the comments above and behind that belong to them.

use crate::body::{Element, ElementKind, column};
use crate::find::bytes;
use crate::lexer::{Kind, Token};
use std::ops::Range;

/// The byte range of a struct body's element with the comments that belong to it, including the line's end if nothing
/// else follows on the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The bytes of the element and its comments.
    pub(crate) span: Range<usize>,
    /// `true` if the range begins at the start of a line.
    pub(crate) starts_line: bool,
    /// `true` if the range ends with the end of a line.
    pub(crate) ends_line: bool,
}

/// Returns the byte offset at which the members of a struct's body start, and `true` if that is the start of a line:
/// the line after the opening brace's if only comments follow the brace, else right behind the brace.
pub(crate) fn head_end(tokens: &[Token], body: &Range<usize>) -> (usize, bool) {
    let start = tokens.get(body.start).map_or(0, |token| token.span.start);
    for token in tokens.get(body.clone()).unwrap_or_default() {
        match token.kind {
            Kind::Newline => return (token.span.end, true),
            Kind::Space | Kind::LineComment | Kind::BlockComment => {}
            _ => break,
        }
    }
    (start, false)
}

/// Returns, for each element of a struct's body, its byte range with the comments that belong to it.
pub(crate) fn extents(
    text: &[u8],
    tokens: &[Token],
    body: &Range<usize>,
    elements: &[Element],
) -> Vec<Extent> {
    let (mut limit, mut at_line_start) = head_end(tokens, body);
    let body_end = tokens.get(body.end).map_or(text.len(), |token| token.span.start);
    let mut extents = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let next = elements.get(index + 1).map_or(body_end, |next| next.core.start);
        let start = if at_line_start { start(tokens, limit, element.core.start) } else { limit };
        let is_last = index + 1 == elements.len();
        let (end, ends_line) = end(text, tokens, element, next, is_last);
        extents.push(Extent { span: start..end, starts_line: at_line_start, ends_line });
        (limit, at_line_start) = (end, ends_line);
    }
    extents
}

/// Returns the tokens within a range of bytes.
fn within(tokens: &[Token], span: Range<usize>) -> &[Token] {
    let first = tokens.partition_point(|token| token.span.start < span.start);
    let last = tokens.partition_point(|token| token.span.start < span.end);
    tokens.get(first..last).unwrap_or_default()
}

/// Returns the start of the comments right above an element, or of its line.
fn start(tokens: &[Token], limit: usize, core: usize) -> usize {
    let mut newlines = 0;
    let mut start = core;
    for token in within(tokens, limit..core).iter().rev() {
        match token.kind {
            Kind::Newline => {
                newlines += 1;
                if newlines == 2 {
                    return start;
                }
                start = token.span.end;
            }
            Kind::Space => {}
            _ => newlines = 0,
        }
    }
    // a blank line may be the first
    if newlines == 1 { start } else { limit }
}

/// Returns the end of an element with the comments behind it, and whether its line ends there.
fn end(text: &[u8], tokens: &[Token], element: &Element, next: usize, is_last: bool) -> (usize, bool) {
    let rest = within(tokens, element.core.end..next);
    let mut end = element.core.end;
    let mut comment = None;
    let mut index = 0;
    let mut ends_line = false;
    while let Some(token) = rest.get(index) {
        index += 1;
        match token.kind {
            Kind::Newline => {
                end = token.span.end;
                ends_line = true;
                break;
            }
            Kind::Space => {}
            _ if token.is_comment() => {
                comment.get_or_insert(token.span.start);
                end = token.span.end;
            }
            _ => break,
        }
    }
    if !ends_line {
        return (end, false);
    }
    let own = column(text, element.core.start);
    // comments on lines of their own that go on with the one behind the element
    while let Some((line, token)) = comment_line(rest.get(index..).unwrap_or_default()) {
        let word = bytes(text, token);
        let points_back =
            [b"/**<".as_slice(), b"/*!<", b"///<", b"//!<", b"/*<"].iter().any(|open| word.starts_with(open));
        let below = comment.is_some_and(|at| column(text, at) == column(text, token.span.start));
        if !(points_back || below && column(text, token.span.start) > own) {
            break;
        }
        index += line;
        end = rest.get(index - 1).map_or(end, |token| token.span.end);
    }
    if comment.is_none() && matches!(element.kind, ElementKind::Member(_)) {
        end = comment_below(rest.get(index..).unwrap_or_default(), is_last).unwrap_or(end);
    }
    (end, true)
}

/// Returns the end of comments right below an element, if a blank line or the end of the body sets them apart from
/// what follows: zlib's headers describe members so.
fn comment_below(tokens: &[Token], is_last: bool) -> Option<usize> {
    let (mut index, mut end) = (0, None);
    while let Some((line, _)) = comment_line(tokens.get(index..)?) {
        index += line;
        end = tokens.get(index - 1).map(|token| token.span.end);
    }
    let next = tokens.get(index..)?.iter().find(|token| token.kind != Kind::Space);
    end.filter(|_| next.map_or(is_last, |token| token.kind == Kind::Newline))
}

/// Returns the number of tokens of a line that is a comment, and the comment.
fn comment_line(tokens: &[Token]) -> Option<(usize, &Token)> {
    let mut comment = None;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Newline => return comment.map(|comment| (index + 1, comment)),
            Kind::Space => {}
            _ if token.is_comment() && comment.is_none() => comment = Some(token),
            _ => return None,
        }
    }
    None
}
