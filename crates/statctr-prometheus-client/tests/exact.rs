//! Sums in the text that prometheus-client writes, under threads.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use statctr::{Description, Group, ItemSpec, Schema, Unit};
use statctr_prometheus_client::{Collector, Counter, Family, FloatGauge, Gauge, Histogram, NativeSchema};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped, also by a failed assertion: threads that wait for the flag end then, too.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

const THREADS: u64 = 4;
const UPDATES: u64 = 100_000;

type Labels = Vec<(String, String)>;

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).expect("a string takes everything");
    text
}

/// Returns the number behind the series that is written like this.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().expect("a number")
}

fn on_threads(work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}

#[test]
fn all_kinds_are_exact() {
    let mut registry = Registry::default();
    let (counter, gauge, float) =
        (Counter::new().expect("counter"), Gauge::new().expect("gauge"), FloatGauge::new().expect("gauge"));
    let histogram = Histogram::new(1.0, [10.0, 100.0]).expect("histogram");
    registry.register("counter", "help", counter.clone());
    registry.register("gauge", "help", gauge.clone());
    registry.register("float", "help", float.clone());
    registry.register("sizes", "help", histogram.clone());
    on_threads(|thread| {
        for update in 0..UPDATES {
            counter.inc();
            counter.inc_by(2);
            gauge.inc_by(3);
            gauge.dec();
            float.inc_by(0.5);
            histogram.observe([5.0, 50.0, 500.0, 5000.0][(update + thread) as usize % 4]);
        }
    });
    let text = text(&registry);
    let all = (THREADS * UPDATES) as f64;
    assert_eq!(value(&text, "counter_total"), 3.0 * all);
    assert_eq!(value(&text, "gauge"), 2.0 * all);
    assert_eq!(value(&text, "float"), 0.5 * all);
    assert_eq!(value(&text, "sizes_count"), all);
    assert_eq!(value(&text, "sizes_sum"), 5555.0 * all / 4.0);
    let bucket = |bound: &str| value(&text, &format!("sizes_bucket{{le=\"{bound}\"}}"));
    assert_eq!((bucket("10.0"), bucket("100.0"), bucket("+Inf")), (all / 4.0, all / 2.0, all));
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn a_native_histogram_is_exported_by_its_bounds_where_the_format_has_no_other() {
    let mut registry = Registry::default();
    let schema = NativeSchema::for_error(0.01);
    let bounded = Histogram::native(1.0, [10.0], schema).expect("histogram");
    let bare = Histogram::native(1.0, [], schema).expect("histogram");
    registry.register("bounded", "help", bounded.clone());
    registry.register("bare", "help", bare.clone());
    [1.0, 100.0].into_iter().for_each(|value| [&bounded, &bare].into_iter().for_each(|h| h.observe(value)));
    let text = text(&registry);
    assert_eq!(value(&text, "bounded_bucket{le=\"10.0\"}"), 1.0);
    assert_eq!((value(&text, "bare_bucket{le=\"+Inf\"}"), value(&text, "bare_sum")), (2.0, 101.0));
}

#[test]
fn a_family_is_exact_and_bounded() {
    let mut registry = Registry::default();
    let family = Family::<Labels, Counter>::with_limit(10, Counter::new).expect("family");
    registry.register("requests", "help", family.clone());
    assert!(!text(&registry).contains("overflow"));
    on_threads(|_| {
        for update in 0..UPDATES / 10 {
            family.get(&vec![("id".to_owned(), (update % 100).to_string())]).inc();
        }
    });
    assert_eq!(family.len(), 10);
    let text = text(&registry);
    let series = text.lines().filter(|line| line.starts_with("requests_total{"));
    let values = series.map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<u64>().ok()));
    let values: Vec<u64> = values.map(|value| value.expect("a number")).collect();
    assert_eq!((values.len(), values.iter().sum::<u64>()), (11, THREADS * UPDATES / 10));
    assert!(value(&text, "requests_total{overflow=\"true\"}") > 0.0);
}

#[test]
fn a_group_in_a_scrape_is_of_one_read() {
    let counters: &'static statctr::Registry = Box::leak(Box::new(statctr::Registry::new()));
    let items = [ItemSpec::new("packets").help("seen"), ItemSpec::new("volume").unit(Unit::BYTES)];
    let schema = Schema::new(items, &[&[0, 1]]).expect("schema");
    let event = schema.event::<2>(0).expect("two items");
    let groups: Vec<Arc<Group>> = ["eth0", "eth1"]
        .into_iter()
        .map(|device| {
            let group = Arc::new(Group::new(&schema).expect("group"));
            counters.register(Description::new("rx").label("device", device), &group).expect("free");
            group
        })
        .collect();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collector::new(counters)));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done_at_end = SetOnDrop(&done);
        for group in &groups {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    group.commit(event, [1, 1500]);
                }
            });
        }
        for _ in 0..1000 {
            let text = text(&registry);
            for device in ["eth0", "eth1"] {
                let item = |name: &str| value(&text, &format!("{name}_total{{device=\"{device}\"}}"));
                assert_eq!(item("rx_volume_bytes"), 1500.0 * item("rx_packets"));
            }
        }
    });
    let text = text(&registry);
    // one description for each name
    assert_eq!(text.matches("# HELP rx_packets seen\n# TYPE rx_packets counter\n").count(), 1, "{text}");
    assert_eq!(text.matches("# UNIT rx_volume_bytes bytes\n").count(), 1, "{text}");
}

