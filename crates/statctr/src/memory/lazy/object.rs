//! One object: claiming it, updating it, reading it.

use super::cells::{Cells, Nodes};
use crate::error::Result;
use crate::lazy::Combine;
use crate::rseq::{self, is_refused};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Items of an object: what one store of the machine commits.
pub(crate) const ITEMS: usize = 4;
/// Instances that are found without a table.
const PAIRS: usize = 3;
/// Addresses of user space fit into so many bits on the machines that have sections; the index is
/// kept above.
const ADDRESS_BITS: u32 = 48;

/// What tells instances apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// The CPU: its threads exclude each other in sections.
    Cpu,
    /// The node: its CPUs update at the same time.
    Node,
    /// The concurrency id that the kernel gives to running threads.
    Concurrency,
}

/// How a pool of objects works.
pub(crate) struct LazySettings {
    pub(crate) index: Index,
    /// Whether sections may be used.
    pub(crate) rseq: bool,
    /// Bytes of the widest vector store.
    pub(crate) width: u32,
    pub(crate) nodes: Nodes,
    /// Indices: 0 to one less.
    pub(crate) indices: usize,
    /// How the values of each item are joined.
    pub(crate) items: [Combine; ITEMS],
}

#[repr(C, align(64))]
struct Line {
    own: [AtomicU64; ITEMS],
    shared: [AtomicU64; ITEMS],
}

#[repr(C, align(64))]
struct Cell {
    line: Line,
    /// 1 + the owner's index, 0 before there is one.
    owner: AtomicU64,
    /// (1 + index) above, address of an instance below; filled from the first on.
    pairs: [AtomicU64; PAIRS],
    /// Address of a table by index, 0 before there is one.
    table: AtomicUsize,
}

const _: () = assert!(size_of::<Line>() == 64 && size_of::<Cell>() == 128);

/// Where objects of a kind live, and what updates take instances and tables from.
pub(crate) struct LazyMemory {
    settings: LazySettings,
    objects: Cells,
    instances: Cells,
    tables: Cells,
    area: isize,
    shortfalls: AtomicU64,
}

/// An object. Zero when it is made; its memory goes back when it is dropped.
pub(crate) struct Object {
    cell: NonNull<Cell>,
    memory: Arc<LazyMemory>,
}

// SAFETY: everything in a cell is written atomically or by sections of one index.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

type Instance = NonNull<[AtomicU64; ITEMS]>;

impl LazyMemory {
    pub(crate) fn new(settings: LazySettings) -> Arc<LazyMemory> {
        let cpus = rseq::cpu_bound().unwrap_or(0).max(1);
        let nodes = settings.nodes.len();
        let table_bytes = (settings.indices * 8).next_multiple_of(64);
        Arc::new(LazyMemory {
            objects: Cells::new(size_of::<Cell>(), cpus, nodes),
            instances: Cells::new(ITEMS * 8, cpus, nodes),
            tables: Cells::new(table_bytes, cpus, nodes),
            area: rseq::offset().unwrap_or(0),
            settings,
            shortfalls: AtomicU64::new(0),
        })
    }

