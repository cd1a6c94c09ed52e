//! The position of printed text in the nesting of types.

use super::Style;
use tallyline_debuginfo::model::{NameId, Type, TypeId, Types};

/// The widths and flags that hold at one level; an inner level gets a changed copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// The column of types; each inline level takes 8 off.
    pub(super) type_width: i64,
    /// The column of names.
    pub(super) name_width: i64,
    pub(super) indent: usize,
    /// The offset of the enclosing record in the outermost.
    pub(super) base: u64,
    /// Offsets are relative to the enclosing record.
    pub(super) relative: bool,
    /// The name behind an inline type.
    pub(super) suffix: Option<&'a [u8]>,
    pub(super) prefix: Option<&'a [u8]>,
    /// The scopes that the outermost type is declared in.
    pub(super) path: NameId,
    /// Types with a name are unfolded, too.
    pub(super) unfold: bool,
    pub(super) stats: bool,
    pub(super) offsets: bool,
    pub(super) first_member: bool,
    pub(super) last_member: bool,
    /// The attributes of the member that is printed, where they are not told as pahole tells them.
    pub(super) attributes: Option<(bool, u64)>,
    /// The record is printed as a base of another.
    pub(super) as_base: bool,
    /// Somewhere above is a union.
    pub(super) in_union: bool,
}

impl<'a> Frame<'a> {
    /// Returns the outermost level.
    pub(super) fn top(style: &Style, types: &Types, id: TypeId) -> Frame<'a> {
        let is_union = types.as_record(id).is_some_and(|(_, record)| record.is_union());
        Frame {
            type_width: 26,
            name_width: match (style.expand_types, is_union) {
                (true, _) => 55,
                (false, true) => 21,
                (false, false) => 23,
            },
            indent: 0,
            base: 0,
            relative: style.relative_offsets,
            suffix: None,
            prefix: None,
            path: match types.get(id) {
                Type::Record(_) | Type::Enum(_) => types.path(id),
                _ => NameId::NONE,
            },
            unfold: false,
            stats: style.stats,
            offsets: style.offsets,
            first_member: false,
            last_member: false,
            attributes: None,
            as_base: false,
            in_union: false,
        }
    }

    /// Returns the level of a type that is printed inline, with the name that goes behind it.
    pub(super) fn inline<'b>(&self, suffix: Option<&'b [u8]>) -> Frame<'b>
    where
        'a: 'b,
    {
        Frame {
            type_width: self.type_width - 8,
            prefix: None,
            path: NameId::NONE,
            suffix,
            stats: false,
            ..*self
        }
    }
}
