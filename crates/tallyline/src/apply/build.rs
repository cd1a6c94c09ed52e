//! Verification of edits by the project's own build command, in a copy of the project.

use super::duplicates::old_layouts;
use super::indices;
use super::project::{FileEdit, Texts, edit_all, including_units, language_of};
use super::refused::{Kind, Refused};
use super::target::Target;
use super::units::{by_halves, is_null_initialiser};
use super::uses::{BuildOutput, Compilers, error_set, is_error_line};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use tallyline_source::{Edit, Language, PROBE_COLUMN, guarded_probe};

/// The most builds that look for initialisers by position, and as many again for edits that break the build. All structs
/// together take one each; one that fails among N takes two for each halving of N.
const BUILDS: usize = 200;

/// The evidence against a struct whose turn does not come within [`BUILDS`].
const TOO_MANY_BUILDS: &str = "too many builds: name fewer types";

/// The most lines of a failed build that are shown.
const SHOWN_LINES: usize = 15;

/// The structs of a plan, each with the reason why it is not edited.
type Targets = [(Target, Option<Refused>)];

/// Verifier of edits that runs the project's build command in a copy of the project.
pub(super) struct BuildVerifier<'b> {
    compilers: &'b Compilers<'b>,
    texts: &'b mut Texts,
    in_place: Vec<FileEdit>,
    /// The builds of which [`BUILDS`] are allowed.
    builds: usize,
    /// The errors of compilers that the build shows also without edits, and succeeds.
    known_errors: BTreeSet<String>,
    /// The most compiler calls of one build that told of the initialiser by position within a probe of a file.
    told: BTreeMap<PathBuf, usize>,
}

impl<'b> BuildVerifier<'b> {
    /// Creates a verifier that builds in the project's copy of `compilers`.
    pub(super) fn new(compilers: &'b Compilers<'b>, texts: &'b mut Texts) -> BuildVerifier<'b> {
        let in_place = Vec::new();
        BuildVerifier {
            compilers,
            texts,
            in_place,
            builds: 0,
            known_errors: BTreeSet::new(),
            told: BTreeMap::new(),
        }
    }

    /// Takes errors that compilers show for no failure of the build where it shows them without edits, too. All others
    /// are failures, also of a build whose status a pipe hides.
    pub(super) fn with_errors(self, known_errors: BTreeSet<String>) -> BuildVerifier<'b> {
        BuildVerifier { known_errors, ..self }
    }

    /// Builds the project as it is, and refuses all structs if that fails. Returns the errors that compilers show.
    pub(super) fn refuse_unbuilt(&mut self, all: &mut Targets) -> Result<BTreeSet<String>> {
        // files written anew: what depends on them is built, which may be up to date else
        let paths: BTreeSet<PathBuf> = indices(all).into_iter().map(|at| all[at].0.path.clone()).collect();
        let mut unchanged = Vec::new();
        for path in paths {
            let old = self.texts.read(&path)?;
            unchanged.push(FileEdit { path, new: old.to_vec(), old });
        }
        let output = self.compilers.run(&unchanged, &self.in_place)?;
        self.in_place = unchanged;
        let errors = error_set(&output.text);
        if output.is_success {
            return Ok(errors);
        }
        eprintln!(
            "tallyline: the build in a copy of the project fails without edits, too:\n{}",
            excerpt(&output.text)
        );
        let evidence = format!("the build fails without edits, too: {}", super::uses::first(&output.text));
        for at in indices(all) {
            all[at].1 = Some(Refused::new(Kind::NotRebuilt, evidence.clone()));
        }
        Ok(errors)
    }

