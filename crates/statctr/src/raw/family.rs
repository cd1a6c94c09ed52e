//! Families of statistics by labels that C code defines.

use super::{RawFloatGauge, RawGroup, RawHistogram};
use crate::average::AverageSnapshot;
use crate::description::Description;
use crate::error::{Error, Result};
use crate::gauge::FloatGauge;
use crate::group::Group;
use crate::histogram::Histogram;
use crate::memory::{RawStatic, StaticKind};
use crate::placement::Pool;
use crate::schema::{ItemSpec, Schema};
use crate::statics::{Entry, LARGEST_LIMIT, LabelTable, MAX_VALUE_BYTES, OVERFLOW};
use crate::sys::{Lock, OnceBox, Rank};
use crate::value::{Kind, SampleItem, Source, Value, sealed};

/// The kind of the statistics in a family (one name, told apart by values of labels) that C code defines: counters,
/// gauges, maxima or minima like statics, floating-point gauges, averages, or histograms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FamilyKind {
    /// Members that are like statics of this kind.
    Static(StaticKind),
    /// Members that are floating-point gauges.
    FloatGauge,
    /// Members that are groups of two items, the number of values and their sum, in one event.
    Average,
    /// Members that are histograms.
    Histogram {
        /// The largest value that has a bucket.
        max: u64,
        /// The largest relative error of quantiles.
        error: f64,
    },
}

/// A member of a family that C code defines, with the words by which C code updates it.
enum RawMember {
    Static(RawStatic, StaticKind),
    FloatGauge(RawFloatGauge),
    Average(RawGroup, Group),
    Histogram(RawHistogram, Histogram),
}

impl sealed::Sealed for RawMember {
    fn kind(&self) -> Kind {
        match self {
            RawMember::Static(_, StaticKind::Counter) => Kind::Counter,
            RawMember::Static(_, StaticKind::Gauge) => Kind::Gauge,
            RawMember::Static(_, StaticKind::Max) => Kind::Max,
            RawMember::Static(_, StaticKind::Min) => Kind::Min,
            RawMember::FloatGauge(..) => Kind::FloatGauge,
            RawMember::Average(..) => Kind::Average,
            RawMember::Histogram(..) => Kind::Histogram,
        }
    }
}

impl Source for RawMember {
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, Value)) {
        let value = match self {
            RawMember::Static(word, kind) => Value::of_foreign_static(*kind, word.read_as(*kind)),
            RawMember::FloatGauge(gauge) => Value::FloatGauge(gauge.get().read()),
            RawMember::Average(_, group) => {
                let mut values = [0; 2];
                // as long as the group
                let _ = group.fold_into(&mut values);
                Value::Average(AverageSnapshot::of(values[0], values[1]))
            }
            RawMember::Histogram(_, histogram) => Value::Histogram(histogram.snapshot()),
        };
        sink(SampleItem::Only, value);
    }
}

type Members = LabelTable<Box<[Box<str>]>, RawMember>;

/// A family of statistics that C code defines (`statctr_family_t`): one name, with a member for each combination of
/// label values, bounded as a [`StaticFamily`](crate::StaticFamily). It lives as long as the process, and refers to no
/// memory of its definition, which may be unloaded.
pub struct RawFamily {
    /// The name, help text and unit, and the names of the labels.
    description: Description,
    kind: FamilyKind,
    limit: usize,
    members: Members,
}

impl RawFamily {
    /// The largest number of labels of a family of statistics.
    pub const MAX_LABELS: usize = 16;
    /// The largest length in bytes of a label's value in a family of statistics; longer ones are counted by the
    /// overflow member, which they share.
    pub const MAX_VALUE_BYTES: usize = MAX_VALUE_BYTES;
    /// The value that all labels have in a family's overflow member, the statistic that counts for label values beyond
    /// the family's bounds.
    pub const OVERFLOW: &'static str = OVERFLOW;

