//! The command lines of a baseline.

use super::inputs::{Inputs, is_small};
use std::path::Path;

/// A command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    /// The words after the binary's name; inputs are relative to their folder, or absolute.
    pub(super) words: Vec<String>,
}

impl Case {
    fn new(words: &str, input: &str) -> Case {
        Case {
            words: words
                .split(' ')
                .map(|word| if word == "{}" { input.to_owned() } else { word.to_owned() })
                .collect(),
        }
    }

    /// Returns the name: the words as they are.
    pub(super) fn name(&self) -> String {
        self.words.join(" ")
    }

    /// Writes a case as a line of the list.
    pub(super) fn to_line(&self) -> String {
        self.words.join("\t")
    }

    /// Reads a line of the list.
    pub(super) fn from_line(line: &str) -> Case {
        Case { words: line.split('\t').map(str::to_owned).collect() }
    }
}

/// Command lines for the running kernel's BTF.
const KERNEL: [&str; 23] = [
    "pahole {}",
    "pahole -s {}",
    "pahole -n {}",
    "pahole -N {}",
    "pahole -E {}",
    "pahole -P {}",
    "pahole -M {}",
    "pahole -q {}",
    "pahole -r {}",
    "pahole -T {}",
    "pahole -l {}",
    "pahole -a -A {}",
    "pahole --hex {}",
    "pahole --packed {}",
    "pahole --sort {}",
    "pahole --compile -C sk_buff {}",
    "pahole -C task_struct -R -S {}",
    "pahole -i sk_buff {}",
    "pahole -f sk_buff {}",
    "layout --format json --file {}",
    "layout --format html -C tcp_sock,sk_buff,no_such_type --file {}",
    "groups --brief --file {}",
    "reorganize -C tcp_sock,inode --file {}",
];

/// Command lines for every debug file.
const DEBUG_FILE: [&str; 4] =
    ["pahole {}", "pahole -s {}", "pahole -E -I {}", "layout --format json --file {}"];

/// Command lines for small debug files, too.
const SMALL_FILE: [&str; 12] = [
    "pahole -P {}",
    "pahole -a -A {}",
    "pahole -T -u {}",
    "pahole --compile {}",
    "pahole -F btf {}",
    "pahole -c 32 -r --hex {}",
    "layout --format html --file {}",
    "layout --compile --file {}",
    "groups --file {}",
    "groups --format json --file {}",
    "reorganize --file {}",
    "reorganize --json --file {}",
];

/// Command lines for every recording.
const RECORDING: [&str; 13] = [
    "evlist -F -i {}",
    "evlist -g -i {}",
    "report -i {}",
    "report --json -s pid,comm,dso,sym -i {}",
    "report --json -s type,typeoff,symoff -i {}",
    "report --skid none -H -s dso,sym,type -n -i {}",
    "report --json -s srcline -i {}",
    "mem -i {}",
    "mem --json -i {}",
    "sharing -i {}",
    "sharing --json -i {}",
    "annotate --stdio -i {}",
    "annotate --code --stdio -i {}",
];

/// Command lines for recordings of the binary itself, whose programs are there.
const OWN_RECORDING: [&str; 5] = [
    "report --explain #0 -i {}",
    "report --explain #7 -i {}",
    "report --json -s type,typeoff --skid none -i {}",
    "annotate --type-stat --plain --stdio -i {}",
    "annotate struct~order --stdio -i {}",
];

/// Command lines without an input: what goes wrong is said in the same words.
const ERRORS: [&str; 10] = [
    "layout no_such_type --file /sys/kernel/btf/vmlinux",
    "layout --file no-such-file",
    "layout --file /etc/hostname",
    "report -i no-such-file",
    "report -i /etc/hostname",
    "report -s nonsense -i /etc/hostname",
    "pahole --no-such-option",
    "check --policy no-such-file --file /sys/kernel/btf/vmlinux",
    "replay no-such-file",
    "diff no-such-file no-such-file",
];

/// Returns the command lines for these inputs.
pub(super) fn cases(folder: &Path, inputs: &Inputs) -> Vec<Case> {
    let mut cases: Vec<Case> = ERRORS.iter().map(|words| Case::new(words, "")).collect();
    let kernel = "/sys/kernel/btf/vmlinux";
    if Path::new(kernel).is_file() {
        cases.extend(KERNEL.iter().map(|words| Case::new(words, kernel)));
    }
    for file in &inputs.debug_files {
        cases.extend(DEBUG_FILE.iter().map(|words| Case::new(words, file)));
        if is_small(&folder.join(file)) {
            cases.extend(SMALL_FILE.iter().map(|words| Case::new(words, file)));
        }
    }
    for pair in
        inputs.debug_files.windows(2).filter(|pair| pair.iter().all(|file| is_small(&folder.join(file))))
    {
        for words in ["diff -v --format text", "diff --format json"] {
            let mut case = Case::new(words, "");
            case.words.extend(pair.iter().cloned());
            cases.push(case);
        }
    }
    for recording in &inputs.recordings {
        let own = recording.starts_with("own/");
        let words = RECORDING.iter().chain(if own { OWN_RECORDING.as_slice() } else { &[] });
        for words in words {
            let mut case = Case::new(words, recording);
            // a space in an operand
            case.words.iter_mut().for_each(|word| *word = word.replace('~', " "));
            // programs of recordings of other machines lie beside them, if at all
            let root = Path::new(recording).with_file_name("root");
            if !own && !words.starts_with("evlist") && root.is_dir() {
                case.words.extend(["--symfs".to_owned(), root.display().to_string()]);
            }
            cases.push(case);
        }
    }
    for trace in &inputs.traces {
        cases.extend(["replay {}", "replay --json {}"].iter().map(|words| Case::new(words, trace)));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::{Case, cases};
    use crate::baseline::inputs::Inputs;
    use std::path::Path;

    #[test]
    fn lines_keep_words_with_spaces() {
        let case = Case { words: vec!["annotate".to_owned(), "struct order".to_owned()] };
        assert_eq!(Case::from_line(&case.to_line()), case);
    }

    #[test]
    fn every_input_is_read_and_no_case_is_twice() {
        let inputs = Inputs {
            debug_files: vec!["a.o".to_owned(), "b.o".to_owned()],
            recordings: vec!["own/c.data".to_owned(), "/x/d.data".to_owned()],
            traces: vec!["own/e.trace".to_owned()],
        };
        let cases = cases(Path::new("/nowhere"), &inputs);
        for input in ["a.o", "b.o", "own/c.data", "/x/d.data", "own/e.trace"] {
            assert!(cases.iter().any(|case| case.words.iter().any(|word| word == input)), "{input}");
        }
        let names: std::collections::BTreeSet<String> = cases.iter().map(Case::name).collect();
        assert_eq!(names.len(), cases.len());
        assert!(!names.iter().any(|name| name.contains("{}")));
    }
}
