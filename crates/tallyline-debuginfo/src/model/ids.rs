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
    /// The id of a type in the type model of a file.
    TypeId
);
id!(
    /// The id of a record (struct, class or union) in the type model of a file.
    RecordId
);
id!(
    /// The id of an enumeration in the type model of a file.
    EnumId
);
id!(
    /// The id of an array type in the type model of a file.
    ArrayId
);
id!(
    /// The id of a function type in the type model of a file.
    FunctionId
);
id!(
    /// The id of a name (of a type, member or enumerator) in the type model of a file; equal names have equal ids.
    NameId
);

impl TypeId {
    /// The id of `void`, the target of `void *`.
    pub const VOID: TypeId = TypeId(0);
}

impl NameId {
    /// The id that stands for no name, as of an anonymous type or member; an empty name has another id.
    pub const NONE: NameId = NameId(0);

    /// Returns `true` unless the id is [`NameId::NONE`], which stands for no name.
    pub fn is_some(self) -> bool {
        self != NameId::NONE
    }
}

/// A range of consecutive elements of one of the tables of [`Types`](super::Types) (members, enumerators, …), such as
/// the members of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Range {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Range {
    /// Returns the number of elements in the range: consecutive elements (members, enumerators, …) of one table of the
    /// type model.
    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Returns `true` if the range contains no element (member, enumerator, …) of its table of the type model.
    pub(crate) fn is_empty(self) -> bool {
        self.end <= self.start
    }
}
