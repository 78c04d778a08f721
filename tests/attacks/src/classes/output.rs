//! Hostile text of agents, models, files and servers reaches a terminal as commands.

use std::fs;

use serde_json::{Value, json};

use crate::model::{Model, Step, run};
use crate::peer::command_line;
use crate::report::{Group, Report};
use crate::terminal::Terminal;
use crate::web::{Reply, Server};
use crate::world::{Suite, World};

const CLASS: &str = "output";

pub(crate) const GROUPS: &[Group] = &[
    Group::new(CLASS, "agent-text", "text of an agent controls the terminal", agent_text),
    Group::new(CLASS, "lists", "lists and records control the terminal", lists),
    Group::new(CLASS, "model-text", "text of a model controls the terminal", model_text),
    Group::new(CLASS, "files", "files of a project control the terminal", files),
];

/// Texts that a terminal must not get. Each is followed by its number, so that one that got through
/// is recognised.
fn payloads() -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let controls = (1..0x20).chain([0x7f]).chain(0x80..0xa0).filter_map(char::from_u32);
    all.extend(controls.filter(|c| !"\n\r\t".contains(*c)).map(String::from));
    for csi in [
        "2J", "H", "3;1H", "1A", "K", "31m", "8m", "?25l", "?1049h", "6n", "c", "21t", "4h", "1;1r", "!p",
        "?1000h", "99999C", ">4;2m",
    ] {
        all.push(format!("\u{1b}[{csi}"));
        all.push(format!("\u{9b}{csi}"));
    }
    for osc in [
        "0;title",
        "52;c;ZXZpbA==",
        "8;;http://x.example",
        "4;1;rgb:ff/00/00",
        "9;note",
        "777;notify;a;b",
        "1337;File=:AA",
        "7;file://x/",
    ] {
        all.push(format!("\u{1b}]{osc}\u{7}"));
        all.push(format!("\u{1b}]{osc}\u{1b}\\"));
        all.push(format!("\u{9d}{osc}\u{9c}"));
    }
    for first in ['P', 'X', '^', '_', 'k'] {
        all.push(format!("\u{1b}{first}$q\"p\u{1b}\\"));
    }
    all.extend(
        [
            "\u{1b}c",
            "\u{1b}7",
            "\u{1b}M",
            "\u{1b}(0",
            "\u{1b}#8",
            "\u{1b}\u{1b}[2J",
            "\u{1b}[\u{1b}[2J",
            "\u{1b}]0;open",
        ]
        .map(String::from),
    );
    let hidden = [
        0x61c, 0x200e, 0x200f, 0x200b, 0x2060, 0x2064, 0xfeff, 0xad, 0x34f, 0x180e, 0x3164, 0xfff9, 0xe0001,
        0xe0041, 0x2028, 0x2029,
    ];
    let hidden = hidden.into_iter().chain(0x202a..=0x202e).chain(0x2066..=0x2069);
    all.extend(hidden.filter_map(char::from_u32).map(String::from));
    all.iter().enumerate().map(|(at, text)| format!("{text}P{at:03}")).collect()
}

/// All of them, in lines of some dozen letters, because some places cut what they show.
fn evil() -> String {
    let all = payloads();
    all.iter().map(|text| format!("Visible {text} ")).collect()
}

/// A piece of them, for short places.
fn pieces() -> Vec<String> {
    payloads().chunks(6).map(|part| format!("Visible {}", part.join(" "))).collect()
}

/// What a terminal got that it must not.
fn problem(seen: &str) -> Option<String> {
    for payload in payloads() {
        if seen.contains(&payload) {
            return Some(format!("the terminal got {payload:?}"));
        }
    }
    let mut rest = seen.char_indices();
    while let Some((at, c)) = rest.next() {
        let is_own = |text: &str| {
            let end = text.find(|c: char| ('\x40'..='\x7e').contains(&c) && c != '[');
            let Some((body, end)) =
                end.and_then(|end| Some((text[..end].strip_prefix('[')?, &text[end..=end])))
            else {
                return false;
            };
            let is_number = body.chars().all(|c| c.is_ascii_digit());
            match end {
                // A question is drawn in place, and keys are read for it.
                "A" | "G" => is_number,
                "J" => body.is_empty(),
                "u" => [">1", "<1"].contains(&body),
                _ => "mKhl".contains(end) && !body.contains(['\u{1b}', 'P']),
            }
        };
        let bad = match c {
            '\u{1b}' => !is_own(rest.as_str()),
            '\n' | '\r' | '\t' => false,
            c => c.is_control() || "\u{202e}\u{2066}\u{200b}\u{feff}\u{2028}".contains(c),
        };
        if bad {
            let around: String = seen[at..].chars().take(40).collect();
            return Some(format!("the terminal got {around:?}"));
        }
    }
    None
}

