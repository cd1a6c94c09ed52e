//! Types by name: exact, by pattern, from a list.

use anyhow::{Context, Result, bail};
use tallyline_layout::Wanted;
use tallyline_layout::model::{RecordId, TypeId, Types};
use tallyline_layout::query::{self, fits, is_pattern};

/// The names on the command line, in order.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<String>,
}

impl Names {
    /// Whether every type is meant.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds a name or a pattern.
    pub(crate) fn add_one(&mut self, name: &str) -> Result<()> {
        if name.is_empty() {
            bail!("an empty name");
        }
        self.names.push(name.to_string());
        Ok(())
    }

    /// Adds names with commas between, or those of a `file://` list.
    pub(crate) fn add_list(&mut self, list: &str) -> Result<()> {
        if let Some(path) = list.strip_prefix("file://") {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
            return text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .try_for_each(|n| self.add_one(n));
        }
        split(list).into_iter().try_for_each(|name| self.add_one(name))
    }

    /// What a reader has to look for.
    pub(crate) fn wanted(&self) -> Wanted {
        if self.is_empty() || self.names.iter().any(|name| is_pattern(name)) {
            return Wanted::Records;
        }
        Wanted::named(self.names.iter().map(String::as_str))
    }

    /// The types of the names, and the names that there is no type of.
    pub(crate) fn resolve(&self, types: &Types) -> (Vec<TypeId>, Vec<&str>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for name in &self.names {
            let before = found.len();
            if is_pattern(name) {
                let fits = |record: RecordId| fits(name.as_bytes(), types.name(types.record(record).name));
                let records = query::distinct_records(types);
                found.extend(records.iter().filter(|(_, record)| fits(*record)).map(|(id, _)| *id));
            } else {
                found.extend(query::find(types, name.as_bytes()));
            }
            if found.len() == before {
                missing.push(name.as_str());
            }
        }
        (found, missing)
    }
}

/// Splits at commas, but not at those between the arguments of a template.
fn split(list: &str) -> Vec<&str> {
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
