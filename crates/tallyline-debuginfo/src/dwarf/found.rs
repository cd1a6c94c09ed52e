//! The DIEs that define wanted types.

use super::offset::GlobalDieOffset;
use std::sync::Arc;

/// An entry that defines a wanted type.
#[derive(Clone, Debug)]
pub(super) struct FoundDie {
    pub(super) unit: usize,
    pub(super) place: GlobalDieOffset,
    pub(super) top_level: bool,
    /// The scopes that it is declared in, where its language has them.
    pub(super) path: Option<Arc<[u8]>>,
    pub(super) named: bool,
    /// The index of the wanted name.
    pub(super) name: u32,
    /// The first typedef of a record without a name.
    pub(super) alias: Option<GlobalDieOffset>,
    /// The number of units that define it.
    pub(super) definitions: u32,
    /// Equal for equal types of the same name: two hashes, as one may collide.
    pub(super) key: (u64, u64),
}

impl Default for FoundDie {
    fn default() -> FoundDie {
        FoundDie {
            unit: 0,
            place: GlobalDieOffset::default(),
            top_level: true,
            path: None,
            named: true,
            name: 0,
            alias: None,
            definitions: 1,
            key: (0, 0),
        }
    }
}
