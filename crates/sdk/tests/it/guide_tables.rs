//! The two tables of `docs/guide/versions.md` of what one version cannot say: each line names
//! tests, and each of these exists. The tests of lines that have no better place are here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use attache::agent::{ToolChange, ToolStatus, translate};
use attache::wire::v1::{RequestPermissionRequest, SessionNotification};
use attache::{ContentBlock, StopReason};
use serde_json::{Value, json};

use crate::agent_rig::{Rig, agent};
use crate::agent_v2::{greeted, open};

/// An agent that is written for version 2, with a client of version 1: a line, and the tests that
/// show it.
const TO_V1: &[(&str, &[&str])] = &[
    (
        "states `running` and `requires_action`",
        &["questions_have_a_title_and_a_subject", "states_are_the_answer_to_the_prompt"],
    ),
    (
        "state `idle` with a reason, an error",
        &["states_are_the_answer_to_the_prompt", "the_same_programs_see_the_same_on_both_versions"],
    ),
    ("an unknown stop reason", &["states_are_the_answer_to_the_prompt"]),
    (
        "a prompt while one runs",
        &["one_turn_at_a_time_in_a_session", "a_prompt_that_no_turn_takes_has_its_own"],
    ),
    (
        "messages that grow at the same time",
        &["messages_can_be_replaced", "a_message_that_is_taken_back_is_another_one"],
    ),
    ("the user's message", &["a_turn_on_the_wire", "loading_replays_and_then_answers"]),
    (
        "a message with new content",
        &[
            "messages_can_be_replaced",
            "a_message_that_is_taken_back_is_another_one",
            "nothing_is_lost_but_what_the_guide_names",
        ],
    ),
    (
        "`paused`, `cancelled` tool calls",
        &[
            "statuses_cleared_members_and_metadata",
            "calls_are_whole_and_terminals_are_text",
            "nothing_is_lost_but_what_the_guide_names",
        ],
    ),
    (
        "a cleared member of a tool call",
        &[
            "statuses_cleared_members_and_metadata",
            "calls_are_whole_and_terminals_are_text",
            "nothing_is_lost_but_what_the_guide_names",
        ],
    ),
    ("content that is appended", &["content_is_appended", "only_the_tail_of_much_content_is_kept"]),
    (
        "a terminal of the agent",
        &[
            "a_terminal_of_the_agent_is_text_in_version_1",
            "the_end_of_long_output_is_kept",
            "nothing_is_lost_but_what_the_guide_names",
        ],
    ),
    (
        "an edit",
        &[
            "edits_are_texts_or_operations",
            "version_1_has_texts_only",
            "nothing_is_lost_but_what_the_guide_names",
        ],
    ),
    (
        "several plans",
        &[
            "plans_have_names",
            "updates_that_the_client_does_not_know_are_not_sent",
            "nothing_is_lost_but_what_the_guide_names",
        ],
    ),
    (
        "metadata that is changed by key",
        &["statuses_cleared_members_and_metadata", "calls_are_whole_and_terminals_are_text"],
    ),
    ("commands with types", &["options_commands_and_questions"]),
    (
        "a cancelled entry of a plan",
        &["a_cancelled_entry_keeps_its_meta", "programs_are_seen_as_they_are_up_to_the_losses"],
    ),
    (
        "a question that is not about a tool call",
        &[
            "questions_have_a_title_and_a_subject",
            "options_commands_and_questions",
            "nothing_is_lost_but_what_the_guide_names",
        ],
    ),
    (
        "background work, cancelling one tool call",
        &[
            "version_1_keeps_the_turn_open",
            "a_turn_of_version_1_that_fails_does_not_wait",
            "nothing_is_lost_but_what_the_guide_names",
        ],
    ),
    (
        "an option of category `mode`",
        &["an_option_of_category_mode_is_shown_as_modes", "options_commands_and_questions"],
    ),
    (
        "`session/resume` with a replay",
        &["loading_replays_and_then_answers", "resumed_sessions_replay_if_that_is_wanted"],
    ),
    (
        "unknown values and types",
        &["unknown_values_are_left_out_in_version_1", "calls_are_whole_and_terminals_are_text"],
    ),
];