    /// Returns the family of `limit` members (statistics, by label values) of this kind with this description and these
    /// names of labels: the same one each time, so that a definition that is loaded again, or is in several libraries,
    /// goes on with its members. Takes a lock and allocates.
    ///
    /// # Errors
    /// [`Error::BadName`] for names and labels that exporters would not take, and a label that is given twice,
    /// [`Error::BadSetting`] for a limit that is not from 1 to 65 536, and for no label or more than
    /// [`MAX_LABELS`](Self::MAX_LABELS).
    pub fn intern(
        description: Description,
        labels: Vec<String>,
        limit: usize,
        kind: FamilyKind,
    ) -> Result<&'static RawFamily> {
        static FAMILIES: OnceBox<Lock<Vec<&'static RawFamily>>> = OnceBox::new();
        if !(1..=LARGEST_LIMIT).contains(&limit) {
            return Err(Error::BadSetting("a family's limit is not from 1 to 65536 members"));
        }
        if !(1..=Self::MAX_LABELS).contains(&labels.len()) {
            return Err(Error::BadSetting("a family does not have 1 to 16 labels"));
        }
        // which exporters add themselves
        let reserved = match kind {
            FamilyKind::Histogram { .. } => Kind::Histogram.reserved_label(),
            FamilyKind::Average => Kind::Average.reserved_label(),
            FamilyKind::Static(_) | FamilyKind::FloatGauge => None,
        };
        if let Some(label) = labels.iter().find(|label| Some(label.as_str()) == reserved) {
            return Err(Error::BadName(label.clone()));
        }
        let description = labels.into_iter().fold(description, |made, label| made.label(label, ""));
        description.check()?;
        let mut families = FAMILIES.get_or_make(|| Lock::new(Rank::Names, Vec::new())).lock();
        let is_same = |family: &&&RawFamily| {
            family.description == description && family.limit == limit && family.kind == kind
        };
        if let Some(family) = families.iter().find(is_same) {
            return Ok(family);
        }
        let family: &'static RawFamily =
            Box::leak(Box::new(RawFamily { description, kind, limit, members: LabelTable::new(limit) }));
        families.push(family);
        Ok(family)
    }

    fn label_count(&self) -> usize {
        self.description.labels().count()
    }

    /// Returns the member (a statistic) for these values of the labels, in the order of the labels, of a family of
    /// statics of this kind; `None` for a family of another kind, and for another number of values. Creates the member
    /// if it does not exist, and puts it into the program's registry. Async-signal-safe where the member exists.
    #[must_use]
    pub fn get_static(&'static self, values: &[&str], kind: StaticKind) -> Option<&'static RawStatic> {
        if self.kind != FamilyKind::Static(kind) {
            return None;
        }
        match self.get(values, || Ok(RawMember::Static(RawStatic::unnamed(), kind)))? {
            Ok(RawMember::Static(word, _)) => Some(word),
            _ => None,
        }
    }

    /// Returns the words by which C code uses the family's histogram for these values of the labels, in the order of
    /// the labels; `None` for a family of another kind, and for another number of values. Creates the histogram in
    /// memory of `pool` if it does not exist, and puts it into the program's registry. Async-signal-safe where the
    /// member exists.
    ///
    /// # Errors
    /// Those of [`Histogram::new_in`] for the histogram of values that have none of their own.
    #[must_use]
    pub fn get_histogram(
        &'static self,
        values: &[&str],
        pool: &Pool,
    ) -> Option<Result<&'static RawHistogram>> {
        let FamilyKind::Histogram { max, error } = self.kind else { return None };
        let make = || {
            let histogram = Histogram::new_in(pool, max, error)?;
            Ok(RawMember::Histogram(RawHistogram::of(&histogram), histogram))
        };
        self.get_pooled(values, make, |member| match member {
            RawMember::Histogram(words, _) => Some(words),
            _ => None,
        })
    }

    /// Returns the handle by which C code uses the family's floating-point gauge for these values of the labels;
    /// otherwise as [`get_histogram`](Self::get_histogram).
    ///
    /// # Errors
    /// Those of [`FloatGauge::new_in`] for the gauge of values that have none of their own.
    #[must_use]
    pub fn get_float_gauge(
        &'static self,
        values: &[&str],
        pool: &Pool,
    ) -> Option<Result<&'static RawFloatGauge>> {
        if self.kind != FamilyKind::FloatGauge {
            return None;
        }
        let make = || {
            FloatGauge::new_in(pool, 0.0).map(|gauge| RawMember::FloatGauge(RawFloatGauge::from_gauge(gauge)))
        };
        self.get_pooled(values, make, |member| match member {
            RawMember::FloatGauge(gauge) => Some(gauge),
            _ => None,
        })
    }

    /// Returns the words by which C code uses the family's average for these values of the labels, a group of two
    /// counters (number of values, sum) updated together; otherwise as [`get_histogram`](Self::get_histogram).
    ///
    /// # Errors
    /// Those of [`Group::new_in`] for the average of values that have none of their own.
    #[must_use]
    pub fn get_average(&'static self, values: &[&str], pool: &Pool) -> Option<Result<&'static RawGroup>> {
        if self.kind != FamilyKind::Average {
            return None;
        }
        let make = || {
            let schema = average_schema()?;
            let group = Group::new_in(pool, schema)?;
            // nobody writes through the pointer: C reads the group, and never owns it
            let words = RawGroup::of(group.lines(), std::ptr::from_ref(schema).cast_mut());
            Ok(RawMember::Average(words, group))
        };
        self.get_pooled(values, make, |member| match member {
            RawMember::Average(words, _) => Some(words),
            _ => None,
        })
    }

    /// Returns what C code needs of the member for these values of the labels, which is in memory of a pool.
    fn get_pooled<M>(
        &'static self,
        values: &[&str],
        make: impl Fn() -> Result<RawMember>,
        words: impl FnOnce(&'static RawMember) -> Option<&'static M>,
    ) -> Option<Result<&'static M>> {
        match self.get(values, make)? {
            Ok(member) => words(member).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    fn get(
        &'static self,
        values: &[&str],
        make: impl Fn() -> Result<RawMember>,
    ) -> Option<Result<&'static RawMember>> {
        if values.len() != self.label_count() {
            return None;
        }
        let overflow = &const { [OVERFLOW; Self::MAX_LABELS] }[..values.len()];
        let make = |values: &[&str]| Ok((values.iter().map(|&value| Box::from(value)).collect(), make()?));
        let listed = |entry: &'static Entry<Box<[Box<str>]>, RawMember>| {
            entry.list(&entry.member, |values| self.describe(values));
            &entry.member
        };
        Some(self.members.get(values, overflow, make).map(listed))
    }

    fn describe(&self, values: &[Box<str>]) -> Description {
        let names = self.description.labels().map(|(name, _)| name.to_owned());
        names.zip(values).fold(self.description.without_labels(), |made, (name, value)| {
            made.label(name, value.to_string())
        })
    }
}

