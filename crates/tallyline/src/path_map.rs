//! Paths of sources as a repository knows them, wherever the program was built.

use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// A replacement of a source path's prefix, as by the compilers' option `-ffile-prefix-map`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrefixMap {
    old: String,
    new: String,
}

impl FromStr for PrefixMap {
    type Err = String;

    fn from_str(text: &str) -> Result<PrefixMap, String> {
        match text.split_once('=') {
            Some(("", _)) => Err("the prefix before `=` is empty; write OLD=NEW".into()),
            Some((old, new)) => Ok(PrefixMap { old: old.into(), new: new.into() }),
            None => Err("no `=`; write OLD=NEW, such as /build/server=.".into()),
        }
    }
}

/// Rules by which source paths in debug information are displayed: prefixes replaced, and relative to the working
/// folder.
#[derive(Debug, Default)]
pub(crate) struct Paths<'m> {
    maps: &'m [PrefixMap],
    root: Option<PathBuf>,
    // the folders that the compiler ran in
    folders: Vec<String>,
}

impl<'m> Paths<'m> {
    /// Creates rules that replace these prefixes and then make paths relative to the working folder.
    pub(crate) fn new(maps: &'m [PrefixMap]) -> Paths<'m> {
        Paths { maps, root: std::env::current_dir().ok(), folders: Vec::new() }
    }

    /// Adds folders that the compiler ran in. Relative paths start from one of them: Meson compiles `../src/a.c` in
    /// `build`.
    pub(crate) fn with_folders(self, folders: Vec<String>) -> Paths<'m> {
        Paths { folders, ..self }
    }

    /// Returns the working folder that displayed paths are relative to; `None` if it is not known.
    pub(crate) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Returns a source path as it is displayed: normalised, with the last matching prefix replaced, and relative
    /// if it is in the working folder. A relative path that no prefix matches is that of the file in the working folder
    /// that it leads to from one of the compiler's folders, if it leads to one only.
    pub(crate) fn shown(&self, path: &str) -> String {
        let clean = without_dots(path);
        let mapped = self.mapped(&clean);
        if mapped.is_none()
            && !clean.starts_with('/')
            && let Some(found) = self.found(&clean)
        {
            return found;
        }
        self.relative(mapped.unwrap_or(clean))
    }

    fn mapped(&self, clean: &str) -> Option<String> {
        // compilers let the last option win, too
        self.maps.iter().rev().find_map(|map| {
            let rest = clean.strip_prefix(&map.old)?;
            // an empty replacement makes a path relative
            let rest = if map.new.is_empty() { rest.trim_start_matches('/') } else { rest };
            Some(without_dots(&format!("{}{rest}", map.new)))
        })
    }

    fn relative(&self, path: String) -> String {
        let inside = self.root.as_ref().and_then(|root| Path::new(&path).strip_prefix(root).ok());
        inside.map(|inside| inside.display().to_string()).unwrap_or(path)
    }

    /// Returns the one file in the working folder that a relative path may mean by the compiler's folders.
    fn found(&self, clean: &str) -> Option<String> {
        let root = self.root.as_ref()?;
        let mut all = self.folders.iter().filter_map(|folder| {
            let whole = without_dots(&format!("{folder}/{clean}"));
            let shown = self.relative(self.mapped(&whole).unwrap_or(whole));
            let is_inside = !shown.starts_with('/') && !shown.starts_with("..");
            (is_inside && root.join(&shown).is_file()).then_some(shown)
        });
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }
}

/// Takes `.` and `name/..` out of a path by its text alone, as the files are somewhere else: programs
/// built outside of their sources have paths like `/build/../src/a.c`.
fn without_dots(path: &str) -> String {
    let mut clean = PathBuf::new();
    for part in Path::new(path).components() {
        match (part, clean.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                clean.pop();
            }
            // above the root is the root
            (Component::ParentDir, Some(Component::RootDir)) => {}
            _ => clean.push(part),
        }
    }
    clean.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(maps: &[&str], path: &str) -> String {
        let maps: Vec<PrefixMap> = maps.iter().map(|map| map.parse().expect("a map")).collect();
        Paths { maps: &maps, root: Some("/home/me/server".into()), folders: Vec::new() }.shown(path)
    }

    #[test]
    fn paths_in_the_working_directory_are_relative_without_a_map() {
        assert_eq!(shown(&[], "/home/me/server/src/a.c"), "src/a.c");
        assert_eq!(shown(&[], "/home/me/server/build/../src/./a.c"), "src/a.c");
        assert_eq!(shown(&[], "/home/me/server2/a.c"), "/home/me/server2/a.c");
        assert_eq!(shown(&[], "./a.c"), "a.c");
        assert_eq!(shown(&[], "../a.c"), "../a.c");
        assert_eq!(shown(&[], "/../a.c"), "/a.c");
    }

    #[test]
    fn the_last_map_that_fits_wins_as_with_compilers() {
        assert_eq!(shown(&["/usr/src/server=."], "/usr/src/server/src/a.c"), "src/a.c");
        assert_eq!(shown(&["/usr/src/server="], "/usr/src/server/src/a.c"), "src/a.c");
        assert_eq!(shown(&["/usr/src=/x", "/usr/src/server=y"], "/usr/src/server/a.c"), "y/a.c");
        assert_eq!(shown(&["/usr/src/server=y", "/usr/src=/x"], "/usr/src/server/a.c"), "/x/server/a.c");
        // a map that leads into the working directory
        assert_eq!(shown(&["/ci=/home/me/server"], "/ci/out/../src/a.c"), "src/a.c");
        assert_eq!(shown(&["/other=x"], "/usr/a.c"), "/usr/a.c");
    }

    #[test]
    fn a_map_needs_both_sides_named() {
        assert!("nothing".parse::<PrefixMap>().is_err());
        assert!("=x".parse::<PrefixMap>().is_err());
        let map = PrefixMap { old: "a".into(), new: "b=c".into() };
        assert_eq!("a=b=c".parse(), Ok(map));
    }
}
