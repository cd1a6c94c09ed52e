//! Names that are nearest to one that is not there: a misspelling gets a suggestion.

use super::naming::{canonical, endings};
use std::collections::BTreeSet;

/// The most names that are suggested.
const NEAREST: usize = 3;

/// Returns the up to three of `names` that are most similar to a misspelt name, the most similar first: those at an
/// edit distance of at most a third of its length, ignoring ASCII case.
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let limit = limit(name.len());
    let mut near = BTreeSet::new();
    for known in names {
        // a longer name is not compared at all: names from a file have any length
        if known.is_empty() || known.len().abs_diff(name.len()) > limit {
            continue;
        }
        let distance = distance(name, known);
        if distance <= limit {
            near.insert((distance, known));
            if near.len() > NEAREST {
                near.pop_last();
            }
        }
    }
    near.into_iter().map(|(_, name)| name).collect()
}

/// Returns the most letters in which a near name differs.
fn limit(length: usize) -> usize {
    (length + 1) / 3
}

/// Collector of the names of records (structs, classes, unions) in a file that are most similar to a requested name, in
/// case no type of the file has that.
#[derive(Clone, Debug)]
pub(crate) struct NearestNames {
    asked: String,
    near: BTreeSet<(usize, String)>,
}

impl NearestNames {
    /// Creates an empty collector of names of records (structs, classes, unions) similar to `name`, whose scopes are
    /// ignored.
    pub(crate) fn of(name: &[u8]) -> NearestNames {
        let name = canonical(name);
        let own = endings(&name).min_by_key(|ending| ending.len()).unwrap_or_default();
        NearestNames { asked: String::from_utf8_lossy(own).into_owned(), near: BTreeSet::new() }
    }

    /// Creates an empty collector of names similar to the same requested name, to be merged into this one by
    /// [`append`](Self::append).
    pub(crate) fn fork(&self) -> NearestNames {
        NearestNames { asked: self.asked.clone(), near: BTreeSet::new() }
    }

    /// Adds the name of a record (struct, class or union) of the file if it is similar to the requested one and among
    /// the three most similar so far.
    pub(crate) fn add(&mut self, name: &[u8]) {
        let limit = limit(self.asked.len());
        if name.is_empty() || name.len().abs_diff(self.asked.len()) > limit {
            return;
        }
        let name = String::from_utf8_lossy(name);
        let distance = distance(&self.asked, &name);
        if distance <= limit {
            self.insert((distance, name.into_owned()));
        }
    }

    /// Merges in the names of records that another collector for the same requested name has kept as similar to it.
    pub(crate) fn append(&mut self, other: NearestNames) {
        other.near.into_iter().for_each(|name| self.insert(name));
    }

    fn insert(&mut self, name: (usize, String)) {
        self.near.insert(name);
        if self.near.len() > NEAREST {
            self.near.pop_last();
        }
    }

    /// Returns the collected names, up to three that are similar to the requested one, the most similar first.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.near.into_iter().map(|(_, name)| name).collect()
    }
}

/// Returns a suffix for an error message, `; did you mean a or b?`, with those of `names` most similar to a misspelt
/// one; empty if none is similar.
pub fn did_you_mean<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let near = nearest(name, names);
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// Returns the Levenshtein distance of two texts in bytes, ignoring ASCII case.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(!from.eq_ignore_ascii_case(to));
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_letters() {
        assert_eq!(distance("sk_buf", "sk_buff"), 1);
        assert_eq!(distance("task_strcut", "task_struct"), 2);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("SOCK", "sock"), 0);
    }

    #[test]
    fn the_nearest_names_come_first_and_far_ones_not_at_all() {
        let names = ["conn", "connection", "cone", "cell", "con", "corn"];
        assert_eq!(nearest("conm", names), ["con", "cone", "conn"]);
        assert_eq!(nearest("connektion", names), ["connection"]);
        assert_eq!(nearest("zzzzzz", names), [""; 0]);
        // one letter is near to every other, which says nothing
        assert_eq!(nearest("x", ["a", "b"]), [""; 0]);
        assert_eq!(did_you_mean("cel", names), "; did you mean cell?");
        assert_eq!(did_you_mean("nothing", names), "");
    }

    #[test]
    fn names_that_are_collected_one_by_one_are_those_of_the_whole() {
        let names = ["conn", "connection", "cone", "cell", "con", "corn"];
        for asked in ["conm", "connektion", "zzzzzz", "x", "ns::conm", "struct conm"] {
            let mut all = NearestNames::of(asked.as_bytes());
            let mut other = all.clone();
            names[..3].iter().for_each(|name| all.add(name.as_bytes()));
            names[3..].iter().for_each(|name| other.add(name.as_bytes()));
            all.append(other);
            let own = asked.rsplit([':', ' ']).next().unwrap_or(asked);
            assert_eq!(all.into_names(), nearest(own, names), "{asked}");
        }
    }
}
