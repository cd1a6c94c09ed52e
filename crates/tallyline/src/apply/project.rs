//! The files of a project: their texts, and the edits of them.

use super::refused::{Kind, Refused};
use super::target::Target;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tallyline_source::{
    Edit, Language, SearchedType, UseKind, defined_symbols, edit, foreign_uses, has_constructor, holders,
    size_names, typedefs, unified_diff, uses, wrapper_calls, wrappers,
};

/// The most bytes of a file that is read as source.
const FILE_LIMIT: u64 = 32 << 20;

/// The most files of a project that are searched.
const FILES: usize = 200_000;

/// A cache of source files' contents, so that each file is read once.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    known: BTreeMap<PathBuf, Rc<[u8]>>,
}

impl Texts {
    /// Returns the contents of a source file, from the cache after the first call.
    pub(crate) fn read(&mut self, path: &Path) -> Result<Rc<[u8]>> {
        if let Some(text) = self.known.get(path) {
            return Ok(text.clone());
        }
        let about = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::ensure!(about.len() <= FILE_LIMIT, "{}: larger than {FILE_LIMIT} bytes", path.display());
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let text: Rc<[u8]> = text.into();
        self.known.insert(path.to_path_buf(), text.clone());
        Ok(text)
    }
}

/// The old and the new text of one source file.
#[derive(Clone, Debug)]
pub(crate) struct FileEdit {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The text of the file before the edits.
    pub(crate) old: Rc<[u8]>,
    /// The text of the file with the edits.
    pub(crate) new: Vec<u8>,
}

impl FileEdit {
    /// Returns the line of the old text that a line of the new text is, both counted from 1; `None` for a line that the
    /// edits add or change, and where they add or remove equal ones.
    pub(crate) fn own_line(&self, line: usize) -> Option<usize> {
        let new: Vec<&[u8]> = self.new.split(|byte| *byte == b'\n').collect();
        let index = line.checked_sub(1)?;
        let wanted = new.get(index)?;
        let equal = |lines: &[&[u8]]| lines.iter().filter(|other| *other == wanted).count();
        let old = self.old.split(|byte| *byte == b'\n').enumerate();
        let own: Vec<usize> = old.filter(|(_, other)| other == wanted).map(|(index, _)| index + 1).collect();
        if own.len() != equal(&new) {
            return None;
        }
        own.get(equal(new.get(..index)?)).copied()
    }
}

/// Edits the declarations of the targets (structs to change) in the sources. Returns the changed files, and for each
/// target `None` or the reason why it is not edited.
pub(crate) fn edit_all(targets: &[&Target], texts: &mut Texts) -> (Vec<FileEdit>, Vec<Option<Refused>>) {
    let mut refused: Vec<Option<Refused>> = vec![None; targets.len()];
    let mut by_file: BTreeMap<&Path, Vec<usize>> = BTreeMap::new();
    for (at, target) in targets.iter().enumerate() {
        by_file.entry(&target.path).or_default().push(at);
    }
    let mut edits = Vec::new();
    for (path, mut inside) in by_file {
        let Ok(old) = texts.read(path) else { continue };
        // from the last line on: what is above stays where the debug information says
        inside.sort_by_key(|at| std::cmp::Reverse(targets[*at].line));
        inside.retain(|at| {
            let refusal = edit(&old, &targets[*at].whole_change(0, false, &old)).err();
            let place = || format!("{}:{}", path.display(), targets[*at].line);
            refused[*at] = refusal.map(|refusal| Refused::of_text(&refusal, &place()));
            refused[*at].is_none()
        });
        let uses = uses_in(path, targets, &refused);
        let mut new = Edit::all_applied_to(&uses, &old);
        let first = inside.iter().copied().rfind(|at| !targets[*at].replaced.is_empty());
        for at in inside {
            let distance = lines_added(&uses, &old, targets[at].line);
            match edit(&new, &targets[at].whole_change(distance, first == Some(at), &old)) {
                Ok(edit) => new = edit.applied_to(&new),
                Err(refusal) => {
                    let place = format!("{}:{}", path.display(), targets[at].line);
                    refused[at] = Some(Refused::of_text(&refusal, &place));
                }
            }
        }
        if new != *old {
            edits.push(FileEdit { path: path.to_path_buf(), old, new });
        }
    }
    // files that use counters and declare none
    let declared: Vec<PathBuf> = targets.iter().map(|target| target.path.clone()).collect();
    let using: BTreeSet<&PathBuf> = targets.iter().flat_map(|target| target.uses.keys()).collect();
    for path in using.into_iter().filter(|path| !declared.contains(path)) {
        let uses = uses_in(path, targets, &refused);
        let Ok(old) = texts.read(path) else { continue };
        if !uses.is_empty() {
            let new = Edit::all_applied_to(&uses, &old);
            edits.push(FileEdit { path: path.clone(), old, new });
        }
    }
    (edits, refused)
}

