//! The files that a workspace was built to: the last build's, wherever build systems put it.

use crate::layout::operands::opens_as_types;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folders with programs, below the workspace's.
const FOLDERS: [&str; 6] = ["", "build", "bin", "target/debug", "target/release", "out"];

/// The places of a compilation database.
const DATABASES: [&str; 3] =
    ["compile_commands.json", "build/compile_commands.json", "out/compile_commands.json"];

/// The most programs, objects of a header, entries of a folder, and bytes of a compilation database.
const PROGRAMS: usize = 4;
const OBJECTS: usize = 8;
const ENTRIES: usize = 10_000;
const DATABASE_LIMIT: u64 = 256 << 20;

/// A folder open in the editor, and the files in it that may have types.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pub(super) root: PathBuf,
    /// The files named by the user; unless empty, only these are read.
    pub(super) named: Vec<PathBuf>,
    /// The source files with their object files, from the compilation database.
    objects: Vec<(PathBuf, PathBuf)>,
    database: Option<(PathBuf, SystemTime)>,
}

impl Workspace {
    pub(super) fn new(root: PathBuf, named: Vec<PathBuf>) -> Workspace {
        Workspace { root, named, ..Workspace::default() }
    }

    /// Returns a path below the workspace's folder.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    /// Returns the files that may have the types of a source, the best first.
    pub(super) fn files(&mut self, source: &Path) -> Vec<PathBuf> {
        if !self.named.is_empty() {
            return self.named.iter().map(|path| self.path(path)).collect();
        }
        self.read_database();
        let mut files = Vec::new();
        let source = source.canonicalize().unwrap_or_else(|_| source.to_path_buf());
        files.extend(self.objects.iter().filter(|(of, _)| *of == source).map(|(_, object)| object.clone()));
        files.extend(self.programs());
        if files.is_empty() {
            let objects = self.objects.iter().map(|(_, object)| object.clone());
            files = newest(objects.collect(), OBJECTS);
        }
        files
    }

    fn programs(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in FOLDERS {
            let Ok(entries) = self.root.join(folder).read_dir() else { continue };
            let paths = entries.take(ENTRIES).flatten().map(|entry| entry.path());
            found.extend(paths.filter(|path| {
                let extension = path.extension().and_then(|extension| extension.to_str());
                matches!(extension, None | Some("so")) && path.to_str().is_some_and(opens_as_types)
            }));
        }
        newest(found, PROGRAMS)
    }

    /// Reads the compilation database if it is new.
    fn read_database(&mut self) {
        let known = DATABASES.iter().find_map(|name| {
            let path = self.root.join(name);
            let metadata = path.metadata().ok().filter(|metadata| metadata.len() <= DATABASE_LIMIT)?;
            Some((path, metadata.modified().ok()?))
        });
        if known == self.database {
            return;
        }
        let text = known.as_ref().and_then(|(path, _)| std::fs::read(path).ok()).unwrap_or_default();
        self.objects = objects(&text);
        self.database = known;
    }
}

fn newest(mut paths: Vec<PathBuf>, count: usize) -> Vec<PathBuf> {
    paths.sort_by_cached_key(|path| {
        std::cmp::Reverse(path.metadata().and_then(|metadata| metadata.modified()).ok())
    });
    paths.dedup();
    paths.truncate(count);
    paths
}

/// Returns the sources of a compilation database and the objects that they are compiled to.
fn objects(database: &[u8]) -> Vec<(PathBuf, PathBuf)> {
    let Ok(Value::Array(commands)) = serde_json::from_slice(database) else { return Vec::new() };
    let object = |command: &Value| {
        let folder = Path::new(command["directory"].as_str()?);
        let source = folder.join(command["file"].as_str()?);
        let words: Vec<&str> = match (&command["arguments"], &command["command"]) {
            (Value::Array(words), _) => words.iter().filter_map(Value::as_str).collect(),
            (_, Value::String(line)) => line.split_whitespace().collect(),
            _ => Vec::new(),
        };
        let output =
            words.iter().zip(words.iter().skip(1)).find(|(word, _)| **word == "-o").map(|(_, name)| *name);
        let output = command["output"].as_str().or(output)?;
        Some((source.canonicalize().unwrap_or(source), folder.join(output.trim_matches('"'))))
    };
    commands.iter().filter_map(object).filter(|(_, object)| object.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_told_by_their_commands() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let text = format!(
            r#"[{{"directory":"{folder}","file":"src/main.rs","command":"cc -c -o tests/data/layout/holes.o x.c"}},
               {{"directory":"{folder}","file":"src/cli.rs","arguments":["cc","-c"],"output":"tests/data/layout/holes.o"}},
               {{"directory":"{folder}","file":"src/cli.rs","command":"cc -o none.o"}}, 3]"#
        );
        let found = objects(text.as_bytes());
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|(_, object)| object.ends_with("tests/data/layout/holes.o")));
        assert!(objects(b"{").is_empty() && objects(b"{}").is_empty());
    }
}
