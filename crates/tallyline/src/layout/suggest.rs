//! What to say where there is no type of a name: with the names that are nearest to it.

use super::job::{Ask, Job};
use std::collections::BTreeSet;
use tallyline_layout::model::Types;

/// How many names are suggested.
const NEAREST: usize = 3;

/// One line about the names that there is no type of. The file is read again, for all of its names:
/// only now are they needed.
pub(super) fn not_found(job: &Job, missing: &[&str]) -> String {
    let file = job.files.first().map_or_else(String::new, |file| file.display().to_string());
    let what = match job.ask {
        Ask::Enumerator(_) => "enumeration with a constant",
        _ => "type",
    };
    let mut line = format!("{file}: no {what} named {}", missing.join(", "));
    let Ok(types) = (Job { files: job.files.clone(), formats: job.formats.clone(), ..Job::default() }).read()
    else {
        return line;
    };
    if let [name] = missing
        && !matches!(job.ask, Ask::Enumerator(_))
        && !name.contains(['*', '?'])
    {
        let near = nearest(name, &types);
        if !near.is_empty() {
            line.push_str(&format!("; there is {}", near.join(", ")));
        }
    }
    line
}

/// The names of types that are nearest to a name.
fn nearest(name: &str, types: &Types) -> Vec<String> {
    let limit = name.len() / 3 + 1;
    let mut near = BTreeSet::new();
    for id in types.listed() {
        let known = types.type_name(*id);
        if !known.is_some() {
            continue;
        }
        let known = String::from_utf8_lossy(types.name(known));
        if known.len().abs_diff(name.len()) > limit {
            continue;
        }
        let distance = distance(name.as_bytes(), known.as_bytes());
        if distance <= limit {
            near.insert((distance, known.into_owned()));
        }
    }
    near.into_iter().take(NEAREST).map(|(_, name)| name).collect()
}

/// How many letters have to be added, left out or changed to make one text the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(!x.eq_ignore_ascii_case(y));
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
        assert_eq!(distance(b"sk_buf", b"sk_buff"), 1);
        assert_eq!(distance(b"task_strcut", b"task_struct"), 2);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"SOCK", b"sock"), 0);
    }
}
