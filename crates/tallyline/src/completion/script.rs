//! Completion scripts: clap's, with questions for types and members put in front.

use clap::Command;
use clap_complete::Shell;
use std::fmt::Write;

/// Returns the completion script for a shell, for the command line of `tallyline`.
pub(crate) fn script(shell: Shell, program: &mut Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, program, "tallyline", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => format!("{script}{BASH}"),
        Shell::Zsh => script.replacen(ZSH_START, &format!("{ZSH_START}{ZSH}"), 1),
        Shell::Fish => script + &fish(program),
        _ => script,
    }
}

/// The registration at the end of the script holds, as it is the last one.
const BASH: &str = r#"
# names of types and members, from the file on the command line
_tallyline_names() {
    local answer
    if answer=$("${1/#\~\//$HOME/}" complete --shell bash --line "$COMP_LINE" --point "$COMP_POINT" 2>/dev/null); then
        mapfile -t COMPREPLY <<<"$answer"
        [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
        return 0
    fi
    _tallyline "$@"
}

complete -F _tallyline_names -o bashdefault -o default tallyline
"#;

const ZSH_START: &str = "_tallyline() {\n";

const ZSH: &str = r#"    # names of types and members, from the file on the command line
    local -a names
    names=("${(@f)$("${(Q)words[1]}" complete --index $((CURRENT - 1)) -- "${(@Q)words}" 2>/dev/null)}")
    if (( ${#names} )) && [[ -n $names[1] ]]; then
        compadd -M 'r:|=*' -- "${names[@]}"
        return
    fi

"#;

/// Options that take names, by sub-command.
const OPTIONS: [(&str, &[&str]); 5] = [
    ("layout", &["class", "contains", "find-pointers-to"]),
    ("groups", &["class"]),
    ("reorganize", &["class", "pin", "unpin"]),
    ("diff", &["class", "exclude"]),
    ("check", &[]),
];

fn fish(program: &Command) -> String {
    let mut text = String::from(
        r"
# names of types and members, from the file on the command line
function __fish_tallyline_names
    set -l before (commandline -opc)
    set -l typed (commandline -ct)
    set -l after (commandline -o)
    set -l count (count $before)
    set -l first (math $count + 1)
    test -n $typed[1]; and set first (math $first + 1)
    set -l rest
    test $first -le (count $after); and set rest $after[$first..-1]
    command $before[1] complete --index $count -- $before $typed[1] $rest 2>/dev/null
end
",
    );
    for (command, options) in OPTIONS {
        let condition = format!("__fish_tallyline_using_subcommand {command}");
        let _ = writeln!(text, "complete -c tallyline -n \"{condition}\" -a '(__fish_tallyline_names)'");
        let arguments = program.find_subcommand(command).into_iter().flat_map(Command::get_arguments);
        for argument in arguments {
            let Some(long) = argument.get_long().filter(|long| options.contains(long)) else { continue };
            let short = argument.get_short().map_or_else(String::new, |short| format!(" -s {short}"));
            let _ = writeln!(
                text,
                "complete -c tallyline -n \"{condition}\"{short} -l {long} -x -a '(__fish_tallyline_names)'"
            );
        }
    }
    text
}
