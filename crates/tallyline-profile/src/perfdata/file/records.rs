//! Records wherever they are: in memory, or in a file.

use super::Recording;
use super::record::Record;
use crate::Result;

/// How far reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// To the end.
    All,
    /// To a record that says how others are to be read: as a whole ([`Recording::parse`]).
    NeedsWhole,
}

/// The records of a recording.
pub trait Records {
    /// What describes them.
    fn about(&self) -> &Recording<'_>;

    /// Hands on each, and its position, in the order of the file.
    ///
    /// # Errors
    /// Damaged records, a file that cannot be read, and what `each` says.
    fn each(&self, each: &mut dyn FnMut(u64, &Record<'_>) -> Result<()>) -> Result<Read>;

    /// Hands on those at positions, in their order.
    ///
    /// # Errors
    /// As of [`each`](Self::each).
    fn at(
        &self,
        positions: &mut dyn Iterator<Item = u64>,
        each: &mut dyn FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()>;
}

impl Records for Recording<'_> {
    fn about(&self) -> &Recording<'_> {
        self
    }

    fn each(&self, each: &mut dyn FnMut(u64, &Record<'_>) -> Result<()>) -> Result<Read> {
        for raw in self.raw() {
            let raw = raw?;
            each(raw.position(), &self.decode(&raw)?)?;
        }
        Ok(Read::All)
    }

    fn at(
        &self,
        positions: &mut dyn Iterator<Item = u64>,
        each: &mut dyn FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()> {
        for position in positions {
            each(&self.decode(&self.raw_at(position)?)?)?;
        }
        Ok(())
    }
}
