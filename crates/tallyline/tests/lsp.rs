//! `tallyline lsp`: hovers, hints, actions and diagnostics, at the level of the protocol and in Neovim.

mod common;
mod recorded;

use common::{compiles, folder, tallyline};
use recorded::{Access, GET_A, SET_B, access};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A server and its editor's side of the protocol.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
    /// Notifications that came while an answer was awaited.
    told: Vec<Value>,
}

impl Editor {
    /// Starts a server for a workspace.
    fn start(root: &Path, options: &Value, args: &[&str]) -> Editor {
        let mut editor = Editor::connect(root, args);
        let answer =
            editor.ask("initialize", json!({"rootUri": uri(root), "initializationOptions": options}));
        assert_eq!(answer["capabilities"]["hoverProvider"], true, "{answer}");
        editor.tell("initialized", json!({}));
        editor
    }

    /// Starts a server, and leaves it uninitialized.
    fn connect(root: &Path, args: &[&str]) -> Editor {
        let mut command = tallyline();
        command.arg("lsp").args(args).current_dir(root).env("TALLYLINE_CACHE", root.join("cache"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program runs");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("piped")));
        Editor { child, input, output, next: 0, told: Vec::new() }
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let input = self.input.as_mut().expect("open");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("it reads");
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("it writes"), 0, "the server ended");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().expect("a number"),
                _ => break,
            }
        }
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).expect("all of it");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Sends a request and returns its answer whole.
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            self.told.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn open(&mut self, path: &Path, language: &str) {
        let text = std::fs::read_to_string(path).expect("there");
        self.tell(
            "textDocument/didOpen",
            json!({"textDocument": {"uri": uri(path), "languageId": language, "version": 1, "text": text}}),
        );
    }

    /// Returns the Markdown of a hover at the first place of some text.
    fn hover(&mut self, path: &Path, at: &str) -> Option<String> {
        let answer = self.ask("textDocument/hover", place(path, at));
        answer["contents"]["value"].as_str().map(str::to_owned)
    }

    /// Returns the labels of the hints of a document, by line.
    fn hints(&mut self, path: &Path) -> Vec<(u64, String)> {
        let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 10_000, "character": 0}});
        let answer =
            self.ask("textDocument/inlayHint", json!({"textDocument": {"uri": uri(path)}, "range": range}));
        let hint = |hint: &Value| {
            (
                hint["position"]["line"].as_u64().expect("a line"),
                hint["label"].as_str().expect("a label").to_owned(),
            )
        };
        answer.as_array().map(|hints| hints.iter().map(hint).collect()).unwrap_or_default()
    }

    fn actions(&mut self, path: &Path, at: &str) -> Vec<Value> {
        let position = place(path, at)["position"].clone();
        let params = json!({
            "textDocument": {"uri": uri(path)},
            "range": {"start": position, "end": position},
            "context": {"diagnostics": []},
        });
        self.ask("textDocument/codeAction", params).as_array().cloned().unwrap_or_default()
    }

    /// Waits for the diagnostics of a document.
    fn diagnostics(&mut self) -> Vec<Value> {
        loop {
            let is_it = |message: &Value| message["method"] == "textDocument/publishDiagnostics";
            if let Some(at) = self.told.iter().position(is_it) {
                return self.told.remove(at)["params"]["diagnostics"].as_array().expect("a list").clone();
            }
            let message = self.receive();
            self.told.push(message);
        }
    }

    /// Ends the server in order, and returns its status.
    fn end(mut self) -> Option<i32> {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        self.child.wait().expect("our child").code()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn place(path: &Path, at: &str) -> Value {
    let text = std::fs::read_to_string(path).expect("there");
    let before = &text[..text.find(at).unwrap_or_else(|| panic!("no {at} in {text}"))];
    let line = before.matches('\n').count();
    let character = before.rsplit('\n').next().unwrap_or_default().len();
    json!({"textDocument": {"uri": uri(path)}, "position": {"line": line, "character": character}})
}

const SOURCE: &str = "\
struct connection {
\tchar state; /* of the protocol */
\tlong received;
\tchar flags; // 8 of them
\tlong sent;
\tchar name[60];
};
struct connection connection;
int use(struct connection *c) { return c->state; }
";

