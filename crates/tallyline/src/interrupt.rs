//! Ctrl-C, and SIGTERM, which is what services and scripts send: asks the measurement to stop, so
//! that it leaves no thread, no half a page and no progress bar behind; a second one ends the program
//! at once.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The last signal received.
static WHICH: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Catches SIGINT (Ctrl-C) and SIGTERM from now on: the first one only sets the flag that [`asked`] returns, a
/// second one ends the program. Further calls change nothing.
pub(crate) fn listen() -> Result<()> {
    static LISTENS: AtomicBool = AtomicBool::new(false);
    // registered twice, the first signal would find the flag up that it has just put up
    if LISTENS.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    for signal in [SIGINT, SIGTERM] {
        // in this order: the first Ctrl-C finds the flag down and puts it up, the second finds it up
        flag::register_conditional_default(signal, Arc::clone(&ASKED))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&WHICH), signal.unsigned_abs() as usize))
            .and_then(|_| flag::register(signal, Arc::clone(&ASKED)))
            .context("cannot listen for Ctrl-C")?;
    }
    Ok(())
}

/// Returns `true` if SIGINT (Ctrl-C) or SIGTERM has been received since [`listen`] was called.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Takes a signal that was received for dealt with, as what it asked to end has ended: the next one is again the first.
pub(crate) fn forget() {
    ASKED.store(false, Ordering::Relaxed);
}

/// Ends the program by the default action of the signal that was received (SIGINT or SIGTERM), so that a shell sees
/// the cause.
pub(crate) fn end() -> ! {
    let signal = match WHICH.load(Ordering::Relaxed) as i32 {
        SIGTERM => SIGTERM,
        _ => SIGINT,
    };
    // does not come back, unless something blocks the signal
    let _ = low_level::emulate_default_handler(signal);
    // the status that shells give it
    low_level::exit(128 + signal)
}
