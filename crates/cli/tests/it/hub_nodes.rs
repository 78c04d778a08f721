//! Several processes of `attache hub` on one NATS server. `cargo xtask nats` runs these with
//! several versions of the server.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::hub::{Editor, Hub, response};
use crate::world::World;

const SCRIPT: &str = r#"
on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"loadSession":true}}
on session/load
  reply {}
on session/prompt
  say [$prompt]
  done end_turn
on session/prompt 2
  say working
  wait session/cancel
  say too late
  done cancelled
"#;

const ECHO: &str = r#"
on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"loadSession":true}}
on session/load
  reply {}
on session/prompt
  say [$prompt]
  done end_turn
"#;

/// Longer than any test.
const LONG: &str = "3600";
/// A lease that ends while a test waits.
const SHORT: &str = "2";

/// A NATS server of our own.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(world: &World) -> Server {
        let program =
            std::env::var_os("ATTACHE_NATS_SERVER").expect("ATTACHE_NATS_SERVER names a nats-server");
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", "-1", "-js", "-sd"]).arg(world.path("nats"));
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut port = None;
        for line in lines.by_ref() {
            if let Some((_, address)) = line.split_once("Listening for client connections on ") {
                port = address.rsplit(':').next().and_then(|port| port.trim().parse().ok());
            }
            if line.contains("Server is ready") {
                break;
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        Server { child, port: port.expect("the server listens") }
    }

    fn hub(&self, world: &World, node: &str, lease: &str) -> Hub {
        let (journal, log) = (self.url(), format!("{node}.log"));
        Hub::start(world, &["--journal", &journal, "--node", node, "--lease", lease, "--log", &log])
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn new_session(world: &World, editor: &mut Editor) -> String {
    let opened = editor.call("session/new", json!({"cwd": world.dir, "mcpServers": []}));
    opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned()
}

fn says(text: &str) -> impl Fn(&Value) -> bool + '_ {
    move |message| message.pointer("/params/update/content/text").is_some_and(|said| said == text)
}

/// Waits for a text, and keeps it among what the editor has seen.
fn until_text(editor: &mut Editor, text: &str) {
    let message = editor.until(says(text));
    editor.seen.push(message);
}

fn end(editor: &mut Editor, prompt: i64) -> Value {
    editor.until(response(prompt))["result"]["stopReason"].clone()
}

fn prompts(world: &World) -> usize {
    world.methods().iter().filter(|method| *method == "session/prompt").count()
}

fn history(world: &World, hub: &Hub, session: &str) -> Vec<String> {
    let mut editor = Editor::connect(world, &hub.url);
    let loaded = editor.load(world, session);
    assert!(loaded["result"].is_object(), "{loaded}");
    editor.texts().into_iter().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs a server: cargo xtask nats"]
fn a_session_is_driven_from_every_node() {
    let world = World::new().agent(ECHO);
    let server = Server::start(&world);
    let (a, b) = (server.hub(&world, "a", LONG), server.hub(&world, "b", LONG));
    let (mut near, mut far) = (Editor::connect(&world, &a.url), Editor::connect(&world, &b.url));
    let session = new_session(&world, &mut near);
    let one = near.prompt(&session, "one", "p1");
    assert_eq!(end(&mut near, one), "end_turn");
    let list = far.call("session/list", json!({}));
    assert_eq!(list["result"]["sessions"][0]["sessionId"], *session, "{list}");
    far.load(&world, &session);
    let two = far.prompt(&session, "two", "p2");
    assert_eq!(end(&mut far, two), "end_turn");
    until_text(&mut near, "[two]");
    // The server takes messages of 1 MiB.
    let large = "x".repeat(3 << 20);
    let three = far.prompt(&session, &large, "p3");
    assert_eq!(end(&mut far, three), "end_turn");
    until_text(&mut near, &format!("[{large}]"));
    assert!(a.get("/metrics").contains("attache_hub_prompts_total 3\n"));
    assert!(b.get("/metrics").contains("attache_hub_prompts_total 0\n"));

    // A name is given once.
    let url = server.url();
    let args = ["hub", "--listen", "127.0.0.1:0", "--journal", &url, "--node", "a"];
    let run = world.run(&args).code(1);
    assert!(run.stderr.contains("another hub of this journal has the name \"a\""), "{}", run.stderr);
    assert!(run.stderr.contains("--node"), "{}", run.stderr);

    // A hub that ends in order leaves its sessions to others, however long its lease is.
    drop(near);
    a.stop();
    let four = far.prompt(&session, "four", "p4");
    assert_eq!(end(&mut far, four), "end_turn");
    assert!(b.get("/metrics").contains("attache_hub_prompts_total 1\n"));
    // It comes back as a guest.
    let a = server.hub(&world, "a", LONG);
    assert_eq!(
        history(&world, &a, &session),
        ["one", "[one]", "two", "[two]", &large, &format!("[{large}]"), "four", "[four]"]
    );
    assert_eq!(prompts(&world), 4);
    drop(far);
    b.stop();
    a.stop();
}

#[test]
#[ignore = "needs a server: cargo xtask nats"]
fn a_question_is_answered_on_another_node() {
    let world = World::new().agent(
        r#"on session/prompt
  call session/request_permission {"toolCall":{"toolCallId":"t","title":"Run make","kind":"execute"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}
  say $last
  done end_turn
"#,
    );
    let server = Server::start(&world);
    let (a, b) = (server.hub(&world, "a", LONG), server.hub(&world, "b", LONG));
    let (mut near, mut far) = (Editor::connect(&world, &a.url), Editor::connect(&world, &b.url));
    let session = new_session(&world, &mut near);
    far.load(&world, &session);
    let build = near.prompt(&session, "build", "p1");
    let asked = far.until(|message| message["method"] == "session/request_permission");
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
    far.running.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome}).to_string());
    assert_eq!(end(&mut near, build), "end_turn");
    let answer = near.texts().pop().unwrap();
    assert!(answer.contains("yes"), "{answer}");
    assert!(world.read("a.log").contains("question decided"), "the owner decides");
    drop((near, far));
    a.stop();
    b.stop();
}

