//! Verification of edits: what includes them is compiled, and the layouts in the objects are compared.

use super::build::is_assertion;
use super::layouts::Layout;
use super::project::{FileEdit, Texts, edit_all};
use super::refused::{Kind, Refused};
use super::target::{Target, layout_as_declared};
use super::units::{Builder, Call, Unit, by_halves, first_error, in_parallel, is_null_initialiser};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Request, Wanted, read};
use tallyline_source::{Change, Language, probe};

/// A function from the structs that are edited together (indices in the list of targets) to the layouts promised of them,
/// in the same order; `None` for one whose layout is then not known.
pub(crate) type Promises<'p> = &'p dyn Fn(&[usize]) -> Vec<Option<Layout>>;

/// The numbers of compilation units and struct definitions by which source edits were verified.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// The number of compiled units.
    pub(crate) units: usize,
    /// The number of definitions in objects with the promised layout.
    pub(crate) layouts: usize,
    /// The number of definitions of other configurations, which have other members.
    pub(crate) configurations: usize,
}

/// A struct whose edit is being verified: the reason against it, if one was found, and the number of definitions
/// that were compiled as promised.
pub(crate) struct Candidate<'t> {
    /// The struct to edit, with its new layout.
    pub(crate) target: &'t Target,
    /// The index of the struct in the list of all targets.
    pub(crate) index: usize,
    /// The reason against the edit, if one was found.
    pub(crate) refused: Option<Refused>,
    /// The number of definitions that were compiled to the promised layout.
    pub(crate) seen: usize,
}

/// Verifier of source edits: compiles them in a copy of the project and compares the structs' layouts in the
/// objects with the promised ones.
pub(crate) struct Verifier<'v> {
    builder: &'v Builder,
    units: Vec<Unit>,
    texts: &'v mut Texts,
    in_place: Vec<FileEdit>,
}

