//! The uses of members that become counters, found by compilers.
//!
//! In C each use has to call a function instead. A member is given another name of the same length in a copy of the
//! project: what a compiler then does not find are its uses, all of them that are built, whatever other structs call
//! their members. Each is renamed, too, until everything compiles. In C++ and Rust the new type takes the same
//! operators, and only initial values of Rust have to name it: what does not fit them is what the compiler says.
//! In all of them the last word is a build with the new type, which has no other operations.

use super::counter::{ADD, LINE_TYPE, ReplacedMember, Replacement};
use super::project::{FileEdit, Texts, edit_all, sources};
use super::rebuild::{Folder, copy_tree};
use super::refused::{Kind, Refused};
use super::target::Target;
use super::units::{Builder, Call, Unit, in_parallel};
use crate::interrupt;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tallyline_source::{Edit, Language, counter_initialiser, counter_use, member_name, wrapped_value};

/// The most builds in the search for one struct's uses.
const ROUNDS: usize = 100;

/// The means to compile a project with edits: its own build command in a copy, or the compiler calls of its units.
pub(crate) enum Compilers<'c> {
    /// A shell's command, in a copy of the project.
    Build { command: &'c str, root: PathBuf, copy: PathBuf, _folder: Folder },
    /// The calls for the units that include the declarations.
    Units { builder: &'c Builder, units: Vec<Unit>, root: PathBuf },
}

/// The result of a build: success or failure, and what was printed.
#[derive(Clone, Debug)]
pub(super) struct BuildOutput {
    /// `true` if the build succeeded.
    pub(super) is_success: bool,
    /// The messages of the build, those on standard error first.
    pub(super) text: String,
}

/// An error of a compiler at a place of the project's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CompilerError {
    file: String,
    line: usize,
    column: usize,
    text: String,
}

impl<'c> Compilers<'c> {
    /// Copies a project into a temporary folder, so that its build command can be run there with edited sources.
    pub(crate) fn of_build(command: &'c str, root: &Path) -> Result<Compilers<'c>> {
        let folder = Folder::new("uses")?;
        let copy = folder.path().join("copy");
        copy_tree(root, &copy)?;
        Ok(Compilers::Build { command, root: root.to_path_buf(), copy, _folder: folder })
    }

    /// Compiles the project's copy with the edits `now` in place of the edits `before`; returns `None`, or the
    /// compiler's messages if it fails.
    pub(crate) fn compile(&self, now: &[FileEdit], before: &[FileEdit]) -> Result<Option<String>> {
        let output = self.run(now, before)?;
        Ok((!output.is_success).then_some(output.text))
    }

    /// Compiles the project's copy with the edits `now` in place of the edits `before`; returns the messages.
    pub(super) fn run(&self, now: &[FileEdit], before: &[FileEdit]) -> Result<BuildOutput> {
        match self {
            Compilers::Build { command, root, copy, .. } => {
                let put = |path: &Path, text: &[u8]| -> Result<()> {
                    super::rebuild::write_anew(&copy.join(path.strip_prefix(root)?), text)
                };
                for edit in before.iter().filter(|edit| now.iter().all(|other| other.path != edit.path)) {
                    put(&edit.path, &edit.old)?;
                }
                now.iter().try_for_each(|edit| put(&edit.path, &edit.new))?;
                let mut shell = Command::new("sh");
                shell.args(["-c", command]).current_dir(copy).env("LC_ALL", "C");
                shell.env("GCC_COLORS", "").env_remove("CLICOLOR_FORCE");
                shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                let output =
                    interrupt::output(&mut shell).with_context(|| format!("cannot run {command}"))?;
                let words = [output.stderr, output.stdout].concat();
                let text = without_escapes(&String::from_utf8_lossy(&words));
                Ok(BuildOutput { is_success: output.status.success(), text })
            }
            Compilers::Units { builder, units, .. } => {
                builder.set(now, before)?;
                let outputs = in_parallel(units, |index, unit| {
                    builder.call(&unit.command, Call::Object, &builder.output(index))
                });
                let mut text = String::new();
                for output in outputs {
                    let output = output?;
                    if !output.status.success() {
                        text.push_str(&String::from_utf8_lossy(&output.stderr));
                    }
                }
                Ok(BuildOutput { is_success: text.is_empty(), text })
            }
        }
    }

    /// Returns the folder in which the project's build command is run; `None` where units are compiled alone.
    pub(super) fn copy(&self) -> Option<&Path> {
        match self {
            Compilers::Build { copy, .. } => Some(copy),
            Compilers::Units { .. } => None,
        }
    }

    /// Returns the project's file that a compiler names.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        let (root, copy) = match self {
            Compilers::Build { root, copy, .. } => (root, copy.clone()),
            Compilers::Units { builder, root, .. } => (root, builder.scratch.path(root)),
        };
        let name = super::place::normal(Path::new(name));
        let copy = copy.canonicalize().unwrap_or(copy);
        if let Ok(inside) = name.strip_prefix(&copy) {
            return Some(root.join(inside));
        }
        let direct = root.join(&name);
        if direct.is_file() {
            return direct.starts_with(root).then_some(direct);
        }
        // relative to the folder of a part of the project
        let mut fitting = sources(root).into_iter().filter(|path| path.ends_with(&name));
        fitting.next().filter(|_| fitting.next().is_none())
    }
}

