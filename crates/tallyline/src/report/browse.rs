//! A report as pages to look around in: rows, the fields of a type, who accesses a field, code.

use super::view::{View, Views};
use crate::annotate::{code, text};
use crate::browser::{Line, Page, Source, Target};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use tallyline_profile::report::annotate::annotate;
use tallyline_profile::report::keys::Column;
use tallyline_profile::report::profile::Point;
use tallyline_profile::report::{Binaries, Filter, Node, Profile, Weighing, hierarchy};

/// Where the pages of a report come from.
pub(crate) struct Pages<'p> {
    pub(crate) profile: &'p Profile,
    pub(crate) binaries: &'p Binaries,
    pub(crate) filter: Filter,
    pub(crate) weighing: Weighing,
    pub(crate) start: Start<'p>,
    subjects: RefCell<Vec<Subject>>,
}

/// What the first pages are.
pub(crate) enum Start<'p> {
    /// The tables of a report, as trees or not; the text of each page is the report's own.
    Tables { views: &'p Views<'p>, is_tree: bool },
    /// Types, or the one of a name.
    Types { name: Option<String> },
}

/// What a line is about.
#[derive(Clone)]
enum Subject {
    /// A row of a table: the values of its first keys.
    Row {
        view: usize,
        values: Vec<u64>,
    },
    Type(String),
    Field {
        ty: String,
        bytes: Range<u64>,
    },
    Function(u32),
}

