//! Edits of the source: patches of declarations, verified by compiling what includes them.

mod args;
mod assertions;
mod build;
mod commands;
mod counter;
mod duplicates;
mod layouts;
mod measure;
mod outcome;
mod place;
mod project;
mod rebuild;
mod refused;
mod scratch;
mod target;
mod undo;
mod units;
mod uses;
mod verify;

pub(crate) use args::ApplyArgs;
pub(crate) use layouts::Layout;
pub(crate) use measure::SpeedUp;
pub(crate) use outcome::{Outcome, write_text};
pub(crate) use rebuild::{Applied, carry_out};
pub(crate) use target::{NewLayout, NewPlace, Target, layout};
pub(crate) use verify::Promises;

use anyhow::{Context, Result, bail};
use assertions::AssertionStyle;
use build::BuildVerifier;
use commands::CompileCommand;
use place::Places;
use project::{FileEdit, Texts};
use refused::{Kind, Refused};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::locate::CompanionFinder;
use tallyline_debuginfo::program::unit_sources;
use tallyline_source::Language;
use units::Builder;
use uses::Compilers;
use verify::{Candidate, Extent, Verifier};

/// Edits of a program's sources that have been verified by compilers, and the structs that are not edited, with
/// reasons.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The targets, each with the reason why it is not edited.
    pub(crate) targets: Vec<(Target, Option<Refused>)>,
    /// The folder that paths in the patch are relative to.
    pub(crate) root: PathBuf,
    /// The edited source files, with their old and new texts.
    pub(crate) edits: Vec<FileEdit>,
    /// The extent of the verification; none where nothing was compiled, and why.
    pub(crate) verified: Result<Extent, String>,
    /// `true` if the project's build command was run in a copy with the edits, and the program has the promised layouts.
    pub(crate) is_built: bool,
}

impl Plan {
    /// Returns the plan's edits of a program's sources as one unified diff.
    pub(crate) fn patch(&self) -> Vec<u8> {
        project::patch(&self.edits, &self.root)
    }
}

/// Reverts the last edits that `--apply` made in a project (the current folder's, or the one named in the options);
/// returns the restored files.
pub(crate) fn undo(args: &ApplyArgs) -> Result<Vec<PathBuf>> {
    let here = std::env::current_dir().context("cannot read the current folder")?;
    let root = match &args.root {
        Some(root) => root.canonicalize().with_context(|| format!("cannot read {}", root.display()))?,
        None => here.ancestors().find(|folder| undo::is_edited(folder)).unwrap_or(&here).to_path_buf(),
    };
    undo::undo(&root)
}