#[test]
fn a_histogram_in_a_scrape_is_of_one_read() {
    let mut registry = Registry::default();
    let sizes = Histogram::native(1.0, [10.0, 100.0], NativeSchema::for_error(0.01)).expect("histogram");
    registry.register("sizes", "help", sizes.clone());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done_at_end = SetOnDrop(&done);
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    sizes.observe(50.0);
                }
            });
        }
        for _ in 0..1000 {
            let text = text(&registry);
            let count = value(&text, "sizes_count");
            assert_eq!(value(&text, "sizes_sum"), 50.0 * count);
            let bucket = |bound: &str| value(&text, &format!("sizes_bucket{{le=\"{bound}\"}}"));
            assert_eq!((bucket("10.0"), bucket("100.0"), bucket("+Inf")), (0.0, count, count));
        }
    });
}

#[test]
fn every_kind_of_a_registry_is_collected() {
    let statistics: &'static statctr::Registry = Box::leak(Box::new(statctr::Registry::new()));
    let open = Arc::new(statctr::Gauge::new(-3).expect("gauge"));
    let load = Arc::new(statctr::FloatGauge::new(0.5).expect("gauge"));
    let fastest = Arc::new(statctr::Min::new().expect("minimum"));
    let hits = Arc::new(statctr::Average::new().expect("average"));
    let sizes = Arc::new(statctr::Histogram::new(3, 0.1).expect("histogram"));
    statistics.register(Description::new("open").help("open connections"), &open).expect("free");
    statistics.register(Description::new("load"), &load).expect("free");
    statistics.register(Description::new("fastest"), &fastest).expect("free");
    statistics.register(Description::new("hits"), &hits).expect("free");
    let of_sizes = Description::new("sizes").unit(Unit::BYTES).label("of", "a");
    statistics.register(of_sizes, &sizes).expect("free");
    fastest.observe(17);
    hits.observe_many(4, 3);
    [0, 2, 100, 1000].into_iter().for_each(|size| sizes.observe(size));
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collector::new(statistics)));
    let mut native = Registry::default();
    let collector = Collector::new(statistics).native_schema(NativeSchema::for_error(0.1));
    native.register_collector(Box::new(collector));
    assert_eq!(text(&native), text(&registry), "text has no native histograms");
    let text = text(&registry);
    assert!(text.contains("# HELP open open connections\n# TYPE open gauge\nopen -3\n"), "{text}");
    assert!(text.contains("# TYPE sizes_bytes histogram\n# UNIT sizes_bytes bytes\n"), "{text}");
    for (series, expected) in [
        ("load", 0.5),
        ("fastest", 17.0),
        ("hits_sum", 3.0),
        ("hits_count", 4.0),
        ("hits_bucket{le=\"+Inf\"}", 4.0),
        ("sizes_bytes_bucket{le=\"1.0\",of=\"a\"}", 1.0),
        ("sizes_bytes_bucket{le=\"3.0\",of=\"a\"}", 2.0),
        ("sizes_bytes_bucket{le=\"+Inf\",of=\"a\"}", 4.0),
        ("sizes_bytes_sum{of=\"a\"}", 1102.0),
        ("sizes_bytes_count{of=\"a\"}", 4.0),
    ] {
        assert_eq!(value(&text, series), expected, "{series}");
    }
}

#[test]
fn a_family_makes_metrics_again_once_there_is_memory() {
    static HAS_MEMORY: AtomicBool = AtomicBool::new(true);
    let make = || match HAS_MEMORY.load(Ordering::Relaxed) {
        true => Counter::new(),
        false => Err(statctr::Error::OutOfMemory { bytes: 1, errno: 12 }),
    };
    let family = Family::<Labels, Counter>::with_limit(2, make).expect("family");
    let labels = |value: &str| vec![("of".to_owned(), value.to_owned())];
    HAS_MEMORY.store(false, Ordering::Relaxed);
    family.get(&labels("a")).inc();
    HAS_MEMORY.store(true, Ordering::Relaxed);
    // at last one more than the limit
    ["a", "b", "c"].into_iter().for_each(|value| family.get(&labels(value)).inc_by(2));
    let mut registry = Registry::default();
    registry.register("requests", "help", family.clone());
    let text = text(&registry);
    assert_eq!(value(&text, "requests_total{overflow=\"true\"}"), 3.0);
    assert_eq!(value(&text, "requests_total{of=\"a\"}"), 2.0);
    assert_eq!((value(&text, "requests_total{of=\"b\"}"), family.len()), (2.0, 2));
}

#[test]
fn labels_of_the_overflow_metric_are_counted_by_it() {
    let family = Family::<Labels, Counter>::with_limit(2, Counter::new).expect("family");
    let get = |name: &str, value: &str| family.get(&vec![(name.to_owned(), value.to_owned())]).clone();
    get("overflow", "true").inc_by(5);
    ["false", "true\"", ""].into_iter().for_each(|value| get("overflow", value).inc());
    get("overflow", "true").inc_by(5);
    let mut registry = Registry::default();
    registry.register("requests", "help", family.clone());
    let text = text(&registry);
    let series: Vec<&str> = text.lines().filter(|line| line.starts_with("requests_total{")).collect();
    assert_eq!((series.len(), family.len()), (3, 2), "{text}");
    assert_eq!(value(&text, "requests_total{overflow=\"true\"}"), 11.0);
    assert_eq!(value(&text, "requests_total{overflow=\"false\"}"), 1.0);
    assert_eq!(value(&text, "requests_total{overflow=\"true\\\"\"}"), 1.0);
}
