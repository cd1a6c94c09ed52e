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
    /// No type: the target of `void *`.
    pub const VOID: TypeId = TypeId(0);
}

impl NameId {
    /// No name: an anonymous type or member. The name of length 0 is another.
    pub const NONE: NameId = NameId(0);

    /// Returns whether there is a name.
    pub fn is_some(self) -> bool {
        self != NameId::NONE
    }
}

/// A range of consecutive entries in one of the model's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Range {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Range {
    /// Returns the number of entries.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Returns whether there are no entries.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}
