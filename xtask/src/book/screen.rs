//! Pictures of a terminal: text with colours as an SVG, small and sharp at any size.

use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// The width of a column, the height of a line and the size of the letters, in pixels.
const COLUMN: f32 = 8.4;
const LINE: usize = 20;
const LETTERS: usize = 14;

/// The space around the text.
const MARGIN: usize = 18;

const BACKGROUND: &str = "#0f172a";
const FOREGROUND: &str = "#e2e8f0";
const PROMPT: &str = "#7dd3fc";

/// The sixteen colours of terminals.
const COLORS: [&str; 16] = [
    "#1e293b", "#f87171", "#86efac", "#fde047", "#60a5fa", "#d8b4fe", "#67e8f9", "#cbd5e1", //
    "#94a3b8", "#fca5a5", "#bbf7d0", "#fef08a", "#93c5fd", "#e9d5ff", "#a5f3fc", "#ffffff",
];

/// The looks of a character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Style {
    foreground: Option<String>,
    background: Option<String>,
    bold: bool,
    dim: bool,
    underlined: bool,
    reversed: bool,
}

/// Characters of one style, and the column of the first one.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    column: usize,
    width: usize,
    text: String,
    style: Style,
}

/// Returns the picture of a command and of its output, which may have colours and hyperlinks.
pub(super) fn svg(command: &str, output: &str) -> String {
    let prompt = Style { foreground: Some(PROMPT.to_owned()), ..Style::default() };
    let mut lines = Vec::new();
    let mut columns = 0;
    for line in command.lines() {
        let mut runs = Vec::new();
        let text = if lines.is_empty() { format!("$ {line}") } else { format!("> {line}") };
        text.chars().for_each(|letter| push(&mut runs, letter, &prompt));
        lines.push(runs);
    }
    let mut style = Style::default();
    lines.extend(output.lines().map(|line| runs(line, &mut style)));
    for runs in &lines {
        columns = columns.max(runs.last().map_or(0, |run| run.column + run.width));
    }
    let width = 2 * MARGIN + (columns as f32 * COLUMN).ceil() as usize;
    let height = 2 * MARGIN + lines.len() * LINE;
    let label = escaped(command);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"Output of {label}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"{LETTERS}\" fill=\"{FOREGROUND}\">\n"
    );
    for (number, runs) in lines.iter().enumerate() {
        write_line(&mut svg, runs, MARGIN + number * LINE);
    }
    svg + "</g>\n</svg>\n"
}

/// Returns the text of a picture that `svg` made, without its looks.
pub(super) fn text(svg: &str) -> String {
    let mut text = String::new();
    for line in svg.lines().filter(|line| line.starts_with("<text")) {
        let mut rest = line;
        while let Some((before, tag)) = rest.split_once('<') {
            text += before;
            rest = tag.split_once('>').map_or("", |(_, rest)| rest);
        }
        text += "\n";
    }
    text
}

fn write_line(svg: &mut String, runs: &[Run], top: usize) {
    let baseline = top + LINE * 3 / 4;
    for run in runs {
        if let Some(color) = run.style.background() {
            let (x, width) = (MARGIN as f32 + run.column as f32 * COLUMN, run.width as f32 * COLUMN);
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{LINE}\" fill=\"{color}\"/>"
            );
        }
    }
    let width: usize = runs.iter().map(|run| run.width).sum();
    if width == 0 {
        return;
    }
    // each font has its own width of letters: this one is the same everywhere
    let length = width as f32 * COLUMN;
    let _ = write!(
        svg,
        "<text x=\"{MARGIN}\" y=\"{baseline}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\">"
    );
    for run in runs {
        let looks = run.style.attributes();
        let text = escaped(&run.text);
        let _ = match looks.is_empty() {
            true => write!(svg, "{text}"),
            false => write!(svg, "<tspan{looks}>{text}</tspan>"),
        };
    }
    *svg += "</text>\n";
}

impl Style {
    /// Returns the colour behind the characters.
    fn background(&self) -> Option<&str> {
        match self.reversed {
            true => Some(self.foreground.as_deref().unwrap_or(FOREGROUND)),
            false => self.background.as_deref(),
        }
    }

    fn attributes(&self) -> String {
        let foreground = match self.reversed {
            true => Some(self.background.as_deref().unwrap_or(BACKGROUND)),
            false => self.foreground.as_deref(),
        };
        let mut attributes = foreground.map(|color| format!(" fill=\"{color}\"")).unwrap_or_default();
        for (holds, attribute) in [
            (self.bold, " font-weight=\"bold\""),
            (self.dim, " opacity=\"0.65\""),
            (self.underlined, " text-decoration=\"underline\""),
        ] {
            attributes += if holds { attribute } else { "" };
        }
        attributes
    }

