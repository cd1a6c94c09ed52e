//! Statistics that are statics of the program: [`StaticCounter`], [`StaticGauge`], [`StaticMax`] and [`StaticMin`], and
//! families by labels of every kind: [`StaticFamily`].
//!
//! A static of another kind would need cache lines of a pool for its updates, and pools take locks: its first update
//! could be in no signal handler. Members of families are made by look-ups, which are not for handlers anyway, and
//! other objects are named by [`Registry::register_static`](crate::Registry::register_static).

mod counter;
mod extremes;
mod family;
mod gauge;
mod label_table;

pub use counter::StaticCounter;
pub use extremes::{StaticMax, StaticMin};
pub use family::{FamilyMember, StaticFamily};
pub use gauge::StaticGauge;
pub(crate) use label_table::{Entry, LARGEST_LIMIT, LabelTable, MAX_VALUE_BYTES, OVERFLOW};

use crate::description::Description;
use crate::memory::StaticWord;
use crate::sys::{Link, Linked, StaticList};
use crate::value::{Kind, SampleItem, Source, Value};
use std::borrow::Cow;

/// A statistic that is a `static` of the program: the word with its value, its kind and description, and the link by
/// which it is in the list of such statistics that the program's registry exports.
#[repr(C)]
pub(crate) struct NamedWord {
    word: StaticWord,
    link: Link<NamedWord>,
    kind: Kind,
    description: Description,
}

impl Linked for NamedWord {
    fn link(&self) -> &Link<NamedWord> {
        &self.link
    }
}

/// The statics in the program's registry, the newest first.
static LISTED: StaticList<NamedWord> = StaticList::new();

impl NamedWord {
    const fn new(kind: Kind, description: Description) -> NamedWord {
        NamedWord { word: StaticWord::new(), link: Link::new(), kind, description }
    }

    /// Adds 1 to a static sum.
    #[inline(always)]
    fn inc(&'static self) {
        if !self.word.try_inc() {
            self.add_slow(1);
        }
    }

    /// Subtracts 1 from a static sum.
    #[inline(always)]
    fn dec(&'static self) {
        if !self.word.try_dec() {
            self.add_slow(u64::MAX);
        }
    }

    /// Adds `value` to a static sum.
    #[inline(always)]
    fn add(&'static self, value: u64) {
        if !self.word.try_add(value) {
            self.add_slow(value);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_slow(&'static self, value: u64) {
        self.list();
        self.word.add_slow(value);
    }

    /// Puts the static into the program's registry. Async-signal-safe.
    #[inline]
    fn list(&'static self) {
        LISTED.add(self);
    }

    /// Returns the value of a static extreme as it is stored: of a minimum the complement.
    fn extreme(&self) -> u64 {
        self.word.early()
    }

    fn value(&self) -> Value {
        match self.kind {
            Kind::Gauge => Value::Gauge(self.word.read().cast_signed()),
            Kind::Max => Value::Max(self.extreme()),
            Kind::Min => Value::Min(!self.extreme()),
            _ => Value::Counter(self.word.read()),
        }
    }
}

/// A member of a family that does not list itself, as the program's registry has it.
struct ListedObject {
    link: Link<ListedObject>,
    description: Description,
    source: &'static dyn Source,
}

impl Linked for ListedObject {
    fn link(&self) -> &Link<ListedObject> {
        &self.link
    }
}

static OBJECTS: StaticList<ListedObject> = StaticList::new();

/// Returns the descriptions and values of the statistics in the program's registry that are statics of the program or
/// members of a family (statistics by the values of labels).
pub(crate) fn listed() -> impl Iterator<Item = (Cow<'static, Description>, Value)> {
    let words = LISTED.iter().map(|word| (Cow::Borrowed(&word.description), word.value()));
    let objects = OBJECTS.iter().filter_map(|object| {
        let mut only = None;
        object.source.values(&mut |_: SampleItem<'_>, value| only = Some(value));
        Some((Cow::Borrowed(&object.description), only?))
    });
    words.chain(objects)
}
