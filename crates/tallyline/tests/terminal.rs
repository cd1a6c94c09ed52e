//! Reports on a terminal: text that fits it, and the browser, driven by keys.

mod common;
mod pty;
mod recorded;

use common::PATIENCE;
use pty::{Terminal, plain};
use recorded::{Access, GET_A, GET_Y, NOTHING, PROGRAM, Recorded, SET_B, access, record_program};
use std::time::Instant;

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
