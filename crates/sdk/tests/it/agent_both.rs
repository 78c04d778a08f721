//! The same sessions over both versions, and the exact lines of each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use attache::agent::{Agent, TerminalExit, ToolChange, ToolContent, ToolStatus, Turn, block};
use attache::wire::v1::{
    PermissionOption, PermissionOptionKind, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolKind,
};
use attache::{Edit, Meta, Patch, Prompt, StopReason};
use serde_json::{Value, json};

use crate::agent_rig::{Ending, Rig, agent};

/// Ids that were made up, replaced by their kind and a number.
#[derive(Default)]
struct Ids(HashMap<String, String>);

impl Ids {
    fn normalize(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let made_up = text.split_once('-').filter(|(kind, digits)| {
                    ["msg", "call", "term"].contains(kind)
                        && digits.len() == 24
                        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                });
                if let Some((kind, _)) = made_up {
                    let next = self.0.values().filter(|name| name.starts_with(kind)).count() + 1;
                    let name = format!("{kind}{next}");
                    *text = self.0.entry(text.clone()).or_insert(name).clone();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.normalize(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.normalize(member)),
            _ => {}
        }
    }
}

/// The lines of a turn between its start and its end. Requests are answered by `answer`.
async fn lines(rig: &mut Rig, in_v2: bool, answer: &Value) -> Vec<Value> {
    rig.prompt("p", "s1", "go").await;
    let mut ids = Ids::default();
    if in_v2 {
        rig.inserted("p", "go").await;
    }
    let mut lines = Vec::new();
    loop {
        let mut line = rig.client.line().await;
        if line["id"] == "p" {
            assert_eq!(line["result"], json!({"stopReason": "end_turn"}), "{line}");
            break;
        }
        if line["method"] != "session/update" {
            ids.normalize(&mut line);
            lines.push(line["params"].clone());
            rig.client.answer(&line, answer.clone()).await;
            continue;
        }
        let update = &mut line["params"]["update"];
        if in_v2 {
            let read: attache::wire::v2::SessionUpdate = serde_json::from_value(update.clone()).unwrap();
            assert!(!matches!(read, attache::wire::v2::SessionUpdate::Other(_)), "{update}");
        }
        if in_v2 && update["state"] == "idle" {
            assert_eq!(update["stopReason"], "end_turn");
            break;
        }
        ids.normalize(update);
        lines.push(update.take());
    }
    lines
}

/// The lines of version 1 and of version 2.
async fn both(make: impl Fn() -> Agent, answer: Value) -> (Vec<Value>, Vec<Value>) {
    let mut rig = Rig::open(make(), json!({})).await;
    let one = lines(&mut rig, false, &answer).await;
    rig.disconnect().await;
    let mut rig = crate::agent_v2::open(make()).await;
    let two = lines(&mut rig, true, &answer).await;
    rig.disconnect().await;
    (one, two)
}

async fn assert_lines<F>(act: F, v1: Value, v2: Value)
where
    F: for<'a> Fn(Turn<'a>, Prompt) -> Ending<'a> + Send + Sync + Copy + 'static,
{
    let (one, two) = both(|| agent(act), Value::Null).await;
    assert_eq!(Value::from(one), v1, "version 1");
    assert_eq!(Value::from(two), v2, "version 2");
}

