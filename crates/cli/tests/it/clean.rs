//! Whatever an agent, a model, a file or a server says: on a terminal it is text, and never a line
//! of the program.
//!
//! Every command that prints runs on a real terminal and gets every hostile text wherever it prints
//! something foreign. What is judged are the bytes that come out. The commands are those of the
//! program's own help: one that is neither here nor excepted is an error.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use super::clean_cases::{WORD, cases, evil, forged_rows, parts, problem};
use super::clean_scripts::{failures, identity, text, turn};
use super::clean_tty::{Answers, WITH_KEYS, WITH_LINES, run};
use super::registry_server::{Server, agent, binary, gzip, sha256, tar};
use super::world::{World, process_with, test_agent};

/// Commands that are not run here, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("agent", "speaks the protocol on stdout, to a program"),
    ("chat", "draws a screen of its own; chat_hostile.rs runs it on a terminal"),
    ("demo", "prints what its own script says; demo.rs runs it on a terminal"),
    ("help", "prints the program's own words"),
    ("hub top", "draws a screen of its own; chat_hostile.rs runs it on a terminal"),
];

/// A command that was run on a terminal.
struct Surface {
    command: &'static str,
    args: Vec<String>,
    bytes: Vec<u8>,
}

/// The surfaces of one world.
struct Tour<'a> {
    world: &'a World,
    term: &'static str,
    surfaces: Vec<Surface>,
}

impl<'a> Tour<'a> {
    fn new(world: &'a World, term: &'static str) -> Tour<'a> {
        Tour { world, term, surfaces: Vec::new() }
    }

    /// Runs a command. The hostile text must be there, and harmless.
    #[track_caller]
    fn shows(&mut self, command: &'static str, args: &[&str], answers: Answers<'_>) {
        let bytes = self.visit(command, args, answers);
        let text = String::from_utf8_lossy(bytes);
        assert!(text.contains(WORD), "`{command}` {args:?} shows nothing hostile:\n{text}");
    }

    /// Runs a command that may have nothing foreign to show.
    #[track_caller]
    fn visit(&mut self, command: &'static str, args: &[&str], answers: Answers<'_>) -> &[u8] {
        let bytes = run(self.world, self.term, args, answers);
        let shown = || String::from_utf8_lossy(&bytes).into_owned();
        let is_ours: fn(&str) -> bool =
            if self.term == WITH_KEYS { crate::chat_hostile::is_ours } else { is_colour };
        if let Some(problem) = problem(&bytes, is_ours) {
            panic!("`{command}` {args:?}: {problem}\n{}", shown());
        }
        if args.contains(&"json") {
            // What is raw elsewhere is still JSON here.
            for line in shown().lines().filter(|line| line.starts_with('{')) {
                assert!(serde_json::from_str::<Value>(line).is_ok(), "`{command}` {args:?}: {line}");
            }
        } else {
            let forged = forged_rows(&bytes);
            assert!(forged.is_empty(), "`{command}` {args:?}: {forged:#?}\n{}", shown());
        }
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.surfaces.push(Surface { command, args, bytes });
        &self.surfaces.last().unwrap().bytes
    }
}

/// Whether a sequence is one that a terminal without a movable cursor gets.
fn is_colour(sequence: &str) -> bool {
    let colour = sequence.strip_prefix('[').and_then(|rest| rest.strip_suffix('m'));
    sequence == "[K" || colour.is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_digit()))
}

const ALLOW: &[(&str, &str)] = &[
    ("Trust it? ", "n\r"),
    ("your answer: ", "y\r"),
    ("Enter shows more", "\r"),
    ("n declines) ", "n\r"),
    ("Send these answers?", "n\r"),
    ("\": ", "\r"),
    ("\"]: ", "\r"),
    ("(optional): ", "\r"),
];