/// Finds all code that uses members which are to become striped counters (a word for each thread, summed by reads), and
/// adds its edits to the targets. A target with a use that cannot be edited is refused.
pub(crate) fn find(
    all: &mut [(Target, Option<Refused>)],
    compilers: &Compilers<'_>,
    texts: &mut Texts,
) -> Result<()> {
    let mut search = Search { compilers, texts, in_place: Vec::new() };
    if let Some(said) = search.compile(Vec::new())? {
        for (target, refused) in counted(all) {
            let evidence = format!("it does not compile as it is: {}", first(&said));
            *refused = Some(Refused::new(Kind::NotRebuilt, evidence));
            target.replaced.clear();
        }
        return Ok(());
    }
    for (target, refused) in counted(all) {
        search.target(target)?;
        if target.replaced.is_empty() {
            let (_, why) = target.kept_members.first().cloned().unwrap_or_else(|| {
                (String::new(), Refused::new(Kind::OtherUse, "no member of it can be a counter"))
            });
            *refused = Some(why);
        }
    }
    // the project's files are behind the links of a copy again
    search.compile(Vec::new()).map(drop)
}

fn counted(
    all: &mut [(Target, Option<Refused>)],
) -> impl Iterator<Item = (&mut Target, &mut Option<Refused>)> {
    let open = all.iter_mut().filter(|(target, refused)| refused.is_none() && !target.replaced.is_empty());
    open.map(|(target, refused)| (target, refused))
}

struct Search<'s> {
    compilers: &'s Compilers<'s>,
    texts: &'s mut Texts,
    in_place: Vec<FileEdit>,
}

/// Places of a word in files, each with the counter's index in the target.
type UsePlaces = BTreeMap<PathBuf, BTreeMap<usize, usize>>;

