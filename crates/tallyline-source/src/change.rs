//! Requests, their results, and the reasons for none.

use crate::Language;
use std::fmt;
use std::ops::Range;

/// A requested change of one struct's declaration in a source: a new order of members, alignments, padding, other
/// member types, lines above and below.
#[derive(Clone, Debug)]
pub struct Change {
    pub(crate) language: Language,
    pub(crate) line: u32,
    pub(crate) name: Vec<u8>,
    /// The members that take place, in today's order: their names and lines.
    pub(crate) members: Vec<(Vec<u8>, u32)>,
    pub(crate) order: Vec<usize>,
    pub(crate) aligned: Vec<(usize, u64)>,
    pub(crate) pads: Vec<(usize, String)>,
    pub(crate) align: Option<u64>,
    /// Members that get another type, with its text.
    pub(crate) retyped: Vec<(usize, String)>,
    /// Text to put above the declaration, and behind it.
    pub(crate) above: String,
    pub(crate) behind: String,
}

impl Change {
    /// Creates a still empty request to change the declaration of one struct: the one declared at this line of a source
    /// (counted from 1) with this name (empty if it is unnamed).
    pub fn new(language: Language, line: u32, name: impl AsRef<[u8]>) -> Change {
        Change {
            language,
            line,
            name: name.as_ref().to_vec(),
            members: Vec::new(),
            order: Vec::new(),
            aligned: Vec::new(),
            pads: Vec::new(),
            align: None,
            retyped: Vec::new(),
            above: String::new(),
            behind: String::new(),
        }
    }

    /// Sets the struct's members and their new order. `members` are the present ones in order, each with its name
    /// (empty for an anonymous one) and line (0 if not known); `order` lists their indices in the new order.
    pub fn with_order<N: AsRef<[u8]>>(
        self,
        members: impl IntoIterator<Item = (N, u32)>,
        order: impl IntoIterator<Item = usize>,
    ) -> Change {
        let members = members.into_iter().map(|(name, line)| (name.as_ref().to_vec(), line)).collect();
        Change { members, order: order.into_iter().collect(), ..self }
    }

    /// Returns `true` if the change requests no new order of members, alignment or padding; it may still give members
    /// other types, or insert lines above and below the declaration.
    pub(crate) fn is_nothing(&self) -> bool {
        self.order.is_sorted() && self.aligned.is_empty() && self.pads.is_empty() && self.align.is_none()
    }

    /// Requests an alignment in bytes for one member of the struct, given by its index in the present order.
    pub fn with_aligned_member(mut self, member: usize, bytes: u64) -> Change {
        self.aligned.push((member, bytes));
        self
    }

    /// Requests that a padding member's declaration be inserted after one member of the struct, given by its index in
    /// the present order.
    pub fn with_pad_after(mut self, member: usize, declaration: impl Into<String>) -> Change {
        self.pads.push((member, declaration.into()));
        self
    }

    /// Requests an alignment in bytes for the whole struct.
    pub fn with_alignment(self, bytes: u64) -> Change {
        Change { align: Some(bytes), ..self }
    }

    /// Requests another type for one member of the struct, given by its index in the present order.
    /// [`edit`](crate::edit()) refuses members that are a pointer, array or bitfield, or have an attribute or an
    /// initial value other than 0.
    pub fn with_member_type(mut self, member: usize, ty: impl Into<String>) -> Change {
        self.retyped.push((member, ty.into()));
        self
    }

    /// Requests lines to be inserted above the struct's declaration, before its leading comments and attributes;
    /// repeated calls append.
    pub fn with_text_above(mut self, text: impl AsRef<str>) -> Change {
        self.above.push_str(text.as_ref());
        self
    }

    /// Returns the lines that the change inserts above the struct's declaration.
    pub fn text_above(&self) -> &str {
        &self.above
    }

    /// Requests lines to be inserted below the struct's declaration; repeated calls append.
    pub fn with_text_behind(mut self, text: impl AsRef<str>) -> Change {
        self.behind.push_str(text.as_ref());
        self
    }
}

/// A replacement of one byte range of a source file by new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub(crate) range: Range<usize>,
    pub(crate) text: Vec<u8>,
}

