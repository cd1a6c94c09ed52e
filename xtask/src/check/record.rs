//! The recorded numbers: one TOML file, in which they may only go down.

use super::Measure;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The content of the file.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// The recorded numbers.
    recorded: BTreeMap<String, usize>,
    /// The numbers to arrive at.
    targets: BTreeMap<String, usize>,
    /// The crate that may name a foreign crate, by the foreign crate's name.
    pub(super) owners: BTreeMap<String, String>,
    /// The packages whose public items are counted.
    pub(super) public: Vec<String>,
    /// The file's text.
    text: String,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The recorded number.
    Equal,
    /// Lower than the recorded number, which is to follow.
    Lower,
    /// Higher than this recorded number.
    Higher(usize),
    /// No number is recorded.
    New,
}

impl Config {
    pub(super) fn read(file: &Path) -> Result<Config> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{}: cannot read", file.display()))?;
        Config::parse(text).with_context(|| file.display().to_string())
    }

    fn parse(text: String) -> Result<Config> {
        let config = crate::config::Config::parse(&text)?;
        Ok(Config {
            recorded: config.numbers("recorded"),
            targets: config.numbers("targets"),
            owners: config.texts("owners"),
            public: config.lists("public-api").remove("packages").unwrap_or_default(),
            text,
        })
    }

    /// Returns the number that a ratchet is to arrive at.
    pub(super) fn target(&self, name: &str) -> Option<usize> {
        self.targets.get(name).copied()
    }

    /// Returns the file's text with numbers that are equal or lower; higher ones stay as recorded.
    fn with(&self, measures: &[Measure]) -> String {
        let mut text = String::new();
        let mut in_recorded = false;
        let mut missing: Vec<&Measure> =
            measures.iter().filter(|measure| !self.recorded.contains_key(measure.name)).collect();
        for line in self.text.lines() {
            if line.starts_with('[') {
                in_recorded = line.trim() == "[recorded]";
            }
            let key = line.split('=').next().unwrap_or_default().trim();
            match measures.iter().find(|measure| in_recorded && measure.name == key) {
                Some(measure) if self.recorded.get(key).is_some_and(|&recorded| measure.count < recorded) => {
                    text += &format!("{key} = {}\n", measure.count);
                }
                _ => text += &format!("{line}\n"),
            }
            if line.trim() == "[recorded]" {
                for measure in missing.drain(..) {
                    text += &format!("{} = {}\n", measure.name, measure.count);
                }
            }
        }
        text
    }
}

/// Compares the measured numbers with the recorded ones.
pub(super) fn compare(measures: &[Measure], config: &Config) -> Vec<Verdict> {
    let verdict = |measure: &Measure| match config.recorded.get(measure.name) {
        None => Verdict::New,
        Some(&recorded) if measure.count > recorded => Verdict::Higher(recorded),
        Some(&recorded) if measure.count < recorded => Verdict::Lower,
        Some(_) => Verdict::Equal,
    };
    measures.iter().map(verdict).collect()
}

/// Writes numbers that went down, and those of new ratchets.
pub(super) fn write(file: &Path, measures: &[Measure], config: &Config) -> Result<()> {
    std::fs::write(file, config.with(measures)).with_context(|| format!("{}: cannot write", file.display()))
}

/// Returns an error where a number is higher than recorded, or lower and not recorded yet.
pub(super) fn conclude(measures: &[Measure], verdicts: &[Verdict], recorded_now: bool) -> Result<()> {
    let names = |wanted: fn(&Verdict) -> bool| {
        let pairs = measures.iter().zip(verdicts).filter(|(_, verdict)| wanted(verdict));
        pairs.map(|(measure, _)| measure.name).collect::<Vec<_>>().join(", ")
    };
    let higher = names(|verdict| matches!(verdict, Verdict::Higher(_)));
    anyhow::ensure!(higher.is_empty(), "went up: {higher}; the places are listed above");
    let lower = names(|verdict| matches!(verdict, Verdict::Lower | Verdict::New));
    anyhow::ensure!(
        recorded_now || lower.is_empty(),
        "went down: {lower}; record it: cargo xtask check --record"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Config, Verdict, compare, conclude};
    use crate::check::Measure;

    const TEXT: &str = "# a comment\n[recorded]\n# about one\none = 5\ntwo = 7\n\n[targets]\none = 0\n";

    fn measures(one: usize, two: usize) -> Vec<Measure> {
        let measure = |name, count| Measure { name, title: "", count, places: Vec::new(), note: None };
        vec![measure("one", one), measure("two", two)]
    }

    fn config() -> Config {
        Config::parse(TEXT.to_owned()).expect("parses")
    }

    #[test]
    fn equal_numbers_pass() {
        let verdicts = compare(&measures(5, 7), &config());
        assert_eq!(verdicts, [Verdict::Equal, Verdict::Equal]);
        assert!(conclude(&measures(5, 7), &verdicts, false).is_ok());
    }

    #[test]
    fn a_higher_number_fails_whether_or_not_it_is_recorded() {
        let verdicts = compare(&measures(6, 7), &config());
        assert_eq!(verdicts, [Verdict::Higher(5), Verdict::Equal]);
        for recorded in [false, true] {
            let error = conclude(&measures(6, 7), &verdicts, recorded).expect_err("fails").to_string();
            assert!(error.contains("went up: one"), "{error}");
        }
    }

    #[test]
    fn a_lower_number_fails_until_it_is_recorded() {
        let verdicts = compare(&measures(5, 2), &config());
        let error = conclude(&measures(5, 2), &verdicts, false).expect_err("fails").to_string();
        assert_eq!(error, "went down: two; record it: cargo xtask check --record");
        assert!(conclude(&measures(5, 2), &verdicts, true).is_ok());
    }

    #[test]
    fn recording_lowers_numbers_and_keeps_everything_else() {
        let text = config().with(&measures(9, 2));
        assert_eq!(text, TEXT.replace("two = 7", "two = 2"));
    }

    #[test]
    fn recording_adds_new_ratchets() {
        let mut measures = measures(5, 7);
        measures.push(Measure { name: "three", title: "", count: 3, places: Vec::new(), note: None });
        let verdicts = compare(&measures, &config());
        assert_eq!(verdicts[2], Verdict::New);
        let text = config().with(&measures);
        assert_eq!(Config::parse(text).expect("parses").recorded.get("three"), Some(&3));
    }
}
