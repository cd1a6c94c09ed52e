//! Scenarios: workloads and disturbances. A scenario is one file and one line here.

mod aborts;
mod arrive;
mod cpus;
mod failures;
mod hotplug_cycles;
mod lazy;
mod load;
mod migrate;
mod nodes;
mod refused;
mod storm;

use crate::report::ScenarioResult;
use std::time::Duration;

/// A test of statctr's per-CPU counters that is run in the emulated machine, in a process of its own: name, description
/// and function.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) run: fn(&Settings) -> ScenarioResult,
}

/// All scenarios (tests of per-CPU counters) of the emulated machine, in the order in which they are run.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "aborts", what: "a kernel that does not abort sections is found out", run: aborts::run },
    Scenario { name: "arrive", what: "CPUs that were not there at boot come under load", run: arrive::run },
    Scenario { name: "migrate", what: "threads are moved from CPU to CPU", run: migrate::run },
    Scenario { name: "nodes", what: "each CPU counts in memory of its own node", run: nodes::run },
    Scenario { name: "refused", what: "the kernel refuses rseq", run: refused::run },
    Scenario { name: "failures", what: "each call for memory fails once", run: failures::run },
    Scenario { name: "lazy", what: "instances of lazy objects lie on their node", run: lazy::run },
    Scenario { name: "storm", what: "CPUs go offline and online under load", run: storm::run },
];

/// The settings of a run of the scenarios (tests of per-CPU counters): number of CPU hotplug cycles, seconds for each
/// scenario, and the one scenario to run, if not all.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Number of times that a CPU is taken away and given back.
    pub(crate) cycles: u32,
    /// Duration of each scenario that has no other measure.
    pub(crate) time: Duration,
    /// The name of the one scenario to run; empty for all.
    pub(crate) only: String,
}

impl Settings {
    /// Parses the settings of a test run from words such as `cycles=20` (CPU hotplug cycles), `seconds=2` (for each
    /// test scenario) and `only=storm` (the one scenario to run); settings not given keep their defaults.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Settings, String> {
        let mut settings = Settings { cycles: 20, time: Duration::from_secs(2), only: String::new() };
        for word in words {
            let number = |text: &str| text.parse().map_err(|_| format!("{word:?} has no number"));
            match word.split_once('=') {
                Some(("cycles", text)) => settings.cycles = number(text)?,
                Some(("seconds", text)) => settings.time = Duration::from_secs(number(text)?.into()),
                Some(("only", text)) => settings.only = text.to_owned(),
                _ => return Err(format!("{word:?} is no setting")),
            }
        }
        Ok(settings)
    }

    /// Formats the number of CPU hotplug cycles and the seconds for each scenario as `cycles=N` and `seconds=N`, the
    /// arguments of a child process that runs one test scenario.
    pub(crate) fn arguments(&self) -> [String; 2] {
        [format!("cycles={}", self.cycles), format!("seconds={}", self.time.as_secs())]
    }

    pub(crate) fn includes(&self, name: &str) -> bool {
        self.only.is_empty() || self.only == name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_the_words_that_they_were_made_of() {
        let words = |words: &[&str]| Settings::parse(words.iter().map(|word| (*word).to_owned()));
        let settings = words(&["cycles=7", "seconds=3", "only=storm"]).expect("settings");
        assert_eq!(settings.arguments(), ["cycles=7", "seconds=3"]);
        assert!(settings.includes("storm") && !settings.includes("nodes"));
        assert!(words(&["cycles=many"]).is_err() && words(&["turns=3"]).is_err());
    }
}
