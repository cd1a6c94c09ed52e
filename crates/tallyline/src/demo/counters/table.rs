//! The results on the terminal, and as JSON.

use super::figures::{about, bytes, count, plural, ratio, short, time};
use super::result::{Case, Results, counted};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use statctr::Mode;
use std::io::{IsTerminal, Write};
use tallyline_counting::reading::{POSSIBLE, PRESENT, SHARED, STATCTR, What};
use tallyline_counting::{Family, LABELS, Label, ONE_COMMIT};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Returns the colour of a family: blue or yellow, which nearly everybody tells apart.
fn style(family: Family) -> Style {
    match family {
        Family::Nobody => DIM,
        Family::Atomics => AnsiColor::Yellow.on_default(),
        Family::Statctr => AnsiColor::Cyan.on_default(),
    }
}

/// Writes the demo's results as JSON.
pub(crate) fn write_json(out: &mut dyn Write, results: &Results) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, results)?;
    Ok(writeln!(out)?)
}

/// Returns `true` if the terminal is assumed to show Unicode: unless the locale says otherwise.
pub(crate) fn unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Characters that a line has room for.
fn width() -> usize {
    let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map_or(80, |(width, _)| usize::from(width.0)).clamp(60, 120)
}

/// Writes the demo's results as text tables.
pub(crate) fn write(out: &mut dyn Write, results: &Results) -> Result<()> {
    let mut text = Vec::new();
    Table { out: &mut text, width: width(), unicode: unicode() }.all(results)?;
    if !unicode() {
        text = ascii(&String::from_utf8_lossy(&text)).into_bytes();
    }
    Ok(out.write_all(&text)?)
}

/// Returns the few characters of the table that not all terminals have, in others.
fn ascii(text: &str) -> String {
    text.replace('…', "-").replace("µs", "us")
}

struct Table<'o> {
    out: &'o mut dyn Write,
    width: usize,
    unicode: bool,
}

/// The names of the ways are this long at most.
const NAME: usize = 22;

