//! The units of a reservation, and the views of them that readers walk.
//!
//! *Fixed* units never move. *Movable* ones come one by one and go again when their CPU is drained:
//! ```text
//! views[generation mod 2]:   announced CPUs │ displacement of the residue, 0 where there is none
//! ```
//! A drain prepares the other view, in which the CPU is missing and the residue has its values, and
//! publishes it by one store, of the generation. A reader takes one generation's view and is sure
//! of what it read when the generation is still the same afterwards; until then it may have read
//! words that serve something else by now, which is harmless because blocks stay mapped as long as
//! the pool. So readers need no epochs, write nothing, may be signal handlers, and what was drained
//! is free for others at once.

use super::active_cpu_mask::ActiveCpuMask;
use super::atomics::{Atomics, Room};
use super::signal_safe_lock::{SignalSafeLock, SignalSafeLockGuard};
use crate::rseq::OWNED_PER_CPU;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// Units that readers walk: those of active CPUs, and the residue.
#[derive(Debug)]
struct View {
    active: ActiveCpuMask,
    residue: AtomicUsize,
}

/// The units (CPUs' parts) of one reservation (address range for counters), at fixed addresses or movable, and the view
/// of them that readers sum.
#[derive(Debug)]
pub(crate) struct Units {
    /// By CPU number: displacement from a home word to that CPU's, 0 where the CPU has no unit. Then those of the units
    /// that belong to threads.
    displacements: Atomics<AtomicUsize>,
    /// Number of the CPU numbers.
    cpus: usize,
    views: [View; 2],
    generation: AtomicUsize,
    movable: bool,
    /// Held by who announces a CPU or drains one, where units are movable.
    changing: SignalSafeLock,
}

/// A reader's view of the counter memory: the CPUs' units (memory parts) to sum, and the residue (counts of drained,
/// usually departed CPUs). Valid until a drain of a CPU publishes another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk<'a> {
    units: &'a Units,
    view: &'a View,
    generation: usize,
}

impl Units {
    /// Creates the set of units (parts of the counter memory) at fixed distances in bytes from the home unit (the words
    /// that belong to no CPU): of CPU numbers 0 to `cpus` − 1, then of threads.
    pub(crate) fn fixed(displacements: &[usize], cpus: usize) -> Units {
        let places = Atomics::<AtomicUsize>::new(displacements.len());
        places.iter().zip(displacements).for_each(|(place, unit)| place.store(*unit, Ordering::Relaxed));
        Units::at_fixed(places, cpus, [ActiveCpuMask::new(displacements.len()), ActiveCpuMask::new(0)])
    }

    /// Creates units for CPUs 0 to `cpus` − 1 in a room: CPU n's is at `first` + n · `stride`.
    /// Takes [`words_for`](Self::words_for) words. Async-signal-safe.
    pub(super) fn within(room: &mut Room, cpus: usize, first: usize, stride: usize) -> Option<Units> {
        let places = room.take::<AtomicUsize>(cpus)?;
        for (cpu, place) in places.iter().enumerate() {
            // one that overflows, on a 32-bit machine, is never used: the reservation is refused
            place.store(first.wrapping_add(cpu.wrapping_mul(stride)), Ordering::Relaxed);
        }
        let masks = [ActiveCpuMask::within(room, cpus)?, ActiveCpuMask::within(room, 0)?];
        Some(Units::at_fixed(places, cpus, masks))
    }

    /// Returns the number of words that the units of so many CPUs take in a room.
    pub(super) const fn words_for(cpus: usize) -> usize {
        cpus + ActiveCpuMask::words_for(cpus)
    }

    fn at_fixed(displacements: Atomics<AtomicUsize>, cpus: usize, masks: [ActiveCpuMask; 2]) -> Units {
        Units {
            displacements,
            cpus,
            views: masks.map(|active| View { active, residue: AtomicUsize::new(0) }),
            generation: AtomicUsize::new(0),
            movable: false,
            changing: SignalSafeLock::new(),
        }
    }

    /// Creates an empty set of units (parts of the counter memory) for CPU numbers 0 to `cpus` − 1, each of which gets
    /// one later by [`assign`](Self::assign).
    pub(crate) fn movable(cpus: usize) -> Units {
        let view = || View { active: ActiveCpuMask::new(cpus), residue: AtomicUsize::new(0) };
        Units {
            displacements: Atomics::new(cpus),
            cpus,
            views: [view(), view()],
            generation: AtomicUsize::new(0),
            movable: true,
            changing: SignalSafeLock::new(),
        }
    }

    /// Returns the number of CPU numbers, from 0 on, that can have a unit (part of the counter memory).
    pub(crate) fn len(&self) -> usize {
        self.cpus
    }

