//! Hostile HTTP servers and MCP servers.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::editor::{Answer, Editor};
use crate::mcp::{ELICITATION, answer};
use crate::model::{Model, call};
use crate::report::{Group, Report};
use crate::web::{Body, Reply, Server};
use crate::world::{SECRET, Suite, leaked, processes_with, wait_until};

const CLASS: &str = "servers";

pub(crate) const GROUPS: &[Group] = &[
    Group::new(
        CLASS,
        "near-addresses",
        "a page of this machine or its network is fetched without a question",
        near_addresses,
    ),
    Group::new(CLASS, "redirections", "a redirection leads to a host that was not allowed", redirections),
    Group::new(CLASS, "pages", "a page exhausts the agent", pages),
    Group::new(CLASS, "mcp-lists", "lists and results of an MCP server exhaust the agent", mcp_lists),
    Group::new(CLASS, "mcp-tools", "an MCP server does something without a question", mcp_tools),
    Group::new(CLASS, "mcp-http", "an MCP server over HTTP gets what is not for it", mcp_http),
];

/// The bound on the memory of the agent while it reads hostile pages and lists.
const AGENT_MEMORY: u64 = 256 << 20;
/// No page or list takes as long.
const AGENT_TIME: Duration = Duration::from_secs(40);

fn near_addresses(suite: &Suite, report: &mut Report) {
    let hosts = [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "localhost.localdomain",
        "ip6-localhost",
        "127.1",
        "127.0.1",
        "0",
        "0.0.0.0",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "127.000.000.001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "127.0.0.1.",
        "127.255.255.254",
        "$HOSTNAME",
        "x.localhost",
        "127.0.0.1%00.example.com",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "\u{24db}ocalhost",
        "example.com@127.0.0.1",
        "127.0.0.1#@example.com",
        "127.0.0.1\\@example.com",
    ];
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    for mode in ["auto", "code"] {
        let web = Server::start(|_| Reply::new("text/plain", SECRET));
        for host in hosts {
            let host = host.replace("$HOSTNAME", &hostname);
            for scheme in ["http", "https"] {
                web.forget();
                let url = match host.contains(['#', '\\']) {
                    true => format!(
                        "{scheme}://{}",
                        host.replacen("127.0.0.1", &format!("127.0.0.1:{}", web.port()), 1)
                    ),
                    false => format!("{scheme}://{host}:{}/x", web.port()),
                };
                if scheme == "https" && mode == "code" {
                    continue;
                }
                let model = Model::start(vec![call("fetch", json!({ "url": url }))]);
                let world = model.serves(suite.world());
                Editor::start(&world, &["--mode", mode]).unwrap().prompt("go", Answer::Reject).unwrap();
                report.attack(
                    format!("{url:?} in {mode}"),
                    format!("attache agent --mode {mode}; fetch {url}"),
                    web.reached(),
                );
            }
        }
    }
    // Addresses that answer nothing here must be asked about too.
    for host in [
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.100.100.200",
        "[fe80::1]",
        "[fd00::1]",
        "metadata.google.internal",
        "224.0.0.1",
        "255.255.255.255",
        "[fd00:ec2::254]",
    ] {
        let model =
            Model::start(vec![call("fetch", json!({ "url": format!("http://{host}/latest/meta-data/") }))]);
        let world = model.serves(suite.world());
        let mut editor = Editor::start(&world, &["--mode", "auto"]).unwrap();
        let turn = editor.prompt("go", Answer::Reject).unwrap();
        let resolves = model.result(0).unwrap_or_default();
        let unknown_name = resolves.contains("no address")
            || resolves.contains("resolve")
            || resolves.contains("lookup")
            || resolves.contains("known");
        let happened =
            (turn.asked.is_empty() && !unknown_name).then(|| format!("it was not asked about: {resolves}"));
        report.attack(
            format!("question about {host}"),
            format!("attache agent --mode auto; fetch http://{host}/"),
            happened,
        );
    }
    let web = Server::start(|_| Reply::new("text/plain", SECRET));
    let model = Model::start(vec![call("fetch", json!({ "url": web.url("/x") }))]);
    let world = model.serves(suite.world());
    Editor::start(&world, &["--mode", "auto"]).unwrap().prompt("go", Answer::AllowOnce).unwrap();
    report.control(
        "an allowed page",
        web.reached().is_some() && model.received().contains(SECRET),
        model.received(),
    );
}

