//! The types of the files that a workspace was built to.

use super::entry::Entry;
use super::index::{self, Index};
use crate::profile::Cache;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

/// The most words that are remembered of a file without an index.
const DIRECT: usize = 1024;

/// The size of a file whose index is made at once: in a moment, and it also knows templates by their first word.
const QUICK: u64 = 16 << 20;

/// An index that is ready, or the reason why there is none.
pub(super) struct Indexed {
    path: PathBuf,
    stamp: String,
    index: Result<Index, String>,
}

/// Files and their indices.
pub(super) struct Database {
    files: HashMap<PathBuf, Known>,
    folder: Option<PathBuf>,
    done: Box<dyn Fn() -> Box<dyn FnOnce(Indexed) + Send>>,
}

struct Known {
    stamp: String,
    state: State,
    /// Answers that were found without an index.
    direct: HashMap<String, Vec<Entry>>,
}

enum State {
    /// Nobody has asked.
    New,
    Building,
    Ready(Index),
    Failed,
}

impl Database {
    /// Makes an empty one that sends its indices to `send`.
    pub(super) fn new<E: From<Indexed> + Send + 'static>(send: Sender<E>) -> Database {
        let folder = Cache::of_user(false).map(|cache| cache.folder().join("editor"));
        let done = Box::new(move || -> Box<dyn FnOnce(Indexed) + Send> {
            let send = send.clone();
            // at its end nobody listens
            Box::new(move |indexed| drop(send.send(E::from(indexed))))
        });
        Database { files: HashMap::new(), folder, done }
    }

    /// Takes over an index that was built in the meantime.
    pub(super) fn take(&mut self, indexed: Indexed) {
        let Indexed { path, stamp, index } = indexed;
        let Some(known) = self.files.get_mut(&path).filter(|known| known.stamp == stamp) else { return };
        match index {
            Ok(index) => {
                known.state = State::Ready(index);
                known.direct = HashMap::new();
            }
            Err(why) => {
                eprintln!("tallyline: {why}");
                known.state = State::Failed;
            }
        }
    }

    /// Returns the types of one of many words in a file; none before there is an index, as looking them up one by one
    /// would take long.
    pub(super) fn find_quickly(&mut self, file: &Path, word: &str) -> Vec<Entry> {
        self.build(file);
        match self.known(file).map(|known| &known.state) {
            Some(State::Ready(index)) => index.find(word),
            _ => Vec::new(),
        }
    }

    /// Returns the types of a word in a file: by the index, or by reading what is needed while it is being built.
    pub(super) fn find(&mut self, file: &Path, word: &str) -> Vec<Entry> {
        if file.metadata().is_ok_and(|metadata| metadata.len() <= QUICK) {
            self.build(file);
        }
        let Some(known) = self.known(file) else { return Vec::new() };
        if let State::Ready(index) = &known.state {
            return index.find(word);
        }
        if known.direct.len() > DIRECT {
            known.direct.clear();
        }
        let found = match known.direct.get(word) {
            Some(found) => found.clone(),
            // an error is told by the index
            None => index::direct(file, word).unwrap_or_default(),
        };
        known.direct.insert(word.to_owned(), found.clone());
        // after the answer, as both would read the same file
        self.build(file);
        found
    }

    /// Returns a file as it is now, with its index if one was kept; none if it is gone.
    fn known(&mut self, file: &Path) -> Option<&mut Known> {
        let stamp = index::stamp(file)?;
        let known = self.files.entry(file.to_path_buf()).or_insert_with(|| Known::new(stamp.clone()));
        if known.stamp != stamp {
            *known = Known::new(stamp.clone());
        }
        if matches!(known.state, State::New) {
            let kept =
                self.folder.as_ref().and_then(|folder| Index::open(&index::path_in(folder, file), &stamp));
            known.state = kept.map_or(State::New, State::Ready);
        }
        Some(known)
    }

    /// Makes the index of a file, of a large one in the background, unless that was begun.
    fn build(&mut self, file: &Path) {
        let folder = self.folder.clone();
        let Some(known) = self.known(file).filter(|known| matches!(known.state, State::New)) else { return };
        known.state = State::Building;
        let (path, stamp) = (file.to_path_buf(), known.stamp.clone());
        if file.metadata().is_ok_and(|metadata| metadata.len() <= QUICK) {
            self.take(build(path, stamp, folder.as_deref()));
            return;
        }
        let done = (self.done)();
        std::thread::spawn(move || done(build(path, stamp, folder.as_deref())));
    }
}

impl Known {
    fn new(stamp: String) -> Known {
        Known { stamp, state: State::New, direct: HashMap::new() }
    }
}

/// Makes the index of a file, and keeps it for the next server.
fn build(path: PathBuf, stamp: String, folder: Option<&Path>) -> Indexed {
    let index = Index::build(&path).map_err(|error| format!("{error:#}"));
    if let (Ok(index), Some(folder)) = (&index, folder)
        && let Err(error) = index.keep(&index::path_in(folder, &path), &stamp)
    {
        eprintln!("tallyline: {error:#}");
    }
    Indexed { path, stamp, index }
}
