//! A terminal with the program in it.

#![allow(dead_code)] // each test file uses a part of it

use crate::common::{PATIENCE, tallyline};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

/// A terminal with a program in it.
pub(crate) struct Terminal {
    pub(crate) master: OwnedFd,
    pub(crate) child: Child,
    pub(crate) seen: String,
}

impl Terminal {
    pub(crate) fn run(columns: u16, rows: u16, args: &[&str]) -> Terminal {
        let mut command = tallyline();
        command.args(args).env("TERM", "xterm");
        Terminal::start(columns, rows, command)
    }

    /// Runs a command on a terminal that it controls, so that Ctrl-C reaches it.
    pub(crate) fn start(columns: u16, rows: u16, mut command: Command) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("any size");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let slave =
            rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the other side");
        let side = || Stdio::from(slave.try_clone().expect("one more"));
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("the program runs");
        Terminal { master, child, seen: String::new() }
    }

    /// Reads what is written within a moment; false at the end.
    pub(crate) fn read(&mut self) -> bool {
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
    pub(crate) fn press(&mut self, keys: &str, text: &str) -> String {
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
    pub(crate) fn finish(self) -> String {
        self.finish_with_status().0
    }

    /// Returns everything up to the end, and the exit status.
    pub(crate) fn finish_with_status(mut self) -> (String, ExitStatus) {
        let end = Instant::now() + PATIENCE;
        // a terminal ends when all that was written is read, which is after the program has ended
        while self.read() {
            assert!(Instant::now() < end, "the terminal does not end: {}", self.seen);
        }
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return (std::mem::take(&mut self.seen), status);
            }
            assert!(Instant::now() < end, "the program does not end: {}", self.seen);
            std::thread::yield_now();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns text without what moves the cursor or sets colours, a line for each row.
pub(crate) fn plain(frame: &str) -> String {
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
