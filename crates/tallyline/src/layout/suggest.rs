//! Messages for unknown type names, with the names that are nearest to them.

use super::job::{Ask, Job, Show};
use super::open::describe;
use super::source;
use anyhow::Result;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use tallyline_debuginfo::Request;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::Types;

/// Returns one line about the names without a type. Where near names were not collected with the types, it reads
/// the file again for all of its names.
pub(super) fn not_found(job: &Job, types: &Types, missing: &[&str]) -> String {
    let file = job.files.first().map_or_else(String::new, |file| file.display().to_string());
    let what = match job.ask {
        Ask::Enumerator(_) => "enumeration with a constant",
        _ => "type",
    };
    let mut line = format!("{file}: no {what} named {}", missing.join(", "));
    line.push_str(&files_among(missing));
    if let [name] = missing
        && !matches!(job.ask, Ask::Enumerator(_))
        && !name.contains(['*', '?'])
    {
        let near = match types.nearest().filter(|_| job.files.len() == 1) {
            Some(near) => near.to_vec(),
            None => {
                let job = Job { files: job.files.clone(), formats: job.formats.clone(), ..Job::default() };
                // types are called without their scopes
                let own = if name.contains('<') { name } else { name.rsplit("::").next().unwrap_or(name) };
                nearest_in(job, &[own]).unwrap_or_default().pop().unwrap_or_default()
            }
        };
        if !near.is_empty() {
            line.push_str(&format!("; there is {}", near.join(", ")));
        }
    }
    line
}

/// Returns, for each of some misspelt type names, the most similar type names in the layout command's file.
pub(crate) fn nearest_in(job: Job, names: &[&str]) -> Result<Vec<Vec<String>>> {
    let job = Job { show: Show::Name, ..job };
    let mut near = vec![BTreeSet::new(); names.len()];
    let mut add = |types: &Types| {
        near.iter_mut().zip(names).for_each(|(near, name)| near.extend(nearest(name, types)));
    };
    match job.in_parts() {
        Some(file) => {
            let request = Request { format: job.formats.first().copied(), ..job.request() };
            source::read_parts(file, &request, &mut |types| {
                add(&types);
                ControlFlow::Continue(())
            })?;
        }
        None => add(&job.read()?),
    }
    let nearest = |(near, name): (BTreeSet<String>, &&str)| {
        let near = lookup::nearest(name, near.iter().map(String::as_str));
        near.into_iter().map(String::from).collect()
    };
    Ok(near.into_iter().zip(names).map(nearest).collect())
}

/// Returns a hint about unknown type names that are in fact files, or look like one; empty if there are none.
pub(crate) fn files_among(missing: &[&str]) -> String {
    let mut text = String::new();
    for name in missing {
        let path = if name.contains('/') { (*name).to_owned() } else { format!("./{name}") };
        if let Some(what) = describe(Path::new(name)) {
            text.push_str(&format!("; {path} {what}"));
        } else if Path::new(name).is_file() {
            text.push_str(&format!("; the file {path} comes last, behind the types"));
        }
    }
    text
}

/// Returns the names of types that are nearest to a name.
fn nearest(name: &str, types: &Types) -> Vec<String> {
    let names: Vec<_> = types
        .listed()
        .iter()
        .map(|id| types.type_name(*id))
        .filter(|known| known.is_some())
        .map(|known| String::from_utf8_lossy(types.name(known)))
        .collect();
    lookup::nearest(name, names.iter().map(AsRef::as_ref)).into_iter().map(String::from).collect()
}
