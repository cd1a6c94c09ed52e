//! Address spaces: which file an address belonged to, at the time of a sample.
//!
//! Mappings come and go, processes fork and become other programs. So the records are applied in
//! the order of time (`Recording::in_time_order`), and addresses are resolved as of then.

use super::file::{BuildId, BuildIds, Mmap, RecordBody, Recording};
use super::sample::CpuMode;
use crate::{Error, Result};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;

/// The process of the kernel's own mappings.
const KERNEL: i32 = -1;

/// The number of mappings that may be copied because processes fork and then map something themselves.
const COPY_LIMIT: u64 = 1 << 26;

/// An index of [`AddressSpaces::dsos`]: the identifier of a mapped file (or the kernel, the vDSO, …), valid while a
/// recording is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DsoId(NonZeroU32);

impl DsoId {
    /// Converts the index of a mapped object (file, kernel, vDSO, …) in [`AddressSpaces::dsos`] to its id; `None` if it
    /// does not fit into 32 bits.
    pub fn from_position(position: usize) -> Option<DsoId> {
        u32::try_from(position).ok()?.checked_add(1).and_then(NonZeroU32::new).map(DsoId)
    }

    /// Returns the index in [`AddressSpaces::dsos`] of the mapped object (file, kernel, vDSO, …) with this id.
    pub fn position(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The kind of a mapped object: a file, the kernel, a kernel module, the vDSO, or anonymous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DsoKind {
    /// A program or a library: offsets count in the file.
    File,
    /// The kernel itself: its addresses, as the machine had them.
    Kernel,
    /// A module of the kernel: offsets count from where it was loaded.
    Module,
    /// Code the kernel made, such as a BPF program: offsets count from its start.
    KernelSymbol,
    /// The page of code that the kernel gives to each process.
    Vdso,
    /// Memory of no file: heaps, stacks, compiled code (`JitMap`). Addresses as they were.
    Anonymous,
}

/// An object that is mapped into address spaces: a file, the kernel, the vDSO, or anonymous memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dso {
    /// The path of the object's file, or the name that the kernel or perf give to an object without a file.
    pub(crate) path: String,
    /// The kind of object.
    pub(crate) kind: DsoKind,
    /// The build-id of the object; `None` if the recording does not have it.
    pub(crate) build_id: Option<BuildId>,
    /// A symbol of the kernel and its address on the recorded machine: the distance from its address in `vmlinux` is
    /// how far the kernel was moved (KASLR). `None` for other objects.
    pub(crate) reference: Option<(String, u64)>,
    /// The ids of the first few processes that mapped the object: in a container, the path is one of their root's.
    pub(crate) processes: Vec<i32>,
}

impl Dso {
    /// Describes a mapped object (file, kernel, vDSO, …) by its path and kind, without a build-id.
    pub fn new(path: impl Into<String>, kind: DsoKind) -> Self {
        Self { path: path.into(), kind, build_id: None, reference: None, processes: Vec::new() }
    }

    /// Returns the path of the mapped file, or a name in brackets such as `[vdso]` for what is no file.
    #[inline]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the kind of the mapped object: a file, the kernel, the vDSO and so on.
    #[inline]
    pub fn kind(&self) -> DsoKind {
        self.kind
    }

    /// Returns the build-id of the mapped file; `None` if the recording does not have it.
    #[inline]
    pub fn build_id(&self) -> Option<BuildId> {
        self.build_id
    }

    /// Returns the name and run-time address of a symbol of the recorded kernel; its distance from the address in
    /// `vmlinux` is the KASLR offset. `None` for other objects.
    #[inline]
    pub fn reference(&self) -> Option<&(String, u64)> {
        self.reference.as_ref()
    }

    /// Returns the ids of the first few processes that mapped the file, in whose mount namespaces (containers) its
    /// path is meaningful.
    #[inline]
    pub fn processes(&self) -> &[i32] {
        &self.processes
    }
}

/// The number of processes kept for a file: one that still runs is enough.
const PROCESSES_KEPT: usize = 16;

/// The result of resolving an address of a process: the mapped object, and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedAddress {
    /// The mapped object that contains the address.
    pub(crate) dso: DsoId,
    /// The offset of the address in the object; see [`DsoKind`] for its origin.
    pub(crate) offset: u64,
    /// The first address of the mapping.
    pub(crate) start: u64,
    /// `true` if code can run in the mapping.
    pub(crate) is_executable: bool,
}

