//! A page's commands, run by one shell in their order.

use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// The character in front of the runner's own words in the output (the record separator).
const MARK: char = '\u{1e}';

/// The time that the commands of a page may take: a hang ends, a busy machine has time to boot an emulated one.
const LIMIT: &str = "1200";

/// An outcome of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Standard output and standard error in the order in which they were written.
    pub(super) output: String,
    /// The exit status.
    pub(super) status: i32,
}

/// The environment of a shell.
#[derive(Debug)]
pub(super) struct Environment<'a> {
    /// The folder in which the commands run.
    pub(super) folder: &'a Path,
    /// The folder with the programs that are found first.
    pub(super) programs: &'a Path,
    /// The home folder.
    pub(super) home: &'a Path,
    /// The project, which commands that readers do not see find in `$PROJECT`.
    pub(super) project: &'a Path,
}

/// Runs commands one after the other in one shell, so that a variable or a folder lasts to the next.
pub(super) fn run(environment: &Environment<'_>, commands: &[&str]) -> Result<Vec<Outcome>> {
    let script = environment.home.join("commands.sh");
    std::fs::write(&script, text(commands)).with_context(|| script.display().to_string())?;
    let mut path = environment.programs.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    let mut shell = Command::new("timeout");
    shell
        .args([LIMIT, "bash", "--noprofile", "--norc"])
        .arg(&script)
        .current_dir(environment.folder)
        .stdin(Stdio::null())
        .env("PATH", path)
        .env("HOME", environment.home)
        .env("PROJECT", environment.project)
        .env("LC_ALL", "C.UTF-8")
        .env("COLUMNS", "100");
    // neither the settings nor the terminal of the one who runs this may change an output
    for name in ["TERM", "NO_COLOR", "CLICOLOR_FORCE", "PAGER", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CFLAGS"]
    {
        shell.env_remove(name);
    }
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TALLYLINE") || name.to_string_lossy().starts_with("CARGO") {
            shell.env_remove(name);
        }
    }
    let ran = shell.output().context("timeout cannot be run")?;
    outcomes(&String::from_utf8_lossy(&ran.stdout), commands)
}

/// Returns the script: each command between a mark and its exit status, which the next one finds in `$?`.
fn text(commands: &[&str]) -> String {
    let mut script = String::from("exec 2>&1\nbook_status=0\n");
    for command in commands {
        script += &format!(
            "printf '\\036'; (exit $book_status)\n{command}\nbook_status=$?; printf '\\036%d' $book_status\n"
        );
    }
    script
}

/// Takes the shell's output apart.
fn outcomes(output: &str, commands: &[&str]) -> Result<Vec<Outcome>> {
    let mut parts = output.split(MARK).skip(1);
    let mut outcomes = Vec::new();
    for command in commands {
        let (Some(output), Some(status)) = (parts.next(), parts.next()) else {
            bail!("`{command}` did not end: it left the shell, or the page's commands took over {LIMIT} s");
        };
        let status = status.parse().with_context(|| format!("`{command}` printed a record separator"))?;
        outcomes.push(Outcome { output: output.to_owned(), status });
    }
    ensure!(parts.next().is_none(), "the last command printed a record separator");
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::{Environment, Outcome, run};

    fn outcomes(name: &str, commands: &[&str]) -> anyhow::Result<Vec<Outcome>> {
        let folder = std::env::temp_dir().join(format!("xtask-book-shell-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("made");
        let outcomes = run(
            &Environment { folder: &folder, programs: &folder, home: &folder, project: &folder },
            commands,
        );
        std::fs::remove_dir_all(&folder).expect("removed");
        outcomes
    }

    fn outcome(output: &str, status: i32) -> Outcome {
        Outcome { output: output.to_owned(), status }
    }

    #[test]
    fn commands_share_a_shell_and_see_the_status_before() {
        let commands = ["x=1", "echo $x; echo $x >&2", "cat <<END\na\nEND", "false", "echo $?", "printf end"];
        let expected = [
            outcome("", 0),
            outcome("1\n1\n", 0),
            outcome("a\n", 0),
            outcome("", 1),
            outcome("1\n", 0),
            outcome("end", 0),
        ];
        assert_eq!(outcomes("share", &commands).expect("run"), expected);
    }

    #[test]
    fn a_command_that_leaves_the_shell_is_an_error() {
        let error = outcomes("leaves", &["exit 3", "true"]).expect_err("an error").to_string();
        assert!(error.starts_with("`exit 3` did not end"), "{error}");
    }
}
