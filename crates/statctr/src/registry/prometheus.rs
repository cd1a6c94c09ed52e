//! Prometheus' classic text format, version 0.0.4, of all that a registry has.

use super::{Registry, RegistryValues, Sample};
use crate::value::{Kind, SampleItem, Value};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

impl Registry {
    /// Reads all registered statistics and formats their values in Prometheus' classic text format
    /// (`text/plain; version=0.0.4`); see [`RegistryValues::prometheus_text`]. Cost: a [`visit`](Self::visit), and
    /// allocations.
    #[must_use]
    pub fn prometheus_text(&self) -> String {
        self.read().prometheus_text()
    }
}

impl RegistryValues {
    /// Formats the values that were read from a registry of statistics in Prometheus' classic text format
    /// (`text/plain; version=0.0.4`).
    ///
    /// Names and units stay as they were registered. Items of a group are named `GROUP_ITEM`, elements of an array have
    /// a label `index`. Gauges and extremes are of the type `gauge`; a minimum of nothing is `NaN`. An average is a
    /// `summary` without quantiles, a histogram has the [buckets](crate::HistogramSnapshot::classic_buckets) of powers
    /// of two. What has the name, or the name and the labels, of another series, as statics, items of groups and the
    /// sum of an average can, gets its type at the end of its name.
    #[must_use]
    pub fn prometheus_text(&self) -> String {
        let mut exposition = Exposition::default();
        self.iter().for_each(|sample| exposition.add(&sample));
        exposition.text()
    }
}

/// The families of an exposition, in the order in which their names appeared: the format wants all series of a name in
/// one place.
#[derive(Default)]
struct Exposition {
    families: Vec<Family>,
    /// Places of families by the names of their series, and by their own.
    by_name: HashMap<String, usize>,
}

/// The series of one name.
struct Family {
    name: String,
    help: String,
    of: &'static str,
    series: String,
    /// The labels of each series, sorted: series differ by the set of them, whatever the order.
    labels: HashSet<Vec<String>>,
}

/// Returns the ends of the names of series, beside those named as their family, of Prometheus' type of metric.
fn ends_of_series(of: &str) -> &'static [&'static str] {
    match of {
        "summary" => &["_sum", "_count"],
        "histogram" => &["_bucket", "_sum", "_count"],
        _ => &[],
    }
}

/// Returns Prometheus' type of metric for a kind of statistic.
fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge | Kind::FloatGauge | Kind::Max | Kind::Min => "gauge",
        Kind::Average => "summary",
        Kind::Histogram => "histogram",
    }
}

impl Exposition {
    fn add(&mut self, sample: &Sample<'_>) {
        let description = sample.description;
        let mut labels: Vec<String> = description.labels().map(|(name, value)| label(name, value)).collect();
        let (mut name, mut help) = (description.name().to_owned(), description.help_text());
        match sample.item {
            SampleItem::Only => {}
            SampleItem::Index(index) => labels.push(label("index", &index.to_string())),
            SampleItem::Named { name: item, help: of_item, .. } => {
                name = format!("{name}_{item}");
                help = of_item;
            }
        }
        let of = type_of(sample.value.kind());
        let mut sorted = labels.clone();
        sorted.sort_unstable();
        loop {
            if let Some(family) = self.family(&name, help, of)
                && family.labels.insert(sorted.clone())
            {
                return family.add(&labels.concat(), sample.value);
            }
            // another one's, as the longer name may be, too
            name = format!("{name}_{of}");
        }
    }

    /// Returns the family of this name and type, made if there is none; `None` where a series of another one has a name
    /// of its series.
    fn family(&mut self, name: &str, help: &str, of: &'static str) -> Option<&mut Family> {
        if let Some(&index) = self.by_name.get(name) {
            return self.families.get_mut(index).filter(|family| family.name == name && family.of == of);
        }
        let names = || ends_of_series(of).iter().map(|end| format!("{name}{end}"));
        if names().any(|name| self.by_name.contains_key(&name)) {
            return None;
        }
        let index = self.families.len();
        self.by_name.extend(names().chain([name.to_owned()]).map(|name| (name, index)));
        let (name, help) = (name.to_owned(), help.to_owned());
        self.families.push(Family { name, help, of, series: String::new(), labels: HashSet::new() });
        self.families.last_mut()
    }

    fn text(self) -> String {
        let mut text = String::new();
        for Family { name, help, of, series, .. } in self.families {
            if !help.is_empty() {
                let help = help.replace('\\', "\\\\").replace('\n', "\\n");
                line(&mut text, format_args!("# HELP {name} {help}"));
            }
            line(&mut text, format_args!("# TYPE {name} {of}"));
            text.push_str(&series);
        }
        text
    }
}

