//! Figures of two binaries in pairs of runs.

use super::outcome;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Benchmarks whose figures are compared: the least time of each side.
const BENCHES: [&str; 2] = ["update --rounds 15 --threads 1 --json", "fold --rounds 5 --threads 1 --json"];

/// Commands that are timed as a whole: the least of a few runs of each binary counts in a round.
const COMMANDS: [(&str, &str); 5] = [
    ("layout: a kernel's types", "pahole /sys/kernel/btf/vmlinux"),
    ("layout: one type of a kernel", "layout task_struct --file /sys/kernel/btf/vmlinux"),
    ("layout: JSON of a kernel's types", "layout --format json --file /sys/kernel/btf/vmlinux"),
    ("report: types of a recording", "report --json -s type,typeoff -i own/kernel.data"),
    ("report: call chains", "report --json -s sym -i own/chains.data"),
];

/// Runs of a command in a round, of which the fastest counts.
const REPEATS: usize = 3;

/// The highest median ratio that is not called slower.
const MAX_RATIO: f64 = 1.05;

/// The ratios of a figure, new over old, a round each.
type Ratios = BTreeMap<String, Vec<f64>>;

/// Times both binaries alternately and prints the median of the ratios with their quartiles.
pub(super) fn run(old: &Path, new: &Path, folder: &Path, rounds: usize) -> Result<()> {
    anyhow::ensure!(rounds > 0, "expected at least one round");
    let inputs = folder.join("inputs");
    let mut ratios = Ratios::new();
    for round in 0..rounds {
        for (title, words) in COMMANDS {
            let words = words.split(' ').map(str::to_owned).collect::<Vec<_>>();
            pair(
                round,
                old,
                new,
                |binary| fastest(binary, &inputs, &words),
                |old, new| {
                    ratios.entry(title.to_owned()).or_default().push(new / old);
                },
            )?;
        }
        for words in BENCHES {
            let words = words.split(' ').map(str::to_owned).collect::<Vec<_>>();
            pair(
                round,
                old,
                new,
                |binary| figures(binary, &inputs, &words),
                |old, new| {
                    for (name, old) in old {
                        if let Some(new) = new.get(&name) {
                            ratios.entry(format!("{}: {name}", words[0])).or_default().push(new / old);
                        }
                    }
                },
            )?;
        }
    }
    println!("new over old, {rounds} pairs: median (quartiles)");
    for (name, ratios) in &mut ratios {
        let [first, median, third] = quartiles(ratios);
        let mark = match (median > MAX_RATIO, first < 1.0) {
            (true, false) => "  slower",
            (true, true) => "  slower, or noise: more rounds, or a quieter machine",
            (false, _) => "",
        };
        println!("{median:6.3} ({first:.3} to {third:.3})  {name}{mark}");
    }
    Ok(())
}

/// Measures both binaries, in turns the one and the other first.
fn pair<T>(
    round: usize,
    old: &Path,
    new: &Path,
    measure: impl Fn(&Path) -> Result<T>,
    mut done: impl FnMut(T, T),
) -> Result<()> {
    if round.is_multiple_of(2) {
        let old = measure(old)?;
        done(old, measure(new)?);
    } else {
        let new = measure(new)?;
        done(measure(old)?, new);
    }
    Ok(())
}

/// Returns the shortest time of a command, in seconds.
fn fastest(binary: &Path, inputs: &Path, words: &[String]) -> Result<f64> {
    let mut fastest = f64::INFINITY;
    for _ in 0..REPEATS {
        let mut command = outcome::command(binary, inputs, words);
        let start = Instant::now();
        let output = command.output().with_context(|| binary.display().to_string())?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
        anyhow::ensure!(
            output.status.success(),
            "{}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(fastest)
}

/// Runs a benchmark and returns its figures: by the `tallyline-bench` beside the binary, or where there is none by the
/// binary itself, of which benchmarks were a sub-command once.
fn figures(binary: &Path, inputs: &Path, words: &[String]) -> Result<BTreeMap<String, f64>> {
    let beside = binary.with_file_name("tallyline-bench");
    let output = match beside.exists() {
        true => outcome::command(&beside, inputs, words).output(),
        false => outcome::command(binary, inputs, &[&["bench".to_owned()], words].concat()).output(),
    };
    let output = output.with_context(|| binary.display().to_string())?;
    anyhow::ensure!(
        output.status.success(),
        "{}: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let document: Value = serde_json::from_slice(&output.stdout).with_context(|| words.join(" "))?;
    Ok(medians(&document))
}

/// Returns the least time of each case of a benchmark's document.
fn medians(document: &Value) -> BTreeMap<String, f64> {
    let cases = document["cases"].as_array().into_iter().flatten();
    let figure = |case: &Value| {
        let name = case["case"].as_str()?;
        let unit = case["unit"].as_str()?;
        let value = case["min"].as_f64().filter(|value| *value > 0.0)?;
        unit.starts_with("ns").then(|| (name.to_owned(), value))
    };
    cases.filter_map(figure).collect()
}

/// Returns the quartiles of numbers.
fn quartiles(numbers: &mut [f64]) -> [f64; 3] {
    numbers.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| {
        let at = (numbers.len() - 1) as f64 * quarter as f64 / 4.0;
        let (low, high) = (numbers[at.floor() as usize], numbers[at.ceil() as usize]);
        low + (high - low) * at.fract()
    })
}

#[cfg(test)]
mod tests {
    use super::{medians, quartiles};

    #[test]
    fn quartiles_lie_between_numbers() {
        assert_eq!(quartiles(&mut [4.0, 1.0, 3.0, 2.0, 5.0]), [2.0, 3.0, 4.0]);
        assert_eq!(quartiles(&mut [1.0, 2.0]), [1.25, 1.5, 1.75]);
        assert_eq!(quartiles(&mut [7.0]), [7.0, 7.0, 7.0]);
    }

    #[test]
    fn figures_are_times_by_case() {
        let document = serde_json::json!({"cases": [
            {"case": "fixed/inc", "unit": "ns/op", "min": 0.5},
            {"case": "memory", "unit": "bytes", "min": 8.0},
            {"case": "none", "unit": "ns/op", "min": 0.0},
        ]});
        assert_eq!(medians(&document).into_iter().collect::<Vec<_>>(), [("fixed/inc".to_owned(), 0.5)]);
    }
}