#[test]
#[ignore = "needs a server: cargo xtask nats"]
fn a_session_of_a_killed_node_goes_on_at_another_one() {
    let world = World::new().agent(SCRIPT);
    let server = Server::start(&world);
    let (a, b) = (server.hub(&world, "a", SHORT), server.hub(&world, "b", SHORT));
    let (mut near, mut far) = (Editor::connect(&world, &a.url), Editor::connect(&world, &b.url));
    let session = new_session(&world, &mut near);
    let one = near.prompt(&session, "one", "p1");
    assert_eq!(end(&mut near, one), "end_turn");
    far.load(&world, &session);
    let two = far.prompt(&session, "two", "p2");
    until_text(&mut far, "working");
    until_text(&mut near, "working");
    // This one waits in the queue of the owner, and is not in the journal.
    let three = far.prompt(&session, "three", "p3");
    a.kill();

    let interrupted = far.until(response(two));
    assert_eq!(interrupted["error"]["data"]["attache"]["interrupted"], true, "{interrupted}");
    assert_eq!(end(&mut far, three), "end_turn");
    let all = ["one", "[one]", "two", "working", "three", "[three]"];
    assert_eq!(history(&world, &b, &session), all);
    // What a client of the dead node has seen is there: the answers, and the prompts of others.
    assert_eq!(near.texts(), all[1..4]);
    assert_eq!(far.texts(), ["one", "[one]", "working", "[three]"]);

    let a = server.hub(&world, "a", SHORT);
    assert_eq!(history(&world, &a, &session), all);
    // Both prompts are sent again, to the other node. None runs again.
    let mut back = Editor::connect(&world, &a.url);
    back.load(&world, &session);
    let again = back.prompt(&session, "three", "p3");
    assert_eq!(end(&mut back, again), "end_turn");
    let again = back.prompt(&session, "two", "p2");
    let answer = back.until(response(again));
    assert_eq!(answer["error"]["data"]["attache"]["interrupted"], true, "{answer}");
    assert_eq!(prompts(&world), 3);
    drop((near, far, back));
    a.stop();
    b.stop();
}

#[test]
#[ignore = "needs a server: cargo xtask nats"]
fn a_node_that_was_stopped_for_too_long_cannot_write() {
    let world = World::new().env("ATTACHE_LOG", "warn,attache_hub=info");
    let world = world.agent(&SCRIPT.replace("session/prompt 2", "session/prompt 3"));
    let server = Server::start(&world);
    let (a, b) = (server.hub(&world, "a", SHORT), server.hub(&world, "b", SHORT));
    let (mut near, mut far) = (Editor::connect(&world, &a.url), Editor::connect(&world, &b.url));
    let session = new_session(&world, &mut near);
    for (text, name) in [("one", "p1"), ("two", "p2")] {
        let prompt = near.prompt(&session, text, name);
        assert_eq!(end(&mut near, prompt), "end_turn");
    }
    far.load(&world, &session);
    let three = near.prompt(&session, "three", "p3");
    until_text(&mut near, "working");
    a.running.signal("STOP");
    // The agent says more when this reaches it.
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    near.running.send(&cancel.to_string());
    let four = far.prompt(&session, "four", "p4");
    assert_eq!(end(&mut far, four), "end_turn");

    a.running.signal("CONT");
    let interrupted = near.until(response(three));
    assert_eq!(interrupted["error"]["data"]["attache"]["interrupted"], true, "{interrupted}");
    // The former owner passes on to the new one.
    let five = near.prompt(&session, "five", "p5");
    assert_eq!(end(&mut near, five), "end_turn");
    let all = ["one", "[one]", "two", "[two]", "three", "working", "four", "[four]", "five", "[five]"];
    assert_eq!(history(&world, &b, &session), all);
    assert_eq!(history(&world, &a, &session), all);
    assert!(world.read("a.log").contains("another hub has taken a session over"));
    assert_eq!(prompts(&world), 5);
    drop((near, far));
    a.stop();
    b.stop();
}

#[test]
fn flags_of_nodes_are_checked() {
    let world = World::new().agent(ECHO);
    for flag in [["--node", "a"], ["--lease", "5"]] {
        let run = world.run(&[&["hub", "--journal", "memory"], &flag[..]].concat()).code(2);
        assert!(run.stderr.contains("needs --journal nats://"), "{}", run.stderr);
    }
    let long = "x".repeat(65);
    for name in ["", "a b", "a/b", "é", &long] {
        let run = world.run(&["hub", "--journal", "nats://127.0.0.1:1", "--node", name]).code(2);
        assert!(run.stderr.contains("--node is 1 to 64 letters"), "{}", run.stderr);
    }
    let url = "nats://me:secret@127.0.0.1:1";
    let run = world.run(&["hub", "--listen", "127.0.0.1:0", "--journal", url]).code(1);
    assert!(run.stderr.contains("nats://127.0.0.1:1") && !run.stderr.contains("secret"), "{}", run.stderr);
}
