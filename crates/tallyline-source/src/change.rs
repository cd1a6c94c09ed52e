//! Requests, their results, and the reasons for none.

use crate::Language;
use std::fmt;
use std::ops::Range;

/// A change of one struct's declaration in a source: another order of members, alignments, padding.
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
}

impl Change {
    /// Creates a change, of nothing yet, of the declaration of a struct by its name (empty for an unnamed
    /// one) and line, counted from 1.
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
        }
    }

    /// Sets the new order of the struct's members: the members in today's order by name (empty for an
    /// anonymous one) and line (0 where it is not known), and the new order by index.
    pub fn with_order<N: AsRef<[u8]>>(
        self,
        members: impl IntoIterator<Item = (N, u32)>,
        order: impl IntoIterator<Item = usize>,
    ) -> Change {
        let members = members.into_iter().map(|(name, line)| (name.as_ref().to_vec(), line)).collect();
        Change { members, order: order.into_iter().collect(), ..self }
    }

    /// Returns `true` if the struct's declaration would stay as it is.
    pub(crate) fn is_nothing(&self) -> bool {
        self.order.is_sorted() && self.aligned.is_empty() && self.pads.is_empty() && self.align.is_none()
    }

    /// Gives a member of the struct, by its index in today's order, an alignment in bytes.
    pub fn with_aligned_member(mut self, member: usize, bytes: u64) -> Change {
        self.aligned.push((member, bytes));
        self
    }

    /// Adds a declaration of explicit padding behind a member of the struct, by its index in today's order.
    pub fn with_pad_after(mut self, member: usize, declaration: impl Into<String>) -> Change {
        self.pads.push((member, declaration.into()));
        self
    }

    /// Gives the whole struct an alignment in bytes.
    pub fn with_alignment(self, bytes: u64) -> Change {
        Change { align: Some(bytes), ..self }
    }
}

/// A replacement of a range of a source's text by new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub(crate) range: Range<usize>,
    pub(crate) text: Vec<u8>,
}

impl Edit {
    /// Returns the range of bytes of the old text that is replaced.
    pub fn range(&self) -> &Range<usize> {
        &self.range
    }

    /// Returns the text that replaces the range.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns a source's whole text with the edit made; the text as it is if it ends before the edit does.
    pub fn applied_to(&self, text: &[u8]) -> Vec<u8> {
        match (text.get(..self.range.start), text.get(self.range.end..)) {
            (Some(before), Some(behind)) => [before, &self.text, behind].concat(),
            _ => text.to_vec(),
        }
    }
}

/// The reason why a struct's declaration in a source is not edited.
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
        }
    }
}

impl std::error::Error for Refusal {}
