//! Other layouts of a record, put in the place of its own for a while.

use super::{Member, Record, RecordId, Types};
use crate::error::Result;

/// The members and size that a record (struct, class or union) had before [`Types::replace`], to be restored.
#[derive(Debug)]
pub struct Original {
    id: RecordId,
    record: Record,
    members: usize,
}

impl Original {
    /// Gives the record (struct, class or union) its original members and size back. Several replacements are to be
    /// undone in reverse order.
    pub fn restore(self, types: &mut Types) {
        types.records[self.id.index()] = self.record;
        types.members.truncate(self.members);
    }
}

impl Types {
    /// Replaces the members and size in bytes of a record (struct, class or union); returns the original ones, which
    /// can be restored.
    ///
    /// # Errors
    /// [`Error::Limit`](crate::Error::Limit) with more members than ids can name.
    pub fn replace(&mut self, id: RecordId, members: &[Member], size: u64) -> Result<Original> {
        let original = Original { id, record: *self.record(id), members: self.members.len() };
        let members = self.push_members(members)?;
        let record = &mut self.records[id.index()];
        record.members = members;
        record.size = size;
        Ok(original)
    }
}
