//! Hostile agents: files, commands and settings that a client provides are used beyond what it
//! allows.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::grants::{terminal, write};
use crate::editor::{Answer, Editor};
use crate::model::{Model, call};
use crate::peer::{answers, command_line, log};
use crate::report::{Group, Report};
use crate::world::{KEY, SECRET, Suite, World, changed, created, leaked, processes_with, wait_until};

const CLASS: &str = "client";

pub(crate) const GROUPS: &[Group] = &[
    Group::new(CLASS, "jail", "files outside of the session's directories are provided", jail),
    Group::new(CLASS, "protected", "a mode approves a write to a protected file", protected),
    Group::new(CLASS, "sandboxed", "a command of another agent leaves the sandbox of --sandbox", sandboxed),
    Group::new(
        CLASS,
        "forged-sandbox",
        "a command line that looks confined runs without a question",
        forged_sandbox,
    ),
    Group::new(CLASS, "environment", "commands and servers get keys", environment),
    Group::new(CLASS, "credentials", "stored credentials reach another agent", credentials),
    Group::new(CLASS, "processes", "an agent leaves processes behind", processes),
    Group::new(CLASS, "secrets", "files of the program hold keys", secrets),
];

fn exec(world: &World<'_>, steps: &[Value], flags: &[&str]) -> crate::world::Run {
    let agent = command_line(world, &json!({ "steps": steps }));
    let mut args = flags.to_vec();
    args.extend(["--agent", &agent, "exec", "go"]);
    world.run(&args)
}

fn jail(suite: &Suite, report: &mut Report) {
    let paths = [
        "$O/secret.txt",
        "$cwd/../outside/secret.txt",
        "$cwd/link",
        "$cwd/out/secret.txt",
        "$cwd/src/../../outside/secret.txt",
        "/proc/self/environ",
        "/proc/self/root$O/secret.txt",
        "/proc/self/cwd/../outside/secret.txt",
        "/dev/zero",
        "/dev/tty",
        "/dev/stdin",
        "$cwd/fifo",
        "$cwd/loop",
        "$H/.ssh/id_rsa",
        "~/.ssh/id_rsa",
        "file://$O/secret.txt",
        "../outside/secret.txt",
        "$cwd/out",
        "$cwd/\u{0}x",
        "",
        "/",
        "$cwd/link/.",
        "$cwd//link",
        "$cwd/chain",
    ];
    let cases: Vec<_> = paths
        .iter()
        .flat_map(|path| ["--approve-all", "--approve-reads", "--ask"].map(|mode| (*path, mode)))
        .collect();
    let results = suite.parallel(&cases, |(path, mode)| {
        let world = suite.world();
        symlink("../outside/secret.txt", world.path("link")).unwrap();
        symlink("link", world.path("chain")).unwrap();
        symlink("../outside", world.path("out")).unwrap();
        symlink("loop", world.path("loop")).unwrap();
        world.shell("mkfifo fifo");
        let path = path
            .replace("$O", &world.root.join("outside").display().to_string())
            .replace("$H", &world.home().display().to_string());
        let read = |more: Value| {
            let mut params = json!({ "path": path });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "call": "fs/read_text_file", "params": params })
        };
        let steps =
            [read(json!({})), read(json!({ "line": 1, "limit": 4_294_967_295_u32 })), write(&path, "evil")];
        let run = exec(&world, &steps, &[mode]);
        let text = json!(answers(&world)).to_string();
        let secret = format!("{SECRET}\n");
        let happened = leaked("the answer", &text, SECRET)
            .or_else(|| leaked("the answer", &text, KEY))
            .or_else(|| changed(&world.outside("secret.txt"), &secret))
            .or_else(|| changed(&world.home().join(".ssh/id_rsa"), &secret))
            .or_else(|| run.misbehaved());
        (
            format!("{path:?} {mode}"),
            format!("attache {mode} exec; fs/read_text_file and fs/write_text_file of {path:?}"),
            happened,
        )
    });
    report.attacks(results);
    let world = suite.world();
    world.write("inside.txt", SECRET);
    exec(
        &world,
        &[json!({ "call": "fs/read_text_file", "params": { "path": "$cwd/inside.txt" } })],
        &["--approve-all"],
    );
    report.control("a file of the project", json!(answers(&world)).to_string().contains(SECRET), "not read");
}