/// Returns the edits of a file's uses of counters, without those of structs that are not edited.
fn uses_in(path: &Path, targets: &[&Target], refused: &[Option<Refused>]) -> Vec<Edit> {
    let open = targets.iter().zip(refused).filter(|(_, refused)| refused.is_none());
    open.filter_map(|(target, _)| target.uses.get(path)).flatten().cloned().collect()
}

/// Returns the number of lines that edits add before a line, counted from 1.
fn lines_added(edits: &[Edit], text: &[u8], line: u32) -> i64 {
    let count = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count() as i64;
    let before = |edit: &&Edit| {
        let before = text.get(..edit.range().start).unwrap_or_default();
        count(before) + 1 < i64::from(line)
    };
    let added = |edit: &Edit| count(edit.text()) - count(text.get(edit.range().clone()).unwrap_or_default());
    edits.iter().filter(before).map(added).sum()
}

/// Returns a unified diff of all edited files, with paths relative to `root`.
pub(crate) fn patch(edits: &[FileEdit], root: &Path) -> Vec<u8> {
    let mut patch = Vec::new();
    for edit in edits {
        let path = edit.path.strip_prefix(root).unwrap_or(&edit.path).as_os_str().as_encoded_bytes();
        let relative = path.strip_prefix(b"/").unwrap_or(path);
        patch.extend(unified_diff(relative, &edit.old, &edit.new));
    }
    patch
}

/// Returns the language of a source file by its extension; `None` if it is no C, C++ or Rust source.
pub(crate) fn language_of(path: &Path) -> Option<Language> {
    Some(match path.extension()?.to_str()? {
        "c" | "h" | "inc" | "def" | "y" | "l" => Language::C,
        "cc" | "cpp" | "cxx" | "c++" | "C" | "hh" | "hpp" | "hxx" | "h++" | "H" | "ipp" | "tcc" | "inl" => {
            Language::Cpp
        }
        "rs" => Language::Rust,
        _ => return None,
    })
}

/// The folders that have earlier versions of a project's files: of version control, and of quilt's patches.
const HISTORY: [&str; 5] = [".git", ".hg", ".svn", ".jj", ".pc"];

