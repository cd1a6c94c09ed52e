//! Sums through the macros and handles of `metrics`, under threads.

use metrics::{counter, describe_counter, describe_histogram, gauge, histogram, with_local_recorder};
use statctr::{Average, Description, Gauge, Group, Histogram, ItemSpec, Max, Registry, Schema};
use statctr_metrics::{Recorder, Value};
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

/// Runs `work` on several threads, each with this recorder.
fn on_threads(recorder: &Recorder, work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || with_local_recorder(recorder, || work(thread)));
        }
    });
}

#[test]
fn counts_of_handles_and_of_macros_are_exact() {
    let recorder = Recorder::new();
    on_threads(&recorder, |thread| {
        let kept = counter!("kept");
        for update in 0..UPDATES {
            kept.increment(update);
            let label = if update % 2 == 0 { "even" } else { "odd" };
            counter!("looked_up", "of" => label, "thread" => (thread % 2).to_string()).increment(3);
        }
    });
    let seen = recorder.snapshot();
    assert_eq!(seen.counter("kept", &[]), Some(THREADS * UPDATES * (UPDATES - 1) / 2));
    for (label, thread) in [("even", "0"), ("even", "1"), ("odd", "0"), ("odd", "1")] {
        // labels in whatever order
        let value = seen.counter("looked_up", &[("thread", thread), ("of", label)]);
        assert_eq!(value, Some(3 * UPDATES * THREADS / 4), "{label} {thread}");
    }
    assert_eq!(recorder.refused(), 0);
}

#[test]
fn absolute_never_lowers_a_counter_and_loses_no_increment() {
    let recorder = Recorder::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = SetOnDrop(&done);
        let reader = scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Acquire) {
                let value = recorder.snapshot().counter("raised", &[]).unwrap_or(0);
                assert!(value >= last, "{value} after {last}");
                last = value;
            }
        });
        on_threads(&recorder, |thread| {
            let raised = counter!("raised");
            for update in 0..UPDATES / 10 {
                if thread % 2 == 0 {
                    raised.increment(1);
                } else {
                    raised.absolute(update);
                }
            }
        });
        drop(running);
        reader.join().expect("never down");
    });
    let value = recorder.snapshot().counter("raised", &[]).expect("counted");
    // at least the value raised to, and at most that and all increments
    let increments = UPDATES / 10 * THREADS / 2;
    assert!(value >= increments.max(UPDATES / 10 - 1), "{value}");
    assert!(value < increments + UPDATES / 10, "{value}");

    with_local_recorder(&recorder, || counter!("raised").absolute(1));
    assert_eq!(recorder.snapshot().counter("raised", &[]), Some(value));
    with_local_recorder(&recorder, || counter!("raised").absolute(value + 7));
    assert_eq!(recorder.snapshot().counter("raised", &[]), Some(value + 7));
}

#[test]
fn histograms_count_and_sum_exactly() {
    let recorder = Recorder::new();
    on_threads(&recorder, |_| {
        let seconds = histogram!("took_seconds");
        for update in 1..=UPDATES / 10 {
            seconds.record(update as f64 * 1e-6);
        }
        seconds.record_many(2.5, 1000);
    });
    let seen = recorder.snapshot();
    let seconds = seen.histogram("took_seconds", &[]).expect("recorded");
    let updates = UPDATES / 10;
    assert_eq!(seconds.count(), THREADS * (updates + 1000));
    let sum = THREADS as f64 * (1e-6 * (updates * (updates + 1) / 2) as f64 + 2500.0);
    assert!((seconds.sum() - sum).abs() < 1e-6, "{} {sum}", seconds.sum());
    let median = seconds.quantile(0.5).expect("not empty");
    assert!((median / 0.0055 - 1.0).abs() < 0.011, "{median}");
}

#[test]
fn gauges_add_up_and_can_be_set() {
    let recorder = Recorder::new();
    on_threads(&recorder, |_| {
        for _ in 0..UPDATES {
            gauge!("load").increment(0.5);
            gauge!("load").decrement(0.25);
        }
    });
    assert_eq!(recorder.snapshot().gauge("load", &[]), Some(0.25 * (THREADS * UPDATES) as f64));
    with_local_recorder(&recorder, || gauge!("load").set(-1.5));
    assert_eq!(recorder.snapshot().gauge("load", &[]), Some(-1.5));
}

