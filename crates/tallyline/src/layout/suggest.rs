//! What to say where there is no type of a name: with the names that are nearest to it.

use super::job::{Ask, Job};
use super::open::describe;
use std::path::Path;
use tallyline_layout::model::Types;
use tallyline_layout::query;

/// One line about the names that there is no type of. The file is read again, for all of its names:
/// only now are they needed.
pub(super) fn not_found(job: &Job, missing: &[&str]) -> String {
    let file = job.files.first().map_or_else(String::new, |file| file.display().to_string());
    let what = match job.ask {
        Ask::Enumerator(_) => "enumeration with a constant",
        _ => "type",
    };
    let mut line = format!("{file}: no {what} named {}", missing.join(", "));
    line.push_str(&files_among(missing));
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

/// What is to be said about names of types that are files, or look like one.
pub(crate) fn files_among(missing: &[&str]) -> String {
    let mut text = String::new();
    for name in missing {
        if let Some(what) = describe(Path::new(name)) {
            text.push_str(&format!("; ./{name} {what}"));
        }
    }
    text
}

/// Returns the names of types that are nearest to a name.
pub(crate) fn nearest(name: &str, types: &Types) -> Vec<String> {
    let names: Vec<_> = types
        .listed()
        .iter()
        .map(|id| types.type_name(*id))
        .filter(|known| known.is_some())
        .map(|known| String::from_utf8_lossy(types.name(known)))
        .collect();
    query::nearest(name, names.iter().map(AsRef::as_ref)).into_iter().map(String::from).collect()
}
