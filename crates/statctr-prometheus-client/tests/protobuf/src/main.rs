//! Writes native histograms in the protobuf format by prometheus-client, for a reader by others: one of this crate's own
//! and one of a registry of statctr's, which have the same values and are compared.

use prometheus_client::encoding::prometheus_protobuf::{encode, encode_to_vec};
use prometheus_client::registry::Registry;
use statctr_prometheus_client::{Collector, Histogram, NativeSchema};
use std::io::Write as _;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::default();
    let sizes = Histogram::native(1.0, [10.0], NativeSchema::for_error(0.01))?;
    registry.register("sizes", "of files", sizes.clone());
    let counted = Arc::new(statctr::Histogram::new(1 << 40, 0.01)?);
    let of_statctr: &'static statctr::Registry = Box::leak(Box::new(statctr::Registry::new()));
    of_statctr.register(statctr::Description::new("counted").help("of files"), &counted)?;
    let collector = Collector::new(of_statctr).native_schema(NativeSchema::for_error(0.01));
    registry.register_collector(Box::new(collector));
    for size in [0, 1, 1, 2, 3, 5, 127, 128, 1_000_000, 3_000_000_000] {
        sizes.observe(size as f64);
        counted.observe(size);
    }
    let families = encode(&registry)?;
    let histogram = |name: &str| {
        let family = families.iter().find(|family| family.name == name).expect("exported");
        let mut histogram = family.metric[0].histogram.clone().expect("a histogram");
        let classic = std::mem::take(&mut histogram.bucket);
        histogram.start_timestamp = None;
        (histogram, classic)
    };
    let ((own, _), (of_registry, classic)) = (histogram("sizes"), histogram("counted"));
    assert_eq!(of_registry, own);
    assert!(!of_registry.positive_span.is_empty() && classic.len() > 30, "both forms");
    std::io::stdout().write_all(&encode_to_vec(&registry)?)?;
    Ok(())
}
