//! The reasons why a declaration is not edited.

use std::fmt;
use tallyline_source::{Refusal, UseKind};

/// The kind of reason why a struct's declaration is not edited, such as a use that relies on the order of its
/// members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The source is not on this machine, or not known.
    NoSource,
    /// The text is not what the debug information describes.
    Changed,
    /// A macro declares members.
    Macro,
    /// Members in a conditional with alternatives.
    Conditional,
    /// Members declared together with the body of their type.
    Inseparable,
    /// The declaration is no part of the project.
    Foreign,
    /// The declaration is in an installed header.
    Abi,
    /// The program has another declaration of the struct.
    Duplicate,
    /// The offset of a member is used.
    Offset,
    /// Objects are written or read as bytes.
    Transfer,
    /// A range of members is set or copied as bytes.
    Range,
    /// Objects are initialised, bound to names, or compared by the position of their members.
    Positional,
    /// The initialiser of a member reads another member, and the new order swaps the two.
    Dependent,
    /// An assertion at compile time is about the type.
    Assertion,
    /// Objects are cast: a struct would move from its start, or its bytes become another type.
    Cast,
    /// A counter is used otherwise than by additions and reads.
    OtherUse,
    /// Units that use the type cannot be compiled again.
    NotRebuilt,
    /// Units do not compile with the new order.
    Broken,
    /// A compiler lays it out otherwise than promised.
    OtherLayout,
}

impl Kind {
    /// Returns the identifier of the kind of reason in JSON documents.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::NoSource => "no-source",
            Kind::Changed => "changed",
            Kind::Macro => "macro",
            Kind::Conditional => "conditional",
            Kind::Inseparable => "inseparable",
            Kind::Foreign => "foreign",
            Kind::Abi => "abi",
            Kind::Duplicate => "duplicate",
            Kind::Offset => "offset",
            Kind::Transfer => "transfer",
            Kind::Range => "range",
            Kind::Positional => "positional",
            Kind::Dependent => "dependent",
            Kind::Assertion => "assertion",
            Kind::Cast => "cast",
            Kind::OtherUse => "other-use",
            Kind::NotRebuilt => "not-rebuilt",
            Kind::Broken => "broken",
            Kind::OtherLayout => "other-layout",
        }
    }
}

/// The reason why a struct's declaration is not edited: its kind, and the source line or message that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The kind of the reason.
    pub(crate) kind: Kind,
    /// The evidence for the reason: a place in a source, or a compiler's message.
    pub(crate) evidence: String,
}

impl Refused {
    /// Creates a reason why a struct's declaration is not edited, from its kind and the text that shows it.
    pub(crate) fn new(kind: Kind, evidence: impl Into<String>) -> Refused {
        Refused { kind, evidence: evidence.into() }
    }

    /// Creates the reason not to edit a struct: its layout is not known once edits make its members' types smaller.
    pub(crate) fn unknown_layout() -> Refused {
        let evidence = "no rule is known for its layout with the smaller types of its members";
        Refused::new(Kind::OtherLayout, evidence)
    }

    /// Creates the reason not to edit a struct: code at `place` relies on the order of its members.
    pub(crate) fn of_use(kind: UseKind, place: &str) -> Refused {
        let (kind, what) = match kind {
            UseKind::Offset => (Kind::Offset, "takes the offset of a member"),
            UseKind::Transfer => (Kind::Transfer, "reads or writes objects as bytes"),
            UseKind::Range => (Kind::Range, "treats a range of members as bytes"),
            UseKind::Transmute => (Kind::Cast, "makes objects of one type those of another"),
            UseKind::Positional => (Kind::Positional, "initialises an object by position"),
            UseKind::Binding => (Kind::Positional, "binds names to as many members by position"),
            UseKind::Ordering => (Kind::Positional, "compares objects by the order of their members"),
            UseKind::MemberInitialiser => {
                (Kind::Dependent, "initialises a member from another across which it would move")
            }
            _ => (Kind::Assertion, "asserts about the type at compile time"),
        };
        Refused::new(kind, format!("{place} {what}"))
    }

    /// Creates the reason not to edit a struct: the source text of its declaration, at `place`, cannot be edited.
    pub(crate) fn of_text(refusal: &Refusal, place: &str) -> Refused {
        let kind = match refusal {
            Refusal::NotFound | Refusal::Unbalanced | Refusal::Members(..) => Kind::Changed,
            Refusal::Macro(_) => Kind::Macro,
            Refusal::Conditional(_) => Kind::Conditional,
            Refusal::OtherUse(_) => Kind::OtherUse,
            _ => Kind::Inseparable,
        };
        Refused::new(kind, format!("{place}: {refusal}"))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.evidence)
    }
}