/// Runs commands on a terminal and judges what it got.
fn judge(world: &World<'_>, args: &[&str]) -> (Option<String>, String) {
    let finished = Terminal::start(world, args).finish(&["n\r", "\u{4}", "\u{3}"]);
    let hung = finished.hung.then(|| "it hangs".to_owned());
    (problem(&finished.text).or(hung), finished.text)
}

fn agent_text(suite: &Suite, report: &mut Report) {
    let text = evil();
    let say = |kind: &str| json!({ "update": { "sessionUpdate": kind, "content": { "type": "text", "text": text } } });
    let block = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    let options = json!([{ "optionId": "a", "name": text, "kind": "allow_once" }, { "optionId": "b", "name": text, "kind": "reject_once" }]);
    let form = json!({ "type": "object", "properties": { "x": { "type": "string", "title": text, "description": text, "enum": [text, "b"] } }, "required": ["x"] });
    let steps: Vec<(&str, Value)> = vec![
        ("message", say("agent_message_chunk")),
        ("thought", say("agent_thought_chunk")),
        ("user message", say("user_message_chunk")),
        (
            "tool title",
            json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": "t", "title": text, "kind": "read", "status": "pending" } }),
        ),
        (
            "tool content",
            json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "content": block, "status": "completed" } }),
        ),
        (
            "tool change",
            json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "content": [{ "type": "diff", "path": format!("/{text}"), "oldText": text, "newText": "x" }] } }),
        ),
        (
            "tool input",
            json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "kind": "execute", "rawInput": { "command": text }, "rawOutput": text, "locations": [{ "path": text }] } }),
        ),
        (
            "plan",
            json!({ "update": { "sessionUpdate": "plan", "entries": [{ "content": text, "priority": "high", "status": "pending" }] } }),
        ),
        (
            "commands",
            json!({ "update": { "sessionUpdate": "available_commands_update", "availableCommands": [{ "name": text, "description": text }] } }),
        ),
        ("session title", json!({ "update": { "sessionUpdate": "session_info_update", "title": text } })),
        ("mode", json!({ "update": { "sessionUpdate": "current_mode_update", "currentModeId": text } })),
        (
            "permission title",
            json!({ "call": "session/request_permission", "params": { "toolCall": { "toolCallId": "t", "title": text, "kind": "read" }, "options": options } }),
        ),
        (
            "permission command",
            json!({ "call": "session/request_permission", "params": { "toolCall": { "toolCallId": "t", "title": "x", "kind": "execute", "rawInput": { "command": text, "cwd": text, "env": { "A": text } } }, "options": options } }),
        ),
        (
            "permission change",
            json!({ "call": "session/request_permission", "params": { "toolCall": { "toolCallId": "t", "title": "x", "kind": "edit", "content": [{ "type": "diff", "path": format!("$cwd/{text}"), "oldText": text, "newText": text }] }, "options": options } }),
        ),
        (
            "write",
            json!({ "call": "fs/write_text_file", "params": { "path": format!("$cwd/{}", &text[..60]), "content": text } }),
        ),
        (
            "terminal",
            json!({ "call": "terminal/create", "params": { "command": text, "args": [text], "env": [{ "name": "A", "value": text }] } }),
        ),
        (
            "form",
            json!({ "call": "elicitation/create", "params": { "mode": "form", "message": text, "requestedSchema": form } }),
        ),
        (
            "link",
            json!({ "call": "elicitation/create", "params": { "mode": "url", "message": text, "elicitationId": "e", "url": format!("https://x.example/{text}") } }),
        ),
        ("error", json!({ "fail": { "code": -32603, "message": text, "data": { "details": text } } })),
        ("stderr", json!({ "stderr": format!("{text}\n") })),
        ("no JSON", json!({ "raw": text })),
        ("unknown method", json!({ "call": format!("_x/{text}"), "params": {} })),
        (
            "image",
            json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "resource_link", "name": text, "uri": text } } }),
        ),
    ];
    let ways: &[&[&str]] = &[&[], &["-v"], &["--format", "quiet"], &["--format", "json"]];
    let cases: Vec<_> =
        steps.iter().flat_map(|(name, step)| ways.iter().map(move |way| (*name, step, *way))).collect();
    let results = suite.parallel(&cases, |(name, step, way)| {
        let world = suite.world();
        let agent = command_line(&world, &json!({ "steps": [step, { "stderr": "end\n" }] }));
        let (happened, _) = judge(&world, &[*way, &["--agent", &agent, "exec", "go"]].concat());
        (
            format!("{name} {}", way.join(" ")),
            format!("an agent with a hostile {name}; attache {} exec", way.join(" ")),
            happened,
        )
    });
    report.attacks(results);
    // What is no terminal gets the text as it is, so each surface shows it at all.
    for name in ["message", "tool title", "error", "plan"] {
        let world = suite.world();
        let step = &steps.iter().find(|(known, _)| *known == name).unwrap().1;
        let agent = command_line(&world, &json!({ "steps": [step] }));
        let run = world.run(&["--agent", &agent, "exec", "go"]);
        report.control(format!("{name} without a terminal"), problem(&run.output()).is_some(), run.tail());
    }
}