/// Turns: in every format, in a session and without one, and how they fail.
fn turns(term: &'static str) -> Vec<Surface> {
    let world = World::new().agent(&format!("{}{}", identity(), turn()));
    let mut tour = Tour::new(&world, term);
    tour.shows("exec", &["exec", "go"], ALLOW);
    tour.shows("exec", &["-v", "exec", "go"], ALLOW);
    tour.shows("exec", &["--format", "quiet", "exec", "go"], ALLOW);
    tour.shows("exec", &["--format", "json", "exec", "go"], ALLOW);
    tour.shows("exec", &["--deny-all", "--suppress-reads", "exec", "go"], ALLOW);
    tour.shows("compare", &["compare", "scripted", "scripted", "go"], ALLOW);
    tour.shows("compare", &["--format", "json", "compare", "scripted", "go"], ALLOW);
    tour.shows("sessions new", &["sessions", "new"], ALLOW);
    tour.shows("prompt", &["prompt", "go"], ALLOW);
    tour.shows("prompt", &["--format", "quiet", "prompt", "go"], ALLOW);
    tour.shows("prompt", &["prompt", "--no-wait", "go"], ALLOW);
    tour.visit("cancel", &["cancel"], ALLOW);
    for args in [
        &["sessions", "history"][..],
        &["--format", "quiet", "sessions", "history"],
        &["--format", "json", "sessions", "history"],
    ] {
        tour.shows("sessions history", args, ALLOW);
    }
    tour.shows("sessions read", &["sessions", "read"], ALLOW);
    tour.shows("sessions close", &["sessions", "close"], ALLOW);
    for args in [
        &["sessions", "watch"][..],
        &["--format", "quiet", "sessions", "watch"],
        &["--format", "json", "sessions", "watch"],
    ] {
        tour.shows("sessions watch", args, ALLOW);
    }
    let mut surfaces = tour.surfaces;
    let world = World::new().agent(&failures());
    let mut tour = Tour::new(&world, term);
    tour.shows("exec", &["exec", "go"], ALLOW);
    tour.shows("exec", &["--format", "quiet", "exec", "go"], ALLOW);
    tour.shows("exec", &["--format", "json", "exec", "go"], ALLOW);
    tour.shows("compare", &["compare", "scripted", "go"], ALLOW);
    tour.visit("sessions new", &["sessions", "new"], ALLOW);
    tour.shows("prompt", &["prompt", "go"], ALLOW);
    tour.shows("prompt", &["prompt", "go"], ALLOW);
    surfaces.append(&mut tour.surfaces);
    let world = World::new().agent(&format!(
        "on initialize\n  stderr {}\n  raw {}\n  exit 3\n",
        parts().concat().replace('\n', " "),
        parts().concat().replace('\n', " ")
    ));
    let mut tour = Tour::new(&world, term);
    tour.shows("exec", &["exec", "go"], ALLOW);
    tour.shows("sessions list", &["scripted", "sessions", "list"], ALLOW);
    tour.shows("doctor", &["doctor"], ALLOW);
    surfaces.append(&mut tour.surfaces);
    surfaces
}

/// What is remembered of answers.
fn permissions(term: &'static str) -> Vec<Surface> {
    let options = json!([
        { "optionId": "y", "name": "Yes", "kind": "allow_once" },
        { "optionId": "n", "name": "No", "kind": "reject_once" },
    ]);
    let asks = parts().into_iter().map(|part| {
        // A command with control characters cannot be remembered.
        let word = part.replace(char::is_control, "");
        let call = json!({ "toolCallId": part, "title": part, "kind": "execute", "rawInput": { "command": ["make", word] } });
        format!("  call session/request_permission {}\n", json!({ "toolCall": call, "options": options }))
    });
    let script: String = asks.collect();
    let world = World::new().agent(&format!("on session/prompt\n{script}  done end_turn\n"));
    let mut tour = Tour::new(&world, term);
    tour.shows("exec", &["exec", "go"], &[("your answer: ", "a\r"), ("Enter shows more", "\r")]);
    tour.visit("permissions list", &["permissions", "list"], &[]);
    tour.visit("permissions list", &["--format", "json", "permissions", "list", "--all"], &[]);
    tour.visit("permissions revoke", &["permissions", "revoke", "1"], &[]);
    tour.visit("permissions clear", &["permissions", "clear"], &[]);
    tour.surfaces
}

