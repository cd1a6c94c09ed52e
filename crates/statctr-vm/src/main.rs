//! The first program of the virtual machines of `ci/vm/run`: statctr under a real kernel
//! whose CPUs come and go and whose memory has nodes.
//!
//! As process 1 it mounts what it needs, runs every scenario in a process of its own, says in
//! numbers what happened, and switches the machine off. On a running system it runs the scenarios
//! that are named: `statctr-vm storm cycles=200` as root does to a real machine's CPUs what the
//! virtual one's go through.
//!
//! Left out: events of which a reader must see all items together. Emulators tear vector stores, so
//! the library's own tests look at that, on real processors.

mod init;
mod os;
mod report;
mod scenario;

#[path = "../../statctr/tests/common/kit.rs"]
#[allow(dead_code)] // the tests use all of it
mod kit;

use report::ScenarioResult;
use scenario::{SCENARIOS, Settings};
use std::process::ExitCode;

const HELP: &str = "\
Counts on CPUs that come and go. Run it as the first program of a virtual machine
(ci/vm/run does), or as root on a machine whose CPUs may be switched off.

Usage: statctr-vm SCENARIO [cycles=N] [seconds=N]

Examples:
  statctr-vm storm cycles=200
  statctr-vm all seconds=2

Exit status: 0 all is as it should be, 1 it is not, 2 wrong usage.

Scenarios:
  all           each of these in turn";

fn main() -> ExitCode {
    if std::process::id() == 1 {
        init::run();
    }
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let settings = match Settings::parse(arguments) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("statctr-vm: {error}; see --help");
            return ExitCode::from(2);
        }
    };
    match name.as_str() {
        "--help" | "-h" => {
            println!("{HELP}");
            for scenario in SCENARIOS {
                println!("  {:<13} {}", scenario.name, scenario.what);
            }
            ExitCode::SUCCESS
        }
        "all" => {
            let failed = init::run_all(&settings);
            if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        name => match SCENARIOS.iter().find(|scenario| scenario.name == name) {
            Some(scenario) => match (scenario.run)(&settings) {
                ScenarioResult::Passed => ExitCode::SUCCESS,
                ScenarioResult::Skipped(why) => {
                    report::line(scenario.name, &format!("skipped: {why}"));
                    ExitCode::SUCCESS
                }
                ScenarioResult::Failed(why) => {
                    report::line(scenario.name, &format!("BROKEN: {why}"));
                    ExitCode::from(1)
                }
            },
            None => {
                eprintln!("statctr-vm: there is no scenario {name:?}; see --help");
                ExitCode::from(2)
            }
        },
    }
}
