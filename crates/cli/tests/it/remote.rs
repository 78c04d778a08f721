//! `attache serve`, `attache connect`, and agents at a URL.

use serde_json::{Value, json};

use crate::chat_rig::{CTRL_D, Start};
use crate::second_user::{as_nobody, shared_dir};
use crate::world::{Running, World, eventually, is_running};

const ECHO: &str = "on session/prompt\n  say [$prompt]\n  done end_turn\n";

/// A server that the test has started, and its URL. It ends with the test.
struct Server {
    running: Option<Running>,
    url: String,
}

impl Server {
    fn start(world: &World, args: &[&str]) -> Server {
        let words = [&["--format", "quiet", "serve", "--listen", "127.0.0.1:0"], args].concat();
        let mut running = world.start(&words);
        let url = running.next();
        Server { running: Some(running), url }
    }

    fn websocket(&self) -> String {
        self.url.replacen("http", "ws", 1)
    }

    /// Ends the server as a user would. Returns what it printed on stderr.
    fn stop(mut self) -> String {
        let running = self.running.take().unwrap();
        running.signal("TERM");
        running.end().code(0).stderr
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.signal("KILL");
        }
    }
}

#[test]
fn an_agent_at_a_url_is_used_like_any_other() {
    let world = World::new().agent(ECHO);
    let server = Server::start(&world, &[]);
    for url in [&server.url, &server.websocket()] {
        assert_eq!(world.run(&["--format", "quiet", "--agent", url, "exec", "hi"]).ok(), "[hi]\n");
    }
    // As an agent of the settings, with sessions.
    world.settings(&format!("[agents.far]\nurl = {:?}", server.url));
    assert_eq!(world.run(&["--format", "quiet", "far", "exec", "hi"]).ok(), "[hi]\n");
    world.run(&["far", "sessions", "new", "--name", "s"]).ok();
    assert!(world.run(&["--format", "quiet", "far", "prompt", "-s", "s", "one"]).ok().contains("[one]"));
    server.stop();
    let run = world.run(&["far", "exec", "hi"]).code(1);
    assert!(run.stdout.contains("cannot reach the agent"), "{run:?}");
}

#[test]
fn several_agents_have_paths_of_their_own() {
    let world = World::new().agent(ECHO);
    world.named_agent("second", "on session/prompt\n  say second\n  done end_turn\n");
    let server = Server::start(&world, &["scripted", "second"]);
    let exec = |url: &str| world.run(&["--format", "quiet", "--agent", url, "exec", "hi"]);
    assert_eq!(exec(&server.url).ok(), "[hi]\n");
    assert_eq!(exec(&format!("{}/scripted", server.url)).ok(), "[hi]\n");
    assert_eq!(exec(&format!("{}/second", server.url)).ok(), "second\n");
    let run = exec(&format!("{}/third", server.url)).code(1);
    assert!(format!("{run:?}").contains("404"), "{run:?}");
    server.stop();
}

#[test]
fn a_token_is_made_once_and_needed_by_all() {
    let world = World::new().agent(ECHO);
    let server = Server::start(&world, &["--token-file", "tokens"]);
    let file = world.read("tokens");
    let run = world.run(&["--agent", &server.url, "exec", "hi"]).code(1);
    assert!(format!("{run:?}").contains("set ATTACHE_TOKEN"), "{run:?}");
    let stderr = server.stop();
    let token = stderr.lines().last().unwrap().to_owned();
    assert_eq!(token.len(), 43, "{stderr}");
    assert!(!file.contains(&token), "the file has the hash only");

    let server = Server::start(&world, &["--token-file", "tokens"]);
    let with = |token: &str, url: &str| {
        let mut command = world.command(&["--format", "quiet", "--agent", url, "exec", "hi"]);
        command.env("ATTACHE_TOKEN", token).stdin(std::process::Stdio::null()).output().unwrap()
    };
    for url in [server.url.clone(), server.websocket()] {
        assert_eq!(with(&token, &url).stdout, b"[hi]\n");
        assert!(!with("wrong", &url).status.success());
    }
    // From a file that only the user can read.
    let secret = world.write("secret", &format!("{token}\n"));
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    world.settings(&format!("[agents.far]\nurl = {:?}\ntoken_file = {secret:?}", server.url));
    assert_eq!(world.run(&["--format", "quiet", "far", "exec", "hi"]).ok(), "[hi]\n");
    let stderr = server.stop();
    // It is not shown again.
    assert!(!stderr.contains(&token), "{stderr}");
}

