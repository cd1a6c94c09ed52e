//! The command line that is being completed: what is asked for at the cursor, and of which file.

use crate::layout::operands;
use clap::{Arg, Command};
use std::path::PathBuf;

/// The names that fit at the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The names of types.
    Types,
    /// The names of types, where a file may also be given.
    TypesAndFiles,
    /// The names of members of these types.
    Members(Vec<String>),
}

/// A position in a command line.
#[derive(Debug)]
pub(super) struct CommandLine {
    pub(super) kind: Kind,
    /// The file that has the types.
    pub(super) file: PathBuf,
    /// The part of the word before the name: an option, other names of a list.
    pub(super) head: String,
    /// The part of the name that is typed.
    pub(super) typed: String,
}

/// Sub-commands whose operands are types and a file.
const OPERANDS: [&str; 3] = ["layout", "groups", "reorganize"];

/// Options that take types, and options that take members.
const TYPES: [&str; 5] = ["class", "exclude", "contains", "find-pointers-to", "type"];
const MEMBERS: [&str; 2] = ["pin", "unpin"];

impl CommandLine {
    /// Finds out what may be at the word with this index; none where it is neither a type nor a member.
    pub(super) fn parse(program: &Command, words: &[String], index: usize) -> Option<CommandLine> {
        let name = words.get(1).filter(|_| index > 1)?;
        let command = program.find_subcommand(name)?;
        let is_of_files = OPERANDS.contains(&command.get_name());
        // the samples of a recording are not read for this
        if !is_of_files && !matches!(command.get_name(), "diff" | "check") {
            return None;
        }
        let mut scan = Scan::default();
        let mut at = 2;
        let mut here = None;
        while at < words.len() {
            let word = &words[at];
            let (option, inline) = option_of(command, word);
            let is_here = at == index;
            match (option, inline) {
                (Some(option), Some(value)) if is_here => here = Some((Some(option), value)),
                (Some(option), Some(value)) => scan.value(option, &word[value..]),
                (Some(option), None) if option.get_action().takes_values() => {
                    if at + 1 == index {
                        here = Some((Some(option), 0));
                    } else if let Some(value) = words.get(at + 1).filter(|_| !is_here) {
                        scan.value(option, value);
                    }
                    at += 1;
                }
                (Some(option), _) => scan.suggests |= option.get_long() == Some("suggest"),
                (None, _) if word.starts_with('-') && word != "-" => {}
                (None, _) if is_here => here = Some((None, 0)),
                (None, _) => scan.operands.push(word.clone()),
            }
            at += 1;
        }
        let word = words.get(index)?;
        let (option, value) = here?;
        let (file, types) = match command.get_name() {
            // as it is
            "diff" => (scan.operands.get(1).or(scan.operands.first())?.into(), Vec::new()),
            _ => operands::split(&scan.operands, scan.file.as_deref()),
        };
        let kind = match option.and_then(Arg::get_long) {
            None if option.is_none() && is_of_files => Kind::TypesAndFiles,
            None if option.is_none() && command.get_name() == "check" && scan.suggests => Kind::TypesAndFiles,
            Some(long) if TYPES.contains(&long) => Kind::Types,
            Some(long) if MEMBERS.contains(&long) => {
                Kind::Members(types.into_iter().chain(scan.types).collect())
            }
            _ => return None,
        };
        // lists have commas, but not those between the arguments of a template
        let text = &word[value..];
        let start = match kind {
            Kind::TypesAndFiles => 0,
            _ => text.len() - crate::layout::select::split(text).last().map_or(0, |last| last.len()),
        };
        let start = if text.ends_with(' ') { text.len() } else { start };
        let (head, typed) = word.split_at(value + start);
        Some(CommandLine { kind, file, head: head.into(), typed: typed.into() })
    }
}

/// The findings about the other words.
#[derive(Default)]
struct Scan {
    operands: Vec<String>,
    file: Option<PathBuf>,
    types: Vec<String>,
    suggests: bool,
}

impl Scan {
    fn value(&mut self, option: &Arg, value: &str) {
        match option.get_long() {
            Some("file") => self.file = Some(value.into()),
            Some("class") => {
                self.types.extend(crate::layout::select::split(value).into_iter().map(String::from))
            }
            _ => {}
        }
    }
}

/// Returns the option that a word is, and where its value starts if that is in the same word.
fn option_of<'c>(command: &'c Command, word: &str) -> (Option<&'c Arg>, Option<usize>) {
    let find = |is_it: &dyn Fn(&Arg) -> bool| command.get_arguments().find(|arg| is_it(arg));
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) =
            long.split_once('=').map_or((long, None), |(name, _)| (name, Some(name.len() + 3)));
        let is_it = |arg: &Arg| {
            arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
        };
        return (find(&is_it), value);
    }
    let mut letters = word.strip_prefix('-').unwrap_or_default().char_indices();
    for (at, letter) in letters.by_ref() {
        match find(&|arg: &Arg| arg.get_short() == Some(letter)) {
            Some(arg) if arg.get_action().takes_values() => {
                let start = 1 + at + letter.len_utf8();
                return (Some(arg), (start < word.len()).then_some(start));
            }
            Some(_) => {}
            None => break,
        }
    }
    (None, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    fn parse(words: &[&str], index: usize) -> Option<CommandLine> {
        let program = Command::new("tallyline")
            .subcommand(crate::layout::LayoutArgs::augment_args(Command::new("layout")))
            .subcommand(crate::diff::DiffArgs::augment_args(Command::new("diff")))
            .subcommand(crate::check::CheckArgs::augment_args(Command::new("check")))
            .subcommand(crate::reorganize::ReorganizeArgs::augment_args(Command::new("reorganize")))
            .subcommand(Command::new("record"));
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        CommandLine::parse(&program, &words, index)
    }

    #[test]
    fn types_are_asked_for_where_commands_take_them() {
        let line = parse(&["tallyline", "layout", "con", "./server"], 2).expect("an operand");
        assert_eq!(
            (line.kind, line.file.to_str(), &*line.typed),
            (Kind::TypesAndFiles, Some("./server"), "con")
        );
        let line = parse(&["tallyline", "layout", "-C", "a,b<c, d>,e", "./server"], 3).expect("a value");
        assert_eq!((line.kind, &*line.head, &*line.typed), (Kind::Types, "a,b<c, d>,", "e"));
        let line = parse(&["tallyline", "diff", "old", "new", "--class=x"], 4).expect("a value");
        assert_eq!((line.file.to_str(), &*line.head, &*line.typed), (Some("new"), "--class=", "x"));
        let line = parse(&["tallyline", "layout", "-ECx", "--file", "f"], 2).expect("a value");
        assert_eq!((line.file.to_str(), &*line.head, &*line.typed), (Some("f"), "-EC", "x"));
        let line =
            parse(&["tallyline", "reorganize", "--pin", "a,b", "conn", "./server"], 3).expect("a value");
        assert_eq!((line.kind, &*line.head), (Kind::Members(vec!["conn".into()]), "a,"));
    }

    #[test]
    fn everything_else_is_left_to_the_script() {
        for (words, index) in [
            (&["tallyline", "lay"][..], 1),
            (&["tallyline", "layout", "--si"], 2),
            (&["tallyline", "layout", "-o", "x"], 3),
            (&["tallyline", "record", "x"], 2),
            (&["tallyline", "check", "x"], 2),
            (&["tallyline", "none", "x"], 2),
            (&["tallyline"], 3),
        ] {
            assert!(parse(words, index).is_none(), "{words:?}");
        }
    }
}
