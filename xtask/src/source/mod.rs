//! The sources of the workspace as a graph: crates, modules, the items they define, the paths they name.
//!
//! Sources are parsed with `syn` and nothing is expanded or type-checked: a path is followed by its
//! names through modules, `use` declarations and globs, the way the compiler resolves it. Method calls
//! and associated items are no edges. Code for tests (`#[cfg(test)]`, `tests/`) is left out.

mod load;
mod references;
mod resolve;

#[cfg(test)]
pub(crate) use load::from_text;
pub(crate) use load::{files, load};
pub(crate) use references::is_test;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

/// The index of a crate of [`Sources`].
pub(crate) type CrateId = usize;
/// The index of a module of [`Sources`].
pub(crate) type ModuleId = usize;

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Location {
    /// The file, relative to the root of the workspace.
    pub(crate) file: PathBuf,
    /// The line, from 1 on.
    pub(crate) line: usize,
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// A crate: one library or program of a package.
#[derive(Debug)]
pub(crate) struct Crate {
    /// The package, as Cargo.toml names it.
    pub(crate) package: String,
    /// The module of its root file.
    pub(crate) root: ModuleId,
}

/// The kind of an item, as far as the checks tell items apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    /// A struct, union, enumeration, trait or type alias.
    Type,
    /// A function, constant, static or macro.
    Other,
}

/// An item that a module defines.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Its kind.
    pub(crate) kind: ItemKind,
    /// Its declaration.
    pub(crate) at: Location,
    /// Visible wherever its module is.
    pub(crate) public: bool,
    /// The names of its public fields; numbers for fields of tuples.
    pub(crate) public_fields: Vec<(String, Location)>,
    /// The paths in its signature, and for types in the signatures of their public fields and methods.
    pub(crate) signature: Vec<PathUse>,
}

/// A `use` declaration of one name.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    /// The path that it stands for.
    pub(crate) path: Vec<String>,
    /// A re-export: visible wherever its module is.
    pub(crate) public: bool,
}

/// A path in the code of a module.
#[derive(Clone, Debug)]
pub(crate) struct PathUse {
    /// Its segments, without generic arguments; `::` in front is the segment `""`.
    pub(crate) path: Vec<String>,
    /// Its line.
    pub(crate) line: usize,
    /// The item that names it, `use` for a declaration.
    pub(crate) within: String,
}

/// An `impl` block.
#[derive(Clone, Debug)]
pub(crate) struct Implementation {
    /// The path of the type.
    pub(crate) of: Vec<String>,
    /// The path of the trait; none for inherent methods.
    pub(crate) of_trait: Option<Vec<String>>,
    /// Its line.
    pub(crate) line: usize,
}

/// A module: a file, or a block in one.
#[derive(Debug)]
pub(crate) struct Module {
    /// Its crate.
    pub(crate) of: CrateId,
    /// The module that declares it.
    pub(crate) parent: Option<ModuleId>,
    /// Its name; the crate's for the root.
    pub(crate) name: String,
    /// Its file.
    pub(crate) file: PathBuf,
    /// Visible wherever its parent is.
    pub(crate) public: bool,
    /// The modules that it declares.
    pub(crate) children: BTreeMap<String, ModuleId>,
    /// The items that it defines.
    pub(crate) items: BTreeMap<String, Item>,
    /// Names that it imports.
    pub(crate) imports: HashMap<String, Vec<Import>>,
    /// Modules of which it imports everything.
    pub(crate) globs: Vec<Import>,
    /// The paths in its code.
    pub(crate) uses: Vec<PathUse>,
    /// Its `impl` blocks for types that have a path.
    pub(crate) implementations: Vec<Implementation>,
}

/// All crates of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The crates.
    pub(crate) crates: Vec<Crate>,
    /// The modules of all crates.
    pub(crate) modules: Vec<Module>,
    /// The libraries by the name that code uses.
    pub(crate) libraries: HashMap<String, CrateId>,
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Target {
    /// A module itself.
    Module(ModuleId),
    /// An item of a module.
    Item(ModuleId, String),
    /// Something of a crate outside the workspace, by the crate's name.
    Foreign(String),
}

/// An edge of the graph: an item names an item of another module.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    /// The module that names.
    pub(crate) from: ModuleId,
    /// The item that names, `use` for a declaration.
    pub(crate) within: String,
    /// The module that is named, or that defines the named item.
    pub(crate) to: ModuleId,
    /// The item, or none for the module itself.
    pub(crate) item: Option<String>,
    /// The place of the path.
    pub(crate) at: Location,
}

impl Sources {
    /// Returns the path of a module as code writes it, from its crate's name on.
    pub(crate) fn path_of(&self, id: ModuleId) -> String {
        let module = &self.modules[id];
        match module.parent {
            Some(parent) => format!("{}::{}", self.path_of(parent), module.name),
            None => module.name.clone(),
        }
    }

    /// Returns a module's ancestors from its crate's root down to itself.
    pub(crate) fn line_of(&self, id: ModuleId) -> Vec<ModuleId> {
        let mut line = vec![id];
        let mut at = id;
        while let Some(parent) = self.modules[at].parent {
            line.push(parent);
            at = parent;
        }
        line.reverse();
        line
    }

    /// Returns every edge between two modules of the workspace.
    pub(crate) fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (from, module) in self.modules.iter().enumerate() {
            for used in &module.uses {
                let (to, item) = match self.resolve(from, &used.path) {
                    Some(Target::Item(to, item)) => (to, Some(item)),
                    Some(Target::Module(to)) => (to, None),
                    Some(Target::Foreign(_)) | None => continue,
                };
                if to != from {
                    let at = Location { file: module.file.clone(), line: used.line };
                    edges.push(Edge { from, within: used.within.clone(), to, item, at });
                }
            }
        }
        edges
    }

    /// Returns the items of a crate that other crates can name, each where it is defined. What a crate
    /// re-exports of another one counts for that one.
    pub(crate) fn reachable(&self, of: CrateId) -> BTreeSet<(ModuleId, String)> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![self.crates[of].root];
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let module = &self.modules[id];
            found.extend(
                module.items.iter().filter(|(_, item)| item.public).map(|(name, _)| (id, name.clone())),
            );
            open.extend(module.children.values().filter(|&&child| self.modules[child].public));
            let imports = module.imports.values().flatten().chain(&module.globs);
            for import in imports.filter(|import| import.public) {
                match self.resolve(id, &import.path) {
                    Some(Target::Module(to)) => open.push(to),
                    Some(Target::Item(to, name)) => {
                        found.insert((to, name));
                    }
                    Some(Target::Foreign(_)) | None => {}
                }
            }
        }
        found.retain(|(id, _)| self.modules[*id].of == of);
        found
    }
}
