//! Records wherever they are: in memory, or in a file.

use super::Recording;
use super::record::{Decoder, Record};
use super::stream::RawRecord;
use crate::abi::sample as bit;
use crate::sample::Sample;
use crate::spe::{self, Source, Tally, Traces};
use crate::{Error, Result};

/// The point that reading reached.
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
    /// A memory access that a trace of the hardware has: a sample of no event of the recording. They come
    /// when all records were handed on, and in no order.
    Access(&'s Sample<'a>),
    /// The outcome of decoding traces, if there are any: the last one that is handed on.
    Traces(&'s Tally),
    /// Another record.
    Other(&'s Record<'a>),
    /// A record that is damaged, or what ends reading early. Those behind it come as far as they can be read.
    Damaged(&'s Error),
}

/// Hands on a record; `sample` is where samples are decoded.
pub(super) fn hand_on<'a>(
    decoder: &Decoder<'_>,
    raw: &RawRecord<'a>,
    sample: &mut Sample<'a>,
    traces: &mut Traces,
    each: &mut Each<'_>,
) -> Result<()> {
    match decoder.decode_sample(raw, sample) {
        Ok(Some(event)) => return each(raw.position(), Seen::Sample(event, sample)),
        Ok(None) => {}
        Err(error) => return hand_on_damage(raw.position(), error, each),
    }
    if spe::concerns(raw.kind)
        && let Err(error) = decoder.note(raw, traces)
    {
        return hand_on_damage(raw.position(), error, each);
    }
    match decoder.decode(raw) {
        Ok(record) => each(raw.position(), Seen::Other(&record)),
        Err(error) => hand_on_damage(raw.position(), error, each),
    }
}

/// Hands on damage; other errors end reading.
pub(super) fn hand_on_damage(position: u64, error: Error, each: &mut Each<'_>) -> Result<()> {
    if matches!(error, Error::Damaged { .. }) { each(position, Seen::Damaged(&error)) } else { Err(error) }
}

/// Hands on what is in traces.
pub(super) fn hand_on_traces(
    about: &Recording<'_>,
    traces: Traces,
    source: &dyn Source,
    each: &mut Each<'_>,
) -> Result<()> {
    let has_time = about.events.iter().any(|event| event.attr.sample_type & bit::TIME != 0);
    let cpu_id = about.features.cpu_id.as_deref();
    let mut access = |sample: &Sample<'_>| each(0, Seen::Access(sample));
    let tally = match traces.each(source, cpu_id, has_time, &mut access) {
        Ok(tally) => tally,
        Err(error) => return hand_on_damage(0, error, each),
    };
    if tally.is_empty() { Ok(()) } else { each(0, Seen::Traces(&tally)) }
}

/// The function that receives records, with their positions.
pub type Each<'e> = dyn FnMut(u64, Seen<'_, '_>) -> Result<()> + 'e;

/// The records of a recording.
pub trait Records {
    /// Returns the recording that describes them.
    fn about(&self) -> &Recording<'_>;

    /// Hands on each, and its position, in the order of the file; then what is in traces of the hardware,
    /// which has no position.
    ///
    /// # Errors
    /// A file that cannot be read, a limit, and what `each` says.
    fn each(&self, each: &mut Each<'_>) -> Result<Read>;

    /// Hands on those at positions, in their order.
    ///
    /// # Errors
    /// Damaged records, a file that cannot be read, and what `each` says.
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
        let mut traces = Traces::default();
        for raw in self.raw() {
            match raw {
                Ok(raw) => hand_on(&decoder, &raw, &mut sample, &mut traces, each)?,
                Err(error) => hand_on_damage(0, error, each)?,
            }
        }
        hand_on_traces(self, traces, self, each)?;
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