    /// The CPU that the calling thread runs on, or ran on a moment ago.
    fn cpu(&self) -> Option<u32> {
        if self.settings.rseq {
            return rseq::current_cpu();
        }
        // SAFETY: has no arguments.
        u32::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// The calling thread's index; `None` where it has none, or none that sections keep apart.
    #[inline(always)]
    fn index(&self) -> Option<u32> {
        match self.settings.index {
            Index::Cpu => self.cpu().filter(|_| self.settings.rseq),
            Index::Node => self.cpu().map(|cpu| self.settings.nodes.place(cpu as usize) as u32),
            // SAFETY: the settings allow sections, so the area is there, and so is the field.
            Index::Concurrency => self
                .cpu()
                .filter(|_| self.settings.rseq)
                .map(|_| unsafe { rseq::area_field(self.area, rseq::MM_CID) }),
        }
    }

    /// Updates that found no memory for an instance.
    pub(crate) fn shortfalls(&self) -> u64 {
        self.shortfalls.load(Ordering::Relaxed)
    }

    /// Objects that there are, roughly: each holds the memory, and so do its pools.
    pub(crate) fn objects(self: &Arc<Self>) -> usize {
        Arc::strong_count(self).saturating_sub(1)
    }

    /// Address space that objects, instances and tables lie in.
    pub(crate) fn addresses(&self) -> Vec<std::ops::Range<usize>> {
        [&self.objects, &self.instances, &self.tables].into_iter().flat_map(Cells::addresses).collect()
    }

    /// Maps memory for what updates of all objects may ask for: an instance each, and some tables.
    pub(crate) fn keep_ready(self: &Arc<Self>) -> Result<()> {
        let made = self.objects();
        for place in 0..self.settings.nodes.len() {
            self.instances.keep_ready(place, made.max(64), &self.settings.nodes)?;
            self.tables.keep_ready(place, (made / 64).max(16), &self.settings.nodes)?;
        }
        Ok(())
    }

    fn give_instance(&self, index: usize, instance: Instance) {
        // SAFETY: nobody has it any more.
        unsafe { instance.as_ref() }.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.instances.give(self.cpu_near(index), instance.cast(), &self.settings.nodes);
    }

    /// A CPU whose cache instances of this index go to: its own, or, where the index is none, the
    /// calling thread's.
    fn cpu_near(&self, index: usize) -> usize {
        match self.settings.index {
            Index::Cpu => index,
            Index::Node | Index::Concurrency => self.cpu().unwrap_or(0) as usize,
        }
    }
}

impl Object {
    /// A new object. Waits, and now and then maps memory.
    pub(crate) fn new(memory: &Arc<LazyMemory>) -> Result<Object> {
        let cpu = memory.cpu().unwrap_or(0) as usize;
        let cell = memory.objects.take(cpu, &memory.settings.nodes)?;
        let object = Object { cell: cell.cast(), memory: Arc::clone(memory) };
        if memory.objects().is_multiple_of(64) || memory.objects() < 8 {
            // where that fails, updates use the atomic words
            let _ = memory.keep_ready();
        }
        Ok(object)
    }

    /// Gives the ownership away: the cell, and a strong count of its memory.
    pub(crate) fn into_parts(self) -> (NonNull<u8>, *const LazyMemory) {
        let object = std::mem::ManuallyDrop::new(self);
        // SAFETY: read once; the original is never dropped.
        let memory = unsafe { std::ptr::read(&raw const object.memory) };
        (object.cell.cast(), Arc::into_raw(memory))
    }

    /// Takes the ownership back.
    ///
    /// # Safety
    /// The parts came from [`Object::into_parts`] and were not taken back yet.
    pub(crate) unsafe fn from_parts(cell: NonNull<u8>, memory: *const LazyMemory) -> Object {
        // SAFETY: `into_parts` gave this count away.
        Object { cell: cell.cast(), memory: unsafe { Arc::from_raw(memory) } }
    }

    pub(crate) fn memory(&self) -> &Arc<LazyMemory> {
        &self.memory
    }

    fn cell(&self) -> &Cell {
        // SAFETY: ours until we are dropped, and only ever used as what it is: words are atomics
        // here, and sections write them with single aligned stores.
        unsafe { self.cell.as_ref() }
    }

    fn own(&self) -> Instance {
        NonNull::from(&self.cell().line.own)
    }

    /// Joins `values` to the items. Async-signal-safe; never waits.
    #[inline]
    pub(crate) fn update(&self, values: [u64; ITEMS]) {
        for _ in 0..rseq::TRIES {
            let Some(index) = self.memory.index() else { break };
            let Some(instance) = self.find_or_make(index) else { break };
            if self.memory.settings.index == Index::Node {
                // SAFETY: an instance of this object, of a node: updated atomically by everyone.
                return self.join_atomically(unsafe { instance.as_ref() }, values);
            }
            if self.try_store(index, instance, values) {
                return;
            }
        }
        self.join_atomically(&self.cell().line.shared, values);
    }

    fn join_atomically(&self, words: &[AtomicU64; ITEMS], values: [u64; ITEMS]) {
        for ((word, value), item) in words.iter().zip(values).zip(self.memory.settings.items) {
            if value != 0 {
                item.join_atomically(word, value);
            }
        }
    }

