//! The pager: a program that shows output longer than the terminal, as git uses one.

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGQUIT};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Characters that make a command one for a shell.
const SHELL: &str = "|&;<>()$`\\\"' \t\n*?[#~=%";

/// Returns `true` if a configured pager command is a pager: an empty one and `cat` are not.
pub(crate) fn is_pager(command: &str) -> bool {
    !matches!(command.trim(), "" | "cat")
}

/// Returns `true` if a terminal of this type (the variable `TERM`) can do what pagers need. On a dumb one, or one of
/// no type, `less` warns and waits for a key before it shows anything.
pub(crate) fn is_pageable(term: Option<&OsStr>) -> bool {
    term.is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Returns `true` if a pager's command runs `less`, which passes hyperlinks on to the terminal.
pub(crate) fn is_less(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    program.rsplit('/').next() == Some("less")
}

/// A writer into a pager's standard input. The pager is started by the first byte; if it cannot be, the text goes to
/// standard output.
///
/// From then on Ctrl-C (SIGINT) is left to the pager, in which it only stops a search; this process goes on until the
/// pager exits.
pub(crate) struct PagerWriter {
    command: String,
    state: State,
    interrupted: Arc<AtomicBool>,
    listeners: Vec<SigId>,
}

enum State {
    Waiting,
    Running {
        child: Child,
        input: ChildStdin,
    },
    /// The program is not there.
    Direct,
}

impl PagerWriter {
    pub(crate) fn new(command: &str) -> PagerWriter {
        let interrupted = Arc::new(AtomicBool::new(false));
        PagerWriter { command: command.to_owned(), state: State::Waiting, interrupted, listeners: Vec::new() }
    }

    fn start(&mut self) {
        let Ok(mut child) = command(&self.command).stdin(Stdio::piped()).spawn() else {
            self.state = State::Direct;
            return;
        };
        // at the next byte there is no reader then, and it ends as after `q`
        let listen = |signal| signal_hook::flag::register(signal, Arc::clone(&self.interrupted)).ok();
        self.listeners = [SIGINT, SIGQUIT].into_iter().filter_map(listen).collect();
        self.state = match child.stdin.take() {
            Some(input) => State::Running { child, input },
            None => State::Direct,
        };
    }

    /// Closes the pager's input and waits until the user has left the pager.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if let State::Running { mut child, input } = std::mem::replace(&mut self.state, State::Direct) {
            drop(input);
            child.wait()?;
        }
        self.listeners.drain(..).for_each(|id| {
            signal_hook::low_level::unregister(id);
        });
        Ok(())
    }
}

impl Drop for PagerWriter {
    fn drop(&mut self) {
        // also where what was to be shown could not be found out
        if let State::Running { mut child, input } = std::mem::replace(&mut self.state, State::Direct) {
            drop(input);
            let _ = child.wait();
        }
    }
}

impl Write for PagerWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if matches!(self.state, State::Waiting) && !bytes.is_empty() {
            self.start();
        }
        match &mut self.state {
            State::Running { .. } if self.interrupted.load(Ordering::Relaxed) => {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            State::Running { input, .. } => input.write(bytes),
            State::Direct => io::stdout().write(bytes),
            State::Waiting => Ok(0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Running { input, .. } => input.flush(),
            State::Direct => io::stdout().flush(),
            State::Waiting => Ok(()),
        }
    }
}

/// Returns the command as a process: of plain words directly, so that a program that is not there is noticed.
fn command(text: &str) -> Command {
    let is_plain = text.split_whitespace().all(|word| !word.contains(|letter| SHELL.contains(letter)));
    let mut words = text.split_whitespace();
    let mut command = match (is_plain, words.next()) {
        (true, Some(program)) => {
            let mut command = Command::new(program);
            command.args(words);
            command
        }
        _ => {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        }
    };
    // as git does: pagers without options show colours and end where all fits the terminal
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_of_plain_words_do_without_a_shell() {
        assert_eq!(command("less -FRX").get_program(), "less");
        assert_eq!(command("less | cat").get_program(), "sh");
        assert_eq!(command("PAGER=x less").get_program(), "sh");
        assert_eq!(command("").get_program(), "sh");
    }

    #[test]
    fn less_is_known_by_its_name() {
        assert!(is_less("/usr/bin/less -R") && is_less("less"));
        assert!(!is_less("most") && !is_less("lesser") && !is_less(""));
        assert!(!is_pager("cat") && !is_pager(" ") && is_pager("less"));
    }

    #[test]
    fn terminals_that_pagers_warn_about_have_none() {
        assert!(is_pageable(Some("xterm".as_ref())));
        assert!(!is_pageable(Some("dumb".as_ref())) && !is_pageable(Some("".as_ref())) && !is_pageable(None));
    }
}
