//! The feature sections: the recording's description of the machine and the run.

use crate::Result;
use crate::bytes::{ByteOrder, Cursor, until_nul};
use std::collections::BTreeMap;

/// The number of an optional section in a perf.data header, such as the host name's: `HEADER_*` in perf's
/// `util/header.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Feature(pub(crate) u64);

impl Feature {
    pub(crate) const TRACING_DATA: Self = Self(1);
    pub(crate) const BUILD_ID: Self = Self(2);
    pub(crate) const HOSTNAME: Self = Self(3);
    pub(crate) const OS_RELEASE: Self = Self(4);
    pub(crate) const VERSION: Self = Self(5);
    pub(crate) const ARCH: Self = Self(6);
    pub(crate) const CPUS: Self = Self(7);
    pub(crate) const CPU_DESCRIPTION: Self = Self(8);
    pub(crate) const CPU_ID: Self = Self(9);
    pub(crate) const TOTAL_MEMORY: Self = Self(10);
    pub(crate) const COMMAND_LINE: Self = Self(11);
    pub(crate) const EVENT_DESC: Self = Self(12);
    pub(crate) const CPU_TOPOLOGY: Self = Self(13);
    pub(crate) const NODES: Self = Self(14);
    pub(crate) const PMU_MAPPINGS: Self = Self(16);
    pub(crate) const GROUP_DESC: Self = Self(17);
    pub(crate) const CACHE: Self = Self(20);
    pub(crate) const SAMPLE_TIME: Self = Self(21);
    pub(crate) const MEMORY_TOPOLOGY: Self = Self(22);
}

/// A CPU cache of the recording machine, as the perf.data header describes it: level, size, line size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLevel {
    /// The level of the cache; 1 is the closest to the CPU.
    pub(crate) level: u32,
    /// The line size of the cache in bytes.
    pub(crate) line_size: u32,
    /// The kind of contents that the cache holds: `Data`, `Instruction` or `Unified`.
    pub(crate) kind: String,
    /// The size of the cache as text, such as `32K`.
    pub(crate) size: String,
    /// The CPUs that share the cache, as a list such as `0-3`.
    pub(crate) cpus: String,
}

impl CacheLevel {
    /// Describes a CPU cache: `kind` is `Data`, `Instruction` or `Unified`, `size` a text such as `32K`, `cpus` a
    /// list of the CPUs that share it such as `0-1`.
    pub fn new(
        level: u32,
        line_size: u32,
        kind: impl Into<String>,
        size: impl Into<String>,
        cpus: impl Into<String>,
    ) -> Self {
        Self { level, line_size, kind: kind.into(), size: size.into(), cpus: cpus.into() }
    }

    /// Returns the cache's level; 1 is the closest to the CPU.
    #[inline]
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Returns the cache's line size in bytes.
    #[inline]
    pub fn line_size(&self) -> u32 {
        self.line_size
    }

    /// Returns the kind of contents that the cache holds: `Data`, `Instruction` or `Unified`.
    #[inline]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the cache's size as a text, such as `32K`.
    #[inline]
    pub fn size(&self) -> &str {
        &self.size
    }
}

/// A group of a recording's sampled events that were scheduled and counted together (`perf record -e '{a,b}'`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventGroup {
    /// The name it was given, often empty.
    pub(crate) name: String,
    /// The index of the leader.
    pub(crate) leader: usize,
    /// The number of its members, the leader included.
    pub(crate) members: usize,
}

impl EventGroup {
    /// Returns the name of the group of events (`perf record -e 'NAME{a,b}'`), often empty.
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the index of the event group's leader, its first event, in the recording's list of sampled events.
    #[inline]
    pub fn leader(&self) -> usize {
        self.leader
    }

    /// Returns the number of sampled events in the event group, the leader included.
    #[inline]
    pub fn members(&self) -> usize {
        self.members
    }
}

