//! The book: every command in it is run, and what it prints is compared with what the book shows.
//!
//! Pages are run in folders of their own, which begin with the files of `docs/examples`; `page` says what stands in a
//! page, `filters` how outputs are compared. `--update` writes what the commands print into the pages.

mod difference;
mod document;
mod filters;
mod links;
mod page;
mod schema;
mod screen;
mod shell;

use anyhow::{Context, Result, ensure};
use clap::Args;
use filters::Filter;
use page::{Console, Page, Part};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The book's folder, and the files in it that every page begins with.
const BOOK: &str = "docs";
const EXAMPLES: &str = "examples";

/// The home folder and the folder of a page's commands as the book shows them.
const READERS_HOME: &str = "/home/me";
const READERS_FOLDER: &str = "/home/me/project";

/// Run the commands of the book and compare what they print with what it shows
#[derive(Args)]
pub(crate) struct Book {
    /// Only these pages, by a part of their paths
    pages: Vec<String>,
    /// Write what differs into the pages and pictures
    #[arg(long)]
    update: bool,
    /// With --update, also write outputs that differ only by what filters take out
    #[arg(long, requires = "update")]
    refresh: bool,
    /// Check links and the table of contents only
    #[arg(long)]
    links: bool,
    /// The program to run
    #[arg(long, value_name = "FILE", default_value = "target/release/tallyline")]
    tallyline: PathBuf,
}

/// The outputs that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Update {
    /// None.
    No,
    /// Those that differ.
    Differing,
    /// Those that differ, filters or not.
    Refresh,
}

impl Update {
    fn of(args: &Book) -> Self {
        match (args.update, args.refresh) {
            (false, _) => Self::No,
            (true, false) => Self::Differing,
            (true, true) => Self::Refresh,
        }
    }
}

/// A page after its commands were run.
struct Ran {
    /// Commands that failed and documents that do not keep to their schema.
    failures: Vec<String>,
    /// Outputs, files and pictures that differ, which an update writes.
    differences: Vec<String>,
    /// The page as the run would have it, if that is another one.
    updated: Option<String>,
    /// Numbers of commands that were run and that were not.
    commands: usize,
    not_run: usize,
    /// The number of times that the page was run: more than once only where its outputs depend on chance.
    runs: usize,
}

impl Ran {
    fn holds(&self) -> bool {
        self.failures.is_empty() && self.differences.is_empty()
    }
}

/// The number of times that a page is run whose outputs depend on chance before it counts as different. Samples of two
/// threads differ in kind (a reader was caught or not) in at most one run of five; five such runs in a row are one
/// in 3 000.
const RUNS_BY_CHANCE: usize = 5;

/// Checks the book's links, runs its commands and compares.
pub(crate) fn run(root: &Path, args: &Book) -> Result<()> {
    let book = root.join(BOOK);
    let mut problems = links::problems(root, &book)?;
    let mut commands = [0, 0];
    if !args.links {
        let scratch = scratch(root)?;
        prepare_programs(root, args, &scratch)?;
        let pages: Vec<PathBuf> = links::pages(&book)?
            .into_iter()
            .filter(|page| {
                let name = page.to_string_lossy();
                args.pages.is_empty() || args.pages.iter().any(|part| name.contains(part.as_str()))
            })
            .collect();
        ensure!(!pages.is_empty(), "no page contains {}", args.pages.join(" or "));
        for (page, ran) in pages.iter().zip(run_all(&book, &scratch, &pages, Update::of(args))?) {
            let differences = if args.update { &[][..] } else { &ran.differences[..] };
            let found = ran.failures.iter().chain(differences);
            problems.extend(found.map(|problem| format!("{BOOK}/{}:{problem}", page.display())));
            commands[0] += ran.commands;
            commands[1] += ran.not_run;
            if ran.runs > 1 {
                println!("{BOOK}/{}: run {} times, as outputs depend on chance", page.display(), ran.runs);
            }
            if let Some(text) = ran.updated.filter(|_| args.update) {
                std::fs::write(book.join(page), text).with_context(|| page.display().to_string())?;
                println!("{BOOK}/{}: written", page.display());
            }
        }
        println!("{} commands of {} pages run, {} not run", commands[0], pages.len(), commands[1]);
    }
    problems.iter().for_each(|problem| println!("{problem}"));
    ensure!(
        problems.is_empty(),
        "{} problems; `cargo xtask book --update` writes outputs anew",
        problems.len()
    );
    Ok(())
}

