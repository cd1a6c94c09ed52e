//! The memory of a pool: objects of one kind, and the instances and tables that updates take.

use super::cells::{CellKind, Cells, Shortage};
use super::nodes::Nodes;
use super::shape::{CELL_BYTES, INSTANCE_BYTES, InstancePtr, TABLE_MARK};
use crate::combine::Combine;
use crate::error::Result;
use crate::memory::latch::hold_lock;
use crate::rseq::{self, ITEMS, Instance, JoinIndex, JoinSettings, is_refused};
use crate::sys::{cpu_bound, stripe};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The kind of number by which instances (copies of the four statistics) of a lazy object are told apart: CPU, NUMA
/// node, or concurrency id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// The CPU: its threads exclude each other in sections.
    Cpu,
    /// The node: its CPUs update at the same time.
    Node,
    /// The concurrency id that the kernel gives to running threads.
    Concurrency,
}

/// The settings of a pool of lazy objects (four statistics whose per-CPU copies are created when a CPU first writes):
/// kind and number of the copies' owners, the statistics' operations, vector width.
pub(crate) struct LazySettings {
    pub(crate) index: IndexKind,
    /// `true` if sections may be used.
    pub(crate) rseq: bool,
    /// Bytes of the widest vector store.
    pub(crate) width: u32,
    pub(crate) nodes: Nodes,
    /// `true` if a thread's node is the one that the kernel says, not the one that the topology has for its CPU.
    pub(crate) node_ids: bool,
    /// Indices: 0 to one less.
    pub(crate) indices: usize,
    /// Operation of each item.
    pub(crate) items: [Combine; ITEMS],
}

/// The memory of a pool of lazy objects (four statistics whose per-CPU copies are created when a CPU first writes). Its
/// address and first fields are part of the C ABI.
#[repr(C)]
pub(crate) struct LazyMemory {
    pub(super) join: JoinSettings,
    pub(super) settings: LazySettings,
    pub(super) objects: Cells,
    pub(super) instances: Cells,
    pub(super) tables: Cells,
    shortfalls: AtomicU64,
    /// 0, or where there was no memory since the last [`map_ahead`](Self::map_ahead): one more than
    /// [`growths`](Self::growths) then.
    short: AtomicUsize,
}

/// Number of optimistic reads before a reader holds writers off.
const OPTIMISTIC_ATTEMPTS: usize = 100;

impl LazyMemory {
    pub(crate) fn new(settings: LazySettings) -> Result<LazyMemory> {
        let cpus = cpu_bound().unwrap_or(0).max(1);
        let nodes = settings.nodes.len();
        let mask = |kind| std::array::from_fn(|item| if settings.items[item] == kind { u64::MAX } else { 0 });
        let width = if settings.rseq && settings.index != IndexKind::Node { settings.width } else { 0 };
        // no more than pairs and tables tell apart
        let indices = u32::try_from(settings.indices).unwrap_or(u32::MAX);
        let join = JoinSettings {
            sum: mask(Combine::Sum),
            or: mask(Combine::Or),
            max: mask(Combine::Max),
            area: rseq::offset().unwrap_or(0),
            field: match settings.index {
                IndexKind::Concurrency => rseq::MM_CID,
                IndexKind::Cpu | IndexKind::Node => rseq::CPU_ID,
            } as u32,
            width,
            hold: AtomicU64::new(0),
            indices,
            // in line a mark is told by a pair's upper bits alone
            cpus: if width != 0 && settings.index == IndexKind::Cpu {
                indices.min(TABLE_MARK - 1)
            } else {
                0
            },
        };
        // readers may need it, and cannot make it
        hold_lock();
        let table_bytes = (settings.indices * size_of::<AtomicUsize>()).next_multiple_of(64);
        let plain = |bytes, apart| CellKind { bytes, with_side: false, ahead: false, apart };
        let objects = CellKind { bytes: CELL_BYTES, with_side: true, ahead: true, apart: false };
        Ok(LazyMemory {
            join,
            objects: Cells::new(objects, cpus, nodes)?,
            instances: Cells::new(plain(INSTANCE_BYTES, true), cpus, nodes)?,
            tables: Cells::new(plain(table_bytes, false), cpus, nodes)?,
            settings,
            shortfalls: AtomicU64::new(0),
            short: AtomicUsize::new(0),
        })
    }