impl<'p> Pages<'p> {
    pub(crate) fn new(
        profile: &'p Profile,
        binaries: &'p Binaries,
        filter: Filter,
        weighing: Weighing,
        start: Start<'p>,
    ) -> Pages<'p> {
        Pages { profile, binaries, filter, weighing, start, subjects: RefCell::default() }
    }

    fn target(&self, subject: Subject) -> Option<Target> {
        let mut subjects = self.subjects.borrow_mut();
        subjects.push(subject);
        Some(subjects.len() - 1)
    }

    /// A table, or a tree, as `--stdio` has it.
    fn table(&self, views: &Views<'_>, index: usize, is_tree: bool) -> Page {
        let Some(view) = views.views.get(index) else { return Page::default() };
        let text = super::stdio::lines(views, view, is_tree);
        let rows = if is_tree { self.branches(views, view, index) } else { self.rows(views, view, index) };
        let lines = text.rows.into_iter().zip(rows).map(|(text, line)| Line { text, ..line });
        Page::new(text.title, text.head, lines.collect())
    }

    fn rows(&self, views: &Views<'_>, view: &View, index: usize) -> Vec<Line> {
        let line = |row: &tallyline_profile::report::Row| Line {
            percent: Some(row.counts.percent(&view.whole)),
            target: self.target(Subject::Row { view: index, values: row.values.to_vec() }),
            ..Line::default()
        };
        view.rows(views.limit).map(line).collect()
    }

    fn branches(&self, views: &Views<'_>, view: &View, index: usize) -> Vec<Line> {
        let tree = hierarchy(&view.table.rows);
        let mut lines = Vec::new();
        let mut stack: Vec<(Vec<u64>, &Node)> = tree.iter().rev().map(|node| (Vec::new(), node)).collect();
        while let Some((mut values, node)) = stack.pop() {
            let percent = node.counts.percent(&view.whole);
            if percent < views.limit {
                continue;
            }
            let depth = values.len();
            values.push(node.value);
            let target = self.target(Subject::Row { view: index, values: values.clone() });
            lines.push(Line {
                percent: Some(percent),
                target,
                depth,
                is_closed: depth == 0,
                ..Line::default()
            });
            stack.extend(node.children.iter().rev().map(|child| (values.clone(), child)));
        }
        lines
    }

    /// The samples of a row.
    fn points<'s>(&'s self, view: usize, values: &'s [u64]) -> impl Iterator<Item = &'s Point> {
        let (keys, events): (Vec<_>, &[usize]) = match &self.start {
            Start::Tables { views, .. } => (
                views.columns.iter().filter_map(Column::key).collect(),
                views.views.get(view).map_or(&[], |view| &view.events),
            ),
            Start::Types { .. } => (Vec::new(), &[]),
        };
        self.profile.points.iter().filter(move |point| {
            events.contains(&(point.event as usize))
                && keys.iter().zip(values).all(|(key, value)| (key.value)(self.profile, point) == *value)
                && self.filter.accepts(self.profile, point)
        })
    }

    fn types(&self, name: Option<&str>) -> Page {
        let found = annotate(self.profile, &self.filter, self.weighing, name);
        if let (Some(_), [only]) = (name, &found[..]) {
            return self.fields(&only.name.clone()).unwrap_or_default();
        }
        let whole: u64 = found.iter().map(|of_type| of_type.whole().total).sum();
        let line = |of_type: &tallyline_profile::report::annotate::TypeUse| {
            let used = of_type.whole();
            let percent = used.total as f64 * 100.0 / whole.max(1) as f64;
            let dso = of_type.dso.rsplit('/').next().unwrap_or_default();
            Line {
                text: format!("{percent:>9.2}% {:>9}  {dso:<20}  {}", used.samples, of_type.name),
                percent: Some(percent),
                target: self.target(Subject::Type(of_type.name.clone())),
                ..Line::default()
            }
        };
        let head = "     Share   Samples  Object                Data type".to_owned();
        Page::new("Types that samples access".to_owned(), vec![head], found.iter().map(line).collect())
    }

    /// A type, field by field and cache line by cache line.
    fn fields(&self, name: &str) -> Option<Page> {
        let found = annotate(self.profile, &self.filter, self.weighing, Some(name));
        let of_type = found.iter().find(|of_type| of_type.name == name)?;
        let mut lines = text::lines(of_type, false, self.profile.line_size.into());
        let rest = lines.split_off(lines.iter().position(|line| line.percent.is_some())?);
        let line = |line: text::Line| {
            let target = line
                .percent
                .filter(|percent| *percent > 0.0)
                .and_then(|_| self.target(Subject::Field { ty: name.to_owned(), bytes: line.bytes.clone() }));
            Line { text: line.text, percent: line.percent, target, ..Line::default() }
        };
        let mut head = lines.into_iter().map(|line| line.text);
        let title = head.next().unwrap_or_default();
        let head = head.filter(|text| !text.starts_with('='));
        Some(Page::new(title, head.collect(), rest.into_iter().map(line).collect()))
    }

    /// Who accesses some bytes of a type.
    fn places(&self, ty: &str, bytes: &Range<u64>) -> Option<Page> {
        let mut places: HashMap<u32, (u64, u64)> = HashMap::new();
        for point in self.profile.points.iter().filter(|point| self.filter.accepts(self.profile, point)) {
            let Some(operand) = self.profile.outcome(point).operand() else { continue };
            if self.profile.text(operand.name) == ty && operand.may_be_in(bytes) {
                let counts = places.entry(point.charged).or_default();
                counts.0 += 1;
                counts.1 += self.weighing.of(point);
            }
        }
        let whole: u64 = places.values().map(|(_, total)| total).sum();
        let mut places: Vec<_> = places.into_iter().collect();
        places.sort_by_key(|(place, (_, total))| (std::cmp::Reverse(*total), *place));
        let line = |(place, (samples, total)): (u32, (u64, u64))| {
            let at = self.profile.at(place);
            let percent = total as f64 * 100.0 / whole.max(1) as f64;
            let outcome = self.profile.outcomes.get(place as usize).and_then(|outcome| outcome.operand());
            let what = outcome.map_or("", |operand| match (operand.reads, operand.writes) {
                (true, true) => "load, store",
                (_, true) => "store",
                _ => "load",
            });
            let symbol = self.profile.symbol(at.symbol).map_or("", |symbol| self.profile.text(symbol.name));
            Line {
                text: format!(
                    "{percent:>9.2}% {samples:>9}  {what:<11}  {:#14x}  {:<24}  {symbol}",
                    at.address,
                    self.profile.text(at.source_line)
                ),
                percent: Some(percent),
                target: self.target(Subject::Function(at.symbol)),
                ..Line::default()
            }
        };
        let lines: Vec<Line> = places.into_iter().map(line).collect();
        let title = format!("Accesses to '{ty}' {:#x} to {:#x}", bytes.start, bytes.end);
        let head = "     Share   Samples  Access              Address  Source                    Function"
            .to_owned();
        (!lines.is_empty()).then(|| Page::new(title, vec![head], lines))
    }

    fn code(&self, symbol: u32) -> Option<Page> {
        let functions = code::functions(self.profile, self.binaries, &self.filter);
        let function = functions.into_iter().find(|function| function.symbol == symbol)?;
        let [title, columns] = function.head;
        let line = |(percent, text)| Line { text, percent, ..Line::default() };
        let mut page = Page::new(title, vec![columns], function.lines.into_iter().map(line).collect());
        page.select_largest();
        Some(page)
    }

    /// What most of some samples have.
    fn most<'s, T: Ord + std::hash::Hash + Copy>(
        points: impl Iterator<Item = &'s Point>,
        of: impl Fn(&Point) -> Option<T>,
    ) -> Option<T> {
        let mut counts: HashMap<T, u64> = HashMap::new();
        points.filter_map(of).for_each(|value| *counts.entry(value).or_default() += 1);
        counts
            .into_iter()
            .max_by_key(|(value, count)| (*count, std::cmp::Reverse(*value)))
            .map(|(value, _)| value)
    }

    fn row(&self, view: usize, values: &[u64], as_code: bool) -> Option<Page> {
        let name = |point: &Point| self.profile.outcome(point).operand().map(|operand| operand.name);
        let ty = Self::most(self.points(view, values), name).filter(|_| !as_code);
        match ty {
            Some(name) => self.fields(self.profile.text(name)),
            None => {
                let symbol = |point: &Point| Some(self.profile.at(point.charged).symbol);
                self.code(Self::most(self.points(view, values), symbol)?)
            }
        }
    }

    fn function_of_type(&self, ty: &str, bytes: &Range<u64>) -> Option<u32> {
        let points = self.profile.points.iter().filter(|point| self.filter.accepts(self.profile, point));
        Self::most(points, |point| {
            let operand = self.profile.outcome(point).operand()?;
            let is_it = self.profile.text(operand.name) == ty && operand.may_be_in(bytes);
            is_it.then(|| self.profile.at(point.charged).symbol)
        })
    }
}

impl Source for Pages<'_> {
    fn roots(&self) -> usize {
        match &self.start {
            Start::Tables { views, .. } => views.views.len(),
            Start::Types { .. } => 1,
        }
    }

    fn root(&self, index: usize) -> Page {
        match &self.start {
            Start::Tables { views, is_tree } => self.table(views, index, *is_tree),
            Start::Types { name } => self.types(name.as_deref()),
        }
    }

    fn open(&self, target: Target, as_code: bool) -> Option<Page> {
        let subject = self.subjects.borrow().get(target).cloned()?;
        match subject {
            Subject::Row { view, values } => self.row(view, &values, as_code),
            Subject::Type(ty) if as_code => self.code(self.function_of_type(&ty, &(0..u64::MAX))?),
            Subject::Type(ty) => self.fields(&ty),
            Subject::Field { ty, bytes } if as_code => self.code(self.function_of_type(&ty, &bytes)?),
            Subject::Field { ty, bytes } => self.places(&ty, &bytes),
            Subject::Function(symbol) => self.code(symbol),
        }
    }
}
