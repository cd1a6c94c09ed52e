//! Readings that the callbacks of one collection share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The last reading of statistics (an average, groups or a registry) that several OpenTelemetry instruments export,
/// with a mark for each of the instruments' callbacks that has had it.
///
/// A collection calls each callback once, always in the same order, and does not say where it begins. A callback that
/// asks for a reading which it has had is therefore the first one of another collection: it reads anew, and the
/// callbacks behind it get the same reading.
pub(crate) struct SharedReading<V>(Mutex<Reading<V>>);

struct Reading<V> {
    values: V,
    /// `true` for each callback that has had the values.
    served: Vec<bool>,
}

impl<V> Reading<V> {
    /// Reads the values anew, for all callbacks.
    fn renew(&mut self, read: impl FnOnce(&mut V)) {
        read(&mut self.values);
        self.served.fill(false);
    }

    /// Passes the values to `observe`, for the callback of this number.
    fn serve<T>(&mut self, callback: usize, observe: impl FnOnce(&V) -> T) -> T {
        self.served[callback] = true;
        observe(&self.values)
    }
}

impl<V> SharedReading<V> {
    /// Creates a reading that `callbacks` callbacks of OpenTelemetry instruments share; none of them gets the first
    /// `values`, as the first callback of a collection reads anew.
    pub(crate) fn new(values: V, callbacks: usize) -> SharedReading<V> {
        SharedReading(Mutex::new(Reading { values, served: vec![true; callbacks] }))
    }

    /// Adds a callback of another OpenTelemetry instrument to those that share the reading, and returns its number; it
    /// gets no values that were read before.
    pub(crate) fn add_callback(&self) -> usize {
        let served = &mut self.lock().served;
        served.push(true);
        served.len() - 1
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
        if reading.served[callback] {
            reading.renew(read);
        }
        reading.serve(callback, observe)
    }

    /// Passes what `read` reads anew to `observe`, for the callback of this number, which is always the first one of a
    /// collection.
    ///
    /// With several readers that collect at one time, [`with`](Self::with) may give a callback what was read for another
    /// reader before this one's collection began.
    pub(crate) fn renew<T>(
        &self,
        callback: usize,
        read: impl FnOnce(&mut V),
        observe: impl FnOnce(&V) -> T,
    ) -> T {
        let mut reading = self.lock();
        reading.renew(read);
        reading.serve(callback, observe)
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
    fn a_callback_that_begins_a_collection_reads_anew_whoever_had_what() {
        let reading = SharedReading::new(0, 2);
        let begin = || reading.renew(0, |number| *number += 1, |number| *number);
        assert_eq!((begin(), collect(&reading, &[1])), (1, vec![1]));
        // of the second callback, for another reader
        assert_eq!(collect(&reading, &[1]), [2]);
        assert_eq!((begin(), collect(&reading, &[1])), (3, vec![3]));
    }

    #[test]
    fn a_callback_that_is_added_gets_nothing_that_was_read_before() {
        let reading = SharedReading::new(0, 1);
        assert_eq!(collect(&reading, &[0]), [1]);
        let added = reading.add_callback();
        assert_eq!(collect(&reading, &[added, 0]), [2, 2]);
        let behind = reading.add_callback();
        assert_eq!(collect(&reading, &[added, 0, behind]), [3, 3, 3]);
    }
}
