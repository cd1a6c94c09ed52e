//! Records about what was there before the recording began: the kernel, processes, their mappings.

use super::build_id::{build_id_of_file, build_id_of_notes};
use super::build_id_cache::BuildIdCache;
use super::sysfs::{Pmus, cpu_list, text};
use super::{Target, spe};
use crate::abi::{attr_flag, auxtrace};
use crate::attr::Attr;
use crate::file::{BuildId, Comm, Mmap, Task, shared_file_of};
use crate::sample::CpuMode;
use crate::spe::TimeConversion;
use crate::writer::{Encoder, Writer};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Result};
use std::path::Path;

/// The time of synthesized records, whose threads and mappings were there before all others.
const BEFORE: u64 = 0;

/// Writes mappings of the kernel's code and its modules, where the kernel shows their addresses.
pub(super) fn kernel(writer: &mut Writer<File>, attr: &Attr) -> Result<()> {
    let mut map = |path: &str, start: u64, len: u64, file_offset: u64, build_id: Option<BuildId>| {
        let mapping = Mmap {
            pid: -1,
            tid: 0,
            mode: CpuMode::Kernel,
            start,
            len,
            file_offset,
            path: path.as_bytes(),
            is_executable: true,
            build_id,
            shared_file: None,
        };
        if let Some(id) = build_id {
            writer.build_id(true, path.trim_end_matches("_text").trim_end_matches("_s").as_bytes(), id);
        }
        writer.records(Encoder::mapping(&mapping, attr, BEFORE).finish())
    };
    let Some((start, end)) = kernel_text() else { return Ok(()) };
    let build_id = fs::read("/sys/kernel/notes").ok().and_then(|notes| build_id_of_notes(&notes));
    map("[kernel.kallsyms]_text", start, end - start, start, build_id)?;
    for line in fs::read_to_string("/proc/modules").unwrap_or_default().lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(len), Some(start)) = (words.next(), words.next(), words.nth(3)) else {
            continue;
        };
        let start = u64::from_str_radix(start.trim_start_matches("0x"), 16).unwrap_or(0);
        let notes = fs::read(format!("/sys/module/{name}/notes/.note.gnu.build-id"));
        let build_id = notes.ok().and_then(|notes| build_id_of_notes(&notes));
        if let (true, Ok(len)) = (start > 0, len.parse()) {
            map(&format!("[{name}]"), start, len, 0, build_id)?;
        }
    }
    Ok(())
}

/// Writes the description of packets and of their clock: in front of all records, as perf expects it.
pub(super) fn packets(writer: &mut Writer<File>, kind: u32, clock: Option<TimeConversion>) -> Result<()> {
    if let Some(clock) = clock {
        writer.records(Encoder::time_conversion(&clock).finish())?;
    }
    let folder = Path::new("/sys/devices/system/cpu");
    let online = text(&folder.join("online")).map(|list| cpu_list(&list)).unwrap_or_default();
    let words = spe::description(kind, &Pmus::default(), folder, &online);
    writer.records(Encoder::auxtrace_info(auxtrace::ARM_SPE, &words).finish())
}

/// Returns the range from `_text` to `_etext`; `None` where the addresses are hidden
/// (`kernel.kptr_restrict`).
fn kernel_text() -> Option<(u64, u64)> {
    let (mut start, mut end) = (None, None);
    for line in BufReader::new(File::open("/proc/kallsyms").ok()?).split(b'\n') {
        let line = line.ok()?;
        let mut words = line.split(|byte| *byte == b' ');
        let address =
            words.next().and_then(|word| u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok());
        match words.nth(1) {
            Some(b"_text") => start = address,
            Some(b"_etext") => end = address,
            _ => {}
        }
        if let (Some(start), Some(end)) = (start, end) {
            return (start > 0 && end > start).then_some((start, end));
        }
    }
    None
}

