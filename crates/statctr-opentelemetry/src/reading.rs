//! Readings that the callbacks of one collection share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The last reading of statistics (an average, groups or a registry) that several OpenTelemetry instruments export.
///
/// A collection calls each callback once, in the order of their numbers, and does not say where it begins. The callback
/// of the lowest number that was ever called is therefore the first one of each collection, as views drop instruments for
/// all readers: it reads anew, and the callbacks behind it get what was read last. A reading is thus never older than the
/// collection that exports it, whatever other readers collect at the same time.
pub(crate) struct SharedReading<V>(Mutex<Reading<V>>);

struct Reading<V> {
    values: V,
    /// The lowest number of a callback that was called so far.
    first: usize,
    /// The number of callbacks.
    callbacks: usize,
}

impl<V> SharedReading<V> {
    /// Creates a reading that `callbacks` callbacks of OpenTelemetry instruments share; none of them gets the first
    /// `values`, as the first callback of a collection reads anew.
    pub(crate) fn new(values: V, callbacks: usize) -> SharedReading<V> {
        SharedReading(Mutex::new(Reading { values, first: usize::MAX, callbacks }))
    }

    /// Adds a callback of another OpenTelemetry instrument to those that share the reading, and returns its number.
    pub(crate) fn add_callback(&self) -> usize {
        let callbacks = &mut self.lock().callbacks;
        *callbacks += 1;
        *callbacks - 1
    }

    /// Passes the values that the present collection (one export of all OpenTelemetry instruments) has read to
    /// `observe`, for the callback of this number; the first callback of a collection replaces them by `read`.
    pub(crate) fn with<T>(
        &self,
        callback: usize,
        read: impl FnOnce(&mut V),
        observe: impl FnOnce(&V) -> T,
    ) -> T {
        let mut reading = self.lock();
        if callback <= reading.first {
            reading.first = callback;
            read(&mut reading.values);
        }
        observe(&reading.values)
    }

    fn lock(&self) -> MutexGuard<'_, Reading<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls back each of these, and returns the number of the reading that it got.
    fn collect(reading: &SharedReading<u32>, callbacks: &[usize]) -> Vec<u32> {
        let get = |&callback| reading.with(callback, |number| *number += 1, |number| *number);
        callbacks.iter().map(get).collect()
    }

    #[test]
    fn callbacks_of_one_collection_get_one_reading_and_of_the_next_another() {
        let reading = SharedReading::new(0, 3);
        assert_eq!(collect(&reading, &[0, 1, 2]), [1, 1, 1]);
        assert_eq!(collect(&reading, &[0, 1, 2]), [2, 2, 2]);
        // an instrument that a view drops has no callback
        let reading = SharedReading::new(0, 3);
        assert_eq!(collect(&reading, &[1, 2]), [1, 1]);
        assert_eq!(collect(&reading, &[1, 2]), [2, 2]);
    }

    #[test]
    fn collections_at_the_same_time_leave_no_callback_an_old_reading() {
        let reading = SharedReading::new(0, 2);
        // of two readers in turn
        assert_eq!(collect(&reading, &[0, 0, 1, 1]), [1, 2, 2, 2]);
        assert_eq!(collect(&reading, &[0, 1]), [3, 3]);
        assert_eq!(collect(&reading, &[0, 1]), [4, 4]);
    }

    #[test]
    fn a_callback_that_is_added_gets_nothing_that_was_read_before() {
        let reading = SharedReading::new(0, 1);
        assert_eq!(collect(&reading, &[0]), [1]);
        let added = reading.add_callback();
        assert_eq!(collect(&reading, &[0, added]), [2, 2]);
        let behind = reading.add_callback();
        assert_eq!(collect(&reading, &[0, added, behind]), [3, 3, 3]);
    }
}