impl Table<'_> {
    fn all(&mut self, results: &Results) -> Result<()> {
        self.head(results)?;
        self.costs(results)?;
        self.checks(results)?;
        self.reads(results)?;
        self.memory(results)?;
        self.foot(results)
    }

    fn head(&mut self, results: &Results) -> Result<()> {
        let machine = &results.machine;
        let kind = if machine.virtual_machine == Some(true) { ", virtual machine" } else { "" };
        writeln!(self.out, "{BOLD}Counting packets on this machine{BOLD:#}")?;
        self.paragraph(&format!("{}, {}{kind}", machine.cpu, plural(machine.cpus, "CPU")), Style::new())?;
        let mut updates = format!("updates by {}", results.mode);
        if results.mode == Mode::Rseq.to_string() {
            updates.push_str(&format!(", vectors of {} bytes", results.vector_bytes));
        }
        self.paragraph(
            &format!("Linux {}; statctr {}: {updates}", machine.kernel, machine.statctr),
            Style::new(),
        )
    }

    fn title(&mut self, title: &str, rest: &str) -> Result<()> {
        Ok(writeln!(self.out, "\n{BOLD}{title}{BOLD:#}  {rest}")?)
    }

    /// Returns a name in its family's colour.
    fn name(&self, label: &Label) -> String {
        let style = style(label.family);
        format!("{style}{:NAME$}{style:#}", label.name)
    }

    fn costs(&mut self, results: &Results) -> Result<()> {
        self.title("What one packet costs", "4 counters; a thread's time, median of the rounds")?;
        self.bars(results, 1)?;
        if results.threads.len() > 2 {
            self.by_threads(results)?;
        }
        if results.most_threads() > 1 {
            self.bars(results, results.most_threads())?;
        }
        Ok(())
    }

    fn bars(&mut self, results: &Results, threads: usize) -> Result<()> {
        let cases: Vec<&Case> = LABELS.iter().filter_map(|label| results.case(label, threads)).collect();
        let most = cases.iter().map(|case| case.median).fold(0.0, f64::max);
        let room = self.width.saturating_sub(NAME + 40).max(8);
        let heading = plural(threads, "thread");
        let columns = format!("{:>room$} {:>9}  {:>15} {:>8}", "", "median", "fastest…slowest", "ratio");
        writeln!(self.out, "  {BOLD}{heading:NAME$}{BOLD:#} {DIM}{columns}{DIM:#}")?;
        for case in cases {
            let style = style(case.label.family);
            let bar = self.bar(case.median / most, room);
            let ratio = match results.ratio(case.label, threads) {
                Some(found) => format!(" {:>8}", format!("{}x", ratio(found.median))),
                None if *case.label == LABELS[ONE_COMMIT] => format!(" {:>8}", "1x"),
                None => String::new(),
            };
            writeln!(
                self.out,
                "  {} {style}{bar}{style:#} {:>9}  {DIM}{:>15}{DIM:#}{ratio}",
                self.name(case.label),
                format!("{} ns", short(case.median)),
                format!("{}…{}", short(case.min), short(case.max)),
            )?;
        }
        Ok(())
    }

    fn bar(&self, part: f64, room: usize) -> String {
        // what is there is seen
        let eighths = (part * room as f64 * 8.0).round().max(1.0) as usize;
        let (whole, rest) = (eighths / 8, eighths % 8);
        let mut bar = if self.unicode {
            let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
            format!("{}{}", "█".repeat(whole), parts[rest])
        } else {
            "#".repeat(whole + usize::from(rest > 3))
        };
        let missing = room.saturating_sub(bar.chars().count());
        bar.extend(std::iter::repeat_n(' ', missing));
        bar
    }

    /// Writes a line for each number of threads, where there are more than two.
    fn by_threads(&mut self, results: &Results) -> Result<()> {
        let names = ["atomics", "padded", "four updates", "one commit"];
        let heads: String = names.iter().map(|name| format!("{name:>14}")).collect();
        writeln!(self.out, "  {DIM}{:10}{heads}{DIM:#}", "ns/packet")?;
        for &threads in &results.threads {
            write!(self.out, "  {:10}", plural(threads, "thread"))?;
            for label in LABELS.iter().filter(|label| label.family != Family::Nobody) {
                let style = style(label.family);
                let cost = results.case(label, threads).map_or(String::new(), |case| short(case.median));
                write!(self.out, "{style}{cost:>14}{style:#}")?;
            }
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn checks(&mut self, results: &Results) -> Result<()> {
        self.title("Is every packet in the sums?", "64 counters against what the threads did")?;
        writeln!(self.out, "  {DIM}{:NAME$} {:>16} {:>10} {:>10}{DIM:#}", "", "packets", "lost", "doubled")?;
        for check in &results.exactness {
            let Some(label) = LABELS.iter().find(|label| label.key == check.case) else { continue };
            let verdict =
                if check.holds() { format!("{GOOD}exact{GOOD:#}") } else { format!("{BAD}WRONG{BAD:#}") };
            writeln!(
                self.out,
                "  {} {:>16} {:>10} {:>10}  {verdict}",
                self.name(label),
                count(check.packets),
                count(check.lost),
                count(check.doubled)
            )?;
        }
        let Some(ours) = results.watched.last() else { return Ok(()) };
        let writers = plural(ours.writers, "thread");
        let moved = if ours.moves > 0 { " and move from CPU to CPU" } else { "" };
        self.title("What does a reader see meanwhile?", &format!("{writers} count{moved}"))?;
        writeln!(
            self.out,
            "  {DIM}{:NAME$} {:>16} {:>10} {:>26}{DIM:#}",
            "", "reads", "went down", "packets apart from bytes"
        )?;
        for seen in &results.watched {
            let Some(label) = LABELS.iter().find(|label| label.key == seen.case) else { continue };
            let (style, apart) = match (seen.misfits, seen.pairs_promised) {
                (0, true) => (GOOD, "none, as promised".into()),
                (misfits, true) => (BAD, format!("{}, PROMISE BROKEN", count(misfits))),
                (misfits, false) => (Style::new(), part_of(misfits, seen.reads)),
            };
            writeln!(
                self.out,
                "  {} {:>16} {:>10} {style}{apart:>26}{style:#}",
                self.name(label),
                count(seen.reads),
                count(seen.went_down)
            )?;
        }
        Ok(())
    }
}

/// Formats a part of a whole for a narrow column.
fn part_of(some: u64, all: u64) -> String {
    let percent = 100.0 * some as f64 / all.max(1) as f64;
    match some {
        0 => "0".into(),
        _ if percent < 0.01 => format!("{} (<0.01 %)", about(some)),
        _ => format!("{} ({} %)", about(some), short(percent)),
    }
}

impl Table<'_> {
    fn reads(&mut self, results: &Results) -> Result<()> {
        const WHAT: usize = 31;
        self.title("What does reading cost?", "the price; nobody counts meanwhile, caches are warm")?;
        let cpus = results.reads_of(What::Counter, STATCTR, false).map(|cost| cost.cpus).max().unwrap_or(0);
        let ours = if cpus > 0 { format!("statctr, {}", plural(cpus, "CPU")) } else { "statctr".into() };
        writeln!(self.out, "  {DIM}{:WHAT$} {:>16} {ours:>16}{DIM:#}", "", "shared atomics")?;
        for what in What::ALL {
            let cost = |case| {
                results.reads_of(what, case, false).next().map_or(String::new(), |cost| time(cost.median))
            };
            writeln!(self.out, "  {:WHAT$} {:>16} {:>16}", what.name(), cost(SHARED), cost(STATCTR))?;
        }
        let head = format!("{POSSIBLE} made-up CPUs, real memory");
        let (some, all) = (format!("{PRESENT} counted"), format!("all {POSSIBLE}"));
        writeln!(self.out, "  {DIM}{head:WHAT$} {some:>16} {all:>16}    ratio{DIM:#}")?;
        for found in &results.read_ratios {
            let cost = |cpus| {
                let mut costs = results.reads_of(found.what, STATCTR, true);
                costs.find(|cost| cost.cpus == cpus).map_or(String::new(), |cost| time(cost.median))
            };
            let (some, all) = (cost(found.under_cpus), cost(found.over_cpus));
            let ratio = format!("{}x", ratio(found.median));
            writeln!(self.out, "  {:WHAT$} {some:>16} {all:>16} {ratio:>8}", found.what.name())?;
        }
        Ok(())
    }

    fn memory(&mut self, results: &Results) -> Result<()> {
        let (own, many) = (&results.memory, &results.memory_of_many);
        let each = if own.is_apart() {
            format!(
                "{} bytes on each CPU that counts; a group takes whole lines",
                own.bytes_per_counter_per_cpu
            )
        } else {
            "a word for all CPUs, in the mode that statctr is in here".into()
        };
        self.title("What do they take?", &each)?;
        for (of, footprint) in [("this demo", own), ("made-up machine", many)] {
            let what = format!("{of}: {}, {}", plural(footprint.counters, "counter"), counted(footprint));
            writeln!(self.out, "  {what:55} {:>10} resident", bytes(footprint.resident_bytes))?;
        }
        let arithmetic = "the same with memory for every possible CPU (arithmetic)";
        writeln!(self.out, "  {DIM}{arithmetic:55} {:>9}{DIM:#}", bytes(many.bytes_if_all_cpus_had_memory))?;
        Ok(())
    }

    fn foot(&mut self, results: &Results) -> Result<()> {
        writeln!(self.out)?;
        if results.quick {
            writeln!(self.out, "{DIM}A quick run: few and short rounds, the figures mean little.{DIM:#}")?;
        }
        for note in &results.notes {
            self.paragraph(&format!("Note: {note}"), Style::new())?;
        }
        if let Some(page) = &results.page {
            writeln!(self.out, "Plots, all numbers and how they were measured: {BOLD}{page}{BOLD:#}")?;
        }
        self.paragraph(&results.headline, if results.exact { BOLD } else { BAD })
    }

    /// Writes a paragraph: on a terminal broken between words, in a file as one line.
    fn paragraph(&mut self, text: &str, style: Style) -> Result<()> {
        if !std::io::stdout().is_terminal() {
            return Ok(writeln!(self.out, "{style}{text}{style:#}")?);
        }
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > self.width {
                writeln!(self.out, "{style}{line}{style:#}")?;
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        Ok(writeln!(self.out, "{style}{line}{style:#}")?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::sample;
    use super::*;

    fn text(threads: &[usize], width: usize, unicode: bool) -> String {
        let (mut out, results) = (Vec::new(), sample(threads));
        let mut table = Table { out: &mut out, width, unicode };
        table.all(&results).expect("written");
        anstream::adapter::strip_str(std::str::from_utf8(&out).expect("text")).to_string()
    }

    #[test]
    fn tables_fit_narrow_and_wide_terminals() {
        for (threads, width) in
            [(&[1][..], 80), (&[1, 2], 80), (&[1, 2, 4, 8, 16, 32, 64, 96], 80), (&[1, 2], 120)]
        {
            let text = text(threads, width, true);
            // sentences are broken only on a terminal, paths and names of machines never
            let long = |line: &&str| line.chars().count() > width;
            let sentence =
                |line: &&str| ["On this", "Note:", "Plots"].iter().any(|start| line.starts_with(start));
            let tables = text.lines().skip(3).filter(|line| !sentence(line));
            assert_eq!(tables.clone().find(long), None, "{text}");
            assert!(tables.clone().all(|line| line.trim_end() == line), "{text}");
            assert!(text.lines().filter(|line| line.contains('█')).count() >= 3, "{text}");
            assert!(threads.iter().all(|&n| text.contains(&plural(n, "thread"))), "{text}");
        }
    }

    #[test]
    fn bars_have_their_length_in_ascii_too() {
        let mut out = Vec::new();
        let mut table = Table { out: &mut out, width: 80, unicode: true };
        assert_eq!(table.bar(1.0, 4), "████");
        assert_eq!(table.bar(0.40625, 4), "█▋  ");
        table.unicode = false;
        assert_eq!(table.bar(0.40625, 4), "##  ");
        let text = ascii(&text(&[1, 2], 80, false));
        assert!(text.is_ascii(), "{text}");
        assert!(text.lines().filter(|line| line.contains('#')).count() > 0);
    }
}
