//! Types by name: exact, by pattern, from a list.

use anyhow::{Context, Result, bail};
use tallyline_debuginfo::Wanted;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::lookup::{Definitions, fits, is_pattern};
use tallyline_debuginfo::model::{TypeId, Types};

/// The names and patterns of types on a layout command's command line, in order.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<Name>,
}

/// A name or pattern of types on a layout command's command line.
#[derive(Debug)]
pub(crate) struct Name {
    text: String,
    is_pattern: bool,
    /// `true` if one type of this name suffices, as for pahole.
    first: bool,
}

impl Name {
    /// Returns the name or pattern as it was typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the types with this name, or all types that match the pattern.
    pub(crate) fn find(&self, types: &Types, definitions: &mut Definitions<'_>) -> Vec<TypeId> {
        if self.first {
            return lookup::find(types, self.text.as_bytes()).into_iter().collect();
        }
        let called = definitions.called(self.text.as_bytes());
        if !called.is_empty() || !self.is_pattern {
            return called;
        }
        let pattern = self.text.as_bytes();
        let is_it = |id: TypeId| {
            fits(pattern, types.name(types.type_name(id))) || fits(pattern, &types.qualified_name(id))
        };
        let records = definitions.records().iter();
        records.map(|(id, _)| *id).filter(|id| is_it(*id)).collect()
    }
}

impl Names {
    /// Returns `true` if no type was named, which selects all types.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the names and patterns of types in the order of the command line.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.names.iter()
    }

    /// Adds a name or pattern of types to those that a layout command selects.
    pub(crate) fn add_one(&mut self, name: &str) -> Result<()> {
        if name.is_empty() {
            bail!("an empty name");
        }
        self.names.push(Name { text: name.to_string(), is_pattern: is_pattern(name), first: false });
        Ok(())
    }

    /// Adds a comma-separated list of names and patterns of types, or the lines of the file that `file://PATH` names.
    pub(crate) fn add_list(&mut self, list: &str) -> Result<()> {
        for name in split(list) {
            match name.strip_prefix("file://") {
                Some(path) => self.add_file(path)?,
                None => self.add_one(name)?,
            }
        }
        Ok(())
    }

    /// Adds a comma-separated list of type names, or the lines of the file that `file://PATH` names, as pahole does:
    /// none is a pattern, and a name means the first type that has it.
    pub(crate) fn add_exact_list(&mut self, list: &str) -> Result<()> {
        let before = self.names.len();
        self.add_list(list)?;
        self.names[before..].iter_mut().for_each(|name| (name.is_pattern, name.first) = (false, true));
        Ok(())
    }

    fn add_file(&mut self, path: &str) -> Result<()> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.into_iter().try_for_each(|name| self.add_one(name))
    }

    /// Returns the selection of types that the reader of debug information should load for these names.
    pub(crate) fn wanted(&self) -> Wanted {
        if self.is_empty() {
            return Wanted::Records;
        }
        let names = self.names.iter().map(|name| name.text().into());
        if self.names.iter().any(|name| name.is_pattern) {
            return Wanted::Matching(names.collect());
        }
        match self.names.iter().all(|name| name.first) {
            true => Wanted::First(names.collect()),
            false => Wanted::Named(names.collect()),
        }
    }

    /// Returns `true` if at least one of the names is the name of several types.
    pub(crate) fn are_ambiguous(&self, types: &Types) -> bool {
        let mut definitions = Definitions::new(types);
        self.names.iter().any(|name| !name.is_pattern && name.find(types, &mut definitions).len() > 1)
    }

    /// Returns the types that the names and patterns select, and the names that match no type.
    pub(crate) fn resolve(&self, types: &Types) -> (Vec<TypeId>, Vec<&str>) {
        let (mut all, mut missing) = (Vec::new(), Vec::new());
        let mut definitions = Definitions::new(types);
        for name in &self.names {
            let found = name.find(types, &mut definitions);
            if found.is_empty() {
                missing.push(name.text());
            }
            all.extend(found);
        }
        (all, missing)
    }
}

/// Splits a list of type names at commas outside of template argument lists.
pub(crate) fn split(list: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    for (index, letter) in list.char_indices() {
        match letter {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.push(list[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    names.push(list[start..].trim());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_of_templates_do_not_separate() {
        assert_eq!(split("a,b<int, 3>, c"), ["a", "b<int, 3>", "c"]);
    }
}
