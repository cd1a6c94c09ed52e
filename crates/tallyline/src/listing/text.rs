//! Types as text: perf's format, with more columns.

use crate::columns::{self, Fit};
use anyhow::Result;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use tallyline_perf_data::sample::DataSource;
use tallyline_report::annotate::{TypeUse, Use};
use tallyline_report::members::Member;
use tallyline_support::output::printable;

/// A line in the listing of a type field by field: a member with its share of samples.
pub(crate) struct Line {
    pub(crate) text: String,
    /// The share in percent, of a line that is a member or the whole type.
    pub(crate) percent: Option<f64>,
    /// The bytes of the type that it is about.
    pub(crate) bytes: Range<u64>,
    /// The length in bytes of the prefix with numbers, which is never left out.
    pub(crate) fixed: usize,
}

impl Line {
    /// Returns the text of a line in a type's listing, shortened in the middle of names if wider than the terminal.
    pub(crate) fn fitted(&self, fit: &Fit) -> Cow<'_, str> {
        if fit.line.is_none() {
            return self.text.as_str().into();
        }
        let (fixed, rest) = self.text.split_at_checked(self.fixed).unwrap_or(("", &self.text));
        // a tab takes more columns than anybody can know
        let rest = rest.replace('\t', " ");
        format!("{fixed}{}", fit.rest(&rest, columns::width(fixed))).into()
    }
}