/// The optional sections of a perf.data header, which describe the recording machine and the run. A field is `None`
/// or empty where the file lacks the section.
#[derive(Clone, Debug, Default)]
pub struct Features {
    sections: BTreeMap<Feature, (Vec<u8>, u64)>,
    /// The host name of the recording machine.
    pub(crate) hostname: Option<String>,
    /// The kernel release of the recording machine, as `uname -r` prints it.
    pub(crate) os_release: Option<String>,
    /// The version of perf, or `tallyline` and its version.
    pub(crate) version: Option<String>,
    /// The architecture of the recording machine, as `uname -m` prints it.
    pub(crate) arch: Option<String>,
    /// The numbers of configured CPUs and of those that were online.
    pub(crate) cpus: Option<(u32, u32)>,
    /// The name of the recording machine's CPU model.
    pub(crate) cpu_description: Option<String>,
    /// perf's identifier of the CPU model, such as `AuthenticAMD,25,1,1`; on Arm the register `MIDR_EL1`.
    pub(crate) cpu_id: Option<String>,
    /// The memory of the recording machine in kilobytes.
    pub(crate) total_memory: Option<u64>,
    /// The command line of the recorder.
    pub(crate) command_line: Vec<String>,
    /// The core id and the socket id of each CPU.
    pub(crate) topology: Vec<(u32, u32)>,
    /// The NUMA nodes of the recording machine: number, and ranges of CPUs.
    pub(crate) nodes: Vec<(u32, Vec<(u32, u32)>)>,
    /// The number and the name of each PMU.
    pub(crate) pmus: Vec<(u32, String)>,
    /// The groups of sampled events that were scheduled and counted together.
    pub(crate) groups: Vec<EventGroup>,
    /// The CPU caches of the recording machine.
    pub(crate) caches: Vec<CacheLevel>,
    /// The times of the first and the last sample.
    pub(crate) sample_time: Option<(u64, u64)>,
}

impl Features {
    /// Returns the recording machine's architecture, as `uname -m` prints it; `None` if the file does not say it.
    #[inline]
    pub fn arch(&self) -> Option<&str> {
        self.arch.as_deref()
    }

    /// Returns the event type number and the name of each performance monitoring unit of the recording machine.
    #[inline]
    pub fn pmus(&self) -> &[(u32, String)] {
        &self.pmus
    }

    /// Returns the recording machine's host name; `None` if the file does not say it.
    #[inline]
    pub fn hostname(&self) -> Option<&str> {
        self.hostname.as_deref()
    }

    /// Returns the recording machine's kernel release, as `uname -r` prints it; `None` if the file does not say it.
    #[inline]
    pub fn os_release(&self) -> Option<&str> {
        self.os_release.as_deref()
    }

    /// Returns the name of the recording machine's CPU model; `None` if the file does not say it.
    #[inline]
    pub fn cpu_description(&self) -> Option<&str> {
        self.cpu_description.as_deref()
    }

    /// Returns perf's identifier of the recording machine's CPU model, such as `AuthenticAMD,25,1,1` (on Arm the
    /// register `MIDR_EL1`); `None` if the file does not say it.
    #[inline]
    pub fn cpu_id(&self) -> Option<&str> {
        self.cpu_id.as_deref()
    }

    /// Returns the core id and socket id of each CPU of the recording machine, indexed by CPU number.
    #[inline]
    pub fn topology(&self) -> &[(u32, u32)] {
        &self.topology
    }

    /// Returns the NUMA nodes of the recording machine: each node's number and its ranges (first, last) of CPUs.
    #[inline]
    pub fn nodes(&self) -> &[(u32, Vec<(u32, u32)>)] {
        &self.nodes
    }

    /// Returns the groups of sampled events (`perf record -e '{a,b}'`) that were scheduled and counted together; an
    /// event alone is in none.
    #[inline]
    pub fn groups(&self) -> &[EventGroup] {
        &self.groups
    }

    pub(super) fn add(&mut self, feature: Feature, bytes: &[u8], offset: u64) {
        self.sections.insert(feature, (bytes.to_vec(), offset));
    }

    /// Returns the bytes of a section, and where they were.
    pub(super) fn sections(&self, feature: Feature) -> impl Iterator<Item = (&[u8], u64)> {
        self.sections.get(&feature).map(|(bytes, offset)| (bytes.as_slice(), *offset)).into_iter()
    }

    /// Returns the line size in bytes of the recording machine's first-level caches; `None` if the file does not
    /// say it.
    pub fn line_size(&self) -> Option<u32> {
        let closest = self.caches.iter().filter(|cache| cache.kind != "Instruction" && cache.line_size > 0);
        closest.min_by_key(|cache| cache.level).map(|cache| cache.line_size)
    }

