//! The types of the files that a workspace was built to.
//!
//! Nothing here reads a file while somebody waits for an answer to something else: what is not known yet is read by
//! threads of its own, and [`Update`]s bring it.

use super::entry::Entry;
use super::index::{self, Index};
use crate::profile::Cache;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::task::Poll;

/// The most words that are remembered of a file without an index, and that wait for being read.
const WORDS: usize = 1024;

/// The size of a file whose index answers from the first question on: it is made in a moment, and it also knows
/// templates by their first word.
const QUICK: u64 = 16 << 20;

/// The result of reading types in the background.
pub(super) struct Update {
    path: PathBuf,
    stamp: String,
    content: Content,
}

enum Content {
    /// An index, or the reason why there is none.
    Index(Result<Index, String>),
    /// Words with their types.
    Words(Vec<(String, Vec<Entry>)>),
}

/// Files and their indices.
pub(super) struct Database {
    files: HashMap<PathBuf, Known>,
    folder: Option<PathBuf>,
    sender: Box<dyn Fn() -> Box<dyn FnOnce(Update) + Send>>,
}

struct Known {
    stamp: String,
    state: State,
    /// The types found without an index, by word.
    direct: HashMap<String, Vec<Entry>>,
    /// The words to look up at the next reading of the file.
    queued: BTreeSet<String>,
    is_read: bool,
}

enum State {
    /// The state before the index is first needed: neither loaded nor being built.
    New,
    Building,
    Ready(Index),
    Failed,
}

impl Database {
    /// Makes an empty one that sends its updates to `send`.
    pub(super) fn new<E: From<Update> + Send + 'static>(send: Sender<E>) -> Database {
        let folder = Cache::of_user(false).map(|cache| cache.folder().join("editor"));
        let sender = Box::new(move || -> Box<dyn FnOnce(Update) + Send> {
            let send = send.clone();
            // at its end nobody listens
            Box::new(move |update| drop(send.send(E::from(update))))
        });
        Database { files: HashMap::new(), folder, sender }
    }

    /// Takes over what was read in the meantime. Returns `true` if it is an index: there is more to show then.
    pub(super) fn take(&mut self, update: Update) -> bool {
        let Update { path, stamp, content } = update;
        let Some(known) = self.files.get_mut(&path).filter(|known| known.stamp == stamp) else {
            return false;
        };
        match content {
            Content::Index(Ok(index)) => {
                known.state = State::Ready(index);
                known.direct = HashMap::new();
                true
            }
            Content::Index(Err(why)) => {
                eprintln!("tallyline: {why}");
                known.state = State::Failed;
                false
            }
            Content::Words(words) => {
                known.is_read = false;
                if known.direct.len() > WORDS {
                    known.direct.clear();
                }
                known.direct.extend(words);
                self.read_queued(&path);
                // after the answer, as both would read the same file
                self.build(&path);
                false
            }
        }
    }

    /// Returns the types of one of many words in a file; none before there is the index of a large one, as looking
    /// them up one by one would take long.
    pub(super) fn find_quickly(&mut self, file: &Path, word: &str) -> Poll<Vec<Entry>> {
        self.build(file);
        match self.known(file).map(|known| &known.state) {
            Some(State::Ready(index)) => Poll::Ready(index.find(word)),
            Some(State::Building) if is_small(file) => Poll::Pending,
            _ => Poll::Ready(Vec::new()),
        }
    }

    /// Returns the types of a word in a file: by the index, or by reading what is needed while there is none.
    pub(super) fn find(&mut self, file: &Path, word: &str) -> Poll<Vec<Entry>> {
        if is_small(file) {
            self.build(file);
        }
        let Some(known) = self.known(file) else { return Poll::Ready(Vec::new()) };
        match &known.state {
            State::Ready(index) => return Poll::Ready(index.find(word)),
            State::Building if is_small(file) => return Poll::Pending,
            _ => {}
        }
        if let Some(found) = known.direct.get(word) {
            return Poll::Ready(found.clone());
        }
        if known.queued.len() < WORDS {
            known.queued.insert(word.to_owned());
        }
        self.read_queued(file);
        Poll::Pending
    }

    /// Reads the words that are wanted by now, as soon as nobody reads the file.
    fn read_queued(&mut self, file: &Path) {
        let send = (self.sender)();
        let Some(known) = self.files.get_mut(file).filter(|known| !known.is_read) else { return };
        if known.queued.is_empty() {
            return;
        }
        known.is_read = true;
        let (path, stamp, words) =
            (file.to_path_buf(), known.stamp.clone(), std::mem::take(&mut known.queued));
        std::thread::spawn(move || {
            // an error is told by the index
            let types = index::types(&path, words.iter().map(String::as_str)).unwrap_or_default();
            let found = |word: String| {
                let entries = index::entries(&types, &word);
                (word, entries)
            };
            let found = words.into_iter().map(found).collect();
            send(Update { path, stamp, content: Content::Words(found) });
        });
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

    /// Makes the index of a file in the background, unless that was begun: of a large one where answers leave time.
    fn build(&mut self, file: &Path) {
        let (folder, send) = (self.folder.clone(), (self.sender)());
        let Some(known) = self.known(file).filter(|known| matches!(known.state, State::New)) else { return };
        known.state = State::Building;
        let (path, stamp, is_small) = (file.to_path_buf(), known.stamp.clone(), is_small(file));
        std::thread::spawn(move || {
            let make = || build(path, stamp, folder.as_deref());
            send(if is_small { make() } else { in_spare_time(make) });
        });
    }
}

