//! A report as pages to look around in: rows, what their samples access, the fields of a type, who accesses a
//! field, code. Every page counts the samples of the line that led to it, and no others.

use super::scope::Scope;
use super::stdio;
use super::view::{View, Views};
use super::{Columns, stdio::Grid};
use crate::browser::{Line, Page, Source, Target, Zoom};
use crate::columns::Column as Head;
use crate::listing::{code, text};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use tallyline_report::SampleGroup;
use tallyline_report::annotate::{TypeUse, annotate};
use tallyline_report::keys::Column;
use tallyline_report::operand::Outcome;
use tallyline_report::{Filter, Node, PlaceId, Profile, Row, SymbolId, Weighing, hierarchy};

/// Counts the samples that a filter lets through by columns.
type Make<'p> = Box<dyn Fn(&[Column], &Filter) -> Views<'p> + 'p>;

/// The pages of the terminal browser for a recording's samples: the tables of a report, and the pages that their lines
/// lead to (types, fields, functions, code).
pub(crate) struct Pages<'p> {
    profile: &'p Profile,
    weighing: Weighing,
    start: Start<'p>,
    /// The filter of the command line.
    filter: Filter,
    state: RefCell<State<'p>>,
    subjects: RefCell<Vec<Subject>>,
}

/// The first page of the terminal browser for a recording's samples: the tables of a report, or the list of data types.
pub(crate) enum Start<'p> {
    /// The tables of a report, as trees or not.
    Tables { make: Make<'p>, columns: Vec<Column>, is_tree: bool },
    /// The types that the filter lets through, for each event by its indices.
    Types { events: Vec<Vec<usize>> },
}

/// The state that keys change.
struct State<'p> {
    columns: Vec<Column>,
    zooms: Vec<Zoomed>,
    filter: Rc<Filter>,
    views: Option<Rc<Views<'p>>>,
}

/// A zoom of the browser: onto the samples of one thread, or of one file.
#[derive(Clone)]
enum Zoomed {
    Thread { tid: i32, comm: String },
    File { path: String },
}

/// The subject of a line.
#[derive(Clone)]
enum Subject {
    Row(Rc<Scope>),
    Type { name: String, scope: Rc<Scope> },
    Field { ty: String, bytes: Range<u64>, scope: Rc<Scope> },
    Untyped { what: String, scope: Rc<Scope> },
    Function { symbol: Option<SymbolId>, scope: Rc<Scope> },
}

impl Subject {
    fn scope(&self) -> &Rc<Scope> {
        match self {
            Subject::Row(scope)
            | Subject::Type { scope, .. }
            | Subject::Field { scope, .. }
            | Subject::Untyped { scope, .. }
            | Subject::Function { scope, .. } => scope,
        }
    }
}

impl Zoomed {
    fn kind(&self) -> Zoom {
        match self {
            Zoomed::Thread { .. } => Zoom::Thread,
            Zoomed::File { .. } => Zoom::File,
        }
    }

    fn text(&self) -> String {
        match self {
            Zoomed::Thread { tid, comm } => format!("thread {comm} ({tid})"),
            Zoomed::File { path } => format!("file {path}"),
        }
    }
}