#[test]
fn connect_passes_messages_for_editors() {
    let world = World::new().agent(ECHO);
    let server = Server::start(&world, &[]);
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": world.dir, "mcpServers": []}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    for url in [server.url.clone(), server.websocket()] {
        // The input ends at once; the answers are waited for.
        let answers = world.pipe(&["connect", &url], &input).code(0).json();
        let ids: Vec<&Value> =
            answers.iter().map(|answer| &answer["id"]).filter(|id| !id.is_null()).collect();
        assert_eq!(ids, [&json!(0), &json!(1)]);
    }
    server.stop();
    world.run(&["connect", "ls"]).code(2);
    let run = world.run(&["connect", "ws://127.0.0.1:1/acp"]).code(1);
    assert!(run.stderr.contains("cannot connect"), "{}", run.stderr);
}

#[test]
fn tls_with_a_certificate_of_our_own() {
    let world = World::new().agent(ECHO);
    let server = Server::start(&world, &["--tls-self"]);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let certificate = world.home().join("state/tls/cert.pem");
    for url in [server.url.clone(), server.websocket()] {
        let words = ["--format", "quiet", "--agent", &url, "exec", "hi"];
        let run = world.run(&words).code(1);
        assert!(format!("{run:?}").to_lowercase().contains("certificate"), "{run:?}");
        let trusted = world.command(&words).env("SSL_CERT_FILE", &certificate).output().unwrap();
        assert_eq!(trusted.stdout, b"[hi]\n", "{}", String::from_utf8_lossy(&trusted.stderr));
    }
    server.stop();
}

