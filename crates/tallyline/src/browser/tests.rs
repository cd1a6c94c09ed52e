use super::draw::frame;
use super::keys::Key;
use super::*;

/// Two events with three rows each, the second a branch; a row leads to a page of its number.
struct Fake;

impl Source for Fake {
    fn roots(&self) -> usize {
        2
    }

    fn root(&self, index: usize) -> Page {
        let line = |text: &str, percent, depth, target| Line {
            text: text.to_owned(),
            percent: Some(percent),
            target,
            depth,
            is_closed: depth == 0,
        };
        let lines = vec![
            line("60% order", 60.0, 0, Some(7)),
            line("39% rate", 39.0, 0, None),
            line("  30% price", 30.0, 1, Some(8)),
            line("  9% uses", 9.0, 1, None),
            line("0.1% other", 0.1, 0, None),
        ];
        Page::new(format!("event {index}"), vec!["Share Type".to_owned()], lines)
    }

    fn open(&self, target: Target, code: bool) -> Option<Page> {
        let line = Line { text: format!("inside {target}"), ..Line::default() };
        (!code).then(|| Page::new(format!("page {target}"), Vec::new(), vec![line]))
    }
}

fn press(browser: &mut Browser<'_>, keys: &[Key]) -> Vec<String> {
    for key in keys {
        browser.press(*key);
    }
    texts(browser, 20, 8)
}

fn texts(browser: &mut Browser<'_>, width: usize, height: usize) -> Vec<String> {
    frame(browser, width, height).iter().map(|row| row.text.trim_end().to_owned()).collect()
}

#[test]
fn a_frame_has_the_head_the_lines_and_the_position_and_fits_whatever_the_size() {
    let mut browser = Browser::new(&Fake);
    let rows = texts(&mut browser, 30, 8);
    assert_eq!(
        rows,
        [
            "event 0",
            "Share Type",
            "  60% order",
            "+ 39% rate",
            "  0.1% other",
            "",
            "",
            "1/3  For help press h"
        ]
    );
    for (width, height) in [(1, 1), (3, 2), (7, 3), (200, 50)] {
        let rows = frame(&mut browser, width, height);
        assert_eq!(rows.len(), height);
        assert!(rows.iter().all(|row| row.text.chars().count() == width), "{rows:?}");
    }
}

#[test]
fn shares_are_red_and_green_as_in_perf_and_the_selected_line_is_inverted() {
    let mut browser = Browser::new(&Fake);
    press(&mut browser, &[Key::Char('E'), Key::End]);
    let styles: Vec<_> = frame(&mut browser, 20, 9).into_iter().map(|row| row.style).collect();
    let red = anstyle::AnsiColor::Red.on_default();
    assert_eq!((styles[2], styles[3], styles[6]), (red, red, anstyle::Style::new().invert()));
    assert_eq!(press(&mut browser, &[Key::Home])[6].trim(), "0.1% other");
    assert_eq!(frame(&mut browser, 20, 9)[6].style, anstyle::Style::new());
}

#[test]
fn enter_goes_into_a_line_and_escape_comes_back_to_it() {
    let mut browser = Browser::new(&Fake);
    assert_eq!(press(&mut browser, &[Key::Enter])[..2], ["page 7", "inside 7"]);
    assert_eq!(press(&mut browser, &[Key::Escape])[0], "event 0");
    // nothing is known behind this one: it says so and stays
    let rows = press(&mut browser, &[Key::Char('a')]);
    assert!(rows[0] == "event 0" && rows[7].contains("No code"), "{rows:?}");
    assert_eq!(browser.press(Key::Char('q')), Action::Quit);
}

#[test]
fn long_lines_move_to_the_side_and_back() {
    let mut browser = Browser::new(&Fake);
    let rows = press(&mut browser, &[Key::Char('>')]);
    assert_eq!((rows[0].as_str(), rows[1].as_str(), rows[3].as_str()), ("event 0", "pe", "+"));
    assert_eq!(press(&mut browser, &[Key::Char('<'), Key::Char('<')])[3], "+ 39% rate");
}

#[test]
fn branches_open_and_close_and_left_leads_to_the_parent() {
    let mut browser = Browser::new(&Fake);
    let rows = press(&mut browser, &[Key::Down, Key::Char('e')]);
    assert_eq!(rows[3..6], ["- 39% rate", "    30% price", "    9% uses"]);
    press(&mut browser, &[Key::Down, Key::Down, Key::Left]);
    assert_eq!(browser.page().current().map(|line| line.text.as_str()), Some("39% rate"));
    let rows = press(&mut browser, &[Key::Left]);
    assert_eq!(rows[3..5], ["+ 39% rate", "  0.1% other"]);
    // Enter opens a branch before it leads on
    let rows = press(&mut browser, &[Key::Enter, Key::Down, Key::Enter]);
    assert_eq!(rows[0], "page 8");
}

#[test]
fn a_filter_keeps_lines_with_its_text_and_what_they_are_below() {
    let mut browser = Browser::new(&Fake);
    let typed = ['P', 'r', 'i', 'c'].map(Key::Char);
    let rows = press(&mut browser, &[&[Key::Char('/')], &typed[..]].concat());
    assert_eq!(rows[2..5], ["+ 39% rate", "    30% price", ""]);
    assert_eq!(rows[7], "/Pric_");
    assert!(press(&mut browser, &[Key::Enter])[7].contains("filter: pric"));
    assert!(press(&mut browser, &[Key::Escape])[7].starts_with("1/3"));
    // no line has it: nothing to select, and nothing breaks
    let rows = press(
        &mut browser,
        &[Key::Char('/'), Key::Char('%'), Key::Char('%'), Key::Enter, Key::Down, Key::Enter],
    );
    assert!(rows[7].starts_with("0/0"), "{rows:?}");
}

#[test]
fn keys_move_by_lines_and_screens_and_tab_shows_the_next_event() {
    let mut browser = Browser::new(&Fake);
    press(&mut browser, &[Key::Char('E')]);
    texts(&mut browser, 20, 5);
    browser.press(Key::PageDown);
    let rows = texts(&mut browser, 20, 5);
    assert_eq!((rows[3].trim(), rows[4].as_str()), ("30% price", "3/5"));
    browser.press(Key::End);
    assert_eq!(texts(&mut browser, 20, 5)[4], "5/5");
    browser.press(Key::PageUp);
    browser.press(Key::Home);
    assert_eq!(texts(&mut browser, 20, 5)[4], "1/5");
    assert_eq!(press(&mut browser, &[Key::Tab])[0], "event 1");
    assert_eq!(press(&mut browser, &[Key::BackTab])[0], "event 0");
    let rows = press(&mut browser, &[Key::Char('h')]);
    assert!(rows[0] == "Help" && rows[1].contains("Up, Down"), "{rows:?}");
    assert_eq!(browser.press(Key::Char('P')), Action::Write);
    assert_eq!(browser.press(Key::Interrupt), Action::Quit);
}
