//! Names that are nearest to one that is not there: a misspelling gets a suggestion.

use std::collections::BTreeSet;

/// The most names that are suggested.
const NEAREST: usize = 3;

/// Returns those of some names that differ from a misspelt `name` in at most a third of its letters, the
/// nearest first, at most three. Upper and lower case count as the same letter.
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let limit = (name.len() + 1) / 3;
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

/// Returns `; did you mean a or b?` with the names nearest to a misspelt one, for messages; empty where none
/// is near.
pub fn did_you_mean<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let near = nearest(name, names);
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// Returns Levenshtein's distance of two texts in bytes: those to be added, left out or changed to turn one
/// into the other, with ASCII letters alike in both cases.
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
}