/// Returns a workspace with a program in C that was built; none without a compiler.
fn workspace(name: &str) -> Option<PathBuf> {
    let folder = folder(name);
    let source = folder.join("server.c");
    std::fs::write(&source, SOURCE).expect("written");
    let built = compiles(Command::new("cc").args(["-g", "-c", "-o"]).arg(folder.join("server")).arg(&source));
    built.then_some(folder)
}

#[test]
fn a_hover_shows_size_lines_and_holes_of_the_last_build() {
    let Some(folder) = workspace("lsp-hover") else { return };
    let source = folder.join("server.c");
    let mut editor = Editor::start(&folder, &Value::Null, &[]);
    editor.open(&source, "c");
    let text = editor.hover(&source, "connection *c").expect("a type");
    assert!(
        text.starts_with(
            "`struct connection`: 96 bytes, 2 cache lines, 2 holes (14 bytes), 4 bytes of padding"
        ),
        "{text}"
    );
    assert!(text.contains("/*      8       8 */  long int  received;"), "{text}");
    assert!(text.contains("as built: server, declared at ") && text.contains("server.c:1"), "{text}");
    assert_eq!(editor.hover(&source, "return"), None);
    // from the index, when that is ready, and from the one that another server kept
    for _ in 0..50 {
        assert_eq!(editor.hover(&source, "connection *c").as_deref(), Some(&*text));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(editor.end(), Some(0));
    let kept = std::fs::read_dir(folder.join("cache/editor")).expect("a folder").count();
    assert_eq!(kept, 1);
    let mut editor = Editor::start(&folder, &Value::Null, &[]);
    editor.open(&source, "c");
    assert_eq!(editor.hover(&source, "connection *c"), Some(text));
    // after the next build the next answer is of that
    std::fs::write(&source, SOURCE.replace("name[60]", "name[8]")).expect("written");
    if !compiles(Command::new("cc").args(["-g", "-c", "-o"]).arg(folder.join("server")).arg(&source)) {
        return;
    }
    let text = editor.hover(&source, "connection *c").expect("a type");
    assert!(text.starts_with("`struct connection`: 40 bytes, 1 cache line"), "{text}");
}

#[test]
fn hints_follow_the_text_and_offsets_the_build() {
    let Some(folder) = workspace("lsp-hints") else { return };
    let source = folder.join("server.c");
    let mut editor = Editor::start(&folder, &Value::Null, &["./server"]);
    editor.open(&source, "c");
    let expected = [
        (0, "96 bytes, 2 cache lines, 2 holes (14 bytes), 4 bytes of padding"),
        (1, "0: 1 byte, line 0, then 7 bytes of hole"),
        (2, "8: 8 bytes, line 0"),
        (3, "16: 1 byte, line 0, then 7 bytes of hole"),
        (4, "24: 8 bytes, line 0"),
        (5, "32: 60 bytes, line 0"),
    ];
    assert_eq!(editor.hints(&source), expected.map(|(line, label)| (line, label.to_owned())));
    // a line that was not compiled has no hint, and the others move with the text
    let changed = SOURCE.replace("\tlong received;", "\tint fresh;\n\n\tlong received;");
    editor.tell(
        "textDocument/didChange",
        json!({"textDocument": {"uri": uri(&source), "version": 2}, "contentChanges": [{"text": changed}]}),
    );
    let lines: Vec<u64> = editor.hints(&source).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [0, 1, 4, 5, 6, 7]);
}

#[test]
fn an_action_reorders_the_text_and_the_result_is_as_promised() {
    let Some(folder) = workspace("lsp-action") else { return };
    let source = folder.join("server.c");
    let mut editor = Editor::start(&folder, &Value::Null, &[]);
    editor.open(&source, "c");
    assert!(editor.actions(&source, "int use").is_empty());
    let actions = editor.actions(&source, "long received");
    let [action] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((&action["kind"], action.get("disabled")), (&"refactor.rewrite".into(), None));
    let title = action["title"].as_str().expect("a title");
    let promised = title.rsplit("-> ").next().and_then(|rest| rest.split(' ').next()).expect("a size");
    let edits = action["edit"]["changes"][uri(&source)].as_array().expect("edits");
    let edited = apply(SOURCE, &edits[0]);
    for line in SOURCE.lines() {
        assert!(edited.contains(line), "{line} is lost: {edited}");
    }
    assert_eq!(edited.len(), SOURCE.len());
    let check = format!("{edited}\n_Static_assert(sizeof(struct connection) == {promised}, \"{title}\");\n");
    std::fs::write(folder.join("new.c"), check).expect("written");
    assert!(compiles(Command::new("cc").args(["-fsyntax-only"]).arg(folder.join("new.c"))));
    // what is not as it was compiled is not touched
    let changed = SOURCE.replace("\tlong sent;", "\tlong sent; int fresh;");
    std::fs::write(&source, &changed).expect("written");
    editor.open(&source, "c");
    let actions = editor.actions(&source, "long received");
    assert!(actions[0]["disabled"]["reason"].is_string() && actions[0].get("edit").is_none(), "{actions:?}");
}

