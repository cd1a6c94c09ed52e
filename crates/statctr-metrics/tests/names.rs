//! Names and labels that become equal where they are exported.

use metrics::{counter, describe_counter, gauge, histogram, with_local_recorder};
use statctr::{Average, Description, Histogram, Registry};
use statctr_metrics::Recorder;
use std::collections::HashSet;
use std::sync::Arc;

#[test]
fn names_that_are_exported_as_one_are_one_family() {
    let recorder = Recorder::new();
    with_local_recorder(&recorder, || {
        describe_counter!("a_b", "help");
        counter!("a.b", "of" => "1").increment(1);
        counter!("a.c").increment(2);
        counter!("a_b", "of" => "2").increment(3);
    });
    assert_eq!(
        recorder.render(),
        "# HELP a_b help\n# TYPE a_b counter\na_b{of=\"1\"} 1\na_b{of=\"2\"} 3\n# TYPE a_c counter\na_c 2\n"
    );
}

#[test]
fn counters_that_are_exported_as_one_series_add_up() {
    let recorder = Recorder::new();
    with_local_recorder(&recorder, || {
        counter!("a.b", "x" => "1", "y" => "2").increment(1);
        counter!("a_b", "y" => "2", "x" => "1").increment(3);
        counter!("a-b").increment(5);
    });
    assert_eq!(recorder.render(), "# TYPE a_b counter\na_b 5\na_b{x=\"1\",y=\"2\"} 4\n");
}

#[test]
fn of_gauges_that_are_exported_as_one_series_the_last_name_is_shown() {
    let recorder = Recorder::new();
    with_local_recorder(&recorder, || {
        gauge!("a_b").set(3.0);
        gauge!("a.b").set(1.0);
        histogram!("c_d_bytes").record(3.0);
        histogram!("c.d.bytes").record(1.0);
    });
    let text = recorder.render();
    assert!(text.starts_with("# TYPE a_b gauge\na_b 3\n# TYPE c_d_bytes summary\n"), "{text}");
    assert!(text.ends_with("c_d_bytes_sum 3\nc_d_bytes_count 1\n"), "{text}");
}

#[test]
fn types_of_one_name_are_families_with_names_of_their_own() {
    let recorder = Recorder::builder().buckets_of("mix.", &[1.0]).build();
    with_local_recorder(&recorder, || {
        counter!("mix_", "l" => "1").increment(1);
        gauge!("mix_", "l" => "2").set(2.0);
        counter!("mix_", "l" => "3").increment(3);
        histogram!("mix_").record(0.0);
        histogram!("mix.").record(0.0);
        // a name that was given is kept
        counter!("mix__gauge").increment(4);
    });
    let text = recorder.render();
    let types: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert_eq!(
        types,
        [
            "mix_ counter",
            "mix__gauge counter",
            "mix__gauge_gauge gauge",
            "mix__histogram histogram",
            "mix__summary summary"
        ]
    );
    for line in ["mix_{l=\"1\"} 1\nmix_{l=\"3\"} 3\n", "\nmix__gauge 4\n", "\nmix__gauge_gauge{l=\"2\"} 2\n"]
    {
        assert!(text.contains(line), "{line} in {text}");
    }
    // the other format has the same names
    let bytes = recorder.render_protobuf();
    for name in types.iter().filter_map(|line| line.split(' ').next()) {
        let field = [&[10, name.len() as u8], name.as_bytes()].concat();
        assert_eq!(bytes.windows(field.len()).filter(|window| *window == field).count(), 1, "{name}");
    }
}

#[test]
fn no_family_has_the_name_of_a_part_of_another() {
    let registry: &'static Registry = Box::leak(Box::new(Registry::new()));
    let wait = Arc::new(Average::new().expect("average"));
    registry.register(Description::new("wait"), &wait).expect("free");
    let recorder = Recorder::builder().registry(registry).build();
    wait.observe_many(1, 7);
    with_local_recorder(&recorder, || histogram!("wait").record(2.0));
    let text = recorder.render();
    assert_eq!(text.matches("\nwait_count ").count(), 1, "{text}");
    assert!(text.contains("# TYPE wait_sum_counter counter\nwait_sum_counter 7\n"), "{text}");
}

