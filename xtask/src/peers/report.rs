//! Reports against perf's on the same files: rows and their numbers of samples, by each key that both have.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Keys that are compared on samples of the clock.
const CLOCK: [&str; 5] = ["pid", "comm", "dso", "cpu", "addr"];

/// Keys that are compared there for the program alone: the dynamic linker has symbols without a kind, and no lines.
const CLOCK_PROGRAM: [&str; 3] = ["sym", "srcfile", "srcline"];

/// Keys that are compared on a file that was written with every field. `mem`, `snoop` and `tlb` are not: perf tells rows
/// apart by the older fields alone and shows the text of the first sample of each, and cuts it; in that file old and new
/// fields have nothing to do with each other.
const MEMORY: [&str; 13] = [
    "locked",
    "blocked",
    "local_weight",
    "weight",
    "local_ins_lat",
    "ins_lat",
    "local_retire_lat",
    "retire_lat",
    "phys_daddr",
    "data_page_size",
    "code_page_size",
    "comm",
    "cpu",
];

/// Keys that are compared on a recording of a machine with memory events.
const RECORDED: [&str; 10] =
    ["mem", "snoop", "tlb", "locked", "blocked", "local_weight", "weight", "dso", "comm", "cpu"];

/// The character between perf's columns: no name has it.
const SEPARATOR: char = '\u{1}';

/// The number of samples of each row, by the texts of its keys.
type Rows = BTreeMap<Vec<String>, i64>;

/// The two programs, and the folder that they run in.
struct Peers {
    perf: PathBuf,
    tallyline: PathBuf,
    folder: PathBuf,
}

/// Compares the reports on `clock.data`, if it is there, and `memory.data` of a folder, and on a recording of
/// another machine. Returns an error if a row differs.
pub(crate) fn run(perf: &Path, tallyline: &Path, folder: &Path, recorded: Option<&Path>) -> Result<()> {
    let peers =
        Peers { perf: perf.to_owned(), tallyline: tallyline.to_owned(), folder: folder.canonicalize()? };
    let mut equal = true;
    if peers.folder.join("clock.data").is_file() {
        for key in CLOCK {
            equal &= peers.compare("clock", "clock.data", key, &[])?;
        }
        for key in CLOCK_PROGRAM {
            equal &= peers.compare("clock", "clock.data", key, &["--dsos", "program"])?;
        }
        equal &= peers.types()?;
    } else {
        println!("recordings skipped: the kernel forbids sampling");
    }
    for key in MEMORY {
        equal &= peers.compare("memory", "memory.data", key, &["--mem-mode"])?;
    }
    if let Some(path) = recorded {
        let path = path.canonicalize().with_context(|| format!("{}: cannot find", path.display()))?;
        let path = path.to_str().context("the recording's path is not UTF-8")?;
        for key in RECORDED {
            equal &= peers.compare("weight_struct", path, key, &["--mem-mode"])?;
        }
    }
    anyhow::ensure!(equal, "reports differ from perf's");
    Ok(())
}

impl Peers {
    fn perf_rows(&self, file: &str, keys: &str, mode: &[&str]) -> Result<Rows> {
        let separator = SEPARATOR.to_string();
        let words = ["report", "--stdio", "-i", file, "-n", "-t", &separator, "-s", keys];
        let output = Command::new(&self.perf).args(words).args(mode).current_dir(&self.folder).output();
        let output = output.with_context(|| format!("{}: cannot run", self.perf.display()))?;
        rows_of_text(&String::from_utf8_lossy(&output.stdout))
    }

    fn our_rows(&self, file: &str, keys: &str, mode: &[&str]) -> Result<Rows> {
        let words = ["report", "--json", "-i", file, "-s", keys, "--skid", "none"];
        let output = Command::new(&self.tallyline).args(words).args(mode).current_dir(&self.folder).output();
        let output = output.with_context(|| format!("{}: cannot run", self.tallyline.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "tallyline report -s {keys}: {said}");
        rows_of_json(&output.stdout)
    }

    /// Compares the rows by a key, and says how it went.
    fn compare(&self, name: &str, file: &str, key: &str, mode: &[&str]) -> Result<bool> {
        let (theirs, ours) = (self.perf_rows(file, key, mode)?, self.our_rows(file, key, mode)?);
        let (plain_theirs, plain_ours) = (plain(&theirs), plain(&ours));
        if plain_theirs == plain_ours && !ours.is_empty() {
            println!("{name}: {key}: {} rows, {} samples equal", ours.len(), ours.values().sum::<i64>());
            return Ok(true);
        }
        let only = |left: &Rows, right: &Rows| -> Vec<String> {
            let differs = left.iter().filter(|(texts, count)| right.get(*texts) != Some(count));
            differs.map(|(texts, count)| format!("{}: {count}", texts.join(" | "))).collect()
        };
        println!(
            "{name}: {key} differs: perf {:?}, here {:?}",
            only(&plain_theirs, &plain_ours),
            only(&plain_ours, &plain_theirs)
        );
        Ok(false)
    }

    /// Compares the number of samples by type, and says how many have one. perf, as it seems, takes any instruction
    /// behind an add, sub, cmp and others for fused with it, and charges it to the operand of that; so types are
    /// listed, not compared.
    fn types(&self) -> Result<bool> {
        let keys = "type,typeoff";
        let (theirs, ours) =
            (self.perf_rows("clock.data", keys, &[])?, self.our_rows("clock.data", keys, &[])?);
        let (all_theirs, all_ours) = (theirs.values().sum::<i64>(), ours.values().sum::<i64>());
        if all_theirs != all_ours {
            println!("clock: {all_theirs} samples by perf, {all_ours} here");
        }
        println!("clock: typed {} by perf, {} here, of {all_ours} samples", typed(&theirs), typed(&ours));
        Ok(all_theirs == all_ours)
    }
}

/// Reads the rows of perf's table: share, samples and a column for each key.
fn rows_of_text(text: &str) -> Result<Rows> {
    let mut rows = Rows::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut columns = line.split(SEPARATOR).skip(1);
        let samples = columns.next().map(str::trim).and_then(|samples| samples.parse::<i64>().ok());
        let samples = samples.with_context(|| format!("perf report: a row without samples: {line}"))?;
        *rows.entry(columns.map(spaced).collect()).or_default() += samples;
    }
    Ok(rows)
}

