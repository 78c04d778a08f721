//! Hostile agents: they exhaust the memory of the program.

use std::time::Duration;

use serde_json::{Value, json};

use crate::peer::{command_line, log};
use crate::report::{Group, Report};
use crate::world::{MEMORY, Suite, World};

const CLASS: &str = "limits";

pub(crate) const GROUPS: &[Group] =
    &[Group::new(CLASS, "memory", "exec with a hostile agent uses more than 64 MB", memory)];

fn memory(suite: &Suite, report: &mut Report) {
    let read = json!({ "path": "$cwd/big.txt" });
    let shell =
        |line: &str| json!({ "command": "sh", "args": ["-c", line], "outputByteLimit": 1_000_000_000 });
    // A request at the end: when it is answered, everything before it was handled.
    let last = [
        json!({ "call": "fs/read_text_file", "params": { "path": "$cwd/README.md" } }),
        json!({ "memory": true }),
    ];
    let attacks: Vec<(&str, Vec<Value>, &[&str])> = vec![
        ("tool inputs", vec![json!({ "fill": "tool", "bytes": 8 << 20, "count": 9 })], &[]),
        ("many tool inputs", vec![json!({ "fill": "tool", "bytes": 20_000, "count": 1000 })], &[]),
        ("tool titles", vec![json!({ "fill": "title", "bytes": 4 << 20, "count": 18 })], &[]),
        ("tool contents", vec![json!({ "fill": "content", "bytes": 8 << 20, "count": 9 })], &[]),
        ("changes", vec![json!({ "fill": "diff", "bytes": 4 << 20, "count": 14 })], &[]),
        ("messages", vec![json!({ "fill": "message", "bytes": 8 << 20, "count": 9 })], &[]),
        ("thoughts", vec![json!({ "fill": "thought", "bytes": 8 << 20, "count": 9 })], &[]),
        ("plans", vec![json!({ "fill": "plan", "bytes": 4 << 20, "count": 14 })], &[]),
        ("commands", vec![json!({ "fill": "commands", "bytes": 4 << 20, "count": 14 })], &[]),
        ("unknown updates", vec![json!({ "fill": "unknown", "bytes": 8 << 20, "count": 9 })], &[]),
        ("lines that are no JSON", vec![json!({ "fill": "line", "bytes": 8 << 20, "count": 9 })], &[]),
        ("one endless line", vec![json!({ "fill": "line", "bytes": 80 << 20, "count": 1 })], &[]),
        (
            "permission requests",
            vec![json!({ "fill": "permission", "bytes": 1 << 20, "count": 6 })],
            &["--deny-all"],
        ),
        (
            "many permission requests",
            vec![json!({ "fill": "permission", "bytes": 1000, "count": 500 })],
            &["--deny-all"],
        ),
        ("unknown requests", vec![json!({ "fill": "extension", "bytes": 4 << 20, "count": 14 })], &[]),
        ("stderr", vec![json!({ "fill": "stderr", "bytes": 1 << 20, "count": 6 })], &[]),
        (
            "unread reads",
            vec![json!({ "ask": "fs/read_text_file", "params": read, "count": 10 })],
            &["--approve-all"],
        ),
        (
            "many unread reads",
            vec![
                json!({ "ask": "fs/read_text_file", "params": read, "count": 4000 }),
                json!({ "park": true }),
            ],
            &["--approve-all", "--timeout", "6"],
        ),
        (
            "terminals",
            vec![
                json!({ "ask": "terminal/create", "params": shell("head -c 4000000 /dev/zero | tr '\\0' x"), "count": 40 }),
            ],
            &["--approve-all"],
        ),
        (
            "a thousand terminals",
            vec![json!({ "ask": "terminal/create", "params": shell("sleep 30"), "count": 1000 })],
            &["--approve-all"],
        ),
        (
            "writes",
            vec![
                json!({ "ask": "fs/write_text_file", "params": { "path": "$cwd/w", "content": "x".repeat(4 << 20) }, "count": 28 }),
            ],
            &["--approve-all"],
        ),
        (
            "deep JSON",
            vec![
                json!({ "raw": format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{}1{}}}", "[".repeat(200_000), "]".repeat(200_000)) }),
            ],
            &[],
        ),
        (
            "many small updates",
            vec![
                json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "x" } }, "count": 5000 }),
            ],
            &[],
        ),
        ("many tool calls", vec![json!({ "fill": "tool", "bytes": 10, "count": 3000 })], &[]),
    ];
    // A debug build has more code in memory than a release; only what comes on top of that counts.
    let world = suite.world();
    let agent = command_line(&world, &json!({ "steps": last }));
    world.run(&["--agent", &agent, "exec", "go"]);
    let measured = |world: &World<'_>| {
        log(world).iter().filter_map(|message| message["memory"].as_u64()).max().unwrap_or(0)
    };
    let bound = MEMORY.max(measured(&world) + (48 << 20));
    let results = suite.parallel(&attacks, |(name, steps, flags)| {
        let world = suite.world();
        world.write("big.txt", "x".repeat(9 << 20));
        let parks = steps.iter().any(|step| step.get("park").is_some());
        let steps = if parks { steps.clone() } else { [steps.as_slice(), &last].concat() };
        let agent = command_line(&world, &json!({ "steps": steps }));
        let run = world.run_for(
            &[*flags, &["--format", "quiet", "--agent", &agent, "exec", "go"]].concat(),
            Duration::from_secs(90),
        );
        let most = run.memory.max(measured(&world));
        let happened = run.crashed().or_else(|| (most > bound).then(|| format!("it used {} MB", most >> 20)));
        (
            (*name).to_owned(),
            format!("agent: {}", json!(steps).to_string().chars().take(300).collect::<String>()),
            happened,
            most,
        )
    });
    let seen = results.iter().map(|(.., most)| *most).max().unwrap_or(0);
    report
        .attacks(results.into_iter().map(|(name, reproduction, happened, _)| (name, reproduction, happened)));
    report.control("the memory of the program is measured", seen > 1 << 20, format!("{seen} bytes"));
    // A process that does use it is noticed.
    let world = suite.world();
    let line = "x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo ${#x}";
    let run = world.shell(line);
    report.control(
        "a process with 100 MB is noticed",
        run.memory > MEMORY,
        format!("{} MB: {}", run.memory >> 20, run.tail()),
    );
}