fn text(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn call(members: Value) -> Value {
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t"});
    update.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    update
}

/// The first report of a call in version 2, where absent members are `null`.
fn created(title: &str, members: Value) -> Value {
    let mut update =
        call(json!({"title": title, "name": null, "kind": null, "status": "pending", "content": null,
        "locations": null, "rawInput": null, "rawOutput": null}));
    update.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    update
}

#[tokio::test(start_paused = true)]
async fn edits_are_texts_or_operations() {
    // shows V2-33, TOOL-15
    let diff = |path: &str, old: Value, new: &str| match old {
        Value::Null => json!({"type": "diff", "path": path, "newText": new}),
        old => json!({"type": "diff", "path": path, "oldText": old, "newText": new}),
    };
    let change = |change: Value, patch: &str| json!({"type": "diff", "changes": [change], "patch": {"format": "git_patch", "text": patch}});
    let added = "diff --git /a /a\nnew file mode 100644\n--- /dev/null\n+++ /a\n@@ -0,0 +1 @@\n+1\n";
    let modified = "diff --git /b /b\n--- /b\n+++ /b\n@@ -1 +1 @@\n-1\n+2\n";
    let deleted = "diff --git /c /c\ndeleted file mode 100644\n--- /c\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n";
    let renamed = "diff --git /d /e\nsimilarity index 100%\nrename from /d\nrename to /e\n";
    assert_lines(
        |turn, _| {
            Box::pin(async move {
                let tool = turn.tool("Edit").id("t").edit(Edit::add("/a", "1\n")).start().await?;
                tool.edit(Edit::modify("/b", "1\n", "2\n")).await?;
                let more = [Edit::delete("/c", "1\n"), Edit::rename("/d", "/e", "1\n", "1\n")];
                tool.complete(more.map(ToolContent::from)).await?;
                Ok(StopReason::EndTurn)
            })
        },
        json!([
            {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit", "status": "pending",
                "content": [diff("/a", Value::Null, "1\n")]},
            call(json!({"content": [diff("/a", Value::Null, "1\n"), diff("/b", json!("1\n"), "2\n")]})),
            call(json!({"status": "completed", "content": [
                diff("/c", json!("1\n"), ""), diff("/d", json!("1\n"), ""), diff("/e", Value::Null, "1\n"),
            ]})),
        ]),
        json!([
            created("Edit", json!({"content": [
                change(json!({"operation": "add", "path": "/a", "fileType": "text"}), added)]})),
            {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t",
                "content": change(json!({"operation": "modify", "path": "/b", "fileType": "text"}), modified)},
            call(json!({"status": "completed", "content": [
                change(json!({"operation": "delete", "path": "/c", "fileType": "text"}), deleted),
                change(json!({"operation": "move", "oldPath": "/d", "path": "/e", "fileType": "text"}), renamed),
            ]})),
        ]),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn messages_can_be_replaced() {
    // shows V2-16, V2-17
    let chunk = |kind: &str, id: &str, text: &str| json!({"sessionUpdate": kind, "messageId": id, "content": {"type": "text", "text": text}});
    let whole = |id: &str, content: &[&str]| {
        let content: Vec<_> = content.iter().map(|text| json!({"type": "text", "text": text})).collect();
        json!({"sessionUpdate": "agent_message", "messageId": id, "content": content})
    };
    let answer = "agent_message_chunk";
    assert_lines(
        |turn, _| {
            Box::pin(async move {
                let (mut message, mut thought) = (turn.message(), turn.thought());
                message.say("one").await?;
                thought.say("hm").await?;
                message.say(" two").await?;
                turn.say("beside").await?;
                message.replace("one two three").await?;
                let id = message.id().clone();
                message.replace("four").await?;
                assert_eq!(*message.id() == id, turn.client().version().0 == 2);
                message.clear().await?;
                message.say("five").await?;
                Ok(StopReason::EndTurn)
            })
        },
        json!([
            chunk(answer, "msg1", "one"),
            chunk("agent_thought_chunk", "msg2", "hm"),
            chunk(answer, "msg1", " two"),
            {"sessionUpdate": answer, "content": {"type": "text", "text": "beside"}},
            chunk(answer, "msg1", " three"),
            chunk(answer, "msg3", "four"),
            chunk(answer, "msg4", "five"),
        ]),
        json!([
            chunk(answer, "msg1", "one"),
            chunk("agent_thought_chunk", "msg2", "hm"),
            chunk(answer, "msg1", " two"),
            chunk(answer, "msg3", "beside"),
            whole("msg1", &["one two three"]),
            whole("msg1", &["four"]),
            whole("msg1", &[]),
            chunk(answer, "msg1", "five"),
        ]),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn content_is_appended() {
    // shows V2-17, TOOL-06
    let piece = |content: Value| json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t", "content": content});
    assert_lines(
        |turn, _| {
            Box::pin(async move {
                let tool = turn.tool("Search").id("t").start().await?;
                tool.append("one").await?;
                tool.append(block("two")).await?;
                tool.complete([]).await?;
                Ok(StopReason::EndTurn)
            })
        },
        json!([
            {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Search", "status": "pending"},
            call(json!({"content": [text("one")]})),
            call(json!({"content": [text("one"), text("two")]})),
            call(json!({"status": "completed"})),
        ]),
        json!([
            created("Search", json!({})),
            piece(text("one")),
            piece(text("two")),
            call(json!({"status": "completed"})),
        ]),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_of_the_agent_is_text_in_version_1() {
    // shows V2-30, V2-32
    let shown = |text: &str| call(json!({"content": [self::text(text)]}));
    let terminal = |members: Value| {
        let mut update = json!({"sessionUpdate": "terminal_update", "terminalId": "term1"});
        update.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        update
    };
    assert_lines(
        |turn, _| {
            Box::pin(async move {
                let tool = turn.tool("Run").id("t").kind(ToolKind::Execute).start().await?;
                let builder = tool.terminal("make").cwd("/work").size(80, 24).cancellable();
                let terminal = builder.start().await?;
                // Half of a character.
                terminal.write(b"\xc3").await?;
                terminal.write(b"\xa4\n").await?;
                terminal.resize(100, 30).await?;
                terminal.snapshot("all\n").await?;
                terminal.exit(TerminalExit::code(2)).await?;
                drop(tool.terminal("left open").start().await?);
                tool.complete([block("done")]).await?;
                Ok(StopReason::EndTurn)
            })
        },
        json!([
            {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "kind": "execute", "status": "pending"},
            shown("```\n$ make\n```"),
            shown("```\n$ make\n\u{fffd}\n```"),
            shown("```\n$ make\nä\n```"),
            shown("```\n$ make\nall\n```"),
            shown("```\n$ make\nall\n```\n(exit code 2)"),
            call(json!({"content": [text("```\n$ make\nall\n```\n(exit code 2)"), text("```\n$ left open\n```")]})),
            call(json!({"content": [text("```\n$ make\nall\n```\n(exit code 2)"), text("```\n$ left open\n```")]})),
            call(json!({"status": "completed", "content": [text("done")]})),
        ]),
        json!([
            created("Run", json!({"kind": "execute"})),
            terminal(json!({"command": "make", "cwd": "/work", "size": {"cols": 80, "rows": 24},
                "capabilities": {"cancel": {}}})),
            {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t",
                "content": {"type": "terminal", "terminalId": "term1"}},
            {"sessionUpdate": "terminal_output_chunk", "terminalId": "term1", "data": "ww=="},
            {"sessionUpdate": "terminal_output_chunk", "terminalId": "term1", "data": "pAo="},
            terminal(json!({"size": {"cols": 100, "rows": 30}})),
            terminal(json!({"output": {"data": "YWxsCg=="}})),
            terminal(json!({"exitStatus": {"exitCode": 2}})),
            {"sessionUpdate": "terminal_update", "terminalId": "term2", "command": "left open"},
            {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t",
                "content": {"type": "terminal", "terminalId": "term2"}},
            {"sessionUpdate": "terminal_update", "terminalId": "term2", "exitStatus": {}},
            call(json!({"status": "completed", "content": [text("done")]})),
        ]),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn statuses_cleared_members_and_metadata() {
    // shows V2-17, V2-18, TOOL-07, TOOL-20
    assert_lines(
        |turn, _| {
            Box::pin(async move {
                let tool = turn.tool("Wait").id("t").name("wait").content("x").start().await?;
                tool.pause().await?;
                tool.update(ToolChange::new().meta_key("a", json!(1)).meta_key("b", json!(2))).await?;
                tool.update(tool.change().meta_key("a", json!(null))).await?;
                let mut change = ToolChange::new().status(ToolStatus::InProgress);
                change.name = Patch::Clear;
                change.content = Patch::Clear;
                change.locations = Patch::Clear;
                change.raw_input = Patch::Clear;
                tool.update(change).await?;
                tool.cancel().await?;
                Ok(StopReason::EndTurn)
            })
        },
        json!([
            {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Wait", "name": "wait", "status": "pending",
                "content": [text("x")]},
            call(json!({"status": "in_progress"})),
            call(json!({"_meta": {"a": 1, "b": 2}})),
            call(json!({"_meta": {"b": 2}})),
            call(json!({"status": "in_progress", "content": [], "locations": []})),
            call(json!({"status": "failed"})),
        ]),
        json!([
            created("Wait", json!({"name": "wait", "content": [text("x")]})),
            call(json!({"status": "paused"})),
            call(json!({"_meta": {"a": 1, "b": 2}})),
            call(json!({"_meta": {"a": null}})),
            call(json!({"name": null, "status": "in_progress", "content": null, "locations": null, "rawInput": null})),
            call(json!({"status": "cancelled"})),
        ]),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn plans_have_names() {
    // shows PLAN-03, PLAN-09
    let entry = |content: &str| json!({"content": content, "priority": "high", "status": "pending"});
    let plan = |entries: Value| json!({"sessionUpdate": "plan", "entries": entries});
    let named = |id: &str, entries: Value| json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": id, "entries": entries}});
    assert_lines(
        |turn, _| {
            Box::pin(async move {
                let entry =
                    |content| PlanEntry::new(content, PlanEntryPriority::High, PlanEntryStatus::Pending);
                let (a, b) = (turn.plan_named("a"), turn.plan_named("b"));
                a.set(vec![entry("one")]).await?;
                b.set(vec![entry("two")]).await?;
                a.remove().await?;
                b.remove().await?;
                Ok(StopReason::EndTurn)
            })
        },
        json!([plan(json!([entry("one")])), plan(json!([entry("two")])), plan(json!([]))]),
        json!([
            named("a", json!([entry("one")])),
            named("b", json!([entry("two")])),
            {"sessionUpdate": "plan_removed", "planId": "a"},
            {"sessionUpdate": "plan_removed", "planId": "b"},
        ]),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn questions_have_a_title_and_a_subject() {
    // shows V2-13, V2-24, PERM-01
    let act = || {
        agent(|turn, _| {
            Box::pin(async move {
                let yes = || vec![PermissionOption::new("y", "Yes", PermissionOptionKind::AllowOnce)];
                let question = turn.question("Run it?").description("Slow.").options(yes());
                assert!(question.command("make", "/work").ask().await?.is_allowed());
                let tool = turn.tool("Make").id("t").start().await?;
                let question = turn.question("Really?").about(&tool).description("Yes!").options(yes());
                assert!(question.ask().await?.is_allowed());
                assert!(turn.question("Go?").options(yes()).ask().await?.is_allowed());
                tool.complete([]).await?;
                // What cannot be asked is not sent.
                let twice = [yes(), yes()].concat();
                assert!(turn.question("?").options(twice).ask().await.is_err());
                assert!(turn.question("?").command("ls", "work").ask().await.is_err());
                Ok(StopReason::EndTurn)
            })
        })
    };
    let (one, two) = both(act, json!({"outcome": {"outcome": "selected", "optionId": "y"}})).await;
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let command = json!([text("```sh\nmake\n```\nin /work"), text("Slow.")]);
    assert_eq!(
        Value::from(one),
        json!([
            {"sessionUpdate": "tool_call", "toolCallId": "call1", "title": "Run it?", "kind": "execute",
                "status": "pending", "content": command},
            {"sessionId": "s1", "options": options, "toolCall": {"toolCallId": "call1", "title": "Run it?",
                "kind": "execute", "status": "pending", "content": command}},
            {"sessionUpdate": "tool_call_update", "toolCallId": "call1", "status": "completed"},
            {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Make", "status": "pending"},
            {"sessionId": "s1", "options": options, "toolCall": {"toolCallId": "t", "title": "Really?",
                "status": "pending", "content": [text("Yes!")]}},
            {"sessionUpdate": "tool_call", "toolCallId": "call2", "title": "Go?", "kind": "other", "status": "pending"},
            {"sessionId": "s1", "options": options, "toolCall": {"toolCallId": "call2", "title": "Go?",
                "kind": "other", "status": "pending"}},
            {"sessionUpdate": "tool_call_update", "toolCallId": "call2", "status": "completed"},
            call(json!({"status": "completed"})),
        ])
    );
    let state = |state: &str| json!({"sessionUpdate": "state_update", "state": state});
    assert_eq!(
        Value::from(two),
        json!([
            state("requires_action"),
            {"sessionId": "s1", "title": "Run it?", "description": "Slow.", "options": options,
                "subject": {"type": "command", "command": "make", "cwd": "/work"}},
            state("running"),
            created("Make", json!({})),
            state("requires_action"),
            {"sessionId": "s1", "title": "Really?", "description": "Yes!", "options": options,
                "subject": {"type": "tool_call", "toolCall": {"toolCallId": "t", "title": "Make", "status": "pending"}}},
            state("running"),
            state("requires_action"),
            {"sessionId": "s1", "title": "Go?", "options": options},
            state("running"),
            call(json!({"status": "completed"})),
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn the_history_holds_what_was_appended() {
    let histories = [false, true].map(|in_v2| async move {
        let history: Arc<Mutex<Vec<Value>>> = Arc::default();
        let log = history.clone();
        let agent = agent(|turn, _| {
            Box::pin(async move {
                let tool =
                    turn.tool("Run").id("t").meta(Meta::new(&json!({"a": 1})).unwrap()).start().await?;
                tool.append("one").await?;
                let terminal = tool.terminal("make").start().await?;
                terminal.write("out\n").await?;
                terminal.exit(TerminalExit::signal("SIGKILL")).await?;
                tool.run().await?;
                tool.complete([]).await?;
                let left_open = turn.tool("Left open").id("u").start().await?;
                left_open.append("two").await?;
                turn.message().say("done").await?;
                Ok(StopReason::EndTurn)
            })
        })
        .record(move |_, update| log.lock().unwrap().push(serde_json::to_value(update).unwrap()));
        let mut rig =
            if in_v2 { crate::agent_v2::open(agent).await } else { Rig::open(agent, json!({})).await };
        lines(&mut rig, in_v2, &Value::Null).await;
        rig.disconnect().await;
        let mut history = Value::from(std::mem::take(&mut *history.lock().unwrap()));
        Ids::default().normalize(&mut history);
        history
    });
    let output = "```\n$ make\nout\n```\n(killed by SIGKILL)";
    let expected = json!([
        {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "go"}},
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "status": "pending", "_meta": {"a": 1}},
        call(json!({"status": "in_progress", "content": [text("one"), text(output)]})),
        call(json!({"status": "completed"})),
        {"sessionUpdate": "tool_call", "toolCallId": "u", "title": "Left open", "status": "pending"},
        {"sessionUpdate": "agent_message_chunk", "messageId": "msg1", "content": {"type": "text", "text": "done"}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "u", "status": "failed", "content": [text("two")]},
    ]);
    // In version 2 the prompt is a message with an id.
    let mut in_v2 = expected.clone();
    in_v2[0]["messageId"] = json!("msg1");
    in_v2[5]["messageId"] = json!("msg2");
    for (history, expected) in histories.into_iter().zip([expected, in_v2]) {
        assert_eq!(history.await, expected);
    }
}
