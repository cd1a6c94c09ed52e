//! The server: what an editor asks, and what it is told.

use super::actions::reorder;
use super::database::{Database, Update};
use super::declarations::{self, Declaration};
use super::diagnostics::{self, Found, is_same};
use super::document::{Document, Language};
use super::entry::Entry;
use super::workspace::Workspace;
use super::{LspArgs, hints, hover, index, rpc};
use crate::heat::{Heat, heat};
use crate::path_map::{Paths, PrefixMap};
use crate::profile::Patterns;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};
use std::task::{Poll, ready};
use tallyline_layout::check::Policy;

/// An event that the server handles: input of the editor, or a result of work in the background.
pub(super) enum Event {
    /// A message of the editor.
    Message(Value),
    /// A message of the editor that is no JSON, and why.
    Undecodable(String),
    /// The end of the editor's messages, with the error if its last input was not a message.
    Closed(Option<anyhow::Error>),
    Read(Update),
    /// The answer to a request for code actions: the id of the request, and the actions.
    Actions(Value, Vec<Value>),
    Heat(HashMap<String, Heat>),
    /// The findings in a document, with the document's address.
    Found(String, Vec<Found>),
}

impl From<Update> for Event {
    fn from(update: Update) -> Event {
        Event::Read(update)
    }
}

/// The most requests that wait for types: an editor asks for a few at a time.
const WAITING: usize = 1024;

/// The state between two messages.
pub(super) struct Server<'o> {
    out: &'o mut dyn Write,
    send: Sender<Event>,
    workspace: Workspace,
    database: Database,
    documents: HashMap<String, Document>,
    /// Requests whose answers are being read, in their order.
    waiting: Vec<Value>,
    /// `true` while a thread makes proposals.
    is_proposing: bool,
    heat: HashMap<String, Heat>,
    recording: Option<PathBuf>,
    event: Option<Patterns>,
    policy: Option<PathBuf>,
    maps: Vec<PrefixMap>,
    cacheline: u64,
    /// `true` if the editor asks for hints anew when it is told to.
    refreshes: bool,
    requests: u64,
    is_initialized: bool,
    is_shut_down: bool,
}

