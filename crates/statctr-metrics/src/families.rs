//! The metric families of an exposition: the series of a snapshot by the name and type under which they are exported.

use crate::snapshot::{Metric, Snapshot, Value};
use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The type of a metric family in Prometheus' text format, in the order of precedence for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FamilyType {
    Counter,
    Gauge,
    Histogram,
    /// The type of histograms without bounds, which in the protobuf format are histograms.
    Summary,
}

impl FamilyType {
    fn of(value: &Value) -> FamilyType {
        match value {
            Value::Counter(_) => FamilyType::Counter,
            Value::Gauge(_) => FamilyType::Gauge,
            Value::Histogram { bounds: Some(_), .. } => FamilyType::Histogram,
            Value::Histogram { bounds: None, .. } => FamilyType::Summary,
        }
    }

    /// Returns the type of the metric family as the text format writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FamilyType::Counter => "counter",
            FamilyType::Gauge => "gauge",
            FamilyType::Histogram => "histogram",
            FamilyType::Summary => "summary",
        }
    }

    /// Returns the ends that the names of a metric family's samples have after the family's name.
    fn suffixes(self) -> &'static [&'static str] {
        match self {
            FamilyType::Counter | FamilyType::Gauge => &[""],
            FamilyType::Histogram => &["", "_bucket", "_sum", "_count"],
            FamilyType::Summary => &["", "_sum", "_count"],
        }
    }

    /// Returns `true` for a label that the format itself gives to samples of a metric family of this type.
    fn reserves(self, label: &str) -> bool {
        match label {
            "__name__" => true,
            "le" => self == FamilyType::Histogram,
            "quantile" => self == FamilyType::Summary,
            _ => false,
        }
    }
}

/// The name and value of each exported label of a series.
pub(crate) type Labels<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// A metric family of an exposition: all series of one exported name, which have one type.
pub(crate) struct MetricFamily<'a> {
    pub(crate) name: String,
    pub(crate) family_type: FamilyType,
    /// The first help text among those of the family's metrics; empty if there is none.
    pub(crate) help: &'a str,
    pub(crate) series: Vec<ExportedSeries<'a>>,
}

/// A series of a metric family, as it is exported: labels that no other series of the family has, and their value.
pub(crate) struct ExportedSeries<'a> {
    pub(crate) labels: Labels<'a>,
    pub(crate) value: Cow<'a, Value>,
}

impl<'a> ExportedSeries<'a> {
    /// Adds the value of another metric that is exported under the name and labels of this series.
    fn merge(&mut self, value: &'a Value) {
        self.value = match (&*self.value, value) {
            (Value::Counter(sum), Value::Counter(value)) => {
                Cow::Owned(Value::Counter(sum.wrapping_add(*value)))
            }
            // levels have no sum in general, and distributions may have other resolutions
            _ => Cow::Borrowed(value),
        };
    }
}

impl<'a> MetricFamily<'a> {
    fn new(name: String, family_type: FamilyType, metrics: &[&'a Metric]) -> MetricFamily<'a> {
        let mut series: Vec<ExportedSeries<'a>> = Vec::with_capacity(metrics.len());
        let mut indices: HashMap<Labels<'a>, usize> = HashMap::with_capacity(metrics.len());
        for metric in metrics {
            let labels = exported_labels(metric, family_type);
            // series differ by the set of labels, whatever the order
            let mut sorted = labels.clone();
            sorted.sort_unstable();
            match indices.entry(sorted) {
                Entry::Occupied(index) => series[*index.get()].merge(&metric.value),
                Entry::Vacant(index) => {
                    index.insert(series.len());
                    series.push(ExportedSeries { labels, value: Cow::Borrowed(&metric.value) });
                }
            }
        }
        let help = metrics.iter().map(|metric| metric.help.as_str()).find(|help| !help.is_empty());
        MetricFamily { name, family_type, help: help.unwrap_or_default(), series }
    }
}

/// The names of the samples of all metric families that have a name.
#[derive(Default)]
struct SampleNames(HashSet<String>);

impl SampleNames {
    /// Takes the names of the samples of a metric family, if all of them are free; returns `false` otherwise.
    fn take(&mut self, family: &str, family_type: FamilyType) -> bool {
        let names = || family_type.suffixes().iter().map(|suffix| format!("{family}{suffix}"));
        let free = !names().any(|name| self.0.contains(&name));
        if free {
            self.0.extend(names());
        }
        free
    }
}

/// Returns the metric families of a snapshot, sorted by name. A family whose name, or the name of one of its samples,
/// another family has, gets its type at the end of its name.
pub(crate) fn families(snapshot: &Snapshot) -> Vec<MetricFamily<'_>> {
    let mut metrics: BTreeMap<(Cow<'_, str>, FamilyType), Vec<&Metric>> = BTreeMap::new();
    for metric in snapshot.metrics() {
        let key = (printable(&metric.name, true), FamilyType::of(&metric.value));
        metrics.entry(key).or_default().push(metric);
    }
    let mut taken = SampleNames::default();
    // names that were given first, so that no changed name takes the place of one
    let (given, changed): (Vec<_>, Vec<_>) =
        metrics.into_iter().partition(|((name, family_type), _)| taken.take(name, *family_type));
    let mut families = Vec::with_capacity(given.len() + changed.len());
    for ((name, family_type), metrics) in given {
        families.push(MetricFamily::new(name.into_owned(), family_type, &metrics));
    }
    for ((name, family_type), metrics) in changed {
        let mut name = format!("{name}_{}", family_type.name());
        while !taken.take(&name, family_type) {
            name = format!("{name}_{}", family_type.name());
        }
        families.push(MetricFamily::new(name, family_type, &metrics));
    }
    families.sort_by(|a, b| a.name.cmp(&b.name));
    families
}

/// Returns the labels of a metric as a family of this type exports them: with names that the formats allow and reserve
/// for nothing else, each once and with its last value.
fn exported_labels(metric: &Metric, family_type: FamilyType) -> Labels<'_> {
    let mut labels: Labels<'_> = Vec::with_capacity(metric.labels.len());
    for (name, value) in &metric.labels {
        let name = printable(name, false);
        match labels.iter_mut().find(|(there, _)| *there == name) {
            Some((_, last)) => *last = value,
            None => labels.push((name, value)),
        }
    }
    for index in 0..labels.len() {
        if family_type.reserves(&labels[index].0) {
            // as Prometheus names a target's label that has the name of one of its own
            let mut name = format!("exported_{}", labels[index].0);
            while labels.iter().any(|(there, _)| *there == name) {
                name.insert_str(0, "exported_");
            }
            labels[index].0 = name.into();
        }
    }
    labels
}

/// Returns a metric or label name with each character that Prometheus does not allow in it replaced by `_`; `colon`
/// says whether `:` is allowed.
fn printable(name: &str, colon: bool) -> Cow<'_, str> {
    let fits = |at: usize, letter: char| {
        letter.is_ascii_alphabetic()
            || letter == '_'
            || (colon && letter == ':')
            || (at > 0 && letter.is_ascii_digit())
    };
    if name.is_empty() {
        Cow::Borrowed("_")
    } else if name.chars().enumerate().all(|(at, letter)| fits(at, letter)) {
        Cow::Borrowed(name)
    } else {
        name.chars().enumerate().map(|(at, letter)| if fits(at, letter) { letter } else { '_' }).collect()
    }
}