    /// Refuses the structs that the build's sources initialise by position, as compilers tell.
    pub(super) fn refuse_positional(&mut self, all: &mut Targets, root: &Path) -> Result<()> {
        let is_probed = |at: &usize| {
            let target = &all[*at].0;
            target.language != Language::Rust && target.moves_positions()
        };
        let open: Vec<usize> = indices(all).into_iter().filter(is_probed).collect();
        let found = by_halves(&open, &mut |some| self.positional_use(some, all))?;
        for (at, place) in found {
            all[at].1 = Some(match place.as_str() {
                TOO_MANY_BUILDS => Refused::new(Kind::NotRebuilt, place),
                _ => Refused::new(Kind::Positional, format!("initialised by position: {place}")),
            });
        }
        if self.builds > 0 {
            self.note_untold(all, root);
        }
        self.builds = 0;
        Ok(())
    }

    /// Says of which struct some units of C were not told of, but only searched in the text.
    fn note_untold(&mut self, all: &Targets, root: &Path) {
        let is_in_c = |target: &Target| {
            let path = &target.path;
            target.moves_positions()
                && (target.language == Language::C || language_of(path) == Some(Language::C))
        };
        let open = indices(all).into_iter().map(|at| &all[at].0).filter(|target| is_in_c(target));
        let open: Vec<&Target> = open.collect();
        for (target, units) in open.iter().zip(including_units(&open, root, self.texts)) {
            let told = self.told.get(&target.path).copied().unwrap_or_default();
            if told < units.len() {
                eprintln!(
                    "tallyline: initialisers by position in C, as of {}, were only searched for in the text of {} of \
                     {} units that include it: the build shows no warnings of GCC's -Wdesignated-init of them (clang, \
                     -w, discarded output, or not built)",
                    target.name,
                    units.len() - told,
                    units.len()
                );
                return;
            }
        }
    }

    /// Builds with the edits of all structs, and compares their layouts in the program. Returns `true` if all of them
    /// are verified; else those at fault are refused, and the others are to be verified again.
    pub(super) fn verify(
        &mut self,
        all: &mut Targets,
        program: &Path,
        root: &Path,
        trusts: bool,
    ) -> Result<bool> {
        let open = indices(all);
        // is not counted: each time at least one more is refused
        let Some(said) = self.failure_of(&open, all)? else {
            return self.compare(all, &open, program, root, trusts);
        };
        let styles: Vec<_> = open.iter().map(|at| all[*at].0.style).collect();
        if open.iter().any(|at| !all[*at].0.assertions().is_empty()) {
            open.iter().for_each(|at| all[*at].0.style = super::AssertionStyle::None);
            if self.failure_of(&open, all)?.is_none() {
                eprintln!(
                    "tallyline: no assertions are written: the build fails with them: {}",
                    self.first_of_own(&said)
                );
                return self.compare(all, &open, program, root, trusts);
            }
        }
        let found = by_halves(&open, &mut |some| self.failure_with(some, all))?;
        for (at, style) in open.iter().zip(styles) {
            all[*at].0.style = style;
        }
        for (at, said) in found {
            if said == TOO_MANY_BUILDS {
                all[at].1 = Some(Refused::new(Kind::NotRebuilt, said));
                continue;
            }
            let first = self.first_of_own(&said);
            eprintln!("tallyline: the build fails with the edit of {}:\n{}", all[at].0.name, excerpt(&said));
            let kind = if is_assertion(&first) { Kind::Assertion } else { Kind::Broken };
            all[at].1 = Some(Refused::new(kind, first));
        }
        Ok(false)
    }

    /// Builds with edits in place of those before.
    fn build(&mut self, edits: Vec<FileEdit>, purpose: &str) -> Result<BuildOutput> {
        self.builds += 1;
        if std::io::stderr().is_terminal() {
            eprintln!("tallyline: build {} {purpose}", self.builds);
        }
        let mut output = self.compilers.run(&edits, &self.in_place)?;
        self.in_place = edits;
        output.is_success &= error_set(&output.text).is_subset(&self.known_errors);
        let is_known = |line: &str| error_set(line).iter().any(|error| self.known_errors.contains(error));
        let own: Vec<&str> = output.text.lines().filter(|line| !is_known(line)).collect();
        output.text = own.join("\n");
        Ok(output)
    }

