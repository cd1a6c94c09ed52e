//! Records wherever they are: in memory, or in a file.

use super::Recording;
use super::record::{Decoder, Record};
use super::stream::RawRecord;
use crate::Result;
use crate::perfdata::sample::Sample;

/// How far reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// To the end.
    All,
    /// To a record that says how others are to be read: as a whole ([`Recording::parse`]).
    NeedsWhole,
}

/// A record that is handed on.
#[derive(Debug)]
pub enum Seen<'s, 'a> {
    /// A sample of the event with this index.
    Sample(usize, &'s Sample<'a>),
    /// Another record.
    Other(&'s Record<'a>),
}

/// Hands on a record; `sample` is where samples are decoded.
pub(super) fn hand_on<'a>(
    decoder: &Decoder<'_>,
    raw: &RawRecord<'a>,
    sample: &mut Sample<'a>,
    each: &mut Each<'_>,
) -> Result<()> {
    match decoder.decode_sample(raw, sample)? {
        Some(event) => each(raw.position(), Seen::Sample(event, sample)),
        None => each(raw.position(), Seen::Other(&decoder.decode(raw)?)),
    }
}

/// What takes records, with their positions.
pub type Each<'e> = dyn FnMut(u64, Seen<'_, '_>) -> Result<()> + 'e;

/// The records of a recording.
pub trait Records {
    /// What describes them.
    fn about(&self) -> &Recording<'_>;

    /// Hands on each, and its position, in the order of the file.
    ///
    /// # Errors
    /// Damaged records, a file that cannot be read, and what `each` says.
    fn each(&self, each: &mut Each<'_>) -> Result<Read>;

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

    fn each(&self, each: &mut Each<'_>) -> Result<Read> {
        let (decoder, mut sample) = (Decoder { events: &self.events }, Sample::default());
        for raw in self.raw() {
            hand_on(&decoder, &raw?, &mut sample, each)?;
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