#[test]
fn a_flood_of_labels_is_bounded_and_loses_no_count() {
    let recorder = Recorder::builder().limit(100).build();
    on_threads(&recorder, |thread| {
        for update in 0..1000 {
            counter!("flood", "id" => format!("{thread} {update}")).increment(1);
            counter!("known").increment(1);
        }
    });
    let seen = recorder.snapshot();
    assert!(seen.metrics().len() <= 102, "{}", seen.metrics().len());
    let overflow = seen.counter("flood", &[("overflow", "true")]).expect("beyond the limit");
    assert!(overflow >= 4000 - 100);
    let values = seen.metrics().iter().map(|metric| match metric.value {
        Value::Counter(value) => value,
        _ => 0,
    });
    assert_eq!(values.sum::<u64>(), 8000);
}

#[test]
fn series_beyond_the_limit_are_looked_up_without_a_lock() {
    let recorder = Recorder::builder().limit(1).build();
    with_local_recorder(&recorder, || {
        // the series of the limit, and all overflow series there are
        (0..10_001).for_each(|name| counter!(format!("n{name}")).increment(1));
        // whose lock is not free
        Registry::global().while_locked(|| {
            counter!("n1", "of" => "a").increment(1);
            counter!("n1", "overflow" => "true").increment(1);
            counter!("refused").increment(1);
        });
    });
    assert_eq!(recorder.snapshot().counter("n1", &[("overflow", "true")]), Some(3));
    assert_eq!(recorder.refused(), 1);
}

#[test]
fn the_text_has_help_types_labels_and_buckets() {
    let recorder = Recorder::builder().buckets_of("size", &[100.0, 10.0]).build();
    with_local_recorder(&recorder, || {
        describe_counter!("http.requests", "requests\nserved");
        counter!("http.requests", "path" => "a\\b\"c\nd").increment(2);
        gauge!("1load").set(f64::INFINITY);
        describe_histogram!("size", metrics::Unit::Bytes, "size of a body");
        [5.0, 50.0, 50.0, 500.0].into_iter().for_each(|size| histogram!("size").record(size));
        histogram!("wait_seconds").record(1.0);
    });
    let text = recorder.render();
    let (load, rest) = text.split_at(text.find("# HELP http").expect("requests"));
    assert_eq!(load, "# TYPE _load gauge\n_load +Inf\n");
    let (requests, rest) = rest.split_at(rest.find("# HELP size").expect("sizes"));
    assert_eq!(
        requests,
        "# HELP http_requests requests\\nserved\n# TYPE http_requests counter\n\
         http_requests{path=\"a\\\\b\\\"c\\nd\"} 2\n"
    );
    let (sizes, rest) = rest.split_at(rest.find("# TYPE wait").expect("waits"));
    assert_eq!(
        sizes,
        "# HELP size size of a body\n# TYPE size histogram\nsize_bucket{le=\"10\"} 1\n\
         size_bucket{le=\"100\"} 3\nsize_bucket{le=\"+Inf\"} 4\nsize_sum 605\nsize_count 4\n"
    );
    assert!(rest.starts_with("# TYPE wait_seconds summary\nwait_seconds{quantile=\"0.5\"} "), "{rest}");
    assert!(rest.ends_with("wait_seconds_sum 1\nwait_seconds_count 1\n"), "{rest}");
}

#[test]
fn a_group_of_a_registry_is_of_one_read() {
    let registry: &'static Registry = Box::leak(Box::new(Registry::new()));
    let schema = Schema::new([ItemSpec::new("packets"), ItemSpec::new("bytes")], &[&[0, 1]]).expect("schema");
    let event = schema.event::<2>(0).expect("two items");
    let group = Arc::new(Group::new(&schema).expect("group"));
    registry.register(Description::new("rx").label("device", "eth0"), &group).expect("free");
    let recorder = Recorder::builder().registry(registry).build();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done_at_end = SetOnDrop(&done);
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    group.commit(event, [1, 1500]);
                }
            });
        }
        for _ in 0..2000 {
            let seen = recorder.snapshot();
            let item = |name| seen.counter(name, &[("device", "eth0")]).expect("registered");
            assert_eq!(item("rx_bytes"), 1500 * item("rx_packets"));
        }
    });
}

