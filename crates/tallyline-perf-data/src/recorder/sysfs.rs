//! PMUs as sysfs describes them: the syntax of their events, and its translation to bits.

use crate::attr::Attr;
use std::fs;
use std::path::{Path, PathBuf};

/// The performance monitoring units (PMUs) of a machine and their named events, from
/// `/sys/bus/event_source/devices` or, in tests, a tree like it.
#[derive(Clone, Debug)]
pub struct Pmus {
    root: PathBuf,
    tracefs: PathBuf,
}

/// A performance monitoring unit (PMU): its name, the number of its type, and its folder in sysfs.
#[derive(Clone, Debug)]
pub(super) struct Pmu {
    pub(super) name: String,
    pub(super) kind: u32,
    folder: PathBuf,
}

impl Default for Pmus {
    /// Returns this machine's PMUs.
    fn default() -> Self {
        let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from);
        let tracefs = places.iter().find(|place| place.join("events").exists()).unwrap_or(&places[0]).clone();
        Self { tracefs, ..Self::at("/sys/bus/event_source/devices") }
    }
}

impl Pmus {
    /// Returns the performance monitoring units (PMUs) below the folder `root`, which is laid out like
    /// `/sys/bus/event_source/devices` and read when one is looked up; its subfolder `tracing` stands for tracefs.
    pub(crate) fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { tracefs: root.join("tracing"), root }
    }

    /// Returns the folder of tracefs.
    pub(super) fn tracefs(&self) -> &Path {
        &self.tracefs
    }

    pub(super) fn get(&self, name: &str) -> Option<Pmu> {
        // a name, not a way through the file system
        if name.is_empty() || name.contains(['/', '.']) {
            return None;
        }
        let folder = self.root.join(name);
        let kind = text(&folder.join("type"))?.parse().ok()?;
        Some(Pmu { name: name.to_owned(), kind, folder })
    }

    /// Returns the one with a number.
    pub(super) fn of_kind(&self, kind: u32) -> Option<Pmu> {
        self.all().into_iter().find(|pmu| pmu.kind == kind)
    }

    /// Returns all PMUs, by name.
    pub(super) fn all(&self) -> Vec<Pmu> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.iter().filter_map(|name| self.get(name)).collect()
    }

    /// Returns the kinds of core of a hybrid machine, `cpu_core` and `cpu_atom`; none elsewhere.
    pub(super) fn hybrid_cores(&self) -> Vec<Pmu> {
        let cores: Vec<_> = self.all().into_iter().filter(|pmu| pmu.name.starts_with("cpu_")).collect();
        cores.into_iter().filter(|pmu| pmu.folder.join("cpus").exists()).collect()
    }

    /// Returns those that have an event of this name: the CPUs' own PMUs first.
    pub(super) fn with_event(&self, event: &str) -> Vec<Pmu> {
        let mut found: Vec<_> = self.all().into_iter().filter(|pmu| pmu.event(event).is_some()).collect();
        found.sort_by_key(|pmu| !pmu.name.starts_with("cpu"));
        found
    }
}

impl Pmu {
    /// Returns the CPUs that it counts on: those of a kind of core, or the one that counts for a socket.
    pub(super) fn cpus(&self) -> Option<Vec<u32>> {
        let list = text(&self.folder.join("cpus")).or_else(|| text(&self.folder.join("cpumask")))?;
        Some(cpu_list(&list)).filter(|cpus| !cpus.is_empty())
    }

    /// Returns an event as the PMU itself writes it.
    pub(super) fn event(&self, name: &str) -> Option<String> {
        let is_plain = !name.is_empty() && !name.contains(['/', '.']);
        is_plain.then(|| text(&self.folder.join("events").join(name))).flatten()
    }

    /// Returns `true` if the events of the PMU have a term of this name (a file in its folder `format`).
    pub(super) fn has_term(&self, name: &str) -> bool {
        !name.contains(['/', '.']) && self.folder.join("format").join(name).exists()
    }

