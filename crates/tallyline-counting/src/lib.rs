//! Ways of counting packets, compared: words that all threads share, and `statctr`'s per-CPU counters.
//!
//! Real threads count the packets of [`Store`]'s methods: [`race`] takes the time of an update, [`checks`] looks for
//! lost counts and for what a reader sees meanwhile, [`reading`] takes the time of reads, [`memory`] asks the kernel
//! what the counters take. `tallyline demo counters` shows the results.
//!
//! A crate of its own because its loops are what is measured: they are optimised in every profile that optimises,
//! while the tool's own crate is compiled for a short build.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::time::Duration;
//! use tallyline_counting::{LABELS, ONE_COMMIT, Store, checks::Exactness, race};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = statctr::Pool::builder().build()?;
//! let store = Store::new(&pool)?;
//! let methods = store.methods();
//! let settings = race::Settings { rounds: 2, slice: Duration::from_millis(1) };
//! let race = race::run(&methods, &[0], settings, &mut |_| ControlFlow::Continue(()))?;
//! let rounds = race.outcomes[ONE_COMMIT].ring_rounds;
//! assert!(Exactness::check(&LABELS[ONE_COMMIT], methods[ONE_COMMIT].as_ref(), rounds).holds());
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//! Times are of this machine while it does what else it does; the methods take turns, so that ratios hold better than
//! times. [`reading`] and [`memory`] also measure a synthetic machine: its CPUs are made up, its memory is real.

pub mod checks;
mod error;
pub mod memory;
pub mod race;
pub mod reading;
mod workload;

pub use error::{Error, Result};
pub use workload::{
    COUNTERS, CountingMethod, Family, INTERFACES, LABELS, Label, ONE_COMMIT, Ring, Store, Values,
};

use std::ops::ControlFlow;
use std::time::Duration;

/// Callback that measurements call with the time that has passed since the last call; `Break` ends them with
/// [`Error::Stopped`] within 20 ms.
pub type Tick<'t> = &'t mut dyn FnMut(Duration) -> ControlFlow<()>;

/// Reports `time` to `tick`, and returns [`Error::Stopped`] if it wants the measurement to end.
fn report(tick: Tick<'_>, time: Duration) -> Result<()> {
    match tick(time) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped),
    }
}
