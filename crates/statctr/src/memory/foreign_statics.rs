//! Static counters of C programs: the struct that `STATCTR_DEFINE` makes, and the list of those in the
//! program's registry.

use super::statics::StaticWord;
use crate::rseq::HandleTag;
use crate::sys::{Link, Linked, StaticList};
use std::ffi::{CStr, c_char};

/// The kind of a statistic that is a static variable of a C program: counter, gauge, maximum or minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaticKind {
    /// A sum modulo 2⁶⁴.
    Counter,
    /// A sum that is read as a signed number.
    Gauge,
    /// The largest value observed.
    Max,
    /// The smallest value observed.
    Min,
}

impl StaticKind {
    /// Converts between an observed value and the word that is raised for it: of a minimum the complement.
    fn stored(self, value: u64) -> u64 {
        if self == StaticKind::Min { !value } else { value }
    }
}

/// A statistic that is a static variable of a C program (`statctr_static_t`), or a member of a C program's family
/// (statistics of one name, by the values of labels): all zeros but for its texts before the first use.
#[derive(Debug)]
#[repr(C)]
pub struct RawStatic {
    word: StaticWord,
    link: Link<RawStatic>,
    /// The name; null for a statistic that does not list itself.
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

/// The C program's statics that are listed, by kind: a static is in one of the lists, by its first use.
static LISTED: [StaticList<RawStatic>; 4] = [const { StaticList::new() }; 4];

impl RawStatic {
    /// Creates a statistic without a name of its own: a member of a C program's family (statistics of one name, by the
    /// values of labels), which has the name.
    pub(crate) fn unnamed() -> RawStatic {
        let none = std::ptr::null();
        RawStatic { word: StaticWord::new(), link: Link::new(), name: none, help: none, unit: none }
    }

    /// Puts the C static into the program's registry as a statistic of this kind, unless it has no name, or is in it
    /// already. Async-signal-safe.
    pub fn list(&'static self, kind: StaticKind) {
        if !self.name.is_null() {
            LISTED[kind as usize].add(self);
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
            self.list(StaticKind::Counter);
            self.word.add_slow(value);
        }
    }

    /// Adds `value` atomically to the static C counter's shared word, for callers whose code cannot use per-CPU words.
    /// Async-signal-safe.
    pub fn add_atomically(&'static self, value: u64) {
        self.list(StaticKind::Counter);
        self.word.add_early(value);
    }

    /// Observes a value in the static C maximum or minimum, as `kind` says: keeps it if it is the largest (smallest) so
    /// far. Async-signal-safe.
    pub fn observe(&'static self, kind: StaticKind, value: u64) {
        self.list(kind);
        self.word.raise(kind.stored(value));
    }

    /// Returns the largest or smallest value, as `kind` says, that the static C extreme observed since the last call,
    /// and begins anew. Async-signal-safe.
    pub fn take(&self, kind: StaticKind) -> u64 {
        kind.stored(self.word.take_early())
    }

    /// Returns the value of the C static as a statistic of this kind, a gauge's as the bits of its signed number.
    /// Async-signal-safe.
    #[must_use]
    pub fn read_as(&self, kind: StaticKind) -> u64 {
        match kind {
            StaticKind::Counter | StaticKind::Gauge => self.word.read(),
            StaticKind::Max | StaticKind::Min => kind.stored(self.word.early()),
        }
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

    /// Takes the C static out of the program's registry, before its code is unloaded. Its per-CPU words are not freed.
    ///
    /// # Safety
    /// The lock of the program's registry is held ([`Registry::while_locked`](crate::Registry)); nobody
    /// uses the counter meanwhile or afterwards.
    pub unsafe fn forget(&self) {
        for list in &LISTED {
            // SAFETY: walks and removals are under that lock; nobody adds it, by the caller's promise.
            unsafe { list.remove(self) };
        }
    }
}

/// Returns each C static in the program's registry as ([name, help text, unit], kind, value), the value as
/// [`RawStatic::read_as`] has it. The registry's lock has to be held.
pub(crate) fn listed_foreign_statics() -> impl Iterator<Item = ([String; 3], StaticKind, u64)> {
    use StaticKind::{Counter, Gauge, Max, Min};
    [Counter, Gauge, Max, Min].into_iter().flat_map(|kind| {
        LISTED[kind as usize].iter().map(move |found| (found.texts(), kind, found.read_as(kind)))
    })
}