/// An agent that is written for version 1, or speaks it, with a program of version 2.
const TO_V2: &[(&str, &[&str])] = &[
    (
        "chunks without a message id",
        &["chunks_get_the_id_of_their_message", "a_program_between_them_names_messages"],
    ),
    ("`tool_call` for a known id", &["a_call_of_a_known_id_is_another_one"]),
    ("a diff of two texts", &["edits_are_texts_or_operations", "every_update_has_a_form_in_version_2"]),
    (
        "`fs/*`, `terminal/*`",
        &["files_and_terminals_of_the_client_are_absent", "questions_have_titles_and_subjects"],
    ),
    ("an absent or `null` member of an update", &["absent_members_stay_absent"]),
    (
        "modes, `set_mode`",
        &["modes_are_an_option_and_commands_a_part_of_the_answer", "options_stand_for_modes"],
    ),
    ("`set_model`", &["modes_and_models_are_set_by_what_the_agent_has"]),
    (
        "next-edit suggestions and documents (`nes/*`, `document/*`)",
        &["suggestions_are_unknown_in_version_2"],
    ),
    ("`authenticate`, `logout`", &["logins_have_other_names"]),
    (
        "MCP servers over SSE",
        &["a_server_over_sse_is_refused_with_the_reason", "lists_and_servers_are_converted"],
    ),
    ("a permission without a title", &["a_question_has_the_title_of_its_call"]),
    (
        "the answer at the end of the turn",
        &["a_turn_is_messages_and_states", "a_failure_is_a_state_and_not_an_answer"],
    ),
];

/// The first column of the first table after a text.
fn table(guide: &str, after: &str) -> Vec<String> {
    let (_, rest) = guide.split_once(after).expect("the guide introduces the table");
    let rows =
        rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2).map(|row| row.split(" | ").next().unwrap().trim_start_matches("| ").to_owned()).collect()
}

/// The names of all tests below a directory.
fn tests(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, names);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let mut is_test = false;
        for line in source.lines().map(str::trim_start) {
            match line.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')) {
                Some((name, _)) if is_test => {
                    names.insert(name.to_owned());
                    is_test = false;
                }
                _ => is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test"),
            }
        }
    }
}