/// Records of sessions, and what the agent says about its own.
fn sessions(term: &'static str) -> Vec<Surface> {
    let world = World::new().agent(&identity());
    let mut tour = Tour::new(&world, term);
    for format in ["text", "quiet", "json"] {
        tour.shows("sessions list", &["--format", format, "scripted", "sessions", "list"], ALLOW);
    }
    let name = parts().concat().replace('\0', "");
    tour.shows("sessions new", &["sessions", "new"], ALLOW);
    tour.shows("sessions new", &["sessions", "new", "--name", &name], ALLOW);
    tour.shows("sessions ensure", &["sessions", "ensure"], ALLOW);
    for format in ["text", "quiet", "json"] {
        tour.shows("sessions list", &["--format", format, "sessions", "list", "--local"], ALLOW);
    }
    tour.shows("sessions show", &["sessions", "show"], ALLOW);
    tour.shows("sessions show", &["--format", "json", "sessions", "show"], ALLOW);
    tour.shows("status", &["status"], ALLOW);
    tour.shows("status", &["--format", "json", "status"], ALLOW);
    tour.shows("set-mode", &["set-mode", "other"], ALLOW);
    tour.shows("set", &["set", "model", "other"], ALLOW);
    tour.shows("sessions fork", &["sessions", "fork", "--as", &name], ALLOW);
    tour.visit("sessions export", &["sessions", "export", "--output", "a.json"], ALLOW);
    tour.shows("sessions delete", &["sessions", "delete"], ALLOW);
    tour.shows("sessions import", &["sessions", "import", "a.json"], ALLOW);
    tour.shows("sessions close", &["sessions", "close"], ALLOW);
    tour.shows("sessions prune", &["sessions", "prune", "--dry-run"], ALLOW);
    tour.shows("sessions prune", &["sessions", "prune"], ALLOW);
    // Errors quote arguments.
    tour.shows("sessions show", &["sessions", "show", &name], ALLOW);
    tour.shows("exec", &["exec", &format!("--{name}")], ALLOW);
    tour.shows("status", &["--cwd", &name, "status"], ALLOW);
    tour.surfaces
}

/// Settings, agents, logins, and what other programs know.
fn settings(term: &'static str) -> Vec<Surface> {
    let (evil, name) = (evil(), parts().concat().replace('\0', ""));
    let world = World::new().agent(&identity());
    let home = world.path("user");
    std::fs::create_dir_all(home.join(".config/zed")).unwrap();
    let zed =
        json!({ "agent_servers": { &name: { "command": evil, "args": [evil], "env": { "X": evil } } } });
    std::fs::write(home.join(".config/zed/settings.json"), zed.to_string()).unwrap();
    let world = world.env("HOME", home.to_str().unwrap()).env("XDG_CONFIG_HOME", "").env("VISUAL", "true");
    // TOML has the escapes of JSON for these.
    let quoted = json!(evil.replace('\u{7f}', "")).to_string();
    world.settings(&format!("[agents.{quoted}]\ncommand = {quoted}\n"));
    world.write(".attache.toml", &format!("model = {quoted}\ndefault_agent = {quoted}\n{quoted} = 1\n[agents.{quoted}]\ncommand = {quoted}\n"));
    let mut tour = Tour::new(&world, term);
    for format in ["text", "quiet", "json"] {
        tour.shows("agents", &["--format", format, "agents", "--all"], ALLOW);
        tour.visit("doctor", &["--format", format, "scripted", "doctor"], ALLOW);
    }
    tour.shows("config show", &["config", "show"], ALLOW);
    tour.shows("config show", &["--format", "json", "config", "show"], ALLOW);
    tour.visit("config path", &["config", "path"], ALLOW);
    tour.visit("trust add", &["trust", "add"], ALLOW);
    tour.visit("trust list", &["trust", "list"], ALLOW);
    tour.visit("trust remove", &["trust", "remove"], ALLOW);
    tour.visit("config set", &["config", "set", "model", &name], ALLOW);
    tour.shows("config get", &["config", "get", &name], ALLOW);
    tour.visit("config unset", &["config", "unset", "model"], ALLOW);
    tour.visit("config edit", &["config", "edit"], ALLOW);
    tour.visit("config init", &["config", "init"], ALLOW);
    tour.shows("import", &["import", "zed", "--dry-run"], ALLOW);
    tour.shows("import", &["import", "zed"], ALLOW);
    tour.visit("completions", &["completions", "bash"], ALLOW);
    tour.visit("man", &["man"], ALLOW);
    let mut surfaces = tour.surfaces;
    let login = format!(
        "{}on authenticate\n  stderr {}\n  call elicitation/create {}\n  raw {{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{}}}\n",
        identity(),
        parts().concat().replace('\n', " "),
        json!({ "mode": "form", "message": evil, "requestedSchema": { "type": "object", "properties": { "a": { "type": "string", "title": evil } } } }),
        json!({ "code": -32603, "message": evil, "data": { "message": evil } }),
    );
    let status =
        json!({ "state": "authenticated", "accounts": [{ "label": evil, "email": evil, "active": true }] });
    let world = World::new().agent(&format!("{login}on auth/status\n  reply {status}\non logout\n  raw {{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{}}}\n", json!({ "code": -32603, "message": evil })));
    let mut tour = Tour::new(&world, term);
    let keys: Answers<'_> =
        &[("Which one?", "1\r"), ("\": ", "\r"), ("Send these answers?", "n\r"), ("(optional): ", "\r")];
    tour.shows("auth login", &["auth", "login", "scripted"], keys);
    for format in ["text", "json"] {
        tour.shows("auth status", &["--format", format, "auth", "status"], keys);
    }
    tour.shows("auth logout", &["auth", "logout"], keys);
    surfaces.append(&mut tour.surfaces);
    surfaces
}

