//! Edits of the source: patches of declarations, verified by compiling what includes them.

mod args;
mod place;
mod project;
mod refused;
mod target;

pub(crate) use args::ApplyArgs;
pub(crate) use refused::Refused;
pub(crate) use target::Target;

use anyhow::{Context, Result, bail};
use place::Places;
use project::{FileEdit, Texts};
use refused::Kind;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::locate::CompanionFinder;
use tallyline_debuginfo::program::unit_sources;

/// The edits for some targets.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The targets, each with the reason why it is not edited.
    pub(crate) targets: Vec<(Target, Option<Refused>)>,
    /// The folder that paths in the patch are relative to.
    pub(crate) root: PathBuf,
    /// The edited files.
    pub(crate) edits: Vec<FileEdit>,
}

impl Plan {
    /// Returns the patch.
    pub(crate) fn patch(&self) -> Vec<u8> {
        project::patch(&self.edits, &self.root)
    }
}

/// Plans the edits of the structs of a program.
pub(crate) fn plan(program: &Path, targets: Vec<Target>, args: &ApplyArgs) -> Result<Plan> {
    let open = std::fs::File::open(program).with_context(|| format!("cannot open {}", program.display()))?;
    let sources = unit_sources(&open, &CompanionFinder::new(program));
    let mut folders: Vec<String> = sources.into_iter().map(|(folder, _)| folder).collect();
    folders.dedup();
    let places = Places { maps: args.source_map.clone(), folders };
    let mut texts = Texts::default();
    let mut all: Vec<(Target, Option<Refused>)> = Vec::with_capacity(targets.len());
    for mut target in targets {
        let refused = locate(&mut target, &places, &mut texts);
        all.push((target, refused));
    }
    let root = root(&all, args)?;
    for (target, refused) in &mut all {
        if refused.is_none() {
            *refused = foreign(target, &root, args);
        }
    }
    let open: Vec<usize> = (0..all.len()).filter(|at| all[*at].1.is_none()).collect();
    let some: Vec<&Target> = open.iter().map(|at| &all[*at].0).collect();
    let found = if args.trust { vec![None; some.len()] } else { project::search(&some, &root, &mut texts) };
    for (at, found) in open.into_iter().zip(found) {
        all[at].1 = found;
    }
    let open: Vec<usize> = (0..all.len()).filter(|at| all[*at].1.is_none()).collect();
    let some: Vec<&Target> = open.iter().map(|at| &all[*at].0).collect();
    let (edits, refused) = project::edit_all(&some, &mut texts);
    for (at, refused) in open.into_iter().zip(refused) {
        all[at].1 = refused;
    }
    Ok(Plan { targets: all, root, edits })
}

/// Finds the file of a declaration: the one whose text declares the members.
fn locate(target: &mut Target, places: &Places, texts: &mut Texts) -> Option<Refused> {
    let files = places.files(&target.declared_in);
    let mut reason = Refused::new(
        Kind::NoSource,
        format!("{} is not here: --source-map OLD=NEW says where the sources are", target.declared_in),
    );
    let mut fitting: Vec<PathBuf> = Vec::new();
    for path in files {
        let Ok(text) = texts.read(&path) else { continue };
        match tallyline_source::edit(&text, &target.change()) {
            Ok(_) => fitting.push(path),
            Err(refusal) => {
                reason = Refused::of_text(&refusal, &format!("{}:{}", path.display(), target.line));
            }
        }
    }
    match fitting.as_slice() {
        [] => Some(reason),
        [path] => {
            target.path = path.clone();
            None
        }
        [first, second, ..] => Some(Refused::new(
            Kind::NoSource,
            format!("{} and {} both fit: --source-map OLD=NEW says which", first.display(), second.display()),
        )),
    }
}

/// Returns the root of the project: as it was named, or that of the first file that was found.
fn root(all: &[(Target, Option<Refused>)], args: &ApplyArgs) -> Result<PathBuf> {
    if let Some(root) = &args.root {
        return root.canonicalize().with_context(|| format!("cannot read {}", root.display()));
    }
    let found =
        || all.iter().filter(|(_, refused)| refused.is_none()).map(|(target, _)| target.path.as_path());
    let here = std::env::current_dir().context("cannot read the current folder")?;
    let here = here.canonicalize().unwrap_or(here);
    let is_system = |path: &Path| path.starts_with("/usr") || path.starts_with("/opt");
    let mut roots = found()
        .filter(|path| !is_system(path))
        .map(|path| place::root_of(path).or_else(|| path.starts_with(&here).then(|| here.clone())));
    match roots.find_map(|root| root) {
        Some(root) => Ok(root),
        None if found().next().is_none() => Ok(here),
        None => bail!("no project is known that the sources belong to: name its folder with --root"),
    }
}

/// Returns the reason why a declaration is not the project's to change.
fn foreign(target: &Target, root: &Path, args: &ApplyArgs) -> Option<Refused> {
    if !target.path.starts_with(root) {
        let evidence = format!("{} is outside of {}", target.path.display(), root.display());
        return Some(Refused::new(Kind::Foreign, evidence));
    }
    args.abi.iter().find_map(|abi| {
        let is_named =
            target.path.ends_with(abi) || abi.canonicalize().is_ok_and(|abi| target.path.starts_with(abi));
        is_named.then(|| {
            Refused::new(Kind::Abi, format!("{} is installed ({})", target.path.display(), abi.display()))
        })
    })
}