/// Returns the folder for the pages' own folders, emptied.
fn scratch(root: &Path) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let scratch = target.join("book");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    }
    std::fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    Ok(scratch.canonicalize()?)
}

/// Makes the folder of programs that pages find first.
fn prepare_programs(root: &Path, args: &Book, scratch: &Path) -> Result<()> {
    let program = root.join(&args.tallyline);
    let program = program.canonicalize().with_context(|| {
        format!("{}: not there; cargo build --release -p tallyline makes it", program.display())
    })?;
    let programs = scratch.join("programs");
    std::fs::create_dir_all(&programs)?;
    for name in ["tallyline", "pahole"] {
        std::os::unix::fs::symlink(&program, programs.join(name))?;
    }
    // readers are no root, whoever runs this may be, on a machine without sudo; the real one also takes the search
    // path away
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        let sudo = programs.join("sudo");
        std::fs::write(&sudo, "#!/bin/sh\nexec \"$@\"\n")?;
        std::fs::set_permissions(&sudo, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Runs all pages, as many at once as there are CPUs.
fn run_all(book: &Path, scratch: &Path, pages: &[PathBuf], update: Update) -> Result<Vec<Ran>> {
    let next = AtomicUsize::new(0);
    let worker = || -> Result<Vec<(usize, Ran)>> {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(page) = pages.get(number) else { return Ok(done) };
            let ran =
                run_by_chance(book, scratch, page, update).with_context(|| page.display().to_string())?;
            done.push((number, ran));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::new();
    std::thread::scope(|scope| -> Result<()> {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        for handle in handles {
            all.append(&mut handle.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??);
        }
        Ok(())
    })?;
    all.sort_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, ran)| ran).collect())
}

/// A command of a page with what it is held against.
struct Job<'a> {
    text: &'a str,
    kind: Kind<'a>,
    line: usize,
}

