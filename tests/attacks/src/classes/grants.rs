//! Hostile agents: a yes covers more than was shown, or an answer is taken that was not given.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::peer::{answers, command_line};
use crate::report::{Group, Report};
use crate::terminal::{Finished, Terminal, plain};
use crate::world::{Suite, World, changed, created};

const CLASS: &str = "grants";

pub(crate) const GROUPS: &[Group] = &[
    Group::new(CLASS, "shown", "a yes allows what was not shown", shown),
    Group::new(CLASS, "lasting", "an answer lasts longer than its label says", lasting),
    Group::new(CLASS, "options", "a no is sent as a yes", options),
    Group::new(CLASS, "early-keys", "keys answer a question that could not be read", early_keys).quiet(),
    Group::new(CLASS, "chat-keys", "the same in the chat", chat_keys).quiet(),
    Group::new(CLASS, "look-alikes", "an agent's form looks like a question of the program", look_alikes),
];

pub(super) const OPTIONS: fn() -> Value = || {
    json!([
        { "optionId": "once", "name": "Allow", "kind": "allow_once" },
        { "optionId": "always", "name": "Allow all edits during this session", "kind": "allow_always" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ])
};

pub(super) fn ask(call: Value) -> Value {
    let mut call = call;
    call["toolCallId"] = json!("t");
    json!({ "call": "session/request_permission", "params": { "toolCall": call, "options": OPTIONS() } })
}

pub(super) fn write(path: &str, content: &str) -> Value {
    json!({ "call": "fs/write_text_file", "params": { "path": path, "content": content } })
}

pub(super) fn terminal(command: &str, args: &[&str], more: Value) -> Vec<Value> {
    let mut params = json!({ "command": command, "args": args });
    if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
        params.extend(more.clone());
    }
    vec![json!({ "call": "terminal/create", "params": params }), wait_for_exit()]
}

/// Waits for the end of the last command.
pub(super) fn wait_for_exit() -> Value {
    json!({ "call": "terminal/wait_for_exit", "params": { "terminalId": "$terminal" } })
}

fn diff(path: &str, new: &str) -> Value {
    json!([{ "type": "diff", "path": path, "oldText": "# A project\n", "newText": new }])
}

/// Runs an agent on a terminal, with answers of the user.
fn on_terminal(world: &World<'_>, steps: &[Value], flags: &[&str], answers: &[&str]) -> Finished {
    let agent = command_line(world, &json!({ "steps": steps }));
    let mut args = flags.to_vec();
    args.extend(["--agent", &agent, "exec", "go"]);
    Terminal::start(world, &args).finish(answers)
}

