//! Other layouts of a record, put in the place of its own for a while.

use super::{Member, Record, RecordId, Types};
use crate::error::Result;

/// The original members and size of a record whose layout was replaced in the model.
#[derive(Debug)]
pub struct Original {
    id: RecordId,
    record: Record,
    members: usize,
}

impl Original {
    /// Puts the original members and size of the record back into the model; of several replacements, the
    /// last one first.
    pub fn restore(self, types: &mut Types) {
        types.records[self.id.index()] = self.record;
        types.members.truncate(self.members);
    }
}

impl Types {
    /// Replaces the members and size of a record in the model; the result can restore them.
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
