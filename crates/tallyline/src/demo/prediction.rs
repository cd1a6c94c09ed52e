//! The prediction of `tallyline advise`, where QEMU's user emulation is there.

use super::project::Project;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::{Command, Stdio};

/// The speed-up that `tallyline advise` predicts for an edit: its median and expected range.
pub(super) struct Prediction {
    /// The lower end of the speed-up's expected range, including the model's error.
    pub(super) low: f64,
    /// The median of the predicted speed-ups.
    pub(super) median: f64,
    /// The upper end of the speed-up's expected range, including the model's error.
    pub(super) high: f64,
}

/// Asks for advice on a type of the program; why there is no prediction if there is none.
pub(super) fn of(project: &Project, ty: &str, quick: bool) -> Result<Prediction, String> {
    let emulator = format!("qemu-{}", std::env::consts::ARCH);
    let is_there =
        Command::new(&emulator).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !is_there.is_ok_and(|status| status.success()) {
        return Err(format!("there is no {emulator} (Debian: qemu-user), with which advise traces"));
    }
    let document = advice(project, quick).map_err(|error| format!("{error:#}"))?;
    let is_type =
        |field: &Value| field["type"].as_str().is_some_and(|name| name.rsplit("::").next() == Some(ty));
    let is_of_type =
        |finding: &&Value| finding["fields"].as_array().is_some_and(|fields| fields.iter().any(is_type));
    let finding = document["findings"].as_array().and_then(|all| all.iter().find(is_of_type));
    let finding = finding.ok_or_else(|| "the model does not confirm it".to_owned())?;
    let run = &finding["effect"]["run"];
    let [low, median, high] =
        [&run["expected"][0], &run["median"], &run["expected"][1]].map(|value| value.as_f64().unwrap_or(1.0));
    Ok(Prediction { low, median, high })
}

fn advice(project: &Project, quick: bool) -> Result<Value> {
    let advice = project.folder().join("advice.json");
    let (schedules, accesses, packets) = if quick { ("2", "16000", "6000") } else { ("6", "40000", "15000") };
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command
        .args([
            "advise",
            "--json",
            "--whole",
            "--cores",
            "3",
            "--schedules",
            schedules,
            "--accesses",
            accesses,
        ])
        .arg("-o")
        .arg(&advice)
        .arg("--")
        .arg(project.program())
        .args(["2", packets])
        // nothing is left behind
        .env("TALLYLINE_CACHE", project.folder().join("cache"))
        .current_dir(project.folder());
    let output = command.output().context("cannot run tallyline advise")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or("no message");
    anyhow::ensure!(output.status.success(), "tallyline advise: {last}");
    let text = std::fs::read(&advice).context("tallyline advise wrote nothing")?;
    serde_json::from_slice(&text).context("tallyline advise printed no JSON")
}
