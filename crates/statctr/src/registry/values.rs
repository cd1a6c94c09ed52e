//! All values of a registry at one time: [`RegistryValues`].

use super::{Registry, Sample, StaticKey};
use crate::description::Description;
use crate::value::{SampleItem, Value};
use std::sync::Arc;

/// The source of a value: one registration, or all statics that are exported as one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Registered(u64),
    Statics(StaticKey),
}

/// The position of a value within its source.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ItemName {
    Only,
    Index(usize),
    Named { name: String, unit: String, help: String },
}

impl ItemName {
    fn of(item: SampleItem<'_>) -> ItemName {
        match item {
            SampleItem::Only => ItemName::Only,
            SampleItem::Index(index) => ItemName::Index(index),
            SampleItem::Named { name, unit, help } => {
                ItemName::Named { name: name.into(), unit: unit.into(), help: help.into() }
            }
        }
    }

    fn item(&self) -> SampleItem<'_> {
        match self {
            ItemName::Only => SampleItem::Only,
            ItemName::Index(index) => SampleItem::Index(*index),
            ItemName::Named { name, unit, help } => SampleItem::Named { name, unit, help },
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Reading {
    origin: Origin,
    /// The number of values of this source in front of it.
    index: usize,
    description: Arc<Description>,
    item: ItemName,
    value: Value,
    exported: Exported,
}

/// The value under which a reading is exported.
#[derive(Debug, Clone, PartialEq)]
enum Exported {
    /// That of its source alone.
    Own,
    /// That of its source and of the statics with its name, labels and kind.
    Merged(Value),
    /// None: that of statics that are part of another one.
    Elsewhere,
}

/// The values of all statistics, and arrays and groups of counters, in a [`Registry`] at one reading.
///
/// ```
/// use statctr::{Counter, Description, Registry, Value};
/// use std::sync::Arc;
///
/// let registry = Registry::new();
/// let requests = Arc::new(Counter::new(40)?);
/// registry.register(Description::new("requests"), &requests)?;
/// let before = registry.snapshot();
/// requests.add(2);
/// let change = registry.snapshot().since(&before)?;
/// for sample in change.delta().iter() {
///     assert_eq!((sample.description.name(), sample.value), ("requests", &Value::Counter(2)));
/// }
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// The difference of two readings contains the values of the later one: a counter registered in between contributes its
/// whole value, one that is gone contributes nothing. Extremes have no difference: a change has the later value, and its
/// rate is NaN. The rate of an average and of a histogram is that of the number of its values.
#[derive(Debug, Clone, PartialEq)]
pub struct RegistryValues(
    // by origin and index, in the order of the registry
    Vec<Reading>,
);

impl RegistryValues {
    /// Returns the number of values that were read from the registry of statistics: one for each counter, array element
    /// and group item.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns `true` if no values were read from the registry of statistics, as nothing was registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an iterator over the values that were read from the registry of statistics, with their descriptions, in
    /// the order of [`Registry::visit`].
    pub fn iter(&self) -> impl Iterator<Item = Sample<'_>> {
        self.0.iter().filter_map(|reading| {
            let value = match &reading.exported {
                Exported::Own => &reading.value,
                Exported::Merged(value) => value,
                Exported::Elsewhere => return None,
            };
            Some(Sample { description: &reading.description, item: reading.item.item(), value })
        })
    }

    /// Creates the values of these readings, of which those of statics are exported as part of what is registered under
    /// their name, labels and kind. They are kept apart, as either may be gone in a later reading.
    fn of(mut readings: Vec<Reading>) -> RegistryValues {
        let first_static =
            readings.partition_point(|reading| matches!(reading.origin, Origin::Registered(_)));
        let (registered, statics) = readings.split_at_mut(first_static);
        if statics.is_empty() {
            return RegistryValues(readings);
        }
        for reading in registered.iter_mut().filter(|reading| reading.item == ItemName::Only) {
            let origin = Origin::Statics(StaticKey::of(&reading.description, &reading.value));
            let Ok(place) = statics.binary_search_by(|of| of.origin.cmp(&origin)) else { continue };
            let mut value = reading.value.clone();
            if statics[place].exported == Exported::Own && value.merge(&statics[place].value) {
                reading.exported = Exported::Merged(value);
                statics[place].exported = Exported::Elsewhere;
            }
        }
        RegistryValues(readings)
    }

    pub(crate) fn changes_since(&self, earlier: &RegistryValues) -> RegistryValues {
        let reading_before = |now: &Reading| {
            let order = |other: &Reading| (&other.origin, other.index).cmp(&(&now.origin, now.index));
            earlier.0.binary_search_by(order).ok().map(|found| &earlier.0[found].value)
        };
        let change = |now: &Reading| {
            let value =
                reading_before(now).map_or_else(|| now.value.clone(), |before| now.value.since(before));
            let description = Arc::clone(&now.description);
            let (origin, index, item) = (now.origin.clone(), now.index, now.item.clone());
            Reading { origin, index, description, item, value, exported: Exported::Own }
        };
        RegistryValues::of(self.0.iter().map(change).collect())
    }
}

impl Registry {
    /// Reads the values, each summed over the CPUs, of all registered statistics, and arrays and groups of counters.
    pub(crate) fn read(&self) -> RegistryValues {
        let mut readings = Vec::new();
        for (number, description, source) in self.living().iter() {
            let mut index = 0;
            source.values(&mut |item, value| {
                let (origin, description) = (Origin::Registered(*number), Arc::clone(description));
                let item = ItemName::of(item);
                readings.push(Reading { origin, index, description, item, value, exported: Exported::Own });
                index += 1;
            });
        }
        for (key, description, value) in self.living_statics() {
            let (origin, description) = (Origin::Statics(key), Arc::new(description.into_owned()));
            let (item, exported) = (ItemName::Only, Exported::Own);
            readings.push(Reading { origin, index: 0, description, item, value, exported });
        }
        RegistryValues::of(readings)
    }
}