    /// Returns the output of a build with the edits of some structs; `None` if it succeeds. Once there were too many
    /// builds, none is run and they are said to be.
    fn failure_with(&mut self, some: &[usize], all: &Targets) -> Result<Option<String>> {
        match self.builds < BUILDS {
            true => self.failure_of(some, all),
            false => Ok(Some(TOO_MANY_BUILDS.to_owned())),
        }
    }

    fn failure_of(&mut self, some: &[usize], all: &Targets) -> Result<Option<String>> {
        let targets: Vec<&Target> = some.iter().map(|at| &all[*at].0).collect();
        let (edits, _) = edit_all(&targets, self.texts);
        let output = self.build(edits, &format!("with the edits of {} types", some.len()))?;
        Ok((!output.is_success).then_some(output.text))
    }

    /// Returns the place of an initialiser by position of some structs, as a build with probes tells; `None` if it
    /// tells of none.
    fn positional_use(&mut self, some: &[usize], all: &Targets) -> Result<Option<String>> {
        let edits = self.probes(some, all)?;
        if edits.is_empty() {
            return Ok(None);
        }
        if self.builds >= BUILDS {
            return Ok(Some(TOO_MANY_BUILDS.to_owned()));
        }
        let output =
            self.build(edits, &format!("to find initialisers by position of {} types", some.len()))?;
        let mut told: BTreeMap<&str, usize> = BTreeMap::new();
        let mut found = None;
        for line in output.text.lines().filter(|line| line.contains("designated-init]")) {
            let place = line.split(": ").next().unwrap_or_default();
            match self.is_harmless(place) {
                Some(true) => *told.entry(place).or_default() += 1,
                Some(false) => {}
                None => {
                    found.get_or_insert_with(|| line.trim().to_owned());
                }
            }
        }
        for (place, units) in told {
            let name = place.rsplitn(3, ':').nth(2).and_then(|name| self.compilers.file(name));
            let Some(name) = name else { continue };
            let known = self.told.entry(name).or_default();
            *known = units.max(*known);
        }
        Ok(found.or_else(|| (!output.is_success).then(|| self.first_of_own(&output.text))))
    }

    /// Returns `true` if the initialiser at a place (`FILE:LINE:COLUMN`) is that of a probe, and `false` if it is
    /// `{0}`, which relies on no order of members; `None` for others.
    fn is_harmless(&mut self, place: &str) -> Option<bool> {
        let mut parts = place.rsplitn(3, ':');
        let column = parts.next()?.parse::<usize>().ok()?;
        let line = parts.next()?.parse::<usize>().ok()?;
        let text = self.texts.read(&self.compilers.file(parts.next()?)?).ok()?;
        let line = text.split(|byte| *byte == b'\n').nth(line.checked_sub(1)?)?;
        // GCC counts columns with tabs of eight
        let mut shown = 1;
        let mut ends = line.iter().map(|byte| {
            shown = if *byte == b'\t' { (shown - 1) / 8 * 8 + 9 } else { shown + 1 };
            shown
        });
        match ends.position(|end| end > column) {
            Some(at) => is_null_initialiser(line, at).then_some(false),
            None => (column > PROBE_COLUMN).then_some(true),
        }
    }

    /// Returns the texts with probes in the declarations of some structs.
    fn probes(&mut self, some: &[usize], all: &Targets) -> Result<Vec<FileEdit>> {
        let mut by_file: Vec<(FileEdit, Vec<Edit>)> = Vec::new();
        for at in some {
            let target = &all[*at].0;
            let old = self.texts.read(&target.path)?;
            let Ok(edits) = guarded_probe(&old, &target.change(), *at) else { continue };
            match by_file.iter_mut().find(|(file, _)| file.path == target.path) {
                // instances of one template
                Some((_, known))
                    if edits.iter().any(|edit| known.iter().any(|other| other.range() == edit.range())) => {}
                Some((_, known)) => known.extend(edits),
                None => {
                    let file = FileEdit { path: target.path.clone(), new: Vec::new(), old };
                    by_file.push((file, edits));
                }
            }
        }
        by_file.retain(|(_, edits)| !edits.is_empty());
        let applied = |(file, edits): (FileEdit, Vec<Edit>)| {
            let new = Edit::all_applied_to(&edits, &file.old);
            FileEdit { new, ..file }
        };
        Ok(by_file.into_iter().map(applied).collect())
    }