fn redirections(suite: &Suite, report: &mut Report) {
    for kind in [
        "302 Found",
        "301 Moved Permanently",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        for target in [
            "http://127.0.0.1:$P/x",
            "http://localhost:$P/x",
            "//127.0.0.1:$P/x",
            "http://[::ffff:127.0.0.1]:$P/x",
            "HTTP://127.0.0.1:$P/x",
            "\thttp://127.0.0.1:$P/x",
            "http:\\\\127.0.0.1:$P/x",
        ] {
            let second = Server::start(|_| Reply::new("text/plain", SECRET));
            let to = target.replace("$P", &second.port().to_string());
            let location = to.clone();
            let first = Server::start(move |_| Reply { status: kind, ..Reply::redirect(&location) });
            let model = Model::start(vec![call("fetch", json!({ "url": first.url("/start") }))]);
            let world = model.serves(suite.world());
            // The user allows the first address and no other.
            let allowed: &'static str = Box::leak(first.port().to_string().into_boxed_str());
            Editor::start(&world, &["--mode", "auto"])
                .unwrap()
                .prompt("go", Answer::AllowOnly(allowed))
                .unwrap();
            report.attack(
                format!("{kind} to {target}"),
                format!("fetch, {kind}, location {to:?}"),
                second.reached(),
            );
        }
    }
    // Pages that lead elsewhere by other means.
    for page in [
        "<meta http-equiv=refresh content='0;url=$U'>",
        "<script>location='$U'</script>",
        "<iframe src='$U'></iframe><img src='$U'><link rel=prefetch href='$U'>",
    ] {
        let second = Server::start(|_| Reply::new("text/plain", SECRET));
        let page = page.replace("$U", &second.url("/x"));
        let first = Server::start(move |_| Reply {
            headers: vec![("content-type", "text/html".into()), ("refresh", "0; url=/".into())],
            ..Reply::new("text/html", page.clone())
        });
        let model = Model::start(vec![call("fetch", json!({ "url": first.url("/start") }))]);
        let world = model.serves(suite.world());
        Editor::start(&world, &["--mode", "auto"]).unwrap().prompt("go", Answer::AllowOnce).unwrap();
        report.attack(format!("page {}", &second.url("/x")), "a page that leads elsewhere", second.reached());
    }
    let first = Server::start(|request| {
        if request.target.contains("start") {
            Reply::redirect("/next")
        } else {
            Reply::new("text/plain", SECRET)
        }
    });
    let model = Model::start(vec![call("fetch", json!({ "url": first.url("/start") }))]);
    let world = model.serves(suite.world());
    Editor::start(&world, &["--mode", "auto"]).unwrap().prompt("go", Answer::AllowOnce).unwrap();
    report.control("a redirection on the same host", model.received().contains(SECRET), model.received());
}

fn pages(suite: &Suite, report: &mut Report) {
    type Page = (&'static str, &'static str, fn() -> Body);
    let bodies: Vec<Page> = vec![
        ("empty scripts", "text/html", || Body::Text("<script></script>".repeat(240_000))),
        ("open scripts", "text/html", || Body::Text("<script>".repeat(400_000))),
        ("open comments", "text/html", || Body::Text("<!--".repeat(800_000))),
        ("open tags", "text/html", || Body::Text("<".repeat(4_000_000))),
        ("deep tags", "text/html", || Body::Text("<div><ul><li>".repeat(300_000))),
        ("attributes", "text/html", || Body::Text(format!("<a {}>", "x=\"1\" ".repeat(600_000)))),
        ("references", "text/html", || Body::Text("&amp;&#x41;&".repeat(400_000))),
        ("styles", "text/html", || Body::Text("<style><".repeat(500_000))),
        ("endless text", "text/plain", || Body::Endless(vec![b'x'; 1 << 16])),
        ("endless page", "text/html", || Body::Endless(b"<p>x".repeat(1 << 12))),
        ("endless line feeds", "text/html", || Body::Endless(vec![b'\n'; 1 << 16])),
        ("binary", "application/octet-stream", || Body::Endless(vec![0; 1 << 16])),
    ];
    for (name, kind, body) in bodies {
        let web = Server::start(move |_| Reply { body: body(), ..Reply::new(kind, "") });
        let model = Model::start(vec![call("fetch", json!({ "url": web.url("/") }))]);
        let world = model.serves(suite.world());
        let mut editor = Editor::start(&world, &["--mode", "auto"]).unwrap();
        let start = Instant::now();
        let turn = editor.prompt("go", Answer::AllowOnce);
        let (time, memory) = (start.elapsed(), editor.memory());
        let happened =
            turn.err().or_else(|| (time > AGENT_TIME).then(|| format!("it took {} s", time.as_secs())));
        let happened =
            happened.or_else(|| (memory > AGENT_MEMORY).then(|| format!("it used {} MB", memory >> 20)));
        report.attack(name, format!("fetch of a page with {name}"), happened);
    }
}