    /// Returns the number of units (parts of the counter memory): those of CPU numbers, and behind them those that
    /// belong to single threads.
    pub(crate) fn with_owned(&self) -> usize {
        self.displacements.len()
    }

    /// Returns the numbers of the units (parts of the counter memory) that single threads took while they ran on a CPU, and
    /// keep wherever they move.
    pub(crate) fn owned_of(&self, cpu: usize) -> std::ops::Range<usize> {
        let end = self.displacements.len();
        let first = self.cpus + cpu.min(self.cpus) * OWNED_PER_CPU;
        first.min(end)..(first + OWNED_PER_CPU).min(end)
    }

    /// Returns the distance in bytes from a counter's home word (its word that belongs to no CPU) to its word in a
    /// unit, by the unit's number; `None` if that is not in use.
    #[inline]
    pub(crate) fn unit(&self, number: usize) -> Option<usize> {
        let displacement = self.displacements.get(number)?.load(Ordering::Acquire);
        (displacement != 0).then_some(displacement)
    }

    pub(crate) fn is_movable(&self) -> bool {
        self.movable
    }

    pub(crate) fn changing(&self) -> &SignalSafeLock {
        &self.changing
    }

    /// Returns the distance in bytes from a counter's home word (its word that belongs to no CPU) to its word of one
    /// CPU; `None` if the CPU has no unit (memory for words).
    #[inline]
    pub(crate) fn displacement(&self, cpu: usize) -> Option<usize> {
        if cpu < self.cpus { self.unit(cpu) } else { None }
    }

    /// Makes the memory at a displacement (distance in bytes from the home unit, whose words belong to no CPU) a CPU's
    /// unit (its part of the counter memory), unless it has one; returns the displacement of the CPU's unit.
    ///
    /// An exchange and not a store: a fork within a signal handler can let a second thread in.
    pub(crate) fn assign(&self, cpu: usize, displacement: usize, _held: &SignalSafeLockGuard<'_>) -> usize {
        let Some(place) = self.displacements.get(cpu) else { return 0 };
        match place.compare_exchange(0, displacement, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => displacement,
            Err(there) => there,
        }
    }

    /// Takes away a CPU's unit (its part of the counter memory), which no reader's view contains any more.
    pub(crate) fn unassign(&self, cpu: usize, _held: &SignalSafeLockGuard<'_>) {
        if let Some(place) = self.displacements.get(cpu) {
            // after the view without it: who finds no unit finds that view, too
            place.store(0, Ordering::Release);
        }
    }

    /// Adds a CPU, which has a unit (part) of counter memory, to the active mask, the set of CPUs whose words readers
    /// sum. For movable units the lock has to be held.
    pub(crate) fn announce(&self, cpu: usize) {
        self.walk().view.active.insert(cpu);
    }

    /// Returns the current view: the CPUs' units of counter memory that a reader has to sum.
    #[inline]
    pub(crate) fn walk(&self) -> Walk<'_> {
        let generation = if self.movable { self.generation.load(Ordering::Acquire) } else { 0 };
        Walk { units: self, view: &self.views[generation & 1], generation }
    }

    /// Calls `work` with a reader's view of the CPUs' units (the parts of counter memory to sum), again if a drain
    /// published another view meanwhile; returns the result for a view that stayed current.
    #[inline]
    pub(crate) fn consistently<R>(&self, mut work: impl FnMut(Walk<'_>) -> R) -> R {
        loop {
            let walk = self.walk();
            let result = work(walk);
            if walk.is_current() {
                return result;
            }
        }
    }

    /// Returns the index (0 or 1) of the readers' view (the set of CPUs whose counter words they sum) that the lock's
    /// holder will publish next.
    pub(crate) fn next_view(&self) -> usize {
        // readers of what is overwritten from here on must see that its time is over
        fence(Ordering::Release);
        (self.generation.load(Ordering::Relaxed) + 1) & 1
    }

    /// Publishes the readers' next view: the current one without `cpu`, whose counts were moved to words of no CPU,
    /// `residue` bytes from the home words.
    pub(crate) fn publish_without(&self, cpu: usize, residue: usize, _held: &SignalSafeLockGuard<'_>) {
        let generation = self.generation.load(Ordering::Relaxed);
        let (now, next) = (&self.views[generation & 1], &self.views[(generation + 1) & 1]);
        next.active.copy_without(&now.active, cpu);
        next.residue.store(residue, Ordering::Relaxed);
        self.generation.store(generation.wrapping_add(1), Ordering::Release);
        // and before anything that becomes of the unit: a reader who sees that must see that this
        // view's time is over
        fence(Ordering::Release);
    }
}