    /// One try of the section.
    #[inline(always)]
    fn try_store(&self, index: u32, instance: Instance, values: [u64; ITEMS]) -> bool {
        let memory = &*self.memory;
        let field = if memory.settings.index == Index::Cpu { rseq::CPU_ID } else { rseq::MM_CID };
        let line = instance.as_ptr().cast::<u64>();
        // SAFETY: four live words of this object's instance, aligned to 32 bytes.
        let old = unsafe { rseq::load_half_line(line) };
        let items = memory.settings.items;
        let new = std::array::from_fn(|item| items[item].join(old[item], values[item]));
        // SAFETY: as above; only sections with this index write them; the area is glibc's.
        unsafe { rseq::store_half_line(memory.settings.width, memory.area, field, index, line, old, new) }
    }

    /// The instance of an index; `None` where there is no memory for one at once.
    #[inline]
    fn find_or_make(&self, index: u32) -> Option<Instance> {
        let mark = u64::from(index) + 1;
        if self.cell().owner.load(Ordering::Acquire) == mark {
            return Some(self.own());
        }
        self.find_or_make_further(index as usize, mark)
    }

    #[inline(never)]
    fn find_or_make_further(&self, index: usize, mark: u64) -> Option<Instance> {
        let cell = self.cell();
        match cell.owner.compare_exchange(0, mark, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(self.own()),
            Err(owner) if owner == mark => return Some(self.own()),
            Err(_) => {}
        }
        if index >= self.memory.settings.indices {
            // an index that nobody knew of when the pool was made
            return None;
        }
        let mut made = None;
        let found =
            self.place_in_pairs(index, mark, &mut made).or_else(|| self.place_in_table(index, &mut made));
        if let Some(unused) = made.filter(|made| found != Some(*made)) {
            self.memory.give_unused(unused);
        }
        found
    }

    /// The instance of an index among the pairs: the one that is there, or one in the first free
    /// place. All who look for an index go through the places in order, so it is in one at most.
    fn place_in_pairs(&self, index: usize, mark: u64, made: &mut Option<Instance>) -> Option<Instance> {
        for pair in &self.cell().pairs {
            let mut there = pair.load(Ordering::Acquire);
            if there == 0 {
                let new = self.memory.make(index, made)?;
                let packed = pack(mark, new)?;
                match pair.compare_exchange(0, packed, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Some(new),
                    Err(other) => there = other,
                }
            }
            if there >> ADDRESS_BITS == mark {
                return unpack(there);
            }
        }
        None
    }

    fn place_in_table(&self, index: usize, made: &mut Option<Instance>) -> Option<Instance> {
        if self.cell().pairs.iter().any(|pair| pair.load(Ordering::Acquire) == 0) {
            // there was no memory for a pair
            return None;
        }
        let place = self.table_or_make()?.get(index)?;
        let there = place.load(Ordering::Acquire);
        if there != 0 {
            return instance_at(there);
        }
        let new = self.memory.make(index, made)?;
        match place.compare_exchange(0, new.addr().get(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(new),
            Err(there) => instance_at(there),
        }
    }

    fn table(&self) -> Option<&[AtomicUsize]> {
        let address = self.cell().table.load(Ordering::Acquire);
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut::<AtomicUsize>(address))?;
        // SAFETY: a cell of `tables`, which has a word for each index.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), self.memory.settings.indices) })
    }