fn lists(suite: &Suite, report: &mut Report) {
    let all = pieces();
    let text = evil();
    let sessions: Vec<Value> = all.iter().enumerate().map(|(at, text)| json!({ "sessionId": format!("s{at}{text}"), "cwd": "/", "title": text, "updatedAt": text })).collect();
    let methods: Vec<Value> =
        all.iter().map(|text| json!({ "id": text, "name": text, "description": text })).collect();
    let modes: Vec<Value> =
        all.iter().map(|text| json!({ "id": text, "name": text, "description": text })).collect();
    let script = json!({
        "initialize": { "agentInfo": { "name": text, "version": text, "title": text }, "authMethods": methods, "agentCapabilities": { "loadSession": true, "sessionCapabilities": { "list": {} } } },
        "new": { "modes": { "currentModeId": all[0], "availableModes": modes }, "models": { "currentModelId": all[1], "availableModels": all.iter().map(|text| json!({ "modelId": text, "name": text })).collect::<Vec<_>>() } },
        "list": { "sessions": sessions },
        "steps": [{ "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } } }, { "update": { "sessionUpdate": "session_info_update", "title": all[3] } }],
    });
    let world = suite.world();
    let agent = command_line(&world, &script);
    let commands: &[&[&str]] = &[
        &["sessions", "new"],
        &["prompt", "hello"],
        &["sessions", "list"],
        &["sessions", "list", "--local"],
        &["sessions", "show"],
        &["sessions", "history"],
        &["sessions", "read"],
        &["status"],
        &["set-mode", "none"],
        &["set", "model", "none"],
        &["doctor"],
        &["auth", "status"],
        &["cancel"],
        &["sessions", "export", "/dev/stdout"],
        &["sessions", "close"],
        &["compare", "hello"],
        &["permissions"],
        &["agents"],
    ];
    for command in commands {
        let (happened, _) = judge(&world, &[&["--agent", &agent], *command].concat());
        report.attack(
            command.join(" "),
            format!("an agent with hostile names; attache {}", command.join(" ")),
            happened,
        );
    }
    let run = world.run(&["--agent", &agent, "sessions", "list"]);
    report.control("sessions list without a terminal", problem(&run.output()).is_some(), run.tail());
    // Recordings and registries.
    let recording = world.root.join("recording.jsonl");
    let rows: String = all.iter().map(|text| format!("{}\n", json!({ "jsonrpc": "2.0", "method": text, "params": { "sessionId": text, "update": { "sessionUpdate": text, "title": text } } }))).collect();
    fs::write(&recording, rows).unwrap();
    let registry = world.root.join("registry.json");
    let agents: Vec<Value> = all.iter().enumerate().map(|(at, text)| json!({ "id": format!("a{at}"), "name": text, "version": text, "description": text, "authors": [text], "license": text, "distribution": { "npx": { "package": text } } })).collect();
    fs::write(&registry, json!({ "version": text, "agents": agents }).to_string()).unwrap();
    let mut world = world;
    world.set("ATTACHE_REGISTRY", registry.clone());
    let recording = recording.display().to_string();
    let commands: &[&[&str]] = &[
        &["trace", &recording],
        &["trace", "--lines", &recording],
        &["check", "trace", &recording],
        &["registry", "list"],
        &["registry", "search", "Visible"],
        &["registry", "info", "a1"],
        &["registry", "install", "a1"],
    ];
    for command in commands {
        let (happened, _) = judge(&world, command);
        report.attack(command[..2].join(" "), format!("hostile text in {}", command.join(" ")), happened);
    }
}

fn model_text(suite: &Suite, report: &mut Report) {
    let text = evil();
    let file = "printf 'x' > /dev/null; cat evil.txt";
    let scripts: Vec<(&str, Vec<Step>)> = vec![
        ("answer", vec![Step::Say(text.clone())]),
        ("command", vec![run(&format!("echo {}", text.replace(['\'', '"', '\\', '`', '$'], "")))]),
        ("output of a command", vec![run(file)]),
        ("tool name", vec![crate::model::call(&text, json!({}))]),
        ("path", vec![crate::model::call("read", json!({ "path": text }))]),
        ("file name", vec![crate::model::call("write", json!({ "path": &text[..80], "content": text }))]),
        ("address", vec![crate::model::call("fetch", json!({ "url": format!("http://{text}/") }))]),
        (
            "plan",
            vec![crate::model::call(
                "plan",
                json!({ "entries": [{ "content": text, "status": "pending" }] }),
            )],
        ),
        (
            "edit",
            vec![crate::model::call(
                "edit",
                json!({ "path": "README.md", "edits": [{ "old": "# A", "new": text }] }),
            )],
        ),
    ];
    let results = suite.parallel(&scripts, |(name, steps)| {
        let model = Model::start(steps.clone());
        let world = model.serves(suite.world());
        world.write("evil.txt", &text);
        let (happened, _) = judge(&world, &["--model", "openai/attack", "exec", "go"]);
        ((*name).to_owned(), format!("a model with a hostile {name}; attache exec"), happened)
    });
    report.attacks(results);
    // Errors of a provider.
    for status in ["400 Bad Request", "401 Unauthorized", "500 Internal Server Error"] {
        let body = json!({ "error": { "message": text, "type": text, "code": text } }).to_string();
        let server = Server::start(move |_| Reply { status, ..Reply::new("application/json", body.clone()) });
        let mut world = suite.world();
        world.set("OPENAI_BASE_URL", server.url("/v1"));
        let (happened, _) = judge(&world, &["--model", "openai/attack", "--timeout", "20", "exec", "go"]);
        report.attack(
            format!("error {status}"),
            format!("a provider that answers {status} with hostile text"),
            happened,
        );
    }
}

fn files(suite: &Suite, report: &mut Report) {
    let all = pieces();
    let text = evil();
    let settings: String = all
        .iter()
        .map(|text| {
            format!("{} = 1\n", json!(text).to_string().replace("\\b", "\\u0008").replace("\\f", "\\u000c"))
        })
        .collect();
    let texts: Vec<(&str, &str, String)> = vec![
        ("unknown settings", ".attache.toml", settings.clone()),
        ("broken settings", ".attache.toml", format!("x = {text}\n")),
        ("agent name", ".attache.toml", format!("default_agent = {}\n", json!(all[8]))),
        ("raw control characters", ".attache.toml", format!("# {text}\nformat = \"{text}\"\n")),
        ("instructions", "AGENTS.md", text.clone()),
    ];
    for (name, file, text) in texts {
        for command in [
            &["exec", "hello"][..],
            &["config", "show"],
            &["--trust", "exec", "hello"],
            &["trust", "add"],
            &["trust", "list"],
        ] {
            let model = Model::start(Vec::new());
            let world = model.serves(suite.world());
            world.write(file, &text);
            let (happened, _) = judge(&world, command);
            report.attack(
                format!("{name}, {}", command.join(" ")),
                format!("{file} with hostile text; attache {}", command.join(" ")),
                happened,
            );
        }
    }
    // Names of files and directories.
    for (at, name) in all.iter().enumerate().step_by(3) {
        let name: String = name.replace(['/', '\0'], "").chars().take(60).collect();
        let model = Model::start(Vec::new());
        let mut world = model.serves(suite.world());
        world.dir = world.dir.join(&name);
        world.write(".attache.toml", "default_agent = \"x\"\n");
        world.write(&format!(".attache/commands/{name}.md"), "x");
        let (happened, _) = judge(&world, &["exec", "hello"]);
        report.attack(format!("directory name {at}"), format!("a directory named {name:?}"), happened);
    }
}
