//! The destination of results: standard output or a file, with colours where they are wanted.

use crate::hyperlink::{LinkWriter, Links};
use crate::pager::{self, PagerWriter};
use crate::replacement::Replacement;
use anstream::{AutoStream, ColorChoice, StripStream};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The setting for coloured output: on terminals only (`auto`), always, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Settings for what is printed on standard output: the pager, and the terminal hyperlinks.
#[derive(Default)]
pub struct Presentation {
    pager: Option<String>,
    links: Option<Links>,
}

static PRESENTATION: OnceLock<Presentation> = OnceLock::new();

impl Presentation {
    /// Sets the command of the pager through which output on a terminal is shown. An empty command or `cat` means no
    /// pager, and so do terminals whose type (the variable `TERM`) is unknown or `dumb`.
    pub fn with_pager(self, command: &str) -> Presentation {
        let term = std::env::var_os("TERM");
        let is_wanted =
            pager::is_pager(command) && io::stdout().is_terminal() && pager::is_pageable(term.as_deref());
        Presentation { pager: is_wanted.then(|| command.to_owned()), ..self }
    }

    /// Sets the format of the terminal hyperlinks that source positions (`file:line`) in the output become.
    pub fn with_links(self, links: Links) -> Presentation {
        Presentation { links: Some(links), ..self }
    }

    /// Returns `true` if hyperlinks would reach a terminal: standard output is one, and the pager, if there is one, is
    /// `less`.
    pub fn hands_on_links(&self) -> bool {
        io::stdout().is_terminal() && self.pager.as_deref().is_none_or(pager::is_less)
    }

    /// Installs the pager and the format of terminal links for all later output of the process. Only the first call has an
    /// effect.
    pub fn set(self) {
        let _ = PRESENTATION.set(self);
    }
}

impl Color {
    fn choice(self) -> ColorChoice {
        match self {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
    }
}

/// The destination of a command's results: a file, or standard output (also for `-`).
///
/// It is opened before anything is measured, so that an unwritable path is reported at once. A file's old content stays
/// until the new one is complete (see [`Replacement`]). Colours go into a file only with `--color always`.
pub struct Output {
    place: Destination,
    name: String,
}

enum Destination {
    Stdout(ColorChoice),
    File { path: PathBuf, open: Option<Replacement>, colors: bool },
}

impl Output {
    /// Checks that the file for a command's results can be written and returns it as their destination; standard output
    /// if `path` is `None` or `-`.
    pub fn open(path: Option<&Path>, color: Color) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Output {
                place: Destination::Stdout(stdout_choice(color)),
                name: "standard output".into(),
            });
        };
        let name = path.display().to_string();
        if let Some(kind) = input_at(path) {
            bail!(
                "cannot write {name}: it is {kind}, which would be lost (give another name, or remove it first)"
            );
        }
        let open = Replacement::check(path).with_context(|| format!("cannot write {name}"))?;
        Ok(Output {
            place: Destination::File { path: path.into(), open, colors: color == Color::Always },
            name,
        })
    }

    /// Returns `true` if a command's results may be coloured in this destination (a file or standard output).
    pub fn has_colors(&self) -> bool {
        match &self.place {
            Destination::Stdout(choice) => *choice != ColorChoice::Never,
            Destination::File { colors, .. } => *colors,
        }
    }

    /// Writes a command's results: runs `write` with a buffered writer to the file or standard output, through the
    /// pager and with hyperlinks where those are set; without colours where they are not wanted. A file is replaced
    /// only if all succeeds.
    pub fn write(self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let Output { place, name } = self;
        let written = || -> Result<()> {
            match place {
                Destination::Stdout(choice) => shown(choice, write),
                Destination::File { path, open, colors } => {
                    let mut file = open.map_or_else(|| Replacement::create(&path), Ok)?;
                    match colors {
                        true => buffered(&mut file, write)?,
                        false => buffered(&mut StripStream::new(&mut file as &mut dyn Write), write)?,
                    }
                    Ok(file.finish()?)
                }
            }
        };
        written().map_err(|error| match error.is::<io::Error>() {
            true => error.context(format!("cannot write {name}")),
            // what is written could not be found out
            false => error,
        })
    }
}

/// Returns the kind of a file that commands read: results do not take its place, which a slip of `-o` would ask for.
fn input_at(path: &Path) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 3] =
        [(b"PERFILE2", "a recording"), (b"TLT1", "a trace"), (b"\x7fELF", "a program or library")];
    if !path.metadata().is_ok_and(|found| found.is_file()) {
        return None;
    }
    let mut start = Vec::new();
    File::open(path).ok()?.take(8).read_to_end(&mut start).ok()?;
    KINDS.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, kind)| *kind)
}

/// Writes to standard output, with links and by the pager where they are wanted.
fn shown(choice: ColorChoice, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let Presentation { pager, links } = PRESENTATION.get_or_init(Presentation::default);
    let Some(command) = pager else { return linked(io::stdout(), links.as_ref(), choice, write).1 };
    let (pager, written) = linked(PagerWriter::new(command), links.as_ref(), choice, write);
    pager.finish()?;
    match written {
        // who leaves the pager has seen enough: the exit status is that of the whole
        Err(error) if is_broken_pipe(&error) => Ok(()),
        written => written,
    }
}

fn linked<W: Write + 'static>(
    mut out: W,
    links: Option<&'static Links>,
    choice: ColorChoice,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> (W, Result<()>) {
    let Some(links) = links else {
        let written = buffered(&mut AutoStream::new(&mut out as &mut dyn Write, choice), write);
        return (out, written);
    };
    let mut linker = LinkWriter::new(links, out);
    let written = buffered(&mut AutoStream::new(&mut linker as &mut dyn Write, choice), write);
    let (out, ended) = linker.into_inner();
    (out, written.and(ended.map_err(Into::into)))
}

fn buffered(stream: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut stream = BufWriter::new(stream);
    write(&mut stream)?;
    Ok(stream.flush()?)
}

fn stdout_choice(color: Color) -> ColorChoice {
    match color {
        Color::Auto => AutoStream::choice(&io::stdout()),
        other => other.choice(),
    }
}

/// Returns a name read from a file with its control characters replaced, so that printing it cannot control the
/// terminal.
pub fn printable(name: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(name);
    if text.chars().any(char::is_control) {
        return text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
    }
    text
}

/// Returns `true` if an error is a write to a pipe whose reader has exited (`tallyline … | head -1`), which is not
/// reported as a failure.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}
