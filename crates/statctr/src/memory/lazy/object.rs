//! One object: claiming it, updating it, reading it.

use super::cells::{SIDE, Shortage};
use super::lifetime::{self, LazyOwner};
use super::pool::LazyMemory;
use super::shape::{
    Cell, InstancePtr, NODE_SHIFT, PAIRS, SHARED, SPREAD, Side, instance_at, is_of, pack, pack_table, unpack,
    unpack_of, unpack_table,
};
use crate::error::Result;
use crate::rseq::{self, ITEMS, is_refused};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Owner of a lazy object's memory: four items (64-bit statistics), with an instance (copy) for each CPU (or node, or
/// concurrency id) that writes.
pub(crate) struct Object {
    cell: NonNull<Cell>,
    memory: NonNull<LazyMemory>,
}

// SAFETY: everything in a cell is written atomically or by sections of one index.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    /// Creates a lazy object (four statistics whose per-CPU copies are created when a CPU first writes), all zero. May
    /// wait for a lock and map memory.
    pub(crate) fn new(owner: &LazyOwner) -> Result<Object> {
        let memory: &LazyMemory = owner;
        let nodes = &memory.settings.nodes;
        let cpu = memory.cpu().unwrap_or(0) as usize;
        let (cell, filled) = memory.objects.take(cpu, nodes)?;
        let object = Object { cell: cell.cast(), memory: owner.memory() };
        if nodes.len() > 2 {
            let node = nodes.index_of(cpu) as u32;
            object.cell().flags.store(node << NODE_SHIFT, Ordering::Relaxed);
        }
        if filled {
            // where that fails, updates use the atomic words
            let _ = memory.map_ahead();
        }
        Ok(object)
    }

    /// Gives up ownership of the lazy object (four statistics with per-CPU copies), for C; returns the addresses of its
    /// memory cell and of its pool's memory.
    pub(crate) fn into_parts(self) -> (NonNull<u8>, *const LazyMemory) {
        let object = std::mem::ManuallyDrop::new(self);
        (object.cell.cast(), object.memory.as_ptr())
    }

    /// Takes ownership of a lazy object (four statistics with per-CPU copies) back, by the addresses that
    /// [`into_parts`](Self::into_parts) returned.
    ///
    /// # Safety
    /// The parts came from [`Object::into_parts`] and were not taken back yet.
    pub(crate) unsafe fn from_parts(cell: NonNull<u8>, memory: NonNull<LazyMemory>) -> Object {
        Object { cell: cell.cast(), memory }
    }

    /// Returns `true` if the lazy object (four statistics with per-CPU copies) belongs to this pool.
    pub(crate) fn is_of(&self, owner: &LazyOwner) -> bool {
        self.memory == owner.memory()
    }

    #[inline(always)]
    fn memory(&self) -> &LazyMemory {
        // SAFETY: lives as long as objects of it.
        unsafe { self.memory.as_ref() }
    }

    #[inline(always)]
    fn cell(&self) -> &Cell {
        // SAFETY: ours until we are dropped, and only ever used as what it is: words are atomics
        // here, and sections write them with single aligned stores.
        unsafe { self.cell.as_ref() }
    }

    fn side(&self) -> &Side {
        // SAFETY: each cell of objects has one, for as long.
        unsafe { self.cell.byte_add(SIDE).cast().as_ref() }
    }

    #[inline(always)]
    fn own(&self) -> InstancePtr {
        // SAFETY: the first field of a live cell; by its address, as sections write it.
        unsafe { NonNull::new_unchecked(&raw mut (*self.cell.as_ptr()).own) }
    }

    /// Combines `values` with the four items (statistics) of the lazy object, in the instance (copy) of the calling
    /// thread's CPU. Async-signal-safe; never waits.
    #[inline(always)]
    pub(crate) fn update(&self, values: [u64; ITEMS]) {
        let memory = self.memory();
        let at = memory.join.cpu_index();
        if let Some(index) = memory.inline_cpu(at)
            && let Some(instance) = self.find(index)
        {
            // SAFETY: sections may be used, and the instance is this index's.
            if unsafe { rseq::join_at(at, &memory.join, index, instance, values) } {
                return;
            }
        }
        // one by one: in an array they would go through memory also where the section commits, and
        // be loaded there in pieces that are wider than what was stored
        let [first, second, third, fourth] = values;
        self.update_further(first, second, third, fourth);
    }

    /// Returns the instance of a CPU whose updates are in line, from the object's line or from its table.
    ///
    /// The table first: of the two pairs in front of it, those who look for another mark need not load any.
    #[inline(always)]
    fn find(&self, cpu: u32) -> Option<InstancePtr> {
        let (cell, mark) = (self.cell(), cpu + 1);
        if cell.owner.load(Ordering::Relaxed) == mark {
            return Some(self.own());
        }
        let last = cell.pairs[PAIRS - 1].load(Ordering::Acquire);
        if let Some(table) = unpack_table(last) {
            // SAFETY: a table of the object, as in `table_of`; updates are in line of CPUs that it has a word for.
            let place = unsafe { table.add(cpu as usize).as_ref() };
            if let Some(instance) = instance_at(place.load(Ordering::Acquire)) {
                return Some(instance);
            }
        }
        // a mark is in one place at most
        let pair =
            cell.pairs.iter().map(|pair| pair.load(Ordering::Acquire)).find(|pair| is_of(*pair, mark))?;
        unpack_of(pair, mark)
    }

    /// Returns the table whose address the last pair has.
    fn table_of<'a>(&'a self, memory: &LazyMemory, pair: u64) -> Option<&'a [AtomicUsize]> {
        let start = unpack_table(pair)?;
        // SAFETY: a cell of `tables`, which has a word for each index and is the object's until it is dropped.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), memory.join.indices as usize) })
    }

    #[inline(never)]
    fn update_further(&self, first: u64, second: u64, third: u64, fourth: u64) {
        let (memory, values) = (self.memory(), [first, second, third, fourth]);
        for _ in 0..rseq::TRIES {
            let Some(index) = memory.index() else { break };
            let Some(instance) = self.find_or_make(index) else { break };
            if memory.is_atomic() {
                // SAFETY: an instance of this object, which is updated atomically by everyone.
                return self.join_atomically(unsafe { instance.as_ref() }.words(), values);
            }
            // SAFETY: there is an index, so sections may be used; the instance is that index's.
            if unsafe { rseq::join(&memory.join, index, instance, values) } {
                return;
            }
            if memory.join.hold.load(Ordering::Relaxed) != 0 {
                break;
            }
        }
        self.use_shared();
        self.join_atomically(&self.side().shared, values);
    }

    /// Says that the atomic words are used, before they are.
    ///
    /// Relaxed is enough where the bit is there: nothing else was written before it that a reader
    /// would have to find, and whoever this thread hands its update over to loads these flags after
    /// this load, and so finds this bit, too.
    fn use_shared(&self) {
        let flags = &self.cell().flags;
        if flags.load(Ordering::Relaxed) & SHARED == 0 {
            flags.fetch_or(SHARED, Ordering::SeqCst);
        }
    }

    fn join_atomically(&self, words: &[AtomicU64; ITEMS], values: [u64; ITEMS]) {
        for ((word, value), item) in words.iter().zip(values).zip(self.memory().settings.items) {
            if value != 0 {
                item.join_atomically(word, value);
            }
        }
    }

    /// Returns the instance of an index; `None` where there is no memory for one at once.
    fn find_or_make(&self, index: u32) -> Option<InstancePtr> {
        let (cell, mark) = (self.cell(), index + 1);
        let owner = cell.owner.load(Ordering::Acquire);
        if owner == mark {
            return Some(self.own());
        }
        if owner == 0 {
            match cell.owner.compare_exchange(0, mark, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(self.own()),
                Err(owner) if owner == mark => return Some(self.own()),
                Err(_) => {}
            }
        }
        // it was the owner, until others came
        let ours = owner & !SPREAD == mark;
        let index = index as usize;
        let mut made = None;
        // else an index that nobody knew of when the pool was made
        let found = if index < self.memory().settings.indices {
            self.insert_in_pairs(index, mark, &mut made).or_else(|| self.insert_in_table(index, &mut made))
        } else {
            None
        };
        if let Some(unused) = made.filter(|made| found != Some(*made)) {
            self.memory().give_unused(index, unused);
        }
        if found.is_some() && owner & SPREAD == 0 {
            cell.owner.fetch_or(SPREAD, Ordering::AcqRel);
        }
        found.or_else(|| ours.then(|| self.own()))
    }

    /// Returns the instance of an index among the pairs: the one that is there, or one in the first
    /// free place. All who look for an index go through the places in order, so it is in one at
    /// most.
    fn insert_in_pairs(
        &self,
        index: usize,
        mark: u32,
        made: &mut Option<InstancePtr>,
    ) -> Option<InstancePtr> {
        for pair in &self.cell().pairs {
            let mut there = pair.load(Ordering::Acquire);
            if there == 0 {
                let new = self.memory().make(index, made)?;
                let packed = pack(mark, new)?;
                match pair.compare_exchange(0, packed, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Some(new),
                    Err(other) => there = other,
                }
            }
            // not by the upper bits alone, which an index can share with a table
            if let Some((of, instance)) = unpack(there)
                && of == mark
            {
                return Some(instance);
            }
        }
        None
    }

    fn insert_in_table(&self, index: usize, made: &mut Option<InstancePtr>) -> Option<InstancePtr> {
        let place = self.table_or_make()?.get(index)?;
        let there = place.load(Ordering::Acquire);
        if there != 0 {
            return instance_at(there);
        }
        let new = self.memory().make(index, made)?;
        match place.compare_exchange(0, new.addr().get(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(new),
            Err(there) => instance_at(there),
        }
    }

    fn table(&self) -> Option<&[AtomicUsize]> {
        self.table_of(self.memory(), self.cell().pairs[PAIRS - 1].load(Ordering::Acquire))
    }

    /// Returns the table, which is made where all pairs are taken, and takes the place of the last one, in one
    /// store: whoever looks for that pair's instance finds the pair, or the table with the instance in it.
    fn table_or_make(&self) -> Option<&[AtomicUsize]> {
        let last = &self.cell().pairs[PAIRS - 1];
        let there = last.load(Ordering::Acquire);
        if let Some(table) = self.table_of(self.memory(), there) {
            return Some(table);
        }
        // none where there was no memory for a pair
        let (mark, instance) = unpack(there)?;
        let memory = self.memory();
        let cpu = memory.cpu()? as usize;
        let new = if is_refused!(Table) {
            Err(Shortage::Memory)
        } else {
            memory.tables.take_at_once(cpu, &memory.settings.nodes)
        };
        let new = match new {
            Ok(new) => new,
            Err(shortage) => {
                memory.note_shortfall(shortage);
                return None;
            }
        };
        let now = pack_table(new.cast()).and_then(|packed| {
            // nobody else has it yet; the index is one of the pool's, as those of all pairs are
            let place = self.table_of(memory, packed)?.get(mark as usize - 1)?;
            place.store(instance.addr().get(), Ordering::Relaxed);
            let exchanged = last.compare_exchange(there, packed, Ordering::AcqRel, Ordering::Acquire);
            if exchanged.is_err() {
                place.store(0, Ordering::Relaxed);
            }
            exchanged.map(|_| packed).ok()
        });
        if now.is_none() {
            memory.tables.give_at_once(cpu, new);
        }
        self.table()
    }

    /// Calls `visit` with each instance but the preallocated one, and its index; with each once, though a table may take
    /// the place of the last pair meanwhile, whose instance is in it, too: that place is loaded once.
    fn further(&self, mut visit: impl FnMut(usize, InstancePtr)) {
        let [pairs @ .., last] = &self.cell().pairs;
        for pair in pairs {
            match unpack(pair.load(Ordering::Acquire)) {
                Some((mark, instance)) => visit(mark as usize - 1, instance),
                // they are filled in order
                None => return,
            }
        }
        let last = last.load(Ordering::Acquire);
        if let Some((mark, instance)) = unpack(last) {
            visit(mark as usize - 1, instance);
        }
        for (index, place) in self.table_of(self.memory(), last).unwrap_or_default().iter().enumerate() {
            if let Some(instance) = instance_at(place.load(Ordering::Acquire)) {
                visit(index, instance);
            }
        }
    }

    /// Returns the lazy object's four values, combined over its instances (the CPUs' copies).
    #[inline]
    pub(crate) fn read(&self) -> [u64; ITEMS] {
        let cell = self.cell();
        // SAFETY: lives.
        let own = unsafe { self.memory().load(self.own()) };
        let alone =
            cell.pairs[0].load(Ordering::Acquire) == 0 && cell.flags.load(Ordering::Acquire) & SHARED == 0;
        if alone { own } else { self.read_further(own) }
    }

    #[inline(never)]
    fn read_further(&self, mut values: [u64; ITEMS]) -> [u64; ITEMS] {
        let memory = self.memory();
        let mut join = |words: [u64; ITEMS]| {
            for ((value, word), item) in values.iter_mut().zip(words).zip(memory.settings.items) {
                *value = item.join(*value, word);
            }
        };
        if self.cell().flags.load(Ordering::Acquire) & SHARED != 0 {
            let shared = &self.side().shared;
            join(std::array::from_fn(|item| shared[item].load(Ordering::Relaxed)));
        }
        // SAFETY: instances of this object live.
        self.further(|_, instance| join(unsafe { memory.load(instance) }));
        values
    }

    /// Returns the part of the lazy object's four values that is in its shared atomic words, which serve where a CPU
    /// gets no copy.
    pub(crate) fn shared_part(&self) -> [u64; ITEMS] {
        if self.cell().flags.load(Ordering::Acquire) & SHARED == 0 {
            return [0; ITEMS];
        }
        std::array::from_fn(|item| self.side().shared[item].load(Ordering::Relaxed))
    }

    fn owner(&self) -> Option<usize> {
        let owner = self.cell().owner.load(Ordering::Acquire) & !SPREAD;
        owner.checked_sub(1).map(|index| index as usize)
    }

    /// Returns the number of the lazy object's instances (CPUs' copies of its four values) in use, at least 1. The
    /// first lies in the object itself, and is no longer counted once its owner has one elsewhere.
    pub(crate) fn instances(&self) -> usize {
        let mut count = 1;
        // the owner is there before any further instance, and stays
        self.further(|index, _| count += usize::from(Some(index) != self.owner()));
        count
    }

    /// Returns the owner (number of the CPU, node or concurrency id) and address of each instance of the lazy object
    /// (copy of its four values); for tests of where memory lies.
    pub(crate) fn instance_addresses(&self) -> Vec<(Option<usize>, usize)> {
        let mut places = vec![(self.owner(), self.own().addr().get())];
        self.further(|index, instance| places.push((Some(index), instance.addr().get())));
        places
    }

    /// Combines `values` with the four items (statistics) of the lazy object, in the instance (copy) of an owner number
    /// (of a CPU or concurrency id) that no thread of this machine can have; one caller per number at a time.
    pub(crate) fn update_on_synthetic(&self, index: u32, values: [u64; ITEMS]) {
        let Some(instance) = self.find_or_make(index) else {
            self.use_shared();
            return self.join_atomically(&self.side().shared, values);
        };
        // SAFETY: live words; nobody else writes them.
        let words = unsafe { instance.as_ref() }.words();
        for ((word, value), item) in words.iter().zip(values).zip(self.memory().settings.items) {
            word.store(item.join(word.load(Ordering::Relaxed), value), Ordering::Relaxed);
        }
    }

    /// Empties what few objects use.
    #[cold]
    fn clear_further(&self) {
        let memory = self.memory();
        self.further(|index, instance| memory.give_instance(index, instance));
        if let Some(table) = self.table() {
            table.iter().for_each(|place| place.store(0, Ordering::Relaxed));
            let cpu = memory.cpu().unwrap_or(0) as usize;
            memory.tables.give(cpu, NonNull::from(table).cast(), &memory.settings.nodes);
        }
        if self.cell().flags.load(Ordering::Relaxed) & SHARED != 0 {
            self.side().shared.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        self.cell().pairs.iter().for_each(|pair| pair.store(0, Ordering::Relaxed));
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let (memory, cell) = (self.memory(), self.cell());
        let nodes = &memory.settings.nodes;
        let flags = cell.flags.load(Ordering::Acquire);
        if cell.pairs[0].load(Ordering::Acquire) != 0 || flags & SHARED != 0 {
            self.clear_further();
        }
        cell.own.all_words().for_each(|word| word.store(0, Ordering::Relaxed));
        cell.owner.store(0, Ordering::Relaxed);
        cell.flags.store(0, Ordering::Relaxed);
        let cpu = memory.cpu().unwrap_or(0) as usize;
        // on machines with several nodes the cell goes back to its own
        let node = (flags >> NODE_SHIFT) as usize;
        let far = (nodes.len() > 2 && node != nodes.index_of(cpu)).then_some(node);
        if memory.objects.give_counted(cpu, far, self.cell.cast(), nodes) {
            // SAFETY: this was the last object, and the pool's handles are gone.
            unsafe { lifetime::free(self.memory) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combine::Combine;
    use crate::memory::lazy::nodes::Nodes;
    use crate::memory::lazy::pool::{IndexKind, LazySettings};
    use crate::topology::Topology;

    /// Returns the settings of a pool of sums by CPU.
    fn settings(indices: usize, width: u32) -> LazySettings {
        let topology = Topology::synthetic(indices as u32).build().expect("topology");
        LazySettings {
            index: IndexKind::Cpu,
            rseq: width != 0,
            width,
            nodes: Nodes::new(&topology, indices),
            node_ids: false,
            indices,
            items: [Combine::Sum; ITEMS],
        }
    }

    #[test]
    fn cpus_whose_updates_are_in_line_have_marks_below_that_of_tables() {
        for (indices, width, cpus) in [(65_536, 32, 32_767), (64, 32, 64), (64, 0, 0)] {
            let memory = LazyMemory::new(settings(indices, width)).expect("memory");
            assert_eq!(memory.join.cpus, cpus, "{indices} indices, {width} bytes");
        }
    }

    /// Calls `further` on an object with all pairs taken; a writer replaces the last one by a table when the reader has
    /// visited so many instances. Returns the indices that the reader visited.
    fn visited_while_a_table_comes(after: usize) -> Vec<usize> {
        let owner = LazyOwner::new(LazyMemory::new(settings(PAIRS + 2, 0)).expect("memory"));
        let object = Object::new(&owner).expect("memory");
        (0..=PAIRS as u32).for_each(|index| object.update_on_synthetic(index, [1; ITEMS]));
        assert!(object.table().is_none(), "the owner and one index for each pair");
        let mut visited = Vec::new();
        object.further(|index, _| {
            visited.push(index);
            if visited.len() == after {
                object.update_on_synthetic(PAIRS as u32 + 1, [1; ITEMS]);
                assert!(object.table().is_some());
            }
        });
        visited
    }

    #[test]
    fn a_reader_counts_each_instance_once_while_a_table_takes_the_place_of_the_last_pair() {
        let pairs: Vec<usize> = (1..=PAIRS).collect();
        // behind the last pair: it was there, so the table is of no concern to this reader
        assert_eq!(visited_while_a_table_comes(PAIRS), pairs);
        // before it: the table has its instance, and the newcomer's
        let with_newcomer: Vec<usize> = (1..=PAIRS + 1).collect();
        for after in 1..PAIRS {
            assert_eq!(visited_while_a_table_comes(after), with_newcomer);
        }
    }
}