/// A registry, and what is installed from it.
fn registries(term: &'static str) -> Vec<Surface> {
    let server = Server::new();
    let world = World::new().env("ATTACHE_REGISTRY", &server.url("/registry.json"));
    let evil = evil();
    let hostile = |mut entry: Value, text: &str| {
        for key in ["name", "description", "license", "website", "repository"] {
            entry[key] = json!(text);
        }
        entry["authors"] = json!([text]);
        entry
    };
    let script = world.path("registry.script");
    std::fs::write(&script, "").unwrap();
    let program = format!("#!/bin/sh\nexec {:?} {:?}\n", test_agent(), script);
    let archive = gzip(&tar(&[("bin/agent", program.as_bytes())]));
    let escaping = gzip(&tar(&[(&format!("../{}", parts()[1].replace(['\0', '\n'], "")), b"x".as_slice())]));
    server.put("/good.tar.gz", archive.clone());
    server.put("/bad.tar.gz", escaping.clone());
    let offer = |version: &str| {
        let mut agents = vec![
            hostile(binary("good", version, "good.tar.gz", Some(&sha256(&archive))), &evil),
            hostile(binary("bad", version, "bad.tar.gz", Some(&sha256(&escaping))), &evil),
            hostile(agent("broken", &evil, json!({ "npx": { "package": evil } })), &evil),
            json!({ "id": evil }),
        ];
        for (number, part) in parts().iter().enumerate() {
            let npx = json!({ "npx": { "package": "x@1.0.0" } });
            agents.push(hostile(agent(&format!("agent-{number}"), version, npx), part));
        }
        server.agents(&agents);
    };
    offer("1.0.0");
    let mut tour = Tour::new(&world, term);
    tour.shows("registry list", &["registry", "list"], &[]);
    tour.shows("registry list", &["-v", "registry", "list", "--refresh"], &[]);
    tour.shows("registry list", &["--format", "json", "registry", "list"], &[]);
    tour.shows("registry search", &["registry", "search", WORD], &[]);
    tour.visit("registry install", &["registry", "install", "good"], &[]);
    tour.visit("registry install", &["registry", "install", "bad"], &[]);
    tour.shows("registry install", &["registry", "install", &parts()[0].replace('\0', "")], &[]);
    tour.visit("registry list", &["registry", "list", "--installed"], &[]);
    offer("1.0.1");
    tour.visit("registry update", &["registry", "update", "--refresh", "good"], &[]);
    tour.visit("registry remove", &["registry", "remove", "good"], &[]);
    server.put("/registry.json", evil.as_bytes());
    tour.visit("registry list", &["registry", "list", "--refresh"], &[]);
    tour.surfaces
}

