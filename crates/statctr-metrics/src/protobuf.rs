//! The protobuf format of Prometheus: messages `io.prometheus.client.MetricFamily`, each behind its length.
//!
//! The fields are few, so they are written by hand; a reader by others checks the golden file
//! (`tests/golden/README.md`).

use crate::families::{ExportedSeries, FamilyType, MetricFamily, families};
use crate::snapshot::{Snapshot, Value};
use statctr_facade::{FloatHistogramSnapshot, NativeHistogram, NativeSchema};

/// Encodes all series of a snapshot in Prometheus' protobuf format. Histograms are native ones (with exponential
/// buckets) of this schema (resolution), and have classic buckets as well if bounds are set.
pub(crate) fn encode(snapshot: &Snapshot, schema: NativeSchema) -> Vec<u8> {
    let mut bytes = Vec::new();
    for MetricFamily { name, family_type, help, series: all } in families(snapshot) {
        let mut family = Message::default();
        family.string(1, &name);
        family.string(2, help);
        family.number(3, metric_type(family_type));
        for exported in &all {
            family.message(4, &series(exported, schema));
        }
        varint(&mut bytes, family.0.len() as u64);
        bytes.extend_from_slice(&family.0);
    }
    bytes
}

/// Returns the number of a type of metric family in the enum `MetricType`.
fn metric_type(family_type: FamilyType) -> u64 {
    match family_type {
        FamilyType::Counter => 0,
        FamilyType::Gauge => 1,
        FamilyType::Histogram | FamilyType::Summary => 4,
    }
}

/// Returns a `Metric`: its labels and its value.
fn series(exported: &ExportedSeries<'_>, schema: NativeSchema) -> Message {
    let mut series = Message::default();
    for (name, value) in &exported.labels {
        let mut label = Message::default();
        label.string(1, name);
        label.string(2, value);
        series.message(1, &label);
    }
    let mut inner = Message::default();
    match &*exported.value {
        Value::Gauge(value) => {
            inner.double(1, *value);
            series.message(2, &inner);
        }
        Value::Counter(value) => {
            inner.double(1, *value as f64);
            series.message(3, &inner);
        }
        Value::Histogram { values, bounds } => {
            series.message(7, &histogram(values, bounds.as_deref().unwrap_or(&[]), schema));
        }
    }
    series
}

fn histogram(values: &FloatHistogramSnapshot, bounds: &[f64], schema: NativeSchema) -> Message {
    let mut histogram = Message::default();
    histogram.number(1, values.count());
    histogram.double(2, values.sum());
    for (&bound, count) in bounds.iter().zip(values.counts_up_to(bounds)) {
        let mut bucket = Message::default();
        bucket.number(1, count);
        bucket.double(2, bound);
        histogram.message(3, &bucket);
    }
    let native = NativeHistogram::of_floats(values, schema);
    histogram.signed(5, schema.number().into());
    // never 0, by which readers tell that a histogram without values is native
    histogram.double(6, native.zero_threshold());
    histogram.number(7, native.zero_count());
    for &(offset, length) in native.spans() {
        let mut span = Message::default();
        span.signed(1, offset.into());
        span.number(2, length.into());
        histogram.message(12, &span);
    }
    // each behind its key: this version of the language packs no repeated numbers
    native.deltas().iter().for_each(|&delta| histogram.repeated_signed(13, delta));
    histogram
}

/// A message: its fields, of which those with the value 0 are left out.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u64, wire_type: u64) {
        varint(&mut self.0, field << 3 | wire_type);
    }

    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.key(field, 0);
            varint(&mut self.0, value);
        }
    }

    fn signed(&mut self, field: u64, value: i64) {
        if value != 0 {
            self.repeated_signed(field, value);
        }
    }

    /// Writes an element of a repeated field, where 0 is a value as any other.
    fn repeated_signed(&mut self, field: u64, value: i64) {
        self.key(field, 0);
        varint(&mut self.0, (value << 1 ^ value >> 63).cast_unsigned());
    }

    fn double(&mut self, field: u64, value: f64) {
        if value.to_bits() != 0 {
            self.key(field, 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn string(&mut self, field: u64, value: &str) {
        if !value.is_empty() {
            self.bytes(field, value.as_bytes());
        }
    }

    fn message(&mut self, field: u64, value: &Message) {
        self.bytes(field, &value.0);
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
    }
}

/// Writes seven bits a byte, the lowest first.
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