impl ResolvedAddress {
    /// Returns the id of the mapped object that contains the address.
    #[inline]
    pub fn dso(&self) -> DsoId {
        self.dso
    }

    /// Returns the address's offset in the mapped object; [`DsoKind`] says from where it is counted.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the first address of the mapping that contains the address.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns `true` if the mapping that contains the address is executable.
    #[inline]
    pub fn is_executable(&self) -> bool {
        self.is_executable
    }
}

#[derive(Clone, Copy, Debug)]
struct MappedRange {
    end: u64,
    file_offset: u64,
    dso: DsoId,
    is_executable: bool,
}

/// Mappings of one process by their first address; they do not overlap. A child shares its
/// parent's until one of them changes something.
type Space = Arc<BTreeMap<u64, MappedRange>>;

/// The mappings of all processes and the names of all threads at a point in a recording: after the records that
/// were [applied](Self::apply).
#[derive(Debug)]
pub struct AddressSpaces {
    dsos: Vec<Dso>,
    by_path: HashMap<(Vec<u8>, Option<BuildId>, DsoKind), DsoId>,
    build_ids: BuildIds,
    spaces: HashMap<i32, Space>,
    comms: HashMap<i32, Arc<str>>,
    /// The number of mappings that may still be copied.
    copies_left: u64,
}

impl AddressSpaces {
    /// Creates the address spaces of a recording's processes, empty before records are [applied](Self::apply). Mappings
    /// without a build-id will get it from the recording's table.
    pub fn new(recording: &Recording<'_>) -> Self {
        Self {
            dsos: Vec::new(),
            by_path: HashMap::new(),
            build_ids: recording.build_ids.clone(),
            spaces: HashMap::new(),
            comms: HashMap::new(),
            copies_left: COPY_LIMIT,
        }
    }

