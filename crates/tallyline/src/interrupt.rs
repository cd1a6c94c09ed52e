//! Ctrl-C: asks the measurement to stop, so that it leaves no thread, no half a page and no
//! progress bar behind; a second Ctrl-C ends the program at once.

use anyhow::{Context, Result};
use signal_hook::consts::SIGINT;
use signal_hook::{flag, low_level};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on Ctrl-C is remembered.
pub(crate) fn listen() -> Result<()> {
    // in this order: the first Ctrl-C finds the flag down and puts it up, the second finds it up
    flag::register_conditional_default(SIGINT, Arc::clone(&ASKED))
        .and_then(|_| flag::register(SIGINT, Arc::clone(&ASKED)))
        .context("cannot listen for Ctrl-C")?;
    Ok(())
}

/// Whether Ctrl-C was pressed.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Ends the program as Ctrl-C would have, so that a shell or a script sees what happened.
pub(crate) fn end() -> ! {
    // does not come back, unless something blocks the signal
    let _ = low_level::emulate_default_handler(SIGINT);
    // the status that shells give it
    low_level::exit(128 + SIGINT)
}