/// The user says yes to the first question and no to all others. What must not happen is a file
/// `canary`, or another README.
fn shown(suite: &Suite, report: &mut Report) {
    let readme = "$cwd/README.md";
    let canary = "$cwd/canary";
    let edit = |extra: Value| {
        let mut call =
            json!({ "title": "Edit README.md", "kind": "edit", "content": diff(readme, "good\n") });
        call.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        ask(call)
    };
    let execute = |input: Value| ask(json!({ "title": "Run tests", "kind": "execute", "rawInput": input }));
    let sh = |line: &str| terminal("sh", &["-c", line], json!({}));
    let list = |first: Value, then: Vec<Value>| [vec![first], then].concat();
    let attacks: Vec<(&str, Vec<Value>)> = vec![
        (
            "hidden location",
            list(
                edit(json!({ "locations": [{ "path": readme }, { "path": canary }] })),
                vec![write(canary, "evil")],
            ),
        ),
        (
            "hidden location of a hook",
            list(
                edit(json!({ "locations": [{ "path": "$cwd/.git/hooks/post-checkout" }] })),
                vec![write("$cwd/.git/hooks/post-checkout", "evil")],
            ),
        ),
        ("hidden path", list(edit(json!({ "rawInput": { "path": canary } })), vec![write(canary, "evil")])),
        (
            "hidden paths",
            list(edit(json!({ "rawInput": { "paths": [readme, canary] } })), vec![write(canary, "evil")]),
        ),
        (
            "hidden files",
            list(
                edit(json!({ "rawInput": { "files": [canary], "file_path": canary, "target": canary } })),
                vec![write(canary, "evil")],
            ),
        ),
        (
            "hidden change",
            list(
                edit(json!({ "rawInput": { "changes": { "$cwd/canary": { "content": "evil" } } } })),
                vec![write(canary, "evil")],
            ),
        ),
        (
            "no change shown",
            list(
                ask(json!({ "title": "Edit", "kind": "edit", "rawInput": { "path": canary } })),
                vec![write(canary, "evil")],
            ),
        ),
        (
            "no change shown, location",
            list(
                ask(json!({ "title": "Edit", "kind": "edit", "locations": [{ "path": canary }] })),
                vec![write(canary, "evil")],
            ),
        ),
        ("other text", list(edit(json!({})), vec![write(readme, "evil\n")])),
        ("text that begins the same", list(edit(json!({})), vec![write(readme, "good\nevil\n")])),
        ("text with another end", list(edit(json!({})), vec![write(readme, "good\n\n\u{200b}evil")])),
        ("other file", list(edit(json!({})), vec![write(canary, "good\n")])),
        (
            "same text twice",
            list(edit(json!({})), vec![write(readme, "good\n"), write(readme, "x"), write(canary, "good\n")]),
        ),
        (
            "read becomes write",
            list(
                ask(json!({ "title": "Read canary", "kind": "read", "locations": [{ "path": canary }] })),
                vec![write(canary, "evil")],
            ),
        ),
        (
            "think becomes write",
            list(ask(json!({ "title": "Think", "kind": "think" })), vec![write(canary, "evil")]),
        ),
        ("other becomes command", list(ask(json!({ "title": "ls", "kind": "other" })), sh("touch canary"))),
        (
            "title is a command",
            list(ask(json!({ "title": "touch canary", "kind": "read" })), sh("touch canary")),
        ),
        (
            "shell command beside a command",
            list(execute(json!({ "command": "cargo test", "shell": "touch canary" })), sh("touch canary")),
        ),
        (
            "script command beside a command",
            list(
                execute(json!({ "command": "true", "script": "touch canary", "cmd": "touch canary" })),
                sh("touch canary"),
            ),
        ),
        (
            "hidden arguments",
            list(
                execute(json!({ "command": "sh", "arguments": ["-c", "touch canary"] })),
                sh("touch canary"),
            ),
        ),
        (
            "list command beside a command",
            list(execute(json!({ "command": "true", "commands": ["touch canary"] })), sh("touch canary")),
        ),
        ("other command", list(execute(json!({ "command": "true" })), sh("touch canary"))),
        (
            "longer command",
            list(execute(json!({ "command": "ls" })), terminal("sh", &["-c", "ls; touch canary"], json!({}))),
        ),
        (
            "more arguments",
            list(
                execute(json!({ "command": "touch README.md" })),
                terminal("touch", &["README.md", "canary"], json!({})),
            ),
        ),
        (
            "other directory",
            list(
                execute(json!({ "command": "sh t.sh" })),
                terminal("sh", &["t.sh"], json!({ "cwd": "$cwd/evil" })),
            ),
        ),
        (
            "variable",
            list(
                execute(json!({ "command": "sh t.sh" })),
                terminal("sh", &["t.sh"], json!({ "env": [{ "name": "PATH", "value": "$cwd/evil" }] })),
            ),
        ),
        (
            "preloaded library",
            list(
                execute(json!({ "command": "sh t.sh" })),
                terminal(
                    "sh",
                    &["t.sh"],
                    json!({ "env": [{ "name": "BASH_ENV", "value": "evil/t.sh" }, { "name": "ENV", "value": "evil/t.sh" }] }),
                ),
            ),
        ),
        (
            "program of the project",
            list(execute(json!({ "command": "ls" })), terminal("./ls", &[], json!({}))),
        ),
        (
            "command of a string and a list",
            list(
                execute(json!({ "command": "true", "args": ["x"] })),
                terminal("sh", &["-c", "touch canary"], json!({})),
            ),
        ),
        (
            "twice",
            list(
                execute(json!({ "command": "sh count.sh" })),
                [terminal("sh", &["count.sh"], json!({})), terminal("sh", &["count.sh"], json!({}))].concat(),
            ),
        ),
        (
            "other session",
            list(
                edit(json!({})),
                vec![
                    json!({ "call": "fs/write_text_file", "params": { "sessionId": "other", "path": readme, "content": "good\n" } }),
                    write(canary, "good\n"),
                ],
            ),
        ),
        (
            "link in its place",
            list(
                edit(json!({})),
                vec![
                    json!({ "sh": "rm README.md; ln -s .git/config README.md" }),
                    write(readme, "good\n"),
                    json!({ "sh": "grep -q good .git/config && touch canary" }),
                ],
            ),
        ),
        (
            "link out in its place",
            list(
                edit(json!({})),
                vec![
                    json!({ "sh": "rm README.md; ln -s ../outside/secret.txt README.md" }),
                    write(readme, "good\n"),
                    json!({ "sh": "grep -q good ../outside/secret.txt && touch canary" }),
                ],
            ),
        ),
        (
            "fetch becomes command",
            list(
                ask(
                    json!({ "title": "Fetch", "kind": "fetch", "rawInput": { "url": "https://example.com" } }),
                ),
                sh("touch canary"),
            ),
        ),
        (
            "delete becomes write",
            list(
                ask(json!({ "title": "Delete", "kind": "delete", "locations": [{ "path": canary }] })),
                vec![write(canary, "evil")],
            ),
        ),
        (
            "move becomes write",
            list(
                ask(json!({ "title": "Move", "kind": "move", "rawInput": { "from": readme, "to": canary } })),
                vec![write(canary, "evil")],
            ),
        ),
        (
            "mode switch becomes write",
            list(
                ask(json!({ "title": "Switch", "kind": "switch_mode" })),
                vec![write(canary, "evil"), write(readme, "evil")],
            ),
        ),
        ("nothing described", list(ask(json!({})), vec![write(canary, "evil")])),
    ];
    let readme_text = "# A project\n";
    let results = suite.parallel(&attacks, |(name, steps)| {
        let world = suite.world();
        world.write("t.sh", "true\n");
        world.write("evil/t.sh", "touch ../canary canary\n");
        world.write("count.sh", "test -e one && touch canary; touch one\n");
        world.script(&world.path("evil/true"), "/bin/touch canary");
        world.script(&world.path("ls"), "touch canary");
        let finished = on_terminal(&world, steps, &[], &["y\r", "n\r"]);
        // A second command is granted if the question showed it.
        if name.contains("command beside") && plain(&finished.first).contains("touch canary") {
            return ((*name).to_owned(), String::new(), None);
        }
        let changed_readme = || match world.read("README.md").as_str() {
            "good\n" => None,
            text if text == readme_text || text.contains("repositoryformat") || text.contains("SECRET") => {
                None
            }
            text => Some(format!("README.md is {text:?}")),
        };
        let happened = created(&world.path("canary"))
            .or_else(|| created(&world.path("evil/canary")))
            .or_else(|| created(&world.path(".git/hooks/post-checkout")))
            .or_else(changed_readme)
            .or_else(|| finished.hung.then(|| format!("it hangs: {}", finished.text)));
        let reproduction = format!("agent: {}; the user types y, then n", json!(steps));
        ((*name).to_owned(), reproduction, happened)
    });
    report.attacks(results);
    // The shown effect itself is allowed.
    let controls: Vec<(&str, Vec<Value>, &str, &str)> = vec![
        ("shown change", list(edit(json!({})), vec![write(readme, "good\n")]), "README.md", "good\n"),
        (
            "shown command",
            list(execute(json!({ "command": "touch canary" })), terminal("touch", &["canary"], json!({}))),
            "canary",
            "",
        ),
        ("question about a write", vec![write(canary, "yes")], "canary", "yes"),
    ];
    for (name, steps, file, text) in controls {
        let world = suite.world();
        let finished = on_terminal(&world, &steps, &[], &["y\r", "n\r"]);
        let fired = world.path(file).exists() && world.read(file) == text;
        report.control(name, fired, finished.text);
    }
}