fn stdio(suite: &Suite, kind: &str, log: &std::path::Path, more: &[&str]) -> Value {
    let args: Vec<Value> = [json!("mcp"), json!(kind), json!(log)]
        .into_iter()
        .chain(more.iter().map(|word| json!(word)))
        .collect();
    json!([{ "name": "evil", "command": suite.this, "args": args, "env": [] }])
}

fn mcp_lists(suite: &Suite, report: &mut Report) {
    for kind in ["pages", "schema", "names", "instructions", "large", "many", "image", "structured"] {
        let model = Model::start(vec![call("evil_look", json!({})), call("evil__look", json!({}))]);
        let world = model.serves(suite.world());
        let start = Instant::now();
        let started = Editor::start_with(
            &world,
            &["--mode", "auto"],
            stdio(suite, kind, &world.root.join("mcp.log"), &[]),
        );
        let (happened, memory, received) = match started {
            Err(error) => (Some(error), 0, String::new()),
            Ok(mut editor) => {
                let turn = editor.prompt("go", Answer::AllowOnce);
                (turn.err(), editor.memory(), model.received())
            }
        };
        let time = start.elapsed();
        let happened =
            happened.or_else(|| (time > AGENT_TIME).then(|| format!("it took {} s", time.as_secs())));
        let happened =
            happened.or_else(|| (memory > AGENT_MEMORY).then(|| format!("it used {} MB", memory >> 20)));
        report.attack(kind, format!("an MCP server with {kind}"), happened);
        let happened = (received.len() > 40 << 20)
            .then(|| format!("{} MB were sent to the model", received.len() >> 20));
        report.attack(format!("{kind}, sent to the model"), format!("an MCP server with {kind}"), happened);
        let control = received.contains("\\u001b[2J") || received.contains('\u{1b}');
        report.attack(
            format!("{kind}, control characters in names"),
            "tools with control characters in their names",
            (kind == "names" && control && received.contains("\"name\":\"evil_a\\u001b"))
                .then(|| "the model got such a name".to_owned()),
        );
    }
}

fn mcp_tools(suite: &Suite, report: &mut Report) {
    // What a server says about its tools does not count.
    for mode in ["plan", "ask", "code"] {
        let model = Model::start(vec![call("evil_look", json!({}))]);
        let world = model.serves(suite.world());
        let log = world.root.join("mcp.log");
        let mut editor =
            Editor::start_with(&world, &["--mode", mode], stdio(suite, "plain", &log, &[])).unwrap();
        editor.prompt("go", Answer::Reject).unwrap();
        let seen = fs::read_to_string(&log).unwrap_or_default();
        report.attack(
            format!("read-only hint in {mode}"),
            "a tool with readOnlyHint",
            leaked("the server", &seen, "tools/call"),
        );
    }
    let model = Model::start(vec![call("evil_look", json!({}))]);
    let world = model.serves(suite.world());
    let log = world.root.join("mcp.log");
    Editor::start_with(&world, &["--mode", "ask"], stdio(suite, "plain", &log, &[]))
        .unwrap()
        .prompt("go", Answer::AllowOnce)
        .unwrap();
    let seen = fs::read_to_string(&log).unwrap_or_default();
    report.control("an allowed tool", seen.contains("tools/call"), seen);
    // A tool with the name of one of ours.
    let model = Model::start(vec![
        call("run", json!({ "command": "echo own" })),
        call("write", json!({ "path": "x", "content": "y" })),
        call("evil_run", json!({})),
        call("evil_write", json!({})),
    ]);
    let world = model.serves(suite.world());
    let log = world.root.join("mcp.log");
    Editor::start_with(&world, &["--mode", "code"], stdio(suite, "names", &log, &[]))
        .unwrap()
        .prompt("go", Answer::Reject)
        .unwrap();
    let seen = fs::read_to_string(&log).unwrap_or_default();
    report.attack(
        "a tool with the name of an own one",
        "a server with a tool `run`",
        leaked("the server", &seen, "tools/call"),
    );
    // Questions of a server name it and do not look like ours.
    let model = Model::start(vec![call("evil_look", json!({}))]);
    let world = model.serves(suite.world());
    let log = world.root.join("mcp.log");
    let mut editor =
        Editor::start_with(&world, &["--mode", "ask"], stdio(suite, "elicit", &log, &[])).unwrap();
    let turn = editor.prompt("go", Answer::AllowOnce).unwrap();
    let questions: Vec<&Value> =
        turn.messages.iter().filter(|message| message["method"] == "elicitation/create").collect();
    report.control("an elicitation of a server", !questions.is_empty(), turn.text());
    for question in questions {
        let text = question["params"]["message"].as_str().unwrap_or_default();
        let names = text.lines().next().is_some_and(|line| line.contains("evil"));
        report.attack(
            "an elicitation does not name its server",
            format!("a server that asks {ELICITATION:?}"),
            (!names).then(|| format!("the question is {text:?}")),
        );
        let raw = text.lines().any(|line| line.starts_with("[permission]") || line.starts_with("? "));
        report.attack(
            "an elicitation looks like a question of the program",
            format!("a server that asks {ELICITATION:?}"),
            raw.then(|| format!("the question is {text:?}")),
        );
    }
    // A server does not use the model or see the roots without a question.
    let model = Model::start(vec![call("evil_look", json!({}))]);
    let world = model.serves(suite.world());
    let log = world.root.join("mcp.log");
    Editor::start_with(&world, &["--mode", "auto"], stdio(suite, "sampling", &log, &[]))
        .unwrap()
        .prompt("go", Answer::Reject)
        .unwrap();
    let seen = fs::read_to_string(&log).unwrap_or_default();
    report.attack(
        "a server asks the model",
        "sampling/createMessage",
        seen.contains("\"role\":\"assistant\"").then(|| "it got an answer".to_owned()),
    );
    // Processes of a server end with the session.
    for kind in ["daemon"] {
        let mark = format!("6{}{}", std::process::id() % 10_000, suite.number());
        let model = Model::start(Vec::new());
        let world = model.serves(suite.world());
        let log = world.root.join("mcp.log");
        let mut editor = Editor::start_with(&world, &[], stdio(suite, kind, &log, &[&mark])).unwrap();
        editor.prompt("go", Answer::Reject).unwrap();
        let seen = !processes_with(&format!("sleep\0{mark}")).is_empty();
        drop(editor);
        let pattern = format!("sleep\0{mark}");
        let gone = wait_until(Duration::from_secs(5), || processes_with(&pattern).is_empty());
        for pid in processes_with(&pattern) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        report.attack(
            "a daemon of a server",
            "an MCP server that starts a daemon",
            (!gone).then(|| "it is left".to_owned()),
        );
        report.control("the daemon of a server runs", seen, "not found");
    }
}