/// Returns the processes of a target: those named, with their children where those are wanted, those of threads, or
/// all there are.
pub(super) fn pids(target: &Target, with_children: bool) -> Vec<i32> {
    match target {
        Target::Processes(pids) if with_children => with_descendants(pids),
        Target::Processes(pids) => pids.clone(),
        Target::Threads(threads) => {
            let mut pids: Vec<i32> = threads.iter().filter_map(|thread| status(*thread, "Tgid:")).collect();
            pids.sort_unstable();
            pids.dedup();
            pids
        }
        Target::Command | Target::System => numbers("/proc"),
    }
}

/// Returns the names in a folder that are numbers.
fn numbers(folder: &str) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the threads of a process; none if it has ended.
pub(super) fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Returns `true` if all processes or threads of a target have ended, also if they were not waited for and are still in
/// `/proc`; always for other targets.
pub(super) fn have_ended(target: &Target) -> bool {
    let (Target::Processes(ids) | Target::Threads(ids)) = target else { return true };
    let runs = |id: &i32| {
        let state = text(Path::new(&format!("/proc/{id}/stat")))?;
        // behind the name, which may have parentheses
        state.rsplit_once(") ").map(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    !ids.iter().any(|id| runs(id).unwrap_or(false))
}

/// Returns `true` if a process is ending or gone. One with much memory takes its time to end, and has no events
/// meanwhile.
pub(super) fn is_ending(pid: i32) -> bool {
    /// The kernel's `PF_EXITING`, among the flags that are seven words behind the name.
    const EXITING: u64 = 4;
    const FLAGS: usize = 6;
    let flags = text(Path::new(&format!("/proc/{pid}/stat"))).and_then(|state| {
        let (_, rest) = state.rsplit_once(") ")?;
        rest.split(' ').nth(FLAGS)?.parse::<u64>().ok()
    });
    // of one that is gone there is nothing to read
    flags.is_none_or(|flags| flags & EXITING != 0)
}

/// Processes, their children, the children of those, and so on.
fn with_descendants(pids: &[i32]) -> Vec<i32> {
    let parents: HashMap<i32, i32> =
        numbers("/proc").into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = pids.to_vec();
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        let mut children: Vec<i32> =
            parents.iter().filter(|(_, parent)| **parent == pid).map(|(child, _)| *child).collect();
        children.sort_unstable();
        // the recorder may be a child of what it records
        children.retain(|child| !found.contains(child) && u32::try_from(*child) != Ok(std::process::id()));
        found.extend(children);
        next += 1;
    }
    found
}

/// Writes a running process: names, threads, mappings. One that ends meanwhile is left out.
pub(super) fn process(
    writer: &mut Writer<File>,
    attr: &Attr,
    pid: i32,
    build_ids: &mut HashMap<String, Option<BuildId>>,
    keeper: &mut BuildIdCache,
) -> Result<()> {
    let parent = parent(pid).unwrap_or(0);
    let first = Task { pid, parent_pid: parent, tid: pid, parent_tid: parent };
    writer.records(Encoder::fork(&first, attr, BEFORE).finish())?;
    name(writer, attr, pid, pid)?;
    mappings(writer, attr, pid, build_ids, keeper)?;
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let tids = tasks.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for tid in tids.filter(|tid| *tid != pid) {
        let thread = Task { pid, parent_pid: pid, tid, parent_tid: pid };
        writer.records(Encoder::fork(&thread, attr, BEFORE).finish())?;
        name(writer, attr, pid, tid)?;
    }
    Ok(())
}

fn parent(pid: i32) -> Option<i32> {
    status(pid, "PPid:")
}

/// Returns a number that `/proc` says of a process or thread.
fn status(pid: i32, field: &str) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(field))?.trim().parse().ok()
}

fn name(writer: &mut Writer<File>, attr: &Attr, pid: i32, tid: i32) -> Result<()> {
    let Some(name) = text(Path::new(&format!("/proc/{pid}/task/{tid}/comm"))) else { return Ok(()) };
    let comm = Comm { pid, tid, name: name.as_bytes(), is_exec: false };
    writer.records(Encoder::comm(&comm, attr, BEFORE).finish())
}