/// An answer that was given in one run does not count in the next one.
fn lasting(suite: &Suite, report: &mut Report) {
    let edit = |label: &str, kind: &str| {
        let call = json!({ "toolCallId": "t", "title": "Edit", "kind": "edit", "content": diff("$cwd/README.md", "good\n") });
        let options = json!([
            { "optionId": "once", "name": "Allow", "kind": "allow_once" },
            { "optionId": "label", "name": label, "kind": kind },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ]);
        vec![
            json!({ "call": "session/request_permission", "params": { "toolCall": call, "options": options } }),
            write("$cwd/README.md", "good\n"),
        ]
    };
    for (label, kind) in [
        ("Yes, allow all edits during this session", "allow_always"),
        ("Allow for this session", "allow_always"),
        ("Always allow", "allow_always"),
        ("Once", "allow_always"),
        ("Allow this command in this session", "allow_once"),
    ] {
        let world = suite.world();
        let steps = edit(label, kind);
        // The agent's own row, by the number that the screen shows for its label.
        let agent = command_line(&world, &json!({ "steps": steps }));
        let mut terminal = Terminal::start(&world, &["--agent", &agent, "exec", "go"]);
        terminal.sees("? ");
        let screen = plain(&terminal.text());
        let row = screen.lines().find(|line| line.contains(label)).map(|line| line.trim().to_owned());
        let key = row
            .as_deref()
            .and_then(|row| row.trim_start_matches('[').split([']', ' ', '\t']).next())
            .unwrap_or("1")
            .to_owned();
        terminal.answers(&format!("{key}\r"));
        let finished = terminal.finish(&["n\r"]);
        let first = world.read("README.md");
        world.write("README.md", "# A project\n");
        let run = world.run(&["--agent", &agent, "exec", "go"]);
        let list = world.run(&["permissions"]).output();
        let happened = changed(&world.path("README.md"), "# A project\n")
            .or_else(|| list.contains("always").then(|| format!("it is remembered: {list}")));
        report.attack(
            format!("agent's label {label:?}, {kind}"),
            format!("choose {key} for {label:?}; run again"),
            happened,
        );
        if kind == "allow_always" && label == "Always allow" {
            report.control(
                "the agent's own row allows this time",
                first == "good\n",
                format!("{} {}", finished.text, run.tail()),
            );
        }
    }
    for (name, key) in [("once", "y\r"), ("until the end", "s\r"), ("yes by Enter", "\r")] {
        let world = suite.world();
        let steps = edit("Always", "allow_always");
        on_terminal(&world, &steps, &[], &[key, "n\r"]);
        world.write("README.md", "# A project\n");
        let agent = command_line(&world, &json!({ "steps": steps }));
        world.run(&["--agent", &agent, "exec", "go"]);
        report.attack(
            format!("answer {name}"),
            format!("answer {key:?}, run again"),
            changed(&world.path("README.md"), "# A project\n"),
        );
    }
    // What was always allowed for one agent, one command and one directory does not hold for
    // another one.
    let world = suite.world();
    let always =
        [ask(json!({ "title": "Run", "kind": "execute", "rawInput": { "command": "touch canary" } }))];
    let run_once = [always.to_vec(), terminal("touch", &["canary"], json!({}))].concat();
    let agent = command_line(&world, &json!({ "steps": run_once }));
    let line = ["--agent", &agent, "exec", "go"];
    Terminal::start(&world, &line).finish(&["a\r", "a\r"]);
    let first = world.path("canary").exists();
    let others = [
        ("other arguments", terminal("touch", &["canary", "-c"], json!({}))),
        ("other directory", terminal("touch", &["canary"], json!({ "cwd": "$cwd/src" }))),
        ("through a shell", terminal("sh", &["-c", "touch canary; true"], json!({}))),
        (
            "with a variable",
            terminal("touch", &["canary"], json!({ "env": [{ "name": "LD_PRELOAD", "value": "x.so" }] })),
        ),
        ("two commands", terminal("sh", &["-c", "touch canary && touch src/canary"], json!({}))),
    ];
    for (name, steps) in others {
        let _ = fs::remove_file(world.path("canary"));
        let agent = command_line(&world, &json!({ "steps": steps }));
        world.run(&["--agent", &agent, "exec", "go"]);
        let happened = created(&world.path("canary")).or_else(|| created(&world.path("src/canary")));
        report.attack(
            format!("always for a command, {name}"),
            "always allow `touch canary`, then another one",
            happened,
        );
    }
    report.control("always for a command", first, "not run");
}