/// Returns all C, C++ and Rust sources below a folder, sorted; folders of earlier versions and cargo's `target` are skipped.
pub(crate) fn sources(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                let is_cargo_target = entry.file_name() == "target" && path.join("CACHEDIR.TAG").exists();
                let is_history = HISTORY.iter().any(|name| entry.file_name() == *name);
                if !is_history && !is_cargo_target {
                    folders.push(path);
                }
            } else if kind.is_file() && language_of(&path).is_some() && files.len() < FILES {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Searches a project's sources for code that relies on the order of the members of a target (struct to edit). Returns
/// for each target one such use as the reason not to edit it; `None` if there is none. If all units are compiled
/// (`is_compiled`), uses that compilers report anyway are not searched for.
pub(crate) fn search(
    targets: &[&Target],
    root: &Path,
    texts: &mut Texts,
    is_compiled: bool,
) -> Vec<Option<Refused>> {
    let paths = sources(root);
    let searched = searched_types(targets, &paths, texts);
    let names: Vec<Vec<Vec<u8>>> = searched.iter().map(|searched| searched.names().to_vec()).collect();
    let foreign = passed_to_others(targets, &names, &paths, root, texts);
    let including = including(targets, &paths, texts);
    let wrappers = wrappers_of(targets, &paths, texts);
    let mut found: Vec<Option<(UseKind, String)>> = vec![None; targets.len()];
    let aggregates: Vec<bool> = targets.iter().map(|target| is_aggregate(target, texts)).collect();
    for path in paths {
        let Ok(text) = texts.read(&path) else { continue };
        let of_path = language_of(&path).unwrap_or(Language::C);
        let words = words(&text);
        let names_size = contains(&text, b"sizeof") || contains(&text, b"size_of");
        // without a compiler, initialisers of holders are searched, too
        let transfers =
            !is_compiled || names_size || wrappers.keys().any(|name| words.contains(name.as_slice()));
        let binds = contains(&text, b"auto");
        let is_inside = |at: &usize| {
            let searched = &searched[*at];
            let is_same = (targets[*at].language == Language::Rust) == (of_path == Language::Rust);
            let is_named = || searched.names().iter().any(|name| contains(&text, name));
            // there may be thousands of holders
            let holds = || transfers && searched.holders().iter().any(|name| words.contains(name.as_slice()));
            is_same && (is_named() || holds() || binds && including[*at].contains(&path))
        };
        let inside: Vec<usize> = (0..targets.len()).filter(is_inside).collect();
        if inside.is_empty() {
            continue;
        }
        let wanted: Vec<SearchedType> =
            inside.iter().map(|at| searched[*at].held_by(|name| words.contains(name))).collect();
        for (at, uses) in inside.iter().zip(uses(&text, of_path, &wanted, &wrappers)) {
            let by_compiler =
                |kind: UseKind| is_compiled && matches!(kind, UseKind::Positional | UseKind::Assertion);
            let is_none =
                |kind: UseKind| by_compiler(kind) || kind == UseKind::Positional && !aggregates[*at];
            for (kind, line) in uses.into_iter().filter(|(kind, _)| !is_none(*kind)) {
                let known = &mut found[*at];
                if known.as_ref().is_none_or(|(known, _)| kind < *known) {
                    let shown = path.strip_prefix(root).unwrap_or(&path);
                    *known = Some((kind, format!("{}:{line}", shown.display())));
                }
            }
        }
    }
    let found = found.into_iter().map(|found| found.map(|(kind, place)| Refused::of_use(kind, &place)));
    foreign.into_iter().zip(found).map(|(foreign, found)| foreign.or(found)).collect()
}

/// Returns `true` if objects of a struct may be initialised by position: in C++ not those of a class with a constructor.
fn is_aggregate(target: &Target, texts: &mut Texts) -> bool {
    let Ok(text) = texts.read(&target.path) else { return true };
    !has_constructor(&text, &target.change())
}

/// Returns what to search for of each target: its names by all sources, and the types that hold it, also within others.
fn searched_types(targets: &[&Target], paths: &[PathBuf], texts: &mut Texts) -> Vec<SearchedType> {
    let of = |target: &&Target| SearchedType::new(target.names(), &target.change());
    let mut searched: Vec<SearchedType> = targets.iter().map(of).collect();
    let tags: Vec<Vec<u8>> = targets.iter().map(|target| target.tag.clone()).collect();
    let mut all = Vec::new();
    for path in paths {
        let Ok(text) = texts.read(path) else { continue };
        let language = language_of(path).unwrap_or(Language::C);
        // a struct is held in its own language
        if targets.iter().any(|target| (target.language == Language::Rust) == (language == Language::Rust)) {
            all.extend(holders(&text, language));
        }
        if !contains(&text, if language == Language::Rust { b"type " } else { b"typedef" }) {
            continue;
        }
        for (at, name) in typedefs(&text, language, &tags) {
            searched[at].add_name(name);
        }
    }
    // by the type of a member: its name, and what it is a member of
    let mut by_type: HashMap<&[u8], Vec<[&[u8]; 2]>> = HashMap::new();
    for (ty, member, holder) in &all {
        by_type.entry(ty).or_default().push([member, holder]);
    }
    for searched in &mut searched {
        let mut held_as = BTreeSet::new();
        let mut open: Vec<&[u8]> = searched.names().iter().map(Vec::as_slice).collect();
        let mut holders: BTreeSet<&[u8]> = BTreeSet::new();
        while let Some(ty) = open.pop() {
            for [member, holder] in by_type.get(ty).into_iter().flatten() {
                held_as.insert(*member);
                if holders.insert(holder) {
                    open.push(holder);
                }
            }
        }
        held_as.remove(&b""[..]);
        let own = |name: &&&[u8]| !searched.names().iter().any(|own| own == *name);
        let holders = holders.iter().filter(own).map(|name| name.to_vec()).collect();
        searched.set_holders(holders, held_as.into_iter().map(<[u8]>::to_vec).collect());
    }
    for path in paths {
        let Ok(text) = texts.read(path) else { continue };
        if contains(&text, b"sizeof") {
            for (at, name) in size_names(&text, language_of(path).unwrap_or(Language::C), &searched) {
                searched[at].add_size(name);
            }
        }
    }
    searched
}

/// Returns the functions and macros of all sources that pass their callers' objects on as bytes, with the indices of the
/// arguments by which they get them.
fn wrappers_of(
    targets: &[&Target],
    paths: &[PathBuf],
    texts: &mut Texts,
) -> BTreeMap<Vec<u8>, BTreeSet<usize>> {
    let mut calls = Vec::new();
    for path in paths {
        let language = language_of(path).unwrap_or(Language::C);
        let is_searched =
            |target: &&&Target| (target.language == Language::Rust) == (language == Language::Rust);
        if !targets.iter().any(|target| is_searched(&target)) {
            continue;
        }
        let Ok(text) = texts.read(path) else { continue };
        calls.extend(wrapper_calls(&text, language));
    }
    wrappers(&calls)
}

/// Returns for each target the sources that include its declaration, also by other files, as far as files' names tell.
fn including(targets: &[&Target], paths: &[PathBuf], texts: &mut Texts) -> Vec<BTreeSet<PathBuf>> {
    let mut including: HashMap<Vec<u8>, Vec<&PathBuf>> = HashMap::new();
    for path in paths.iter().filter(|path| language_of(path) != Some(Language::Rust)) {
        let Ok(text) = texts.read(path) else { continue };
        for line in text.split(|byte| *byte == b'\n') {
            let Some(line) = line.trim_ascii_start().strip_prefix(b"#") else { continue };
            let Some(line) = line.trim_ascii_start().strip_prefix(b"include") else { continue };
            let name = line.trim_ascii_start().split(|byte| matches!(byte, b'"' | b'<' | b'>')).nth(1);
            let Some(base) = name.and_then(|name| name.rsplit(|byte| *byte == b'/').next()) else { continue };
            including.entry(base.to_vec()).or_default().push(path);
        }
    }
    let of = |target: &&Target| {
        let mut found: BTreeSet<PathBuf> = BTreeSet::from([target.path.clone()]);
        let mut open = vec![&target.path];
        while let Some(path) = open.pop() {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            for by in including.get(name).into_iter().flatten() {
                if found.insert((*by).clone()) {
                    open.push(by);
                }
            }
        }
        found
    };
    targets.iter().map(of).collect()
}

/// Returns for each target the sources of C that are compiled alone and include its declaration, as far as files' names
/// tell.
pub(super) fn including_units(targets: &[&Target], root: &Path, texts: &mut Texts) -> Vec<BTreeSet<PathBuf>> {
    let mut units = including(targets, &sources(root), texts);
    let is_unit = |path: &PathBuf| path.extension().is_some_and(|end| end == "c");
    units.iter_mut().for_each(|units| units.retain(is_unit));
    units
}

/// Returns for each target of Rust the reason not to edit it that code in another language knows its layout: an `extern`
/// block declares something with the type that no Rust of the project defines. `names` are those of each target.
fn passed_to_others(
    targets: &[&Target],
    names: &[Vec<Vec<u8>>],
    paths: &[PathBuf],
    root: &Path,
    texts: &mut Texts,
) -> Vec<Option<Refused>> {
    let of_rust = |at: usize| match targets[at].language {
        Language::Rust => names[at].clone(),
        _ => Vec::new(),
    };
    let wanted: Vec<Vec<Vec<u8>>> = (0..targets.len()).map(of_rust).collect();
    let mut uses: Vec<(usize, Vec<u8>, String)> = Vec::new();
    let mut defined: BTreeSet<Vec<u8>> = BTreeSet::new();
    for path in paths.iter().filter(|path| language_of(path) == Some(Language::Rust)) {
        let Ok(text) = texts.read(path) else { continue };
        if contains(&text, b"extern") {
            let shown = path.strip_prefix(root).unwrap_or(path).display();
            let found = foreign_uses(&text, &wanted).into_iter();
            uses.extend(found.map(|(at, name, line)| (at, name, format!("{shown}:{line}"))));
        }
        if contains(&text, b"no_mangle") || contains(&text, b"export_name") {
            defined.extend(defined_symbols(&text));
        }
    }
    let mut refused = vec![None; targets.len()];
    for (at, name, place) in uses.into_iter().rev().filter(|(_, name, _)| !defined.contains(name)) {
        let evidence =
            format!("{place} shares it with code that is not Rust: {}", String::from_utf8_lossy(&name));
        refused[at] = Some(Refused::new(Kind::Abi, evidence));
    }
    refused
}

/// Returns the words of a text, among them those of its comments and literals.
fn words(text: &[u8]) -> HashSet<&[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    text.split(|byte| !is_word(byte)).collect()
}

fn contains(text: &[u8], name: &[u8]) -> bool {
    let Some(first) = name.first() else { return false };
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = &rest[at..];
        if rest.starts_with(name) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}