impl<'o> Server<'o> {
    pub(super) fn new(
        args: &LspArgs,
        maps: Vec<PrefixMap>,
        send: Sender<Event>,
        out: &'o mut dyn Write,
    ) -> Server<'o> {
        Server {
            out,
            workspace: Workspace::new(std::env::current_dir().unwrap_or_default(), args.files.clone()),
            database: Database::new(send.clone()),
            send,
            documents: HashMap::new(),
            waiting: Vec::new(),
            is_proposing: false,
            heat: HashMap::new(),
            recording: args.recording.clone(),
            event: args.event.clone(),
            policy: args.policy.clone(),
            maps,
            cacheline: args.cacheline_size,
            refreshes: false,
            requests: 0,
            is_initialized: false,
            is_shut_down: false,
        }
    }

    /// Serves until the editor ends the server; returns `true` if it had requested a shutdown before.
    pub(super) fn run(&mut self, events: &Receiver<Event>) -> Result<bool> {
        for event in events {
            match event {
                Event::Closed(Some(error)) => return Err(error),
                Event::Closed(None) => return Ok(self.is_shut_down),
                Event::Message(message) if message["method"] == "exit" => return Ok(self.is_shut_down),
                Event::Message(message) => self.message(&message)?,
                Event::Undecodable(error) => {
                    let refusal = rpc::refusal(&Value::Null, rpc::PARSE_ERROR, &error);
                    rpc::write(self.out, &refusal)?;
                }
                Event::Read(update) => {
                    let is_index = self.database.take(update);
                    self.try_again()?;
                    if is_index {
                        self.refresh()?;
                    }
                }
                Event::Actions(id, actions) => {
                    self.is_proposing = false;
                    rpc::write(self.out, &rpc::answer(&id, actions.into()))?;
                    self.try_again()?;
                }
                Event::Heat(heat) => {
                    self.heat = heat;
                    self.refresh()?;
                }
                Event::Found(uri, found) => self.publish(&uri, &found)?,
            }
        }
        Ok(self.is_shut_down)
    }

    /// Asks the editor to ask for hints again: there is more to say now.
    fn refresh(&mut self) -> Result<()> {
        if !self.refreshes || self.is_shut_down {
            return Ok(());
        }
        self.requests += 1;
        let id = format!("tallyline-{}", self.requests);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "workspace/inlayHint/refresh"});
        rpc::write(self.out, &request)
    }

    fn message(&mut self, message: &Value) -> Result<()> {
        if !message.is_object() {
            // the protocol has no batches
            let refusal = rpc::refusal(&Value::Null, rpc::INVALID_REQUEST, "a message is not an object");
            return rpc::write(self.out, &refusal);
        }
        let (Some(method), params) = (message["method"].as_str(), &message["params"]) else { return Ok(()) };
        let Some(id) = message.get("id") else {
            return match method {
                _ if !self.is_initialized => Ok(()),
                "$/cancelRequest" => self.cancel(&params["id"]),
                _ => {
                    self.notified(method, params);
                    Ok(())
                }
            };
        };
        let found = match method {
            "initialize" if self.is_initialized => {
                let refusal = rpc::refusal(id, rpc::INVALID_REQUEST, "the server is initialized already");
                return rpc::write(self.out, &refusal);
            }
            _ if !self.is_initialized && method != "initialize" => {
                let refusal = rpc::refusal(id, rpc::NOT_INITIALIZED, "the server is not initialized");
                return rpc::write(self.out, &refusal);
            }
            "initialize" => Poll::Ready(Some(self.initialize(params))),
            "shutdown" => {
                self.is_shut_down = true;
                for message in std::mem::take(&mut self.waiting) {
                    rpc::write(
                        self.out,
                        &rpc::refusal(&message["id"], rpc::CANCELLED, "the server is shut down"),
                    )?;
                }
                Poll::Ready(None)
            }
            _ if self.is_shut_down => {
                let refusal = rpc::refusal(id, rpc::INVALID_REQUEST, "the server is shut down");
                return rpc::write(self.out, &refusal);
            }
            "textDocument/hover" => self.hover(params),
            "textDocument/inlayHint" => self.hints(params),
            "textDocument/codeAction" => match self.propose(id, params) {
                Poll::Ready(false) => Poll::Ready(None),
                Poll::Ready(true) => return Ok(()),
                Poll::Pending => Poll::Pending,
            },
            _ => {
                let refusal = rpc::refusal(id, rpc::METHOD_NOT_FOUND, &format!("no method {method}"));
                return rpc::write(self.out, &refusal);
            }
        };
        match found {
            Poll::Ready(found) => rpc::write(self.out, &rpc::answer(id, found.unwrap_or(Value::Null))),
            Poll::Pending if self.waiting.len() < WAITING => {
                self.waiting.push(message.clone());
                Ok(())
            }
            Poll::Pending => {
                rpc::write(self.out, &rpc::refusal(id, rpc::CANCELLED, "too many requests wait for types"))
            }
        }
    }

    /// Answers the requests that wait, as far as that is possible by now.
    fn try_again(&mut self) -> Result<()> {
        std::mem::take(&mut self.waiting).iter().try_for_each(|message| self.message(message))
    }

    /// Ends a request that waits; others were answered.
    fn cancel(&mut self, id: &Value) -> Result<()> {
        let Some(at) = self.waiting.iter().position(|message| message["id"] == *id) else { return Ok(()) };
        self.waiting.remove(at);
        rpc::write(self.out, &rpc::refusal(id, rpc::CANCELLED, "cancelled by the editor"))
    }

    fn initialize(&mut self, params: &Value) -> Value {
        self.is_initialized = true;
        let folder = params["workspaceFolders"][0]["uri"].as_str().or(params["rootUri"].as_str());
        let root = folder.and_then(path_of).or_else(|| params["rootPath"].as_str().map(PathBuf::from));
        self.refreshes = params["capabilities"]["workspace"]["inlayHint"]["refreshSupport"] == true;
        let options = &params["initializationOptions"];
        let paths = |name: &str| -> Vec<PathBuf> {
            options[name]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(PathBuf::from)
                .collect()
        };
        let mut named = std::mem::take(&mut self.workspace.named);
        named.extend(paths("files"));
        let before = std::mem::take(&mut self.workspace.root);
        self.workspace = Workspace::new(root.unwrap_or(before), named);
        let path = |name: &str| options[name].as_str().map(PathBuf::from);
        self.recording = self.recording.take().or_else(|| path("recording"));
        self.policy = self.policy.take().or_else(|| path("policy"));
        if let (None, Some(event)) = (&self.event, options["event"].as_str()) {
            match Patterns::parse(event) {
                Ok(event) => self.event = Some(event),
                Err(error) => eprintln!("tallyline: initialization option `event`: {error}"),
            }
        }
        self.read_recording();
        json!({
            "capabilities": {
                "positionEncoding": "utf-16",
                "textDocumentSync": {"openClose": true, "change": 1, "save": true},
                "hoverProvider": true,
                "inlayHintProvider": true,
                "codeActionProvider": {"codeActionKinds": ["refactor.rewrite"]},
            },
            "serverInfo": {"name": "tallyline", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    /// Reads the recording that somebody named, or the workspace's, in the background.
    fn read_recording(&self) {
        let path = self.workspace.path(self.recording.as_deref().unwrap_or(Path::new("perf.data")));
        if self.recording.is_none() && !path.is_file() {
            return;
        }
        let (send, event) = (self.send.clone(), self.event.clone());
        std::thread::spawn(move || match heat(&path, event.as_ref()) {
            Ok(heat) => drop(send.send(Event::Heat(heat))),
            Err(error) => eprintln!("tallyline: {error:#}"),
        });
    }

    fn notified(&mut self, method: &str, params: &Value) {
        let Some(uri) = params["textDocument"]["uri"].as_str() else { return };
        match method {
            "textDocument/didOpen" => {
                let id = params["textDocument"]["languageId"].as_str().unwrap_or_default();
                let text = params["textDocument"]["text"].as_str();
                if let (Some(language), Some(text)) = (Language::of(id, uri), text) {
                    self.documents.insert(uri.to_owned(), Document::new(language, text.to_owned()));
                    self.check(uri);
                }
            }
            "textDocument/didChange" => {
                // each change is the whole text
                let text = params["contentChanges"].as_array().and_then(|all| all.last()?["text"].as_str());
                if let (Some(document), Some(text)) = (self.documents.get_mut(uri), text) {
                    *document = Document::new(document.language, text.to_owned());
                }
            }
            "textDocument/didSave" => self.check(uri),
            "textDocument/didClose" => drop(self.documents.remove(uri)),
            _ => {}
        }
    }

    /// Holds a document's types against the policy in the background.
    fn check(&mut self, uri: &str) {
        let Some(source) = path_of(uri).filter(|_| self.documents.contains_key(uri)) else { return };
        let policy = self.workspace.path(self.policy.as_deref().unwrap_or(Path::new("layout.toml")));
        if self.policy.is_none() && !is_policy(&policy) {
            return;
        }
        let (files, maps) = (self.workspace.files(&source), self.maps.clone());
        let (send, uri) = (self.send.clone(), uri.to_owned());
        std::thread::spawn(move || match diagnostics::find(&policy, &files, &source, &maps) {
            Ok(found) => drop(send.send(Event::Found(uri, found))),
            Err(error) => eprintln!("tallyline: {error:#}"),
        });
    }

    fn publish(&mut self, uri: &str, found: &[Found]) -> Result<()> {
        // it may be closed by now
        let Some(document) = self.documents.get(uri) else { return Ok(()) };
        let declarations = declarations::find(document.language, document.text());
        let list: Vec<Value> = found.iter().map(|one| one.diagnostic(document, &declarations)).collect();
        let params = json!({"uri": uri, "diagnostics": list});
        rpc::write(self.out, &rpc::notification("textDocument/publishDiagnostics", params))
    }

    /// Returns the types of a word with the file of each; those that the source declares come alone.
    fn types(&mut self, uri: &str, word: &str, is_quick: bool) -> Poll<Vec<(Entry, PathBuf)>> {
        let Some(source) = path_of(uri) else { return Poll::Ready(Vec::new()) };
        let mut found: Vec<(Entry, PathBuf)> = Vec::new();
        let mut is_pending = false;
        for file in self.workspace.files(&source) {
            let entries = match is_quick {
                true => self.database.find_quickly(&file, word),
                false => self.database.find(&file, word),
            };
            let Poll::Ready(entries) = entries else {
                // the other files are read meanwhile
                is_pending = true;
                continue;
            };
            for entry in entries {
                if !found.iter().any(|(known, _)| *known == entry) {
                    found.push((entry, file.clone()));
                }
            }
        }
        if is_pending {
            return Poll::Pending;
        }
        let paths = Paths::new(&self.maps);
        let is_here: Vec<bool> =
            found.iter().map(|(entry, _)| is_same(&paths.shown(&entry.file), &source)).collect();
        if is_here.contains(&true) {
            let mut here = is_here.into_iter();
            found.retain(|_| here.next().unwrap_or(false));
        }
        Poll::Ready(found)
    }

    fn heat_of(&self, entry: &Entry) -> Option<Heat> {
        self.heat.get(&entry.name).cloned()
    }

    fn hover(&mut self, params: &Value) -> Poll<Option<Value>> {
        let Some((uri, word, range)) = self.word_at(params) else { return Poll::Ready(None) };
        let found = ready!(self.types(&uri, &word, false));
        if found.is_empty() {
            return Poll::Ready(None);
        }
        let root = &self.workspace.root;
        let named: Vec<(Entry, String)> = found
            .into_iter()
            .map(|(entry, file)| (entry, file.strip_prefix(root).unwrap_or(&file).display().to_string()))
            .collect();
        let text = hover::markdown(&named, &|entry| self.heat_of(entry), self.cacheline);
        Poll::Ready(Some(json!({"contents": {"kind": "markdown", "value": text}, "range": range})))
    }

    /// Returns the document, the word and its range at a position.
    fn word_at(&self, params: &Value) -> Option<(String, String, Value)> {
        let uri = params["textDocument"]["uri"].as_str()?;
        let document = self.documents.get(uri)?;
        let (word, bytes) = document.word(document.offset(&params["position"])?)?;
        Some((uri.to_owned(), word.to_owned(), document.range(&bytes)))
    }

    /// Returns the declarations of a document that have something in a range.
    fn touched(&self, uri: &str, range: &Value) -> Option<Vec<Declaration>> {
        let document = self.documents.get(uri)?;
        let start = document.offset(&range["start"])?;
        let end = document.offset(&range["end"]).unwrap_or(document.text().len());
        let declarations = declarations::find(document.language, document.text());
        let touched = declarations
            .into_iter()
            .filter(|one| one.at.start.min(one.body.start) <= end && one.body.end >= start);
        Some(touched.collect())
    }

    /// Returns the declarations of a document that have something in a range, each with its type.
    fn declared(
        &mut self,
        uri: &str,
        range: &Value,
        is_quick: bool,
    ) -> Poll<Vec<(Declaration, Entry, PathBuf)>> {
        let mut found = Vec::new();
        let mut is_pending = false;
        for declaration in self.touched(uri, range).unwrap_or_default() {
            let members = |entry: &Entry| {
                let names = declaration.members.iter().flat_map(|member| &member.names);
                names.filter(|(name, _)| entry.fields.iter().any(|field| field.name == *name)).count()
            };
            let Poll::Ready(types) = self.types(uri, &declaration.name, is_quick) else {
                // all are read at once
                is_pending = true;
                continue;
            };
            // of several of a name the one that is most like the text
            let best = types
                .into_iter()
                .max_by_key(|(entry, _)| (members(entry), std::cmp::Reverse(entry.fields.len())));
            if let Some((entry, file)) =
                best.filter(|(entry, _)| members(entry) != 0 || entry.fields.is_empty())
            {
                found.push((declaration, entry, file));
            }
        }
        if is_pending { Poll::Pending } else { Poll::Ready(found) }
    }

    fn hints(&mut self, params: &Value) -> Poll<Option<Value>> {
        let Some(uri) = params["textDocument"]["uri"].as_str() else { return Poll::Ready(None) };
        let declared = ready!(self.declared(uri, &params["range"], true));
        let line = |end: &str| usize::try_from(params["range"][end]["line"].as_u64()?).ok();
        let (Some(document), Some(start), Some(end)) = (self.documents.get(uri), line("start"), line("end"))
        else {
            return Poll::Ready(None);
        };
        let hints = declared.iter().flat_map(|(declaration, entry, _)| {
            hints::of(document, declaration, entry, self.heat_of(entry).as_ref(), self.cacheline, start..=end)
        });
        Poll::Ready(Some(hints.collect()))
    }

    /// Has the answer to a request for actions made in the background, as proposals need more of a type than hovers;
    /// `false` if there is nothing to propose.
    fn propose(&mut self, id: &Value, params: &Value) -> Poll<bool> {
        let Some(uri) = params["textDocument"]["uri"].as_str() else { return Poll::Ready(false) };
        let only = params["context"]["only"].as_array();
        let is_wanted = |kind: &Value| kind.as_str().is_some_and(|kind| "refactor.rewrite".starts_with(kind));
        if only.is_some_and(|only| !only.iter().any(is_wanted)) {
            return Poll::Ready(false);
        }
        let mut declared = ready!(self.declared(uri, &params["range"], false));
        let Some(document) = self.documents.get(uri).cloned() else { return Poll::Ready(false) };
        declared.retain(|(one, ..)| document.language != Language::Rust || one.is_repr_c);
        if declared.is_empty() {
            return Poll::Ready(false);
        }
        if self.is_proposing {
            return Poll::Pending;
        }
        self.is_proposing = true;
        let (send, id, uri, cacheline) = (self.send.clone(), id.clone(), uri.to_owned(), self.cacheline);
        std::thread::spawn(move || {
            let actions = declared.iter().filter_map(|one| action(&document, &uri, one, cacheline));
            drop(send.send(Event::Actions(id, actions.collect())));
        });
        Poll::Ready(true)
    }
}

/// Returns the action that reorders a declared type, which may be disabled; none if it cannot be smaller.
fn action(
    document: &Document,
    uri: &str,
    (declaration, entry, file): &(Declaration, Entry, PathBuf),
    cacheline: u64,
) -> Option<Value> {
    let types = index::types(file, [declaration.name.as_str()]).ok()?;
    let id = types.listed().iter().find(|id| Entry::of(&types, **id).as_ref() == Some(entry))?;
    let found = reorder(document, declaration, &types, *id, cacheline)?;
    let mut action = json!({"title": found.title, "kind": "refactor.rewrite"});
    match found.edit {
        Ok((bytes, text)) => {
            let edits = json!([{"range": document.range(&bytes), "newText": text}]);
            action["edit"] = json!({"changes": {uri: edits}});
        }
        Err(reason) => action["disabled"] = json!({"reason": reason}),
    }
    Some(action)
}

/// Returns `true` if a file is a policy with rules: one of the default name may be another program's.
fn is_policy(path: &Path) -> bool {
    std::fs::read_to_string(path)
        .is_ok_and(|text| Policy::parse(&text).is_ok_and(|policy| !policy.is_empty()))
}

/// Returns the path of a `file:` address.
fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    // a host before the path is this one
    let path = &rest[rest.find('/')?..];
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    Some(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files_are_decoded() {
        assert_eq!(path_of("file:///a%20b/c.h"), Some("/a b/c.h".into()));
        assert_eq!(path_of("file://host/a"), Some("/a".into()));
        for wrong in ["http://x/a", "file:///a%2", "file:///a%zz", "file://"] {
            assert_eq!(path_of(wrong), None, "{wrong}");
        }
    }
}