    /// Returns a capability that its driver states.
    pub(super) fn capability(&self, name: &str) -> Option<String> {
        text(&self.folder.join("caps").join(name))
    }

    /// Returns the names of its events and of its terms, for messages.
    pub(super) fn vocabulary(&self) -> Vec<String> {
        let mut names = Vec::new();
        for kind in ["events", "format"] {
            let entries = fs::read_dir(self.folder.join(kind)).into_iter().flatten().flatten();
            names.extend(entries.filter_map(|entry| entry.file_name().into_string().ok()));
        }
        // scales and units are no events
        names.retain(|name| !name.contains('.'));
        names.sort();
        names
    }

    /// Puts a term's value into the bits that the PMU has for it.
    pub(super) fn set(&self, attr: &mut Attr, term: &str, value: u64) -> Result<(), String> {
        let format = Some(term).filter(|term| !term.contains(['/', '.']));
        let format = format.and_then(|term| text(&self.folder.join("format").join(term)));
        let (word, ranges) = match (&format, term) {
            (Some(format), _) => {
                format.split_once(':').ok_or_else(|| format!("sysfs describes it as `{format}`"))?
            }
            (None, "config" | "config1" | "config2" | "config3") => (term, "0-63"),
            (None, _) => return Err("no such term".to_owned()),
        };
        let word = match word {
            "config" => &mut attr.config,
            "config1" => &mut attr.config1,
            "config2" => &mut attr.config2,
            "config3" => &mut attr.config3,
            other => return Err(format!("sysfs puts it into {other}, which is not known here")),
        };
        place(word, ranges, value)
    }
}

/// Spreads a value over ranges of bits such as `0-7,32-35`, the lowest first.
fn place(word: &mut u64, ranges: &str, value: u64) -> Result<(), String> {
    let mut left = value;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bits = (first.trim().parse::<u32>(), last.trim().parse::<u32>());
        let (Ok(first), Ok(last)) = bits else {
            return Err(format!("sysfs describes its bits as `{ranges}`"));
        };
        if first > last || last > 63 {
            return Err(format!("sysfs describes its bits as `{ranges}`"));
        }
        let width = last - first + 1;
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        *word = *word & !(mask << first) | (left & mask) << first;
        left = left.checked_shr(width).unwrap_or(0);
    }
    if left == 0 { Ok(()) } else { Err(format!("{value:#x} is too large for it")) }
}

/// Parses a list of CPUs such as `0-3,8`.
pub(super) fn cpu_list(list: &str) -> Vec<u32> {
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?))
    });
    // no machine has more; a list from elsewhere must not fill the memory
    ranges.flat_map(|(first, last)| first..=last.min(1 << 16)).collect()
}

/// Returns a file's text without the line's end.
pub(super) fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A made-up tree of files, each with one line.
    pub(in super::super) struct Tree(PathBuf);

    impl Tree {
        pub(in super::super) fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("tallyline-pmus-{}-{name}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().expect("within the tree")).expect("a temporary folder");
                fs::write(path, format!("{text}\n")).expect("a temporary file");
            }
            Self(root)
        }

        pub(in super::super) fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn values_are_spread_over_the_bits_that_sysfs_names() {
        let mut word = 0;
        place(&mut word, "0-7,32-35", 0xabc).expect("fits");
        assert_eq!(word, 0xa_0000_00bc);
        place(&mut word, "63", 1).expect("fits");
        assert_eq!(word >> 63, 1);
        assert!(place(&mut word, "0-3", 0x10).is_err(), "a value that does not fit");
        assert!(place(&mut word, "9-3", 1).is_err() && place(&mut word, "0-64", 1).is_err());
        assert!(place(&mut word, "0-63", u64::MAX).is_ok());
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpu_list("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(cpu_list(""), [0; 0]);
    }
}
