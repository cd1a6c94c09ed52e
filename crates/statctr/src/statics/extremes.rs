//! Extremes that are statics: [`StaticMax`] and [`StaticMin`].

use super::NamedWord;
use crate::description::Description;
use crate::extremes::{Max, Min};
use crate::schema::Unit;
use crate::value::Kind;
use std::fmt;

/// A maximum that is a `static` of the program: usable before `main`, without initialisation, and known to exporters by
/// its name.
///
/// ```
/// use statctr::{StaticMax, Unit};
///
/// static SLOWEST: StaticMax = StaticMax::new("slowest", "the slowest request", Unit::NANOSECONDS);
///
/// SLOWEST.observe(1500);
/// SLOWEST.observe(900);
/// assert_eq!((SLOWEST.take(), SLOWEST.read()), (1500, StaticMax::IDENTITY));
/// ```
///
/// # One word
/// All CPUs share one word, which an observation loads, and writes only where its value goes beyond all others. Of n
/// values in random order some ln n do, so the word's cache line is in all CPUs' caches nearly all of the time. Values
/// that go up steadily, such as times of day, write it with each observation: a [`Max`] has words per CPU.
///
/// # Signals, forks
/// All functions are async-signal-safe, also in a first use, and take no memory. A forked child goes on from its
/// parent's value.
#[repr(C)]
pub struct StaticMax(NamedWord);

/// A minimum that is a `static` of the program: usable before `main`, without initialisation, and known to exporters by
/// its name.
///
/// A [`StaticMax`] of complements: cost, signals, and what taking means are the same.
///
/// ```
/// use statctr::{StaticMin, Unit};
///
/// static FASTEST: StaticMin = StaticMin::new("fastest", "the fastest request", Unit::NANOSECONDS);
///
/// FASTEST.observe(1500);
/// FASTEST.observe(900);
/// assert_eq!((FASTEST.take(), FASTEST.read()), (900, StaticMin::IDENTITY));
/// ```
#[repr(C)]
pub struct StaticMin(NamedWord);

macro_rules! static_extreme {
    ($Extreme:ident, $Kind:ident, $which:literal) => {
        impl $Extreme {
            /// The value where nothing was observed.
            pub const IDENTITY: u64 = $Kind::IDENTITY;

            #[doc = concat!("Creates a ", $which, " that is a `static` of the program, of this name (letters, digits,")]
            /// `_` and `:`, no digit first), with a help text and a unit of measurement for exporters.
            ///
            /// # Panics
            /// For a bad name, which in a static is an error of the compilation.
            #[must_use]
            pub const fn new(name: &'static str, help: &'static str, unit: Unit) -> $Extreme {
                $Extreme::described(Description::of_static(name, help, unit))
            }

            pub(super) const fn described(description: Description) -> $Extreme {
                $Extreme(NamedWord::new(Kind::$Kind, description))
            }

            /// Observes a value: two loads, and an atomic instruction where the value goes beyond all others. Never
            /// waits; async-signal-safe.
            #[inline]
            pub fn observe(&'static self, value: u64) {
                self.0.list();
                self.0.word.raise($Kind::stored(value));
            }

            #[doc = concat!("Returns the ", $which, " since it was last taken. Async-signal-safe.")]
            #[must_use]
            pub fn read(&self) -> u64 {
                $Kind::stored(self.0.extreme())
            }

            #[doc = concat!("Returns the ", $which, " since the last call, and begins anew.")]
            ///
            /// An observation that runs at the same time is in this value or in that of the next interval.
            /// Async-signal-safe.
            pub fn take(&'static self) -> u64 {
                $Kind::stored(self.0.word.take_early())
            }

            #[doc = concat!("Puts the ", $which, " into the program's registry, which its first use would do otherwise.")]
            pub fn list(&'static self) {
                self.0.list();
            }

            #[doc = concat!("Returns the name, help text, unit of measurement and labels of the ", $which, ".")]
            #[must_use]
            pub fn description(&self) -> &Description {
                &self.0.description
            }
        }

        impl fmt::Debug for $Extreme {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Extreme))
                    .field("name", &self.description().name())
                    .field("value", &self.read())
                    .finish_non_exhaustive()
            }
        }
    };
}

static_extreme!(StaticMax, Max, "maximum");
static_extreme!(StaticMin, Min, "minimum");
