//! Output of scenarios, on lines that `ci/vm/run` looks for.

use std::fmt::Display;
use std::io::Write;

/// Result of a scenario (a test of per-CPU counters in the emulated machine): passed, skipped for a reason, or failed.
pub(crate) enum ScenarioResult {
    /// A scenario whose checks all passed.
    Passed,
    /// A scenario that failed, with the reason.
    Failed(String),
    /// A scenario that this machine cannot run, with the reason.
    Skipped(&'static str),
}

impl<E: Display> From<Result<(), E>> for ScenarioResult {
    fn from(result: Result<(), E>) -> ScenarioResult {
        match result {
            Ok(()) => ScenarioResult::Passed,
            Err(error) => ScenarioResult::Failed(error.to_string()),
        }
    }
}

/// Writes one line of the test report, `vm: SCENARIO: TEXT`, to the emulated machine's console; a failed write is
/// ignored.
pub(crate) fn line(scenario: &str, text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "vm: {scenario}: {text}");
}

/// Writes one line of the report, formatted.
macro_rules! say {
    ($scenario:expr, $($format:tt)+) => {
        $crate::report::line($scenario, &format!($($format)+))
    };
}
pub(crate) use say;