#[test]
fn a_label_that_is_given_twice_is_exported_with_its_last_value() {
    let recorder = Recorder::new();
    with_local_recorder(&recorder, || {
        counter!("a", "k" => "1", "of" => "x", "k" => "2").increment(1);
        counter!("b", "k.a" => "1", "k-a" => "2").increment(2);
        // the same labels as exported
        counter!("b", "k_a" => "2").increment(4);
    });
    assert_eq!(
        recorder.render(),
        "# TYPE a counter\na{k=\"2\",of=\"x\"} 1\n# TYPE b counter\nb{k_a=\"2\"} 6\n"
    );
    // the protobuf format's label pairs: two of a, one of b
    let bytes = recorder.render_protobuf();
    let pairs = |name: &str| {
        let field = [&[10, name.len() as u8], name.as_bytes(), &[18, 1]].concat();
        bytes.windows(field.len()).filter(|window| *window == field).count()
    };
    assert_eq!([pairs("k"), pairs("of"), pairs("k_a")], [1, 1, 1]);
}

#[test]
fn a_label_with_a_name_of_the_format_is_exported_under_another() {
    let recorder = Recorder::builder().buckets_of("size", &[1.0]).build();
    with_local_recorder(&recorder, || {
        histogram!("size", "le" => "x", "exported_le" => "y").record(0.0);
        histogram!("wait", "quantile" => "x", "le" => "y").record(0.0);
        counter!("sent", "__name__" => "a", "le" => "x", "quantile" => "y").increment(1);
    });
    let text = recorder.render();
    for line in [
        "size_bucket{exported_exported_le=\"x\",exported_le=\"y\",le=\"1\"} 1\n",
        "size_sum{exported_exported_le=\"x\",exported_le=\"y\"} 0\n",
        "wait{exported_quantile=\"x\",le=\"y\",quantile=\"0.5\"} 0\n",
        "sent{exported___name__=\"a\",le=\"x\",quantile=\"y\"} 1\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn an_overflow_label_of_ones_own_is_the_overflow_series() {
    let recorder = Recorder::builder().limit(1).build();
    with_local_recorder(&recorder, || {
        counter!("sent", "overflow" => "true").increment(5);
        gauge!("open", "overflow" => "true").increment(5.0);
        counter!("sent", "of" => "a").increment(1);
        gauge!("open", "of" => "a").increment(1.0);
        counter!("sent", "of" => "b").increment(7);
        gauge!("open", "of" => "b").increment(7.0);
        counter!("sent", "overflow" => "false").increment(9);
    });
    let seen = recorder.snapshot();
    let overflow = [("overflow", "true")];
    assert_eq!((seen.counter("sent", &overflow), seen.gauge("open", &overflow)), (Some(21), Some(12.0)));
    assert_eq!((seen.metrics().len(), seen.counter("sent", &[("of", "a")])), (4, Some(1)));
}

#[test]
fn bounds_of_buckets_that_are_one_number_are_one_bucket() {
    let registry: &'static Registry = Box::leak(Box::new(Registry::new()));
    // the bounds 2⁶⁰ − 1 and 2⁶⁰ are the same floating-point number
    let sizes = Arc::new(Histogram::new(1 << 60, 0.1).expect("histogram"));
    registry.register(Description::new("sizes"), &sizes).expect("free");
    let recorder = Recorder::builder().registry(registry).build();
    [3, 1 << 60].into_iter().for_each(|size| sizes.observe(size));
    let text = recorder.render();
    let buckets: Vec<&str> = text.lines().filter(|line| line.starts_with("sizes_bucket")).collect();
    let bounds: HashSet<&str> = buckets.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(buckets.len(), bounds.len(), "{text}");
    assert!(text.contains("sizes_bucket{le=\"1152921504606847000\"} 2\n"), "{text}");
}
