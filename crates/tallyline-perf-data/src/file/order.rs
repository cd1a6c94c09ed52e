//! Records in the order of time.

use super::record::{Decoder, Record, split_trailer};
use super::stream::RawRecord;
use super::{Events, Recording};
use crate::Result;
use crate::abi::{record as kind, sample as bit};

/// The records of the kernel in the order of time.
///
/// Those without a time, which perf made up for what was there before, come first; equal times
/// are in the order of the file. Sorting takes 16 bytes a record, and less time the more of them
/// are in order already.
pub(super) struct TimeOrdered<'r> {
    recording: &'r Recording<'r>,
    // by time: where they are
    records: std::vec::IntoIter<(u64, u64)>,
}

impl<'r> TimeOrdered<'r> {
    pub(super) fn new(recording: &'r Recording<'_>) -> Result<Self> {
        let events = &recording.events;
        let mut records = Vec::new();
        for raw in recording.raw() {
            let raw = raw?;
            if raw.kind < kind::USER_TYPES {
                records.push((time(&raw, events)?, raw.position()));
            }
        }
        // a stable sort: what was written first stays first
        records.sort_by_key(|(time, _)| *time);
        Ok(Self { recording, records: records.into_iter() })
    }
}

impl<'r> Iterator for TimeOrdered<'r> {
    type Item = Result<Record<'r>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (_, position) = self.records.next()?;
        let raw = self.recording.raw_at(position);
        Some(raw.and_then(|raw| Decoder { events: &self.recording.events }.decode(&raw)))
    }
}

/// Returns the time alone; 0 where there is none. All ones is perf's mark for none.
fn time(raw: &RawRecord<'_>, events: &Events) -> Result<u64> {
    let index = events.of_record(raw.kind == kind::SAMPLE, raw.body).unwrap_or(0);
    let Some(event) = events.get(index) else { return Ok(0) };
    let time = if raw.kind == kind::SAMPLE {
        let kind = event.attr.sample_type;
        if kind & bit::TIME == 0 {
            return Ok(0);
        }
        let before = kind & (bit::IDENTIFIER | bit::IP | bit::TID);
        let mut body = raw.body;
        body.words(before.count_ones().into(), "fields before the time")?;
        body.u64("time")?
    } else {
        split_trailer(raw.body, &event.attr)?.1.time.unwrap_or(0)
    };
    Ok(if time == u64::MAX { 0 } else { time })
}