/// A server whose agents write to stderr and end, and a client of a server whose agent sends
/// hostile text.
fn served(tour: &mut Tour<'_>, world: &World, noisy: &str, evil: &str) {
    let with_clients = |command: &'static str| {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let clients = std::thread::spawn({
            let address = address.clone();
            move || {
                // What the server says about a client is on the terminal long before the agent of
                // the next but one has ended.
                (0..3).for_each(|_| ask(&address));
                let server = process_with(&format!("{command} --listen {address}")).expect("the server runs");
                assert!(Command::new("kill").args(["-TERM", &server]).status().unwrap().success());
            }
        });
        (address, clients)
    };
    let (address, clients) = with_clients("serve");
    tour.shows("serve", &["serve", "--listen", &address, "--", "sh", noisy], &[]);
    clients.join().unwrap();
    let (address, clients) = with_clients("hub");
    tour.visit("hub", &["hub", "--listen", &address, "--journal", "memory", "--", "sh", noisy], &[]);
    clients.join().unwrap();
    let tokens = world.write("tokens", evil);
    let file = ["--token-file", tokens.to_str().unwrap()];
    tour.visit("token list", &[&["token", "list"][..], &file].concat(), &[]);
    tour.visit("token new", &[&["token", "new", evil][..], &file].concat(), &[]);
    tour.visit("token revoke", &[&["token", "revoke", evil][..], &file].concat(), &[]);

    let line = json!({ "jsonrpc": "2.0", "method": "_x", "params": { "text": evil } }).to_string();
    let agent = world.write("agent.sh", &format!("printf '%b' '{}\\n'\n", octal(&line)));
    let words =
        ["--format", "quiet", "serve", "--listen", "127.0.0.1:0", "--", "sh", agent.to_str().unwrap()];
    let mut server = world.start(&words);
    let url = server.next();
    tour.shows("connect", &["connect", &url.replacen("http", "ws", 1)], &[]);
    let check =
        ["check", "server", "--deadline", "1", "--scenario", "baseline", "--scenario", "ws-messages", &url];
    tour.visit("check server", &check, &[]);
    server.signal("TERM");
    server.end().ok();
}

/// Sends `initialize` to a server and waits for the answer.
fn ask(address: &str) {
    use std::io::{Read as _, Write as _};
    let mut socket = loop {
        match std::net::TcpStream::connect(address) {
            Ok(socket) => break socket,
            Err(_) => std::thread::yield_now(),
        }
    };
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }).to_string();
    let head = format!("POST /acp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    write!(socket, "{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).unwrap();
    let _ = socket.read_to_end(&mut Vec::new());
}

/// Recordings, and programs that are judged.
fn recordings(term: &'static str) -> Vec<Surface> {
    let evil = evil();
    let line = |from: &str, text: String| format!("{}\n", json!({ "t": 0, "from": from, "text": text }));
    let message = |value: Value| value.to_string();
    let mut trace = format!(
        "{}\n",
        json!({ "attache": "recording", "version": 1, "started": evil, "command": [evil, evil], "masked": false })
    );
    trace += &line(
        "client",
        message(
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } }),
        ),
    );
    trace += &line(
        "agent",
        message(
            json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1, "agentInfo": { "name": evil, "version": evil } } }),
        ),
    );
    trace += &line(
        "client",
        message(
            json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": "/", "mcpServers": [] } }),
        ),
    );
    trace += &line("agent", message(json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": evil } })));
    trace += &line(
        "client",
        message(
            json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": { "sessionId": evil, "prompt": [text(&evil)] } }),
        ),
    );
    for kind in ["agent_message_chunk", "agent_thought_chunk"] {
        trace += &line(
            "agent",
            message(
                json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": evil, "update": { "sessionUpdate": kind, "content": text(&evil) } } }),
            ),
        );
    }
    trace += &line(
        "agent",
        message(
            json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": evil, "update": { "sessionUpdate": "tool_call", "toolCallId": evil, "title": evil, "kind": evil, "status": evil } } }),
        ),
    );
    trace += &line(
        "agent",
        message(
            json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": evil, "update": { "sessionUpdate": "plan", "entries": [{ "content": evil, "status": "pending", "priority": "low" }] } } }),
        ),
    );
    trace += &line("agent", message(json!({ "jsonrpc": "2.0", "method": evil, "params": {} })));
    trace += &line("agent", evil.replace('\n', " "));
    trace += &line(
        "agent",
        message(
            json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32603, "message": evil, "data": evil } }),
        ),
    );
    trace += &format!("{}\n", json!({ "t": 0, "stderr": evil }));
    trace += &format!("{}\n", json!({ "t": 0, "note": evil }));
    let world = World::new().agent(&format!(
        "on session/prompt\n  raw {}\n  done end_turn\n",
        parts().concat().replace('\n', " ")
    ));
    world.write("trace.jsonl", &trace);
    let mut tour = Tour::new(&world, term);
    for more in [&[][..], &["--lines"], &["--summary"], &["--timing"], &["--follow"]] {
        if more != ["--follow"] {
            tour.shows("trace", &[&["trace", "trace.jsonl"], more].concat(), &[]);
        }
    }
    tour.shows("trace", &["--format", "json", "trace", "trace.jsonl"], &[]);
    tour.shows("check trace", &["check", "trace", "trace.jsonl"], &[]);
    tour.shows("check trace", &["check", "trace", "--verbose", "trace.jsonl"], &[]);
    tour.visit("check trace", &["check", "trace", "--format", "json", "trace.jsonl"], &[]);
    let (agent, script) = (test_agent(), world.path("scripted.script"));
    let noisy = world.write(
        "noisy.sh",
        &format!("printf '%b' '{}\\n'\nprintf '%b' '{}\\n' >&2\nexit 1\n", octal(&evil), octal(&evil)),
    );
    let noisy = noisy.to_str().unwrap().to_owned();
    tour.shows("record", &["record", "new.jsonl", "--", "sh", &noisy], &[]);
    let socket = world.path("evil.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let line = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": { "text": evil } }).to_string();
    let session = std::thread::spawn(move || {
        use std::io::Write as _;
        writeln!(listener.accept().unwrap().0, "{line}").unwrap();
    });
    tour.shows("mcp-server", &["mcp-server", "--connect", socket.to_str().unwrap()], &[]);
    session.join().unwrap();
    served(&mut tour, &world, &noisy, &evil);
    tour.visit("replay", &["replay", "--patience", "0.1", "trace.jsonl"], &[]);
    let scripted = [agent.to_str().unwrap(), script.to_str().unwrap()];
    let replay = ["replay", "--patience", "0.1", "--as", "client", "--strict", "trace.jsonl", "--"];
    tour.visit("replay", &[&replay[..], &scripted].concat(), &[]);
    let check = ["check", "agent", "--verbose", "--scenario", "baseline", "--"];
    tour.visit("check agent", &[&check[..], &scripted].concat(), &[]);
    tour.visit(
        "check agent",
        &["check", "agent", "--deadline", "1", "--scenario", "baseline", "--", "sh", &noisy],
        &[],
    );
    tour.visit(
        "check client",
        &["check", "client", "--deadline", "1", "--scenario", "first-words", "--", "sh", &noisy, "{agent}"],
        &[],
    );
    let listening = ["check", "client", "--listen", "ws", "--deadline", "1", "--scenario", "first-words"];
    tour.visit("check client", &[&listening[..], &["--", "sh", &noisy]].concat(), &[]);
    tour.surfaces
}

