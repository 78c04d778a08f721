//! Laws of the fold, for any events.

#![allow(clippy::unwrap_used, clippy::panic)]

use attache_transcript::{
    Answer, BoundedText, Change, Event, Item, ItemKind, Message, QuestionKind, Role, ToolCall, Transcript,
    TurnEnd, join_chunks,
};
use attache_wire::v1::{
    ContentBlock, RequestPermissionRequest, SessionId, SessionUpdate, StopReason, ToolCallId, ToolCallStatus,
    ToolCallUpdate,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Updates as an agent writes them: few ids and texts, so that they meet.
fn update() -> impl Strategy<Value = SessionUpdate> {
    let id = prop::sample::select(vec!["a", "b", "é"]);
    let text = prop::sample::select(vec!["", "x", "two words", "ü\n"]);
    let maybe = |value: Value| prop_oneof![Just(Value::Null), Just(value)];
    let chunk_kind =
        prop::sample::select(vec!["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]);
    let status = prop::sample::select(vec!["pending", "in_progress", "completed", "failed"]);
    let content = json!([{ "type": "content", "content": { "type": "text", "text": "made" } },
        { "type": "diff", "path": "/f", "oldText": "1", "newText": "2" }, { "type": "terminal", "terminalId": "t" }]);
    let chunk = (chunk_kind, text.clone(), maybe(json!("m")), maybe(json!({ "k": 1 }))).prop_map(
        |(kind, text, id, meta)| {
            let content = json!({ "type": "text", "text": text, "annotations": null, "_meta": meta });
            json!({ "sessionUpdate": kind, "content": content, "messageId": id })
        },
    );
    let image = Just(json!({ "sessionUpdate": "agent_message_chunk",
        "content": { "type": "image", "data": "AAAA", "mimeType": "image/png" }, "_meta": { "from": "chunk" } }));
    let call = (id.clone(), maybe(json!("read")), maybe(content.clone())).prop_map(|(id, kind, content)| {
        json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "Tool", "kind": kind, "content": content })
    });
    let call_update = (
        id.clone(),
        maybe(json!("New")),
        status,
        maybe(content),
        maybe(json!({ "path": [1, 2.5] })),
    )
        .prop_map(|(id, title, status, content, raw)| {
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "title": title, "status": status,
                "content": content, "rawInput": raw, "locations": [{ "path": "/f", "line": 1 }] })
        });
    let compaction = (id.clone(), maybe(json!([{ "type": "text", "text": "sum" }]))).prop_map(|(id, summary)| {
        json!({ "sessionUpdate": "compaction_update", "compactionId": id, "status": "in_progress", "summary": summary })
    });
    let summary = (id.clone(), text.clone()).prop_map(|(id, text)| {
        json!({ "sessionUpdate": "compaction_summary_chunk", "compactionId": id, "content": { "type": "text", "text": text } })
    });
    let subagent = (id.clone(), maybe(json!("Title"))).prop_map(|(id, title)| {
        json!({ "sessionUpdate": "subagent_update", "sessionId": id, "title": title, "state": { "state": "running" } })
    });
    let letter = (id.clone(), maybe(json!("a"))).prop_map(|(id, sender)| {
        json!({ "sessionUpdate": "session_message", "messageId": id, "senderSessionId": sender })
    });
    let letter_chunk = (id.clone(), text).prop_map(|(id, text)| {
        json!({ "sessionUpdate": "session_message_chunk", "messageId": id, "content": { "type": "text", "text": text } })
    });
    let plan = maybe(json!({ "type": "markdown", "planId": "p", "content": "do" })).prop_map(|plan| match plan {
        Value::Null => json!({ "sessionUpdate": "plan", "entries": [{ "content": "x", "priority": "low", "status": "pending" }] }),
        plan => json!({ "sessionUpdate": "plan_update", "plan": plan }),
    });
    let state = prop::sample::select(vec![
        json!({ "sessionUpdate": "plan_removed", "planId": "p" }),
        json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" }),
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": [{ "name": "c", "description": "d" }] }),
        json!({ "sessionUpdate": "session_info_update", "title": null, "updatedAt": "now" }),
        json!({ "sessionUpdate": "session_info_update", "title": "T" }),
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": { "amount": 0.5, "currency": "USD" } }),
        json!({ "sessionUpdate": "notice", "severity": "_loud", "title": "n" }),
        json!({ "sessionUpdate": "of_the_future", "a": { "b": [1, 2] } }),
    ]);
    prop_oneof![
        4 => chunk, 1 => image, 2 => call, 3 => call_update, 1 => compaction, 1 => summary, 1 => subagent,
        1 => letter, 1 => letter_chunk, 1 => plan, 3 => state,
    ]
    .prop_map(|update| serde_json::from_str(&update.to_string()).unwrap())
}