#[test]
fn every_line_of_the_tables_has_tests() {
    let guide = include_str!("../../../../docs/guide/versions.md");
    let mut names = BTreeSet::new();
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    for directory in ["src", "tests"] {
        tests(&package.join(directory), &mut names);
    }
    for (after, lines) in
        [("with a client of version 1:", TO_V1), ("or speaks it, with a program of version 2:", TO_V2)]
    {
        let known: Vec<&str> = lines.iter().map(|(line, _)| *line).collect();
        assert_eq!(table(guide, after), known);
        for (line, tests) in lines {
            assert!(!tests.is_empty(), "{line}");
            for test in *tests {
                assert!(names.contains(*test), "{line}: there is no test {test}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_values_are_left_out_in_version_1() {
    // shows INIT-15
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                let tool = turn.tool("Paint").id("t").start().await?;
                let later = ToolStatus::Other("_drying".into());
                tool.update(ToolChange::new().status(later).title("Painted")).await?;
                tool.complete([]).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    rig.prompt("p", "s1", "go").await;
    rig.client.expect("session/update").await;
    let changed = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "Painted"});
    rig.expect_update("s1", changed).await;
    let ended = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"});
    rig.expect_update("s1", ended).await;
    rig.expect_end("p", "end_turn").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn chunks_get_the_id_of_their_message() {
    // shows V2-16
    let mut rig = open(agent(|turn, _| {
        Box::pin(async move {
            turn.say("one ").await?;
            turn.say("message").await?;
            turn.think("another kind").await?;
            turn.say("a new one").await?;
            turn.tool("Look").start().await?.complete([]).await?;
            turn.say("after a call").await?;
            turn.show(ContentBlock::from("the same")).await?;
            Ok(StopReason::EndTurn)
        })
    }))
    .await;
    let mut ids = Vec::new();
    for prompt in ["p", "q"] {
        rig.prompt(prompt, "s1", "go").await;
        rig.inserted(prompt, "go").await;
        loop {
            let update = rig.update().await;
            if update["state"] == "idle" {
                break;
            }
            ids.extend(update["messageId"].as_str().map(str::to_owned));
        }
    }
    let distinct: Vec<_> = ids.iter().map(|id| ids.iter().position(|first| first == id).unwrap()).collect();
    assert_eq!(distinct, [0, 0, 2, 3, 4, 4, 6, 6, 8, 9, 10, 10]);
    rig.disconnect().await;
}

/// The update in version 2 of each update of an agent of version 1.
fn translated(updates: &[Value]) -> Vec<Value> {
    let mut session = translate::Session::new(None, None);
    let mut number = 0;
    let mut update = |update: &Value| {
        number += 1;
        let params = json!({"sessionId": "s", "update": update});
        let notification: SessionNotification = serde_json::from_value(params).unwrap();
        let params = session.update(&notification, format!("m{number}").as_str().into()).unwrap();
        let mut params: Value = serde_json::from_str(params.get()).unwrap();
        params["update"].take()
    };
    updates.iter().map(&mut update).collect()
}

#[test]
fn a_program_between_them_names_messages() {
    let chunk =
        |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    let named = |id: &str, text: &str| {
        json!({"sessionUpdate": "agent_message_chunk", "messageId": id,
        "content": {"type": "text", "text": text}})
    };
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T"});
    let answer = "agent_message_chunk";
    let updates = translated(&[
        chunk(answer, "a"),
        chunk(answer, "b"),
        chunk("agent_thought_chunk", "c"),
        chunk(answer, "d"),
        call,
        chunk(answer, "e"),
        named("own", "f"),
    ]);
    let ids: Vec<_> = updates.iter().map(|update| update["messageId"].as_str()).collect();
    assert_eq!(ids, [Some("m1"), Some("m1"), Some("m3"), Some("m4"), None, Some("m6"), Some("own")]);
}

#[test]
fn a_call_of_a_known_id_is_another_one() {
    // shows TOOL-04, V2-17
    let call = |members: Value| {
        let mut update = json!({"sessionUpdate": "tool_call", "toolCallId": "t"});
        update.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        update
    };
    let content = json!([{"type": "content", "content": {"type": "text", "text": "x"}}]);
    let updates = translated(&[
        call(
            json!({"title": "One", "kind": "edit", "status": "completed", "content": content, "rawInput": {"n": 1}}),
        ),
        call(json!({"title": "Two"})),
    ]);
    for name in ["name", "kind", "status", "content", "locations", "rawInput", "rawOutput"] {
        assert_eq!(updates[1].get(name), Some(&Value::Null), "{name} of {}", updates[1]);
    }
    assert_eq!(updates[1]["title"], "Two");
    assert_eq!((&updates[0]["kind"], &updates[0]["status"]), (&json!("edit"), &json!("completed")));
}

#[test]
fn absent_members_stay_absent() {
    // shows TOOL-05, V2-17
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
        "title": null, "kind": null, "content": null, "locations": null});
    let expected = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"});
    assert_eq!(translated(&[update]), [expected]);
}

#[tokio::test(start_paused = true)]
async fn files_and_terminals_of_the_client_are_absent() {
    // shows V2-39
    let agent = agent(|turn, _| {
        Box::pin(async move {
            assert!(
                turn.read_files().is_none() && turn.write_files().is_none() && turn.terminals().is_none()
            );
            Ok(StopReason::EndTurn)
        })
    });
    // A client of version 2 that offers what only version 1 has.
    let mut rig =
        greeted(agent, json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true})).await;
    rig.call("new", "session/new", json!({"cwd": "/work"})).await;
    rig.prompt("p", "s1", "go").await;
    rig.inserted("p", "go").await;
    rig.idle("end_turn").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn suggestions_are_unknown_in_version_2() {
    // shows V2-39
    let mut rig = greeted(crate::agent_extra::suggesting(), json!({})).await;
    assert_eq!(rig.hello["capabilities"].get("nes"), None);
    for method in ["nes/start", "nes/suggest", "nes/close"] {
        rig.expect_error(method, json!({"sessionId": "s1"}), -32601).await;
    }
    // Unknown notifications are ignored.
    rig.client.notify("document/didOpen", json!({"sessionId": "s1", "uri": "file:///a"})).await;
    rig.client.expect_silence().await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_over_sse_is_refused_with_the_reason() {
    // shows V2-25, V2-39
    let mut rig = greeted(crate::agent_rig::echo().mcp_over_sse(), json!({})).await;
    let server = json!({"type": "sse", "name": "x", "url": "http://x"});
    let refusal =
        rig.expect_error("session/new", json!({"cwd": "/work", "mcpServers": [server]}), -32602).await;
    assert!(refusal.to_string().contains("sse"), "{refusal}");
    rig.disconnect().await;
}

#[test]
fn a_question_has_the_title_of_its_call() {
    // shows V2-24
    for (call, title) in [
        (json!({"toolCallId": "t", "title": "Run it"}), "Run it"),
        (json!({"toolCallId": "t"}), "The agent asks for permission"),
    ] {
        let request = json!({"sessionId": "s", "toolCall": call,
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}], "_meta": {"a": 1}});
        let request: RequestPermissionRequest = serde_json::from_value(request).unwrap();
        let params = translate::permission(&request).unwrap();
        let params: Value = serde_json::from_str(params.get()).unwrap();
        assert_eq!(params["title"], title);
        assert_eq!(params["subject"]["type"], "tool_call");
        assert_eq!(params["subject"]["toolCall"]["toolCallId"], "t");
        assert_eq!(params["_meta"], json!({"a": 1}));
    }
}
