//! Counters and gauges that are statics of a C program, and the counters of the program's registry.
//!
//! Each function is described in `include/statctr/static.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says, a string ends, and statics live
//! until they are forgotten.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::counter::StatctrHandle;
use crate::guard::{errno, guard, guard_value};
use statctr::raw::{self, RawStatic, StaticKind};
use statctr::{Description, Registry, SampleItem, StaticCounter, Unit, Value};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A C counter that is a static variable and needs no initialisation: `statctr_static_t`.
pub type StatctrStatic = RawStatic;

/// The name, help text, unit of measurement and labels under which C code registers a counter: `statctr_desc_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StatctrDesc {
    /// The name: letters, digits, `_` and `:`.
    pub name: *const c_char,
    /// The help text, or NULL.
    pub help: *const c_char,
    /// The unit, or NULL.
    pub unit: *const c_char,
    /// NULL, or names and values of labels in turn, and a NULL behind the last one.
    pub labels: *const *const c_char,
}

/// One value in the program's registry of statistics with its description, as passed to the callback of
/// `statctr_visit()`: `statctr_sample_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StatctrSample {
    /// The description of the counter; its strings are valid during the call.
    pub desc: StatctrDesc,
    /// The name of a group's item, else NULL.
    pub item: *const c_char,
    /// The index of the counter in an array, else 0.
    pub index: u64,
    /// The value of the counter.
    pub value: u64,
}

/// C callback that `statctr_visit()` calls with the value of each counter in the program's registry of statistics; a
/// result other than 0 ends the visit: `statctr_visit_fn`.
pub type StatctrVisitFn = Option<unsafe extern "C" fn(*const StatctrSample, *mut c_void) -> c_int>;

/// Returns the static behind the pointer.
unsafe fn there(counter: *const StatctrStatic) -> Result<&'static StatctrStatic, c_int> {
    // SAFETY: NULL or a static, by the module's contract.
    unsafe { counter.as_ref() }.ok_or(libc::EINVAL)
}

/// Adds a value to a static C counter; returns 0, or `-EINVAL` for NULL: `statctr_static_add()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_add(counter: *mut StatctrStatic, value: u64) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_static_slow_add(counter, value, crate::ABI) }
}

/// Subtracts a value from a static C counter; returns 0, or `-EINVAL` for NULL: `statctr_static_sub()` of
/// `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_sub(counter: *mut StatctrStatic, value: u64) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_static_add(counter, value.wrapping_neg()) }
}

/// Adds 1 to a static C counter; returns 0, or `-EINVAL` for NULL: `statctr_static_inc()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_inc(counter: *mut StatctrStatic) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_static_add(counter, 1) }
}

/// Subtracts 1 from a static C counter; returns 0, or `-EINVAL` for NULL: `statctr_static_dec()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_dec(counter: *mut StatctrStatic) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_static_add(counter, u64::MAX) }
}

/// The table, mapping CPUs to their words, that inline updates of static C counters use; NULL until the first update
/// has stored it: `statctr_static_table_` of `statctr/static.h`. The slow path stores it, so that a program's copy
/// relocation of it is stored to, too.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static statctr_static_table_: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Adds a value to a static C counter: the slow path of the header's inline rseq critical section, taken if that did
/// not commit. Returns 0, or `-EINVAL` for NULL. Adds atomically if the caller was compiled with another ABI number; as
/// the table is then never stored for it, such code always comes here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_slow_add(
    counter: *mut StatctrStatic,
    value: u64,
    abi: c_uint,
) -> c_int {
    // SAFETY: the module's contract.
    match unsafe { there(counter) } {
        Ok(counter) if abi == crate::ABI => {
            counter.add(value);
            if statctr_static_table_.load(Ordering::Relaxed).is_null() {
                statctr_static_table_.store(raw::static_table(), Ordering::Release);
            }
        }
        Ok(counter) => counter.add_atomically(value),
        Err(error) => return -error,
    }
    0
}

/// Returns the value of a static C counter, summed over the CPUs; 0 for NULL: `statctr_static_read()` of
/// `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_read(counter: *const StatctrStatic) -> u64 {
    // SAFETY: the module's contract.
    guard_value(0, || unsafe { there(counter) }.ok().map(StatctrStatic::read))
}

