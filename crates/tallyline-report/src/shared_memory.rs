//! Memory that processes share (`MAP_SHARED`): one address in it is an address of each of them, often another one.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use tallyline_perf_data::file::RecordBody;

/// The identity of a file on the recorded machine: the major and minor number of its device, and its inode.
pub(crate) type FileId = (u32, u32, u64);

/// The changes of processes' shared mappings over a recording. Processes that share nothing leave none.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedMemory {
    changes: Vec<(u64, Change)>,
    // the processes that have had a shared mapping
    processes: FxHashSet<i32>,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    /// A range of addresses is another mapping's.
    Mapped { pid: i32, start: u64, end: u64, shared: Option<(FileId, u64)> },
    /// A child has the mappings of its parent.
    Forked { parent: i32, child: i32 },
    /// A process has begun another program.
    Began { pid: i32 },
}

impl SharedMemory {
    /// Notes the next record in the order of time.
    pub(crate) fn note(&mut self, time: u64, body: &RecordBody<'_>) {
        let change = match body {
            RecordBody::Mmap(mapping) => {
                let (pid, start) = (mapping.pid, mapping.start);
                if mapping.shared_file.is_some() {
                    self.processes.insert(pid);
                }
                let shared = mapping.shared_file.map(|file| (file, mapping.file_offset));
                Change::Mapped { pid, start, end: start.saturating_add(mapping.len), shared }
            }
            RecordBody::Fork(task) if task.pid() != task.parent_pid() => {
                if self.processes.contains(&task.parent_pid()) {
                    self.processes.insert(task.pid());
                }
                Change::Forked { parent: task.parent_pid(), child: task.pid() }
            }
            RecordBody::Comm(comm) if comm.is_exec() => Change::Began { pid: comm.pid() },
            _ => return,
        };
        let (Change::Mapped { pid, .. } | Change::Forked { child: pid, .. } | Change::Began { pid }) = change;
        if self.processes.contains(&pid) {
            self.changes.push((time, change));
        }
    }

    /// Starts resolving addresses at the recording's begin.
    pub(crate) fn resolver(&self) -> SharedAddresses<'_> {
        SharedAddresses { changes: &self.changes, spaces: FxHashMap::default() }
    }
}

/// The shared mappings of all processes at a time.
pub(crate) struct SharedAddresses<'m> {
    // those to come
    changes: &'m [(u64, Change)],
    spaces: FxHashMap<i32, BTreeMap<u64, SharedRange>>,
}

#[derive(Clone, Copy)]
struct SharedRange {
    end: u64,
    file: FileId,
    offset: u64,
}

impl SharedAddresses<'_> {
    /// Returns the file and the offset in it of an address of a process; `None` in private memory. Times must not
    /// decrease from call to call.
    pub(crate) fn resolve(&mut self, time: u64, pid: i32, address: u64) -> Option<(FileId, u64)> {
        while let Some(((at, change), rest)) = self.changes.split_first()
            && *at <= time
        {
            self.apply(*change);
            self.changes = rest;
        }
        let (start, range) = self.spaces.get(&pid)?.range(..=address).next_back()?;
        (address < range.end).then(|| (range.file, range.offset.wrapping_add(address - start)))
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Mapped { pid, start, end, shared } => {
                let space = self.spaces.entry(pid).or_default();
                unmap(space, start, end);
                if let Some((file, offset)) = shared {
                    space.insert(start, SharedRange { end, file, offset });
                }
            }
            Change::Forked { parent, child } => {
                let space = self.spaces.get(&parent).cloned().unwrap_or_default();
                self.spaces.insert(child, space);
            }
            Change::Began { pid } => {
                self.spaces.remove(&pid);
            }
        }
    }
}

/// Removes a range of addresses from the mappings; what is on either side of it stays.
fn unmap(space: &mut BTreeMap<u64, SharedRange>, start: u64, end: u64) {
    let is_before = |(_, range): &(&u64, &SharedRange)| range.end > start;
    let before = space.range(..start).next_back().filter(is_before).map(|(first, _)| *first);
    let firsts: Vec<u64> =
        before.into_iter().chain(space.range(start..end).map(|(first, _)| *first)).collect();
    for first in firsts {
        let Some(range) = space.remove(&first) else { continue };
        if first < start {
            space.insert(first, SharedRange { end: start, ..range });
        }
        if range.end > end {
            let offset = range.offset.wrapping_add(end - first);
            space.insert(end, SharedRange { offset, ..range });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyline_perf_data::file::Mmap;
    use tallyline_perf_data::sample::CpuMode;

    fn mapping(pid: i32, start: u64, file_offset: u64, shared_file: Option<FileId>) -> RecordBody<'static> {
        RecordBody::Mmap(Mmap {
            pid,
            tid: pid,
            mode: CpuMode::User,
            start,
            len: 0x3000,
            file_offset,
            path: b"/dev/shm/ring",
            is_executable: false,
            build_id: None,
            shared_file,
        })
    }

    #[test]
    fn addresses_of_shared_mappings_are_those_of_the_file_while_it_is_mapped() {
        let file = Some((0, 1, 77));
        let mut memory = SharedMemory::default();
        memory.note(10, &mapping(1, 0x1000, 0, None));
        assert!(memory.changes.is_empty(), "a process that shares nothing");
        memory.note(20, &mapping(1, 0x8000, 0x1000, file));
        memory.note(30, &mapping(2, 0x20_0000, 0, file));
        memory.note(40, &mapping(1, 0x9000, 0, None));
        let mut at = memory.resolver();
        let shared = |offset: u64| file.map(|file| (file, offset));
        assert_eq!(at.resolve(19, 1, 0x8010), None);
        assert_eq!(at.resolve(20, 1, 0x8010), shared(0x1010));
        assert_eq!(at.resolve(35, 2, 0x20_1010), shared(0x1010));
        assert_eq!(at.resolve(35, 1, 0xaff8), shared(0x3ff8));
        assert_eq!((at.resolve(35, 1, 0xb000), at.resolve(35, 3, 0x8010)), (None, None));
        // the private mapping is over the rest of it
        assert_eq!((at.resolve(40, 1, 0x8ff8), at.resolve(40, 1, 0x9000)), (shared(0x1ff8), None));
    }
}
