//! The manual: a page for the program and one for each sub-command, made from the command line's own description.

use anyhow::{Context, Result, bail};
use clap::{Args, Command};
use clap_mangen::Man;
use std::fs::{self, File};
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use tallyline_support::output::{Color, Output};

/// Show a manual page, or write all manual pages into a folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// The sub-command; without one the page of the program
    #[arg(value_name = "COMMAND", conflicts_with = "folder")]
    words: Vec<String>,

    /// Write every page into this folder, as tallyline-layout.1 and so on
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tallyline man layout                   shown by man on a terminal
  tallyline man bench update | less      in the language of man where it is piped
  tallyline man --folder ~/.local/share/man/man1";

/// Runs the sub-command `tallyline man`: shows one manual page, or writes all into a folder.
pub(crate) fn run(args: &ManArgs, mut program: Command) -> Result<()> {
    program.build();
    if let Some(folder) = &args.folder {
        return write_all(&program, folder);
    }
    let mut command = &program;
    for word in &args.words {
        command = match command.find_subcommand(word) {
            Some(found) => found,
            None => {
                let known: Vec<&str> = pages_below(command).map(Command::get_name).collect();
                let name = command.get_bin_name().unwrap_or("tallyline");
                match known.is_empty() {
                    true => bail!("{name} has no sub-commands"),
                    false => bail!("{name} has no sub-command {word}; there is {}", known.join(", ")),
                }
            }
        };
    }
    let mut text = Vec::new();
    page(command, &mut text)?;
    if std::io::stdout().is_terminal() && show(&text).is_ok() {
        return Ok(());
    }
    Output::open(None, Color::Always)?.write(|out| Ok(out.write_all(&text)?))
}

/// Lets man show a page.
fn show(text: &[u8]) -> Result<()> {
    let mut man = process::Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = man.stdin.take() {
        // who leaves the pager early does not read all of it
        let _ = input.write_all(text);
    }
    if man.wait()?.success() { Ok(()) } else { bail!("man cannot show it") }
}

fn write_all(program: &Command, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut commands = vec![program];
    while let Some(command) = commands.pop() {
        let path = folder.join(format!("{}.1", name(command)));
        let written = File::create(&path).and_then(|file| {
            let mut out = BufWriter::new(file);
            page(command, &mut out)?;
            out.flush()
        });
        written.with_context(|| format!("cannot write {}", path.display()))?;
        commands.extend(pages_below(command));
    }
    Ok(())
}

/// Returns the sub-commands that have a page.
fn pages_below(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
}

/// Returns the name of a page: `tallyline-bench-update`.
fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or("tallyline").replace(' ', "-")
}

/// Writes the manual page of one command.
fn page(command: &Command, mut out: &mut dyn Write) -> std::io::Result<()> {
    let name = name(command);
    let man = Man::new(command.clone()).title(name.to_uppercase());
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    let below: Vec<&Command> = pages_below(command).collect();
    if !below.is_empty() {
        writeln!(out, ".SH COMMANDS")?;
        for sub in &below {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            writeln!(out, ".TP\n\\fB{}\\fR(1)\n\\&{}", escaped(&self::name(sub)), escaped(&about))?;
        }
    }
    if let Some(examples) = command.get_after_help() {
        write_epilogue(&examples.to_string(), out)?;
    }
    // reports of findings point at this page
    if name == "tallyline-check" {
        write_reference(&tallyline_layout::check::reference(), out)?;
    }
    if let Some((above, _)) = name.rsplit_once('-') {
        writeln!(out, ".SH SEE ALSO\n\\fB{}\\fR(1)", escaped(above))?;
    }
    Ok(())
}

/// Writes the end of a help text: examples line by line, paragraphs filled.
fn write_epilogue(text: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let mut is_filled = true;
    for line in text.lines() {
        let fills = !line.starts_with(' ');
        if fills != is_filled {
            writeln!(out, "{}", if fills { ".fi" } else { ".nf" })?;
            is_filled = fills;
        }
        match line {
            "" => writeln!(out, ".PP")?,
            "Examples:" => writeln!(out, ".SH EXAMPLES")?,
            _ => writeln!(out, "\\&{}", escaped(line))?,
        }
    }
    if !is_filled {
        writeln!(out, ".fi")?;
    }
    Ok(())
}

/// Writes a reference in Markdown, which has headings, tables and paragraphs: a key or rule a paragraph of its own.
fn write_reference(markdown: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let mut is_in_table = false;
    for line in markdown.lines() {
        let text = line.replace('`', "").replace("**", "");
        let cells: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
        match line.split(' ').next() {
            Some("#") => writeln!(out, ".SH {}", escaped(&text[2..].to_uppercase()))?,
            Some("##") => writeln!(out, ".SS \"{}\"", escaped(&text[3..]))?,
            Some("|") if is_in_table => {
                writeln!(out, ".TP\n\\fB{}\\fR", escaped(cells[0])).and_then(|()| {
                    let about = cells[1..].join(". ");
                    writeln!(out, "\\&{}", escaped(about.trim_end_matches(". ")))
                })?
            }
            // the titles of the columns, and the line below them
            Some("|") => {}
            _ if line.starts_with("|--") => is_in_table = true,
            _ if line.is_empty() => {
                is_in_table = false;
                writeln!(out, ".PP")?;
            }
            _ => writeln!(out, "\\&{}", escaped(&text))?,
        }
    }
    Ok(())
}

/// Returns a line without meaning to man: a backslash starts an escape there, and a dash may be made another sign.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
