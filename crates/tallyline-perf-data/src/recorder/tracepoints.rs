//! Tracepoints and probes by name, from tracefs.

use super::request::EventRequest;
use super::sysfs::{Pmus, text};
use crate::names::TRACEPOINT;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Returns the numbers and names of the tracepoints that `system:name` stands for; `*` and `?` match as in a shell.
///
/// # Errors
/// One line: no tracefs, no right to read it, no such tracepoint.
pub(super) fn find(pmus: &Pmus, system: &str, name: &str) -> Result<Vec<(u64, String)>, String> {
    let root = pmus.tracefs();
    let events = root.join("events");
    let systems = folders(&events).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            format!("tracepoints cannot be read in {}: run as root", root.display())
        }
        _ => format!("no tracepoints in {}: mount it (mount -t tracefs nodev {0})", root.display()),
    })?;
    let mut found = Vec::new();
    for system in systems.iter().filter(|known| matches(system, known)) {
        for name in folders(&events.join(system)).unwrap_or_default() {
            let id = text(&events.join(system).join(&name).join("id"));
            found.extend(id.and_then(|id| id.parse().ok()).map(|id| (id, format!("{system}:{name}"))));
        }
    }
    if found.is_empty() {
        return Err(format!("no tracepoints of a system `{system}`; see {}", events.display()));
    }
    let named: Vec<_> = found
        .iter()
        .filter(|(_, full)| full.split_once(':').is_some_and(|(_, known)| matches(name, known)))
        .cloned()
        .collect();
    if named.is_empty() {
        let near: Vec<_> = found.iter().map(|(_, name)| name.as_str()).take(8).collect();
        return Err(format!("no tracepoint `{system}:{name}`; there are {} …", near.join(", ")));
    }
    Ok(named)
}

/// Returns the names of the folders in a folder, in order.
fn folders(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Returns `true` if a shell's pattern (`*`, `?`) matches all of a name, in time of the product of their lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let name = name.as_bytes();
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for letter in pattern.bytes() {
        let mut next = vec![false; name.len() + 1];
        for (at, _) in reached.iter().enumerate().filter(|(_, is_reached)| **is_reached) {
            match letter {
                b'*' => next[at..].fill(true),
                b'?' if at < name.len() => next[at + 1] = true,
                letter if name.get(at) == Some(&letter) => next[at + 1] = true,
                _ => {}
            }
        }
        reached = next;
    }
    reached[name.len()]
}

/// Returns the formats of the tracepoints among events, as perf stores them; nothing where there are none.
pub(super) fn tracing_data(requests: &[EventRequest]) -> Vec<u8> {
    let named = requests.iter().filter(|request| request.attr.kind == TRACEPOINT);
    let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for request in named {
        let mut parts = request.name.split(':');
        if let (Some(system), Some(name)) = (parts.next(), parts.next()) {
            let names = systems.entry(system).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if systems.is_empty() {
        return Vec::new();
    }
    let pmus = Pmus::default();
    let events = pmus.tracefs().join("events");
    let read = |path: &Path| fs::read(path).unwrap_or_default();
    let sized = |bytes: &mut Vec<u8>, content: Vec<u8>| {
        bytes.extend((content.len() as u64).to_ne_bytes());
        bytes.extend(content);
    };
    let mut bytes = b"\x17\x08\x44tracing0.6\0".to_vec();
    bytes.extend([u8::from(cfg!(target_endian = "big")), size_of::<usize>() as u8]);
    bytes.extend((super::os::page_size() as u32).to_ne_bytes());
    for part in ["header_page", "header_event"] {
        bytes.extend(part.as_bytes());
        bytes.push(0);
        sized(&mut bytes, read(&events.join(part)));
    }
    // no formats of ftrace's own
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend((systems.len() as u32).to_ne_bytes());
    for (system, names) in &systems {
        bytes.extend(system.as_bytes());
        bytes.push(0);
        bytes.extend((names.len() as u32).to_ne_bytes());
        for name in names {
            sized(&mut bytes, read(&events.join(system).join(name).join("format")));
        }
    }
    // the kernel's symbols, its formats of printk, names of threads: the recording has what is needed of them
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    sized(&mut bytes, Vec::new());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::sysfs::tests::Tree;

    #[test]
    fn tracepoints_are_found_by_names_and_patterns() {
        let files = [
            ("tracing/events/sched/sched_switch/id", "316"),
            ("tracing/events/sched/sched_wakeup/id", "318"),
            ("tracing/events/sched/enable", "0"),
            ("tracing/events/irq/irq_handler_entry/id", "7"),
        ];
        let tree = Tree::new("tracepoints", &files);
        let pmus = Pmus::at(tree.path(""));
        let names = |system: &str, name: &str| {
            find(&pmus, system, name).map(|found| found.into_iter().map(|(id, _)| id).collect::<Vec<_>>())
        };
        assert_eq!(names("sched", "sched_switch"), Ok(vec![316]));
        assert_eq!(names("sched", "*"), Ok(vec![316, 318]));
        assert_eq!(names("*", "*_entr?"), Ok(vec![7]));
        let said = names("sched", "sched_swich").expect_err("misspelt");
        assert!(said.contains("no tracepoint `sched:sched_swich`; there are sched:sched_switch"), "{said}");
        assert!(names("net", "x").expect_err("no such system").contains("`net`"));
        let nowhere = find(&Pmus::at("/no/such/folder"), "sched", "x").expect_err("no tracefs");
        assert!(nowhere.contains("mount -t tracefs"), "{nowhere}");
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("a*c", "abbc", true),
            ("a*c", "abbcd", false),
            ("*", "", true),
            ("?", "", false),
            ("**a?", "xxab", true),
            ("abc", "abc", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
