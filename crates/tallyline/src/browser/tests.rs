use super::draw::frame;
use super::keys::Key;
use super::*;
use crate::columns::Column;

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
            ..Line::default()
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

    fn sort_keys(&self) -> Option<String> {
        Some("type,sym".to_owned())
    }

    fn sort(&self, keys: &str) -> Result<(), String> {
        if keys == "sym" { Ok(()) } else { Err(format!("no sort key {keys}")) }
    }

    fn zoom(&self, target: Option<Target>, zoom: Zoom) -> Result<String, String> {
        match (target, zoom) {
            (Some(target), _) => Ok(format!("{zoom:?} of {target}")),
            (None, _) => Err("nowhere".to_owned()),
        }
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

#[test]
fn typed_text_is_erased_by_one_key_and_a_new_filter_takes_the_place_of_the_old() {
    let mut browser = Browser::new(&Fake);
    let type_text = |text: &str| text.chars().map(Key::Char).collect::<Vec<_>>();
    press(&mut browser, &[&[Key::Char('/')], &type_text("rate")[..], &[Key::Enter]].concat());
    // the next one starts empty
    let rows = press(&mut browser, &[&[Key::Char('/')], &type_text("order")[..]].concat());
    assert_eq!((rows[2].trim(), rows[7].as_str()), ("60% order", "/order_"));
    assert_eq!(press(&mut browser, &[Key::EraseLine])[7], "/_");
    assert!(press(&mut browser, &[Key::Enter])[7].starts_with("1/3"));
}

#[test]
fn sort_keys_are_typed_and_a_wrong_one_is_told_while_the_page_stays() {
    let mut browser = Browser::new(&Fake);
    assert_eq!(press(&mut browser, &[Key::Enter, Key::Char('s')])[7], "sort by: type,sym_");
    assert_eq!(press(&mut browser, &[Key::EraseWord])[7], "sort by: type,_");
    let rows = press(&mut browser, &[Key::EraseLine, Key::Char('x'), Key::Enter]);
    assert_eq!((rows[0].as_str(), rows[7].as_str()), ("page 7", "sort by: x_  no sort"));
    // the first page, made anew
    let keys = [Key::EraseLine, Key::Char('s'), Key::Char('y'), Key::Char('m'), Key::Enter];
    let rows = press(&mut browser, &keys);
    assert!(rows[0] == "event 0" && rows[7].starts_with("1/3"), "{rows:?}");
    let rows = press(&mut browser, &[Key::Char('s'), Key::Escape]);
    assert!(rows[7].starts_with("1/3"), "{rows:?}");
}

#[test]
fn zooming_asks_for_the_line_and_shows_the_first_page_again() {
    let mut browser = Browser::new(&Fake);
    let texts = |browser: &mut Browser<'_>| texts(browser, 40, 8);
    browser.press(Key::Char('t'));
    assert_eq!(texts(&mut browser)[7], "1/3  Thread of 7");
    browser.press(Key::Char('d'));
    assert_eq!(texts(&mut browser)[7], "1/3  File of 7");
    browser.press(Key::Down);
    browser.press(Key::Escape);
    assert_eq!(texts(&mut browser)[7], "2/3  nowhere");
}

/// A source with one event and three rows, of which the last has a name of more than 1,000 characters.
struct Long;

impl Source for Long {
    fn roots(&self) -> usize {
        1
    }

    fn root(&self, _: usize) -> Page {
        let column = |title: &str, is_text| Column { title: title.to_owned(), is_text, least: 0 };
        let line = |name: &str| Line {
            cells: vec!["50.00%".to_owned(), name.to_owned(), format!("{name} +0 (field)")],
            ..Line::default()
        };
        let columns = vec![column("Share", false), column("Type", true), column("Field", true)];
        let long = format!("struct {{ {}}}", "int; ".repeat(223));
        Page::of_columns("Types".to_owned(), columns, vec![line("int"), line("構造"), line(&long)])
    }

    fn open(&self, _: Target, _: bool) -> Option<Page> {
        None
    }

    fn sort_keys(&self) -> Option<String> {
        None
    }

    fn sort(&self, _: &str) -> Result<(), String> {
        Err(String::new())
    }

    fn zoom(&self, _: Option<Target>, _: Zoom) -> Result<String, String> {
        Err(String::new())
    }
}

#[test]
fn columns_are_as_wide_as_the_rows_that_are_seen_and_fit_the_terminal() {
    let mut browser = Browser::new(&Long);
    // the long name is below the last row
    let rows = texts(&mut browser, 60, 5);
    assert_eq!(rows[1], "   Share  Type  Field");
    assert_eq!(rows[2], "  50.00%  int   int +0 (field)");
    browser.press(Key::End);
    let rows = frame(&mut browser, 60, 5);
    assert!(rows.iter().all(|row| crate::columns::width(&row.text) == 60), "{rows:?}");
    assert!(rows[3].text.contains('…') && rows[3].text.trim_end().ends_with("+0 (field)"), "{rows:?}");
    assert!(rows[2].text.contains("構造"), "{rows:?}");
    // whole on request, by moving to the side
    browser.press(Key::Char('w'));
    assert!(!texts(&mut browser, 60, 5)[3].contains('…'));
    assert!(browser.page().text().contains(&"int; ".repeat(223)));
}