impl Edit {
    /// Returns the byte range of the old text that the edit replaces.
    pub fn range(&self) -> &Range<usize> {
        &self.range
    }

    /// Returns the new text that the edit puts in place of its range.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns a copy of a source's text with this edit made, or an unchanged copy if the edit's range is not within
    /// the text.
    pub fn applied_to(&self, text: &[u8]) -> Vec<u8> {
        match (text.get(..self.range.start), text.get(self.range.end..)) {
            (Some(before), Some(behind)) => [before, &self.text, behind].concat(),
            _ => text.to_vec(),
        }
    }

    /// Creates an edit that replaces a byte range of a source by `text`.
    pub fn new(range: Range<usize>, text: impl Into<Vec<u8>>) -> Edit {
        Edit { range, text: text.into() }
    }

    /// Returns a copy of a source's text with all edits made, whose ranges refer to the old text. Of edits that
    /// overlap, only the first is made; insertions at one offset keep their order.
    pub fn all_applied_to(edits: &[Edit], text: &[u8]) -> Vec<u8> {
        let mut sorted: Vec<&Edit> = edits.iter().collect();
        sorted.sort_by_key(|edit| (edit.range.start, edit.range.end));
        let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
        for edit in sorted {
            let Some(between) = text.get(at..edit.range.start) else { continue };
            if edit.range.end > text.len() {
                continue;
            }
            out.extend_from_slice(between);
            out.extend_from_slice(&edit.text);
            at = edit.range.end;
        }
        out.extend_from_slice(text.get(at..).unwrap_or_default());
        out
    }

    /// Maps a byte offset in the text after some edits back to the offset in the text before them; `None` if the byte
    /// was written by one of the edits.
    pub fn place_before(edits: &[Edit], after: usize) -> Option<usize> {
        let mut sorted: Vec<&Edit> = edits.iter().collect();
        sorted.sort_by_key(|edit| (edit.range.start, edit.range.end));
        // bytes of the old text up to the end of the last edit, and of the new one
        let (mut old, mut new) = (0_usize, 0_usize);
        for edit in sorted {
            let start = new.checked_add(edit.range.start.checked_sub(old)?)?;
            if after < start {
                break;
            }
            (old, new) = (edit.range.end, start.checked_add(edit.text.len())?);
            if after < new {
                return None;
            }
        }
        Some(old + after.checked_sub(new)?)
    }
}

/// The reason why an edit of a struct's declaration, or of a use of a member, was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No declaration of the name is on the line.
    NotFound,
    /// Braces or conditionals that do not close within the declaration.
    Unbalanced,
    /// A member of the text that is not the one that was named: expected, found.
    Members(String, String),
    /// A macro declares several members, which would be torn apart.
    Macro(String),
    /// Members in a conditional with alternatives, which would be torn apart.
    Conditional(String),
    /// A declaration of several members that cannot be cut: its type is defined in it, or a directive is.
    Inseparable(String),
    /// The order is no permutation of the members, or there are too many of them.
    Order,
    /// A member whose declaration says more than a type: a pointer, an array, bits, an attribute, an initial value.
    NotPlain(String),
    /// A use of a counter that is neither an addition nor a read.
    OtherUse(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotFound => {
                write!(f, "no such declaration on that line: a macro makes it, or the source has changed")
            }
            Refusal::Unbalanced => {
                write!(f, "braces or conditionals that do not close within the declaration")
            }
            Refusal::Members(expected, found) => {
                write!(
                    f,
                    "the source has {found} where the debug information has {expected}: it has changed, or a macro declares members"
                )
            }
            Refusal::Macro(name) => {
                write!(f, "a macro declares several members, among them {name}, which would be torn apart")
            }
            Refusal::Conditional(name) => {
                write!(f, "{name} is in a conditional with alternatives that would be torn apart")
            }
            Refusal::Inseparable(name) => {
                write!(
                    f,
                    "{name} is declared with others and the body of their type, and would be torn from them"
                )
            }
            Refusal::Order => write!(f, "the new order is no permutation of the members"),
            Refusal::NotPlain(name) => {
                write!(f, "{name} is declared with more than a type and a name, which cannot be replaced")
            }
            Refusal::OtherUse(what) => write!(f, "{what} is neither an addition nor a read"),
        }
    }
}

impl std::error::Error for Refusal {}