impl<'v> Verifier<'v> {
    /// Creates a verifier of source edits that compiles the given compilation units, which include the edited files.
    pub(crate) fn new(builder: &'v Builder, units: Vec<Unit>, texts: &'v mut Texts) -> Verifier<'v> {
        Verifier { builder, units, texts, in_place: Vec::new() }
    }

    /// Verifies the edits of all candidates (structs) together: compiles them, and compares the layouts in the objects
    /// with the promised ones. A candidate that fails gets a reason; the others are verified again without it.
    pub(crate) fn run(&mut self, all: &mut [Candidate<'_>], promises: Promises<'_>) -> Result<Extent> {
        for candidate in all.iter_mut().filter(|candidate| candidate.refused.is_none()) {
            let path = &candidate.target.path;
            if !self.units.iter().any(|unit| unit.files.contains(path)) {
                let evidence = format!("no unit of compile_commands.json includes {}", path.display());
                candidate.refused = Some(Refused::new(Kind::NotRebuilt, evidence));
            }
        }
        self.probe(all)?;
        // what is refused changes what the others promise: until nothing is
        loop {
            let before = open(all).len();
            let extent = self.compile(all, promises)?;
            if open(all).len() == before {
                return Ok(extent);
            }
        }
    }

    /// Looks for initialisers by position with a compiler, in the units of each language.
    fn probe(&mut self, all: &mut [Candidate<'_>]) -> Result<()> {
        for language in [Language::C, Language::Cpp] {
            let of_language = |unit: &usize| language_of(&self.units[*unit]) == language;
            let units: Vec<usize> = (0..self.units.len()).filter(of_language).collect();
            let edits = self.probes(all, &open(all), language)?;
            if units.is_empty() || edits.is_empty() {
                continue;
            }
            self.place(edits)?;
            let mut suspects = self.probe_units(&units)?;
            // what one unit tells of is looked for by halves, and often all that the others complain of
            while let Some(unit) = suspects.first().copied() {
                self.probe_unit(unit, all)?;
                suspects.remove(0);
                let edits = self.probes(all, &open(all), language)?;
                self.place(edits)?;
                suspects = self.probe_units(&suspects)?;
            }
        }
        self.place(Vec::new())
    }

    /// Returns those of some units in which a compiler speaks of initialisers by position.
    fn probe_units(&self, some: &[usize]) -> Result<Vec<usize>> {
        let (builder, units) = (self.builder, &self.units);
        let said =
            in_parallel(some, |_, unit| builder.call(&units[*unit].command, Call::Probe, Path::new("")));
        let mut suspects = Vec::new();
        for (unit, output) in some.iter().zip(said) {
            if self.positional(&self.units[*unit], &output?).is_some() {
                suspects.push(*unit);
            }
        }
        Ok(suspects)
    }

    /// Finds the targets that a unit initialises by position.
    fn probe_unit(&mut self, unit: usize, all: &mut [Candidate<'_>]) -> Result<()> {
        let inside: Vec<usize> = open(all)
            .into_iter()
            .filter(|at| self.units[unit].files.contains(&all[*at].target.path))
            .collect();
        self.place(Vec::new())?;
        // a unit that does not parse without probes says nothing
        let plain = self.builder.call(&self.units[unit].command, Call::Probe, Path::new(""))?;
        if self.positional(&self.units[unit], &plain).is_some() {
            return Ok(());
        }
        for (culprit, place) in by_halves(&inside, &mut |some| self.probe_subset(unit, some, all))? {
            all[culprit].refused =
                Some(Refused::new(Kind::Positional, format!("initialised by position: {place}")));
        }
        Ok(())
    }

    /// Returns the texts with probes in the declarations of some targets, for units of a language.
    fn probes(&mut self, all: &[Candidate<'_>], some: &[usize], language: Language) -> Result<Vec<FileEdit>> {
        let mut edits: Vec<FileEdit> = Vec::new();
        let mut by_line: Vec<usize> = some.to_vec();
        by_line.sort_by_key(|at| std::cmp::Reverse(all[*at].target.line));
        for at in by_line {
            let target = all[at].target;
            if target.language == Language::Rust {
                continue;
            }
            let position = match edits.iter().position(|edit| edit.path == target.path) {
                Some(position) => position,
                None => {
                    let old = self.texts.read(&target.path)?;
                    edits.push(FileEdit { path: target.path.clone(), new: old.to_vec(), old });
                    edits.len() - 1
                }
            };
            let text = &mut edits[position].new;
            if let Ok(Some(edit)) = probe(text, &Change::new(language, target.line, &target.tag)) {
                *text = edit.applied_to(text);
            }
        }
        edits.retain(|edit| *edit.old != *edit.new);
        Ok(edits)
    }

    /// Returns the first initialiser by position that a compiler speaks of.
    fn positional(&self, unit: &Unit, output: &Output) -> Option<String> {
        let text = String::from_utf8_lossy(&output.stderr);
        let is_cpp = language_of(unit) == Language::Cpp;
        text.lines().find_map(|line| {
            let is_warning = line.contains("designated-init]");
            let is_error = is_cpp && line.contains("error:");
            let place = line.split(": ").next().unwrap_or_default();
            ((is_warning && !self.is_zero(unit, place)) || is_error).then(|| line.trim().to_string())
        })
    }

    /// Returns `true` if the initialiser at `place` (`FILE:LINE:COLUMN`) is `{0}`, which relies on no order of members.
    fn is_zero(&self, unit: &Unit, place: &str) -> bool {
        let mut parts = place.rsplitn(3, ':');
        let column = parts.next().and_then(|text| text.parse::<usize>().ok());
        let line = parts.next().and_then(|text| text.parse::<usize>().ok());
        let (Some(column), Some(line), Some(file)) = (column, line, parts.next()) else { return false };
        let path = self.builder.scratch.path(&unit.command.folder).join(file);
        let Ok(text) = std::fs::read(path) else { return false };
        let Some(line) = text.split(|byte| *byte == b'\n').nth(line.saturating_sub(1)) else { return false };
        is_null_initialiser(line, column.saturating_sub(1))
    }

    fn probe_subset(&mut self, unit: usize, some: &[usize], all: &[Candidate<'_>]) -> Result<Option<String>> {
        let edits = self.probes(all, some, language_of(&self.units[unit]))?;
        self.place(edits)?;
        let unit = self.units[unit].clone();
        let output = self.builder.call(&unit.command, Call::Probe, Path::new(""))?;
        Ok(self.positional(&unit, &output))
    }

    fn edit_subset(&mut self, unit: usize, some: &[usize], all: &[Candidate<'_>]) -> Result<Option<String>> {
        let targets: Vec<&Target> = some.iter().map(|at| all[*at].target).collect();
        let (edits, _) = edit_all(&targets, self.texts);
        self.place(edits)?;
        let output =
            self.builder.call(&self.units[unit].command, Call::Object, &self.builder.output(unit))?;
        Ok((!output.status.success()).then(|| first_error(&output)))
    }

    /// Puts edits in the place of those that were there.
    fn place(&mut self, edits: Vec<FileEdit>) -> Result<()> {
        self.builder.set(&edits, &self.in_place)?;
        self.in_place = edits;
        Ok(())
    }

    /// Compiles all units with the edits of the open candidates, and compares layouts.
    fn compile(&mut self, all: &mut [Candidate<'_>], promises: Promises<'_>) -> Result<Extent> {
        let candidates = open(all);
        let targets: Vec<&Target> = candidates.iter().map(|at| all[*at].target).collect();
        let (edits, refused) = edit_all(&targets, self.texts);
        for (at, refused) in candidates.iter().zip(refused) {
            all[*at].refused = refused;
        }
        let candidates = open(all);
        let indices: Vec<usize> = candidates.iter().map(|at| all[*at].index).collect();
        let promised = promises(&indices);
        for (at, promised) in candidates.iter().zip(&promised) {
            if promised.is_none() {
                all[*at].refused = Some(Refused::unknown_layout());
            }
        }
        if candidates.len() != open(all).len() {
            return Ok(Extent::default());
        }
        let touched: BTreeSet<PathBuf> = candidates.iter().map(|at| all[*at].target.path.clone()).collect();
        let units: Vec<usize> = (0..self.units.len())
            .filter(|unit| self.units[*unit].files.iter().any(|file| touched.contains(file)))
            .collect();
        self.place(edits)?;
        let outputs = in_parallel(&units, |_, unit| {
            self.builder.call(&self.units[*unit].command, Call::Object, &self.builder.output(*unit))
        });
        let mut extent = Extent { units: units.len(), ..Extent::default() };
        let mut failed = Vec::new();
        for (unit, output) in units.iter().zip(outputs) {
            let output = output?;
            if !output.status.success() {
                failed.push(*unit);
                continue;
            }
            let path = self.builder.output(*unit);
            let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let compared = compare(&bytes, all, &candidates, &promised, &self.units[*unit], &mut extent);
            compared.with_context(|| {
                format!("cannot read the object of {}", self.units[*unit].command.source.display())
            })?;
        }
        for unit in failed {
            self.blame(unit, all)?;
        }
        Ok(extent)
    }

    /// Finds the targets for which a unit no longer compiles; all of them if it never did.
    fn blame(&mut self, unit: usize, all: &mut [Candidate<'_>]) -> Result<()> {
        let inside: Vec<usize> = open(all)
            .into_iter()
            .filter(|at| self.units[unit].files.contains(&all[*at].target.path))
            .collect();
        self.place(Vec::new())?;
        let plain = self.builder.call(&self.units[unit].command, Call::Object, &self.builder.output(unit))?;
        if !plain.status.success() {
            let evidence = format!("a unit does not compile as it is: {}", first_error(&plain));
            for at in inside {
                all[at].refused = Some(Refused::new(Kind::NotRebuilt, evidence.clone()));
            }
            return Ok(());
        }
        for (culprit, said) in by_halves(&inside, &mut |some| self.edit_subset(unit, some, all))? {
            let kind = if is_assertion(&said) { Kind::Assertion } else { Kind::Broken };
            all[culprit].refused = Some(Refused::new(kind, said));
        }
        Ok(())
    }
}

/// Returns the language that a unit is compiled as.
fn language_of(unit: &Unit) -> Language {
    if unit.command.is_cpp() { Language::Cpp } else { Language::C }
}

/// Returns the candidates that have no reason against them.
fn open(all: &[Candidate<'_>]) -> Vec<usize> {
    (0..all.len()).filter(|at| all[*at].refused.is_none()).collect()
}

/// Compares the definitions in an object with the promises.
fn compare(
    bytes: &[u8],
    all: &mut [Candidate<'_>],
    candidates: &[usize],
    promised: &[Option<Layout>],
    unit: &Unit,
    extent: &mut Extent,
) -> Result<()> {
    let inside: Vec<(usize, &Layout)> = candidates
        .iter()
        .zip(promised)
        .filter_map(|(at, promised)| Some((*at, promised.as_ref()?)))
        .filter(|(at, _)| unit.files.contains(&all[*at].target.path))
        .collect();
    let names = inside.iter().flat_map(|(at, _)| all[*at].target.described_names());
    let request =
        Request { wanted: Wanted::named(names), positions: true, exact: true, ..Request::default() };
    let types = match read(bytes, &request) {
        Ok(types) => types,
        // a unit that describes no types at all
        Err(tallyline_debuginfo::Error::NoTypes) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for (at, promised) in inside {
        for found in definitions(&types, all[at].target) {
            let names = |layout: &Layout| {
                let mut names: Vec<String> = layout.members.iter().map(|(name, ..)| name.clone()).collect();
                names.sort();
                names
            };
            if found == *promised {
                extent.layouts += 1;
                all[at].seen += 1;
            } else if names(&found) != names(promised) {
                extent.configurations += 1;
            } else if all[at].refused.is_none() {
                let evidence = format!("{}: {}", unit.command.source.display(), difference(promised, &found));
                all[at].refused = Some(Refused::new(Kind::OtherLayout, evidence));
            }
        }
    }
    Ok(())
}

/// Returns the layouts of a target's definitions in an object: those from the file of its name.
fn definitions(types: &Types, target: &Target) -> Vec<Layout> {
    let mut all = Definitions::new(types);
    let file = target.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut found: Vec<Layout> = Vec::new();
    let first = target.described_names().into_iter().next().unwrap_or_default();
    for id in all.called(&first) {
        let Some((_, record)) = types.as_record(types.strip(id)) else { continue };
        let at = types.name(record.declared_at.file);
        let is_here = at.rsplit(|byte| *byte == b'/').next() == Some(file.as_bytes());
        let is_unplaced = !record.declared_at.file.is_some() && target.language == Language::Rust;
        if record.declaration || !(is_here || is_unplaced) {
            continue;
        }
        let one = layout_as_declared(types, record);
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

fn difference(promised: &Layout, found: &Layout) -> String {
    let member = promised.members.iter().zip(&found.members).find(|(a, b)| a != b);
    match member {
        Some(((wanted, bit, bits), (name, other, found))) => format!(
            "{name} is at byte {} with {found} bits, where {wanted} at byte {} with {bits} was promised",
            other / 8,
            bit / 8
        ),
        None => format!("{} bytes, where {} were promised", found.size, promised.size),
    }
}
