//! The compiler's calls for the units of a project: `compile_commands.json`.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tallyline_source::Language;

/// One compiler call of a project's build, an entry of `compile_commands.json`: folder, arguments, source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompileCommand {
    /// The folder that the compiler runs in.
    pub(crate) folder: PathBuf,
    /// The source file of the unit.
    pub(crate) source: PathBuf,
    /// The compiler and its arguments.
    pub(crate) words: Vec<String>,
}

/// The most calls that are read.
const COMMANDS: usize = 100_000;

/// Finds a project's `compile_commands.json`: the path `named` by the user, else in the project's root or a folder
/// directly below it. `None` if there is none.
pub(crate) fn find(named: Option<&Path>, root: &Path) -> Option<PathBuf> {
    const NAME: &str = "compile_commands.json";
    if let Some(named) = named {
        return Some(if named.is_dir() { named.join(NAME) } else { named.to_path_buf() });
    }
    let inside = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path().join(NAME));
    let mut inside: Vec<PathBuf> = inside.filter(|path| path.is_file()).collect();
    inside.sort();
    std::iter::once(root.join(NAME)).chain(inside).find(|path| path.is_file())
}

/// Reads the compiler calls in a `compile_commands.json`. A source file that is compiled several times, as for
/// several configurations, has several.
pub(crate) fn read(path: &Path) -> Result<Vec<CompileCommand>> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &[u8]) -> Result<Vec<CompileCommand>> {
    let document: Value = serde_json::from_slice(text).context("not JSON")?;
    let Some(entries) = document.as_array() else { bail!("not a list of compiler's calls") };
    let mut commands: Vec<CompileCommand> = Vec::new();
    for entry in entries.iter().take(COMMANDS) {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let (Some(folder), Some(source)) = (text("directory"), text("file")) else { continue };
        let words: Vec<String> = match (entry.get("arguments").and_then(Value::as_array), text("command")) {
            (Some(words), _) => words.iter().filter_map(Value::as_str).map(str::to_string).collect(),
            (None, Some(command)) => split(command),
            (None, None) => continue,
        };
        let folder = PathBuf::from(folder);
        let command = CompileCommand { source: super::place::normal(&folder.join(source)), folder, words };
        if command.words.len() > 1 && !commands.contains(&command) {
            commands.push(command);
        }
    }
    Ok(commands)
}

/// Splits a command line into arguments as a shell does, with quotes and backslashes but without expansions.
pub(crate) fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (Some(_), '\\') => match rest.next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => word.get_or_insert_default().push(next),
                Some(next) => word.get_or_insert_default().extend(['\\', next]),
                None => {}
            },
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(rest.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

impl CompileCommand {
    /// Returns the compiler call's arguments without those that write files or stop early: no output, no dependency
    /// files, no preprocessing only.
    pub(crate) fn bare(&self) -> Vec<String> {
        let mut words = Vec::with_capacity(self.words.len());
        let mut all = self.words.iter();
        while let Some(word) = all.next() {
            match word.as_str() {
                "-o" | "-MF" | "-MT" | "-MQ" | "-MJ" => {
                    all.next();
                }
                "-c" | "-S" | "-E" | "-MD" | "-MMD" | "-MP" | "-M" | "-MM" | "-MG" | "-save-temps"
                | "-pipe" => {}
                // stale precompiled headers have the old declarations
                word if word.starts_with("-Wp,-MD")
                    || word.starts_with("-Wp,-MMD")
                    || word.starts_with("-gsplit-dwarf") => {}
                // an object of link-time optimisation has no layouts of its own
                word if word.starts_with("-flto") => {}
                word if word.starts_with("-o") && word.len() > 2 && !word.starts_with("-object") => {}
                // a wrapper of the compiler that keeps results by contents is no harm, one that sends them away is slow
                _ => words.push(word.clone()),
            }
        }
        words
    }

    /// Returns `true` if the called compiler is clang.
    pub(crate) fn is_clang(&self) -> bool {
        self.words
            .iter()
            .take(2)
            .any(|word| word.rsplit('/').next().is_some_and(|name| name.contains("clang")))
    }

    /// Returns `true` if the unit is C++: by the compiler's name, the `-x` of its source, else the file's extension.
    pub(crate) fn is_cpp(&self) -> bool {
        let named = self.words.windows(2).rev().find_map(|words| match words {
            [option, language] if option == "-x" => Some(language.as_str()),
            [_, option] => option.strip_prefix("-x").filter(|language| !language.is_empty()),
            _ => None,
        });
        let of_compiler = self.words.iter().take(2).any(|word| word.ends_with("++"));
        match named {
            Some(language) => language.contains("++"),
            None => of_compiler || super::project::language_of(&self.source) == Some(Language::Cpp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_a_shell_does() {
        let words = split(r#"cc -DNAME=\"x\ y\" '-DA="b c"' "-DB=\$1 \z" -c  a.c"#);
        assert_eq!(words, ["cc", "-DNAME=\"x y\"", "-DA=\"b c\"", "-DB=$1 \\z", "-c", "a.c"]);
    }

    #[test]
    fn both_forms_of_entries_are_read_and_stripped_of_outputs() {
        let text = br#"[{"directory":"/b","file":"../a.c","command":"cc -O2 -MD -MF a.d -o a.o -c ../a.c"},
            {"directory":"/b","file":"x.cc","arguments":["clang++","-flto=thin","-ox.o","-c","x.cc"]}, {"file":"y"}]"#;
        let commands = parse(text).expect("good");
        assert_eq!(commands.len(), 2);
        assert_eq!(
            (commands[0].source.as_path(), commands[0].bare()),
            (Path::new("/a.c"), vec!["cc".into(), "-O2".into(), "../a.c".into()])
        );
        assert_eq!(commands[1].bare(), ["clang++", "x.cc"]);
        assert!(commands[1].is_clang() && !commands[0].is_clang());
        assert!(commands[1].is_cpp() && !commands[0].is_cpp());
        assert!(parse(b"{}").is_err());
    }
}