/// Bytes for `printf`.
fn octal(text: &str) -> String {
    text.bytes().map(|byte| format!("\\0{byte:03o}")).collect()
}

/// Every command of the program, from its own help.
fn commands() -> BTreeSet<String> {
    let world = World::new();
    let listed = |help: String| -> Vec<String> {
        let commands =
            help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        commands.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    };
    let mut all = BTreeSet::new();
    for command in listed(world.run(&["--help"]).ok()) {
        let help = world.run(&[&command, "--help"]).ok();
        // A group that takes arguments is a command itself.
        let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap_or_default();
        let is_command = !usage.contains("[COMMAND]") || !usage.ends_with("[OPTIONS]");
        let inner = listed(help);
        all.extend(inner.into_iter().map(|inner| format!("{command} {inner}")));
        if is_command {
            all.insert(command);
        }
    }
    all
}

#[test]
#[expect(clippy::print_stdout, reason = "prints the counts")]
fn nothing_hostile_reaches_a_terminal_from_any_command() {
    let groups = [turns, permissions, sessions, settings, registries, recordings];
    let mut surfaces: Vec<Surface> = Vec::new();
    for term in [WITH_KEYS, WITH_LINES] {
        std::thread::scope(|scope| {
            let running = groups.map(|group| scope.spawn(move || group(term)));
            for group in running {
                surfaces.extend(group.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
    }
    let known = commands();
    let tested: BTreeSet<String> = surfaces.iter().map(|surface| surface.command.to_owned()).collect();
    for command in &known {
        let excepted = EXCEPTIONS.iter().any(|(name, _)| name == command);
        assert!(
            tested.contains(command) != excepted,
            "`{command}` is not run on a terminal here, or both run and excepted"
        );
    }
    for command in tested.iter().map(String::as_str).chain(EXCEPTIONS.iter().map(|(name, _)| *name)) {
        assert!(known.contains(command), "there is no command `{command}`");
    }
    let kinds: BTreeSet<&[String]> = surfaces.iter().map(|surface| surface.args.as_slice()).collect();
    println!("{} cases x {} surfaces ({} command lines)", cases().len(), surfaces.len(), kinds.len());
}