fn event() -> impl Strategy<Value = Event> {
    let session = prop_oneof![3 => Just(None), 1 => Just(Some(SessionId::from("child")))];
    let asked = prop::sample::select(vec!["a", "b"]).prop_map(|id| {
        let request = json!({ "sessionId": "s", "toolCall": { "toolCallId": id }, "options": [] });
        let request: RequestPermissionRequest = serde_json::from_str(&request.to_string()).unwrap();
        Event::Asked { session: None, id: id.to_owned(), kind: QuestionKind::Permission(Box::new(request)) }
    });
    prop_oneof![
        12 => (session, update()).prop_map(|(session, update)| Event::Update(session, update)),
        1 => Just(Event::Prompt(vec!["do".into()])),
        1 => asked,
        1 => Just(Event::Answered("a".into(), Answer::Selected("yes".into()))),
        1 => Just(Event::Allowed { session: None, id: "a".into(), by: "rule".into() }),
        1 => Just(Event::Denied { session: None, id: "b".into() }),
        1 => Just(Event::Terminal(7)),
        1 => Just(Event::MessageEnded),
        1 => Just(Event::TurnEnded(TurnEnd::Stopped {
            reason: StopReason::EndTurn,
            #[cfg(feature = "unstable")]
            usage: None,
        })),
        1 => Just(Event::TurnEnded(TurnEnd::Failed("broken pipe".into()))),
    ]
}

/// An event, or the owner makes room.
#[derive(Debug, Clone)]
enum Step {
    Event(Box<Event>),
    Apply(Change),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => event().prop_map(|event| Step::Event(Box::new(event))),
        1 => Just(Step::Apply(Change::PopFront)),
        1 => Just(Step::Apply(Change::RetireFront)),
    ]
}

fn folded(events: impl IntoIterator<Item = Event>) -> Transcript {
    let mut transcript = Transcript::default();
    events.into_iter().for_each(|event| transcript.fold(event));
    transcript
}

fn through_json<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

fn messages(transcript: &Transcript) -> Vec<(Role, String)> {
    let message = |(_, item): (u64, &Item)| match &item.kind {
        ItemKind::Message(message) => Some((message.role, message.texts().collect())),
        _ => None,
    };
    transcript.items().filter_map(message).collect()
}