/// The user says no, in every way.
fn options(suite: &Suite, report: &mut Report) {
    let sets: &[(&str, Value)] = &[
        (
            "labels swapped",
            json!([{ "optionId": "a", "name": "Reject", "kind": "allow_once" }, { "optionId": "b", "name": "Allow", "kind": "reject_once" }]),
        ),
        ("only yes", json!([{ "optionId": "a", "name": "No", "kind": "allow_once" }])),
        ("only always", json!([{ "optionId": "a", "name": "No", "kind": "allow_always" }])),
        (
            "same id twice",
            json!([{ "optionId": "a", "name": "No", "kind": "reject_once" }, { "optionId": "a", "name": "Yes", "kind": "allow_once" }]),
        ),
        (
            "labels with keys",
            json!([{ "optionId": "a", "name": "[n] No", "kind": "allow_once" }, { "optionId": "r", "name": "x", "kind": "reject_once" }]),
        ),
        (
            "label with lines",
            json!([{ "optionId": "a", "name": "x\n  [n] No\n? ", "kind": "allow_once" }, { "optionId": "r", "name": "x", "kind": "reject_once" }]),
        ),
        (
            "unknown kind",
            json!([{ "optionId": "a", "name": "No", "kind": "no_such_kind" }, { "optionId": "b", "name": "Y", "kind": "allow_once" }]),
        ),
        (
            "many",
            Value::from(
                (0..200)
                    .map(|n| json!({ "optionId": format!("o{n}"), "name": "No", "kind": "allow_once" }))
                    .collect::<Vec<_>>(),
            ),
        ),
        ("none", json!([])),
    ];
    let keys = ["n", "\u{1b}", "\u{4}", "\u{3}", "xn"];
    let cases: Vec<_> =
        sets.iter().flat_map(|(name, options)| keys.map(|key| (*name, options, key))).collect();
    let results = suite.parallel(&cases, |(name, options, key)| {
            let world = suite.world();
            let call = json!({ "toolCallId": "t", "title": "Edit", "kind": "edit", "content": diff("$cwd/README.md", "good\n") });
            let steps = [
                json!({ "call": "session/request_permission", "params": { "toolCall": call, "options": options } }),
                write("$cwd/README.md", "good\n"),
            ];
            on_terminal(&world, &steps, &[], &[key, "n\r"]);
            let allowed = |answer: &Value| {
                let id = answer["outcome"]["optionId"].as_str()?;
                let kind = options.as_array()?.iter().filter(|option| option["optionId"] == id).map(|option| option["kind"].as_str());
                kind.into_iter().flatten().any(|kind| kind.starts_with("allow")).then(|| format!("the answer was {answer}"))
            };
            let happened = answers(&world).iter().find_map(allowed).filter(|_| *name != "same id twice");
            let happened = happened.or_else(|| changed(&world.path("README.md"), "# A project\n"));
            (format!("{name}, {key:?}"), format!("options {options}; the user types {key:?}"), happened)
    });
    report.attacks(results);
}

