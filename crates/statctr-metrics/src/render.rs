//! The text format of Prometheus, version 0.0.4.

use crate::families::{ExportedSeries, Labels, MetricFamily, families};
use crate::snapshot::{Snapshot, Value};
use statctr_facade::FloatHistogramSnapshot;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The quantiles of a histogram without bounds.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Formats all series of a snapshot in Prometheus' text format.
pub(crate) fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for MetricFamily { name, family_type, help, series } in families(snapshot) {
        if !help.is_empty() {
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            line(&mut text, format_args!("# HELP {name} {help}"));
        }
        line(&mut text, format_args!("# TYPE {name} {}", family_type.name()));
        series.iter().for_each(|series| value(&mut text, &name, series));
    }
    text
}

fn value(text: &mut String, name: &str, series: &ExportedSeries<'_>) {
    let labels = |extra: Option<(&str, f64)>| labels(&series.labels, extra);
    match &*series.value {
        Value::Counter(value) => line(text, format_args!("{name}{} {value}", labels(None))),
        Value::Gauge(value) => line(text, format_args!("{name}{} {}", labels(None), number(*value))),
        Value::Histogram { values, bounds } => {
            match bounds {
                Some(bounds) => {
                    for (&bound, count) in bounds.iter().zip(values.counts_up_to(bounds)) {
                        line(text, format_args!("{name}_bucket{} {count}", labels(Some(("le", bound)))));
                    }
                    let all = labels(Some(("le", f64::INFINITY)));
                    line(text, format_args!("{name}_bucket{all} {}", values.count()));
                }
                None => quantiles(text, name, values, &series.labels),
            }
            line(text, format_args!("{name}_sum{} {}", labels(None), number(values.sum())));
            line(text, format_args!("{name}_count{} {}", labels(None), values.count()));
        }
    }
}

fn quantiles(text: &mut String, name: &str, values: &FloatHistogramSnapshot, own_labels: &Labels<'_>) {
    for part in QUANTILES {
        let quantile = values.quantile(part).unwrap_or(f64::NAN);
        line(
            text,
            format_args!("{name}{} {}", labels(own_labels, Some(("quantile", part))), number(quantile)),
        );
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // a string takes everything
    let _ = writeln!(text, "{line}");
}

/// Returns the labels in braces, a number for one more at the end; nothing where there are none.
fn labels(labels: &Labels<'_>, extra: Option<(&str, f64)>) -> String {
    let escaped = |(key, value): &(Cow<'_, str>, &str)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{key}=\"{value}\"")
    };
    let extra = extra.map(|(key, value)| format!("{key}=\"{}\"", number(value)));
    let all: Vec<String> = labels.iter().map(escaped).chain(extra).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

/// Returns a number as the format writes it.
fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    }
}
