//! Newtypes for what indexes the tables of [`Types`](super::Types).

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Returns the position in the table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A type.
    TypeId
);
id!(
    /// A struct, class or union.
    RecordId
);
id!(
    /// An enumeration.
    EnumId
);
id!(
    /// An array.
    ArrayId
);
id!(
    /// A function's type.
    FunctionId
);
id!(
    /// A name; equal names have equal ids.
    NameId
);

impl TypeId {
    /// The id of `void`, the target of `void *`.
    pub const VOID: TypeId = TypeId(0);
}

impl NameId {
    /// The id that stands for no name, as of an anonymous type or member; an empty name has another id.
    pub const NONE: NameId = NameId(0);

    /// Returns `true` unless the id is [`NameId::NONE`].
    pub fn is_some(self) -> bool {
        self != NameId::NONE
    }
}

/// A range of consecutive positions in one of the tables of [`Types`](super::Types), such as those of a record's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Range {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Range {
    /// Returns the number of positions in the range.
    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Returns `true` if the range contains no position.
    pub(crate) fn is_empty(self) -> bool {
        self.end <= self.start
    }
}
