//! `attache mcp-server`: files and commands for MCP clients of both kinds of revisions.

use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};

use crate::world::{Lines, World};

/// An MCP client that a test plays.
struct Client {
    server: Child,
    stdin: Option<ChildStdin>,
    lines: Lines,
    meta: Value,
    next: i64,
}

impl Client {
    fn start(world: &World, args: &[&str]) -> Client {
        let mut server = world
            .command(&[&["mcp-server"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, lines) = (server.stdin.take(), Lines::of(server.stdout.take().unwrap()));
        Client { server, stdin, lines, meta: Value::Null, next: 0 }
    }

    /// A client that begins with `initialize`.
    fn with_handshake(world: &World, args: &[&str], capabilities: Value) -> Client {
        let mut client = Client::start(world, args);
        let info = json!({ "name": "test", "version": "1" });
        let result = client.result(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info }),
        );
        assert_eq!(result["protocolVersion"], "2025-11-25");
        assert_eq!(result["serverInfo"]["name"], "attache");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    /// A client whose requests describe themselves.
    fn stateless(world: &World, args: &[&str], capabilities: Value) -> Client {
        let mut client = Client::start(world, args);
        client.meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        client
    }

    fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    fn line(&mut self, line: &str) {
        use std::io::Write as _;
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn receive(&mut self) -> Value {
        serde_json::from_str(&self.lines.next()).unwrap()
    }

    /// Sends a request and returns its id.
    fn request(&mut self, method: &str, mut params: Value) -> i64 {
        self.next += 1;
        if !self.meta.is_null() {
            params["_meta"] = self.meta.clone();
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        self.next
    }

    fn response(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let response = self.receive();
        assert_eq!(response["id"], id, "{response}");
        response
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.response(method, params);
        assert!(response.get("error").is_none(), "{response}");
        response["result"].take()
    }

    fn code(&mut self, method: &str, params: Value) -> i64 {
        self.response(method, params)["error"]["code"].as_i64().unwrap()
    }

    /// Calls a tool; gives its text and whether it failed.
    fn call(&mut self, name: &str, arguments: Value) -> (String, bool) {
        let result = self.result("tools/call", json!({ "name": name, "arguments": arguments }));
        text(&result)
    }

    /// Closes the server's input and waits for its end.
    fn close(mut self) {
        drop(self.stdin.take());
        assert!(self.server.wait().unwrap().success());
    }
}

fn text(result: &Value) -> (String, bool) {
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"));
    (text.to_owned(), result["isError"].as_bool().unwrap())
}

fn forms() -> Value {
    json!({ "elicitation": {} })
}

#[test]
fn clients_of_both_kinds_use_all_tools() {
    for stateless in [false, true] {
        let world = World::new();
        world.write("a.txt", "one\ntwo\nthree\n");
        let mut client = match stateless {
            true => Client::stateless(&world, &["--approve-all"], json!({})),
            false => Client::with_handshake(&world, &["--approve-all"], json!({})),
        };
        let list = client.result("tools/list", json!({}));
        let names: Vec<_> = list["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["read_file", "write_file", "run_command"]);
        assert_eq!(list.get("resultType").is_some(), stateless);
        let read = json!({ "path": "a.txt", "line": 2, "limit": 1 });
        assert_eq!(client.call("read_file", read), ("two\n".to_owned(), false));
        let absolute = world.dir.join("new/b.txt");
        client.call("write_file", json!({ "path": absolute, "content": "b" }));
        assert_eq!(world.read("new/b.txt"), "b");
        let run =
            json!({ "name": "run_command", "arguments": { "command": "echo out; exit 3", "cwd": "new" } });
        let result = client.result("tools/call", run);
        assert_eq!(text(&result), ("out\n[exit code 3]".to_owned(), false));
        let structured = &result["structuredContent"];
        assert_eq!((&structured["output"], &structured["exitCode"]), (&json!("out\n"), &json!(3)));
        client.close();
    }
}

#[test]
fn discovery_and_ping_belong_to_their_revisions() {
    let world = World::new();
    let mut client = Client::stateless(&world, &[], json!({}));
    let found = client.result("server/discover", json!({}));
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "attache");
    assert_eq!(client.code("ping", json!({})), -32601);
    client.meta["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let response = client.response("tools/list", json!({}));
    assert_eq!(response["error"]["code"], -32022);
    assert_eq!(response["error"]["data"], json!({ "supported": ["2026-07-28"], "requested": "2099-01-01" }));
    client.meta = Value::Null;
    assert_eq!(client.result("ping", json!({})), json!({}));
    // Neither kind of client.
    assert_eq!(client.code("tools/list", json!({})), -32602);
    // A revision of the future is answered with the newest that begins this way.
    let result = client.result("initialize", json!({ "protocolVersion": "2099-01-01", "capabilities": {} }));
    assert_eq!(result["protocolVersion"], "2025-11-25");
    client.close();
}

#[test]
fn mistakes_of_a_client_get_clear_errors() {
    let world = World::new();
    let mut client = Client::with_handshake(&world, &["--no-terminal"], json!({}));
    assert_eq!(client.code("resources/list", json!({})), -32601);
    assert_eq!(client.code("tools/call", json!({ "name": "run_command", "arguments": {} })), -32602);
    assert_eq!(client.code("tools/call", json!({})), -32602);
    assert_eq!(client.code("tools/call", json!({ "name": "read_file", "arguments": [] })), -32602);
    let (text, failed) = client.call("read_file", json!({ "path": "x", "lines": 1 }));
    assert!(failed && text.contains("unknown field `lines`"), "{text}");
    let (text, failed) = client.call("read_file", json!({ "path": "missing" }));
    assert!(failed && text.contains("missing"), "{text}");
    client.line("{\"jsonrpc\": \"2.0\", \"id\": 9");
    assert_eq!(client.receive()["error"]["code"], -32700);
    client.line("[]");
    assert_eq!(client.receive()["error"]["code"], -32600);
    client.send(&json!({ "jsonrpc": "2.0", "id": null, "method": "tools/list" }));
    assert_eq!(client.receive()["error"]["code"], -32600);
    client.close();
}

#[test]
fn a_message_that_is_too_long_is_refused() {
    let world = World::new();
    let mut client = Client::with_handshake(&world, &[], json!({}));
    let long = "x".repeat(17 << 20);
    client.send(&json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": { "x": long } }));
    let response = client.receive();
    assert_eq!((&response["id"], &response["error"]["code"]), (&json!(5), &json!(-32600)), "{response}");
    assert_eq!(client.result("ping", json!({})), json!({}));
    client.close();
}

#[test]
fn the_jail_and_the_policy_hold() {
    let world = World::new();
    let secret = world.path("secret");
    std::fs::write(&secret, "s").unwrap();
    std::os::unix::fs::symlink(&secret, world.dir.join("link")).unwrap();
    let mut client = Client::with_handshake(&world, &["--approve-all"], json!({}));
    for path in [secret.to_str().unwrap(), "../secret", "link"] {
        let (text, failed) = client.call("read_file", json!({ "path": path }));
        assert!(failed && !text.contains("s\n"), "{text}");
    }
    client.close();
    // The settings decide without flags: writing is a question.
    let mut client = Client::with_handshake(&world, &[], json!({}));
    for (tool, arguments) in [
        ("write_file", json!({ "path": "a", "content": "x" })),
        ("run_command", json!({ "command": "touch a" })),
    ] {
        let (text, failed) = client.call(tool, arguments);
        assert!(failed && text.contains("does not support elicitation"), "{text}");
        assert!(!world.dir.join("a").exists());
    }
    client.close();
    let policy = r#"{"autoDeny":["read"]}"#;
    world.write("b", "x");
    let mut client = Client::with_handshake(&world, &["--approve-all", "--policy", policy], json!({}));
    let (text, failed) = client.call("read_file", json!({ "path": "b" }));
    assert!(failed && text.contains("autoDeny"), "{text}");
    client.close();
}

#[test]
fn a_question_is_a_request_to_older_clients() {
    let world = World::new();
    let mut client = Client::with_handshake(&world, &[], forms());
    for (action, decision, written) in [
        ("decline", Value::Null, false),
        ("accept", json!("No"), false),
        ("accept", json!("Yes, once"), true),
    ] {
        let arguments = json!({ "path": "a.txt", "content": "hello\n" });
        let call = client.request("tools/call", json!({ "name": "write_file", "arguments": arguments }));
        let question = client.receive();
        assert_eq!(question["method"], "elicitation/create");
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.starts_with("Create a.txt?") && message.contains("+ hello"), "{message}");
        let result = json!({ "action": action, "content": { "decision": decision } });
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
        let response = client.receive();
        assert_eq!(response["id"], call);
        assert_eq!(text(&response["result"]).1, !written, "{response}");
        assert_eq!(world.dir.join("a.txt").exists(), written);
    }
    client.close();
}

#[test]
fn a_question_is_a_result_for_newer_clients() {
    let world = World::new();
    let mut client = Client::stateless(&world, &[], forms());
    let call = json!({ "name": "write_file", "arguments": { "path": "a.txt", "content": "x" } });
    let asked = client.result("tools/call", call.clone());
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(asked["inputRequests"]["permission"]["method"], "elicitation/create");
    let mut retry = call.clone();
    retry["requestState"] = asked["requestState"].clone();
    // Without the answer it is asked again.
    let again = client.result("tools/call", retry.clone());
    assert_eq!(again["inputRequests"], asked["inputRequests"]);
    assert!(!world.dir.join("a.txt").exists());
    retry["inputResponses"] =
        json!({ "permission": { "action": "accept", "content": { "decision": "Yes, once" } } });
    let result = client.result("tools/call", retry.clone());
    assert_eq!((text(&result).1, &result["resultType"]), (false, &json!("complete")));
    assert_eq!(world.read("a.txt"), "x");
    // An answer counts once, and for its own call.
    assert_eq!(client.code("tools/call", retry.clone()), -32602);
    let asked = client.result("tools/call", call);
    retry["requestState"] = asked["requestState"].clone();
    retry["arguments"]["path"] = json!("b.txt");
    assert_eq!(client.code("tools/call", retry), -32602);
    assert!(!world.dir.join("b.txt").exists());
    client.close();
}

#[test]
fn a_cancelled_call_has_no_response_and_leaves_no_process() {
    let world = World::new();
    let mut client = Client::with_handshake(&world, &["--approve-all"], json!({}));
    // A pipe shows when the command runs, and when it has ended.
    let [started, ended] = ["started", "ended"].map(|name| world.dir.join(name));
    assert!(Command::new("mkfifo").args([&started, &ended]).status().unwrap().success());
    let command = "exec 3>ended; echo > started; sleep 1000";
    let run = |client: &mut Client| {
        client.request("tools/call", json!({ "name": "run_command", "arguments": { "command": command } }))
    };
    let call = run(&mut client);
    let ended_reader = std::thread::spawn({
        let ended = ended.clone();
        move || std::fs::read(ended).unwrap()
    });
    std::fs::read(&started).unwrap();
    let cancelled = json!({ "requestId": call, "reason": "enough" });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }));
    ended_reader.join().unwrap();
    // The next message is not the response of the call.
    assert_eq!(client.result("ping", json!({})), json!({}));
    run(&mut client);
    let ended_reader = std::thread::spawn(move || std::fs::read(ended).unwrap());
    std::fs::read(&started).unwrap();
    client.close();
    ended_reader.join().unwrap();
}

#[test]
fn a_question_of_a_cancelled_call_is_withdrawn() {
    let world = World::new();
    let mut client = Client::with_handshake(&world, &[], forms());
    let arguments = json!({ "path": "a.txt", "content": "x" });
    let call = client.request("tools/call", json!({ "name": "write_file", "arguments": arguments }));
    let question = client.receive();
    let params = json!({ "requestId": call });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    let withdrawn = client.receive();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    // An answer that comes too late changes nothing.
    let result = json!({ "action": "accept", "content": { "decision": "Yes, once" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
    assert_eq!(client.result("ping", json!({})), json!({}));
    assert!(!world.dir.join("a.txt").exists());
    client.close();
}

#[test]
fn calls_are_limited_and_counted_while_they_run() {
    let world = World::new();
    world.write("a.txt", "a");
    let mut client = Client::with_handshake(&world, &["--approve-all"], json!({}));
    // Many calls one after the other are no problem.
    for _ in 0..40 {
        assert_eq!(client.call("read_file", json!({ "path": "a.txt" })).0, "a");
    }
    let arguments = json!({ "command": "sleep 1000" });
    let running: Vec<i64> = (0..16)
        .map(|_| client.request("tools/call", json!({ "name": "run_command", "arguments": arguments })))
        .collect();
    let response =
        client.response("tools/call", json!({ "name": "read_file", "arguments": { "path": "a.txt" } }));
    assert!(
        response["error"]["message"].as_str().unwrap().contains("16 calls are in progress"),
        "{response}"
    );
    for call in running {
        let params = json!({ "requestId": call });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }
    client.close();
}

#[test]
fn questions_that_are_never_answered_make_room() {
    let world = World::new();
    let mut client = Client::stateless(&world, &[], forms());
    let call = |name: &str| json!({ "name": "write_file", "arguments": { "path": name, "content": "x" } });
    let first = client.result("tools/call", call("first"));
    for number in 0..16 {
        assert_eq!(client.result("tools/call", call(&number.to_string()))["resultType"], "input_required");
    }
    // The oldest question was given up.
    let mut retry = call("first");
    retry["requestState"] = first["requestState"].clone();
    assert_eq!(client.code("tools/call", retry), -32602);
    client.close();
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let world = World::new();
    let mut client = Client::stateless(&world, &["--approve-all"], json!({}));
    let arguments = json!({ "command": "echo begun; sleep 1000", "timeout_seconds": 1 });
    let result = client.result("tools/call", json!({ "name": "run_command", "arguments": arguments }));
    assert_eq!(result["structuredContent"]["timedOut"], true);
    assert_eq!(text(&result).0, "begun\n[ended after 1 s (time limit)]");
    let arguments = json!({ "command": "seq 100000", "output_limit": 100 });
    let result = client.result("tools/call", json!({ "name": "run_command", "arguments": arguments }));
    assert_eq!(result["structuredContent"]["truncated"], true);
    assert!(result["structuredContent"]["output"].as_str().unwrap().len() <= 100, "{result}");
    client.close();
}

#[test]
fn our_own_agent_uses_it() {
    let world = World::new();
    world.write("a.txt", "what the server reads\n");
    let program = env!("CARGO_BIN_EXE_attache");
    let script = world.path("model.script");
    let calls = "call files_read_file {\"path\": \"a.txt\"}\n--\ncall files_run_command {\"command\": \"echo ran > b.txt\"}";
    std::fs::write(&script, format!("==\n--\n{calls}\n--\nsay done\n")).unwrap();
    let args = ["mcp-server", "--approve-all", "--cwd", world.dir.to_str().unwrap()];
    let servers = json!({ "mcpServers": { "files": { "command": program, "args": args } } });
    let config = world.write("mcp.json", &servers.to_string());
    let agent = format!("{program} agent --mode code --model script:{}", script.display());
    let run = world.run(&[
        "--agent",
        &agent,
        "--mcp-config",
        config.to_str().unwrap(),
        "--approve-all",
        "exec",
        "go",
    ]);
    let out = run.ok();
    assert!(out.contains("what the server reads") && out.contains("done"), "{out}");
    assert_eq!(world.read("b.txt"), "ran\n");
}

#[test]
fn the_server_of_a_session_that_has_ended_is_reported() {
    let world = World::new();
    let run = world.run(&["mcp-server", "--connect", "/nowhere/x.sock"]).code(1);
    assert!(run.stderr.contains("no session at /nowhere/x.sock"), "{}", run.stderr);
}

#[test]
fn an_agent_reaches_the_server_of_a_session() {
    use std::io::{BufRead as _, BufReader, Write as _};

    let world = World::new();
    let socket = world.path("s.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let session = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(&stream).lines();
        let request = lines.next().unwrap().unwrap();
        writeln!(&stream, "reply to {request}").unwrap();
        // The agent has closed its side.
        assert!(lines.next().is_none());
        writeln!(&stream, "the last line").unwrap();
    });
    let run = world.pipe(&["mcp-server", "--connect", socket.to_str().unwrap()], "request\n");
    assert_eq!(run.ok(), "reply to request\nthe last line\n");
    session.join().unwrap();
}