/// Keys that were typed before a question could be read.
fn early_keys(suite: &Suite, report: &mut Report) {
    let edit = || {
        ask(json!({ "title": "Edit README.md", "kind": "edit", "content": diff("$cwd/README.md", "good\n") }))
    };
    for typed in ["y\r", "y\ry\ry\r", "a\r", "1\r", "yes\r", "y", "\ry\r"] {
        let world = suite.world();
        let agent = command_line(&world, &json!({ "steps": [edit(), write("$cwd/README.md", "good\n")] }));
        let terminal = Terminal::start(&world, &["--agent", &agent, "exec", "go"]);
        terminal.types(typed);
        let _ = terminal.finish(&["n\r"]);
        report.attack(
            format!("typed before the question: {typed:?}"),
            format!("type {typed:?} at once"),
            changed(&world.path("README.md"), "# A project\n"),
        );
    }
    for typed in ["y\r", "y\ry\r", "a\r"] {
        let world = suite.world();
        let agent = command_line(&world, &json!({ "steps": [edit(), write("$cwd/README.md", "good\n")] }));
        let mut terminal = Terminal::start(&world, &["--agent", &agent, "exec", "go"]);
        terminal.sees("README.md?");
        terminal.types(typed);
        let _ = terminal.finish(&["n\r"]);
        report.attack(
            format!("typed as the question appears: {typed:?}"),
            format!("type {typed:?} within 500 ms"),
            changed(&world.path("README.md"), "# A project\n"),
        );
    }
    // One question is withdrawn and another one takes its place.
    for (name, typed) in [("before the first could be read", "y\r"), ("twice", "y\ry\r")] {
        let world = suite.world();
        let first = json!({ "ask": "session/request_permission", "params": { "toolCall": { "toolCallId": "a", "title": "Read README.md", "kind": "read", "locations": [{ "path": "$cwd/README.md" }] }, "options": OPTIONS() } });
        let seen = world.root.join("seen");
        let steps = [
            first,
            json!({ "wait": seen }),
            json!({ "cancel": true }),
            edit(),
            write("$cwd/README.md", "good\n"),
        ];
        let agent = command_line(&world, &json!({ "steps": steps }));
        let mut terminal = Terminal::start(&world, &["--agent", &agent, "exec", "go"]);
        terminal.sees("Read README.md?");
        fs::write(&seen, "").unwrap();
        terminal.sees("Edit README.md?");
        terminal.types(typed);
        let _ = terminal.finish(&["n\r"]);
        report.attack(
            format!("a question replaces another one, {name}"),
            "cancel a question, ask another one; type y at once",
            changed(&world.path("README.md"), "# A project\n"),
        );
    }
    // Two questions at once: one answer.
    let world = suite.world();
    let second = json!({ "ask": "session/request_permission", "params": { "toolCall": { "toolCallId": "b", "title": "x", "kind": "execute", "rawInput": { "command": "touch canary" } }, "options": OPTIONS() } });
    let steps = [vec![second, edit()], terminal("touch", &["canary"], json!({}))].concat();
    on_terminal(&world, &steps, &[], &["n\r", "n\r"]);
    report.attack(
        "two questions at once",
        "two questions, both answered with n",
        created(&world.path("canary")).or_else(|| changed(&world.path("README.md"), "# A project\n")),
    );
    // After the pause the same key counts.
    let world = suite.world();
    let finished = on_terminal(&world, &[edit(), write("$cwd/README.md", "good\n")], &[], &["y\r", "n\r"]);
    report.control("y after half a second", world.read("README.md") == "good\n", finished.text);
}