/// Works out the source edits that give some structs of a program their new layouts, and verifies them by compiling
/// a copy of the project if its compiler calls are known. `promises` computes the layouts to expect.
pub(crate) fn plan(
    program: &Path,
    targets: Vec<Target>,
    promises: Promises<'_>,
    args: &ApplyArgs,
) -> Result<Plan> {
    let open = std::fs::File::open(program).with_context(|| format!("cannot open {}", program.display()))?;
    let sources = unit_sources(&open, &CompanionFinder::new(program));
    let mut folders: Vec<String> = sources.iter().map(|(folder, _)| folder.clone()).collect();
    folders.dedup();
    let places = Places { maps: args.source_map.clone(), folders };
    let mut texts = Texts::default();
    let mut all: Vec<(Target, Option<Refused>)> = Vec::with_capacity(targets.len());
    for mut target in targets {
        let mut refused = match target.line {
            0 => locate_by_name(&mut target, args, &mut texts),
            _ => locate(&mut target, &places, &mut texts),
        };
        if refused.is_none() {
            refused = unordered(&target, &mut texts);
        }
        if refused.is_none() && target.moves_base() && !args.trust {
            let evidence = "its first member is a struct, to which objects may be cast";
            refused = Some(Refused::new(Kind::Cast, evidence));
        }
        all.push((target, refused));
    }
    let root = root(&all, args)?;
    for (target, refused) in &mut all {
        if refused.is_none() {
            *refused = foreign(target, &root, args);
        }
    }
    if !args.trust {
        duplicates::refuse(&mut all, program, &places, &mut texts)?;
    }
    let open = indices(&all);
    let is_rust = |at: &usize| all[*at].0.language == Language::Rust;
    // the calls may be of sources in C that were translated, and stay beside
    let commands = match !open.is_empty() && open.iter().all(is_rust) && !args.no_rebuild {
        true => Err("compile_commands.json has no calls for Rust (--build)".into()),
        false => commands(&root, args)?,
    };
    // a compiler knows better than the text where objects are initialised by position, if it compiles all units
    let is_complete = commands.as_ref().is_ok_and(|commands| {
        let units = sources
            .iter()
            .flat_map(|(folder, name)| places.files(&Path::new(folder).join(name).to_string_lossy()));
        units.filter(|unit| unit.starts_with(&root)).all(|unit| {
            commands.iter().any(|one| one.source.canonicalize().is_ok_and(|source| source == unit))
        })
    });
    let some: Vec<&Target> = open.iter().map(|at| &all[*at].0).collect();
    let found = if args.trust {
        vec![None; some.len()]
    } else {
        project::search(&some, &root, &mut texts, is_complete)
    };
    for (at, found) in open.into_iter().zip(found) {
        all[at].1 = found;
    }
    resolve_counters(&mut all, &mut texts);
    choose_assertions(&mut all, &root, args.assertions);
    let compilers = match &args.build {
        Some(build) if !indices(&all).is_empty() => Some(Compilers::of_build(build, &root)?),
        _ => None,
    };
    let known_errors = match &compilers {
        Some(compilers) => BuildVerifier::new(compilers, &mut texts).refuse_unbuilt(&mut all)?,
        None => BTreeSet::new(),
    };
    find_uses(&mut all, &root, commands.as_deref(), compilers.as_ref(), &mut texts)?;
    let verified = match commands {
        Ok(commands) => Ok(verify_all(&mut all, &root, &commands, promises, &mut texts)?),
        Err(why) => Err(why),
    };
    let mut is_built = false;
    if let Some(compilers) = &compilers {
        let mut verifier = BuildVerifier::new(compilers, &mut texts).with_errors(known_errors);
        if !is_complete && !args.trust {
            verifier.refuse_positional(&mut all, &root)?;
        }
        loop {
            refuse_unknown(&mut all, promises);
            promise(&mut all, promises);
            is_built = !indices(&all).is_empty();
            if !is_built || verifier.verify(&mut all, program, &root, args.trust)? {
                break;
            }
        }
    } else if verified.is_err() && !args.trust {
        warn_of_text_search(&all);
    }
    refuse_unknown(&mut all, promises);
    let open = indices(&all);
    let some: Vec<&Target> = open.iter().map(|at| &all[*at].0).collect();
    let (edits, refused) = project::edit_all(&some, &mut texts);
    for (at, refused) in open.iter().zip(refused) {
        all[*at].1 = refused;
    }
    promise(&mut all, promises);
    // what was refused because a compiler was interrupted is not
    crate::interrupt::check()?;
    Ok(Plan { targets: all, root, edits, verified, is_built })
}

/// Says that no compiler confirms what the text of C++ shows of initialisers by position, of which it has many forms.
fn warn_of_text_search(all: &[(Target, Option<Refused>)]) {
    let is_searched = |(target, refused): &&(Target, Option<Refused>)| {
        refused.is_none() && target.language == Language::Cpp && target.moves_positions()
    };
    if let Some((target, _)) = all.iter().find(is_searched) {
        eprintln!(
            "tallyline: initialisers by position, as of {}, were only searched for in the text of C++, which does not \
             show all of them: compile_commands.json, or --build with --apply, has a compiler find them",
            target.name
        );
    }
}

/// Sets the layouts that the structs to be edited get together; those with other types of members have their own.
fn promise(all: &mut [(Target, Option<Refused>)], promises: Promises<'_>) {
    let open = indices(all);
    for (at, promised) in open.iter().zip(promises(&open)) {
        if let Some(promised) = promised.filter(|_| all[*at].0.replaced.is_empty()) {
            all[*at].0.promised = promised;
        }
    }
}

/// Refuses the structs whose layout is not known once the others are edited.
fn refuse_unknown(all: &mut [(Target, Option<Refused>)], promises: Promises<'_>) {
    loop {
        let open = indices(all);
        let promised = promises(&open);
        let unknown = open.iter().zip(&promised).filter(|(_, promised)| promised.is_none());
        let unknown: Vec<usize> = unknown.map(|(at, _)| *at).collect();
        if unknown.is_empty() {
            return;
        }
        unknown.into_iter().for_each(|at| all[at].1 = Some(Refused::unknown_layout()));
    }
}

