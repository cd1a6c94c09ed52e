//! Pages of the book: their blocks, the commands in them, and the directives in front of them.
//!
//! A directive is a comment that readers do not see, `<!-- book: … -->`, on a line of its own. It belongs to the
//! next block, with nothing but blank lines between:
//!
//! - `filters NAME…`: what the output is compared by (see `filters`); without it every byte counts;
//! - `file PATH`: the block is this file of the book's folder;
//! - `varies: REASON`: the commands have to succeed, what they print is that of the machine;
//! - `where COMMAND: REASON`: the commands are run where this one succeeds, as not every machine has what they need;
//! - `else TEXT`: where it fails, the commands are run all the same: each has to fail, and to print this text.
//!
//! Five stand alone: `chance: REASON` says that what the page's commands print depends on chance, so that a run that
//! differs is no proof: the page is run again (see `run_by_chance`); `check: COMMAND` runs a command that the reader does not see and that has to succeed,
//! `schema PATH: COMMAND` holds a command's JSON against a schema, `picture PATH: COMMAND` makes a picture of a
//! command's output (`picture PATH as TITLE: COMMAND` where the picture shows another command, `picture PATH of
//! WIDTHxHEIGHT: COMMAND` where the output is an HTML page), and `generated: COMMAND` begins lines that are a command's
//! output, up to `end`.

use super::document::Size;
use super::filters::Filter;
use anyhow::{Context, Result, bail, ensure};
use std::ops::Range;
use std::path::PathBuf;

/// The beginning and the end of a directive.
const OPENING: &str = "<!-- book: ";
const CLOSING: &str = " -->";

/// A page, line by line, with the parts that are checked.
#[derive(Debug)]
pub(super) struct Page {
    lines: Vec<String>,
    parts: Vec<Part>,
    by_chance: bool,
}

/// A part of a page that something has to be equal to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Commands with their outputs.
    Console(Console),
    /// A file of the book's folder.
    File {
        /// The file, relative to the book's folder.
        path: PathBuf,
        /// Its lines on the page.
        lines: Range<usize>,
    },
    /// A command that the reader does not see.
    Check {
        /// The command.
        command: String,
        /// The line of the directive.
        line: usize,
    },
    /// A picture of a command's output.
    Picture {
        /// The picture, relative to the book's folder.
        path: PathBuf,
        /// The command that the picture shows, if that is another one.
        title: Option<String>,
        /// The size of the picture, if the output is an HTML page.
        size: Option<Size>,
        /// The command, which prints colours also into a pipe.
        command: String,
        /// The line of the directive.
        line: usize,
    },
    /// A schema of a command's JSON.
    Schema {
        /// The schema, relative to the book's folder.
        path: PathBuf,
        /// The command, which may exit with findings.
        command: String,
        /// The line of the directive.
        line: usize,
    },
    /// Lines that are the output of a command.
    Generated {
        /// The command.
        command: String,
        /// The lines between the directives.
        lines: Range<usize>,
    },
}

/// A block of commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Console {
    /// The filters of its outputs.
    pub(super) filters: Vec<Filter>,
    /// `true` if outputs are those of the machine and not compared.
    pub(super) varies: bool,
    /// The command that succeeds where the block's can be run.
    pub(super) condition: Option<String>,
    /// The text that each command prints as it fails where the condition does not hold.
    pub(super) refusal: Option<String>,
    /// The commands in their order.
    pub(super) commands: Vec<Command>,
}

/// A command on a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// The command, with line breaks where it has several lines.
    pub(super) text: String,
    /// The lines of its output.
    pub(super) output: Range<usize>,
}

/// Directives that belong to the next block.
#[derive(Default)]
struct Pending {
    filters: Vec<Filter>,
    varies: bool,
    condition: Option<String>,
    refusal: Option<String>,
    file: Option<PathBuf>,
    line: usize,
}