    /// Returns the CPU that the calling thread runs on, or ran on a moment ago; without rseq its stripe.
    #[inline]
    pub(super) fn cpu(&self) -> Option<u32> {
        if self.settings.rseq {
            return rseq::registered_cpu(self.join.area);
        }
        u32::try_from(stripe()).ok()
    }

    /// Returns `true` if all instances are updated atomically, item by item: those of nodes, and all where
    /// sections may not be used.
    #[inline(always)]
    pub(super) fn is_atomic(&self) -> bool {
        self.join.width == 0
    }

    /// Returns the calling thread's index; `None` where it has none, or none that sections keep apart.
    #[inline(always)]
    pub(super) fn index(&self) -> Option<u32> {
        match self.settings.index {
            IndexKind::Cpu | IndexKind::Concurrency if self.is_atomic() => self.cpu(),
            // a thread that was not registered is now
            IndexKind::Cpu => self.section_index().or_else(|| self.cpu().and_then(|_| self.section_index())),
            IndexKind::Node => self.cpu().map(|cpu| self.node(cpu) as u32),
            // a thread that is not registered has no id, but a field
            IndexKind::Concurrency => self.cpu().and_then(|_| self.section_index()),
        }
    }

    /// Returns the index of the node of a thread that is registered where sections are, and that runs on this CPU.
    #[inline(always)]
    fn node(&self, cpu: u32) -> usize {
        let nodes = &self.settings.nodes;
        if self.settings.node_ids {
            // SAFETY: this kernel keeps the field in the areas of threads, of which this one has one.
            return nodes.index_of_node(unsafe { rseq::area_field(self.join.area, rseq::NODE_ID) });
        }
        nodes.index_of(cpu as usize)
    }

    /// Returns the CPU that the calling thread runs on, if it is one whose updates are in line: one of the pool's
    /// tables have a place for, in a pool whose sections are told apart by the CPU. `at` is that of the settings.
    #[inline(always)]
    pub(super) fn inline_cpu(&self, at: JoinIndex) -> Option<u32> {
        // SAFETY: where there is no area the offset is 0, at which each thread has what libc keeps of it: the number
        // says nothing then, and is not looked at further, as no CPU is below 0.
        let cpu = unsafe { rseq::area_field(at.area, rseq::CPU_ID) };
        // the numbers of threads that are not registered are negative, and above all as they are taken here
        (cpu < self.join.cpus).then_some(cpu)
    }

    /// Returns the index of the thread's field, where sections may be used.
    #[inline(always)]
    pub(super) fn section_index(&self) -> Option<u32> {
        let at = self.join.index();
        if at.width == 0 {
            return None;
        }
        // SAFETY: sections may be used, so the area is there, and so is the field.
        let index = unsafe { rseq::area_field(at.area, at.field as usize) };
        // the numbers of threads that are not registered are below 0
        (index < i32::MAX as u32).then_some(index)
    }

    /// Returns the number of updates of the pool's lazy objects (groups of four statistics) that found no memory for an
    /// instance (a CPU's copy), and `true` if that happened since memory was last made available.
    pub(crate) fn shortfalls(&self) -> (u64, bool) {
        let short = self.short.load(Ordering::Relaxed) == self.growths() + 1;
        (self.shortfalls.load(Ordering::Relaxed), short)
    }

    /// Returns the number of times that updates mapped memory.
    fn growths(&self) -> usize {
        self.instances.growths() + self.tables.growths()
    }

    pub(super) fn note_shortfall(&self, shortage: Shortage) {
        self.shortfalls.fetch_add(1, Ordering::Relaxed);
        if shortage == Shortage::Memory {
            self.short.store(self.growths() + 1, Ordering::Relaxed);
        }
    }

    /// Returns the approximate number of lazy objects (four statistics whose per-CPU copies are created when a CPU
    /// first writes) that exist in the pool.
    pub(crate) fn objects(&self) -> usize {
        self.objects.out()
    }

    /// Returns the address ranges of the memory of the pool's lazy objects, their instances (CPUs' copies) and their
    /// tables (CPU to instance).
    pub(crate) fn addresses(&self) -> Vec<std::ops::Range<usize>> {
        [&self.objects, &self.instances, &self.tables].into_iter().flat_map(Cells::addresses).collect()
    }