proptest! {
    #[test]
    fn a_bounded_text_is_the_beginning_of_the_messages_of_its_role(
        updates in prop::collection::vec(update(), 0..60), limit in 0usize..40,
        role in prop::sample::select(vec![Role::User, Role::Agent, Role::Thought]),
    ) {
        let mut bounded = BoundedText::new(role, limit);
        let mut whole = String::new();
        for update in &updates {
            bounded.fold(update, ContentBlock::as_text);
        }
        for (_, text) in messages(&folded(updates.into_iter().map(Event::from))).iter().filter(|(of, _)| *of == role) {
            whole.push_str(text);
        }
        let end = (0..=limit.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at)).unwrap();
        prop_assert_eq!(bounded.as_str(), &whole[..end]);
    }

    #[test]
    fn a_mirror_that_joins_at_any_time_and_applies_the_changes_is_equal(
        steps in prop::collection::vec(step(), 0..60), joins in 0usize..60,
    ) {
        let mut original = Transcript::default();
        let mut mirror = None;
        for (number, step) in steps.into_iter().enumerate() {
            if number == joins {
                mirror = Some(through_json(&original));
            }
            let change = match step {
                Step::Event(event) => original.change(*event),
                Step::Apply(change) => Some(change),
            };
            if let Some(change) = change {
                if let Some(mirror) = &mut mirror {
                    mirror.apply(through_json(&change));
                }
                original.apply(change);
            }
        }
        if let Some(mirror) = mirror {
            prop_assert_eq!(original, mirror);
        }
    }

    #[test]
    fn joining_chunks_does_not_change_the_model(updates in prop::collection::vec(update(), 0..40)) {
        let mut joined: Vec<SessionUpdate> = Vec::new();
        for update in &updates {
            if !joined.last_mut().is_some_and(|last| join_chunks(last, update)) {
                joined.push(update.clone());
            }
        }
        let fold = |updates: Vec<SessionUpdate>| folded(updates.into_iter().map(Event::from));
        prop_assert_eq!(fold(joined), fold(updates));
    }

    #[test]
    fn boundaries_of_chunks_do_not_matter(text in "\\PC{1,40}", cuts in prop::collection::vec(0usize..40, 0..5)) {
        // shows MSG-01, MSG-04
        let letters: Vec<char> = text.chars().collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (letters.len() + 1)).collect();
        cuts.extend([0, letters.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| letters[cut[0]..cut[1]].iter().collect::<String>());
        let pieces = folded(pieces.map(|piece| SessionUpdate::agent_message(piece).into()));
        prop_assert_eq!(pieces, folded([SessionUpdate::agent_message(text).into()]));
    }

    #[test]
    fn independent_sessions_do_not_influence_each_other(
        ours in prop::collection::vec(update(), 0..20), theirs in prop::collection::vec(update(), 0..20), seed in any::<u64>(),
    ) {
        // Tool calls of a subagent have ids of their own, whatever the order is.
        let calls = |transcript: &Transcript, session: Option<SessionId>| -> Vec<ToolCall> {
            let of = |(_, item): (u64, &Item)| match &item.kind {
                ItemKind::ToolCall(call) if item.session == session => Some((**call).clone()),
                _ => None,
            };
            transcript.items().filter_map(of).collect()
        };
        let child = || Some(SessionId::from("child"));
        let apart = folded(ours.iter().cloned().map(Event::from));
        let mut mixed = Transcript::default();
        let (mut ours, mut theirs, mut seed) = (ours.into_iter(), theirs.into_iter(), seed);
        loop {
            seed = seed.rotate_left(1);
            let (first, second) = match seed & 1 {
                0 => (ours.next().map(|update| (None, update)), theirs.next().map(|update| (child(), update))),
                _ => (theirs.next().map(|update| (child(), update)), ours.next().map(|update| (None, update))),
            };
            if first.is_none() && second.is_none() {
                break;
            }
            first.into_iter().chain(second).for_each(|(session, update)| mixed.fold(Event::Update(session, update)));
        }
        prop_assert_eq!(calls(&mixed, None), calls(&apart, None));
        prop_assert_eq!(&mixed.mode, &apart.mode);
        prop_assert_eq!(&mixed.usage, &apart.usage);
        prop_assert_eq!(&mixed.title, &apart.title);
        prop_assert_eq!(&mixed.commands, &apart.commands);
    }

    #[test]
    fn updates_of_a_tool_call_merge_associatively(
        parts in prop::collection::vec(update(), 1..60), split in 0usize..10,
    ) {
        // shows TOOL-05, TOOL-06, TOOL-07
        let of = |update: SessionUpdate| match update {
            SessionUpdate::ToolCallUpdate(update) => Some(*update),
            _ => None,
        };
        let parts: Vec<ToolCallUpdate> = parts.into_iter().filter_map(of)
            .map(|mut update| { update.tool_call_id = "a".into(); update }).collect();
        let merged = |parts: &[ToolCallUpdate]| {
            let mut all = ToolCallUpdate::new("a");
            parts.iter().cloned().for_each(|part| all.merge(part));
            all
        };
        let (left, right) = parts.split_at(split.min(parts.len()));
        let mut halves = merged(left);
        halves.merge(merged(right));
        prop_assert_eq!(&halves, &merged(&parts));
        // The last mention wins, and an update applied twice is applied once.
        let last = parts.iter().rev().find_map(|part| part.title.clone());
        prop_assert_eq!(&halves.title, &last);
        if let Some(part) = parts.last() {
            let once = halves.clone();
            halves.merge(part.clone());
            prop_assert_eq!(halves, once);
        }
    }

    #[test]
    fn no_text_and_no_unknown_update_is_lost(updates in prop::collection::vec(update(), 0..40)) {
        // shows PROMPT-16
        let text = |update: &SessionUpdate| match update {
            SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) | SessionUpdate::UserMessageChunk(chunk) => {
                chunk.content.as_text().map(str::to_owned)
            }
            _ => None,
        };
        let sent: String = updates.iter().filter_map(text).collect();
        let unknown = updates.iter().filter(|update| matches!(update, SessionUpdate::Other(_))).count();
        let transcript = folded(updates.into_iter().map(Event::from));
        prop_assert_eq!(messages(&transcript).into_iter().map(|(_, text)| text).collect::<String>(), sent);
        let kept = transcript.items().filter(|(_, item)| matches!(item.kind, ItemKind::Unknown(_)));
        prop_assert_eq!(kept.count(), unknown);
    }
}