impl Walk<'_> {
    /// Returns `true` if this is a view of these units.
    #[inline]
    pub(crate) fn is_of(self, units: &Units) -> bool {
        std::ptr::eq(self.units, units)
    }

    /// Returns `true` if no drain of a CPU has published another view (set of memory parts to sum) since this one was
    /// taken.
    #[inline]
    pub(crate) fn is_current(self) -> bool {
        if !self.units.movable {
            return true;
        }
        fence(Ordering::Acquire);
        self.units.generation.load(Ordering::Relaxed) == self.generation
    }

    /// Returns the distance in bytes from a counter's home word (its word that belongs to no CPU) to its residue, the
    /// word with the counts of drained (usually departed) CPUs; 0 if there are none.
    #[inline]
    pub(crate) fn residue(self) -> usize {
        if self.units.movable { self.view.residue.load(Ordering::Relaxed) } else { 0 }
    }

    /// Calls `visit` with the distance in bytes from home words (counters' words that belong to no CPU) to each set of
    /// words to sum: that with the counts of drained (usually departed) CPUs, then each active CPU's.
    #[inline]
    pub(crate) fn for_each(self, mut visit: impl FnMut(usize)) {
        let residue = self.residue();
        if residue != 0 {
            visit(residue);
        }
        self.view.active.for_each(|cpu| {
            debug_assert!(cpu < self.units.displacements.len());
            // SAFETY: the mask has bits only for CPUs that were found in this table.
            let place = unsafe { self.units.displacements.get_unchecked(cpu) };
            let displacement = place.load(Ordering::Acquire);
            // 0: drained meanwhile, so this walk is not the last
            if displacement != 0 {
                visit(displacement);
            }
        });
    }

    /// Calls `visit` with the CPU number of each unit (set of words) that a reader sums: once for the CPU's own unit, and
    /// once more for each unit that a single thread took while it ran on that CPU.
    pub(crate) fn for_each_cpu(self, mut visit: impl FnMut(usize)) {
        let cpus = self.units.cpus;
        self.view.active.for_each(|unit| {
            visit(if unit < cpus { unit } else { (unit - cpus) / OWNED_PER_CPU });
        });
    }

    /// Calls `visit` with the distance in bytes from home words (words that belong to no CPU) to each set of words that
    /// readers sum for a CPU: its own, if it ever counted, and those that single threads took while they ran on it, keep
    /// wherever they move, and count in.
    pub(crate) fn for_each_of_cpu(self, cpu: usize, visit: impl FnMut(usize)) {
        let owned = self.units.owned_of(cpu).filter(|unit| self.view.active.contains(*unit));
        let owned = owned.filter_map(|unit| self.units.unit(unit));
        self.displacement_if_active(cpu).into_iter().chain(owned).for_each(visit);
    }

    /// Returns the distance in bytes from a counter's home word (its word that belongs to no CPU) to its word of one
    /// CPU; `None` if that CPU is not in this view, as it never counted or was drained.
    #[inline]
    pub(crate) fn displacement_if_active(self, cpu: usize) -> Option<usize> {
        self.units.displacement(cpu).filter(|_| self.view.active.contains(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(walk: Walk<'_>) -> Vec<usize> {
        let mut walked = Vec::new();
        walk.for_each(|displacement| walked.push(displacement));
        walked
    }

    #[test]
    fn a_drained_unit_leaves_the_view_and_its_residue_enters_it_in_one_step() {
        let units = Units::movable(5000);
        let held = units.changing().lock();
        for (cpu, displacement) in [(3, 64), (4999, 128)] {
            assert_eq!(units.assign(cpu, displacement, &held), displacement);
            assert_eq!(units.assign(cpu, 7, &held), displacement, "it has one already");
            units.announce(cpu);
        }
        let before = units.walk();
        assert_eq!(walked(before), [64, 128]);
        assert!(before.is_current());
        units.publish_without(3, 8192, &held);
        assert!(!before.is_current());
        assert_eq!(walked(units.walk()), [8192, 128]);
        units.unassign(3, &held);
        assert_eq!(walked(before), [128], "what an outdated walk sees is not taken");
        units.assign(3, 192, &held);
        units.announce(3);
        assert_eq!(walked(units.walk()), [8192, 192, 128]);
    }

    #[test]
    fn fixed_units_are_always_current() {
        let units = Units::fixed(&[0, 64, 0, 128], 4);
        units.announce(3);
        assert!(units.walk().is_current() && !units.is_movable());
        assert_eq!((walked(units.walk()), units.displacement(0), units.len()), (vec![128], None, 4));
    }
}
