//! `attache hub` and `attache token`, as processes.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::world::{Running, World, eventually};

const SCRIPT: &str = r#"
on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"loadSession":true}}
on session/load
  say replayed by the agent
  reply {}
on session/prompt
  say [$prompt]
  done end_turn
on session/prompt 2
  say working
  wait session/cancel
"#;

pub(crate) struct Hub {
    pub(crate) running: Running,
    pub(crate) url: String,
}

impl Hub {
    pub(crate) fn start(world: &World, args: &[&str]) -> Hub {
        let words = [&["--format", "quiet", "hub", "--listen", "127.0.0.1:0"], args].concat();
        let mut running = world.start(&words);
        let url = running.next();
        Hub { running, url }
    }

    pub(crate) fn kill(self) {
        self.running.signal("KILL");
        let _ = self.running.end();
    }

    pub(crate) fn stop(self) {
        self.running.signal("TERM");
        self.running.end().code(0);
    }

    /// The body of a page for programs of this machine.
    pub(crate) fn get(&self, path: &str) -> String {
        let address = self.url.trim_start_matches("http://").trim_end_matches("/acp");
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

/// An editor that reaches the hub through `attache connect`.
pub(crate) struct Editor {
    pub(crate) running: Running,
    next: i64,
    pub(crate) seen: Vec<Value>,
}

impl Editor {
    pub(crate) fn connect(world: &World, url: &str) -> Editor {
        let mut editor = Editor { running: world.start_piped(&["connect", url]), next: 0, seen: Vec::new() };
        editor.call("initialize", json!({"protocolVersion": 1}));
        editor
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.running.send(&line.to_string());
        id
    }

    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message: Value = serde_json::from_str(&self.running.next()).unwrap();
            if fits(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.until(|message| message["id"] == id && message["method"].is_null())
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str, name: &str) -> i64 {
        let prompt = json!([{"type": "text", "text": text}]);
        let meta = json!({"attache": {"prompt": name}});
        self.request("session/prompt", json!({"sessionId": session, "prompt": prompt, "_meta": meta}))
    }

    pub(crate) fn load(&mut self, world: &World, session: &str) -> Value {
        self.call("session/load", json!({"sessionId": session, "cwd": world.dir, "mcpServers": []}))
    }

    pub(crate) fn texts(&self) -> Vec<&str> {
        self.seen
            .iter()
            .filter_map(|message| message.pointer("/params/update/content/text")?.as_str())
            .collect()
    }
}

pub(crate) fn response(id: i64) -> impl Fn(&Value) -> bool {
    move |message| message["id"] == id && message["method"].is_null()
}

#[test]
fn a_killed_hub_keeps_its_sessions() {
    let world = World::new().agent(SCRIPT);
    let journal = format!("sqlite:{}", world.path("hub.db").display());
    let hub = Hub::start(&world, &["--journal", &journal]);
    let mut editor = Editor::connect(&world, &hub.url);
    let opened = editor.call("session/new", json!({"cwd": world.dir, "mcpServers": []}));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let first = editor.prompt(&session, "one", "p1");
    editor.until(response(first));
    editor.prompt(&session, "two", "p2");
    editor.until(|message| message.pointer("/params/update/content/text") == Some(&json!("working")));
    hub.kill();

    let hub = Hub::start(&world, &["--journal", &journal]);
    let mut back = Editor::connect(&world, &hub.url);
    let list = back.call("session/list", json!({}));
    assert_eq!(list["result"]["sessions"][0]["sessionId"], *session);
    back.load(&world, &session);
    assert_eq!(back.texts(), ["one", "[one]", "two", "working"]);
    // Both prompts are sent again. One has a result, the other was interrupted; neither runs again.
    let (one, two) = (back.prompt(&session, "one", "p1"), back.prompt(&session, "two", "p2"));
    let answers =
        [back.until(|message| message["id"].is_i64()), back.until(|message| message["id"].is_i64())];
    let of = |id: i64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(of(one)["result"]["stopReason"], "end_turn");
    assert_eq!(of(two)["error"]["data"]["attache"]["interrupted"], true);
    let three = back.prompt(&session, "three", "p3");
    assert_eq!(back.until(response(three))["result"]["stopReason"], "end_turn");
    assert_eq!(back.texts(), ["one", "[one]", "two", "working", "[three]"], "the agent's replay is dropped");
    let prompts = world.methods().iter().filter(|method| *method == "session/prompt").count();
    assert_eq!(prompts, 3);
    assert_eq!(hub.get("/health"), "ok\n");
    assert_eq!(hub.get("/ready"), "ok\n");
    assert!(hub.get("/metrics").contains("attache_hub_prompts_total 1\n"));
    hub.stop();
}

#[test]
fn every_command_takes_a_hub_as_the_agent() {
    let world = World::new().agent("on session/prompt\n  say [$prompt]\n  done end_turn\n");
    let hub = Hub::start(&world, &["--journal", "memory"]);
    let exec = ["--format", "quiet", "--agent", &hub.url, "exec", "hi"];
    for _ in 0..2 {
        assert_eq!(world.run(&exec).ok(), "[hi]\n");
    }
    // Both sessions are there for others.
    let mut editor = Editor::connect(&world, &hub.url);
    let list = editor.call("session/list", json!({}));
    assert_eq!(list["result"]["sessions"].as_array().unwrap().len(), 2, "{list}");
    hub.stop();
}

#[test]
fn decided_questions_are_logged() {
    let world = World::new().agent(
        r#"on session/prompt
  call session/request_permission {"toolCall":{"toolCallId":"t","title":"Run make","kind":"execute"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}
  done end_turn
"#,
    );
    let hub = Hub::start(&world, &["--log", "hub.log"]);
    let mut editor = Editor::connect(&world, &hub.url);
    let session = editor.call("session/new", json!({"cwd": world.dir, "mcpServers": []}));
    let session = session["result"]["sessionId"].as_str().unwrap().to_owned();
    let prompt = editor.prompt(&session, "build", "p-1");
    let asked = editor.until(|message| message["method"] == "session/request_permission");
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
    editor.running.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome}).to_string());
    editor.until(response(prompt));
    drop(editor);
    hub.stop();
    let log = world.read("hub.log");
    let decided =
        log.lines().find(|line| line.contains("question decided")).unwrap_or_else(|| panic!("{log}"));
    assert!(decided.contains("attache_hub::audit") && decided.contains("from=\"127.0.0.1:"), "{decided}");
}