fn mappings(
    writer: &mut Writer<File>,
    attr: &Attr,
    pid: i32,
    build_ids: &mut HashMap<String, Option<BuildId>>,
    keeper: &mut BuildIdCache,
) -> Result<()> {
    let has_data = attr.flags & attr_flag::MMAP_DATA != 0;
    for line in fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default().lines() {
        let Some((mut mapping, path)) = parse_mapping(pid, line) else { continue };
        if !mapping.is_executable && !has_data {
            continue;
        }
        if path.starts_with('/') {
            // as the process sees it, which may be in a container
            let id = build_ids.entry(path.to_owned());
            mapping.build_id =
                *id.or_insert_with(|| build_id_of_file(Path::new(&format!("/proc/{pid}/root{path}"))));
        }
        if let Some(id) = mapping.build_id {
            writer.build_id(false, mapping.path, id);
        }
        if mapping.is_executable {
            keeper.map(
                pid,
                mapping.start..mapping.start.saturating_add(mapping.len),
                mapping.path,
                mapping.build_id,
            );
        }
        writer.records(Encoder::mapping(&mapping, attr, BEFORE).finish())?;
    }
    Ok(())
}

/// Returns a line of `/proc/PID/maps`, if it maps something readable.
fn parse_mapping(pid: i32, line: &str) -> Option<(Mmap<'_>, &str)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let permissions = words.next()?;
    let file_offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let (device, inode) = (words.next()?, words.next()?);
    let path = words.next()?.trim_start();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    if !permissions.starts_with('r') && !permissions.contains('x') {
        return None;
    }
    let path = if path.is_empty() { "//anon" } else { path };
    let file = || {
        let (major, minor) = device.split_once(':')?;
        let number = |text| u32::from_str_radix(text, 16).ok();
        shared_file_of(number(major)?, number(minor)?, inode.parse().ok()?)
    };
    let mapping = Mmap {
        pid,
        tid: pid,
        mode: CpuMode::User,
        start,
        len: end.checked_sub(start)?,
        file_offset: if path.starts_with('/') && path != "//anon" { file_offset } else { start },
        path: path.as_bytes(),
        is_executable: permissions.contains('x'),
        build_id: None,
        shared_file: permissions.ends_with('s').then(file).flatten(),
    };
    Some((mapping, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_becomes_a_mapping() {
        let (mapping, _) =
            parse_mapping(7, "7f00-8f00 r-xp 00001000 fe:00 1234                       /usr/lib/a b.so")
                .expect("well-formed");
        assert_eq!((mapping.start, mapping.len, mapping.file_offset), (0x7f00, 0x1000, 0x1000));
        assert_eq!((mapping.path, mapping.is_executable), (&b"/usr/lib/a b.so"[..], true));
        let (heap, _) = parse_mapping(7, "1000-2000 rw-p 00000000 00:00 0      [heap]").expect("well-formed");
        assert_eq!((heap.path, heap.is_executable, heap.file_offset), (&b"[heap]"[..], false, 0x1000));
        let (nameless, _) = parse_mapping(7, "1000-2000 rw-p 00000000 00:00 0 ").expect("well-formed");
        assert_eq!(nameless.path, b"//anon");
        assert_eq!((mapping.shared_file, heap.shared_file), (None, None));
        let (shared, _) = parse_mapping(7, "1000-2000 rw-s 00003000 fe:0a 43144   /dev/zero (deleted)")
            .expect("well-formed");
        assert_eq!((shared.shared_file, shared.file_offset), (Some((0xfe, 10, 43144)), 0x3000));
        assert!(parse_mapping(7, "1000-2000 ---p 00000000 00:00 0 ").is_none());
        assert!(parse_mapping(7, "nonsense").is_none());
    }
}
