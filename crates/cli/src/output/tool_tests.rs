#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn update(value: Value) -> ToolCallUpdate {
    serde_json::from_value(value).unwrap()
}

fn text(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

/// Bytes that are kept of all calls.
fn kept(tools: &Tools) -> usize {
    let calls: usize = tools.transcript.tool_calls().map(ToolCall::size).sum();
    calls + tools.printed.values().map(|printed| printed.streamed.capacity()).sum::<usize>()
}

#[test]
fn huge_calls_and_many_calls_do_not_grow() {
    let mut tools = Tools::default();
    let huge = "y".repeat(1 << 16);
    let lines = "line\n".repeat(1 << 13);
    for number in 0..60 {
        let id = format!("{huge}{number}");
        let shown = tools.update(
            update(json!({
                "toolCallId": id, "title": huge, "status": "completed", "locations": [{ "path": huge }, { "path": id }],
                "rawInput": { "x": huge }, "rawOutput": { "stdout": lines }, "content": [text(&huge), text(&lines)],
                "_meta": { "terminal_output_delta": { "data": huge } },
            })),
            false,
        );
        assert!(shown.unwrap().details.len() < 16 << 10);
    }
    assert!(kept(&tools) < 60 * (48 << 10), "{}", kept(&tools));
    for number in 0..10_000 {
        let id = format!("call {number}");
        assert!(tools.update(update(json!({ "toolCallId": id, "title": "Read a" })), false).is_some());
    }
    assert_eq!((tools.transcript.items().len(), tools.transcript.retired()), (CALLS, RETIRED));
    assert_eq!(tools.printed.len(), CALLS + RETIRED);
}

#[test]
fn a_running_call_is_kept_longer_than_finished_ones() {
    let mut tools = Tools::default();
    tools.update(update(json!({ "toolCallId": "long", "title": "Build", "status": "in_progress" })), false);
    for number in 0..2 * CALLS {
        let id = format!("call {number}");
        tools.update(update(json!({ "toolCallId": id, "title": "Read a", "status": "completed" })), false);
    }
    let shown = tools.update(update(json!({ "toolCallId": "long", "status": "completed" })), false);
    assert_eq!(shown.unwrap().title, "Build");
}

#[test]
fn the_same_end_is_printed_once() {
    let mut tools = Tools::default();
    let end = json!({ "toolCallId": "t", "status": "completed", "content": [text("out"), text("out")] });
    let shown = tools.update(update(end.clone()), false).unwrap();
    assert_eq!(
        shown,
        ToolView {
            title: "t".to_owned(),
            status: Status::Completed,
            details: "  output:\n    out\n".to_owned()
        }
    );
    assert_eq!(tools.update(update(end), false), None);
    assert_eq!(tools.update(update(json!({ "toolCallId": "t", "status": "completed" })), false), None);
    assert!(tools.update(update(json!({ "toolCallId": "t", "status": "failed" })), false).is_some());
}

#[test]
fn long_output_ends_with_the_number_of_hidden_lines() {
    let numbers = |from: usize, to: usize| (from..to).map(|n| format!("{n}\n")).collect::<String>();
    let mut tools = Tools::default();
    let content: Vec<Value> = (0..40).map(|part| text(&numbers(part * 10, part * 10 + 10))).collect();
    let call = json!({ "toolCallId": "t", "status": "completed", "rawOutput": "first", "content": content });
    let details = tools.update(update(call), false).unwrap().details;
    assert!(details.starts_with("  output:\n    first\n\n    0\n"), "{details}");
    // One line, and forty parts of ten lines with an empty line before each.
    assert!(
        details.ends_with(&format!("    ... ({} more lines)\n", 1 + 40 * 11 - OUTPUT_LINES)),
        "{details}"
    );
    assert_eq!(details.lines().count(), 1 + OUTPUT_LINES + 1);
}

#[test]
fn a_command_in_our_sandbox_is_shown_by_itself() {
    use attache_host::sandbox::Backend;

    let own = std::env::current_exe().unwrap();
    let words = |program: &std::path::Path, confinement: &Confinement| {
        let words = confinement.command(Backend::Namespaces, program, ["/bin/sh", "-c", "ls -l"]);
        let words: Vec<String> = words.into_iter().map(|word| word.into_string().unwrap()).collect();
        let (command, args) = words.split_first().unwrap();
        summary(&serde_json::json!({ "command": command, "args": args }).to_string()).unwrap()
    };
    let read_only = Confinement::read_only(["/work"]);
    assert_eq!(words(&own, &read_only), "(read-only sandbox) ls -l");
    assert_eq!(words(&own, &Confinement::writable(["/work"])), "(sandbox) ls -l");
    // Another program does what it likes with the same words.
    let other = words(std::path::Path::new("/bin/true"), &read_only);
    assert!(other.starts_with("/bin/true __sandbox"), "{other}");
}