#[test]
fn chunks_make_messages_until_the_author_or_the_id_changes() {
    // shows MSG-01, MSG-04
    let chunk = |text: &str, id: &str| {
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text }, "messageId": id });
        Event::from(serde_json::from_str::<SessionUpdate>(&update.to_string()).unwrap())
    };
    let transcript = folded([
        Event::Prompt(vec!["go".into()]),
        SessionUpdate::user_message("replayed").into(),
        SessionUpdate::agent_thought("h").into(),
        SessionUpdate::agent_thought("m").into(),
        chunk("a", "1"),
        chunk("b", "1"),
        chunk("c", "2"),
        Event::MessageEnded,
        chunk("d", "2"),
    ]);
    let expected = [
        (Role::User, "go"),
        (Role::User, "replayed"),
        (Role::Thought, "hm"),
        (Role::Agent, "ab"),
        (Role::Agent, "c"),
        (Role::Agent, "d"),
    ];
    assert_eq!(messages(&transcript), expected.map(|(role, text)| (role, text.to_owned())));
    let open: Vec<u64> = (0..transcript.end()).filter(|at| transcript.is_open(*at)).collect();
    assert_eq!(open, [5]);
}

#[test]
fn the_end_of_a_turn_interrupts_tool_calls() {
    let call = |id: &str| Event::from(SessionUpdate::from(ToolCallUpdate::new(id).title("Run".to_owned())));
    let done = ToolCallUpdate::new("done").status(ToolCallStatus::Completed);
    let mut transcript = folded([call("open"), call("done"), SessionUpdate::from(done).into()]);
    let calls = |transcript: &Transcript| -> Vec<bool> {
        transcript.tool_calls().map(|call| call.interrupted).collect()
    };
    assert_eq!((calls(&transcript), transcript.is_open(0)), (vec![false, false], true));
    transcript.fold(Event::TurnEnded(TurnEnd::Failed("gone".into())));
    assert_eq!((calls(&transcript), transcript.is_open(0)), (vec![true, false], false));
}

#[test]
fn a_retired_call_comes_back_when_it_ends() {
    let update = |status: Option<ToolCallStatus>| {
        let mut update = ToolCallUpdate::new("a");
        update.status = status;
        Event::from(SessionUpdate::from(update))
    };
    let mut transcript = folded([
        SessionUpdate::from(ToolCallUpdate::new("a").title("Long".to_owned())).into(),
        SessionUpdate::agent_message("meanwhile").into(),
    ]);
    transcript.retire_front();
    transcript.fold(update(Some(ToolCallStatus::InProgress)));
    assert_eq!(transcript.tool_call(None, &ToolCallId::from("a")), None);
    transcript.fold(update(Some(ToolCallStatus::Failed)));
    let (at, call) = transcript.tool_call(None, &ToolCallId::from("a")).unwrap();
    assert_eq!((at, call.title(), call.status()), (2, "Long", ToolCallStatus::Failed));
}

#[test]
fn messages_can_be_replaced_and_cleared() {
    let mut transcript = folded([SessionUpdate::agent_message("draft").into()]);
    transcript.apply(Change::SetContent(0, vec![ContentBlock::from("final")]));
    assert_eq!(messages(&transcript), [(Role::Agent, "final".to_owned())]);
    transcript.apply(Change::SetContent(0, Vec::new()));
    transcript.fold(SessionUpdate::agent_message("again").into());
    assert_eq!(messages(&transcript), [(Role::Agent, "again".to_owned())]);
}

#[test]
fn changes_are_small_json() {
    let mut transcript = folded([SessionUpdate::agent_message("Hello").into()]);
    let change = transcript.change(SessionUpdate::agent_message(" world").into()).unwrap();
    assert_eq!(serde_json::to_value(&change).unwrap(), json!({ "append_text": [0, " world"] }));
    transcript.apply(change);
    let change = transcript.change(Event::Prompt(vec!["go".into()])).unwrap();
    let message = json!({ "role": "user", "content": [{ "type": "text", "text": "go" }], "prompt": true });
    assert_eq!(serde_json::to_value(&change).unwrap(), json!({ "push": { "kind": { "message": message } } }));
    let Change::Push(Item { kind: ItemKind::Message(Message { prompt, .. }), .. }) = change else { panic!() };
    assert!(prompt);
}

// TOOL-02: nothing of the older call is left, however it ended.
#[test]
fn a_tool_call_under_a_known_id_replaces_the_older_one() {
    let update = |value: Value| Event::Update(None, serde_json::from_value(value).unwrap());
    let diff = json!([{ "type": "diff", "path": "/f", "oldText": "1", "newText": "2" }]);
    for status in ["in_progress", "completed"] {
        let mut transcript = Transcript::default();
        transcript.fold(update(json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit", "kind": "edit",
            "status": status, "content": diff, "locations": [{ "path": "/f" }], "rawInput": { "path": "/f" } })));
        transcript.fold(update(json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Look" })));
        let (_, call) = transcript.tool_call(None, &ToolCallId::from("c")).unwrap();
        assert_eq!((call.title(), call.status()), ("Look", ToolCallStatus::Pending));
        assert!(call.content().is_empty() && call.locations().is_empty() && call.state.raw_input.is_none());
    }
}