#[test]
fn one_hub_per_journal() {
    let world = World::new().agent(SCRIPT);
    let journal = world.path("hub.db").display().to_string();
    let hub = Hub::start(&world, &["--journal", &journal]);
    let run = world.run(&["hub", "--listen", "127.0.0.1:0", "--journal", &journal]).code(1);
    assert!(run.stderr.contains("another hub uses the journal"), "{}", run.stderr);
    hub.kill();
    Hub::start(&world, &["--journal", &journal]).stop();
}

#[test]
fn a_socket_is_enough() {
    let world = World::new().agent("on session/prompt\n  say [$prompt]\n  done end_turn\n");
    let socket = world.path("hub.sock").display().to_string();
    let mut running = world.start(&["--format", "quiet", "hub", "--socket", &socket, "--journal", "memory"]);
    let address = running.next();
    assert_eq!(address, format!("unix:{socket}"));
    assert_eq!(world.run(&["--format", "quiet", "--agent", &address, "exec", "hi"]).ok(), "[hi]\n");
    running.signal("TERM");
    running.end().code(0);
}

#[test]
fn another_path_to_a_journal_is_no_other_journal() {
    let world = World::new().agent(SCRIPT);
    let journal = world.path("hub.db");
    let hub = Hub::start(&world, &["--journal", &journal.display().to_string()]);
    std::os::unix::fs::symlink(&journal, world.path("link.db")).unwrap();
    for other in ["../hub.db", "../link.db", "../work/../hub.db"] {
        let run = world.run(&["hub", "--listen", "127.0.0.1:0", "--journal", other]).code(1);
        assert!(run.stderr.contains("another hub uses the journal"), "{other}: {}", run.stderr);
    }
    hub.stop();
}