/// Reads the types that members have which become counters; what no counter can stand for stays.
fn resolve_counters(all: &mut [(Target, Option<Refused>)], texts: &mut Texts) {
    for (target, refused) in all.iter_mut().filter(|(target, _)| !target.replaced.is_empty()) {
        let Ok(text) = texts.read(&target.path) else { continue };
        let (change, language) = (target.change(), target.language);
        let mut counters = target.replaced.clone();
        for counter in &mut counters {
            if let Err(why) = counter.resolve(&text, &change, language) {
                target.keep_member(counter.at, Refused::new(Kind::Inseparable, why));
            }
        }
        target.replaced.retain_mut(|known| {
            let resolved = counters.iter().find(|counter| counter.at == known.at);
            resolved.inspect(|resolved| *known = (*resolved).clone()).is_some()
        });
        if target.replaced.is_empty() && refused.is_none() {
            *refused = target.kept_members.first().map(|(_, why)| why.clone());
        }
    }
}

/// Finds the uses of members that become counters with the project's compilers.
fn find_uses(
    all: &mut [(Target, Option<Refused>)],
    root: &Path,
    commands: Result<&[CompileCommand], &String>,
    compilers: Option<&Compilers<'_>>,
    texts: &mut Texts,
) -> Result<()> {
    let is_counted =
        |(target, refused): &&(Target, Option<Refused>)| refused.is_none() && !target.replaced.is_empty();
    let files: BTreeSet<PathBuf> =
        all.iter().filter(is_counted).map(|(target, _)| target.path.clone()).collect();
    if files.is_empty() {
        return Ok(());
    }
    if let Some(compilers) = compilers {
        return uses::find(all, compilers, texts);
    }
    if let Ok(commands) = commands {
        let builder = Builder::new(root)?;
        let (units, _) = builder.units(commands, &files);
        if !units.is_empty() {
            let compilers = Compilers::Units { builder: &builder, units, root: root.to_path_buf() };
            return uses::find(all, &compilers, texts);
        }
    }
    for (_, refused) in all.iter_mut().filter(|one| is_counted(&&**one)) {
        let evidence =
            "the uses of a counter are found by a compiler: compile_commands.json, or --build with --apply";
        *refused = Some(Refused::new(Kind::NotRebuilt, evidence));
    }
    Ok(())
}

/// Sets the style of assertions: as it was asked for, or that of the project where the command writes any.
fn choose_assertions(all: &mut [(Target, Option<Refused>)], root: &Path, asked: Option<AssertionStyle>) {
    for (target, _) in all {
        target.style = match (asked, target.style) {
            (Some(asked), _) => asked,
            (None, AssertionStyle::None) => AssertionStyle::None,
            (None, _) => AssertionStyle::of_project(root),
        };
    }
}

/// Verifies all targets by the project's units; what does not compile with assertions is verified again without.
fn verify_all(
    all: &mut [(Target, Option<Refused>)],
    root: &Path,
    commands: &[CompileCommand],
    promises: Promises<'_>,
    texts: &mut Texts,
) -> Result<Extent> {
    let open = indices(all);
    if open.is_empty() {
        return Ok(Extent::default());
    }
    let extent = verify(all, &open, root, commands, promises, texts)?;
    let mut is_again = false;
    for at in open {
        let (target, refused) = &mut all[at];
        let is_text = |refused: &mut Refused| matches!(refused.kind, Kind::Broken | Kind::Assertion);
        if refused.as_mut().is_some_and(is_text) && !target.assertions().is_empty() {
            (target.style, *refused) = (AssertionStyle::None, None);
            is_again = true;
        }
    }
    match is_again {
        true => verify(all, &indices(all), root, commands, promises, texts),
        false => Ok(extent),
    }
}

/// Returns the targets that are not refused.
fn indices(all: &[(Target, Option<Refused>)]) -> Vec<usize> {
    (0..all.len()).filter(|at| all[*at].1.is_none()).collect()
}

/// Returns the compiler's calls for the project's units, or why there are none.
fn commands(root: &Path, args: &ApplyArgs) -> Result<Result<Vec<CompileCommand>, String>> {
    if args.no_rebuild {
        return Ok(Err("--no-rebuild".into()));
    }
    match commands::find(args.compile_commands.as_deref(), root) {
        Some(path) => Ok(Ok(commands::read(&path)?)),
        None => Ok(Err(format!("{} has no compile_commands.json (--compile-commands)", root.display()))),
    }
}