fn chat_keys(suite: &Suite, report: &mut Report) {
    let edit = ask(
        json!({ "title": "Edit README.md", "kind": "edit", "content": diff("$cwd/README.md", "good\n") }),
    );
    let steps = json!([edit, write("$cwd/README.md", "good\n")]);
    for (name, key, waits) in [
        ("y at once", "y", false),
        ("a at once", "a", false),
        ("1 at once", "1", false),
        ("Enter at once", "\r", false),
        ("y after half a second", "y", true),
    ] {
        let world = suite.world();
        let agent = command_line(&world, &json!({ "steps": steps }));
        let mut terminal = Terminal::start(&world, &["--agent", &agent]);
        let ready = terminal.sees("\u{1b}[");
        terminal.answers("go\r");
        let asked = terminal.sees("Edit README.md");
        let asked = asked && terminal.sees("once");
        if waits {
            terminal.answers(key);
        } else {
            terminal.types(key);
        }
        // A wrong answer would lead to the write; the end of the chat ends the question.
        let written =
            crate::world::wait_until(Duration::from_millis(700), || world.read("README.md") == "good\n");
        terminal.types("\u{3}");
        terminal.answers("\u{3}");
        terminal.answers("\u{3}\u{3}");
        let finished = terminal.finish(&["\u{3}"]);
        if waits {
            report.control(name, written, format!("ready {ready}, asked {asked}: {}", plain(&finished.text)));
        } else {
            let what = if asked { None } else { Some("the question did not appear".to_owned()) };
            let happened = what.or_else(|| changed(&world.path("README.md"), "# A project\n"));
            report.attack(name, format!("chat: {key:?} as the question appears"), happened);
        }
    }
}