/// Starts the program as systemd does: with a listening socket as descriptor 3.
fn activated(world: &World, socket: impl Into<std::os::fd::OwnedFd>) -> Running {
    let program = world.command(&["--format", "quiet", "hub", "--journal", "memory"]);
    let script = r#"exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@" 3<&0 0</dev/null"#;
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(program.get_program()).args(program.get_args());
    shell.current_dir(&world.dir).stdin(std::process::Stdio::from(socket.into()));
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    Running::start(&mut shell)
}

#[test]
fn sockets_of_systemd_are_used() {
    let world = World::new().agent("on session/prompt\n  say [$prompt]\n  done end_turn\n");
    let path = world.path("activated.sock");
    let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut running = activated(&world, socket);
    assert_eq!(running.next(), "a socket of systemd");
    let address = format!("unix:{}", path.display());
    assert_eq!(world.run(&["--format", "quiet", "--agent", &address, "exec", "hi"]).ok(), "[hi]\n");
    running.signal("TERM");
    running.end().code(0);
    assert!(path.exists(), "the socket is that of systemd");

    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let mut running = activated(&world, socket);
    let url = running.next();
    assert_eq!(url, format!("http://{address}/acp"));
    assert_eq!(world.run(&["--format", "quiet", "--agent", &url, "exec", "hi"]).ok(), "[hi]\n");
    running.signal("TERM");
    running.end().code(0);
}

#[test]
fn top_shows_the_sessions() {
    let world = World::new().agent("on session/prompt\n  say [$prompt]\n  done end_turn\n");
    let hub = Hub::start(&world, &["--journal", "memory"]);
    let mut editor = Editor::connect(&world, &hub.url);
    let opened = editor.call("session/new", json!({"cwd": world.dir, "mcpServers": []}));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let turn = editor.prompt(&session, "a title", "p1");
    editor.until(response(turn));
    let table = world.run(&["hub", "top", &hub.url]).ok();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["session", "state", "clients", "queued", "asks", "agent", "stored", "title"]);
    assert_eq!(rows[1][..5], [session.as_str(), "idle", "1", "0", "0"]);
    assert!(rows[1][5].ends_with('B') && rows[1][6].ends_with('B'), "{table}");
    assert_eq!(rows[1][7], "a title");
    assert_eq!(rows.len(), 2);
    let status = world.run(&["--format", "json", "hub", "top", &hub.url]).json();
    assert_eq!(status[0]["agents"], 1, "{status:?}");
    world.run(&["hub", "top", "http://127.0.0.1:1/acp"]).code(1);
    hub.stop();
}

#[test]
fn files_of_the_hub_are_provided_under_its_permissions() {
    let world = World::new().agent(
        "on session/prompt\n  call fs/write_text_file {\"path\":\"$cwd/b.txt\",\"content\":\"the text\"}\n  done end_turn\n",
    );
    let file = world.dir.join("b.txt");
    let session = |hub: &Hub| {
        let mut editor = Editor::connect(&world, &hub.url);
        let opened = editor.call("session/new", json!({"cwd": world.dir, "mcpServers": []}));
        let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
        let turn = editor.prompt(&session, "write", "p1");
        (editor, turn)
    };
    // Without the flag the agent has no files; with it the mode decides, or a person.
    let hub = Hub::start(&world, &["--journal", "memory", "--approve-all"]);
    let (mut editor, turn) = session(&hub);
    editor.until(response(turn));
    assert!(!file.exists());
    hub.stop();

    let hub = Hub::start(&world, &["--journal", "memory", "--provide", "--approve-all"]);
    let (mut editor, turn) = session(&hub);
    editor.until(response(turn));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "the text");
    hub.stop();
    std::fs::remove_file(&file).unwrap();

    let hub = Hub::start(&world, &["--journal", "memory", "--provide"]);
    for (option, exists) in [("reject", false), ("allow", true)] {
        let (mut editor, turn) = session(&hub);
        let asked = editor.until(|message| message["method"] == "session/request_permission");
        assert!(!file.exists());
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        editor.running.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome}).to_string());
        editor.until(response(turn));
        assert_eq!(file.exists(), exists);
    }
    hub.stop();
}

