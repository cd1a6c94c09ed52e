//! The terminal: its own screen and raw keys while a browser runs, and everything as before after it,
//! whatever ends it.

use super::draw::{Row, frame};
use super::{Action, Browser, Source, keys};
use anyhow::{Context, Result};
use rustix::termios::{self, OptionalActions, SpecialCodeIndex, Termios};
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::io::{self, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The escape sequences that switch to the alternate screen and hide the cursor; `LEAVE` undoes both.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The timeout of a read in tenths of a second, and so the delay until a resized terminal is noticed.
const PATIENCE: u8 = 2;

/// Returns `true` if standard input and output are a terminal that can show the browser.
pub(crate) fn is_wanted() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The terminal in raw mode; dropped, it is as it was.
struct Raw {
    before: Termios,
}

impl Raw {
    fn enter() -> Result<Raw> {
        let before = termios::tcgetattr(io::stdin()).context("cannot ask the terminal")?;
        let mut raw = before.clone();
        raw.make_raw();
        // reads come back without a key, too
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = PATIENCE;
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw).context("cannot set up the terminal")?;
        let this = Raw { before };
        show(ENTER)?;
        Ok(this)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = show(LEAVE);
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

fn show(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Runs the terminal browser until the user quits. The terminal is restored first if it panics, so that the message
/// is readable.
pub(crate) fn run(source: &dyn Source, colors: bool) -> Result<()> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).context("cannot listen for signals")?;
    }
    let mut browser = Browser::new(source);
    let raw = Raw::enter()?;
    let before = raw.before.clone();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = show(LEAVE);
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &before);
        hook(panic);
    }));
    let result = browse(&mut browser, colors, &ended);
    drop(raw);
    drop(std::panic::take_hook());
    result
}

fn browse(browser: &mut Browser<'_>, colors: bool, ended: &AtomicBool) -> Result<()> {
    let mut shown = (Vec::new(), (0, 0));
    let mut input = io::stdin().lock();
    while !ended.load(Ordering::Relaxed) {
        let (width, height) = size();
        let rows = frame(browser, width, height);
        if shown != (rows.clone(), (width, height)) {
            paint(&rows, colors)?;
            shown = (rows, (width, height));
        }
        let mut bytes = [0; 64];
        let read = match input.read(&mut bytes) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context("cannot read from the terminal"),
        };
        for key in keys::decode(&bytes[..read]) {
            match browser.press(key) {
                Action::Draw => {}
                Action::Quit => return Ok(()),
                Action::Write => browser.message = written(&browser.page().text()),
            }
        }
    }
    Ok(())
}

fn size() -> (usize, usize) {
    terminal_size::terminal_size()
        .map_or((80, 24), |(width, height)| (usize::from(width.0.max(1)), usize::from(height.0.max(1))))
}

fn paint(rows: &[Row], colors: bool) -> io::Result<()> {
    let mut text = String::from("\x1b[H");
    for (index, row) in rows.iter().enumerate() {
        // the selected row is seen without colours, too
        let style = if colors { row.style } else { row.style.fg_color(None) };
        text += &format!("\x1b[{};1H{style}{}{style:#}\x1b[K", index + 1, row.text);
    }
    show(&text)
}

/// Writes a page to the first `perf.hist.N` that is not there, as perf does.
fn written(text: &str) -> String {
    for number in 0..10_000 {
        let name = format!("perf.hist.{number}");
        match std::fs::File::create_new(&name) {
            Ok(mut file) => {
                return match file.write_all(text.as_bytes()) {
                    Ok(()) => format!("Written to {name}"),
                    Err(error) => format!("{name}: {error}"),
                };
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return format!("{name}: {error}"),
        }
    }
    "There are too many files perf.hist.N".to_owned()
}
