//! Names of a file that go on from what is typed.

use super::line::{CommandLine, Kind};
use crate::layout::job::{Ask, Job, Show};
use crate::layout::operands::opens_as_types;
use crate::layout::select::Names;
use crate::layout::source;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tallyline_debuginfo::Request;
use tallyline_debuginfo::model::Types;
use tallyline_support::output::printable;

/// The time for an answer: a user who waits longer types on.
const PATIENCE: Duration = Duration::from_secs(1);

/// The environment variable with another time for an answer, in seconds. Tests set it: they expect whole answers, which
/// take longer on a busy machine.
const PATIENCE_VARIABLE: &str = "TALLYLINE_COMPLETE_SECONDS";

/// The most names of an answer, and entries of a folder that are looked at.
const LIMIT: usize = 5000;

/// Returns the names in order, those that were found in time.
pub(super) fn find(line: &CommandLine) -> Vec<String> {
    let mut found = BTreeSet::new();
    if line.kind == Kind::TypesAndFiles {
        // a path is the shell's own matter
        if line.typed.contains('/') || line.typed.starts_with('.') {
            return Vec::new();
        }
        found.extend(files(&line.typed));
    }
    // without a letter it would be all of the kernel's
    if line.kind != Kind::TypesAndFiles || !line.typed.is_empty() {
        let (send, receive) = sync_channel(16);
        let (file, typed) = (line.file.clone(), line.typed.clone());
        let members_of = match &line.kind {
            Kind::Members(of) => Some(of.clone()),
            _ => None,
        };
        // not waited for: it ends with the program
        std::thread::spawn(move || match members_of {
            Some(types) => members(&file, &types, &typed, &send),
            None => types(&file, &typed, &send),
        });
        collect(&receive, &mut found);
    }
    found.into_iter().take(LIMIT).collect()
}

/// Returns the time for an answer.
fn patience() -> Duration {
    let seconds = std::env::var(PATIENCE_VARIABLE).ok().and_then(|value| value.parse::<u32>().ok());
    seconds.map_or(PATIENCE, |seconds| Duration::from_secs(seconds.into()))
}

fn collect(receive: &Receiver<Vec<String>>, found: &mut BTreeSet<String>) {
    let end = Instant::now() + patience();
    while let Ok(names) = receive.recv_timeout(end.saturating_duration_since(Instant::now())) {
        found.extend(names);
        if found.len() > LIMIT {
            break;
        }
    }
}

/// Folders here, and files with types.
fn files(typed: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(".") else { return Vec::new() };
    let names = entries.take(LIMIT).filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let is_it = name.starts_with(typed) && !name.starts_with('.') && !name.contains(char::is_control);
        match entry.path().is_dir() {
            _ if !is_it => None,
            true => Some(format!("{name}/")),
            false => opens_as_types(&name).then_some(name),
        }
    });
    names.collect()
}

/// Sends the names of types, part by part as they are read.
fn types(file: &Path, typed: &str, send: &SyncSender<Vec<String>>) {
    let job = Job { files: vec![file.to_path_buf()], show: Show::Name, ..Job::default() };
    let request = Request { inner: typed.contains("::") || typed.contains('.'), ..job.request() };
    // nobody reads a complaint in the middle of a command line
    let _ = match job.in_parts() {
        Some(file) => {
            source::read_parts(file, &request, &mut |types| match send.send(names(&types, typed)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        }
        None => source::read(file, &request, None).map(|types| drop(send.send(names(&types, typed)))),
    };
}

/// Returns the names of types as one writes them: with scopes where those were begun.
fn names(types: &Types, typed: &str) -> Vec<String> {
    let mut names = Vec::new();
    for id in types.listed() {
        let own = types.name(types.type_name(*id));
        let whole = types.qualified_name(*id);
        let fit =
            [own, &*whole].into_iter().find(|name| !name.is_empty() && name.starts_with(typed.as_bytes()));
        names.extend(fit.map(|name| printable(name).into_owned()));
    }
    names
}

/// Sends the names of members of types.
fn members(file: &Path, of: &[String], typed: &str, send: &SyncSender<Vec<String>>) {
    let mut names = Names::default();
    if of.is_empty() || of.iter().any(|name| names.add_one(name).is_err()) {
        return;
    }
    let job = Job { files: vec![file.to_path_buf()], ask: Ask::Types(names), ..Job::default() };
    let Ok(types) = source::read(file, &job.request(), None) else { return };
    let Ask::Types(names) = &job.ask else { return };
    let mut found = Vec::new();
    for id in names.resolve(&types).0 {
        let Some((_, record)) = types.as_record(types.strip(id)) else { continue };
        let names = types.members(record).iter().map(|member| types.name(member.name));
        let fits = names.filter(|name| !name.is_empty() && name.starts_with(typed.as_bytes()));
        found.extend(fits.map(|name| printable(name).into_owned()));
    }
    let _ = send.send(found);
}