#[test]
fn old_sessions_are_removed_at_the_start() {
    let world = World::new().agent("on session/prompt\n  say [$prompt]\n  done end_turn\n");
    let journal = world.path("hub.db").display().to_string();
    let hub = Hub::start(&world, &["--journal", &journal]);
    let mut editor = Editor::connect(&world, &hub.url);
    let opened = editor.call("session/new", json!({"cwd": world.dir, "mcpServers": []}));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let turn = editor.prompt(&session, &"long ".repeat(1 << 19), "p1");
    editor.until(response(turn));
    hub.stop();
    let listed = |args: &[&str]| {
        let hub = Hub::start(&world, &[&["--journal", &journal], args].concat());
        let mut editor = Editor::connect(&world, &hub.url);
        let list = editor.call("session/list", json!({}));
        drop(editor);
        hub.stop();
        list["result"]["sessions"].as_array().unwrap().len()
    };
    assert_eq!(listed(&["--keep-days", "1", "--keep-size", "100"]), 1);
    let hub = Hub::start(&world, &["--journal", &journal, "--keep-size", "1", "--warm", "1"]);
    let mut editor = Editor::connect(&world, &hub.url);
    eventually("the session is removed", || {
        let list = editor.call("session/list", json!({}));
        list["result"]["sessions"].as_array().unwrap().is_empty()
    });
    hub.stop();
}

#[test]
fn tokens_have_roles_and_are_revoked() {
    let world = World::new().agent("on session/prompt\n  say [$prompt]\n  done end_turn\n");
    let token = |args: &[&str]| world.run(&[&["token"], args, &["--token-file", "tokens"]].concat());
    let driver = token(&["new", "driver", "--role", "drive"]).ok().trim().to_owned();
    let watcher = token(&["new", "watcher", "--role", "watch"]).ok().trim().to_owned();
    let foreign = token(&["new", "foreign", "--tenant", "other"]).ok().trim().to_owned();
    assert_eq!(
        token(&["list"]).ok(),
        "driver  drive  default\nwatcher  watch  default\nforeign  admin  other\n"
    );
    token(&["new", "driver"]).code(2);
    token(&["new", "x", "--role", "king"]).code(2);
    assert!(!world.read("tokens").contains(&driver), "only hashes are kept");

    let hub = Hub::start(&world, &["--journal", "memory", "--token-file", "tokens"]);
    let exec = |token: &str| {
        let words = ["--format", "quiet", "--agent", &hub.url, "exec", "hi"];
        world.command(&words).env("ATTACHE_TOKEN", token).output().unwrap()
    };
    assert_eq!(exec(&driver).stdout, b"[hi]\n");
    let refused = exec(&watcher);
    let told = [refused.stdout, refused.stderr].concat();
    assert!(
        String::from_utf8_lossy(&told).contains("needs the role drive"),
        "{}",
        String::from_utf8_lossy(&told)
    );
    assert_eq!(exec("guess").status.code(), Some(1));
    assert!(hub.get("/metrics").contains("attache_hub_sessions"));
    assert_eq!(exec(&foreign).stdout, b"[hi]\n");
    token(&["revoke", "driver"]).ok();
    token(&["revoke", "driver"]).code(2);
    eventually("the token is refused", || exec(&driver).status.code() == Some(1));
    hub.stop();
}