/// Applies an edit of the protocol to a text of ASCII.
fn apply(text: &str, edit: &Value) -> String {
    let offset = |position: &Value| {
        let number = |name: &str| position[name].as_u64().expect("a number") as usize;
        text.split_inclusive('\n').take(number("line")).map(str::len).sum::<usize>() + number("character")
    };
    let (start, end) = (offset(&edit["range"]["start"]), offset(&edit["range"]["end"]));
    [&text[..start], edit["newText"].as_str().expect("a text"), &text[end..]].concat()
}

#[test]
fn findings_of_the_policy_are_diagnostics_where_the_text_has_them_now() {
    let Some(folder) = workspace("lsp-policy") else { return };
    let policy = "[[type]]\nname = \"connection\"\nmax-size = 64\n[[apart]]\ntype = \"connection\"\nmembers = [\"received\", \
                  \"sent\"]\nlevel = \"warn\"\nreason = \"two threads\"\n";
    std::fs::write(folder.join("layout.toml"), policy).expect("written");
    let source = folder.join("server.c");
    std::fs::write(&source, format!("/* a line that was not compiled */\n{SOURCE}")).expect("written");
    let mut editor = Editor::start(&folder, &Value::Null, &[]);
    editor.open(&source, "c");
    let found = editor.diagnostics();
    let of = |code: &str| found.iter().find(|one| one["code"] == code).unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!(
        (&of("max-size")["severity"], &of("max-size")["range"]["start"]),
        (&1.into(), &json!({"line": 1, "character": 7}))
    );
    assert_eq!(of("apart")["severity"], 2);
    assert!(of("apart")["message"].as_str().is_some_and(|text| text.contains("two threads")), "{found:?}");
    // another policy, by an option; what it allows is quiet
    std::fs::write(folder.join("other.toml"), "[[type]]\nname = \"connection\"\nmax-size = 640\n")
        .expect("written");
    let mut editor = Editor::start(&folder, &json!({"policy": "other.toml"}), &[]);
    editor.open(&source, "c");
    assert_eq!(editor.diagnostics(), [Value::Null; 0]);
}

