//! The first program of the README.

use statctr::{Counter, Unit};

// statistics that belong together; the items of an event are added to by one commit
statctr::group! {
    /// Traffic of one interface.
    pub struct Traffic {
        /// A packet came in.
        event received(packets, bytes);
        item packets: Unit::PACKETS, "packets received";
        item bytes: Unit::BYTES, "bytes received";
        item errors: Unit::PACKETS, "malformed packets";
    }
}

fn main() -> statctr::Result<()> {
    let requests = Counter::new(0)?;
    let eth0 = Traffic::new()?;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000_000 {
                    requests.inc();
                    eth0.received(1, 1500);
                }
            });
        }
    });
    assert_eq!(requests.read(), 4_000_000);
    assert_eq!(eth0.read(), [4_000_000, 6_000_000_000, 0]);
    Ok(())
}
