//! Recording of a binary's outputs, and comparison with them.

use super::{cases, changes, inputs, outcome};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The list of cases in the folder: a line each, the words with tabs between.
const CASES: &str = "cases.txt";

/// The checksums of the inputs that are not in the folder.
const SUMS: &str = "inputs.txt";

/// The most lines that are shown of a difference.
const SHOWN: usize = 6;

/// Records the outputs of a binary.
pub(super) fn record(root: &Path, binary: &Path, folder: &Path, files: &[std::path::PathBuf]) -> Result<()> {
    anyhow::ensure!(!folder.join(CASES).exists(), "{}: there is a baseline already", folder.display());
    for part in ["inputs", "outputs"] {
        std::fs::create_dir_all(folder.join(part)).with_context(|| folder.display().to_string())?;
    }
    let folder = &folder.canonicalize()?;
    let in_folder = folder.join("inputs");
    let inputs = inputs::gather(root, binary, &in_folder, files)?;
    let cases = cases::cases(&in_folder, &inputs);
    let outputs = run_all(binary, &in_folder, &cases)?;
    for (number, output) in outputs.iter().enumerate() {
        std::fs::write(folder.join("outputs").join(file_name(number)), output)?;
    }
    let mut sums = String::new();
    for input in inputs.debug_files.iter().chain(&inputs.recordings).chain(&inputs.traces) {
        sums += &format!("{:016x}\t{input}\n", checksum(&in_folder.join(input))?);
    }
    std::fs::write(folder.join(SUMS), sums)?;
    let lines: String = cases.iter().map(|case| case.to_line() + "\n").collect();
    std::fs::write(folder.join(CASES), lines)?;
    println!(
        "{} cases on {} debug files, {} recordings, {} traces; {} bytes of output",
        cases.len(),
        inputs.debug_files.len(),
        inputs.recordings.len(),
        inputs.traces.len(),
        outputs.iter().map(Vec::len).sum::<usize>()
    );
    Ok(())
}

/// Compares the outputs of a binary with those recorded.
pub(super) fn compare(root: &Path, binary: &Path, folder: &Path, only: Option<&str>) -> Result<()> {
    let in_folder = folder.join("inputs");
    let read = |name: &str| {
        std::fs::read_to_string(folder.join(name)).with_context(|| folder.join(name).display().to_string())
    };
    for line in read(SUMS)?.lines() {
        let (sum, input) = line.split_once('\t').with_context(|| format!("{SUMS}: a line without a tab"))?;
        let now = checksum(&in_folder.join(input))?;
        anyhow::ensure!(
            format!("{now:016x}") == sum,
            "{input}: the input has changed since the baseline was recorded"
        );
    }
    let changes = changes::read(root)?;
    let all: Vec<(usize, cases::Case)> =
        read(CASES)?.lines().map(cases::Case::from_line).enumerate().collect();
    let chosen: Vec<(usize, cases::Case)> =
        all.into_iter().filter(|(_, case)| only.is_none_or(|part| case.name().contains(part))).collect();
    anyhow::ensure!(!chosen.is_empty(), "no case contains {}", only.unwrap_or_default());
    let cases: Vec<cases::Case> = chosen.iter().map(|(_, case)| case.clone()).collect();
    let outputs = run_all(binary, &in_folder, &cases)?;
    let new_folder = folder.join("different");
    if new_folder.is_dir() {
        std::fs::remove_dir_all(&new_folder)?;
    }
    let (mut differing, mut on_purpose) = (0, 0);
    let mut used = BTreeSet::new();
    for ((number, case), new) in chosen.iter().zip(&outputs) {
        let old = std::fs::read(folder.join("outputs").join(file_name(*number)))?;
        let (expected, names) = changes::apply(&changes, &case.name(), &old);
        used.extend(names);
        if expected == *new {
            continue;
        }
        if let Some(name) = changes::may_differ(&changes, &case.name()) {
            used.insert(name);
            on_purpose += 1;
            continue;
        }
        differing += 1;
        std::fs::create_dir_all(&new_folder)?;
        std::fs::write(new_folder.join(file_name(*number)), new)?;
        println!("{}: {} differs", file_name(*number), case.name());
        difference(&expected, new).iter().for_each(|line| println!("    {line}"));
    }
    for change in changes.iter().filter(|change| only.is_none() && !used.contains(change.name.as_str())) {
        println!("the change {} occurs nowhere", change.name);
    }
    println!(
        "{} cases: {} changes on purpose occur, by which {on_purpose} outputs differ; {differing} others differ",
        chosen.len(),
        used.len()
    );
    anyhow::ensure!(differing == 0, "outputs differ; the new ones are in {}", new_folder.display());
    Ok(())
}

fn file_name(number: usize) -> String {
    format!("{number:04}.txt")
}

/// Runs all cases, as many at once as there are CPUs.
fn run_all(binary: &Path, inputs: &Path, cases: &[cases::Case]) -> Result<Vec<Vec<u8>>> {
    let next = AtomicUsize::new(0);
    let worker = || -> Result<Vec<(usize, Vec<u8>)>> {
        let mut outputs = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else { return Ok(outputs) };
            outputs.push((number, outcome::of(binary, inputs, &case.words).with_context(|| case.name())?));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut outputs = vec![Vec::new(); cases.len()];
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        for handle in handles {
            let done = handle.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
            done.into_iter().for_each(|(number, output)| outputs[number] = output);
        }
        Ok(outputs)
    })
}

/// Returns the first lines that differ, old and new.
fn difference(old: &[u8], new: &[u8]) -> Vec<String> {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    let mut lines = vec![format!("from line {} on, {} lines old, {} new", start + 1, old.len(), new.len())];
    for (mark, text) in [("-", old), ("+", new)] {
        lines.extend(text.iter().take(SHOWN / 2).map(|line| format!("{mark} {line:.160}")));
    }
    lines
}

/// Returns a file's checksum (FNV-1a of its words and its length): inputs change by accident only.
fn checksum(file: &Path) -> Result<u64> {
    let mut file = std::fs::File::open(file).with_context(|| format!("{}: cannot open", file.display()))?;
    let mut buffer = vec![0; 1 << 16];
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(sum);
        }
        for &byte in &buffer[..read] {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_begins_at_the_first_line_and_ends_at_the_last() {
        let lines = difference(b"a\nb\nc\nd\n", b"a\nX\nd\n");
        assert_eq!(lines, ["from line 2 on, 2 lines old, 1 new", "- b", "- c", "+ X"]);
    }

    #[test]
    fn ends_of_different_lengths_are_a_difference() {
        assert_eq!(difference(b"a\n", b"a\na\n"), ["from line 2 on, 0 lines old, 1 new", "+ a"]);
    }
}
