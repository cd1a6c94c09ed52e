//! Definitions of an edited struct in a program: others than the edited one, which an edit would tear apart, and those
//! that a build with the edit makes.

use super::layouts::Layout;
use super::place::Places;
use super::project::Texts;
use super::refused::{Kind, Refused};
use super::target::{Target, layout_as_declared};
use crate::layout::source;
use anyhow::Result;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::model::{Position, Record, TypeId, Types};
use tallyline_debuginfo::{Request, Wanted};
use tallyline_source as text;

/// A definition of a struct in a program's debug information: its layout, and where it is declared.
pub(super) struct Definition {
    /// The layout with the members in the order of the source.
    pub(super) layout: Layout,
    /// The name with its scopes.
    name: String,
    /// The file of the declaration, as the debug information names it; empty where it has none.
    file: String,
    line: u32,
    /// `true` if it is of another language than the target.
    is_foreign: bool,
    /// `true` if other units cannot name it: in an anonymous namespace.
    is_private: bool,
}

impl Definition {
    /// Returns `true` if it is declared in a file of this name, as far as that is known.
    pub(super) fn is_in(&self, path: &Path) -> bool {
        self.file.is_empty() || Path::new(&self.file).file_name() == path.file_name()
    }

    /// Returns `true` if it has the members that a target has before the edit, and its objects may be the target's.
    pub(super) fn is_old(&self, target: &Target) -> bool {
        self.layout == target.current && !self.is_private
    }

    /// Returns the place of the declaration as text, or the name where there is none, as of Rust.
    pub(super) fn place(&self) -> String {
        match self.file.is_empty() {
            true => format!("Rust's {}", self.name),
            false => format!("{}:{}", self.file, self.line),
        }
    }
}

/// Returns the request for every declaration of some structs.
pub(super) fn request(targets: &[&Target]) -> Request {
    let names = targets.iter().flat_map(|target| target.described_names());
    Request {
        wanted: Wanted::named(names),
        positions: true,
        exact: true,
        each_place: true,
        ..Request::default()
    }
}

/// Returns the definitions that have a target's name, also those of other files.
pub(super) fn definitions(types: &Types, target: &Target) -> Vec<Definition> {
    let names = target.names();
    let mut found = Vec::new();
    for id in types.listed().iter().copied() {
        let own = types.name(types.type_name(id));
        let Some((_, record)) = types.as_record(types.strip(id)) else { continue };
        let bare = own.split(|byte| *byte == b'<').next().unwrap_or_default();
        if record.declaration
            || !names.iter().any(|name| name == bare)
            || !is_same_name(types, id, record, target)
        {
            continue;
        }
        let Position { file, line } = record.declared_at;
        found.push(Definition {
            layout: layout_as_declared(types, record),
            name: String::from_utf8_lossy(&types.qualified_name(id)).into_owned(),
            file: String::from_utf8_lossy(types.name(file)).into_owned(),
            line,
            is_foreign: !is_language_of(record, target),
            is_private: types
                .name(types.path(id))
                .split(|byte| *byte == b':')
                .any(|scope| scope == b"(anonymous namespace)"),
        });
    }
    found
}

/// Returns `true` if a definition has a target's name to the linker's mind: the scopes count, but not between
/// languages of which one has none.
fn is_same_name(types: &Types, id: TypeId, record: &Record, target: &Target) -> bool {
    let scopes = types.name(types.path(id));
    match is_language_of(record, target) {
        true => scopes == target.scopes,
        // a struct that is declared again in another language
        false => record.language.is_rust() || scopes.is_empty(),
    }
}

/// Returns `true` if a definition is in a target's language; C and C++ count as one.
fn is_language_of(record: &Record, target: &Target) -> bool {
    let language = record.language;
    match target.language {
        text::Language::Rust => language.is_rust(),
        _ => language.is_c() || language.is_cpp(),
    }
}

/// Returns for each edited struct the reason why a program that was built with the edits is not of them: it does not
/// have the new layout, as its build reads other sources, or still has the old one beside it. Another declaration with
/// the old members is not looked for where the user answers for it (`trusts`). `shown` is the program's name in
/// messages.
pub(super) fn old_layouts(
    edited: &[&Target],
    program: &Path,
    shown: &str,
    trusts: bool,
) -> Result<Vec<Option<Refused>>> {
    let types = source::read(program, &request(edited), None)?;
    let of = |target: &&Target| {
        let found = definitions(&types, target);
        let name = &target.name;
        let is_new = |found: &Definition| found.is_in(&target.path) && target.is_promised(&found.layout);
        if !found.iter().any(is_new) {
            let evidence = format!(
                "{shown} was built in a copy of the project and does not have the new {name}: the build names sources by \
                 absolute paths, or does not build this program"
            );
            return Some(Refused::new(Kind::NotRebuilt, evidence));
        }
        let is_old = |found: &&Definition| found.is_old(target) && !target.is_promised(&found.layout);
        let old = found.iter().find(is_old).filter(|_| !trusts)?;
        let evidence = format!(
            "{shown} was built in a copy of the project and has the new {name} and the old one, of {}: the build reads \
             another declaration, or does not make all objects anew",
            old.place()
        );
        Some(Refused::new(Kind::Duplicate, evidence))
    };
    Ok(edited.iter().map(of).collect())
}

/// Refuses the structs of which the program has another definition with the same members that is declared elsewhere:
/// objects may pass between the two, and only one of them would be edited. Definitions with other members are other
/// structs that happen to have the name, as private ones of two C files.
pub(super) fn refuse(
    all: &mut [(Target, Option<Refused>)],
    program: &Path,
    places: &Places,
    texts: &mut Texts,
) -> Result<()> {
    let open: Vec<&Target> =
        all.iter().filter(|(_, refused)| refused.is_none()).map(|(target, _)| target).collect();
    if open.is_empty() {
        return Ok(());
    }
    let types = source::read(program, &request(&open), None)?;
    for (target, refused) in all.iter_mut().filter(|(_, refused)| refused.is_none()) {
        let other = definitions(&types, target)
            .into_iter()
            .find(|found| found.is_old(target) && !is_own(found, target, places, texts));
        *refused = other.map(|other| Refused::new(Kind::Duplicate, evidence(&other, places)));
    }
    Ok(())
}

/// Returns `true` if a definition is of the declaration that is edited.
fn is_own(found: &Definition, target: &Target, places: &Places, texts: &mut Texts) -> bool {
    // rustc describes types without their places: one path is one declaration
    if found.file.is_empty() {
        return target.language == text::Language::Rust && !found.is_foreign;
    }
    let files: Vec<PathBuf> = places.files(&found.file);
    let is_here = files.contains(&target.path) || files.is_empty() && found.file == target.declared_in;
    if !is_here {
        return false;
    }
    // compilers differ in the line of a head of several lines
    found.line == target.line || is_at(target, found.line, texts)
}

/// Returns `true` if the declaration at a line is the target's.
fn is_at(target: &Target, line: u32, texts: &mut Texts) -> bool {
    let Ok(text) = texts.read(&target.path) else { return false };
    let range = |line: u32| {
        let mut there = target.clone();
        there.line = line;
        let edit = text::edit(&text, &there.change());
        edit.ok().map(|edit| edit.range().clone())
    };
    range(line).is_some_and(|other| range(target.line) == Some(other))
}

fn evidence(other: &Definition, places: &Places) -> String {
    let place = match (other.file.is_empty(), places.files(&other.file).as_slice()) {
        (false, [path]) => format!("{}:{}", path.display(), other.line),
        _ => other.place(),
    };
    format!("{place} declares it, too, with the same members: objects may pass between the two")
}
