//! Resolution of paths by their names.

use super::{ModuleId, Sources, Target};

/// The longest chain of re-exports that is followed; cyclic imports end here.
const MAX_DEPTH: usize = 32;

impl Sources {
    /// Resolves a path that stands in a module. Names of the prelude, generic parameters, local variables
    /// and whatever macros make have no target.
    pub(crate) fn resolve(&self, from: ModuleId, path: &[String]) -> Option<Target> {
        self.follow(from, path, MAX_DEPTH)
    }

    fn follow(&self, from: ModuleId, path: &[String], depth: usize) -> Option<Target> {
        let depth = depth.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "" => self.external(rest, depth),
            "crate" | "$crate" => {
                self.descend(Target::Module(self.crates[self.modules[from].of].root), rest, depth)
            }
            "self" => self.descend(Target::Module(from), rest, depth),
            "super" => self.descend(Target::Module(self.modules[from].parent?), rest, depth),
            name => match self.lookup(from, name, depth) {
                Some(found) => self.descend(found, rest, depth),
                None => self.external(path, depth),
            },
        }
    }

    /// Resolves a path that begins with the name of a crate.
    fn external(&self, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        match self.libraries.get(first) {
            Some(&of) => self.descend(Target::Module(self.crates[of].root), rest, depth),
            // a name alone is a local variable or a type of the prelude
            None if rest.is_empty() => None,
            None => Some(Target::Foreign(first.clone())),
        }
    }

    fn descend(&self, at: Target, path: &[String], depth: usize) -> Option<Target> {
        let Target::Module(id) = at else { return Some(at) };
        let Some((first, rest)) = path.split_first() else { return Some(at) };
        match first.as_str() {
            "self" => self.descend(at, rest, depth),
            "super" => self.descend(Target::Module(self.modules[id].parent?), rest, depth),
            name => match self.lookup(id, name, depth) {
                Some(found) => self.descend(found, rest, depth),
                // macros may make items; the module is what is known
                None => Some(at),
            },
        }
    }

    /// Looks a name up in a module: its items and modules, its imports, the modules it imports whole.
    fn lookup(&self, id: ModuleId, name: &str, depth: usize) -> Option<Target> {
        let depth = depth.checked_sub(1)?;
        let module = &self.modules[id];
        if module.items.contains_key(name) {
            return Some(Target::Item(id, name.to_owned()));
        }
        if let Some(&child) = module.children.get(name) {
            return Some(Target::Module(child));
        }
        for import in module.imports.get(name).into_iter().flatten() {
            // `use name::…::name` inside the crate `name` would find itself
            let found = if import.path.first().is_some_and(|first| first == name) {
                self.external(&import.path, depth)
            } else {
                self.follow(id, &import.path, depth)
            };
            if found.is_some() {
                return found;
            }
        }
        for glob in &module.globs {
            if let Some(Target::Module(of)) = self.follow(id, &glob.path, depth)
                && of != id
                && let Some(found) = self.lookup(of, name, depth)
            {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::source::{Sources, Target, load::from_text};

    fn target(sources: &Sources, from: &str, path: &str) -> String {
        let from = (0..sources.modules.len()).find(|&id| sources.path_of(id) == from).expect("a module");
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        match sources.resolve(from, &path) {
            Some(Target::Module(id)) => sources.path_of(id),
            Some(Target::Item(id, item)) => format!("{}::{item}", sources.path_of(id)),
            Some(Target::Foreign(name)) => format!("foreign {name}"),
            None => String::new(),
        }
    }

    fn sample() -> Sources {
        from_text(&[
            (
                "one",
                "pub mod a { pub use self::b::Deep; pub mod b { pub struct Deep; } pub fn f() {} }
                 pub mod c { use super::a::Deep as Renamed; use crate::a::*; use std::fmt; }
                 pub use a::b::Deep;
                 mod d { use super::*; }",
            ),
            ("two", "use one::Deep; use one::a as other;"),
        ])
    }

    #[test]
    fn follows_reexports_to_the_defining_module() {
        let sources = sample();
        assert_eq!(target(&sources, "one::c", "super::Deep"), "one::a::b::Deep");
        assert_eq!(target(&sources, "one::c", "crate::a::Deep::method"), "one::a::b::Deep");
        assert_eq!(target(&sources, "one::c", "Renamed"), "one::a::b::Deep");
    }

    #[test]
    fn looks_into_globs() {
        let sources = sample();
        assert_eq!(target(&sources, "one::c", "f"), "one::a::f");
        assert_eq!(target(&sources, "one::d", "Deep"), "one::a::b::Deep");
        assert_eq!(target(&sources, "one::d", "c"), "one::c");
    }

    #[test]
    fn crosses_crates() {
        let sources = sample();
        assert_eq!(target(&sources, "two", "Deep"), "one::a::b::Deep");
        assert_eq!(target(&sources, "two", "other::f"), "one::a::f");
        assert_eq!(target(&sources, "two", "one"), "one");
    }

    #[test]
    fn names_foreign_crates_also_through_imports() {
        let sources = sample();
        assert_eq!(target(&sources, "one::c", "fmt::Debug"), "foreign std");
        assert_eq!(target(&sources, "one::c", "gimli::read::Dwarf"), "foreign gimli");
        assert_eq!(target(&sources, "one::c", "local"), "");
    }

    #[test]
    fn circular_imports_end() {
        let sources =
            from_text(&[("one", "pub mod a { pub use super::b::X; } pub mod b { pub use super::a::X; }")]);
        // the last module that is known
        assert!(target(&sources, "one", "a::X::Y").starts_with("one::"));
    }
}