impl Family {
    /// Adds the series of a value with these labels, each of which ends in a comma.
    fn add(&mut self, labels: &str, value: &Value) {
        let own = match labels.strip_suffix(',') {
            Some(labels) => format!("{{{labels}}}"),
            None => String::new(),
        };
        let (name, series) = (&self.name, &mut self.series);
        match value {
            Value::Counter(value) | Value::Max(value) => line(series, format_args!("{name}{own} {value}")),
            Value::Gauge(value) => line(series, format_args!("{name}{own} {value}")),
            Value::Min(_) if value.number().is_nan() => line(series, format_args!("{name}{own} NaN")),
            Value::Min(value) => line(series, format_args!("{name}{own} {value}")),
            Value::FloatGauge(value) => line(series, format_args!("{name}{own} {}", number(*value))),
            Value::Average(value) => {
                line(series, format_args!("{name}_sum{own} {}", value.sum()));
                line(series, format_args!("{name}_count{own} {}", value.count()));
            }
            Value::Histogram(value) => {
                let (count, buckets) = (value.count(), value.classic_buckets());
                for (index, &(bound, below)) in buckets.iter().enumerate() {
                    // scrapers read bounds as floating-point numbers, and from 2⁵³ on neighbours may be the same
                    if buckets.get(index + 1).is_some_and(|(next, _)| *next as f64 == bound as f64) {
                        continue;
                    }
                    line(series, format_args!("{name}_bucket{{{labels}le=\"{bound}\"}} {below}"));
                }
                line(series, format_args!("{name}_bucket{{{labels}le=\"+Inf\"}} {count}"));
                line(series, format_args!("{name}_sum{own} {}", value.sum()));
                line(series, format_args!("{name}_count{own} {count}"));
            }
        }
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // a string takes everything
    let _ = writeln!(text, "{line}");
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\",")
}