impl<'p> Pages<'p> {
    pub(crate) fn new(
        profile: &'p Profile,
        filter: Filter,
        weighing: Weighing,
        start: Start<'p>,
    ) -> Pages<'p> {
        let columns = match &start {
            Start::Tables { columns, .. } => columns.clone(),
            Start::Types { .. } => Vec::new(),
        };
        let state = State { columns, zooms: Vec::new(), filter: Rc::new(filter.clone()), views: None };
        let pages =
            Pages { profile, weighing, start, filter, state: state.into(), subjects: RefCell::default() };
        pages.remake(None, None);
        pages
    }

    /// Counts anew, by other columns or of other samples.
    fn remake(&self, columns: Option<Vec<Column>>, zooms: Option<Vec<Zoomed>>) {
        let mut state = self.state.borrow_mut();
        state.columns = columns.unwrap_or_else(|| std::mem::take(&mut state.columns));
        state.zooms = zooms.unwrap_or_else(|| std::mem::take(&mut state.zooms));
        let mut filter = self.filter.clone();
        for zoomed in &state.zooms {
            match zoomed {
                Zoomed::Thread { tid, .. } => filter.tids = vec![*tid],
                Zoomed::File { path } => filter.dsos = Some(HashSet::from([path.clone()])),
            }
        }
        state.views = match &self.start {
            Start::Tables { make, .. } => Some(Rc::new(make(&state.columns, &filter))),
            Start::Types { .. } => None,
        };
        state.filter = Rc::new(filter);
        // lines of the pages before are gone
        self.subjects.borrow_mut().clear();
    }

    fn target(&self, subject: Subject) -> Option<Target> {
        let mut subjects = self.subjects.borrow_mut();
        subjects.push(subject);
        Some(subjects.len() - 1)
    }

    /// Describes the current zoom.
    fn zoomed(&self) -> String {
        self.state.borrow().zooms.iter().map(|zoomed| format!(", {}", zoomed.text())).collect()
    }

    /// Returns the samples of a scope that are let through.
    fn points(&self, scope: &Scope) -> impl Iterator<Item = &'p SampleGroup> {
        let (profile, filter) = (self.profile, Rc::clone(&self.state.borrow().filter));
        let is_in =
            move |point: &&SampleGroup| scope.accepts(profile, point) && filter.accepts(profile, point);
        profile.groups().iter().filter(is_in)
    }

    /// Returns a table, or a tree, as `--stdio` has it.
    fn table(&self, views: &Views<'_>, index: usize, is_tree: bool) -> Page {
        let Some(view) = views.views.get(index) else { return Page::default() };
        let Grid { columns, rows } = stdio::grid(views, view, is_tree);
        let lines = if is_tree { self.branches(views, view) } else { self.rows(views, view) };
        let lines = rows.into_iter().zip(lines).map(|(cells, line)| Line { cells, ..line });
        Page::of_columns(stdio::title(views, view) + &self.zoomed(), columns, lines.collect())
    }

    fn scope(views: &Views<'_>, view: &View, values: &[u64]) -> Rc<Scope> {
        let keys = views.columns.iter().filter_map(Column::key).zip(values.iter().copied());
        Rc::new(Scope { events: Some(view.events.clone()), keys: keys.collect() })
    }

    fn rows(&self, views: &Views<'_>, view: &View) -> Vec<Line> {
        let line = |row: &Row| Line {
            percent: Some(row.counts().percent(&view.whole)),
            target: self.target(Subject::Row(Self::scope(views, view, row.values()))),
            ..Line::default()
        };
        view.rows(views.limit).map(line).collect()
    }

    fn branches(&self, views: &Views<'_>, view: &View) -> Vec<Line> {
        let tree = hierarchy(&view.table.rows);
        let mut lines = Vec::new();
        let mut stack: Vec<(Vec<u64>, &Node)> = tree.iter().rev().map(|node| (Vec::new(), node)).collect();
        while let Some((mut values, node)) = stack.pop() {
            let percent = node.counts().percent(&view.whole);
            if percent < views.limit {
                continue;
            }
            let depth = values.len();
            values.push(node.value());
            let target = self.target(Subject::Row(Self::scope(views, view, &values)));
            let is_closed = depth == 0;
            lines.push(Line { percent: Some(percent), target, depth, is_closed, ..Line::default() });
            stack.extend(node.children().iter().rev().map(|child| (values.clone(), child)));
        }
        lines
    }

    fn annotated(&self, scope: &Scope) -> Vec<TypeUse> {
        let filter = Rc::clone(&self.state.borrow().filter);
        annotate(self.profile, self.weighing, |point| {
            scope.accepts(self.profile, point) && filter.accepts(self.profile, point)
        })
    }

    /// Returns the types that the samples of an event access, or of all; of a single type its fields.
    fn types(&self, events: Option<Vec<usize>>) -> Page {
        let name = events.as_ref().and_then(|events| self.profile.info().events.get(*events.first()?));
        let of_event = name.map(|event| format!(" of event '{}'", event.name)).unwrap_or_default();
        let scope = Rc::new(Scope { events, ..Scope::default() });
        let found = self.annotated(&scope);
        let page = match &found[..] {
            [only] => self.fields(only.name(), &scope),
            _ => None,
        };
        let title = || format!("Types that samples{of_event} access{}", self.zoomed());
        page.unwrap_or_else(|| self.accessed(title(), &scope, false))
    }

    /// Lists everything that some samples access: types, and the places without one.
    fn accessed(&self, title: String, scope: &Rc<Scope>, is_all: bool) -> Page {
        let found = self.annotated(scope);
        let mut rows: Vec<(u64, u64, String, String, Subject)> = found
            .iter()
            .map(|of_type| {
                let (used, name) = (of_type.whole(), of_type.name().to_owned());
                let dso = of_type.dso().rsplit('/').next().unwrap_or_default().to_owned();
                let subject = Subject::Type { name: name.clone(), scope: Rc::clone(scope) };
                (used.total(), used.samples(), dso, name, subject)
            })
            .collect();
        let mut others: HashMap<(String, String), (u64, u64)> = HashMap::new();
        for point in self.points(scope).filter(|_| is_all) {
            if let Some(what) = self.untyped(point) {
                let dso = self.profile.place(point.charged).dso;
                let counts = others.entry((self.profile.dso_name(dso).to_owned(), what)).or_default();
                counts.0 += self.weighing.of(point);
                counts.1 += point.samples;
            }
        }
        for ((dso, what), (total, samples)) in others {
            let subject = Subject::Untyped { what: what.clone(), scope: Rc::clone(scope) };
            rows.push((total, samples, dso, what, subject));
        }
        rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (&a.3, &a.2).cmp(&(&b.3, &b.2))));
        let whole: u64 = rows.iter().map(|row| row.0).sum();
        let line = |(total, samples, dso, name, subject): (u64, u64, String, String, Subject)| {
            let percent = total as f64 * 100.0 / whole.max(1) as f64;
            Line {
                cells: vec![format!("{percent:.2}%"), samples.to_string(), dso, name],
                percent: Some(percent),
                target: self.target(subject),
                ..Line::default()
            }
        };
        let heads = [("Share", false), ("Samples", false), ("Object", true), ("Data type", true)];
        Page::of_columns(title, of_heads(&heads), rows.into_iter().map(line).collect())
    }

    /// Returns the label of a sample without a type.
    fn untyped(&self, point: &SampleGroup) -> Option<String> {
        match self.profile.outcome(point) {
            Outcome::Typed(_) => None,
            Outcome::Pseudo(pseudo) => Some(pseudo.name().to_owned()),
            Outcome::Untyped(reason) => {
                Some(format!("(unknown: {})", reason.text(|name| self.profile.text(name))))
            }
        }
    }

    /// Returns a type, field by field and cache line by cache line.
    fn fields(&self, name: &str, scope: &Rc<Scope>) -> Option<Page> {
        let found = self.annotated(scope);
        let of_type = found.iter().find(|of_type| of_type.name() == name)?;
        let mut lines = text::lines(of_type, false, self.profile.info().line_size.into());
        let rest = lines.split_off(lines.iter().position(|line| line.percent.is_some())?);
        let line = |line: text::Line| {
            let field =
                || Subject::Field { ty: name.to_owned(), bytes: line.bytes.clone(), scope: Rc::clone(scope) };
            let target = line.percent.filter(|percent| *percent > 0.0).and_then(|_| self.target(field()));
            Line { text: line.text, fixed: line.fixed, percent: line.percent, target, ..Line::default() }
        };
        let mut head = lines.into_iter().map(|line| line.text);
        let title = head.next().unwrap_or_default() + &about(&scope.text(self.profile)) + &self.zoomed();
        let head = head.filter(|text| !text.starts_with('='));
        Some(Page::new(title, head.collect(), rest.into_iter().map(line).collect()))
    }

    /// Returns the instructions that some samples are charged to.
    fn places(
        &self,
        title: String,
        scope: &Rc<Scope>,
        is_one: impl Fn(&SampleGroup) -> bool,
    ) -> Option<Page> {
        let mut places: HashMap<PlaceId, (u64, u64)> = HashMap::new();
        for point in self.points(scope).filter(|point| is_one(point)) {
            let counts = places.entry(point.charged).or_default();
            counts.0 += point.samples;
            counts.1 += self.weighing.of(point);
        }
        let whole: u64 = places.values().map(|(_, total)| total).sum();
        let mut places: Vec<_> = places.into_iter().collect();
        places.sort_by_key(|(place, (_, total))| (std::cmp::Reverse(*total), *place));
        let line = |(place, (samples, total)): (PlaceId, (u64, u64))| {
            let at = self.profile.at(place);
            let percent = total as f64 * 100.0 / whole.max(1) as f64;
            let outcome = self.profile.outcome_at(place).operand();
            let what = outcome.map_or("", |operand| match (operand.reads, operand.writes) {
                (true, true) => "load, store",
                (_, true) => "store",
                _ => "load",
            });
            let symbol = self.profile.function(place).map_or("", |symbol| self.profile.text(symbol.name));
            let cells = [
                format!("{percent:.2}%"),
                samples.to_string(),
                what.to_owned(),
                format!("{:#x}", at.address),
                self.profile.text(at.source_line).to_owned(),
                symbol.to_owned(),
            ];
            Line {
                cells: cells.into(),
                percent: Some(percent),
                target: self.target(Subject::Function { symbol: at.symbol, scope: Rc::clone(scope) }),
                ..Line::default()
            }
        };
        let lines: Vec<Line> = places.into_iter().map(line).collect();
        let heads = [
            ("Share", false),
            ("Samples", false),
            ("Access", true),
            ("Address", false),
            ("Source", true),
            ("Function", true),
        ];
        (!lines.is_empty()).then(|| Page::of_columns(title, of_heads(&heads), lines))
    }

    fn code(&self, symbol: Option<SymbolId>, scope: &Scope) -> Option<Page> {
        let filter = Rc::clone(&self.state.borrow().filter);
        let function = code::functions(self.profile, None, |point| {
            self.profile.at(point.charged).symbol == symbol
                && scope.accepts(self.profile, point)
                && filter.accepts(self.profile, point)
        })
        .into_iter()
        .next()?;
        let [title, columns] = function.head;
        let line = |line: text::Line| Line {
            text: line.text,
            fixed: line.fixed,
            percent: line.percent,
            ..Line::default()
        };
        let title = title + &about(&scope.text(self.profile)) + &self.zoomed();
        let mut page = Page::new(title, vec![columns], function.lines.into_iter().map(line).collect());
        page.select_largest();
        Some(page)
    }

    /// Returns the most frequent value among some samples.
    fn most<'s, T: Ord + std::hash::Hash + Copy>(
        points: impl Iterator<Item = &'s SampleGroup>,
        of: impl Fn(&SampleGroup) -> Option<T>,
    ) -> Option<T> {
        let mut counts: HashMap<T, u64> = HashMap::new();
        for point in points {
            if let Some(value) = of(point) {
                *counts.entry(value).or_default() += point.samples;
            }
        }
        let largest = counts.into_iter().max_by_key(|(value, count)| (*count, std::cmp::Reverse(*value)));
        largest.map(|(value, _)| value)
    }

    /// Opens a row's page: its type by its other keys, or the accesses of its samples.
    fn row(&self, scope: &Rc<Scope>) -> Option<Page> {
        let title = || format!("Accesses of {}{}", scope.text(self.profile), self.zoomed());
        if !scope.has_types() {
            return Some(self.accessed(title(), scope, true));
        }
        let name =
            |point: &SampleGroup| self.profile.outcome(point).operand().map(|operand| operand.object());
        match Self::most(self.points(scope), name) {
            Some(name) => self.fields(self.profile.text(name), &Rc::new(scope.without_types())),
            None => self.places(title(), scope, |_| true),
        }
    }

    /// Returns the function with most of a line's samples.
    fn function(&self, subject: &Subject) -> Option<Option<SymbolId>> {
        if let Subject::Function { symbol, .. } = subject {
            return Some(*symbol);
        }
        Self::most(self.points(subject.scope()), |point| {
            let operand = self.profile.outcome(point).operand();
            let is_it = match subject {
                Subject::Type { name, .. } => {
                    operand.is_some_and(|found| self.profile.text(found.object()) == name)
                }
                Subject::Field { ty, bytes, .. } => self.is_at(point, ty, bytes),
                Subject::Untyped { what, .. } => self.untyped(point).is_some_and(|reason| reason == *what),
                Subject::Row(_) | Subject::Function { .. } => true,
            };
            is_it.then(|| self.profile.at(point.charged).symbol)
        })
    }

    /// Returns `true` if a sample accesses, or may access, `bytes` of the type `ty`.
    fn is_at(&self, point: &SampleGroup, ty: &str, bytes: &Range<u64>) -> bool {
        let operand = self.profile.outcome(point).operand();
        operand.is_some_and(|found| self.profile.text(found.object()) == ty && found.may_be_in(bytes))
    }

    /// Returns the zoom onto the value that most samples of a line have.
    fn zoom_of(&self, scope: &Scope, zoom: Zoom) -> Option<Zoomed> {
        match zoom {
            Zoom::Thread => {
                let (tid, comm) = Self::most(self.points(scope), |point| Some((point.tid, point.comm)))?;
                Some(Zoomed::Thread { tid, comm: self.profile.text(comm).to_owned() })
            }
            Zoom::File => {
                let dso = |group: &SampleGroup| Some(self.profile.place(group.charged).dso);
                let dso = Self::most(self.points(scope), dso)?.and_then(|dso| self.profile.dso(dso));
                let path = dso.map_or("[unknown]", |dso| dso.path());
                Some(Zoomed::File { path: path.to_owned() })
            }
            Zoom::Out => None,
        }
    }
}