/// Puts a static C counter into the program's registry of statistics; returns 0, or `-EINVAL` for NULL:
/// `statctr_static_list()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_list(counter: *mut StatctrStatic) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { there(counter) }.map(|counter| counter.list(StaticKind::Counter)))
}

/// Takes a static C counter out of the program's registry of statistics, before `dlclose()` unmaps it; returns 0, or
/// `-EINVAL` for NULL: `statctr_static_forget()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_forget(counter: *mut StatctrStatic) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let counter = unsafe { there(counter)? };
        // SAFETY: under the registry's lock; nobody uses it any more, by the header's contract.
        Registry::global().while_locked(|| unsafe { counter.forget() });
        Ok(())
    })
}

/// Returns how a static C counter is updated (by rseq or atomically), a `statctr_mode_value`: `statctr_static_mode()`
/// of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_mode(counter: *const StatctrStatic) -> c_int {
    // SAFETY: the module's contract.
    crate::process::mode_of(|| unsafe { there(counter) }.map(StatctrStatic::mode))
}

/// A C gauge that is a static variable and needs no initialisation: `statctr_static_gauge_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrStaticGauge {
    word: StatctrStatic,
}

/// Returns the word of the static gauge behind the pointer.
unsafe fn gauge_there(gauge: *const StatctrStaticGauge) -> Result<&'static StatctrStatic, c_int> {
    // SAFETY: NULL or a static, by the module's contract.
    unsafe { gauge.as_ref() }.map(|gauge| &gauge.word).ok_or(libc::EINVAL)
}

/// Puts a static C gauge into the program's registry of statistics; returns 0, or `-EINVAL` for NULL:
/// `statctr_static_gauge_list()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_gauge_list(gauge: *mut StatctrStaticGauge) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { gauge_there(gauge) }.map(|gauge| gauge.list(StaticKind::Gauge)))
}

/// Sets the value of a static C gauge; returns 0, or `-EINVAL` for NULL: `statctr_static_gauge_set()` of
/// `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_gauge_set(gauge: *mut StatctrStaticGauge, value: i64) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let gauge = unsafe { gauge_there(gauge)? };
        gauge.list(StaticKind::Gauge);
        Registry::global().while_locked(|| gauge.set(value.cast_unsigned()));
        Ok(())
    })
}

/// Returns the value of a static C gauge, summed over the CPUs; 0 for NULL: `statctr_static_gauge_read()` of
/// `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_gauge_read(gauge: *const StatctrStaticGauge) -> i64 {
    // SAFETY: the module's contract.
    guard_value(0, || unsafe { gauge_there(gauge) }.ok().map(|gauge| gauge.read().cast_signed()))
}

/// Registers threads for rseq, and tests whether the kernel aborts rseq critical sections, where that is necessary and
/// cannot be left to a static counter's first update; returns 0: `statctr_prepare()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_prepare() -> c_int {
    guard(|| {
        StaticCounter::prepare();
        Ok(())
    })
}

/// Returns a copy of a C string; NULL is an empty one.
pub(crate) unsafe fn string(text: *const c_char) -> Result<String, c_int> {
    if text.is_null() {
        return Ok(String::new());
    }
    // SAFETY: not NULL, so a string by the module's contract.
    unsafe { CStr::from_ptr(text) }.to_str().map(str::to_owned).map_err(|_| libc::EINVAL)
}

/// The most labels that a description may have.
const MOST_LABELS: usize = 64;

/// Returns a copy of the description (name, help text, unit of measurement, labels) that C code passes to register a
/// statistic; `Err(EINVAL)` for NULL and for one that is malformed.
pub(crate) unsafe fn description(desc: *const StatctrDesc) -> Result<Description, c_int> {
    // SAFETY: the module's contract, here and below.
    unsafe {
        let desc = desc.as_ref().ok_or(libc::EINVAL)?;
        let unit = Unit::new(string(desc.unit)?);
        let mut made = Description::new(string(desc.name)?).help(string(desc.help)?).unit(unit);
        if desc.labels.is_null() {
            return Ok(made);
        }
        for label in 0..=MOST_LABELS {
            let name = *desc.labels.add(2 * label);
            if name.is_null() {
                return Ok(made);
            }
            let value = *desc.labels.add(2 * label + 1);
            if value.is_null() || label == MOST_LABELS {
                break;
            }
            made = made.label(string(name)?, string(value)?);
        }
        Err(libc::EINVAL)
    }
}