/// Returns the items of the members of families of averages.
fn average_schema() -> Result<&'static Schema> {
    static SCHEMA: OnceBox<Schema> = OnceBox::new();
    match SCHEMA.get() {
        Some(schema) => Ok(schema),
        None => {
            let items = [ItemSpec::new("count"), ItemSpec::new("sum")];
            Schema::new(items, &[&[0, 1]]).map(|schema| SCHEMA.get_or(schema))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;
    use std::sync::OnceLock;

    const COUNTER: FamilyKind = FamilyKind::Static(StaticKind::Counter);

    fn intern(
        name: &'static str,
        labels: &[&str],
        limit: usize,
        kind: FamilyKind,
    ) -> Result<&'static RawFamily> {
        RawFamily::intern(
            Description::new(name),
            labels.iter().map(|&label| label.into()).collect(),
            limit,
            kind,
        )
    }

    #[test]
    fn equal_definitions_are_one_family() {
        let family = intern("one", &["a", "b"], 5, COUNTER).expect("a family");
        let is_same = |name, labels: &[&str], limit, kind| {
            std::ptr::eq(family, intern(name, labels, limit, kind).expect("a family"))
        };
        assert!(is_same("one", &["a", "b"], 5, COUNTER));
        assert!(!is_same("two", &["a", "b"], 5, COUNTER));
        assert!(!is_same("one", &["b", "a"], 5, COUNTER));
        assert!(!is_same("one", &["a", "b"], 6, COUNTER));
        assert!(!is_same("one", &["a", "b"], 5, FamilyKind::Static(StaticKind::Gauge)));
    }

    #[test]
    fn definitions_that_exporters_would_not_take_are_refused() {
        let histograms = FamilyKind::Histogram { max: 100, error: 0.1 };
        let many = ["a"; RawFamily::MAX_LABELS + 1];
        for (name, labels, limit, kind) in [
            ("a b", &["a"][..], 5, COUNTER),
            ("x", &["a:b"], 5, COUNTER),
            ("x", &["__name__"], 5, COUNTER),
            ("x", &["a", "a"], 5, COUNTER),
            ("x", &[], 5, COUNTER),
            ("x", &many, 5, COUNTER),
            ("x", &["a"], 0, COUNTER),
            ("x", &["a"], LARGEST_LIMIT + 1, COUNTER),
            ("x", &["le"], 5, histograms),
            ("x", &["quantile"], 5, FamilyKind::Average),
        ] {
            let refused = intern(name, labels, limit, kind);
            assert!(
                matches!(refused, Err(Error::BadName(_) | Error::BadSetting(_))),
                "{name} {labels:?} {limit} {kind:?}"
            );
        }
        assert!(intern("x", &["le"], 5, COUNTER).is_ok());
    }

    #[test]
    fn look_ups_of_another_kind_or_number_of_values_find_nothing() {
        let family = intern("refusing", &["a", "b"], 5, COUNTER).expect("a family");
        assert!(family.get_static(&["1"], StaticKind::Counter).is_none());
        assert!(family.get_static(&["1"; 40], StaticKind::Counter).is_none());
        assert!(family.get_static(&["1", "2"], StaticKind::Max).is_none());
        let member = family.get_static(&["1", "2"], StaticKind::Counter).expect("a member");
        member.add(3);
        assert_eq!(family.get_static(&["1", "2"], StaticKind::Counter).map(RawStatic::read), Some(3));
    }

    #[test]
    fn a_floating_point_gauge_is_found_by_its_values() {
        let family = intern("quantities", &["of"], 2, FamilyKind::FloatGauge).expect("a family");
        // The feature `uniprocessor` has no global pool where there are several CPUs. Static, as members stay: leak
        // checkers do not see references in mapped memory.
        static POOL: OnceLock<Pool> = OnceLock::new();
        let pool = POOL.get_or_init(|| {
            let one = Topology::synthetic(1).build().expect("topology");
            Pool::builder().topology(one).build().expect("a pool")
        });
        let gauge =
            |value| family.get_float_gauge(&[value], pool).expect("of this kind").expect("memory").get();
        gauge("a").add(1.5);
        gauge("a").add(-4.0);
        gauge("b").set(7.0);
        gauge("c").add(0.25);
        assert_eq!((gauge("a").read(), gauge("b").read(), gauge(OVERFLOW).read()), (-2.5, 7.0, 0.25));
        assert!(family.get_average(&["a"], pool).is_none() && family.get_histogram(&["a"], pool).is_none());
        assert!(family.get_float_gauge(&["a", "b"], pool).is_none());
    }

    #[test]
    fn values_beyond_the_limit_are_counted_by_the_overflow_member() {
        let family = intern("bounded", &["of"], 2, FamilyKind::Static(StaticKind::Min)).expect("a family");
        let member = |value| family.get_static(&[value], StaticKind::Min).expect("a member");
        member("a").observe(StaticKind::Min, 5);
        member("b").observe(StaticKind::Min, 4);
        member("c").observe(StaticKind::Min, 3);
        assert!(std::ptr::eq(member("c"), member(OVERFLOW)) && std::ptr::eq(member("d"), member(OVERFLOW)));
        let mut seen = Vec::new();
        crate::registry::Registry::global().visit(|sample| {
            if sample.description.name() == "bounded" {
                let labels: Vec<String> =
                    sample.description.labels().map(|(_, value)| value.to_owned()).collect();
                seen.push((labels.concat(), sample.value.clone()));
            }
        });
        seen.sort_by(|(a, _), (b, _)| a.cmp(b));
        let expected = [("a", 5), ("b", 4), (OVERFLOW, 3)];
        assert_eq!(seen, expected.map(|(label, value)| (label.to_owned(), Value::Min(value))));
    }
}
