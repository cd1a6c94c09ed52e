//! The contents of a report in any format: tables of rows, and the account of the samples.

use std::collections::HashMap;
use tallyline_report::keys::Column;
use tallyline_report::operand::{Outcome, is_eligible};
use tallyline_report::{Counts, Filter, PlaceId, Profile, Row, Table, Weighing, aggregate};

/// All tables of a report on a recording's samples: one for each sampled event (such as `cycles`), or for each group of
/// such events.
pub(crate) struct Views<'p> {
    pub(crate) profile: &'p Profile,
    pub(crate) columns: Vec<Column>,
    pub(crate) views: Vec<View>,
    /// `true` if a column shows the number of samples.
    pub(crate) samples_column: bool,
    /// The share in percent below which rows are left out.
    pub(crate) limit: f64,
    pub(crate) weighing: Weighing,
}

/// A table of a report, about one sampled event (such as `cycles`) or several side by side.
pub(crate) struct View {
    pub(crate) events: Vec<usize>,
    pub(crate) table: Table,
    /// The base of percentages.
    pub(crate) whole: Counts,
    pub(crate) whole_events: Vec<Counts>,
    pub(crate) account: Account,
}

/// The numbers of samples by what is known of their type, for the head of a report: typed, in memory that has no
/// type, and untyped by reason.
#[derive(Default)]
pub(crate) struct Account {
    /// The number of samples in code with debug information whose memory access can have a type.
    pub(crate) eligible: u64,
    /// The number of samples whose memory access has a type.
    pub(crate) typed: u64,
    /// The numbers of samples that access memory without a type of the program, by kind.
    pub(crate) pseudo: Vec<(String, u64)>,
    /// The numbers of samples whose type is unknown, by reason.
    pub(crate) untyped: Vec<(String, u64)>,
}

impl View {
    /// Aggregates the samples of some events (by index) into a table with these columns; with `relative`,
    /// percentages are of the filtered samples.
    pub(crate) fn new(
        profile: &Profile,
        columns: &[Column],
        events: Vec<usize>,
        filter: &Filter,
        weighing: Weighing,
        relative: bool,
    ) -> View {
        let table = aggregate(profile, columns, &events, filter, weighing);
        let account = Account::of(profile, &events, filter);
        let (mut whole, mut whole_events) = (table.whole, table.whole_events.clone());
        if relative {
            whole = table.shown;
            whole_events = vec![Counts::default(); events.len()];
            for row in &table.rows {
                whole_events.iter_mut().zip(row.events()).for_each(|(whole, counts)| whole.add(*counts));
            }
        }
        View { events, table, whole, whole_events, account }
    }

    /// Returns the table's rows that have at least `limit` percent of the samples, by their period or weight.
    pub(crate) fn rows(&self, limit: f64) -> impl Iterator<Item = &Row> {
        self.table.rows.iter().filter(move |row| row.counts().percent(&self.whole) >= limit)
    }
}

impl Views<'_> {
    /// Returns the cells of a table row as text, one for each column.
    pub(crate) fn texts(&self, row: &Row) -> Vec<String> {
        let mut values = row.values().iter();
        let text = |column: &Column| match column {
            Column::Key(key) => values
                .next()
                .map_or_else(String::new, |value| (key.text)(self.profile, *value, &row.counts())),
            Column::Period => row.counts().period().to_string(),
            Column::Samples => row.counts().samples().to_string(),
        };
        self.columns.iter().map(text).collect()
    }

    /// Returns the name of the quantity that percentages are shares of: `period` or `weight`.
    pub(crate) fn weighs(&self) -> &'static str {
        match self.weighing {
            Weighing::Period => "period",
            Weighing::Weight => "weight",
        }
    }

    /// Returns `true` if a column of the report needs the types of the data that the sampled instructions access.
    pub(crate) fn has_types(&self) -> bool {
        self.columns.iter().filter_map(Column::key).any(|key| key.needs.types)
    }
}

impl Account {
    fn of(profile: &Profile, events: &[usize], filter: &Filter) -> Account {
        let mut account = Account::default();
        // a recording has few places, and many samples
        let mut samples = vec![0_u64; profile.places_count()];
        for point in profile.groups().iter().filter(|point| events.contains(&(point.event as usize))) {
            if filter.accepts(profile, point) {
                samples[point.charged.position()] += point.samples;
            }
        }
        let (mut pseudo, mut untyped) = (HashMap::new(), HashMap::new());
        let places = samples.into_iter().enumerate().filter(|(_, samples)| *samples > 0);
        for (place, samples) in
            places.filter_map(|(position, n)| Some((PlaceId::from_position(position)?, n)))
        {
            let outcome = profile.outcome_at(place);
            account.eligible += if is_eligible(outcome) { samples } else { 0 };
            match outcome {
                Outcome::Typed(_) => account.typed += samples,
                Outcome::Pseudo(kind) => *pseudo.entry(*kind).or_insert(0) += samples,
                Outcome::Untyped(reason) => *untyped.entry(*reason).or_insert(0) += samples,
            }
        }
        account.pseudo = sorted(pseudo.into_iter().map(|(kind, n)| (kind.name().to_owned(), n)));
        account.untyped =
            sorted(untyped.into_iter().map(|(reason, n)| (reason.text(|name| profile.text(name)), n)));
        account
    }
}

fn sorted(counts: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut counts: Vec<_> = counts.collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}