/// A use of a command's output.
enum Kind<'a> {
    /// Shown on these lines of the page.
    Shown(&'a Range<usize>, &'a [Filter]),
    /// Not shown, or another one on each machine: the command has to succeed.
    Check,
    /// A picture, the command that it shows if that is another one, and its size if it is one of a page.
    Picture(&'a Path, Option<&'a str>, Option<document::Size>),
    /// Held against this schema.
    Schema(&'a Path),
    /// Expected to fail on this machine, and to print this text.
    Refused(&'a str),
}

/// Runs a page, again where its outputs depend on chance and differ, until a run prints what the page shows.
fn run_by_chance(book: &Path, scratch: &Path, path: &Path, update: Update) -> Result<Ran> {
    let is_by_chance = Page::parse(&std::fs::read_to_string(book.join(path))?)?.is_by_chance();
    let mut ran = run_page(book, scratch, path, update)?;
    while update == Update::No && is_by_chance && !ran.holds() && ran.runs < RUNS_BY_CHANCE {
        ran = Ran { runs: ran.runs + 1, ..run_page(book, scratch, path, update)? };
    }
    Ok(ran)
}

/// Runs a page's commands.
fn run_page(book: &Path, scratch: &Path, path: &Path, update: Update) -> Result<Ran> {
    let text = std::fs::read_to_string(book.join(path))?;
    let page = Page::parse(&text)?;
    let mut ran = Ran {
        failures: Vec::new(),
        differences: Vec::new(),
        updated: None,
        commands: 0,
        not_run: 0,
        runs: 1,
    };
    let mut replacements = Vec::new();
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for part in page.parts() {
        match part {
            Part::Console(console) if !can_run(book, scratch, path, console)? => match &console.refusal {
                None => ran.not_run += console.commands.len(),
                Some(refusal) => jobs.extend(console.commands.iter().map(|command| Job {
                    text: &command.text,
                    kind: Kind::Refused(refusal),
                    line: command.output.start,
                })),
            },
            Part::Console(console) => jobs.extend(console.commands.iter().map(|command| Job {
                text: &command.text,
                kind: match console.varies {
                    true => Kind::Check,
                    false => Kind::Shown(&command.output, &console.filters),
                },
                line: command.output.start,
            })),
            Part::Generated { command, lines } => {
                jobs.push(Job { text: command, kind: Kind::Shown(lines, &[]), line: lines.start });
            }
            Part::Check { command, line } => {
                jobs.push(Job { text: command, kind: Kind::Check, line: line + 1 });
            }
            Part::Schema { path, command, line } => {
                jobs.push(Job { text: command, kind: Kind::Schema(path), line: line + 1 });
            }
            Part::Picture { path, title, size, command, line } => {
                let kind = Kind::Picture(path, title.as_deref(), *size);
                jobs.push(Job { text: command, kind, line: line + 1 });
            }
            Part::File { path, lines } => {
                let file = book.join(path);
                let content = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
                let shown = page.text(lines.clone());
                if shown != content {
                    let title = format!("{}: differs from {}", lines.start + 1, path.display());
                    ran.differences.push(problem(&title, &shown, &content));
                    replacements.push((lines.clone(), content));
                }
            }
        }
    }
    ran.commands = jobs.len();
    let outcomes = run_jobs(book, scratch, path, &jobs)?;
    for (number, (job, outcome)) in jobs.iter().zip(&outcomes).enumerate() {
        let is_shown = jobs.get(number + 1).is_some_and(|next| next.text == "echo $?");
        if let Kind::Refused(refusal) = job.kind {
            if outcome.status == 0 || !outcome.output.contains(refusal) {
                let why = format!("{}: exit status {} of `{}`", job.line, outcome.status, job.text);
                let output = outcome.output.trim_end();
                ran.failures.push(format!("{why}, not refused by \"{refusal}\"\n{output}"));
            }
            continue;
        }
        // documents of findings come with an exit status of their own
        let is_document = outcome.status == 1 && matches!(job.kind, Kind::Schema(_));
        if outcome.status != 0 && !is_shown && !is_document {
            let why = format!("{}: exit status {} of `{}`", job.line, outcome.status, job.text);
            ran.failures.push(format!("{why}, and no `echo $?` behind it\n{}", outcome.output.trim_end()));
            continue;
        }
        match &job.kind {
            Kind::Check | Kind::Refused(_) => {}
            Kind::Schema(schema) => {
                let file = book.join(schema);
                let read = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
                let rules = serde_json::from_str(&read).with_context(|| file.display().to_string())?;
                let document = serde_json::from_str(&outcome.output)
                    .with_context(|| format!("line {}: output of `{}`", job.line, job.text))?;
                let found =
                    schema::problems(&rules, &document).with_context(|| file.display().to_string())?;
                if !found.is_empty() {
                    let list: String = found.iter().map(|one| format!("    {one}\n")).collect();
                    let title = format!("{}: `{}` and {}", job.line, job.text, schema.display());
                    ran.failures.push(format!("{title}: does not fit\n{list}"));
                }
            }
            Kind::Shown(lines, filters) => {
                let (shown, printed) = (page.text((*lines).clone()), with_line_break(&outcome.output));
                let [one, other] = [Filter::apply(filters, &shown)?, Filter::apply(filters, &printed)?];
                let is_stale = update == Update::Refresh && shown != printed;
                if is_stale && one == other {
                    replacements.push(((*lines).clone(), printed));
                } else if one != other {
                    let title = format!("{}: output of `{}`", job.line, job.text);
                    ran.differences.push(problem(&title, &one, &other));
                    replacements.push(((*lines).clone(), printed));
                }
            }
            Kind::Picture(picture, title, size) => {
                let command = job.text.replace(" --color always", "");
                let title = title.unwrap_or(&command);
                let text =
                    |svg| if size.is_some() { document::text(svg).to_owned() } else { screen::text(svg) };
                let new = match size {
                    Some(size) => document::svg(title, &outcome.output, *size)
                        .with_context(|| format!("line {}: output of `{}`", job.line, job.text))?,
                    None => screen::svg(title, outcome.output.trim_end()),
                };
                let file = book.join(picture);
                let old = std::fs::read_to_string(&file).unwrap_or_default();
                let filters = [Filter::Numbers];
                let [one, other] =
                    [Filter::apply(&filters, &text(&old))?, Filter::apply(&filters, &text(&new))?];
                if one != other {
                    ran.differences.push(problem(
                        &format!("{}: {}", job.line, picture.display()),
                        &one,
                        &other,
                    ));
                    if update != Update::No {
                        std::fs::write(&file, new).with_context(|| file.display().to_string())?;
                    }
                }
            }
        }
    }
    if !replacements.is_empty() {
        replacements.sort_by_key(|(lines, _)| lines.start);
        ran.updated = Some(page.with(&replacements));
    }
    Ok(ran)
}

/// Returns whether this machine has what a block needs.
fn can_run(book: &Path, scratch: &Path, path: &Path, console: &Console) -> Result<bool> {
    let Some(condition) = &console.condition else { return Ok(true) };
    let job = Job { text: condition, kind: Kind::Check, line: 0 };
    Ok(run_jobs(book, scratch, path, &[job])?.iter().all(|outcome| outcome.status == 0))
}

/// Runs the commands of a page in a folder of its own.
fn run_jobs(book: &Path, scratch: &Path, path: &Path, jobs: &[Job<'_>]) -> Result<Vec<shell::Outcome>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let readers_folder = ReadersFolder::create()?;
    let folder = readers_folder.0.clone();
    let home = scratch.join(path.with_extension("")).join("home");
    std::fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
    for entry in std::fs::read_dir(book.join(EXAMPLES))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
    }
    let commands: Vec<&str> = jobs.iter().map(|job| job.text).collect();
    let programs = scratch.join("programs");
    let project = book.parent().unwrap_or(book);
    let environment = shell::Environment { folder: &folder, programs: &programs, home: &home, project };
    let mut outcomes = shell::run(&environment, &commands)?;
    for (folder, readers) in [(&folder, READERS_FOLDER), (&home, READERS_HOME)] {
        let folder = folder.display().to_string();
        for outcome in &mut outcomes {
            outcome.output = outcome.output.replace(&folder, readers);
        }
    }
    Ok(outcomes)
}

/// A new folder with a path as long as the reader's, removed on drop: commands fit paths to the screen, so their
/// output depends on the length.
struct ReadersFolder(PathBuf);

impl ReadersFolder {
    fn create() -> Result<Self> {
        for number in 0..1000 {
            let path = PathBuf::from(format!("/tmp/project.{number:03}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
        }
        anyhow::bail!("/tmp/project.000 to /tmp/project.999 exist: remove those that no running check uses")
    }
}

impl Drop for ReadersFolder {
    fn drop(&mut self) {
        // what is left of it is in the way of nobody
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn with_line_break(output: &str) -> String {
    match output.is_empty() || output.ends_with('\n') {
        true => output.to_owned(),
        false => format!("{output}\n"),
    }
}

fn problem(title: &str, shown: &str, ran: &str) -> String {
    let lines: Vec<String> =
        difference::lines(shown, ran).into_iter().map(|line| format!("    {line}\n")).collect();
    format!("{title}\n{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::{READERS_FOLDER, RUNS_BY_CHANCE, Ran, ReadersFolder, Update, run_by_chance};
    use std::path::{Path, PathBuf};

    /// A book of one page; its folder goes with it.
    struct OnePage(PathBuf);

    impl OnePage {
        fn new(name: &str, page: &str) -> Self {
            let root = std::env::temp_dir().join(format!("xtask-book-{name}-{}", std::process::id()));
            std::fs::create_dir_all(root.join("examples")).expect("made");
            std::fs::create_dir_all(root.join("scratch/programs")).expect("made");
            std::fs::write(root.join("examples/one.c"), "int one;\n").expect("written");
            std::fs::write(root.join("page.md"), page).expect("written");
            Self(root)
        }

        fn run(&self, update: Update) -> Ran {
            run_by_chance(&self.0, &self.0.join("scratch"), Path::new("page.md"), update).expect("runs")
        }
    }

    impl Drop for OnePage {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_command_sees_a_path_as_long_as_the_reader_sees_and_none_is_left() {
        let folder = ReadersFolder::create().expect("a number is free");
        let path = folder.0.clone();
        assert_eq!(path.as_os_str().len(), READERS_FOLDER.len());
        // its number is free again once it is gone, for the folder of another test
        let left = path.join(format!("left-{}", std::process::id()));
        std::fs::write(&left, "").expect("written");
        drop(folder);
        assert!(!left.exists());
    }

    #[test]
    fn a_page_that_shows_what_is_printed_has_no_problem() {
        let page = "```console\n$ cat one.c\nint one;\n$ false\n$ echo $?\n1\n```\n\
                    <!-- book: file examples/one.c -->\n```c\nint one;\n```\n\
                    <!-- book: filters numbers -->\n```console\n$ echo 17 rows\n9 rows\n```\n\
                    <!-- book: where test -e none: it is not there -->\n```console\n$ rm -rf x\n```\n\
                    <!-- book: where test -e one.c: it is there -->\n\
                    <!-- book: varies: it is only a test -->\n```console\n$ date\n```\n";
        let ran = OnePage::new("right", page).run(Update::No);
        assert_eq!((ran.failures, ran.differences), (vec![], vec![]));
        assert_eq!((ran.updated, ran.commands, ran.not_run), (None, 5, 1));
    }

    #[test]
    fn where_a_machine_lacks_something_commands_are_refused_as_the_page_says() {
        for (command, refusal, holds) in [
            ("cat none", "No such file", true),
            ("cat none", "no such event", false),
            ("echo No such file", "No such file", false),
        ] {
            let page = format!(
                "<!-- book: where test -e none: it is not there -->\n<!-- book: else {refusal} -->\n\
                 ```console\n$ {command}\n```\n"
            );
            let ran = OnePage::new("refused", &page).run(Update::No);
            assert_eq!((ran.holds(), ran.commands, ran.not_run), (holds, 1, 0), "{command}: {refusal}");
        }
    }

    #[test]
    fn a_page_by_chance_holds_as_soon_as_a_run_prints_what_it_shows() {
        let counted = std::env::temp_dir().join(format!("xtask-book-runs-{}", std::process::id()));
        let command = format!("echo >> {0}; wc -l < {0}", counted.display());
        let page = |runs: usize, chance: &str| format!("{chance}```console\n$ {command}\n{runs}\n```\n");
        let chance = "<!-- book: chance: threads interleave anew -->\n";
        for (name, shown, chance, runs, holds) in [
            ("third", 3, chance, 3, true),
            ("never", 0, chance, RUNS_BY_CHANCE, false),
            ("sure", 3, "", 1, false),
        ] {
            let ran = OnePage::new(name, &page(shown, chance)).run(Update::No);
            assert_eq!((ran.runs, ran.holds()), (runs, holds), "{name}");
            std::fs::remove_file(&counted).expect("the command wrote it");
        }
    }

    #[test]
    fn a_refresh_also_writes_what_filters_take_out() {
        let page = "<!-- book: filters numbers -->\n```console\n$ echo 17 rows\n9 rows\n```\n";
        assert_eq!(OnePage::new("kept", page).run(Update::Differing).updated, None);
        let fresh = OnePage::new("fresh", page).run(Update::Refresh);
        assert_eq!((fresh.differences, fresh.updated), (vec![], Some(page.replace("9 rows", "17 rows"))));
    }

    #[test]
    fn what_differs_is_shown_and_an_update_writes_it() {
        let page =
            "```console\n$ printf 'a\\nb'\na\n```\n<!-- book: generated: cat one.c -->\n<!-- book: end -->\n";
        let ran = OnePage::new("wrong", page).run(Update::No);
        let expected = [
            "2: output of `printf 'a\\nb'`\n      a\n    + b\n",
            "5: output of `cat one.c`\n    + int one;\n",
        ];
        assert_eq!(ran.differences, expected);
        let updated = ran.updated.expect("another page");
        let book = OnePage::new("updated", &updated);
        assert_eq!(book.run(Update::No).differences, [""; 0]);
        assert!(updated.contains("a\nb\n```"), "{updated}");
    }

    #[test]
    fn a_failure_that_is_not_shown_is_a_problem_also_of_an_update() {
        for page in [
            "```console\n$ false\n```\n",
            "<!-- book: check: false -->\n",
            "<!-- book: varies: it is only a test -->\n```console\n$ false\n```\n",
        ] {
            let problems = OnePage::new("fails", page).run(Update::Differing).failures;
            assert!(
                problems.iter().any(|problem| problem.contains("exit status 1 of `false`")),
                "{problems:?}"
            );
        }
    }

    #[test]
    fn documents_are_held_against_their_schema_whatever_they_find() {
        for (schema, fits) in [("integer", true), ("string", false)] {
            let book = OnePage::new("schema", "<!-- book: schema one.json: echo 1; false -->\n");
            let text = format!("{{\"type\": \"{schema}\"}}");
            std::fs::write(book.0.join("one.json"), text).expect("written");
            assert_eq!(book.run(Update::Differing).failures.is_empty(), fits, "{schema}");
        }
    }

    #[test]
    fn pictures_are_made_and_held_to_their_text() {
        let page = "<!-- book: picture one.svg: cat one.c -->\n";
        let book = OnePage::new("picture", page);
        assert_eq!(book.run(Update::No).differences.len(), 1);
        assert_eq!(book.run(Update::Differing).failures, [""; 0]);
        assert!(std::fs::read_to_string(book.0.join("one.svg")).expect("made").contains("int one;"));
        assert_eq!(book.run(Update::No).differences, [""; 0]);
    }
}