    /// Returns the first error of a build as one line. For one in another's file, as of a template, the place in the
    /// project that led there is named.
    fn first_of_own(&self, said: &str) -> String {
        let first = super::uses::first(said);
        let place = |line: &str| -> Option<String> {
            let place = line.split(": ").next()?;
            let mut parts = place.rsplitn(3, ':');
            parts.next()?.parse::<u32>().ok()?;
            parts.next()?.parse::<u32>().ok()?;
            self.compilers.file(parts.next()?)?;
            Some(place.trim().to_owned())
        };
        if place(&first).is_some() {
            return first;
        }
        // GCC: required from here; clang: in instantiation of … requested here
        let here = said
            .lines()
            .filter(|line| line.ends_with("required from here") || line.ends_with("requested here"));
        let text = first.split_once(": ").map_or(first.as_str(), |(_, text)| text);
        here.filter_map(place).next().map_or_else(|| first.clone(), |place| format!("{place}: {text}"))
    }

    /// Compares the layouts in the built program with the promised ones.
    fn compare(
        &mut self,
        all: &mut Targets,
        open: &[usize],
        program: &Path,
        root: &Path,
        trusts: bool,
    ) -> Result<bool> {
        let program = program.canonicalize().with_context(|| format!("cannot read {}", program.display()))?;
        let inside = program.strip_prefix(root).ok();
        let Some((inside, built)) =
            inside.and_then(|inside| Some((inside, self.compilers.copy()?.join(inside))))
        else {
            for at in open {
                let evidence = format!(
                    "{} is outside of {}: it cannot be compared with what --build makes there (--root)",
                    program.display(),
                    root.display()
                );
                all[*at].1 = Some(Refused::new(Kind::NotRebuilt, evidence));
            }
            return Ok(open.is_empty());
        };
        let edited: Vec<&Target> = open.iter().map(|at| &all[*at].0).collect();
        let found = old_layouts(&edited, &built, &inside.display().to_string(), trusts)?;
        let is_verified = found.iter().all(Option::is_none);
        for (at, found) in open.iter().zip(found) {
            all[*at].1 = found;
        }
        Ok(is_verified)
    }
}

/// Returns `true` if a compiler's message is of an assertion at compile time.
pub(super) fn is_assertion(said: &str) -> bool {
    ["static assertion", "static_assert", "size of array", "BUILD_BUG"].iter().any(|word| said.contains(word))
}

/// Returns the lines of a failed build that say most: from the first error on, or the last ones.
fn excerpt(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let first =
        lines.iter().position(|line| is_error_line(line)).unwrap_or(lines.len().saturating_sub(SHOWN_LINES));
    let shown = lines.iter().skip(first).take(SHOWN_LINES).map(|line| format!("  {line}"));
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_begins_at_the_first_error() {
        let said =
            "a.c: In function 'f':\na.c:3:1: error: no\n\n    3 | x\nmake: *** [Makefile:2: h] Error 1\n";
        assert_eq!(excerpt(said), "  a.c:3:1: error: no\n      3 | x\n  make: *** [Makefile:2: h] Error 1");
        let linker =
            "gcc a.o -o a\na.c:(.text+0x5): undefined reference to `f'\ncollect2: error: ld returned 1\n";
        assert!(excerpt(linker).starts_with("  a.c:(.text+0x5): undefined reference"));
        assert!(crate::apply::uses::first(linker).starts_with("a.c:(.text+0x5): undefined"));
        let long: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(excerpt(&long).lines().next(), Some("  85"));
    }
}