impl Search<'_> {
    fn compile(&mut self, edits: Vec<FileEdit>) -> Result<Option<String>> {
        let said = self.compilers.compile(&edits, &self.in_place)?;
        self.in_place = edits;
        Ok(said)
    }

    /// Finds the uses of one target's counters, and leaves only counters that a build with them confirms.
    fn target(&mut self, target: &mut Target) -> Result<()> {
        if target.language == Language::C {
            self.rename(target)?;
        }
        let Some(said) = self.confirm(target)? else { return Ok(()) };
        let all = target.replaced.clone();
        if all.len() > 1 {
            for counter in &all {
                let mut alone = target.clone();
                alone.replaced.retain(|other| other.at == counter.at);
                self.keep_uses(&mut alone)?;
                if let Some(said) = self.confirm(&mut alone)? {
                    target.keep_member(counter.at, Refused::new(Kind::OtherUse, said));
                }
            }
            self.keep_uses(target)?;
            if target.replaced.is_empty() || self.confirm(target)?.is_none() {
                return Ok(());
            }
        }
        for counter in target.replaced.clone() {
            target.keep_member(counter.at, Refused::new(Kind::OtherUse, said.clone()));
        }
        target.uses.clear();
        Ok(())
    }

    /// Leaves the uses of those counters that a target still has.
    fn keep_uses(&mut self, target: &mut Target) -> Result<()> {
        if target.language == Language::C && !target.replaced.is_empty() {
            self.rename(target)?;
        }
        if target.replaced.is_empty() || target.language != Language::C {
            target.uses.clear();
        }
        Ok(())
    }

    /// Builds with the new types; the first error if that fails.
    fn confirm(&mut self, target: &mut Target) -> Result<Option<String>> {
        for _ in 0..ROUNDS {
            if target.replaced.is_empty() {
                return Ok(None);
            }
            let (edits, refused) = edit_all(&[&*target], self.texts);
            if let Some(Some(refused)) = refused.into_iter().next() {
                return Ok(Some(refused.evidence));
            }
            let Some(said) = self.compile(edits)? else { return Ok(None) };
            if target.language != Language::Rust || !self.initialisers(target, &said)? {
                return Ok(Some(self.first_of_own(target, &said)));
            }
        }
        Ok(Some(format!("more than {ROUNDS} builds")))
    }

    /// Returns the first error of a build with edits as one line, which names the line of the project's own file.
    fn first_of_own(&self, target: &Target, said: &str) -> String {
        let found = errors(said).into_iter().next();
        let path = found.as_ref().and_then(|error| self.compilers.file(&error.file));
        let edit = self.in_place.iter().find(|edit| Some(&edit.path) == path.as_ref());
        let (Some(CompilerError { file, line, column, text }), Some(edit)) = (found, edit) else {
            return first(said);
        };
        let file = if Path::new(&file).is_absolute() { edit.path.display().to_string() } else { file };
        let text = text.lines().next().unwrap_or_default();
        let Some(own) = edit.own_line(line) else {
            return format!("{file}:{line}:{column} of the edited copy: {text}");
        };
        let source = line_of(&edit.old, own).map_or(&[][..], |(_, bytes)| bytes);
        let hint = target.replaced.iter().find_map(|counter| initial_value(source, counter));
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{file}:{own}:{column}: {text}{hint}")
    }

    /// Gives initial values that rustc does not take the new type; false if there are none.
    fn initialisers(&mut self, target: &mut Target, said: &str) -> Result<bool> {
        let mut is_new = false;
        for error in errors(said) {
            let Some(path) = self.compilers.file(&error.file) else { continue };
            let text = self.texts.read(&path)?;
            let now = self.in_place.iter().find(|edit| edit.path == path).map_or(&*text, |edit| &edit.new);
            let Some(place) = byte_at(now, error.line, error.column) else { continue };
            // the text in place has the edits of uses, and those of the declaration
            let mut edits = target.uses.get(&path).cloned().unwrap_or_default();
            if path == target.path {
                let change = target.whole_change(0, true, &text);
                edits.extend(tallyline_source::edit(&text, &change));
            }
            let Some(place) = Edit::place_before(&edits, place) else { continue };
            let is_line = target.replaced.iter().any(|member| member.replacement == Replacement::CacheLine);
            let fitting = match is_line {
                true => on_line(&text, place, &error.text),
                false => target.replaced.iter().find_map(|counter| {
                    Some(vec![counter_initialiser(&text, place, &counter.old, &counter.ty).ok()?])
                }),
            };
            let known = target.uses.entry(path).or_default();
            if let Some(edits) = fitting.filter(|edits| edits.iter().all(|edit| !known.contains(edit))) {
                known.extend(edits);
                is_new = true;
            }
        }
        Ok(is_new)
    }

    /// Finds the uses in C by other names, and makes them calls.
    fn rename(&mut self, target: &mut Target) -> Result<()> {
        target.uses.clear();
        let text = self.texts.read(&target.path)?;
        let change = target.change();
        let mut places = UsePlaces::new();
        for (index, counter) in target.replaced.iter().enumerate() {
            if let Ok(name) = member_name(&text, &change, counter.at) {
                places.entry(target.path.clone()).or_default().insert(name.start, index);
            }
        }
        let declared = places.clone();
        let mut said = None;
        for _ in 0..ROUNDS {
            let renamed = self.renamed(target, &places)?;
            said = self.compile(renamed)?;
            let Some(said) = &said else { break };
            if !self.add_places(target, said, &mut places)? {
                break;
            }
        }
        if let Some(said) = said {
            for counter in target.replaced.clone() {
                let why = format!("a use that is no name in a source: {}", first(&said));
                target.keep_member(counter.at, Refused::new(Kind::OtherUse, why));
            }
            return Ok(());
        }
        let mut refused: Vec<(usize, Refused)> = Vec::new();
        let mut uses: BTreeMap<PathBuf, Vec<(usize, Vec<Edit>)>> = BTreeMap::new();
        for (path, found) in &places {
            let text = self.texts.read(path)?;
            for (at, index) in found {
                if declared.get(path).is_some_and(|declared| declared.contains_key(at)) {
                    continue;
                }
                let Some(counter) = target.replaced.get(*index) else { continue };
                match counter_use(&text, *at, ADD, &counter.read()) {
                    Ok(edits) => uses.entry(path.clone()).or_default().push((counter.at, edits)),
                    Err(refusal) => {
                        let line = text.get(..*at).unwrap_or_default().split(|byte| *byte == b'\n').count();
                        let place = format!("{}:{line}", path.display());
                        refused.push((counter.at, Refused::of_text(&refusal, &place)));
                    }
                }
            }
        }
        for (at, why) in refused {
            target.keep_member(at, why);
        }
        let kept: BTreeSet<usize> = target.replaced.iter().map(|counter| counter.at).collect();
        for (path, of_path) in uses {
            let edits: Vec<Edit> = of_path
                .into_iter()
                .filter(|(at, _)| kept.contains(at))
                .flat_map(|(_, edits)| edits)
                .collect();
            target.uses.insert(path, edits);
        }
        Ok(())
    }

    /// Returns the files with other names at some places.
    fn renamed(&mut self, target: &Target, places: &UsePlaces) -> Result<Vec<FileEdit>> {
        let mut edits = Vec::new();
        for (path, found) in places {
            let old = self.texts.read(path)?;
            let names = found.iter().filter_map(|(at, index)| {
                let name = &target.replaced.get(*index)?.name;
                Some(Edit::new(*at..at + name.len(), other_name(name)))
            });
            let new = Edit::all_applied_to(&names.collect::<Vec<_>>(), &old);
            edits.push(FileEdit { path: path.clone(), old, new });
        }
        Ok(edits)
    }

    /// Adds the places at which a compiler does not find a member; false if there is no new one.
    fn add_places(&mut self, target: &Target, said: &str, places: &mut UsePlaces) -> Result<bool> {
        let mut is_new = false;
        for error in errors(said) {
            let Some(path) = self.compilers.file(&error.file) else { continue };
            let text = self.texts.read(&path)?;
            for (index, counter) in target.replaced.iter().enumerate() {
                if !error.text.contains(counter.name.as_str()) {
                    continue;
                }
                let Some(place) = word_at(&text, error.line, error.column, &counter.name) else { continue };
                is_new |= places.entry(path.clone()).or_default().insert(place, index).is_none();
            }
        }
        Ok(is_new)
    }
}