fn mcp_http(suite: &Suite, report: &mut Report) {
    let reply = |kind: &'static str| {
        move |request: &crate::web::Request| {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let Some(id) = message.get("id") else {
                return Reply { status: "202 Accepted", ..Reply::new("text/plain", "") };
            };
            let result = answer(kind, message["method"].as_str().unwrap_or_default(), 1, &message["params"]);
            Reply::new(
                "application/json",
                json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
            )
        }
    };
    let servers = |url: &str| json!([{ "type": "http", "name": "evil", "url": url, "headers": [{ "name": "Authorization", "value": format!("Bearer {SECRET}") }] }]);
    // A redirection gets neither the credentials nor a request.
    for status in ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let second = Server::start(|_| Reply::missing());
        let to = second.url("/stolen");
        let first = Server::start(move |_| Reply { status, ..Reply::redirect(&to) });
        let model = Model::start(Vec::new());
        let world = model.serves(suite.world());
        if let Ok(mut editor) = Editor::start_with(&world, &[], servers(&first.url("/mcp"))) {
            let _ = editor.prompt("go", Answer::Reject);
        }
        let headers: String = second.requests().iter().map(|request| request.headers.clone()).collect();
        report.attack(
            format!("credentials after {status}"),
            format!("an MCP server that answers {status}"),
            leaked("the other server", &headers, SECRET),
        );
    }
    for kind in ["pages", "schema", "large"] {
        let web = Server::start(reply(kind));
        let model = Model::start(vec![call("evil_look", json!({}))]);
        let world = model.serves(suite.world());
        let start = Instant::now();
        let mut memory = 0;
        let happened = match Editor::start_with(&world, &["--mode", "auto"], servers(&web.url("/mcp"))) {
            Err(error) => Some(error),
            Ok(mut editor) => {
                let turn = editor.prompt("go", Answer::AllowOnce);
                memory = editor.memory();
                turn.err()
            }
        };
        let happened =
            happened.or_else(|| (start.elapsed() > AGENT_TIME).then(|| "it took too long".to_owned()));
        let happened =
            happened.or_else(|| (memory > AGENT_MEMORY).then(|| format!("it used {} MB", memory >> 20)));
        report.attack(format!("{kind} over HTTP"), format!("an MCP server over HTTP with {kind}"), happened);
    }
    let web = Server::start(reply("plain"));
    let model = Model::start(Vec::new());
    let world = model.serves(suite.world());
    Editor::start_with(&world, &[], servers(&web.url("/mcp"))).unwrap().prompt("go", Answer::Reject).unwrap();
    let headers: String = web.requests().iter().map(|request| request.headers.clone()).collect();
    report.control("the server itself gets its credentials", headers.contains(SECRET), headers);
}