    fn table_or_make(&self) -> Option<&[AtomicUsize]> {
        if self.table().is_none() {
            let memory = &*self.memory;
            let cpu = memory.cpu()? as usize;
            let Some(new) = memory.tables.take_at_once(cpu, &memory.settings.nodes) else {
                memory.shortfalls.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            let table = &self.cell().table;
            if table.compare_exchange(0, new.addr().get(), Ordering::AcqRel, Ordering::Acquire).is_err() {
                memory.tables.give_at_once(cpu, new);
            }
        }
        self.table()
    }

    /// Calls `visit` with the words of each instance that exists, and with the atomic ones.
    fn for_each(&self, mut visit: impl FnMut([u64; ITEMS])) {
        let mut visit_at = |instance: Instance| {
            // SAFETY: four live words of this object, aligned to 32 bytes.
            visit(unsafe { rseq::load_half_line(instance.as_ptr().cast()) });
        };
        visit_at(self.own());
        visit_at(NonNull::from(&self.cell().line.shared));
        self.further(|_, instance| visit_at(instance));
    }

    /// Calls `visit` with each instance but the preallocated one, and its index.
    fn further(&self, mut visit: impl FnMut(usize, Instance)) {
        for pair in &self.cell().pairs {
            let there = pair.load(Ordering::Acquire);
            match unpack(there) {
                Some(instance) => visit((there >> ADDRESS_BITS) as usize - 1, instance),
                // filled in order
                None => return,
            }
        }
        for (index, place) in self.table().unwrap_or_default().iter().enumerate() {
            if let Some(instance) = instance_at(place.load(Ordering::Acquire)) {
                visit(index, instance);
            }
        }
    }

    /// The values: the instances that exist, joined.
    pub(crate) fn read(&self) -> [u64; ITEMS] {
        let mut values = [0; ITEMS];
        self.for_each(|words| {
            for ((value, word), item) in values.iter_mut().zip(words).zip(self.memory.settings.items) {
                *value = item.join(*value, word);
            }
        });
        values
    }

    /// How many instances there are: the preallocated one, and one more for each further writer.
    pub(crate) fn instances(&self) -> usize {
        let mut count = 1;
        self.further(|_, _| count += 1);
        count
    }

    /// The addresses of the instances, with their indices; for tests of where memory lies.
    pub(crate) fn places(&self) -> Vec<(Option<usize>, usize)> {
        let owner = self.cell().owner.load(Ordering::Acquire).checked_sub(1);
        let mut places = vec![(owner.map(|index| index as usize), self.own().addr().get())];
        self.further(|index, instance| places.push((Some(index), instance.addr().get())));
        places
    }

    /// Joins `values` as if with an index that no thread here can have. One caller at a time.
    pub(crate) fn update_as(&self, index: usize, values: [u64; ITEMS]) -> bool {
        let Ok(narrow) = u32::try_from(index) else { return false };
        let Some(instance) = self.find_or_make(narrow) else {
            self.join_atomically(&self.cell().line.shared, values);
            return true;
        };
        // SAFETY: four live words; nobody else writes them.
        for (item, word) in unsafe { instance.as_ref() }.iter().enumerate() {
            let how = self.memory.settings.items[item];
            word.store(how.join(word.load(Ordering::Relaxed), values[item]), Ordering::Relaxed);
        }
        true
    }
}

impl LazyMemory {
    /// An instance for an index, made once in the course of one search.
    fn make(&self, index: usize, made: &mut Option<Instance>) -> Option<Instance> {
        if made.is_none() {
            let cpu = self.cpu_near(index);
            let cell = if is_refused!(Instance) {
                None
            } else {
                self.instances.take_at_once(cpu, &self.settings.nodes)
            };
            *made = cell.map(NonNull::cast);
            if made.is_none() {
                self.shortfalls.fetch_add(1, Ordering::Relaxed);
            }
        }
        *made
    }

    /// Gives back what was made and another was faster with. Async-signal-safe.
    fn give_unused(&self, instance: Instance) {
        self.instances.give_at_once(self.cpu().unwrap_or(0) as usize, instance.cast());
    }
}

fn pack(mark: u64, instance: Instance) -> Option<u64> {
    let address = instance.addr().get() as u64;
    let fits = address >> ADDRESS_BITS == 0 && mark >> (64 - ADDRESS_BITS) == 0;
    fits.then_some(mark << ADDRESS_BITS | address)
}

fn unpack(pair: u64) -> Option<Instance> {
    instance_at((pair & ((1 << ADDRESS_BITS) - 1)) as usize)
}

fn instance_at(address: usize) -> Option<Instance> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address))
}

impl Drop for Object {
    fn drop(&mut self) {
        let memory = &*self.memory;
        self.further(|index, instance| memory.give_instance(index, instance));
        let cpu = memory.cpu().unwrap_or(0) as usize;
        if let Some(table) = self.table() {
            table.iter().for_each(|place| place.store(0, Ordering::Relaxed));
            memory.tables.give(cpu, NonNull::from(table).cast(), &memory.settings.nodes);
        }
        let cell = self.cell();
        let words = cell.line.own.iter().chain(&cell.line.shared).chain(&cell.pairs).chain([&cell.owner]);
        words.for_each(|word| word.store(0, Ordering::Relaxed));
        cell.table.store(0, Ordering::Relaxed);
        memory.objects.give(cpu, self.cell.cast(), &memory.settings.nodes);
    }
}