/// Compiles what includes the edited files, and compares layouts with the promises.
fn verify(
    all: &mut [(Target, Option<Refused>)],
    open: &[usize],
    root: &Path,
    commands: &[CompileCommand],
    promises: Promises<'_>,
    texts: &mut Texts,
) -> Result<Extent> {
    let builder = Builder::new(root)?;
    let files: BTreeSet<PathBuf> = open.iter().map(|at| all[*at].0.path.clone()).collect();
    let (units, failed) = builder.units(commands, &files);
    if let Some(first) = failed.first() {
        eprintln!("tallyline: {} units cannot be compiled, such as {first}", failed.len());
    }
    let with_counters = |some: &[usize]| -> Vec<Option<Layout>> {
        let promised = promises(some).into_iter().zip(some);
        let of = |(promised, at): (Option<Layout>, &usize)| match &all[*at].0 {
            target if target.replaced.is_empty() => promised,
            target => promised.map(|_| target.promised.clone()),
        };
        promised.map(of).collect()
    };
    let mut candidates: Vec<Candidate<'_>> =
        open.iter().map(|at| Candidate { target: &all[*at].0, index: *at, refused: None, seen: 0 }).collect();
    let extent = Verifier::new(&builder, units, texts).run(&mut candidates, &with_counters)?;
    let refused: Vec<Option<Refused>> = candidates
        .into_iter()
        .map(|candidate| match candidate.refused {
            None if candidate.seen == 0 => {
                Some(Refused::new(Kind::NotRebuilt, "no object of the compiled units describes it"))
            }
            refused => refused,
        })
        .collect();
    for (at, refused) in open.iter().zip(refused) {
        all[*at].1 = refused;
    }
    Ok(extent)
}

/// Finds the file of a declaration: the one whose text declares the members.
fn locate(target: &mut Target, places: &Places, texts: &mut Texts) -> Option<Refused> {
    let files = places.files(&target.declared_in);
    if !files.is_empty() && files.iter().all(|path| is_system(path)) {
        return Some(Refused::new(Kind::Foreign, format!("{} is the system's", target.declared_in)));
    }
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

/// Returns the reason why another order of a struct's members would change nothing: rustc orders them.
fn unordered(target: &Target, texts: &mut Texts) -> Option<Refused> {
    let text = texts.read(&target.path).ok().filter(|_| target.moves_members())?;
    let is_ordered = tallyline_source::is_laid_out_in_order(&text, &target.change());
    let evidence = "rustc orders its members, as there is no #[repr(C)]";
    (is_ordered == Ok(false)).then(|| Refused::new(Kind::OtherLayout, evidence))
}

/// Finds the one declaration of a name whose text declares the members, in the project.
fn locate_by_name(target: &mut Target, args: &ApplyArgs, texts: &mut Texts) -> Option<Refused> {
    if target.is_tuple() {
        let evidence = "tuple structs are not supported: sources name their members by their order";
        return Some(Refused::new(Kind::Positional, evidence));
    }
    let root = args.root.clone().unwrap_or_else(|| PathBuf::from("."));
    let root = root.canonicalize().unwrap_or(root);
    let mut found: Vec<(PathBuf, u32)> = Vec::new();
    for path in project::sources(&root) {
        if project::language_of(&path) != Some(target.language) {
            continue;
        }
        let Ok(text) = texts.read(&path) else { continue };
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let words = line.split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
            if !words.clone().any(|word| word == b"struct") || !words.clone().any(|word| word == target.tag) {
                continue;
            }
            target.line = u32::try_from(index + 1).unwrap_or(u32::MAX);
            if tallyline_source::edit(&text, &target.change()).is_ok() {
                found.push((path.clone(), target.line));
            }
        }
    }
    if found.len() > 1 && target.language == Language::Rust {
        // a copy that no crate of the project compiles says nothing; with two that are, pointers may pass between them
        let in_module =
            |(path, _): &(PathBuf, u32)| place::rust_module(path).map(|module| (path.clone(), module));
        let modules: Vec<(PathBuf, Vec<String>)> = found.iter().filter_map(in_module).collect();
        if let [(path, module)] = modules.as_slice()
            && target.is_in_module(module)
        {
            found.retain(|(other, _)| other == path);
        }
    }
    let name = String::from_utf8_lossy(&target.tag).into_owned();
    match found.as_slice() {
        [(path, line)] => {
            (target.path, target.line) = (path.clone(), *line);
            target.declared_in = path.to_string_lossy().into_owned();
            None
        }
        [] => Some(Refused::new(
            Kind::NoSource,
            format!("no source below {} declares {name} with these members (--root)", root.display()),
        )),
        [(first, _), (second, line), ..] => Some(Refused::new(
            Kind::NoSource,
            format!("{} and {}:{line} both declare {name}", first.display(), second.display()),
        )),
    }
}

/// Returns `true` if a file is one of the system's: below `/usr/include`, `/usr/lib` or `/usr/local/include`.
fn is_system(path: &Path) -> bool {
    path.starts_with("/usr/include") || path.starts_with("/usr/lib") || path.starts_with("/usr/local/include")
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
    let is_installed = |path: &Path| path.starts_with("/usr") || path.starts_with("/opt");
    let mut roots = found()
        .filter(|path| !is_installed(path))
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