impl Page {
    /// Parses a page.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut parts = Vec::new();
        let mut pending: Option<Pending> = None;
        let mut by_chance = false;
        let mut next = 0;
        while let Some(line) = lines.get(next) {
            let number = next + 1;
            if let Some(directive) = line.strip_prefix(OPENING) {
                let directive = directive
                    .strip_suffix(CLOSING)
                    .with_context(|| format!("line {number}: a directive that does not end with -->"))?;
                next = match directive.split_once(": ") {
                    Some(("check", command)) => {
                        parts.push(Part::Check { command: command.to_owned(), line: next });
                        next + 1
                    }
                    Some(("chance", _)) => {
                        by_chance = true;
                        next + 1
                    }
                    Some((picture, command)) if picture.starts_with("picture ") => {
                        let name = picture.trim_start_matches("picture ");
                        let (path, title) = match name.split_once(" as ") {
                            Some((path, title)) => (path, Some(title.to_owned())),
                            None => (name, None),
                        };
                        let (path, size) = match path.split_once(" of ") {
                            Some((path, size)) => {
                                (path, Some(Size::parse(size).with_context(|| format!("line {number}"))?))
                            }
                            None => (path, None),
                        };
                        let (path, command) = (PathBuf::from(path), command.to_owned());
                        parts.push(Part::Picture { path, title, size, command, line: next });
                        next + 1
                    }
                    Some((schema, command)) if schema.starts_with("schema ") => {
                        let path = PathBuf::from(schema.trim_start_matches("schema "));
                        parts.push(Part::Schema { path, command: command.to_owned(), line: next });
                        next + 1
                    }
                    Some(("generated", command)) => {
                        let end = format!("{OPENING}end{CLOSING}");
                        let length = lines[next + 1..].iter().position(|line| *line == end);
                        let length = length
                            .with_context(|| format!("line {number}: generated lines without an end"))?;
                        let lines = next + 1..next + 1 + length;
                        let after = lines.end + 1;
                        parts.push(Part::Generated { command: command.to_owned(), lines });
                        after
                    }
                    _ => {
                        let pending = pending.get_or_insert_default();
                        pending.line = number;
                        pending.add(directive).with_context(|| format!("line {number}"))?;
                        next + 1
                    }
                };
            } else if let Some((fence, language)) = opening_fence(line) {
                let length = lines[next + 1..].iter().position(|line| line.trim_end() == fence);
                let length = length.with_context(|| format!("line {number}: a block without an end"))?;
                let content = next + 1..next + 1 + length;
                next = content.end + 1;
                let pending = pending.take().unwrap_or_default();
                match (language, pending.file) {
                    ("console", None) => parts.push(Part::Console(Console {
                        commands: commands(&lines, content).with_context(|| format!("line {number}"))?,
                        filters: pending.filters,
                        varies: pending.varies,
                        condition: pending.condition,
                        refusal: pending.refusal,
                    })),
                    ("console", Some(_)) => bail!("line {number}: a block of commands is no file"),
                    (_, Some(path)) => parts.push(Part::File { path, lines: content }),
                    (_, None) => ensure!(
                        pending.line == 0,
                        "line {}: a directive in front of a block without commands",
                        pending.line
                    ),
                }
            } else {
                if let Some(pending) = pending.as_ref().filter(|_| !line.trim().is_empty()) {
                    bail!("line {}: a directive without a block behind it", pending.line);
                }
                next += 1;
            }
        }
        if let Some(pending) = pending {
            bail!("line {}: a directive without a block behind it", pending.line);
        }
        Ok(Self { lines, parts, by_chance })
    }

    /// Returns `true` if outputs of the page depend on chance.
    pub(super) fn is_by_chance(&self) -> bool {
        self.by_chance
    }

    /// Returns the parts that are checked, in their order.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns lines of the page, each with its line break.
    pub(super) fn text(&self, lines: Range<usize>) -> String {
        self.lines[lines].iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns the page with ranges of lines replaced. The ranges are in order and apart.
    pub(super) fn with(&self, replacements: &[(Range<usize>, String)]) -> String {
        let mut text = String::new();
        let mut next = 0;
        for (lines, replacement) in replacements {
            text += &self.text(next..lines.start);
            text += replacement;
            next = lines.end;
        }
        text + &self.text(next..self.lines.len())
    }

    /// Returns the lines outside of blocks, with their numbers from 1 on.
    pub(super) fn prose(&self) -> Vec<(usize, &str)> {
        let mut prose = Vec::new();
        let mut fence: Option<&str> = None;
        for (number, line) in self.lines.iter().enumerate() {
            match (fence, opening_fence(line)) {
                (Some(open), _) if line.trim_end() == open => fence = None,
                (Some(_), _) => {}
                (None, Some((open, _))) => fence = Some(open),
                (None, None) => prose.push((number + 1, line.as_str())),
            }
        }
        prose
    }
}

impl Pending {
    fn add(&mut self, directive: &str) -> Result<()> {
        if let Some(reason) = directive.strip_prefix("varies:") {
            ensure!(!reason.trim().is_empty(), "varies without a reason");
            self.varies = true;
            return Ok(());
        }
        if let Some(condition) = directive.strip_prefix("where ") {
            let (command, reason) = condition.rsplit_once(": ").unwrap_or_default();
            ensure!(
                !command.trim().is_empty() && !reason.trim().is_empty(),
                "where without a command and a reason"
            );
            self.condition = Some(command.to_owned());
            return Ok(());
        }
        if let Some(text) = directive.strip_prefix("else ") {
            ensure!(self.condition.is_some(), "else without where");
            self.refusal = Some(text.trim().to_owned());
            return Ok(());
        }
        let (name, values) = directive.split_once(' ').unwrap_or((directive, ""));
        match name {
            "filters" => {
                for value in values.split_whitespace() {
                    self.filters.push(Filter::named(value)?);
                }
                ensure!(!self.filters.is_empty(), "filters without a name");
            }
            "file" => self.file = Some(PathBuf::from(values)),
            _ => bail!(
                "unknown directive `{name}` (expected filters, file, varies, where, else, chance, check, schema, picture, generated)"
            ),
        }
        Ok(())
    }
}

