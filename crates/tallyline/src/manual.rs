//! The manual: a page for the program and one for each sub-command, made from the command line's
//! own description.

use anyhow::Result;
use clap::Command;
use clap_mangen::Man;
use std::io::Write;

/// Writes all pages, one after another, in the language of `man`.
pub(crate) fn write(mut program: Command, out: &mut dyn Write) -> Result<()> {
    program.build();
    pages(&program, out)
}

fn pages(command: &Command, mut out: &mut dyn Write) -> Result<()> {
    let man = Man::new(command.clone());
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    let mut subs = command.get_subcommands().filter(|sub| sub.get_name() != "help").peekable();
    if subs.peek().is_some() {
        man.render_subcommands_section(&mut out)?;
    }
    if let Some(examples) = command.get_after_help() {
        write_as_it_is(&examples.to_string(), out)?;
    }
    subs.try_for_each(|sub| pages(sub, out))
}

/// Writes the examples line by line: filled into paragraphs they could not be read.
fn write_as_it_is(text: &str, out: &mut dyn Write) -> Result<()> {
    writeln!(out, ".SH EXAMPLES\n.nf")?;
    for line in text.lines().filter(|line| *line != "Examples:") {
        // a backslash starts an escape, and a dot or quote at the start of a line a request
        writeln!(out, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
    }
    writeln!(out, ".fi")?;
    Ok(())
}