    /// Reads what is known here. A damaged section is a warning, and as if it were not there.
    pub(super) fn parse(&mut self, order: ByteOrder, warnings: &mut Vec<String>) {
        for (feature, (bytes, offset)) in std::mem::take(&mut self.sections) {
            if let Err(error) = self.parse_one(feature, Cursor::new(&bytes, order, offset)) {
                warnings.push(error.to_string());
            }
            self.sections.insert(feature, (bytes, offset));
        }
    }

    fn parse_one(&mut self, feature: Feature, mut at: Cursor<'_>) -> Result<()> {
        let at = &mut at;
        match feature {
            Feature::HOSTNAME => self.hostname = Some(text(at)?),
            Feature::OS_RELEASE => self.os_release = Some(text(at)?),
            Feature::VERSION => self.version = Some(text(at)?),
            Feature::ARCH => self.arch = Some(text(at)?),
            Feature::CPUS => self.cpus = Some((at.u32("number of CPUs")?, at.u32("number of CPUs")?)),
            Feature::CPU_DESCRIPTION => self.cpu_description = Some(text(at)?),
            Feature::CPU_ID => self.cpu_id = Some(text(at)?),
            Feature::TOTAL_MEMORY => self.total_memory = Some(at.u64("size of the memory")?),
            Feature::COMMAND_LINE => self.command_line = texts(at)?,
            Feature::CPU_TOPOLOGY => {
                self.topology = topology(at, self.cpus.map_or(0, |(available, _)| available))?
            }
            Feature::PMU_MAPPINGS => self.pmus = list(at, |at| Ok((at.u32("number of a PMU")?, text(at)?)))?,
            Feature::GROUP_DESC => {
                self.groups = list(at, |at| {
                    let name = text(at)?;
                    let leader = at.u32("leader of a group")? as usize;
                    Ok(EventGroup { name, leader, members: at.u32("members of a group")? as usize })
                })?;
            }
            Feature::NODES => {
                self.nodes = list(at, |at| {
                    let node = at.u32("number of a node")?;
                    at.u64("memory of a node")?;
                    at.u64("memory of a node")?;
                    Ok((node, ranges(&text(at)?)))
                })?;
            }
            Feature::CACHE => {
                at.u32("version of the caches")?;
                self.caches = list(at, cache)?;
            }
            Feature::SAMPLE_TIME => self.sample_time = Some((at.u64("first time")?, at.u64("last time")?)),
            _ => {}
        }
        Ok(())
    }
}

/// Returns the numbers of a list such as `0-3,8`, as first and last of each range; what is none is left out.
fn ranges(list: &str) -> Vec<(u32, u32)> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    list.split(',').filter_map(range).collect()
}

fn cache(at: &mut Cursor<'_>) -> Result<CacheLevel> {
    let level = at.u32("a cache")?;
    let line_size = at.u32("a cache")?;
    at.u64("a cache")?;
    Ok(CacheLevel { level, line_size, kind: text(at)?, size: text(at)?, cpus: text(at)? })
}

/// Lists of siblings as text, then core and socket of each CPU; old recordings end before.
fn topology(at: &mut Cursor<'_>, cpus: u32) -> Result<Vec<(u32, u32)>> {
    texts(at)?;
    texts(at)?;
    let mut places = Vec::new();
    for _ in 0..cpus {
        if at.is_empty() {
            break;
        }
        places.push((at.u32("core of a CPU")?, at.u32("socket of a CPU")?));
    }
    Ok(places)
}

/// Reads a text: its length, and that many bytes, padded with zeroes.
pub(super) fn text(at: &mut Cursor<'_>) -> Result<String> {
    let len = at.u32("length of a text")?;
    Ok(String::from_utf8_lossy(until_nul(at.take(len.into(), "a text")?)).into_owned())
}

fn texts(at: &mut Cursor<'_>) -> Result<Vec<String>> {
    list(at, text)
}

/// Reads a count, and that many elements; nothing is allocated for them before they are there.
fn list<T>(at: &mut Cursor<'_>, mut read: impl FnMut(&mut Cursor<'_>) -> Result<T>) -> Result<Vec<T>> {
    let count = at.u32("length of a list")?;
    (0..count).map(|_| read(at)).collect()
}