    /// Ends the making of objects. Returns `true` if there is none; else they may be gone when this
    /// returns.
    pub(super) fn close(&self) -> bool {
        self.objects.close()
    }

    /// Maps memory in advance: for one more instance (a CPU's copy) of each lazy object in the pool, whichever CPUs take
    /// them, and for some tables (CPU to instance).
    pub(crate) fn keep_ready(&self) -> Result<()> {
        for place in 0..self.settings.nodes.len() {
            let cells = self.objects.made().max(64);
            self.instances.keep_ready_for_updates(place, cells, &self.settings.nodes)?;
        }
        self.map_ahead()
    }

    /// Maps memory in advance where objects are made: less than [`keep_ready`](Self::keep_ready), as updates map some, too.
    pub(super) fn map_ahead(&self) -> Result<()> {
        let made = self.objects.made();
        for place in 0..self.settings.nodes.len() {
            self.instances.keep_ready(place, made.max(64), &self.settings.nodes)?;
            self.tables.keep_ready(place, (made / 64).max(16), &self.settings.nodes)?;
        }
        self.short.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Returns an instance for an index, made once in the course of one search.
    pub(super) fn make(&self, index: usize, made: &mut Option<InstancePtr>) -> Option<InstancePtr> {
        if made.is_none() {
            let cpu = self.cpu_near(index);
            let cell = if is_refused!(Instance) {
                Err(Shortage::Memory)
            } else {
                self.instances.take_at_once(cpu, &self.settings.nodes)
            };
            match cell {
                Ok(cell) => *made = Some(cell.cast()),
                Err(shortage) => self.note_shortfall(shortage),
            }
        }
        *made
    }

    /// Gives back what was made and another was faster with. Async-signal-safe.
    pub(super) fn give_unused(&self, index: usize, instance: InstancePtr) {
        self.instances.give_at_once(self.cpu_near(index), instance.cast());
    }

    /// Gives an instance back that nobody has any more.
    pub(super) fn give_instance(&self, index: usize, instance: InstancePtr) {
        // SAFETY: nobody has it any more.
        unsafe { instance.as_ref() }.all_words().for_each(|word| word.store(0, Ordering::Relaxed));
        let nodes = &self.settings.nodes;
        let cpu = self.cpu_near(index);
        if self.settings.index == IndexKind::Node && nodes.index_of(cpu) != index {
            return self.instances.give_far(index, instance.cast());
        }
        self.instances.give(cpu, instance.cast(), nodes);
    }

    /// Returns a CPU whose cache instances of this index come from: its own, or, where the index is
    /// none, the calling thread's.
    fn cpu_near(&self, index: usize) -> usize {
        match self.settings.index {
            IndexKind::Cpu => index,
            IndexKind::Node | IndexKind::Concurrency => self.cpu().unwrap_or(0) as usize,
        }
    }

    /// Returns the values of an instance, as of one moment where the machine can.
    ///
    /// # Safety
    /// The instance lives.
    #[inline]
    pub(super) unsafe fn load(&self, instance: NonNull<Instance>) -> [u64; ITEMS] {
        // SAFETY: passed on.
        match unsafe { rseq::load(instance) } {
            Some(values) => values,
            // SAFETY: passed on.
            None => unsafe { self.load_under_hold(instance) },
        }
    }

    #[cold]
    unsafe fn load_under_hold(&self, instance: NonNull<Instance>) -> [u64; ITEMS] {
        // SAFETY: passed on.
        let load = || unsafe { rseq::load(instance) };
        if let Some(values) = (0..OPTIMISTIC_ATTEMPTS).find_map(|_| load()) {
            return values;
        }
        // The lock keeps a fork from copying a raised hold into a child whose reader is not there.
        let _patient = hold_lock().lock();
        self.join.hold.fetch_add(1, Ordering::SeqCst);
        // ends: the writers of an index commit at most once more
        let values = loop {
            match load() {
                Some(values) => break values,
                None => std::hint::spin_loop(),
            }
        };
        self.join.hold.fetch_sub(1, Ordering::SeqCst);
        values
    }
}