/// Reads the rows of our document.
fn rows_of_json(text: &[u8]) -> Result<Rows> {
    let document: Value = serde_json::from_slice(text).context("tallyline report: not a JSON document")?;
    let mut rows = Rows::new();
    for row in document["rows"].as_array().context("tallyline report: no rows")? {
        let keys = row["keys"].as_object().context("tallyline report: a row without keys")?;
        let samples = row["samples"].as_i64().context("tallyline report: a row without samples")?;
        let texts = keys.values().map(|text| spaced(text.as_str().unwrap_or_default()));
        *rows.entry(texts.collect()).or_default() += samples;
    }
    Ok(rows)
}

/// Returns a text with one space wherever it has some.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns rows with numbers as both sides would write them: perf pads them with zeros.
fn plain(rows: &Rows) -> Rows {
    let mut result = Rows::new();
    for (texts, count) in rows {
        *result.entry(texts.iter().map(|text| without_zeros(text)).collect()).or_default() += count;
    }
    result
}

/// Returns a text without the zeros that a number in front is padded with; its sign and last digit stay.
fn without_zeros(text: &str) -> String {
    let (sign, number) = text.strip_prefix('-').map_or(("", text), |number| ("-", number));
    let mut rest = number;
    while let Some(shorter) = rest.strip_prefix('0')
        && shorter.starts_with(|next: char| next.is_ascii_digit())
    {
        rest = shorter;
    }
    format!("{sign}{rest}")
}

/// Returns the number of samples with a type.
fn typed(rows: &Rows) -> i64 {
    let has_type = |texts: &[String]| texts.first().is_some_and(|text| !text.starts_with('('));
    rows.iter().filter(|(texts, _)| has_type(texts)).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::{plain, rows_of_json, rows_of_text, typed, without_zeros};

    #[test]
    fn rows_of_both_sides_are_the_same() {
        let text = "# Overhead\n\n 60.0%\u{1}  12\u{1}  struct  order \u{1}+8\n 40.0%\u{1}   3\u{1}(unknown)\u{1}+0\n";
        let json = br#"{"rows": [
            {"keys": {"type": "struct order", "typeoff": "+8"}, "samples": 5},
            {"keys": {"type": "(unknown)", "typeoff": "+0"}, "samples": 3},
            {"keys": {"type": "struct order", "typeoff": "+8"}, "samples": 7}]}"#;
        let theirs = rows_of_text(text).expect("rows");
        assert_eq!(theirs, rows_of_json(json).expect("rows"));
        assert_eq!(typed(&theirs), 12);
    }

    #[test]
    fn a_row_without_samples_is_an_error() {
        assert!(rows_of_text("60.0%\u{1}many\u{1}x\n").is_err());
        assert!(rows_of_json(br#"{"rows": [{"keys": {}}]}"#).is_err());
    }

    #[test]
    fn padding_is_taken_from_numbers_in_front() {
        let pairs = [
            ("007", "7"),
            ("-004", "-4"),
            ("0", "0"),
            ("0x10", "0x10"),
            ("000", "0"),
            ("a00", "a00"),
            ("", ""),
        ];
        for (padded, expected) in pairs {
            assert_eq!(without_zeros(padded), expected, "{padded}");
        }
    }

    #[test]
    fn rows_that_are_equal_without_padding_are_one() {
        let rows = rows_of_text("1%\u{1}1\u{1}01\n1%\u{1}2\u{1}1\n").expect("rows");
        assert_eq!(plain(&rows).into_values().collect::<Vec<_>>(), [3]);
    }
}