#[test]
fn a_histogram_in_a_snapshot_is_of_one_read() {
    let recorder = Recorder::builder().buckets_of("size_bytes", &[10.0, 100.0]).build();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done_at_end = SetOnDrop(&done);
        for _ in 0..2 {
            scope.spawn(|| {
                with_local_recorder(&recorder, || {
                    let sizes = histogram!("size_bytes");
                    while !done.load(Ordering::Relaxed) {
                        sizes.record(50.0);
                    }
                });
            });
        }
        let mut last = 0;
        for _ in 0..2000 {
            let seen = recorder.snapshot();
            let Some(sizes) = seen.histogram("size_bytes", &[]) else { continue };
            assert_eq!(sizes.sum(), 50.0 * sizes.count() as f64);
            assert_eq!((sizes.count_up_to(10.0), sizes.count_up_to(100.0)), (0, sizes.count()));
            assert!(sizes.count() >= last, "{} after {last}", sizes.count());
            last = sizes.count();
        }
    });
}

#[test]
fn a_handle_counts_after_its_recorder_is_gone() {
    let recorder = Recorder::new();
    let (counter, gauge, histogram) =
        with_local_recorder(&recorder, || (counter!("requests"), gauge!("load"), histogram!("wait_seconds")));
    drop(recorder);
    // other counters may get the memory of those that are gone
    let others = Recorder::new();
    with_local_recorder(&others, || counter!("others").increment(1));
    for _ in 0..UPDATES {
        counter.increment(1);
        gauge.increment(1.0);
        histogram.record(1.0);
    }
    counter.absolute(2 * UPDATES);
    assert_eq!(others.snapshot().counter("others", &[]), Some(1));
}

#[test]
fn every_kind_of_a_registry_is_rendered() {
    let registry: &'static Registry = Box::leak(Box::new(Registry::new()));
    let open = Arc::new(Gauge::new(-3).expect("gauge"));
    let slowest = Arc::new(Max::new().expect("maximum"));
    let hits = Arc::new(Average::new().expect("average"));
    let sizes = Arc::new(Histogram::new(3, 0.1).expect("histogram"));
    registry.register(Description::new("open"), &open).expect("free");
    registry.register(Description::new("slowest"), &slowest).expect("free");
    registry.register(Description::new("hits"), &hits).expect("free");
    registry.register(Description::new("sizes").help("in bytes").label("of", "a"), &sizes).expect("free");
    slowest.observe(17);
    hits.observe_many(4, 3);
    [0, 2, 100, 1000].into_iter().for_each(|size| sizes.observe(size));
    let text = Recorder::builder().registry(registry).build().render();
    for lines in [
        "# TYPE open gauge\nopen -3\n",
        "# TYPE slowest gauge\nslowest 17\n",
        "# TYPE hits_sum counter\nhits_sum 3\n",
        "# TYPE hits_count counter\nhits_count 4\n",
        "# HELP sizes in bytes\n# TYPE sizes histogram\nsizes_bucket{of=\"a\",le=\"0\"} 1\n",
        "sizes_bucket{of=\"a\",le=\"1\"} 1\nsizes_bucket{of=\"a\",le=\"3\"} 2\nsizes_bucket{of=\"a\",le=\"+Inf\"} 4\n",
        "sizes_sum{of=\"a\"} 1102\nsizes_count{of=\"a\"} 4\n",
    ] {
        assert!(text.contains(lines), "{lines} in {text}");
    }
}

#[test]
fn a_name_beyond_the_last_overflow_series_is_refused() {
    let recorder = Recorder::builder().limit(1).build();
    with_local_recorder(&recorder, || {
        // the series of the limit, and 10 000 overflow series
        (0..10_001).for_each(|name| counter!(format!("n{name}")).increment(1));
        assert_eq!(recorder.refused(), 0);
        (10_001..10_101).for_each(|name| counter!(format!("n{name}")).increment(1));
        // the overflow series that there are stay in use
        counter!("n17", "of" => "a").increment(1);
        gauge!("load").set(1.0);
    });
    assert_eq!(recorder.refused(), 100);
    let seen = recorder.snapshot();
    assert_eq!(seen.counter("n17", &[("overflow", "true")]), Some(2));
    assert_eq!((seen.metrics().len(), seen.gauge("load", &[])), (10_002, Some(1.0)));
}