/// Returns the text at the type `pair` once the recording, which is read in the background, is in it.
fn hover_with_heat(editor: &mut Editor, source: &Path) -> String {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let text = editor.hover(source, "pair {").expect("a type");
        if text.contains("of the samples") || std::time::Instant::now() > end {
            return text;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_recording_shows_heat() {
    let samples: Vec<_> = (0..75).map(|index| access(if index % 3 == 0 { SET_B } else { GET_A })).collect();
    let Some(recorded) = recorded::record("lsp-heat", true, &samples) else { return };
    let source = recorded.folder.join("pair.c");
    let mut editor = Editor::start(&recorded.folder, &Value::Null, &[]);
    editor.open(&source, "c");
    let text = hover_with_heat(&mut editor, &source);
    assert!(text.contains("\n100.0 % of the samples: `a` 66.6 %, `b` 33.3 %\n"), "{text}");
    assert!(editor.hints(&source).iter().any(|(_, label)| label.contains("8: 8 bytes, line 0, 33.3 %")));
}

#[test]
fn heat_is_of_one_event() {
    let of = |event, function, count| vec![Access { event, ..access(function) }; count];
    let samples = [of(0, GET_A, 3), of(1, SET_B, 1)].concat();
    let Some(recorded) = recorded::record("lsp-events", true, &samples) else { return };
    let source = recorded.folder.join("pair.c");
    let options = [
        (Value::Null, &[][..], "loads': `a` 100.0 %\n"),
        (Value::Null, &["--event", "faults"], "faults': `b` 100.0 %\n"),
        (json!({"event": "fau*"}), &[], "faults': `b` 100.0 %\n"),
    ];
    for (initial, options, expected) in options {
        let mut editor = Editor::start(&recorded.folder, &initial, options);
        editor.open(&source, "c");
        let text = hover_with_heat(&mut editor, &source);
        assert!(text.contains(&format!("\n100.0 % of the samples of event '{expected}")), "{text}");
    }
}

#[test]
fn types_of_other_languages_are_found_by_their_words() {
    let folder = folder("lsp-languages");
    let cases = [
        (
            "a.rs",
            "rust",
            "#![crate_type = \"lib\"]\npub mod inner {\n#[repr(C)]\npub struct Order {\n    pub flag: u8,\n    pub price: u64,\n    \
             pub side: u8,\n    pub count: u32,\n    pub last: u64,\n}\n}\npub static ORDER: inner::Order = inner::Order { flag: 0, price: 1, side: 2, count: 4, last: 3 };\n",
            vec!["rustc", "-g", "--emit=obj", "-o"],
            "Order {",
        ),
        (
            "b.cc",
            "cpp",
            "namespace shop { template <class T> struct Order { char flag; T price; }; }\nshop::Order<long> order;\n",
            vec!["c++", "-g", "-c", "-o"],
            "Order {",
        ),
    ];
    for (name, language, text, compiler, at) in cases {
        let source = folder.join(name);
        std::fs::write(&source, text).expect("written");
        let object = folder.join(format!("{name}.o"));
        let mut command = Command::new(compiler[0]);
        if !compiles(command.args(&compiler[1..]).arg(&object).arg(&source)) {
            continue;
        }
        let mut editor = Editor::start(&folder, &json!({"files": [object]}), &[]);
        editor.open(&source, language);
        let text = editor.hover(&source, at).unwrap_or_else(|| panic!("{name}"));
        assert!(text.contains("XXX 7 bytes hole") && text.contains("price"), "{text}");
        if language == "rust" {
            let actions = editor.actions(&source, "pub price");
            assert!(actions.iter().any(|action| action["edit"].is_object()), "{actions:?}");
        }
    }
}

#[test]
fn go_types_are_found_where_there_is_a_compiler() {
    let folder = folder("lsp-go");
    let source = folder.join("main.go");
    let text = "package main\n\ntype Order struct {\n\tFlag bool\n\tPrice int64\n\tSide bool\n}\n\nvar orders []Order\n\n\
                func main() {\n\torders = append(orders, Order{Price: 3})\n\tprintln(len(orders), orders[0].Price)\n}\n";
    std::fs::write(&source, text).expect("written");
    let mut command = Command::new("go");
    command.args(["build", "-gcflags=all=-N -l", "-o"]).arg(folder.join("shop")).arg(&source);
    if !compiles(
        command.env("GO111MODULE", "off").env("GOCACHE", folder.join("go-cache")).current_dir(&folder),
    ) {
        return;
    }
    let mut editor = Editor::start(&folder, &Value::Null, &[]);
    editor.open(&source, "go");
    // the first word is found by the index where the name has a package in front
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let text = loop {
        match editor.hover(&source, "Order struct") {
            Some(text) => break text,
            None => assert!(std::time::Instant::now() < end, "no hover"),
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert!(
        text.starts_with("`struct main.Order`: 24 bytes, 1 cache line, 1 hole (7 bytes), 7 bytes of padding"),
        "{text}"
    );
    let labels = editor.hints(&source);
    assert!(labels.contains(&(4, "8: 8 bytes".to_owned())), "{labels:?}");
}

#[test]
fn the_protocol_is_kept_in_order_and_out_of_it() {
    let Some(folder) = workspace("lsp-protocol") else { return };
    let mut editor = Editor::start(&folder, &Value::Null, &[]);
    let answer = editor.request("workspace/unknown", json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    assert_eq!(
        editor.ask("textDocument/hover", json!({"textDocument": {"uri": "file:///none.c"}})),
        Value::Null
    );
    assert_eq!(editor.ask("textDocument/inlayHint", json!("nonsense")), Value::Null);
    // of a request that was answered, or never was
    editor.tell("$/cancelRequest", json!({"id": 1}));
    editor.tell("$/cancelRequest", json!({"id": "none"}));
    assert_eq!(editor.end(), Some(0));
    // without a shutdown
    let mut editor = Editor::start(&folder, &Value::Null, &[]);
    editor.tell("exit", Value::Null);
    assert_eq!(editor.child.wait().expect("our child").code(), Some(1));
    // what is no message
    let mut editor = Editor::start(&folder, &Value::Null, &[]);
    editor.input.as_mut().expect("open").write_all(b"Content-Length: x\r\n\r\n").expect("it reads");
    assert_eq!(editor.child.wait().expect("our child").code(), Some(2));
}

#[test]
fn a_message_that_is_no_json_is_answered_and_the_next_one_read() {
    let Some(folder) = workspace("lsp-undecodable") else { return };
    let mut editor = Editor::start(&folder, &Value::Null, &[]);
    let deep = "[".repeat(100_000);
    for (text, code) in [
        (&b"{bad}"[..], -32700),
        (b"\"\xff\"", -32700),
        (deep.as_bytes(), -32700),
        (b"[]", -32600),
        (b"null", -32600),
    ] {
        let input = editor.input.as_mut().expect("open");
        write!(input, "Content-Length: {}\r\n\r\n", text.len()).expect("it reads");
        input.write_all(text).expect("it reads");
        let answer = editor.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &code.into()), "{answer}");
    }
    let answer = editor.request("workspace/unknown", json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn requests_are_served_after_one_initialize() {
    let Some(folder) = workspace("lsp-initialize") else { return };
    let mut editor = Editor::connect(&folder, &[]);
    for method in ["textDocument/hover", "workspace/unknown", "shutdown"] {
        let answer = editor.request(method, json!({}));
        assert_eq!(answer["error"]["code"], -32002, "{method}: {answer}");
    }
    let root = json!({"rootUri": uri(&folder)});
    assert_eq!(editor.ask("initialize", root.clone())["capabilities"]["hoverProvider"], true);
    let answer = editor.request("initialize", root);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(editor.ask("textDocument/hover", json!({})), Value::Null);
    assert_eq!(editor.end(), Some(0));
}

/// Neovim's own client with clangd beside: both hovers of one word.
#[test]
fn neovim_shows_the_hover_beside_clangd_s() {
    let Some(folder) = workspace("lsp-neovim") else { return };
    for program in ["nvim", "clangd"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("skipped: {program}: not installed");
            return;
        }
    }
    let script = format!(
        r#"
vim.cmd('edit server.c')
local function start(name, cmd)
  return vim.lsp.start_client({{ name = name, cmd = cmd, root_dir = vim.fn.getcwd() }})
end
for name, cmd in pairs({{ tallyline = {{ '{}', 'lsp' }}, clangd = {{ 'clangd' }} }}) do
  vim.lsp.buf_attach_client(0, assert(start(name, cmd)))
end
local params = {{ textDocument = {{ uri = vim.uri_from_bufnr(0) }}, position = {{ line = 8, character = 16 }} }}
local names = {{}}
local ok = vim.wait(60000, function()
  local answers = vim.lsp.buf_request_sync(0, 'textDocument/hover', params, 10000) or {{}}
  for id, answer in pairs(answers) do
    local client = vim.lsp.get_client_by_id(id)
    if client and answer.result and answer.result.contents then
      names[client.name] = answer.result.contents.value or vim.inspect(answer.result.contents)
    end
  end
  return names.tallyline ~= nil and names.clangd ~= nil
end, 200)
local out = io.open('hovers', 'w')
for name, text in pairs(names) do out:write('== ' .. name .. '\n' .. text .. '\n') end
out:close()
vim.lsp.stop_client(vim.lsp.get_active_clients(), true)
vim.cmd(ok and 'qa!' or 'cq!')
"#,
        env!("CARGO_BIN_EXE_tallyline")
    );
    std::fs::write(folder.join("hover.lua"), script).expect("written");
    let mut nvim = Command::new("nvim");
    nvim.args(["--headless", "--clean", "-n", "-c", "luafile hover.lua"]).current_dir(&folder);
    nvim.env("HOME", &folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("XDG_STATE_HOME", folder.join("state"));
    nvim.env("TALLYLINE_CONFIG", "off").env("TALLYLINE_CACHE", folder.join("cache"));
    let output = nvim.stdin(Stdio::null()).output().expect("it runs");
    let hovers = std::fs::read_to_string(folder.join("hovers")).unwrap_or_default();
    assert!(output.status.success(), "{output:?}\n{hovers}");
    assert!(
        hovers.contains("== clangd\n") && hovers.contains("== tallyline\n`struct connection`: 96 bytes"),
        "{hovers}"
    );
}
