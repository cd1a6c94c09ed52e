//! The filter of samples to show.

use super::names::NameId;
use super::operand::Outcome;
use super::pattern::NameKind;
use super::profile::Profile;
use super::samples::SampleGroup;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Conditions (process, function, type, …) that samples must all satisfy to be in a report. An empty list or `None`
/// is no condition.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The events to show, by name.
    pub events: Option<HashSet<String>>,
    /// The names of threads to show.
    pub comms: Option<HashSet<String>>,
    /// The files to show, by path.
    pub dsos: Option<HashSet<String>>,
    /// The functions to show, by name.
    pub symbols: Option<HashSet<String>>,
    /// The processes to show, by id.
    pub pids: Vec<i32>,
    /// The threads to show, by id.
    pub tids: Vec<i32>,
    /// The CPUs to show, by number.
    pub cpus: Vec<u32>,
    /// The types to show, by name.
    pub types: Option<HashSet<String>>,
    /// The kind of access to show, loads or stores, as the data source says.
    pub operation: Option<Operation>,
}

/// The kind of memory access that a report is limited to: loads or stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Accesses that read memory.
    Load,
    /// Accesses that write memory.
    Store,
}

impl Operation {
    fn accepts(self, group: &SampleGroup) -> bool {
        group.source.is_some_and(|source| match self {
            Operation::Load => source.is_load(),
            Operation::Store => source.is_store(),
        })
    }
}

impl Filter {
    /// Returns `true` if the samples of a group (equal ones, merged) satisfy all conditions of the filter.
    pub fn accepts(&self, profile: &Profile, group: &SampleGroup) -> bool {
        let one_of = |list: &Option<HashSet<String>>, kind| {
            let is_in = |list: &HashSet<String>| {
                name_of(profile, group, kind).is_some_and(|name| list.contains(name))
            };
            list.as_ref().is_none_or(is_in)
        };
        (self.pids.is_empty() || self.pids.contains(&group.pid))
            && (self.tids.is_empty() || self.tids.contains(&group.tid))
            && (self.cpus.is_empty() || group.cpu.is_some_and(|cpu| self.cpus.contains(&cpu)))
            && one_of(&self.events, NameKind::Event)
            && one_of(&self.comms, NameKind::Thread)
            && one_of(&self.dsos, NameKind::File)
            && one_of(&self.symbols, NameKind::Function)
            && (one_of(&self.types, NameKind::Type) || self.is_in_node(profile, group))
            && self.operation.is_none_or(|operation| operation.accepts(group))
    }

    /// Returns `true` if a sample accesses a part of a container's node, and the node's type passes the filter.
    fn is_in_node(&self, profile: &Profile, group: &SampleGroup) -> bool {
        let node = profile.outcome(group).operand().and_then(|operand| operand.within);
        node.zip(self.types.as_ref()).is_some_and(|(node, types)| types.contains(profile.text(node.name)))
    }
}

/// Returns the name of some kind that a sample has: what filters compare.
fn name_of<'p>(profile: &'p Profile, group: &SampleGroup, kind: NameKind) -> Option<&'p str> {
    Some(match kind {
        NameKind::Thread => profile.text(group.comm),
        NameKind::Event => profile.info().events.get(group.event as usize)?.name.as_str(),
        NameKind::File => {
            let dso = profile.place(group.charged).dso.and_then(|dso| profile.dso(dso));
            dso.map_or("[unknown]", |dso| dso.path())
        }
        NameKind::Function => profile.text(profile.function(group.charged)?.name),
        NameKind::Type => match profile.outcome(group) {
            Outcome::Typed(operand) => profile.text(operand.name),
            Outcome::Pseudo(pseudo) => pseudo.name(),
            Outcome::Untyped(_) => "(unknown)",
        },
    })
}

/// Returns the distinct names of a kind (types, functions, files, threads, events) that samples of the profile
/// have.
pub fn sampled_names(profile: &Profile, kind: NameKind) -> BTreeSet<&str> {
    // many samples are at one place
    let mut seen = HashSet::new();
    let key = |group: &SampleGroup| match kind {
        NameKind::Thread => group.comm.0 as usize,
        NameKind::Event => group.event as usize,
        _ => group.charged.position(),
    };
    let groups = profile.groups().iter().filter(|group| seen.insert(key(group)));
    let node = |group: &SampleGroup| {
        let within = profile.outcome(group).operand()?.within.filter(|_| kind == NameKind::Type)?;
        Some(profile.text(within.name))
    };
    groups.flat_map(|group| name_of(profile, group, kind).into_iter().chain(node(group))).collect()
}

/// Returns the names, with all of their scopes, of the types that samples of the profile access, each with the names that
/// [`sampled_names`] has for it.
pub fn qualified_types(profile: &Profile) -> BTreeMap<String, BTreeSet<&str>> {
    let mut types: HashMap<_, NameId> = HashMap::new();
    for operand in profile.groups().iter().filter_map(|group| profile.outcome(group).operand()) {
        types.insert(operand.ty, operand.name);
        types.extend(operand.within.map(|node| (node.ty, node.name)));
    }
    let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (ty, name) in types {
        found.entry(profile.joined().qualified_name(ty)).or_default().insert(profile.text(name));
    }
    found
}