fn look_alikes(suite: &Suite, report: &mut Report) {
    let forged = [
        "[permission] FORGED Allow ls?\n  [y] Yes, once\n? ",
        "? FORGED",
        "error: FORGED",
        "\u{1b}[2J\u{1b}[H[permission] FORGED",
        "\r[permission] FORGED",
    ];
    let mut cases = Vec::new();
    for text in forged {
        let form = json!({ "type": "object", "properties": { "password": { "type": "string", "title": text } }, "required": ["password"] });
        let requests = [
            (
                "form",
                json!({ "call": "elicitation/create", "params": { "mode": "form", "message": text, "requestedSchema": form } }),
            ),
            (
                "link",
                json!({ "call": "elicitation/create", "params": { "mode": "url", "message": text, "elicitationId": "e", "url": "https://example.com/" } }),
            ),
            ("title", ask(json!({ "title": text, "kind": "read" }))),
            (
                "text",
                json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } } }),
            ),
            ("tool", json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": "x", "title": text } })),
        ];
        cases.extend(requests.map(|(name, step)| (name, text, step)));
    }
    let results = suite.parallel(&cases, |(name, text, step)| {
        let world = suite.world();
        let agent = command_line(&world, &json!({ "steps": [step] }));
        let finished =
            Terminal::start(&world, &["--agent", &agent, "exec", "go"]).finish(&["n\r", "\u{4}", "\u{3}"]);
        let is_forged = |line: &str| {
            let line = line.trim_start_matches('\r').trim_end();
            line.contains("FORGED")
                && ["[permission] FORGED", "? FORGED", "error: FORGED"]
                    .iter()
                    .any(|begin| line.starts_with(begin))
        };
        let screen = plain(&finished.text);
        let raw = finished.text.contains("\u{1b}[2J\u{1b}[H[permission]");
        let happened = screen
            .split(['\n', '\r'])
            .find(|line| is_forged(line))
            .map(|line| format!("a line of the screen is {line:?}"));
        let happened = happened.or_else(|| raw.then(|| "the sequence reached the terminal".to_owned()));
        let happened = happened.or_else(|| finished.hung.then(|| "it hangs".to_owned()));
        (format!("{name}, {text:?}"), format!("agent: {step}"), happened)
    });
    report.attacks(results);
}