/// Returns the fence that opens a block, and the block's language.
fn opening_fence(line: &str) -> Option<(&str, &str)> {
    let ticks = line.len() - line.trim_start_matches('`').len();
    (ticks >= 3).then(|| (&line[..ticks], line[ticks..].trim()))
}

/// Takes a block of commands apart: `$ ` begins one, `> ` goes on with it, all else is output.
fn commands(lines: &[String], block: Range<usize>) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    for number in block {
        let line = &lines[number];
        if let Some(text) = line.strip_prefix("$ ") {
            commands.push(Command { text: text.to_owned(), output: number + 1..number + 1 });
            continue;
        }
        let command = commands.last_mut().context("a block of commands begins with `$ `")?;
        match line.strip_prefix("> ").or_else(|| (line == ">").then_some("")) {
            Some(text) if command.output.is_empty() => {
                command.text += "\n";
                command.text += text;
                command.output = number + 1..number + 1;
            }
            _ => command.output.end = number + 1,
        }
    }
    ensure!(!commands.is_empty(), "a block of commands without one");
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::{Command, Console, Page, Part};
    use crate::book::document::Size;
    use crate::book::filters::Filter;
    use std::path::PathBuf;

    const PAGE: &str = "\
# Title

<!-- book: filters numbers -->
```console
$ cat <<END
> a
> END
a
$ true
```
<!-- book: file examples/one.c -->
```c
int one;
```
<!-- book: check: test -f one -->
<!-- book: picture images/one.svg: echo one -->
<!-- book: picture images/two.svg as echo two: tmux echo two -->
<!-- book: picture images/page.svg of 90x50 as make page: cat page.html -->
<!-- book: schema one.json: echo {} -->
<!-- book: generated: echo row -->
row
<!-- book: end -->
```sh
left alone
```
";

    #[test]
    fn a_page_has_commands_files_checks_and_generated_lines() {
        let page = Page::parse(PAGE).expect("parses");
        let expected = [
            Part::Console(Console {
                filters: vec![Filter::Numbers],
                varies: false,
                condition: None,
                refusal: None,
                commands: vec![
                    Command { text: "cat <<END\na\nEND".into(), output: 7..8 },
                    Command { text: "true".into(), output: 9..9 },
                ],
            }),
            Part::File { path: PathBuf::from("examples/one.c"), lines: 12..13 },
            Part::Check { command: "test -f one".into(), line: 14 },
            Part::Picture {
                path: "images/one.svg".into(),
                title: None,
                size: None,
                command: "echo one".into(),
                line: 15,
            },
            Part::Picture {
                path: "images/two.svg".into(),
                title: Some("echo two".into()),
                size: None,
                command: "tmux echo two".into(),
                line: 16,
            },
            Part::Picture {
                path: "images/page.svg".into(),
                title: Some("make page".into()),
                size: Some(Size { width: 90, height: 50 }),
                command: "cat page.html".into(),
                line: 17,
            },
            Part::Schema { path: "one.json".into(), command: "echo {}".into(), line: 18 },
            Part::Generated { command: "echo row".into(), lines: 20..21 },
        ];
        assert_eq!(page.parts(), expected);
        assert_eq!(page.text(7..8), "a\n");
    }

    #[test]
    fn replaced_lines_leave_all_others_as_they_are() {
        let page = Page::parse(PAGE).expect("parses");
        assert_eq!(page.with(&[]), PAGE);
        let changed = page.with(&[(7..8, "b\nc\n".into()), (9..9, "said\n".into())]);
        assert_eq!(changed, PAGE.replace("\na\n$ true\n", "\nb\nc\n$ true\nsaid\n"));
    }

    #[test]
    fn prose_is_what_is_outside_of_blocks() {
        let page = Page::parse("a\n```c\nb\n```\nc\n").expect("parses");
        assert_eq!(page.prose(), [(1, "a"), (5, "c")]);
    }

    #[test]
    fn what_is_misspelt_is_an_error_with_its_line() {
        for (text, expected) in [
            ("```console\nno prompt\n```\n", "line 1: a block of commands begins with `$ `"),
            ("```console\n$ true\n", "line 1: a block without an end"),
            ("<!-- book: filter times -->\n```console\n$ true\n```\n", "line 1: unknown directive `filter`"),
            ("<!-- book: filters time -->\n", "line 1: unknown filter `time`"),
            ("<!-- book: filters times -->\ntext\n", "line 1: a directive without a block behind it"),
            ("<!-- book: varies:  -->\n", "line 1: varies without a reason"),
            ("<!-- book: where true -->\n", "line 1: where without a command and a reason"),
            ("<!-- book: else no such event -->\n", "line 1: else without where"),
            ("<!-- book: picture one.svg of 90: true -->\n", "line 1: a size is WIDTHxHEIGHT"),
            ("<!-- book: generated: true -->\n", "line 1: generated lines without an end"),
        ] {
            let error = format!("{:#}", Page::parse(text).expect_err(text));
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
