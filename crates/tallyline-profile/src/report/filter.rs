//! Which samples are shown.

use super::operand::Outcome;
use super::profile::{Point, Profile};

/// What samples have to be. An empty list lets everything through.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Names of threads.
    pub comms: Vec<String>,
    /// Files, by path or by name.
    pub dsos: Vec<String>,
    /// Functions.
    pub symbols: Vec<String>,
    /// Processes.
    pub pids: Vec<i32>,
    /// Threads.
    pub tids: Vec<i32>,
    /// CPUs.
    pub cpus: Vec<u32>,
    /// Types, with or without `struct` before the name.
    pub types: Vec<String>,
    /// Loads or stores, as the data source says.
    pub operation: Option<Operation>,
}

/// What kind of memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// One that reads.
    Load,
    /// One that writes.
    Store,
}

impl Operation {
    fn accepts(self, point: &Point) -> bool {
        point.source.is_some_and(|source| match self {
            Operation::Load => source.is_load(),
            Operation::Store => source.is_store(),
        })
    }
}

impl Filter {
    /// Whether every sample gets through.
    pub fn is_empty(&self) -> bool {
        self.comms.is_empty()
            && self.dsos.is_empty()
            && self.symbols.is_empty()
            && self.pids.is_empty()
            && self.tids.is_empty()
            && self.cpus.is_empty()
            && self.types.is_empty()
            && self.operation.is_none()
    }

    /// Whether a sample gets through.
    pub fn accepts(&self, profile: &Profile, point: &Point) -> bool {
        let one_of = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
        (self.pids.is_empty() || self.pids.contains(&point.pid))
            && (self.tids.is_empty() || self.tids.contains(&point.tid))
            && (self.cpus.is_empty() || self.cpus.contains(&point.cpu))
            && one_of(&self.comms, profile.text(point.comm))
            && (self.dsos.is_empty() || self.is_in(profile, point))
            && (self.symbols.is_empty() || {
                let symbol = profile.symbol(profile.at(point.charged).symbol);
                symbol.is_some_and(|symbol| one_of(&self.symbols, profile.text(symbol.name)))
            })
            && (self.types.is_empty() || self.is_of(profile, point))
            && self.operation.is_none_or(|operation| operation.accepts(point))
    }

    fn is_in(&self, profile: &Profile, point: &Point) -> bool {
        let Some(place) = profile.places.get(point.charged as usize) else { return false };
        let path = profile.dso(place.dso).map(|dso| dso.path.as_str());
        let name = profile.dso_name(place.dso);
        self.dsos.iter().any(|dso| dso == name || Some(dso.as_str()) == path)
    }

    fn is_of(&self, profile: &Profile, point: &Point) -> bool {
        let name = match profile.outcome(point) {
            Outcome::Typed(operand) => profile.text(operand.name),
            Outcome::Pseudo(pseudo) => pseudo.name(),
            Outcome::Untyped(_) => "(unknown)",
        };
        self.types.iter().any(|one| is_called(name, one))
    }
}

/// Whether a type's name is the one asked for, which may leave out `struct`, `union`, `class` or `enum`.
pub fn is_called(name: &str, asked: &str) -> bool {
    name == asked
        || name.split_once(' ').is_some_and(|(kind, rest)| {
            matches!(kind, "struct" | "union" | "class" | "enum") && rest == asked
        })
}