/// Returns the edits by which rustc takes a value on cache lines of its own, by what it says of a place: an initial value
/// is put into the type, and one that is used goes through its reference.
fn on_line(text: &[u8], place: usize, said: &str) -> Option<Vec<Edit>> {
    let ty = format!("`{LINE_TYPE}<");
    if said.contains(&format!("expected {ty}")) {
        return wrapped_value(text, place, LINE_TYPE).ok();
    }
    let is_used = said.contains(&format!("found {ty}")) || said.contains(&format!("on type {ty}"));
    is_used.then(|| vec![Edit::new(place..place, "*")])
}

/// Returns another name of the same length, so that columns stay.
fn other_name(name: &str) -> String {
    let turned = |letter: char| match letter {
        'a'..='y' | 'A'..='Y' | '0'..='8' => char::from(letter as u8 + 1),
        'z' => 'Q',
        'Z' => 'q',
        '9' => '7',
        _ => 'x',
    };
    // a digit does not begin a name, and there are short names: the last letters say that nobody chose it
    let turned: String = name.chars().map(turned).collect();
    let keep = turned.len().saturating_sub(4);
    match turned.get(..keep) {
        Some(start) if turned.is_ascii() && name.len() > 4 => format!("{start}zqxz"),
        _ => turned,
    }
}

