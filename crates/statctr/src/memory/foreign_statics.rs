//! Static counters of C programs: the struct that `STATCTR_DEFINE` makes, and the list of those in the
//! program's registry.

use super::statics::StaticWord;
use crate::rseq::HandleTag;
use crate::sys::{Link, Linked, StaticList};
use std::ffi::{CStr, c_char};

/// A counter that is a static variable of a C program (`statctr_static_t`): all zeros but for its texts before the
/// first use.
#[derive(Debug)]
#[repr(C)]
pub struct RawStatic {
    word: StaticWord,
    link: Link<RawStatic>,
    /// The name; null for a counter that is in no registry.
    pub name: *const c_char,
    /// The help text, or null.
    pub help: *const c_char,
    /// The unit, or null.
    pub unit: *const c_char,
}

// SAFETY: atomics, and strings that nobody changes.
unsafe impl Send for RawStatic {}
// SAFETY: as above.
unsafe impl Sync for RawStatic {}

impl Linked for RawStatic {
    fn link(&self) -> &Link<RawStatic> {
        &self.link
    }
}

/// The C program's static counters that are listed.
static LISTED: StaticList<RawStatic> = StaticList::new();
/// The C program's static gauges that are listed: a static is in one of the two lists, by its first use.
static GAUGES: StaticList<RawStatic> = StaticList::new();

impl RawStatic {
    /// Puts the static C counter into the program's registry, unless it has no name, or is in it as a gauge.
    /// Async-signal-safe.
    pub fn list(&'static self) {
        if !self.name.is_null() {
            LISTED.add(self);
        }
    }

    /// Puts the static C counter into the program's registry as a gauge, unless it has no name, or is in it already.
    /// Async-signal-safe.
    pub fn list_as_gauge(&'static self) {
        if !self.name.is_null() {
            GAUGES.add(self);
        }
    }

    /// Sets the value of the static C counter. The lock of the program's registry is held
    /// ([`Registry::while_locked`](crate::Registry)), so that no two threads do it at the same time.
    pub fn set(&'static self, value: u64) {
        self.word.set_alone(value);
    }

    /// Adds `value` to the static C counter: the slow path of the C header's inline update. Async-signal-safe.
    #[inline]
    pub fn add(&'static self, value: u64) {
        if !self.word.try_add(value) {
            self.list();
            self.word.add_slow(value);
        }
    }

    /// Adds `value` atomically to the static C counter's shared word, for callers whose code cannot use per-CPU words.
    /// Async-signal-safe.
    pub fn add_atomically(&'static self, value: u64) {
        self.list();
        self.word.add_early(value);
    }

    /// Returns the static C counter's value, summed over the CPUs. Async-signal-safe.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.word.read()
    }

    /// Returns the tag that says how the static C counter is updated; `None` if it has no per-CPU words and its next
    /// update cannot get any.
    pub(crate) fn tag(&self) -> Option<HandleTag> {
        self.word.tag()
    }

    /// Returns the name, the help text and the unit.
    fn texts(&self) -> [String; 3] {
        [self.name, self.help, self.unit].map(|string| {
            // SAFETY: not null, so a string that lives as long as the counter.
            let text = (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) });
            text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
        })
    }

    /// Takes the static C counter out of the program's registry, before its code is unloaded. Its per-CPU words are not
    /// freed.
    ///
    /// # Safety
    /// The lock of the program's registry is held ([`Registry::while_locked`](crate::Registry)); nobody
    /// uses the counter meanwhile or afterwards.
    pub unsafe fn forget(&self) {
        // SAFETY: walks and removals are under that lock; nobody adds it, by the caller's promise.
        unsafe {
            LISTED.remove(self);
            GAUGES.remove(self);
        }
    }
}

/// Returns each static C counter in the program's registry as ([name, help text, unit], value). The registry's lock has
/// to be held.
pub(crate) fn listed_foreign_statics() -> impl Iterator<Item = ([String; 3], u64)> {
    LISTED.iter().map(|counter| (counter.texts(), counter.read()))
}

/// Returns each static C gauge in the program's registry as ([name, help text, unit], value). The registry's lock has to
/// be held.
pub(crate) fn listed_foreign_gauges() -> impl Iterator<Item = ([String; 3], i64)> {
    GAUGES.iter().map(|gauge| (gauge.texts(), gauge.read().cast_signed()))
}
