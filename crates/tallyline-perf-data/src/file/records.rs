//! Records wherever they are: in memory, or in a file.

use super::Recording;
use super::record::{Decoder, Record};
use super::stream::RawRecord;
use crate::abi::sample as bit;
use crate::sample::Sample;
use crate::spe::{self, AuxtraceStats, TraceBytes, Traces};
use crate::{Error, Result};

/// An item that a [`RecordVisitor`] receives: a sample, an access from a hardware trace, another record, or an
/// error of damage.
#[derive(Debug)]
pub enum VisitedRecord<'s, 'a> {
    /// A sample of the event with this index.
    Sample(usize, &'s Sample<'a>),
    /// A memory access that a trace of the hardware has: a sample of no event of the recording. They come
    /// when all records were handed on, and in no order.
    Access(&'s Sample<'a>),
    /// The outcome of decoding traces, if there are any: the last one that is handed on.
    Traces(&'s AuxtraceStats),
    /// A record other than a sample of a described event.
    Other(&'s Record<'a>),
    /// A record that is damaged, or what ends reading early. Those behind it come as far as they can be read.
    Damaged(&'s Error),
}

/// Passes a record to a visitor; `sample` is where samples are decoded.
pub(super) fn visit_record<'a>(
    decoder: &Decoder<'_>,
    raw: &RawRecord<'a>,
    sample: &mut Sample<'a>,
    traces: &mut Traces,
    each: &mut RecordVisitor<'_>,
) -> Result<()> {
    match decoder.decode_sample(raw, sample) {
        Ok(Some(event)) => return each(raw.position(), VisitedRecord::Sample(event, sample)),
        Ok(None) => {}
        Err(error) => return visit_damage(raw.position(), error, each),
    }
    if spe::is_auxtrace_record(raw.kind)
        && let Err(error) = decoder.add_to_traces(raw, traces)
    {
        return visit_damage(raw.position(), error, each);
    }
    match decoder.decode(raw) {
        Ok(record) => each(raw.position(), VisitedRecord::Other(&record)),
        Err(error) => visit_damage(raw.position(), error, each),
    }
}

/// Passes damage to a visitor; other errors end reading.
pub(super) fn visit_damage(position: u64, error: Error, each: &mut RecordVisitor<'_>) -> Result<()> {
    if matches!(error, Error::Damaged { .. }) {
        each(position, VisitedRecord::Damaged(&error))
    } else {
        Err(error)
    }
}

/// Passes the samples in traces to a visitor.
pub(super) fn visit_traces(
    recording: &Recording<'_>,
    traces: Traces,
    source: &dyn TraceBytes,
    each: &mut RecordVisitor<'_>,
) -> Result<()> {
    let has_time = recording.events.iter().any(|event| event.attr.sample_type & bit::TIME != 0);
    let cpu_id = recording.features.cpu_id.as_deref();
    let mut access = |sample: &Sample<'_>| each(0, VisitedRecord::Access(sample));
    let tally = match traces.each(source, cpu_id, has_time, &mut access) {
        Ok(tally) => tally,
        Err(error) => return visit_damage(0, error, each),
    };
    if tally.is_empty() { Ok(()) } else { each(0, VisitedRecord::Traces(&tally)) }
}

/// A callback that receives the items of a perf.data file (samples, other records, damage) one at a time, each with its
/// position in the file.
pub type RecordVisitor<'e> = dyn FnMut(u64, VisitedRecord<'_, '_>) -> Result<()> + 'e;

/// A recording whose records can be visited one by one: in memory ([`Recording`]), or read in chunks from a file.
pub trait RecordSource {
    /// Returns the recording that describes them.
    fn recording(&self) -> &Recording<'_>;

    /// Visits each record with its position, in the order of the file; then the samples in hardware traces,
    /// which have no position. Returns false as soon as a record tells how others are to be read: then the
    /// file has to be parsed as a whole ([`Recording::parse`]).
    ///
    /// # Errors
    /// A file that cannot be read, a limit, and what `each` says.
    fn visit(&self, each: &mut RecordVisitor<'_>) -> Result<bool>;

    /// Visits the records at positions, in the order of these.
    ///
    /// # Errors
    /// Damaged records, a file that cannot be read, and what `each` says.
    fn visit_at(
        &self,
        positions: &mut dyn Iterator<Item = u64>,
        each: &mut dyn FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()>;
}

impl RecordSource for Recording<'_> {
    fn recording(&self) -> &Recording<'_> {
        self
    }

    fn visit(&self, each: &mut RecordVisitor<'_>) -> Result<bool> {
        let (decoder, mut sample) = (Decoder { events: &self.events }, Sample::default());
        let mut traces = Traces::default();
        for raw in self.raw() {
            match raw {
                Ok(raw) => visit_record(&decoder, &raw, &mut sample, &mut traces, each)?,
                Err(error) => visit_damage(0, error, each)?,
            }
        }
        visit_traces(self, traces, self, each)?;
        Ok(true)
    }

    fn visit_at(
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
