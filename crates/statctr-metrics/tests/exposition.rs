//! Both formats of an exposition, and what a reader by others makes of them: `tests/golden/README.md`.

use metrics::{counter, describe_counter, describe_histogram, gauge, histogram, with_local_recorder};
use statctr::{Description, Registry};
use statctr_metrics::{Builder, NativeSchema, Recorder};
use std::path::PathBuf;
use std::sync::Arc;

fn golden(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name].iter().collect()
}

/// Returns a recorder with values of each kind, that are the same in each run.
fn recorder() -> Recorder {
    let recorder = Recorder::builder()
        .buckets_of("latency_seconds", &[0.001, 0.01, 0.1])
        .resolution("sizes", 1.0)
        .build();
    with_local_recorder(&recorder, || {
        describe_counter!("requests", "requests \"served\"");
        describe_histogram!("latency_seconds", metrics::Unit::Seconds, "time of a request");
        for (method, count) in [("GET", 1_000_003), ("PU\"T\\\n", 7)] {
            counter!("requests", "method" => method, "node" => "a").increment(count);
        }
        counter!("none").increment(0);
        gauge!("temperature").set(-12.5);
        (1..=2000).for_each(|n| histogram!("latency_seconds").record(f64::from(n) * 1e-4));
        histogram!("latency_seconds").record(0.0);
        for size in [0.0, 1.0, 1.0, 2.0, 3.0, 5.0, 127.0, 128.0, 1e6, 3e9] {
            histogram!("sizes", "of" => "files").record(size);
        }
        drop(histogram!("unused"));
    });
    recorder
}

/// Compares with a golden file, or writes it.
fn compare(name: &str, bytes: &[u8]) {
    let path = golden(name);
    if std::env::var_os("STATCTR_UPDATE_GOLDEN").is_some() {
        return std::fs::write(&path, bytes).expect("the golden file is written");
    }
    let expected = std::fs::read(&path).expect("the golden file");
    assert!(expected == bytes, "not what {} has:\n{}", path.display(), String::from_utf8_lossy(bytes));
}

#[test]
fn the_text_is_what_the_reader_was_given() {
    compare("exposition.txt", recorder().render().as_bytes());
}

#[test]
fn the_protobuf_is_what_the_reader_was_given() {
    compare("exposition.pb", &recorder().render_protobuf());
}

/// Returns the line that the reader printed for a series.
fn read_by_peer(file: &str, series: &str) -> String {
    let text = std::fs::read_to_string(golden(file)).expect("the golden file");
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).to_owned()
}

#[test]
fn the_reader_understood_the_values_of_both_formats() {
    for file in ["exposition.txt.read", "exposition.pb.read"] {
        let value = |series: &str| read_by_peer(file, series);
        assert_eq!(value(r#"{__name__="requests", method="GET", node="a"}"#), "1.000003e+06");
        assert_eq!(value(r#"{__name__="requests", method="PU\"T\\\n", node="a"}"#), "7");
        assert_eq!(value(r#"{__name__="temperature"}"#), "-12.5");
        assert_eq!(value(r#"{__name__="none"}"#), "0");
        assert_eq!(value(r#"{__name__="latency_seconds_count"}"#), "2001");
        assert_eq!(value(r#"{__name__="latency_seconds_sum"}"#), "200.1");
        assert_eq!(value(r#"{__name__="latency_seconds_bucket", le="+Inf"}"#), "2001");
    }
}

#[test]
fn the_reader_understood_native_histograms() {
    let sizes = read_by_peer("exposition.pb.read", r#"{__name__="sizes", of="files"}"#);
    assert!(sizes.starts_with("schema 5 {count:10, sum:3.001000267e+09, [-0.5,0.5]:1, "), "{sizes}");
    // 1, 2, 3 and 5, each in its bucket, of which the last is from 4.967 to 5.076; 128 is in one that ends above it, as 129 is in its
    // bucket of the histogram
    for bucket in ["1]:2", "2]:1", "3.018328855186845]:1", "5.076203828766933]:1", "128]:1"] {
        assert!(sizes.contains(bucket), "{bucket}: {sizes}");
    }
    let unused = read_by_peer("exposition.pb.read", r#"{__name__="unused"}"#);
    assert_eq!(unused, "schema 5 {count:0, sum:0}");
}

#[test]
fn a_schema_of_the_users_choice_is_written() {
    let finest = |schema| {
        let recorder = Recorder::builder().native_schema(schema).build();
        with_local_recorder(&recorder, || (1..=1000).for_each(|n| histogram!("h").record(f64::from(n))));
        recorder.render_protobuf().len()
    };
    assert!(finest(NativeSchema::FINEST) > 2 * finest(NativeSchema::COARSEST));
}

/// The reader has read the recorder's own histogram of these values (`exposition.pb`): of a registry's, which is to be the
/// same bytes, it reads the same.
#[test]
fn a_histogram_of_a_registry_is_encoded_as_one_of_the_recorder() {
    for schema in [None, Some(NativeSchema::COARSEST), Some(NativeSchema::FINEST)] {
        let registry: &'static Registry = Box::leak(Box::new(Registry::new()));
        let sizes = Arc::new(statctr::Histogram::new(1 << 40, 0.01).expect("histogram"));
        let description = Description::new("sizes").help("of files").label("of", "files");
        registry.register(description, &sizes).expect("free");
        let classic = sizes.snapshot().classic_buckets();
        let bounds: Vec<f64> = classic.into_iter().map(|(bound, _)| bound as f64).collect();
        let recorder = |builder: Builder| match schema {
            Some(schema) => builder.native_schema(schema).build(),
            None => builder.build(),
        };
        let other = recorder(Recorder::builder().registry(registry));
        let own = recorder(Recorder::builder().resolution("sizes", 1.0).buckets(&bounds));
        with_local_recorder(&own, || {
            describe_histogram!("sizes", "of files");
            let own_sizes = histogram!("sizes", "of" => "files");
            assert_eq!(other.render_protobuf(), own.render_protobuf(), "without values, {schema:?}");
            for size in [0u64, 1, 1, 2, 3, 5, 127, 128, 1_000_000, 3_000_000_000] {
                sizes.observe(size);
                own_sizes.record(size as f64);
            }
        });
        let encoded = other.render_protobuf();
        assert_eq!(encoded, own.render_protobuf(), "{schema:?}");
        // the key of the schema (field 5), its number in zigzag coding, and the key of the zero threshold (field 6)
        let number = schema.map_or(5, NativeSchema::number);
        let key = [40, ((number << 1) ^ (number >> 7)) as u8, 49];
        assert!(encoded.windows(3).any(|bytes| bytes == key), "native, {schema:?}");
    }
}