#[tokio::test]
async fn the_chat_over_tls_with_a_token() {
    let world = World::new().agent(
        r#"on session/prompt
  call session/request_permission {"toolCall":{"toolCallId":"t","title":"Run make","kind":"execute","rawInput":{"command":"make"}},"options":[{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}
  say [$prompt] $last
  done end_turn
"#,
    );
    let server = Server::start(&world, &["--tls-self", "--token-file", "tokens"]);
    let token = server.stop().lines().last().unwrap().to_owned();
    let server = Server::start(&world, &["--tls-self", "--token-file", "tokens"]);
    let certificate = world.home().join("state/tls/cert.pem").display().to_string();
    for url in [server.url.clone(), server.websocket()] {
        let start = || Start::new().env("SSL_CERT_FILE", &certificate).size(30, 120);
        let mut chat = start().env("ATTACHE_TOKEN", &token).run_with(&url);
        chat.sees("> ").await;
        chat.say("build it");
        chat.asks("Run make").await;
        chat.keys("y");
        chat.sees("[build it]").await;
        chat.sees("\"optionId\":\"once\"").await;
        chat.keys(CTRL_D);
        assert!(chat.exit().await.success());
        assert!(!chat.written().contains(&token));
        // Without the token nothing is said to the agent.
        let mut chat = start().run_with(&url);
        chat.sees("set ATTACHE_TOKEN").await;
        assert!(!chat.exit().await.success());
    }
    server.stop();
}

#[test]
fn nothing_is_open_by_accident() {
    let world = World::new().agent(ECHO);
    let run = world.run(&["serve", "--listen", "0.0.0.0:0"]).code(1);
    assert!(run.stderr.contains("needs a token") && run.stderr.contains("--token-file"), "{}", run.stderr);
    let run = world.run(&["serve", "--listen", "0.0.0.0:0", "--token-file", "tokens"]).code(1);
    assert!(run.stderr.contains("needs TLS"), "{}", run.stderr);
    world.run(&["serve", "--tls-cert", "x"]).code(2);
    world.write("empty", "# nothing\n");
    world.run(&["serve", "--listen", "127.0.0.1:0", "--token-file", "empty"]).code(2);
    let first = Server::start(&world, &[]);
    let taken = first.url.trim_start_matches("http://").trim_end_matches("/acp").to_owned();
    let run = world.run(&["serve", "--listen", &taken]).code(1);
    assert!(run.stderr.contains("--listen 127.0.0.1:0"), "{}", run.stderr);
    first.stop();
}

#[test]
fn a_client_hears_that_the_agent_cannot_be_started() {
    let world = World::new();
    let server = Server::start(&world, &["--", "/nowhere/agent"]);
    for url in [server.url.clone(), server.websocket()] {
        let run = world.run(&["--agent", &url, "exec", "hi"]).code(1);
        assert!(run.stdout.contains("cannot be started on the server"), "{run:?}");
        // Paths of the server stay there.
        assert!(!format!("{run:?}").contains("nowhere"), "{run:?}");
    }
    server.stop();
}

#[test]
fn agents_end_with_their_client_and_with_the_server() {
    let world = World::new().agent("on session/prompt\n  say begun\n  hang\n");
    let server = Server::start(&world, &[]);
    let script = world.path("scripted.script").display().to_string();
    let mut client = world.start(&["--format", "json", "--agent", &server.websocket(), "exec", "hi"]);
    client.until("begun");
    assert!(is_running(&script));
    client.signal("KILL");
    eventually("the agent ends with its client", || !is_running(&script));
    let mut client = world.start(&["--format", "json", "--agent", &server.url, "exec", "hi"]);
    client.until("begun");
    server.stop();
    eventually("the agent ends with the server", || !is_running(&script));
    client.end().code(1);
}

#[test]
fn doctor_shows_each_step_of_a_url() {
    let world = World::new().agent(ECHO);
    let server = Server::start(&world, &[]);
    let report = world.run(&["doctor", &server.url]).ok();
    for step in ["name", "socket", "websocket", "http", "initialize", "session"] {
        assert!(
            report.lines().any(|line| line.trim_start_matches("✓  ").starts_with(step)),
            "{step}: {report}"
        );
    }
    let wrong = world.run(&["doctor", &server.url.replace("/acp", "/other")]).code(1);
    assert!(wrong.stdout.contains("neither WebSocket nor Streamable HTTP"), "{}", wrong.stdout);
    server.stop();
    let run = world.run(&["doctor", "ws://127.0.0.1:1/acp"]).code(1);
    assert!(run.stdout.contains("is the server running"), "{}", run.stdout);
}

#[test]
fn another_user_of_the_machine_needs_a_token() {
    let world = World::new().agent(ECHO);
    let server = Server::start(&world, &[]);
    let home = world.path("shared");
    shared_dir(&home);
    for url in [server.url.clone(), server.websocket()] {
        let Some(mut other) = as_nobody(env!("CARGO_BIN_EXE_attache")) else { return };
        other
            .args(["--format", "quiet", "--agent", &url, "exec", "hi"])
            .env("ATTACHE_HOME", home.join("home"));
        let run = other.current_dir("/").stdin(std::process::Stdio::null()).output().unwrap();
        assert!(!run.status.success() && !run.stdout.ends_with(b"[hi]\n"), "{run:?}");
    }
    assert_eq!(world.run(&["--format", "quiet", "--agent", &server.url, "exec", "hi"]).ok(), "[hi]\n");
    server.stop();
}

#[test]
fn a_client_learns_why_its_connection_ends() {
    let world = World::new().agent("on session/new\n  exit 3\n");
    let server = Server::start(&world, &[]);
    let words = ["connect", &server.websocket()];
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": world.dir, "mcpServers": []}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let run = world.pipe(&words, &input).code(1);
    assert!(run.stderr.contains("1011 (internal error): the agent has ended"), "{}", run.stderr);
    server.stop();
}

/// A proxy for one server whose connections can be cut.
struct Proxy {
    url: String,
    streams: std::sync::Arc<std::sync::Mutex<Vec<std::net::TcpStream>>>,
}

impl Proxy {
    fn start(server: &Server) -> Proxy {
        let target = server.url.trim_start_matches("http://").trim_end_matches("/acp").to_owned();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("ws://{}/acp", listener.local_addr().unwrap());
        let streams = std::sync::Arc::<std::sync::Mutex<Vec<_>>>::default();
        let all = std::sync::Arc::clone(&streams);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = std::net::TcpStream::connect(&target).unwrap();
                let pairs = [(&client, &server), (&server, &client)];
                for (from, to) in pairs.map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
                {
                    std::thread::spawn(move || std::io::copy(&mut &from, &mut &to));
                }
                all.lock().unwrap().extend([client, server]);
            }
        });
        Proxy { url, streams }
    }

    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