/// Returns a number as the format writes it.
fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::average::AverageSnapshot;
    use crate::placement::Pool;
    use crate::topology::Topology;
    use crate::{
        Average, Counter, CounterArray, Description, FloatGauge, Gauge, Group, Histogram, ItemSpec, Max, Min,
        Schema, Source,
    };
    use std::sync::Arc;

    fn pool() -> Pool {
        let one = Topology::synthetic(1).build().expect("topology");
        Pool::builder().topology(one).build().expect("pool")
    }

    /// Registers sources, which it keeps alive.
    #[derive(Default)]
    struct Kept(Registry, Vec<Arc<dyn Source>>);

    impl Kept {
        fn add<S: Source>(&mut self, description: Description, source: S) -> Arc<S> {
            let source = Arc::new(source);
            self.0.register(description, &source).expect("free");
            self.1.push(Arc::clone(&source) as Arc<dyn Source>);
            source
        }
    }

    #[test]
    fn every_kind_has_its_type_and_its_series() {
        let (mut kept, pool) = (Kept::default(), pool());
        let of = |name: &'static str| Description::new(name).label("of", "a");
        kept.add(of("requests").help("served"), Counter::new_in(&pool, 3).expect("counter"));
        kept.add(of("open"), Gauge::new_in(&pool, -4).expect("gauge"));
        kept.add(of("load"), FloatGauge::new_in(&pool, 0.25).expect("gauge"));
        kept.add(of("slowest"), Max::new_in(&pool).expect("max")).observe(17);
        kept.add(of("fastest"), Min::new_in(&pool).expect("min")).observe(5);
        kept.add(Description::new("nothing"), Min::new_in(&pool).expect("min"));
        kept.add(of("hits"), Average::new_in(&pool).expect("average")).observe_many(4, 3);
        let sizes = kept.add(of("sizes"), Histogram::new_in(&pool, 6, 0.1).expect("histogram"));
        [0, 3, 3, 6, 100].into_iter().for_each(|size| sizes.observe(size));
        let expected = r##"# HELP requests served
# TYPE requests counter
requests{of="a"} 3
# TYPE open gauge
open{of="a"} -4
# TYPE load gauge
load{of="a"} 0.25
# TYPE slowest gauge
slowest{of="a"} 17
# TYPE fastest gauge
fastest{of="a"} 5
# TYPE nothing gauge
nothing NaN
# TYPE hits summary
hits_sum{of="a"} 3
hits_count{of="a"} 4
# TYPE sizes histogram
sizes_bucket{of="a",le="0"} 1
sizes_bucket{of="a",le="1"} 1
sizes_bucket{of="a",le="3"} 3
sizes_bucket{of="a",le="6"} 4
sizes_bucket{of="a",le="+Inf"} 5
sizes_sum{of="a"} 112
sizes_count{of="a"} 5
"##;
        assert_eq!(kept.0.prometheus_text(), expected);
    }

    #[test]
    fn series_of_a_name_are_together_and_texts_are_escaped() {
        let (mut kept, pool) = (Kept::default(), pool());
        let new = |initial| Counter::new_in(&pool, initial).expect("counter");
        let of = |value: &'static str| Description::new("x").help("a\nb\\").label("of", value);
        kept.add(of("\"1\"\n"), new(1));
        let schema = Schema::new([ItemSpec::new("bytes").help("received")], &[]).expect("schema");
        kept.add(Description::new("rx"), Group::new_in(&pool, &schema).expect("group"));
        kept.add(of("\\"), new(2));
        kept.add(Description::new("cpu"), CounterArray::new_in(&pool, 2, 7).expect("array"));
        let expected = r##"# HELP x a\nb\\
# TYPE x counter
x{of="\"1\"\n"} 1
x{of="\\"} 2
# HELP rx_bytes received
# TYPE rx_bytes counter
rx_bytes 0
# TYPE cpu counter
cpu{index="0"} 7
cpu{index="1"} 7
"##;
        assert_eq!(kept.0.prometheus_text(), expected);
    }

    #[test]
    fn no_two_buckets_have_bounds_that_are_one_floating_point_number() {
        for max in [1 << 53, 1 << 54, 1 << 60, u64::MAX - 1, u64::MAX] {
            let (mut kept, pool) = (Kept::default(), pool());
            let sizes =
                kept.add(Description::new("sizes"), Histogram::new_in(&pool, max, 0.5).expect("histogram"));
            [1, max - 1, max].into_iter().for_each(|size| sizes.observe(size));
            let text = kept.0.prometheus_text();
            let buckets: Vec<(f64, u64)> = { text.lines() }
                .filter_map(|line| line.strip_prefix("sizes_bucket{le=\"")?.split_once("\"} "))
                .map(|(bound, count)| (bound.parse().expect("a bound"), count.parse().expect("a count")))
                .collect();
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{max}: {buckets:?}");
            let largest = buckets.iter().rev().nth(1);
            assert_eq!(largest, Some(&(max as f64, 3)), "{max}: {buckets:?}");
        }
    }

    #[test]
    fn the_order_of_labels_makes_no_other_series() {
        let mut exposition = Exposition::default();
        let of = |first: &'static str, then: &'static str| {
            Description::new("x").label(first, "1").label(then, "1")
        };
        for (description, value) in
            [(of("a", "b"), Value::Gauge(1)), (of("b", "a"), Value::Max(2)), (of("a", "c"), Value::Max(3))]
        {
            exposition.add(&Sample { description: &description, item: SampleItem::Only, value: &value });
        }
        let expected = "# TYPE x gauge\nx{a=\"1\",b=\"1\"} 1\nx{a=\"1\",c=\"1\"} 3\n# TYPE x_gauge gauge\n\
            x_gauge{b=\"1\",a=\"1\"} 2\n";
        assert_eq!(exposition.text(), expected);

        let (mut kept, pool) = (Kept::default(), pool());
        kept.add(Description::new("n").label("of", "a"), CounterArray::new_in(&pool, 1, 7).expect("array"));
        let indexed = Description::new("n").label("index", "0").label("of", "a");
        kept.add(indexed, Counter::new_in(&pool, 3).expect("counter"));
        let expected = "# TYPE n counter\nn{of=\"a\",index=\"0\"} 7\n# TYPE n_counter counter\n\
            n_counter{index=\"0\",of=\"a\"} 3\n";
        assert_eq!(kept.0.prometheus_text(), expected);
    }

    #[test]
    fn a_second_series_of_a_name_has_a_name_of_its_own() {
        let description = Description::new("x");
        let mut exposition = Exposition::default();
        for value in [Value::Counter(1), Value::Gauge(2), Value::Counter(3), Value::Max(4)] {
            let (item, value) = (SampleItem::Only, &value);
            exposition.add(&Sample { description: &description, item, value });
        }
        let expected = "# TYPE x counter\nx 1\n# TYPE x_gauge gauge\nx_gauge 2\n# TYPE x_counter counter\n\
            x_counter 3\n# TYPE x_gauge_gauge gauge\nx_gauge_gauge 4\n";
        assert_eq!(exposition.text(), expected);

        let mut exposition = Exposition::default();
        for (name, value) in
            [("x_gauge", Value::Counter(1)), ("x", Value::Counter(2)), ("x", Value::Gauge(3))]
        {
            let (description, item, value) = (&Description::new(name), SampleItem::Only, &value);
            exposition.add(&Sample { description, item, value });
        }
        let text = exposition.text();
        assert!(
            text.ends_with("# TYPE x counter\nx 2\n# TYPE x_gauge_gauge gauge\nx_gauge_gauge 3\n"),
            "{text}"
        );
        let count = AverageSnapshot::of(2, 10);
        for (first, then, text) in [
            (
                ("x", Value::Average(count)),
                ("x_count", Value::Counter(7)),
                "# TYPE x summary\nx_sum 10\nx_count 2\n# TYPE x_count_counter counter\nx_count_counter 7\n",
            ),
            (
                ("x_sum", Value::Counter(7)),
                ("x", Value::Average(count)),
                "# TYPE x_sum counter\nx_sum 7\n# TYPE x_summary summary\nx_summary_sum 10\nx_summary_count 2\n",
            ),
        ] {
            let mut exposition = Exposition::default();
            for (name, value) in [first, then] {
                let (description, item, value) = (&Description::new(name), SampleItem::Only, &value);
                exposition.add(&Sample { description, item, value });
            }
            assert_eq!(exposition.text(), text);
        }
        assert_eq!([f64::INFINITY, -f64::INFINITY, 1e3].map(number), ["+Inf", "-Inf", "1000"]);
    }
}