    /// Updates the address spaces by the next record in time order: a mapping, fork, exit, or thread's name. Other
    /// records change nothing.
    ///
    /// # Errors
    /// More copies of mappings than any real recording needs.
    pub fn apply(&mut self, body: &RecordBody<'_>) -> Result<()> {
        match body {
            RecordBody::Mmap(mapping) => self.map(mapping)?,
            RecordBody::KernelSymbol(symbol) if symbol.is_unregistered => {
                self.unmap(KERNEL, symbol.start, symbol.start.saturating_add(symbol.len.into()))?;
            }
            RecordBody::KernelSymbol(symbol) => {
                let dso = self.intern(symbol.name, DsoKind::KernelSymbol, None);
                let end = symbol.start.saturating_add(symbol.len.into());
                self.insert(
                    KERNEL,
                    symbol.start,
                    MappedRange { end, file_offset: 0, dso, is_executable: true },
                )?;
            }
            RecordBody::Comm(comm) => {
                self.comms.insert(comm.tid, String::from_utf8_lossy(comm.name).into());
                if comm.is_exec {
                    self.spaces.remove(&comm.pid);
                }
            }
            RecordBody::Fork(task) => {
                if let Some(name) = self.comms.get(&task.parent_tid).cloned() {
                    self.comms.insert(task.tid, name);
                }
                if task.pid != task.parent_pid
                    && let Some(space) = self.spaces.get(&task.parent_pid).cloned()
                {
                    self.spaces.insert(task.pid, space);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the mapped object (file, kernel, vDSO, …) with this id.
    pub fn dso(&self, id: DsoId) -> &Dso {
        // ids come from here, and none is ever taken away
        &self.dsos[id.position()]
    }

    /// Returns an iterator over all objects (files, kernel, vDSO, …) that any process has mapped so far, with their
    /// ids.
    pub fn dsos(&self) -> impl Iterator<Item = (DsoId, &Dso)> {
        (0..).map_while(DsoId::from_position).zip(&self.dsos)
    }

    /// Returns the current name of the thread with this id; `None` if no record has named it.
    pub fn comm(&self, tid: i32) -> Option<&Arc<str>> {
        self.comms.get(&tid)
    }

    /// Finds the mapped object and offset of a code address in a process; `None` if nothing is mapped there.
    pub fn resolve(&self, pid: i32, mode: CpuMode, address: u64) -> Option<ResolvedAddress> {
        match mode {
            CpuMode::Kernel => self.find(KERNEL, address),
            CpuMode::User => self.find(pid, address),
            // the recording does not say in whose code: addresses do not overlap
            CpuMode::Unknown => self.find(pid, address).or_else(|| self.find(KERNEL, address)),
            // guests have address spaces of their own
            CpuMode::Hypervisor | CpuMode::GuestKernel | CpuMode::GuestUser => None,
        }
    }

    /// Finds the mapped object and offset of a data address in a process; `None` if nothing is mapped there. An
    /// access from user mode is looked up in user memory only, one from the kernel in both.
    pub fn resolve_data(&self, pid: i32, mode: CpuMode, address: u64) -> Option<ResolvedAddress> {
        match mode {
            CpuMode::Kernel => self.find(KERNEL, address).or_else(|| self.find(pid, address)),
            mode => self.resolve(pid, mode, address),
        }
    }

    fn find(&self, pid: i32, address: u64) -> Option<ResolvedAddress> {
        let (start, mapped) = self.spaces.get(&pid)?.range(..=address).next_back()?;
        if address >= mapped.end {
            return None;
        }
        let dso = self.dso(mapped.dso);
        let offset = match dso.kind {
            DsoKind::Kernel | DsoKind::Anonymous => address,
            _ => (address - start).wrapping_add(mapped.file_offset),
        };
        Some(ResolvedAddress { dso: mapped.dso, offset, start: *start, is_executable: mapped.is_executable })
    }

    fn map(&mut self, mapping: &Mmap<'_>) -> Result<()> {
        let is_kernel = mapping.pid == KERNEL || mapping.mode == CpuMode::Kernel;
        let (path, kind, reference) = classify(mapping, is_kernel);
        let build_id = mapping.build_id.or_else(|| self.build_ids.get(path));
        let dso = self.intern(path, kind, build_id);
        if let Some(symbol) = reference {
            let known = &mut self.dsos[dso.position()].reference;
            *known = Some((String::from_utf8_lossy(symbol).into_owned(), mapping.file_offset));
        }
        let processes = &mut self.dsos[dso.position()].processes;
        if kind == DsoKind::File && processes.len() < PROCESSES_KEPT && !processes.contains(&mapping.pid) {
            processes.push(mapping.pid);
        }
        let mapped = MappedRange {
            end: mapping.start.saturating_add(mapping.len),
            // it is mapped as a whole, wherever recorders say that it begins
            file_offset: if kind == DsoKind::Vdso { 0 } else { mapping.file_offset },
            dso,
            is_executable: mapping.is_executable,
        };
        self.insert(if is_kernel { KERNEL } else { mapping.pid }, mapping.start, mapped)
    }

    fn intern(&mut self, path: &[u8], kind: DsoKind, build_id: Option<BuildId>) -> DsoId {
        let next = DsoId::from_position(self.dsos.len()).unwrap_or(DsoId(NonZeroU32::MAX));
        let id = *self.by_path.entry((path.to_vec(), build_id, kind)).or_insert(next);
        if id == next {
            let path = String::from_utf8_lossy(path).into_owned();
            self.dsos.push(Dso { path, kind, build_id, reference: None, processes: Vec::new() });
        }
        id
    }

    fn insert(&mut self, pid: i32, start: u64, mapped: MappedRange) -> Result<()> {
        if mapped.end <= start {
            return Ok(());
        }
        self.unmap(pid, start, mapped.end)?;
        self.space(pid)?.insert(start, mapped);
        Ok(())
    }

    /// Removes the parts of mappings that a new one covers; the rest on either side stays.
    fn unmap(&mut self, pid: i32, start: u64, end: u64) -> Result<()> {
        let space = self.space(pid)?;
        let before = space.range(..start).next_back().map(|(first, mapped)| (*first, *mapped));
        if let Some((first, mapped)) = before.filter(|(_, mapped)| mapped.end > start) {
            space.insert(first, MappedRange { end: start, ..mapped });
            keep_tail(space, first, mapped, end);
        }
        while let Some((first, mapped)) =
            space.range(start..end).next().map(|(first, mapped)| (*first, *mapped))
        {
            space.remove(&first);
            keep_tail(space, first, mapped, end);
        }
        Ok(())
    }

    fn space(&mut self, pid: i32) -> Result<&mut BTreeMap<u64, MappedRange>> {
        let space = self.spaces.entry(pid).or_default();
        if Arc::strong_count(space) > 1 {
            let left = self.copies_left.checked_sub(space.len() as u64);
            let limit = Error::Limit { what: "mappings copied by forks", limit: COPY_LIMIT };
            self.copies_left = left.ok_or(limit)?;
        }
        Ok(Arc::make_mut(space))
    }
}

/// Keeps the part of a mapping from `end` on.
fn keep_tail(space: &mut BTreeMap<u64, MappedRange>, first: u64, mapped: MappedRange, end: u64) {
    if mapped.end > end {
        space
            .insert(end, MappedRange { file_offset: mapped.file_offset.wrapping_add(end - first), ..mapped });
    }
}

/// Returns the name a file is known by, what it is, and the symbol that the kernel's path ends with.
fn classify<'a>(mapping: &Mmap<'a>, is_kernel: bool) -> (&'a [u8], DsoKind, Option<&'a [u8]>) {
    const KALLSYMS: &[u8] = b"[kernel.kallsyms]";
    let path = mapping.path;
    if is_kernel {
        if let Some(symbol) = path.strip_prefix(KALLSYMS) {
            let symbol = Some(symbol).filter(|symbol| !symbol.is_empty());
            return (&path[..KALLSYMS.len()], DsoKind::Kernel, symbol);
        }
        let is_module =
            path.starts_with(b"[") || path.ends_with(b".ko") || path.windows(4).any(|end| end == b".ko.");
        return (path, if is_module { DsoKind::Module } else { DsoKind::Kernel }, None);
    }
    let starts = |prefixes: &[&[u8]]| prefixes.iter().any(|prefix| path.starts_with(prefix));
    // programs of 32 bits have another one, as perf calls it
    let is_low = mapping.start.saturating_add(mapping.len) <= 1 << 32;
    if path == b"[vdso]" && is_low {
        return (b"[vdso32]", DsoKind::Vdso, None);
    }
    let kind = if path == b"[vdso]" {
        DsoKind::Vdso
    } else if path.is_empty()
        || starts(&[b"[", b"//anon", b"anon_inode:", b"/dev/zero", b"/anon_hugepage", b"/memfd:", b"/SYSV"])
    {
        DsoKind::Anonymous
    } else {
        DsoKind::File
    };
    (path, kind, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Comm, KernelSymbol, Task};

    fn empty() -> AddressSpaces {
        AddressSpaces {
            dsos: Vec::new(),
            by_path: HashMap::new(),
            build_ids: BuildIds::default(),
            spaces: HashMap::new(),
            comms: HashMap::new(),
            copies_left: COPY_LIMIT,
        }
    }

    fn mapping(pid: i32, start: u64, len: u64, file_offset: u64, path: &'static str) -> RecordBody<'static> {
        RecordBody::Mmap(Mmap {
            pid,
            tid: pid,
            mode: if pid == KERNEL { CpuMode::Kernel } else { CpuMode::User },
            start,
            len,
            file_offset,
            path: path.as_bytes(),
            is_executable: true,
            build_id: None,
            shared_file: None,
        })
    }

    fn applied(records: &[RecordBody<'_>]) -> AddressSpaces {
        let mut spaces = empty();
        for record in records {
            spaces.apply(record).expect("within limits");
        }
        spaces
    }

    fn at(spaces: &AddressSpaces, pid: i32, address: u64) -> Option<(String, u64)> {
        let mode = if pid == KERNEL { CpuMode::Kernel } else { CpuMode::User };
        let location = spaces.resolve(pid, mode, address)?;
        Some((spaces.dso(location.dso).path.clone(), location.offset))
    }

    fn some(path: &str, offset: u64) -> Option<(String, u64)> {
        Some((path.to_owned(), offset))
    }

    #[test]
    fn a_newer_mapping_hides_what_it_covers_and_nothing_else() {
        let spaces = applied(&[
            mapping(1, 0x1000, 0x3000, 0x100, "/bin/old"),
            mapping(1, 0x2000, 0x1000, 0, "/lib/new"),
        ]);
        assert_eq!(at(&spaces, 1, 0xfff), None);
        assert_eq!(at(&spaces, 1, 0x1fff), some("/bin/old", 0x10ff));
        assert_eq!(at(&spaces, 1, 0x2000), some("/lib/new", 0));
        assert_eq!(at(&spaces, 1, 0x3000), some("/bin/old", 0x2100));
        assert_eq!(at(&spaces, 1, 0x4000), None);
        assert_eq!(at(&spaces, 2, 0x2000), None);
    }

    #[test]
    fn a_child_has_its_parents_mappings_until_it_becomes_another_program() {
        let task = |pid, parent_pid| Task { pid, parent_pid, tid: pid, parent_tid: parent_pid };
        let mut spaces = applied(&[
            RecordBody::Comm(Comm { pid: 1, tid: 1, name: b"shell", is_exec: false }),
            mapping(1, 0x1000, 0x1000, 0, "/bin/sh"),
            RecordBody::Fork(task(2, 1)),
        ]);
        assert_eq!(at(&spaces, 2, 0x1010), some("/bin/sh", 0x10));
        assert_eq!(spaces.comm(2).map(AsRef::as_ref), Some("shell"));
        spaces.apply(&mapping(2, 0x1000, 0x1000, 0, "/lib/other")).expect("within limits");
        assert_eq!(at(&spaces, 1, 0x1010), some("/bin/sh", 0x10), "the parent keeps its own");
        spaces
            .apply(&RecordBody::Comm(Comm { pid: 2, tid: 2, name: b"ls", is_exec: true }))
            .expect("within limits");
        assert_eq!(at(&spaces, 2, 0x1010), None);
        assert_eq!(spaces.comm(2).map(AsRef::as_ref), Some("ls"));
    }

    #[test]
    fn the_kernels_reference_symbol_says_where_it_was() {
        let start = 0xffff_ffff_9900_0000;
        let spaces = applied(&[
            mapping(KERNEL, start, 0x100_0000, start, "[kernel.kallsyms]_text"),
            mapping(KERNEL, 0xffff_ffff_c000_0000, 0x4000, 0, "[ext4]"),
            RecordBody::KernelSymbol(KernelSymbol {
                start: 0xffff_ffff_c100_0000,
                len: 64,
                name: b"bpf_prog_1",
                is_unregistered: false,
            }),
        ]);
        assert_eq!(at(&spaces, KERNEL, start + 5), some("[kernel.kallsyms]", start + 5));
        assert_eq!(at(&spaces, KERNEL, 0xffff_ffff_c000_0010), some("[ext4]", 0x10));
        assert_eq!(at(&spaces, KERNEL, 0xffff_ffff_c100_0010), some("bpf_prog_1", 0x10));
        let (_, kernel) = spaces.dsos().next().expect("the kernel");
        assert_eq!(
            (kernel.kind, kernel.reference.clone()),
            (DsoKind::Kernel, Some(("_text".to_owned(), start)))
        );
    }

    #[test]
    fn memory_without_a_file_keeps_its_addresses() {
        let spaces =
            applied(&[mapping(1, 0x7000, 0x1000, 0x7000, "//anon"), mapping(1, 0x9000, 0x1000, 0, "[vdso]")]);
        assert_eq!(at(&spaces, 1, 0x7010), some("//anon", 0x7010));
        assert_eq!(at(&spaces, 1, 0x9010), some("[vdso32]", 0x10));
        // recorders that synthesize it have its address in the place of an offset
        let place = 0x7fff_1234_5000;
        let spaces = applied(&[mapping(2, place, 0x2000, place, "[vdso]")]);
        assert_eq!(at(&spaces, 2, place + 0x1010), some("[vdso]", 0x1010));
    }

    #[test]
    fn forks_that_copy_without_end_are_refused() {
        let mut spaces = AddressSpaces { copies_left: 500, ..empty() };
        for page in 0..200 {
            spaces.apply(&mapping(1, page * 0x1000, 0x1000, 0, "/bin/a")).expect("within limits");
        }
        let mut fork_and_map = |pid| {
            spaces.apply(&RecordBody::Fork(Task { pid, parent_pid: 1, tid: pid, parent_tid: 1 }))?;
            spaces.apply(&mapping(pid, 0, 0x1000, 0, "/bin/b"))
        };
        assert!(fork_and_map(2).is_ok() && fork_and_map(3).is_ok());
        let result = fork_and_map(4);
        assert!(result.is_err());
    }
}