/// Reads the errors of GCC, clang and rustc, as they are printed for people.
fn errors(said: &str) -> Vec<CompilerError> {
    let mut all: Vec<CompilerError> = Vec::new();
    let mut of_rust: Option<String> = None;
    // an error of rustc whose lines of source and labels follow
    let mut labelled = false;
    for line in said.lines() {
        let c = line.split_once(": error: ").or_else(|| line.split_once(": fatal error: "));
        if let Some((place, text)) = c
            && let Some(error) = place_of(place, text)
        {
            all.push(error);
            continue;
        }
        labelled &= !line.trim().is_empty();
        if let Some(last) = all.last_mut().filter(|_| labelled) {
            last.text.push('\n');
            last.text.push_str(line);
        }
        if line.starts_with("error") {
            of_rust = Some(line.to_owned());
        } else if line.starts_with("warning") {
            of_rust = None;
        } else if let Some(place) = line.trim_start().strip_prefix("--> ")
            && let Some(text) = of_rust.take()
        {
            let error = place_of(place, &text);
            labelled = error.is_some();
            all.extend(error);
        }
    }
    all
}

fn place_of(place: &str, text: &str) -> Option<CompilerError> {
    let mut parts = place.trim().rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some(CompilerError { file: parts.next()?.to_owned(), line, column, text: text.to_owned() })
}

/// Returns the errors in compiler output, each as its file, line and text.
pub(super) fn error_set(said: &str) -> BTreeSet<String> {
    let shown = |error: CompilerError| format!("{}:{}: {}", error.file, error.line, error.text);
    errors(said).into_iter().map(shown).collect()
}