    /// Applies the numbers of a sequence "select graphic rendition".
    fn select(&mut self, sequence: &str) {
        let mut numbers = sequence.split([';', ':']).map(|number| number.parse().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                4 => self.underlined = true,
                7 => self.reversed = true,
                22 => (self.bold, self.dim) = (false, false),
                24 => self.underlined = false,
                27 => self.reversed = false,
                30..=37 => self.foreground = Some(COLORS[number - 30].to_owned()),
                90..=97 => self.foreground = Some(COLORS[number - 82].to_owned()),
                40..=47 => self.background = Some(COLORS[number - 40].to_owned()),
                100..=107 => self.background = Some(COLORS[number - 92].to_owned()),
                38 => self.foreground = color(&mut numbers),
                48 => self.background = color(&mut numbers),
                39 => self.foreground = None,
                49 => self.background = None,
                _ => {}
            }
        }
    }
}

/// Returns the colour that the numbers behind 38 or 48 name: one of 256, or red, green and blue.
fn color(numbers: &mut impl Iterator<Item = usize>) -> Option<String> {
    match numbers.next()? {
        5 => {
            let number = numbers.next()?;
            let level = |level: usize| if level == 0 { 0 } else { 55 + 40 * level };
            match number {
                0..16 => Some(COLORS[number].to_owned()),
                16..232 => {
                    let [red, green, blue] = [(number - 16) / 36, (number - 16) / 6 % 6, (number - 16) % 6];
                    Some(format!("#{:02x}{:02x}{:02x}", level(red), level(green), level(blue)))
                }
                232..256 => Some(format!("#{0:02x}{0:02x}{0:02x}", 8 + 10 * (number - 232))),
                _ => None,
            }
        }
        2 => {
            let (red, green, blue) = (numbers.next()?, numbers.next()?, numbers.next()?);
            Some(format!("#{:02x}{:02x}{:02x}", red.min(255), green.min(255), blue.min(255)))
        }
        _ => None,
    }
}

/// Takes a line of output apart; the style goes on to the next one.
fn runs(line: &str, style: &mut Style) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\t' {
            let column = runs.last().map_or(0, |run: &Run| run.column + run.width);
            (0..8 - column % 8).for_each(|_| push(&mut runs, ' ', style));
        } else if letter != '\u{1b}' {
            push(&mut runs, letter, style);
        } else {
            match letters.next() {
                Some('[') => {
                    let rest = letters.as_str();
                    let end = rest.find(|letter: char| ('@'..='~').contains(&letter)).unwrap_or(rest.len());
                    if rest[end..].starts_with('m') {
                        style.select(&rest[..end]);
                    }
                    letters = rest.get(end + 1..).unwrap_or_default().chars();
                }
                // a hyperlink: up to BEL or ESC \
                Some(']') => {
                    let rest = letters.as_str();
                    let end = rest.find(['\u{7}', '\u{1b}']).unwrap_or(rest.len());
                    let length = if rest[end..].starts_with('\u{1b}') { 2 } else { 1 };
                    letters = rest.get(end + length..).unwrap_or_default().chars();
                }
                _ => {}
            }
        }
    }
    runs
}

fn push(runs: &mut Vec<Run>, letter: char, style: &Style) {
    let width = letter.width().unwrap_or(0);
    match runs.last_mut() {
        Some(run) if run.style == *style => {
            run.text.push(letter);
            run.width += width;
        }
        last => {
            let column = last.map_or(0, |run| run.column + run.width);
            runs.push(Run { column, width, text: letter.to_string(), style: style.clone() });
        }
    }
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::{COLORS, Style, runs, svg, text};

    #[test]
    fn colours_become_runs_and_last_until_they_are_reset() {
        let mut style = Style::default();
        let line = runs("a\u{1b}[1;31mb\u{1b}[48;5;196mc\u{1b}[0md", &mut style);
        let texts: Vec<(usize, &str)> = line.iter().map(|run| (run.column, run.text.as_str())).collect();
        assert_eq!(texts, [(0, "a"), (1, "b"), (2, "c"), (3, "d")]);
        assert_eq!(line[1].style.foreground.as_deref(), Some(COLORS[1]));
        assert!(line[1].style.bold);
        assert_eq!(line[2].style.background.as_deref(), Some("#ff0000"));
        assert_eq!(line[3].style, Style::default());
    }

    #[test]
    fn hyperlinks_and_other_sequences_leave_their_text() {
        let mut style = Style::default();
        for line in
            ["\u{1b}]8;;file:///x\u{1b}\\y\u{1b}]8;;\u{1b}\\z", "\u{1b}[2Ky\u{1b}]8;;\u{7}z", "yz\u{1b}["]
        {
            let runs = runs(line, &mut style);
            assert_eq!(runs.iter().map(|run| run.text.as_str()).collect::<String>(), "yz", "{line:?}");
        }
    }

    #[test]
    fn tabs_go_to_the_next_eighth_column_and_wide_letters_take_two() {
        let mut style = Style::default();
        assert_eq!(runs("a\tb", &mut style)[0].text, "a       b");
        assert_eq!(runs("中b", &mut style)[0].width, 3);
    }

    #[test]
    fn a_picture_has_the_command_and_the_text_escaped() {
        let picture = svg("cat a", "<\u{1b}[32m&\u{1b}[0m>\n\nend");
        assert_eq!(text(&picture), "$ cat a\n&lt;&amp;&gt;\nend\n");
        assert!(picture.contains("height=\"116\""), "{picture}");
    }
}