#[test]
fn a_cut_between_turns_is_survived() {
    let world = World::new().agent(
        "on initialize\n  reply {\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}\n\
         on session/load\n  say history\n  reply {}\non session/prompt\n  say [$prompt]\n  done end_turn\n",
    );
    let server = Server::start(&world, &[]);
    let proxy = Proxy::start(&server);
    let mut client = world.start_piped(&["connect", &proxy.url]);
    let call = |id: u64, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    client.send(&call(0, "initialize", json!({"protocolVersion": 1})));
    client.until("protocolVersion");
    client.send(&call(1, "session/new", json!({"cwd": world.dir, "mcpServers": []})));
    let opened: Value = serde_json::from_str(&client.next()).unwrap();
    let session = &opened["result"]["sessionId"];
    let prompt = |id: u64, text: &str| {
        call(id, "session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    };
    client.send(&prompt(2, "one"));
    client.until("end_turn");
    proxy.cut();
    eventually("the session is loaded again", || world.methods().contains(&"session/load".to_owned()));
    client.send(&prompt(3, "two"));
    let update = client.next();
    assert!(update.contains("[two]"), "{update}");
    client.until("end_turn");
    client.close().code(0);
    server.stop();
}

#[test]
fn a_server_is_judged_on_both_transports() {
    let world = World::new().agent(ECHO);
    let server = Server::start(&world, &["--token-file", "tokens"]);
    let names = ["baseline", "http-streams", "http-token", "http-fault-cut", "ws-messages", "ws-fault-stall"];
    let mut args = vec!["check", "server", "--deadline", "30", "--format", "json", "--token-file", "token"];
    args.extend(names.iter().flat_map(|name| ["--scenario", *name]));
    let url = server.url.clone();
    args.push(&url);
    // Without a token nothing can be judged.
    let run = world.run(&[&args[..6], &args[8..]].concat()).code(2);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["conclusion"], "could not run", "{report}");
    let told = server.stop();
    let secret = world.write("token", told.lines().last().unwrap());
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();

    let server = Server::start(&world, &["--token-file", "tokens"]);
    *args.last_mut().unwrap() = &server.url;
    let run = world.run(&args).code(0);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let kept: Vec<&str> = report["rules"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["status"] == "pass")
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    for rule in ["HTTP-09", "HTTP-12", "HTTP-36", "HTTP-37", "WS-04", "WS-16", "INIT-05"] {
        assert!(kept.contains(&rule), "{rule} is not among {kept:?}");
    }
    server.stop();
    let run = world.run(&["check", "server", "ftp://x"]).code(2);
    assert!(format!("{run:?}").contains("is not the URL of a server"), "{run:?}");
}

#[test]
fn a_client_is_judged_on_both_transports() {
    let world = World::new();
    for (kind, scenario, rules) in [
        ("ws", "ws-client-messages", &["WS-01", "WS-03", "WS-04", "WS-10", "INIT-01"][..]),
        ("http", "http-client-requests", &["HTTP-05", "HTTP-14", "HTTP-15", "HTTP-24", "INIT-01"]),
        ("ws", "ws-client-fault-cut", &["WS-19"]),
        ("ws", "ws-client-fault-compressed", &["WS-20"]),
        ("ws", "ws-client-fault-masked", &["WS-20"]),
        ("ws", "ws-client-fault-opcode", &["WS-20"]),
        ("http", "http-client-fault-cut", &["HTTP-41"]),
        ("http", "http-client-fault-busy", &["HTTP-42"]),
        ("http", "http-client-fault-refused-stream", &["HTTP-43"]),
        ("http", "http-client-fault-late-accept", &["HTTP-44"]),
        ("http", "http-client-fault-pieces", &["HTTP-45"]),
        ("http", "http-client-fault-ids", &["RPC-14"]),
        ("http", "http-client-fault-session", &["SESS-32"]),
        ("ws", "ws-client-fault-ids", &["RPC-14"]),
        ("ws", "ws-client-fault-session", &["SESS-32"]),
        ("ws", "ws-client-fault-oversized", &["WS-21"]),
        // A client that cannot connect takes part in no conversation, so there is another one.
        ("ws", "ws-client-messages ws-client-fault-redirect", &["WS-22"]),
    ] {
        let client = [env!("CARGO_BIN_EXE_attache"), "--agent", "{url}", "exec", "{prompt}"];
        let check = ["check", "client", "--listen", kind, "--faults", "--deadline", "30", "--format", "json"];
        let scenarios: Vec<&str> = scenario.split(' ').flat_map(|name| ["--scenario", name]).collect();
        let run = world.run(&[&check[..], &scenarios, &["--"], &client].concat()).code(0);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        let kept = |wanted: &str| {
            let mut rules = report["rules"].as_array().unwrap().iter();
            rules.any(|rule| rule["id"] == *wanted && rule["status"] == "pass")
        };
        for rule in rules {
            assert!(kept(rule), "{kind}: {rule} is not kept in {report}");
        }
        // The servers of these checks have one transport each, and those without WebSocket are
        // remembered.
        let known = std::fs::read_to_string(world.home().join("cache/transports.json")).unwrap_or_default();
        assert_eq!(known.contains("http://127.0.0.1:"), scenario.starts_with("http"), "{scenario}: {known}");
        let _ = std::fs::remove_file(world.home().join("cache/transports.json"));
    }
}
