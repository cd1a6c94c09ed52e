//! Writes a native histogram in the protobuf format by prometheus-client, for a reader by others.

use prometheus_client::encoding::prometheus_protobuf::encode_to_vec;
use prometheus_client::registry::Registry;
use statctr_prometheus_client::{Histogram, NativeSchema};
use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::default();
    let sizes = Histogram::native(1.0, [10.0], NativeSchema::for_error(0.01))?;
    registry.register("sizes", "of files", sizes.clone());
    for size in [0.0, 1.0, 1.0, 2.0, 3.0, 5.0, 127.0, 128.0, 1e6, 3e9] {
        sizes.observe(size);
    }
    std::io::stdout().write_all(&encode_to_vec(&registry)?)?;
    Ok(())
}