/// Prints types field by field with their samples, the most accessed type first. `line` is the cache line size in
/// bytes.
pub(crate) fn write(plain: bool, types: &[TypeUse], line: u64, fit: &Fit, out: &mut dyn Write) -> Result<()> {
    for of_type in types {
        for line in lines(of_type, plain, line) {
            writeln!(out, "{}", line.fitted(fit))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Returns the listing of a type field by field; the first lines are its description and the column headings.
pub(crate) fn lines(of_type: &TypeUse, plain: bool, line: u64) -> Vec<Line> {
    let whole = of_type.whole();
    let mut page = Page { plain, line, on_line: None, whole: &whole, of_type, lines: Vec::new() };
    page.head(of_type);
    let record = !of_type.members().is_empty();
    let name = of_type.element().unwrap_or(of_type.name());
    let text = format!("{}\t{}", clean(name), if record { " {" } else { ";" });
    page.row(&whole, 0, of_type.size(), 0, &text);
    page.members(of_type.members(), &mut Vec::new());
    if record {
        page.open(&[]);
        page.elsewhere(of_type);
        page.either(of_type);
        page.end(0, "};");
    }
    page.sources(of_type.members());
    page.lines
}

struct Page<'a> {
    plain: bool,
    line: u64,
    /// The cache line that the last row was on.
    on_line: Option<u64>,
    whole: &'a Use,
    of_type: &'a TypeUse,
    lines: Vec<Line>,
}

impl Page<'_> {
    fn text(&mut self, text: String) {
        self.lines.push(Line { text, percent: None, bytes: 0..0, fixed: 0 });
    }

    fn head(&mut self, of_type: &TypeUse) {
        let (name, dso) = (clean(of_type.name()), clean(of_type.dso()));
        self.text(format!("Annotate type: '{name}' in {dso} ({} samples):", self.whole.samples()));
        if let Some(element) = of_type.element().filter(|_| !self.plain) {
            self.text(format!(" by the element: {}", clean(element)));
        }
        if let Some(place) = of_type.place().as_ref().filter(|_| !self.plain) {
            self.text(format!(" defined at {}", clean(place)));
        }
        if !self.plain {
            for (event, offsets) in of_type.events().iter().filter(|_| of_type.events().len() > 1) {
                let samples: u64 = offsets.values().map(|one| one.samples()).sum();
                self.text(format!(" {} ({samples} samples)", clean(event)));
            }
        }
        if !self.plain && !of_type.parts().is_empty() {
            let part = |(name, samples): (&String, &u64)| format!("{samples} as {}", clean(name));
            let parts: Vec<_> = of_type.parts().iter().map(part).collect();
            self.text(format!(" with samples of its parts: {}", parts.join(", ")));
        }
        self.text("=".repeat(76));
        let more = if self.plain { "" } else { "   samples     loads    stores  latency  cpus" };
        self.text(format!(" Percent{more}     offset       size  field"));
    }

    fn row(&mut self, one: &Use, offset: u64, size: u64, depth: usize, text: &str) {
        let percent = if self.whole.total() == 0 {
            0.0
        } else {
            one.total() as f64 * 100.0 / self.whole.total() as f64
        };
        let mut line = format!(" {percent:>7.2}");
        if !self.plain {
            let dash = |there: bool, text: String| if there { text } else { "-".to_owned() };
            let latency = dash(one.weight() > 0, (one.weight() / one.samples().max(1)).to_string());
            let cpus = dash(!one.cpus().is_empty(), one.cpus().len().to_string());
            line += &format!(
                " {:>9} {:>9} {:>9} {latency:>8} {cpus:>5}",
                one.samples(),
                one.loads(),
                one.stores()
            );
        }
        let hex = |number: u64| if number == 0 { "0".to_owned() } else { format!("{number:#x}") };
        line += &format!(" {:>10} {:>10}  {:indent$}", hex(offset), hex(size), "", indent = 4 * depth);
        let fixed = line.len();
        let bytes = offset..offset.saturating_add(size);
        self.lines.push(Line { text: line + text, percent: Some(percent), bytes, fixed });
    }

    fn end(&mut self, depth: usize, text: &str) {
        let width = if self.plain { 32 } else { 78 };
        self.text(format!("{:indent$}{text}", "", indent = width + 4 * depth));
    }

    /// Writes the rows of members; `path` leads to what has them.
    fn members(&mut self, members: &[Member], path: &mut Vec<u32>) {
        for member in members {
            path.push(member.number());
            let depth = path.len();
            let line = member.offset() / self.line.max(1);
            if !self.plain && self.on_line.replace(line).is_some_and(|before| before < line) {
                self.end(depth, &format!("/* --- cache line {line} --- */"));
            }
            let one = self.of_type.of_member(path);
            let (ty, name) = (clean(member.ty()), clean(member.name()));
            if member.children().is_empty() {
                self.row(&one, member.offset(), member.size(), depth, &format!("{ty}\t{name};"));
            } else {
                self.row(&one, member.offset(), member.size(), depth, &format!("{ty}\t{name} {{"));
                self.members(member.children(), path);
                self.open(path);
                self.end(depth, "};");
            }
            path.pop();
        }
    }

    /// Writes the rows of accesses of one of several members that share bytes, which no row of these counts.
    fn open(&mut self, path: &[u32]) {
        let of_type = self.of_type;
        for (row, used) in of_type.open_in(path) {
            let mut names: Vec<String> = Vec::new();
            for member in row.members() {
                let name = named(of_type.members(), member).unwrap_or_else(|| "no member".to_owned());
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            self.row(used, row.offset(), 0, path.len() + 1, &format!("/* {} */", names.join(" or ")));
        }
    }

    /// Writes a line for samples at no member: in padding, or behind the end.
    fn elsewhere(&mut self, of_type: &TypeUse) {
        let mut rest = Use::default();
        let is_rest = |members: &[Vec<u32>]| members.iter().all(Vec::is_empty);
        of_type.rows().iter().filter(|(row, _)| is_rest(row.members())).for_each(|(_, one)| rest.add(one));
        if rest.samples() > 0 && !self.plain {
            self.row(&rest, of_type.size(), 0, 1, "/* no member */");
        }
    }

    /// Writes a line for samples at one of two places of which it is not known which it was: no member's
    /// share has them.
    fn either(&mut self, of_type: &TypeUse) {
        for ([one, other], used) in of_type.either() {
            let name =
                |offset| member_at(of_type.members(), offset).unwrap_or_else(|| format!("{offset:#x}"));
            let text = format!("/* {} or {} */", name(*one), name(*other));
            self.row(used, *one, 0, 1, &text);
        }
    }

    /// Appends the data sources of each member.
    fn sources(&mut self, members: &[Member]) {
        let is_said = self.whole.sources().keys().any(|source| DataSource(*source).level_text() != "N/A");
        if self.plain || !is_said {
            return;
        }
        self.text("  data came from:".to_owned());
        let whole = self.whole;
        self.source("(all)", whole);
        for member in members {
            let one = self.of_type.of_member(&[member.number()]);
            if one.samples() > 0 {
                let name = if member.name().is_empty() { member.ty() } else { member.name() };
                self.source(name, &one);
            }
        }
    }

    fn source(&mut self, name: &str, one: &Use) {
        let mut levels: BTreeMap<String, u64> = BTreeMap::new();
        for (source, samples) in one.sources() {
            *levels.entry(DataSource(*source).level_text()).or_insert(0) += samples;
        }
        let mut levels: Vec<_> = levels.into_iter().collect();
        levels.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let parts: Vec<_> = levels
            .iter()
            .map(|(level, samples)| {
                format!("{level} {:.1} %", *samples as f64 * 100.0 / one.samples().max(1) as f64)
            })
            .collect();
        self.text(format!("    {:<24} {}", clean(name), parts.join(", ")));
    }
}

/// Returns the names on the path to a member, with dots; of one without a name its type.
fn named(members: &[Member], path: &[u32]) -> Option<String> {
    let (number, rest) = path.split_first()?;
    let member = members.iter().find(|member| member.number() == *number)?;
    let own = clean(if member.name().is_empty() { member.ty() } else { member.name() });
    Some(match named(member.children(), rest) {
        Some(inner) if member.name().is_empty() => inner,
        Some(inner) => format!("{own}.{inner}"),
        None => own.into_owned(),
    })
}

/// Returns the path of the member that has a byte.
fn member_at(members: &[Member], offset: u64) -> Option<String> {
    let inside = |member: &&Member| member.offset() <= offset && offset - member.offset() < member.size();
    let member = members.iter().find(inside)?;
    let name = clean(member.name()).into_owned();
    Some(match member_at(member.children(), offset) {
        Some(inner) if name.is_empty() => inner,
        Some(inner) if !inner.is_empty() => format!("{name}.{inner}"),
        _ => name,
    })
}

fn clean(name: &str) -> std::borrow::Cow<'_, str> {
    printable(name.as_bytes())
}