impl Known {
    fn new(stamp: String) -> Known {
        Known { stamp, state: State::New, direct: HashMap::new(), queued: BTreeSet::new(), is_read: false }
    }
}

fn is_small(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.len() <= QUICK)
}

/// The niceness of threads that make indices of large files.
const NICENESS: i32 = 15;

/// Runs work on half of the CPUs, and on those only if nobody else wants them: threads that it starts inherit the
/// niceness, which on Linux is a thread's.
fn in_spare_time<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let threads = std::thread::available_parallelism().map_or(1, |all| all.get().div_ceil(2));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).start_handler(|_| {
        // refused by some sandboxes: it takes its share of time then
        let _ = rustix::process::nice(NICENESS);
    });
    match pool.build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// Makes the index of a file, and keeps it for the next server.
fn build(path: PathBuf, stamp: String, folder: Option<&Path>) -> Update {
    let index = Index::build(&path).map_err(|error| format!("{error:#}"));
    if let (Ok(index), Some(folder)) = (&index, folder)
        && let Err(error) = index.keep(&index::path_in(folder, &path), &stamp)
    {
        eprintln!("tallyline: {error:#}");
    }
    Update { path, stamp, content: Content::Index(index) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::mpsc::{Receiver, channel};

    /// A file of sources' types as large as those whose index takes long.
    fn large(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tallyline-database-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let file = folder.join("large.o");
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/layout/holes.o"), &file)
            .expect("there");
        // what is behind the sections is nobody's
        fs::File::options().write(true).open(&file).and_then(|file| file.set_len(QUICK + 1)).expect("grown");
        file
    }

    fn database() -> (Database, Receiver<Update>) {
        let (send, updates) = channel();
        let mut database = Database::new(send);
        database.folder = None;
        (database, updates)
    }

    fn names(found: Poll<Vec<Entry>>) -> Option<Vec<String>> {
        match found {
            Poll::Ready(entries) => Some(entries.into_iter().map(|entry| entry.name).collect()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn nothing_is_read_while_somebody_asks() {
        let file = large("asks");
        let (mut database, updates) = database();
        assert_eq!(names(database.find_quickly(&file, "aligned_member")), Some(vec![]));
        assert_eq!(names(database.find(&file, "aligned_member")), None);
        // words that come meanwhile are read at once, after it
        assert_eq!(names(database.find(&file, "none")), None);
        assert_eq!(names(database.find(&file, "never")), None);
        let [mut words, mut indices] = [0, 0];
        while words < 2 || indices < 1 {
            let update = updates.recv().expect("an update");
            let is_index = matches!(update.content, Content::Index(_));
            *(if is_index { &mut indices } else { &mut words }) += 1;
            assert_eq!(database.take(update), is_index);
        }
        assert!(updates.try_recv().is_err());
        for (word, expected) in [("aligned_member", vec!["aligned_member".to_owned()]), ("none", vec![])] {
            assert_eq!(names(database.find(&file, word)), Some(expected.clone()));
            assert_eq!(names(database.find_quickly(&file, word)), Some(expected));
        }
        fs::remove_dir_all(file.parent().expect("a folder")).expect("removed");
    }

    #[test]
    fn words_are_known_before_there_is_an_index() {
        let file = large("words");
        let (mut database, updates) = database();
        assert_eq!(names(database.find(&file, "aligned_member")), None);
        // the index is begun by the words' update only
        assert!(!database.take(updates.recv().expect("an update")));
        assert_eq!(names(database.find(&file, "aligned_member")), Some(vec!["aligned_member".to_owned()]));
        assert!(database.take(updates.recv().expect("an update")), "the index is there");
        fs::remove_file(&file).expect("removed");
        assert_eq!(names(database.find(&file, "aligned_member")), Some(vec![]));
        fs::remove_dir_all(file.parent().expect("a folder")).expect("removed");
    }
}
