//! Reports on a terminal: text that fits it, and the browser, driven by keys.

mod common;
mod recorded;

use common::tallyline;
use recorded::{Access, GET_A, GET_Y, NOTHING, PROGRAM, Recorded, SET_B, access, record_program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Long enough for any machine; only a failure waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal with a program in it.
struct Terminal {
    master: OwnedFd,
    child: Child,
    seen: String,
}

impl Terminal {
    fn run(columns: u16, rows: u16, args: &[&str]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("any size");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let slave =
            rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the other side");
        let side = || Stdio::from(slave.try_clone().expect("one more"));
        let child = tallyline()
            .args(args)
            .env("TERM", "xterm")
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("the program runs");
        Terminal { master, child, seen: String::new() }
    }

    /// Reads what is written within a moment; false at the end.
    fn read(&mut self) -> bool {
        let mut ready = [PollFd::new(&self.master, PollFlags::IN)];
        let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut ready, Some(&moment)).expect("the terminal is there") == 0 {
            return true;
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(&self.master, &mut bytes) {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
                true
            }
        }
    }

    /// Presses keys, and waits for a frame with some text.
    fn press(&mut self, keys: &str, text: &str) -> String {
        rustix::io::write(&self.master, keys.as_bytes()).expect("it takes keys");
        let end = Instant::now() + PATIENCE;
        loop {
            let is_open = self.read();
            // a frame starts in the corner
            let frame = self.seen.rsplit("\x1b[H").next().unwrap_or_default();
            let frame = plain(frame);
            if frame.contains(text) {
                self.seen.clear();
                return frame;
            }
            assert!(is_open && Instant::now() < end, "no {text:?} behind {keys:?}: {frame}");
        }
    }

    /// Returns everything up to the end.
    fn finish(mut self) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let has_ended = self.child.try_wait().expect("our child").is_some();
            if !self.read() || has_ended {
                while self.read() && !self.seen.is_empty() && !has_ended {}
                break;
            }
            assert!(Instant::now() < end, "it does not end: {}", self.seen);
        }
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns text without what moves the cursor or sets colours, a line for each row.
fn plain(frame: &str) -> String {
    let mut parts = frame.split("\x1b[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(0);
        if part[end..].starts_with('H') {
            text.push('\n');
        }
        text.push_str(part.get(end + 1..).unwrap_or_default());
    }
    text
}

/// Returns a type with a name of 692 letters in 40 of 75 samples; each function on a thread's own CPU.
fn recorded(name: &str) -> Option<Recorded> {
    let long = "l".repeat(692);
    let text = PROGRAM.replace("struct pair", &format!("struct {long}"));
    let samples = [(GET_A, 40), (SET_B, 20), (GET_Y, 10), (NOTHING, 5)];
    let all: Vec<Access> = samples
        .into_iter()
        .flat_map(|(function, samples)| (0..samples).map(move |_| access(function)))
        .collect();
    record_program(name, &text, &["-g"], true, &all)
}

#[test]
fn text_fits_the_terminal_and_is_whole_on_request() {
    let Some(recorded) = recorded("terminal-text") else { return };
    let commands: [&[&str]; 4] = [
        &["report", "--stdio", "-s", "type,typeoff,sym"],
        &["report", "--stdio", "-H", "-s", "type,typeoff,sym"],
        &["annotate", "--stdio"],
        &["annotate", "--code", "--symbol", "set_b"],
    ];
    for command in commands {
        let args = [command, &["-i", recorded.path()]].concat();
        let text = plain(&Terminal::run(140, 40, &args).finish());
        assert!(text.contains("ll…ll"), "{args:?}: {text}");
        // perf's heads and reasons are as they are
        let long = text.lines().find(|line| line.trim_end().chars().count() > 140);
        assert_eq!(long, None, "{args:?}");
        let text = plain(&Terminal::run(140, 40, &[&args[..], &["--wide"]].concat()).finish());
        assert!(text.contains(&"l".repeat(692)), "{args:?}: {text}");
    }
}

#[test]
fn what_a_function_leads_to_are_its_own_accesses() {
    let Some(recorded) = recorded("terminal-browser") else { return };
    let mut terminal = Terminal::run(100, 30, &["report", "-s", "sym", "-i", recorded.path()]);
    let first = terminal.press("", "For help press h");
    assert!(first.lines().all(|line| line.chars().count() <= 100), "{first}");
    // the second function
    terminal.press("\x1b[B", "2/4");
    let page = terminal.press("\r", "Accesses of [.] set_b");
    assert!(page.contains("100.00%") && page.contains("20"), "{page}");
    // of the type, those of this function alone
    let page = terminal.press("\r", "Annotate type");
    assert!(page.contains("(20 samples)") && page.contains("of [.] set_b"), "{page}");
    let member = page.lines().find(|line| line.ends_with("b;") || line.contains(" b;")).unwrap_or_default();
    assert!(member.contains("100.00"), "{page}");
    let code = terminal.press("a", "Annotate function: 'set_b'");
    assert!(code.contains("p->b = v"), "the source line: {code}");
    // back, and by other keys
    terminal.press("\x1b", "Annotate type");
    terminal.press("q", "Accesses of");
    terminal.press("q", "2/4");
    terminal.press("s", "sort by: sym_");
    let page = terminal.press("\x15type\r", "Data Type");
    assert!(page.contains("93.33%"), "{page}");
    let page = terminal.press("d", "Only file");
    assert!(page.contains("/pair"), "{page}");
    terminal.press("\x1b", "No longer only file");
    terminal.press("t", "Only thread pair (7)");
    terminal.press("\x1b", "No longer only thread");
    // what is typed is erased by one key
    terminal.press("/zzz", "/zzz_");
    terminal.press("\x15", "/_");
    terminal.press("\r", "1/2");
    terminal.press("w", "1/2");
    terminal.press("?", "Ctrl-U");
    terminal.press("q", "1/2");
    rustix::io::write(&terminal.master, b"q").expect("it takes keys");
    let end = Instant::now() + PATIENCE;
    while terminal.child.try_wait().expect("our child").is_none() {
        terminal.read();
        assert!(Instant::now() < end, "it does not end");
    }
}