/// Returns text without the escape sequences of terminals: colours, and links to the manual behind warnings' names.
fn without_escapes(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            shown.push(letter);
            continue;
        }
        match letters.next() {
            Some('[') => {
                letters.find(|letter| ('@'..='~').contains(letter));
            }
            // up to BEL or ESC \, on the same line
            Some(']') => {
                while let Some(letter) = letters.next_if(|letter| *letter != '\n') {
                    if letter == '\u{7}' || letter == '\u{1b}' && letters.next_if_eq(&'\\').is_some() {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    shown
}

/// Returns `true` if a line of a build's output has an error, also a linker's.
pub(super) fn is_error_line(line: &str) -> bool {
    line.contains("error: ") || line.starts_with("error") || line.contains("undefined reference")
}

/// Returns the first error in compiler output, as one line.
pub(crate) fn first(said: &str) -> String {
    match errors(said).into_iter().next() {
        Some(CompilerError { file, line, column, text }) => {
            format!("{file}:{line}:{column}: {}", text.lines().next().unwrap_or_default())
        }
        None => {
            // make's last words say less than a linker's or a driver's
            let error = said.lines().find(|line| is_error_line(line));
            let last = || said.lines().rfind(|line| !line.trim().is_empty());
            error.or_else(last).unwrap_or("the build failed").trim().to_owned()
        }
    }
}

/// Returns what to do with the initial value that a line of a constructor gives a counter of C++, as in `reads_(0)`;
/// `None` if it gives none.
fn initial_value(line: &[u8], counter: &ReplacedMember) -> Option<String> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (line, name) = (String::from_utf8_lossy(line), counter.name.as_str());
    let is_counter = !name.is_empty() && counter.replacement == Replacement::StripedCounter;
    let mut places = line.match_indices(name).filter(|_| is_counter);
    let is_initialised = places.any(|(at, _)| {
        let (before, behind) = (&line[..at], &line[at + name.len()..]);
        let is_first = !before.ends_with(|letter: char| is_word(letter) || letter == '.' || letter == '>');
        is_first && behind.trim_start().starts_with(['(', '{'])
    });
    is_initialised.then(|| {
        format!(
            "a striped counter begins at 0 and takes no initial value: leave {name} out of the initialisers"
        )
    })
}

/// Returns the bytes of a line, counted from 1.
fn line_of(text: &[u8], line: usize) -> Option<(usize, &[u8])> {
    let mut start = 0;
    for (index, bytes) in text.split(|byte| *byte == b'\n').enumerate() {
        if index + 1 == line {
            return Some((start, bytes));
        }
        start += bytes.len() + 1;
    }
    None
}

/// Returns the place of a word at a line and a column, which GCC counts with tabs of eight and clang in bytes.
fn word_at(text: &[u8], line: usize, column: usize, word: &str) -> Option<usize> {
    let (start, bytes) = line_of(text, line)?;
    let at = |place: usize| {
        let is_part =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let rest = bytes.get(place..).unwrap_or_default();
        let before = place.checked_sub(1).and_then(|before| bytes.get(before));
        rest.starts_with(word.as_bytes()) && !is_part(rest.get(word.len())) && !is_part(before)
    };
    let mut shown = 1;
    let with_tabs = bytes.iter().position(|byte| {
        let is_here = shown >= column;
        shown = if *byte == b'\t' { (shown - 1) / 8 * 8 + 9 } else { shown + 1 };
        is_here
    });
    let places = [with_tabs, column.checked_sub(1)].into_iter().flatten();
    // GCC names the operator in front of a member, clang the member
    let behind_operator = |place: usize| {
        let rest = bytes.get(place..)?;
        let rest = rest.strip_prefix(b"->").or_else(|| rest.strip_prefix(b"."))?;
        Some(bytes.len() - rest.trim_ascii_start().len())
    };
    let mut places = places.flat_map(|place| [Some(place), behind_operator(place)]).flatten();
    places.find(|place| at(*place)).map(|place| start + place)
}

/// Returns the byte at a line and a column in characters, as rustc counts them.
fn byte_at(text: &[u8], line: usize, column: usize) -> Option<usize> {
    let (start, bytes) = line_of(text, line)?;
    let line = std::str::from_utf8(bytes).ok()?;
    let (inside, _) = line.char_indices().nth(column.checked_sub(1)?)?;
    Some(start + inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_three_compilers_are_read() {
        let said = "In file included from a.c:1:\na.h:3:21: error: 'struct s' has no member named 'n'\n\
            error[E0308]: mismatched types\n  --> src/main.rs:7:15\n   |\nwarning: unused\n --> src/main.rs:1:1\n";
        let found: Vec<(String, usize, usize)> =
            errors(said).into_iter().map(|error| (error.file, error.line, error.column)).collect();
        assert_eq!(found, [("a.h".into(), 3, 21), ("src/main.rs".into(), 7, 15)]);
    }

    #[test]
    fn colours_and_links_are_left_out() {
        let said = "\u{1b}[01m\u{1b}[Ka.c:4:1:\u{1b}[m\u{1b}[K \u{1b}[01;31m\u{1b}[Kerror: \u{1b}[m\u{1b}[Kno \
                    [\u{1b}]8;;https://a\u{1b}\\-Wx\u{1b}]8;;\u{7}]\n\u{1b}";
        assert_eq!(without_escapes(said), "a.c:4:1: error: no [-Wx]\n");
        assert_eq!(error_set(&without_escapes(said)), BTreeSet::from(["a.c:4: no [-Wx]".to_owned()]));
    }

    #[test]
    fn lines_of_an_edited_copy_are_those_of_the_file() {
        let edit = FileEdit {
            path: PathBuf::from("a.cc"),
            old: (&b"one\n}\nlong n;\ntwo\n}\n"[..]).into(),
            new: b"struct counter {\n  };\none\n}\ncounter n;\ntwo\n}\n".to_vec(),
        };
        let lines: Vec<Option<usize>> = (0..10).map(|line| edit.own_line(line)).collect();
        let expected = [None, None, None, Some(1), Some(2), None, Some(4), Some(5), Some(6), None];
        assert_eq!(lines, expected);
    }

    #[test]
    fn columns_with_tabs_and_in_bytes_lead_to_the_same_word() {
        let text = b"\n\tx->count++;\n";
        assert_eq!(word_at(text, 2, 12, "count"), Some(5));
        assert_eq!(word_at(text, 2, 5, "count"), Some(5));
        // at the operator, by both ways of counting
        assert_eq!(word_at(text, 2, 10, "count"), Some(5));
        assert_eq!(word_at(text, 2, 3, "count"), Some(5));
        assert_eq!(word_at(text, 2, 6, "count"), None);
        assert_eq!(byte_at("é: x".as_bytes(), 1, 4), Some(4));
    }

    #[test]
    fn another_name_has_the_same_length() {
        for name in ["n", "bytes", "packets", "a1", "_x", "z"] {
            assert_eq!(other_name(name).len(), name.len());
            assert_ne!(other_name(name), name);
            assert!(!other_name(name).starts_with(|first: char| first.is_ascii_digit()), "{name}");
        }
    }
}