fn of_heads(heads: &[(&str, bool)]) -> Vec<Head> {
    heads
        .iter()
        .map(|(title, is_text)| Head { title: (*title).to_owned(), is_text: *is_text, least: 0 })
        .collect()
}

fn about(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" of {text}") }
}

impl Source for Pages<'_> {
    fn roots(&self) -> usize {
        match &self.start {
            Start::Types { events } => events.len().max(1),
            Start::Tables { .. } => self.state.borrow().views.as_ref().map_or(1, |views| views.views.len()),
        }
    }

    fn root(&self, index: usize) -> Page {
        let views = self.state.borrow().views.clone();
        match (&self.start, views) {
            (Start::Tables { is_tree, .. }, Some(views)) => self.table(&views, index, *is_tree),
            (Start::Types { events }, _) if events.len() > 1 => self.types(events.get(index).cloned()),
            _ => self.types(None),
        }
    }

    fn open(&self, target: Target, as_code: bool) -> Option<Page> {
        let subject = self.subjects.borrow().get(target).cloned()?;
        if as_code {
            return self.code(self.function(&subject)?, subject.scope());
        }
        match &subject {
            Subject::Row(scope) => self.row(scope),
            Subject::Type { name, scope } => self.fields(name, scope),
            Subject::Field { ty, bytes, scope } => {
                let of = about(&scope.text(self.profile));
                let title =
                    format!("Accesses to '{ty}' {:#x} to {:#x}{of}{}", bytes.start, bytes.end, self.zoomed());
                self.places(title, scope, |point| self.is_at(point, ty, bytes))
            }
            Subject::Untyped { what, scope } => {
                let title = format!("{what}{}{}", about(&scope.text(self.profile)), self.zoomed());
                self.places(title, scope, |point| self.untyped(point).is_some_and(|reason| reason == *what))
            }
            Subject::Function { symbol, scope } => self.code(*symbol, scope),
        }
    }

    fn sort_keys(&self) -> Option<String> {
        let name = |column: &Column| match column {
            Column::Key(key) => key.name,
            Column::Period => "period",
            Column::Samples => "sample",
        };
        let names: Vec<_> = self.state.borrow().columns.iter().map(name).collect();
        (!names.is_empty()).then(|| names.join(","))
    }

    fn sort(&self, keys: &str) -> Result<(), String> {
        let Columns(columns) = Columns::parse(keys)?;
        self.remake(Some(columns), None);
        Ok(())
    }

    fn zoom(&self, target: Option<Target>, zoom: Zoom) -> Result<String, String> {
        let mut zooms = self.state.borrow().zooms.clone();
        let is_on = |zoomed: &Zoomed| zoom == Zoom::Out || zoomed.kind() == zoom;
        if let Some(on) = zooms.iter().rposition(is_on) {
            let gone = zooms.remove(on);
            self.remake(None, Some(zooms));
            return Ok(format!("No longer only {}", gone.text()));
        }
        let subject = target.and_then(|target| self.subjects.borrow().get(target).cloned());
        if zoom == Zoom::Out {
            return Err("This is the first page; q ends".to_owned());
        }
        let subject = subject.ok_or("Nothing more is known about this line")?;
        let zoomed = self.zoom_of(subject.scope(), zoom).ok_or("This line has no samples")?;
        let done = format!("Only {}; Esc for all", zoomed.text());
        zooms.push(zoomed);
        self.remake(None, Some(zooms));
        Ok(done)
    }
}