/// Registers a C counter in the program's registry of statistics under a description, which is copied; returns 0 or
/// `-errno`: `statctr_register()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_register(counter: *const StatctrHandle, desc: *const StatctrDesc) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let (handle, description) = unsafe { (crate::counter::live(counter)?, description(desc)?) };
        // SAFETY: the header's contract: unregistered before it is cleaned up.
        let registered = unsafe { handle.register(description, false) };
        registered.ok_or(libc::EEXIST)?.map_err(|error| errno(&error))
    })
}

/// Takes a C counter out of the program's registry of statistics; no visit reads it afterwards; returns 0, or `-ENOENT`
/// if it is not registered: `statctr_unregister()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_unregister(counter: *const StatctrHandle) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let handle = unsafe { crate::counter::live(counter)? };
        if handle.unregister() { Ok(()) } else { Err(libc::ENOENT) }
    })
}

/// Calls a C function with the value of each counter in the program's registry of statistics; returns 0, or the first
/// nonzero result of that function, which ends the visit: `statctr_visit()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_visit(visit: StatctrVisitFn, context: *mut c_void) -> c_int {
    let mut stopped = 0;
    let result = guard(|| {
        let visit = visit.ok_or(libc::EINVAL)?;
        Registry::global().visit(|sample| {
            // programs that know of no other kind take every value for a counter's
            let Value::Counter(value) = *sample.value else { return };
            if stopped == 0 {
                // SAFETY: the header's contract for the function.
                stopped = unsafe { show(&sample, value, visit, context) };
            }
        });
        Ok(())
    });
    if result == 0 { stopped } else { result }
}

/// The C strings that a C callback gets with a value in the registry of statistics (name, help text, unit, labels, and
/// the name of a group's item), and the value's position in an array of counters.
pub(crate) struct Texts {
    desc: [CString; 3],
    /// Owns what the pointers lead to.
    _labels: Vec<CString>,
    pointers: Vec<*const c_char>,
    item: Option<CString>,
    index: u64,
}

impl Texts {
    pub(crate) fn of(sample: &statctr::Sample<'_>) -> Texts {
        let text = |text: &str| CString::new(text.replace('\0', "")).unwrap_or_default();
        let description = sample.description;
        let labels: Vec<CString> =
            description.labels().flat_map(|(name, value)| [text(name), text(value)]).collect();
        let mut pointers: Vec<*const c_char> = labels.iter().map(|label| label.as_ptr()).collect();
        pointers.push(std::ptr::null());
        let (item, index) = match sample.item {
            SampleItem::Named { name, .. } => (Some(text(name)), 0),
            SampleItem::Index(index) => (None, index as u64),
            _ => (None, 0),
        };
        let desc = [description.name(), description.help_text(), description.unit_name()].map(text);
        Texts { desc, _labels: labels, pointers, item, index }
    }

    /// Returns the description (name, help text, unit, labels) of a registered statistic for a C callback; its strings
    /// live as long as these texts.
    pub(crate) fn desc(&self) -> StatctrDesc {
        let [name, help, unit] = self.desc.each_ref().map(|text| text.as_ptr());
        StatctrDesc { name, help, unit, labels: self.pointers.as_ptr() }
    }

    /// Returns the name of the group's item (64-bit statistic) whose value a C callback gets; NULL if the value is of
    /// no group.
    pub(crate) fn item(&self) -> *const c_char {
        self.item.as_ref().map_or(std::ptr::null(), |item| item.as_ptr())
    }

    /// Returns the position, in its array of counters, of the value that a C callback gets; 0 if it is in no array.
    pub(crate) fn index(&self) -> u64 {
        self.index
    }
}

/// Hands a counter's sample to C.
unsafe fn show(
    sample: &statctr::Sample<'_>,
    value: u64,
    visit: unsafe extern "C" fn(*const StatctrSample, *mut c_void) -> c_int,
    context: *mut c_void,
) -> c_int {
    let texts = Texts::of(sample);
    let shown = StatctrSample { desc: texts.desc(), item: texts.item(), index: texts.index(), value };
    // SAFETY: the strings live until it returns.
    unsafe { visit(&shown, context) }
}
