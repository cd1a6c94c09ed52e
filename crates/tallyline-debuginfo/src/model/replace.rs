//! Other layouts of a record, put in the place of its own for a while.

use super::{Member, Record, RecordId, Types};
use crate::error::Result;

/// The original layout of a record while another is in its place.
#[derive(Debug)]
pub struct Original {
    id: RecordId,
    record: Record,
    members: usize,
}

impl Original {
    /// Restores the record's own layout; of several, the last one first.
    pub fn restore(self, types: &mut Types) {
        types.records[self.id.index()] = self.record;
        types.members.truncate(self.members);
    }
}

impl Types {
    /// Replaces a record's members and size; the result restores them.
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