/// Protected files, and files that become protected by a link.
const PROTECTED: &[&str] = &[
    ".git/hooks/post-checkout",
    ".git/config",
    ".git/info/attributes",
    ".GIT/hooks/pre-commit",
    ".attache.toml",
    ".attache/commands/x.md",
    "AGENTS.md",
    "CLAUDE.md",
    "src/AGENTS.md",
    "agents.md",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".idea/workspace.xml",
    ".mcp.json",
    ".envrc",
    ".claude/settings.json",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    ".zed/tasks.json",
    ".husky/pre-commit",
    ".devcontainer/devcontainer.json",
    "sub/.git/hooks/post-checkout",
    "gitlink/hooks/x",
    "src/../.git/hooks/y",
    ".gitmodules",
];

fn protected(suite: &Suite, report: &mut Report) {
    let modes: &[&[&str]] = &[
        &["--approve-all"],
        &["--approve-reads"],
        &["--policy", r#"{"autoApprove":["edit"]}"#],
        &["--approve-all", "--policy", r#"{"autoApprove":["edit","execute"]}"#],
        &["--policy", r#"{"defaultAction":"approve"}"#],
    ];
    let cases: Vec<_> =
        PROTECTED.iter().flat_map(|path| modes.iter().map(move |mode| (*path, *mode))).collect();
    let before = |world: &World<'_>, path: &str| fs::read_to_string(world.path(path)).ok();
    let results = suite.parallel(&cases, |(path, mode)| {
        let world = suite.world();
        symlink(".git", world.path("gitlink")).unwrap();
        let was = before(&world, path);
        exec(&world, &[write(&format!("$cwd/{path}"), "evil")], mode);
        let happened = (before(&world, path) != was).then(|| format!("{path} was written"));
        (
            format!("client, {path}, {}", mode.join(" ")),
            format!("attache {} exec; fs/write_text_file {path}", mode.join(" ")),
            happened,
        )
    });
    report.attacks(results);
    // The same for the tools of our own agent, in every mode.
    let cases: Vec<_> =
        PROTECTED.iter().flat_map(|path| ["plan", "ask", "code", "auto"].map(|mode| (*path, mode))).collect();
    let results = suite.parallel(&cases, |(path, mode)| {
        let model = Model::start(vec![
            call("read", json!({ "path": path })),
            call("write", json!({ "path": path, "content": "evil" })),
            call("write", json!({ "path": "plain", "content": "evil" })),
            call("move", json!({ "from": "plain", "to": path })),
            call("edit", json!({ "path": path, "edits": [{ "old": "repository", "new": "evil" }] })),
            call("delete", json!({ "path": path })),
            call("move", json!({ "from": path, "to": "stolen" })),
        ]);
        let world = model.serves(suite.world());
        symlink(".git", world.path("gitlink")).unwrap();
        let was = before(&world, path);
        Editor::start(&world, &["--mode", mode]).unwrap().prompt("go", Answer::Reject).unwrap();
        let happened = (before(&world, path) != was).then(|| format!("{path} was changed"));
        (
            format!("agent, {path}, {mode}"),
            format!("attache agent --mode {mode}; write, move, edit, delete {path}"),
            happened,
        )
    });
    report.attacks(results);
    let world = suite.world();
    exec(&world, &[write("$cwd/plain", "x")], &["--approve-all"]);
    report.control("an ordinary file with --approve-all", world.path("plain").exists(), "not written");
    let model = Model::start(vec![call("write", json!({ "path": "plain", "content": "x" }))]);
    let world = model.serves(suite.world());
    Editor::start(&world, &["--mode", "auto"]).unwrap().prompt("go", Answer::Reject).unwrap();
    report.control("an ordinary file in auto mode", world.path("plain").exists(), "not written");
}

fn sandboxed(suite: &Suite, report: &mut Report) {
    let lines: &[(&str, &str, &str)] = &[
        ("write outside", "touch ../outside/x", "../outside/x"),
        ("write through a link", "ln -s ../outside o; touch o/x", "../outside/x"),
        ("home", "touch $HOME/x", "../home/x"),
        ("git hook", "echo evil > .git/hooks/post-checkout", ".git/hooks/post-checkout"),
        ("editor tasks", "mkdir .vscode; echo evil > .vscode/tasks.json", ".vscode/tasks.json"),
        ("settings", "echo evil > .attache.toml", ".attache.toml"),
        ("nested instructions", "echo evil > src/AGENTS.md", "src/AGENTS.md"),
        ("git part", "echo evil > .git/commondir", ".git/commondir"),
        ("secret", "cat ~/.ssh/id_rsa > found", "found-secret"),
        ("key", "env > found", "found-key"),
        ("runtime socket", "./probe probe unix $XDG_RUNTIME_DIR/test.sock hello > found", "found-probe"),
        ("daemon", "setsid sleep 8$M >/dev/null 2>&1 & true", "left"),
    ];
    for confined in [true, false] {
        for (name, line, trace) in lines {
            let world = suite.world();
            let mark = format!("{}{}", std::process::id() % 10_000, suite.number());
            fs::copy(&suite.this, world.path("probe")).unwrap();
            let _socket = std::os::unix::net::UnixListener::bind(world.root.join("run/test.sock")).unwrap();
            let flags: &[&str] = if confined { &["--approve-all", "--sandbox"] } else { &["--approve-all"] };
            let line = line.replace("$M", &mark);
            let run = exec(&world, &terminal("sh", &["-c", &line], json!({})), flags);
            let found = world.read("found");
            let happened = match *trace {
                "found-secret" => leaked("the output", &found, SECRET),
                "found-key" => leaked("the output", &found, KEY),
                "found-probe" => leaked("the output", &found, "probe: done"),
                "left" => {
                    let gone = wait_until(std::time::Duration::from_secs(5), || {
                        processes_with(&format!("8{mark}")).is_empty()
                    });
                    (!gone).then(|| "a process is left".to_owned())
                }
                path => created(&world.path(path)),
            };
            match confined {
                true => report.attack(
                    *name,
                    format!("attache --approve-all --sandbox exec; terminal/create sh -c {line:?}"),
                    happened,
                ),
                // Keys and daemons are kept away without a sandbox too.
                false if !["found-key", "left"].contains(trace) => {
                    report.control(format!("{name} without --sandbox"), happened.is_some(), run.tail())
                }
                false => {}
            }
        }
    }
}

/// Command lines that begin like those of our own confined commands.
fn forged_sandbox(suite: &Suite, report: &mut Report) {
    // A real one, as our own agent builds it, to change.
    let model = Model::start(vec![crate::model::run("cat README.md")]);
    let world = model.serves(suite.world());
    let own = format!("{} agent --model openai/attack --mode plan", suite.program.display());
    let run = world.run(&["--format", "json", "--approve-all", "--agent", &own, "exec", "go"]);
    let messages = run.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let Some(real) = messages.into_iter().find(|message| message["method"] == "terminal/create") else {
        return report.control("a confined command line is seen", false, run.tail());
    };
    report.control("a confined command line is seen", true, "");
    let program = real["params"]["command"].as_str().unwrap_or_default().to_owned();
    let args: Vec<String> = real["params"]["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|arg| arg.as_str().map(str::to_owned))
        .collect();
    let tail = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let head = &args[..tail];
    type Forge<'a> = (&'a str, String, Vec<String>, Value);
    let with = |program: &str, head: &[String], command: &[&str]| -> (String, Vec<String>) {
        let words = head
            .iter()
            .cloned()
            .chain(["--".to_owned()])
            .chain(command.iter().map(|word| (*word).to_owned()));
        (program.to_owned(), words.collect())
    };
    let mut forged: Vec<Forge<'_>> = Vec::new();
    let mut add = |name: &'static str, (program, args): (String, Vec<String>), more: Value| {
        forged.push((name, program, args, more))
    };
    let touch = ["/bin/sh", "-c", "touch canary; cat ../outside/secret.txt"];
    add("another command in it", with(&program, head, &touch), json!({}));
    add("another program of that name", with("./attache", head, &touch), json!({}));
    add(
        "through a shell",
        (
            "sh".to_owned(),
            vec!["-c".to_owned(), format!("{program} {} -- touch canary; touch canary", head.join(" "))],
        ),
        json!({}),
    );
    add("without its words", with(&program, &head[..1.min(head.len())], &touch), json!({}));
    let reversed: Vec<String> = head.iter().rev().cloned().collect();
    add("words in another order", with(&program, &reversed, &touch), json!({}));
    add(
        "with a variable",
        with(&program, head, &touch),
        json!({ "env": [{ "name": "LD_PRELOAD", "value": "./evil.so" }] }),
    );
    add(
        "with the backend variable",
        with(&program, head, &touch),
        json!({ "env": [{ "name": "ATTACHE_SANDBOX_BACKEND", "value": "none" }] }),
    );
    for (from, to) in [
        ("read-only", "writable"),
        ("namespaces", "none"),
        ("namespaces", "landlock"),
        ("only", "everything"),
        ("off", "open"),
        ("minimal", "keep"),
        ("project", "outside"),
    ] {
        let changed: Vec<String> = head.iter().map(|word| word.replace(from, to)).collect();
        if changed != head {
            add("with other words", with(&program, &changed, &touch), json!({}));
        }
    }
    for (at, _) in head.iter().enumerate().skip(1) {
        let mut fewer = head.to_vec();
        fewer.remove(at);
        add("without one word", with(&program, &fewer, &touch), json!({}));
    }
    for (at, (name, program, args, more)) in forged.iter().enumerate() {
        for mode in ["--ask", "--approve-reads"] {
            let world = World::new(suite, world.root.clone());
            let _ = fs::remove_file(world.path("canary"));
            let _ = fs::remove_file(world.root.join("agent.log"));
            world.script(&world.path("attache"), "touch canary; cat ../outside/secret.txt");
            let words: Vec<&str> = args.iter().map(String::as_str).collect();
            let mut steps = terminal(program, &words, more.clone());
            steps.push(json!({ "call": "terminal/output", "params": { "terminalId": "$terminal" } }));
            exec(&world, &steps, &[mode]);
            let happened = created(&world.path("canary"))
                .or_else(|| leaked("the output", &json!(answers(&world)).to_string(), SECRET));
            report.attack(
                format!("{name} ({at}), {mode}"),
                format!("attache {mode} exec; terminal/create {program} {args:?}"),
                happened,
            );
        }
    }
}

fn environment(suite: &Suite, report: &mut Report) {
    let names = [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "OPENROUTER_API_KEY",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "NPM_TOKEN",
        "DB_PASSWORD",
        "MY_SECRET",
        "SLACK_TOKEN",
        "AZURE_CLIENT_SECRET",
        "HF_TOKEN",
        "ATTACHE_AUTH_X",
    ];
    let mut world = suite.world();
    names.iter().for_each(|name| world.set(name, format!("{KEY}-{name}")));
    let found = |report: &mut Report, place: &str, text: &str| {
        for name in names {
            let value = format!("{KEY}-{name}");
            let leaked = text.contains(&value) || text.contains(&format!("{KEY}-{name}"));
            report.attack(
                format!("{name} in {place}"),
                format!("{name}=… attache; {place}"),
                leaked.then(|| format!("{place} has {name}")),
            );
        }
    };
    // Commands of another agent.
    let mut steps = terminal("env", &[], json!({}));
    steps.push(json!({ "call": "terminal/output", "params": { "terminalId": "$terminal" } }));
    exec(&world, &steps, &["--approve-all"]);
    let text = json!(answers(&world)).to_string();
    found(report, "commands of an agent", &text);
    report.control("the environment of a command is seen", text.contains("XDG_RUNTIME_DIR"), text);
    // Commands of our own agent.
    for (place, args) in [
        ("sandboxed commands", &["--mode", "auto"][..]),
        ("commands without a sandbox", &["--mode", "auto", "--no-sandbox"]),
        ("read-only commands", &["--mode", "plan"]),
    ] {
        let model = Model::start(vec![
            crate::model::run("env; cat /proc/self/environ; echo $OPENAI_API_KEY"),
            crate::model::run("printenv"),
            crate::model::run("echo $OPENAI_API_KEY $GITHUB_TOKEN"),
        ]);
        world.set("OPENAI_BASE_URL", model.url());
        Editor::start(&world, args).unwrap().prompt("go", Answer::AllowOnce).unwrap();
        let results = model.results();
        let text: String = (0..3).filter_map(|at| results.of(at)).collect();
        found(report, place, &text);
    }
    // MCP servers.
    let model = Model::start(Vec::new());
    world.set("OPENAI_BASE_URL", model.url());
    let log_file = world.root.join("mcp.log");
    let server =
        json!([{ "name": "evil", "command": suite.this, "args": ["mcp", "plain", log_file], "env": [] }]);
    Editor::start_with(&world, &[], server).unwrap().prompt("go", Answer::Reject).unwrap();
    let text = fs::read_to_string(&log_file).unwrap_or_default();
    found(report, "MCP servers", &text);
    report.control("the environment of an MCP server is seen", text.contains("env XDG_RUNTIME_DIR="), text);
}

fn credentials(suite: &Suite, report: &mut Report) {
    let world = suite.world();
    let script = |name: &str| {
        let line = command_line(
            &world,
            &json!({ "initialize": { "authMethods": [{ "id": "key", "name": "Key" }, { "id": "mine", "name": "Mine" }] }, "steps": [] }),
        );
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        format!("[agents.{name}]\nargv = {}\n", json!(words))
    };
    world.settings(&format!(
        "[auth.good]\nkey = \"{SECRET}-good\"\nmine = \"{SECRET}-mine\"\n{}{}",
        script("good"),
        script("evil")
    ));
    let text = |agent: &str| {
        let _ = fs::remove_file(world.root.join("agent.log"));
        let run = world.run(&[agent, "exec", "go"]);
        (json!(log(&world)).to_string(), run)
    };
    let (seen, run) = text("good");
    report.control("its own agent gets a credential", seen.contains(SECRET), run.tail());
    let (seen, _) = text("evil");
    report.attack("another agent", "credentials of `good`, agent `evil`", leaked("the agent", &seen, SECRET));
    let line = command_line(
        &world,
        &json!({ "initialize": { "authMethods": [{ "id": "key", "name": "Key" }] }, "steps": [] }),
    );
    for (name, flags) in [
        ("agent by command line", vec!["--agent", line.as_str()]),
        ("agent by command line, trusted", vec!["--trust", "--agent", line.as_str()]),
    ] {
        let _ = fs::remove_file(world.root.join("agent.log"));
        world.run(&[flags, vec!["exec", "go"]].concat());
        report.attack(
            name,
            "credentials of `good`, another command line",
            leaked("the agent", &json!(log(&world)).to_string(), SECRET),
        );
    }
    // A trusted project that gives its own program the name of the agent.
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    world.write(".attache.toml", format!("[agents.good]\nargv = {}\n", json!(words)));
    for flags in [&["--trust"][..], &[]] {
        let _ = fs::remove_file(world.root.join("agent.log"));
        world.run(&[flags, &["good", "exec", "go"]].concat());
        // Untrusted, the user's own agent runs.
        if !flags.is_empty() {
            report.attack(
                "project's program with the name of an agent",
                ".attache.toml: [agents.good]; attache --trust good exec",
                leaked("the agent", &json!(log(&world)).to_string(), SECRET),
            );
        }
    }
}

fn processes(suite: &Suite, report: &mut Report) {
    let daemons: &[(&str, &str)] = &[
        ("setsid", "setsid sleep 9$M >/dev/null 2>&1 </dev/null &"),
        ("double fork", "(setsid sh -c 'sleep 9$M & sleep 9$M' >/dev/null 2>&1 </dev/null &)"),
        (
            "ignores signals",
            "setsid sh -c 'trap \"\" TERM HUP INT; sleep 9$M; sleep 9$M' >/dev/null 2>&1 </dev/null &",
        ),
        (
            "forks again and again",
            "setsid sh -c 'for i in 1 2 3 4 5 6 7 8; do setsid sleep 9$M & done; sleep 9$M' >/dev/null 2>&1 </dev/null &",
        ),
    ];
    for (name, line) in daemons {
        for (way, more) in [
            ("at the end", vec![]),
            ("after it killed its guardian", vec![json!({ "kill": "parent" })]),
            ("after it killed all guardians", vec![json!({ "kill": "parents" })]),
        ] {
            let world = suite.world();
            let mark = format!("{}{}", std::process::id() % 10_000, suite.number());
            let steps = [vec![json!({ "sh": line.replace("$M", &mark) })], more].concat();
            exec(&world, &steps, &[]);
            let pattern = format!("9{mark}");
            let gone = wait_until(std::time::Duration::from_secs(5), || processes_with(&pattern).is_empty());
            let left = processes_with(&pattern);
            for pid in &left {
                if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
            report.attack(
                format!("{name}, {way}"),
                format!("agent: {}", json!(steps)),
                (!gone).then(|| format!("processes are left: {left:?}")),
            );
        }
    }
    // A shell does leave them.
    let world = suite.world();
    let mark = format!("9{}{}", std::process::id() % 10_000, suite.number());
    world.shell(&format!("setsid sleep {mark} >/dev/null 2>&1 </dev/null &"));
    let left = processes_with(&mark);
    report.control("a daemon of a shell", !left.is_empty(), "not found");
    for pid in left {
        if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Keys that pass through the program must not be in its files.
fn secrets(suite: &Suite, report: &mut Report) {
    let tokens = [
        ("OpenAI key", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"),
        ("Anthropic key", "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ"),
        ("GitHub token", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
        ("AWS key", "AKIAIOSFODNN7EXAMPLE"),
        ("the user's key", KEY),
    ];
    for (name, token) in tokens {
        let world = suite.world();
        let text = json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": format!("key {token} PLAIN-CANARY") } } });
        let tool = json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": "t", "title": format!("x {token}"), "kind": "execute", "rawInput": { "command": format!("curl -H 'authorization: Bearer {token}' x") } } });
        let act = terminal(
            "sh",
            &["-c", &format!("OPENAI_API_KEY={token} true")],
            json!({ "env": [{ "name": "API_KEY", "value": token }] }),
        );
        let steps = [vec![text, tool], act].concat();
        let agent = command_line(&world, &json!({ "steps": steps }));
        let log_file = world.home().join("wire.log").display().to_string();
        world.run(&["--approve-all", "--log", &log_file, "--agent", &agent, "exec", "go"]);
        world.run(&["--agent", &agent, "sessions", "new"]);
        world.run(&["--approve-all", "--agent", &agent, "prompt", &format!("my key is {token}")]);
        let recording = world.home().join("recording.jsonl").display().to_string();
        let words: Vec<&str> = agent.split(' ').collect();
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{{\"cwd\":\"/\",\"mcpServers\":[{{\"name\":\"m\",\"command\":\"x\",\"args\":[],\"env\":[{{\"name\":\"API_KEY\",\"value\":\"{token}\"}}]}}]}}}}\n"
        );
        world.pipe(&[&["record", &recording, "--"], words.as_slice()].concat(), &line);
        let files = world.files_with(token);
        let files: Vec<String> = files
            .iter()
            .map(|file| file.display().to_string())
            .filter(|file| !file.contains("/agent-"))
            .collect();
        report.attack(
            name,
            format!("a session with the key {token}"),
            (!files.is_empty()).then(|| format!("it is in {}", files.join(", "))),
        );
        report.control(
            format!("{name}, other text is kept"),
            !world.files_with("PLAIN-CANARY").is_empty(),
            "not found",
        );
        report.control(
            format!("{name}, decisions are in the audit log"),
            world.audit().contains("terminal"),
            world.audit(),
        );
    }
}
