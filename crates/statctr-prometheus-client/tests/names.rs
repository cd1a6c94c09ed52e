//! Names, units and labels of a registry's statistics that the format does not allow, or that become equal.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use statctr::{
    Average, Counter, CounterArray, Description, Gauge, Group, Histogram, ItemSpec, Schema, Source, Unit,
};
use statctr_prometheus_client::Collector;
use std::collections::HashSet;
use std::sync::Arc;

/// A registry, and the statistics in it.
struct Statistics {
    registry: &'static statctr::Registry,
    kept: Vec<Arc<dyn Source>>,
}

impl Statistics {
    fn new() -> Statistics {
        Statistics { registry: Box::leak(Box::new(statctr::Registry::new())), kept: Vec::new() }
    }

    fn add<S: Source>(&mut self, description: Description, source: statctr::Result<S>) -> Arc<S> {
        let source = Arc::new(source.expect("a statistic"));
        self.registry.register(description, &source).expect("free");
        self.kept.push(Arc::clone(&source) as Arc<dyn Source>);
        source
    }

    /// Returns the text of the registry, without help lines.
    fn text(&self) -> String {
        self.text_with_help().split_inclusive('\n').filter(|line| !line.starts_with("# HELP ")).collect()
    }

    fn text_with_help(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Collector::new(self.registry)));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a string takes everything");
        text
    }
}

#[test]
fn bounds_of_buckets_that_are_one_number_are_one_bucket() {
    let mut statistics = Statistics::new();
    // the bounds 2⁶⁰ − 1 and 2⁶⁰ are the same floating-point number
    let sizes = statistics.add(Description::new("sizes"), Histogram::new(1 << 60, 0.1));
    [3, (1 << 60) - 1, 1 << 60].into_iter().for_each(|size| sizes.observe(size));
    let text = statistics.text();
    let buckets: Vec<&str> = text.lines().filter(|line| line.starts_with("sizes_bucket")).collect();
    let bounds: HashSet<&str> = buckets.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(buckets.len(), bounds.len(), "{text}");
    let last: Vec<&str> = buckets.iter().rev().take(2).filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(last, ["3", "3"], "{text}");
}

#[test]
fn a_unit_that_cannot_end_a_name_is_left_out() {
    let mut statistics = Statistics::new();
    let of = |name: &'static str, unit: &'static str| Description::new(name).unit(Unit::new(unit));
    statistics.add(of("rate", "req/s"), Counter::new(9));
    statistics.add(of("load", "%"), Gauge::new(8));
    statistics.add(of("size", "bytes"), Gauge::new(7));
    statistics.add(of("trailing_", ""), Gauge::new(6));
    assert_eq!(
        statistics.text(),
        "# TYPE load gauge\nload 8\n# TYPE rate counter\nrate_total 9\n# TYPE size_bytes gauge\n\
         # UNIT size_bytes bytes\nsize_bytes 7\n# TYPE trailing_ gauge\ntrailing_ 6\n# EOF\n"
    );
}

#[test]
fn names_that_become_equal_are_families_with_names_of_their_own() {
    let mut statistics = Statistics::new();
    let of = Description::new;
    statistics.add(of("requests"), Counter::new(1));
    statistics.add(of("requests_total"), Counter::new(2));
    statistics.add(of("size").unit(Unit::BYTES), Gauge::new(3));
    statistics.add(of("size_bytes").unit(Unit::BYTES), Gauge::new(4));
    // a name that was given is kept
    statistics.add(of("size_gauge_bytes"), Gauge::new(5));
    statistics.add(of("wait"), Histogram::new(0, 0.1)).observe(0);
    statistics.add(of("wait_count"), Gauge::new(6));
    statistics.add(of("_total"), Counter::new(7));
    let text = statistics.text();
    let types: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert_eq!(
        types,
        [
            "_total counter",
            "requests counter",
            "requests_counter counter",
            "size_bytes gauge",
            "size_gauge_gauge_bytes gauge",
            "size_gauge_bytes gauge",
            "wait histogram",
            "wait_count_gauge gauge"
        ]
    );
    for line in [
        "\nrequests_total 1\n",
        "\nrequests_counter_total 2\n",
        "\nsize_bytes 3\n",
        "# UNIT size_gauge_gauge_bytes bytes\nsize_gauge_gauge_bytes 4\n",
        "\nsize_gauge_bytes 5\n",
        "\nwait_count 1\n",
        "\nwait_count_gauge 6\n",
        "\n_total_total 7\n",
    ] {
        assert_eq!(text.matches(line).count(), 1, "{line} in {text}");
    }
}

#[test]
fn a_name_that_the_format_reserves_for_a_time_of_creation_is_free() {
    let mut statistics = Statistics::new();
    let of = Description::new;
    statistics.add(of("a"), Counter::new(1));
    statistics.add(of("a_created"), Counter::new(2));
    statistics.add(of("open"), Gauge::new(3));
    statistics.add(of("open_created"), Gauge::new(4));
    statistics.add(of("size").unit(Unit::BYTES), Average::new()).observe(0);
    statistics.add(of("size_bytes_created"), Gauge::new(5));
    let text = statistics.text();
    let types: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert_eq!(
        types,
        [
            "a counter",
            "a_created_counter counter",
            // gauges have no such time
            "open gauge",
            "open_created gauge",
            "size_bytes histogram",
            "size_bytes_created_gauge gauge"
        ]
    );
}

#[test]
fn a_label_le_of_an_average_is_exported_under_another_name() {
    let mut statistics = Statistics::new();
    let wait = Description::new("wait").label("exported_le", "2").label("le", "1");
    statistics.add(wait, Average::new()).observe_many(1, 3);
    statistics.add(Description::new("open").label("le", "1"), Gauge::new(4));
    let text = statistics.text();
    let labels = "exported_le=\"2\",exported_exported_le=\"1\"";
    for line in [
        format!("wait_bucket{{le=\"+Inf\",{labels}}} 1\n"),
        format!("wait_sum{{{labels}}} 3.0\n"),
        "open{le=\"1\"} 4\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[test]
fn a_second_series_of_a_name_and_labels_has_a_name_of_its_own() {
    let mut statistics = Statistics::new();
    let schema = Schema::new([ItemSpec::new("packets")], &[]).expect("schema");
    statistics.add(Description::new("rx"), Group::new(&schema)).inc(schema.item(0).expect("one item"));
    statistics.add(Description::new("rx_packets"), Counter::new(2));
    statistics.add(Description::new("cpu").label("of", "a"), CounterArray::new(1, 3));
    statistics.add(Description::new("cpu").label("index", "0").label("of", "a"), Counter::new(4));
    statistics.add(Description::new("cpu").label("index", "0").label("of", "b"), Counter::new(5));
    assert_eq!(
        statistics.text(),
        "# TYPE cpu counter\ncpu_total{of=\"a\",index=\"0\"} 3\ncpu_total{index=\"0\",of=\"b\"} 5\n\
         # TYPE cpu_counter counter\ncpu_counter_total{index=\"0\",of=\"a\"} 4\n\
         # TYPE rx_packets counter\nrx_packets_total 1\n\
         # TYPE rx_packets_counter counter\nrx_packets_counter_total 2\n# EOF\n"
    );
}

#[test]
fn a_help_text_is_one_line() {
    let mut statistics = Statistics::new();
    statistics.add(Description::new("open").help("open\nconnections"), Gauge::new(1));
    assert_eq!(
        statistics.text_with_help(),
        "# HELP open open connections\n# TYPE open gauge\nopen 1\n# EOF\n"
    );
}
