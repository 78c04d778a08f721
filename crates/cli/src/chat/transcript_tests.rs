#![allow(clippy::unwrap_used)]

use attache::client::TextChunk;
use attache::wire::v1::{Diff, MessageId, Plan, PlanEntry, PlanEntryPriority, ToolKind};
use attache_transcript::Item;

use super::*;

fn chunk(text: &str, id: Option<&str>) -> TextChunk {
    let mut chunk = TextChunk::default();
    chunk.text = text.to_owned();
    chunk.message_id = id.map(MessageId::from);
    chunk
}

fn update(id: &str) -> ToolCallUpdate {
    ToolCallUpdate::new(id)
}

/// The items in a few words each.
fn summary(transcript: &Transcript) -> Vec<String> {
    let describe = |(_, item): (u64, &Item)| match &item.kind {
        ItemKind::Message(message) => Some(format!("{:?} {:?}", message.role, message_text(message))),
        ItemKind::ToolCall(call) => {
            Some(format!("{} {:?} {}", call.title(), call.status(), call.content().len()))
        }
        ItemKind::Terminal(number) => Some(format!("terminal {number}")),
        _ => None,
    };
    transcript.model.items().filter_map(describe).collect()
}

#[test]
fn pieces_make_messages_until_another_kind_or_id_comes() {
    // shows MSG-01, MSG-04
    let mut transcript = Transcript::default();
    for event in [
        Event::Thought(chunk("hm", None)),
        Event::Thought(chunk("m", None)),
        Event::Text(chunk("a", None)),
        Event::Text(chunk("b", None)),
        Event::Text(chunk("c", Some("2"))),
        Event::Text(chunk("d", Some("2"))),
        Event::Text(chunk("e", Some("3"))),
    ] {
        transcript.event(event);
    }
    assert_eq!(summary(&transcript), ["Thought \"hmm\"", "Agent \"ab\"", "Agent \"cd\"", "Agent \"e\""]);
}

#[test]
fn a_tool_call_stays_one_block_and_keeps_what_is_not_mentioned() {
    // shows TOOL-05, TOOL-06
    let mut transcript = Transcript::default();
    transcript.tool(None, true, update("t").title("Edit".to_owned()).kind(ToolKind::Edit));
    transcript.event(Event::Text(chunk("meanwhile", None)));
    let diff = |new: &str| vec![Diff::new("/a", new).old_text("old\n".to_owned()).into()];
    transcript.tool(None, false, update("t").content(diff("one\n")));
    assert!(transcript.changes.is_empty(), "not done yet");
    transcript.tool(None, false, update("t").status(ToolCallStatus::Completed));
    assert_eq!(summary(&transcript), ["Edit Completed 1", "Agent \"meanwhile\""]);
    // The same file again: the change is from the first text to the last.
    transcript.tool(
        None,
        true,
        update("u").title("Again".to_owned()).content(diff("two\n")).status(ToolCallStatus::Completed),
    );
    assert_eq!(transcript.changes.len(), 1);
    let change = &transcript.changes[0];
    assert_eq!((change.old.as_deref(), change.new.as_str()), (Some("old\n"), "two\n"));
}

#[test]
fn a_tool_call_that_left_comes_back_with_its_end() {
    let mut transcript = Transcript::default();
    transcript.tool(None, true, update("t").title("Long".to_owned()));
    transcript.retire_front();
    transcript.tool(None, false, update("t").status(ToolCallStatus::InProgress));
    assert!(summary(&transcript).is_empty());
    transcript.tool(None, false, update("t").status(ToolCallStatus::Failed));
    assert_eq!(summary(&transcript), ["Long Failed 0"]);
    // An update of an unknown call is ignored.
    transcript.tool(None, false, update("ghost"));
    assert_eq!(summary(&transcript).len(), 1);
}

#[test]
fn a_plan_replaces_the_one_before() {
    // shows PLAN-04
    let entry = |status| PlanEntry::new("x", PlanEntryPriority::Low, status);
    let mut transcript = Transcript::default();
    transcript.event(Event::Plan(Plan::new([entry(PlanEntryStatus::Pending)])));
    assert!(transcript.has_open_plan());
    transcript.event(Event::Plan(Plan::new([entry(PlanEntryStatus::Completed)])));
    assert!(!transcript.has_open_plan());
    assert_eq!(transcript.model.plans.len(), 1);
}

#[test]
fn the_end_of_a_turn_ends_everything_and_shows_what_nothing_showed() {
    let mut transcript = Transcript::default();
    transcript.event(Event::Text(chunk("a", None)));
    transcript.tool(None, true, update("t").title("Open".to_owned()));
    transcript.terminal_outputs.started(7, "make");
    transcript.end_turn();
    assert_eq!(summary(&transcript), ["Agent \"a\"", "Open Pending 0", "terminal 7"]);
    assert!(transcript.model.tool_calls().all(ToolCall::is_finished));
    transcript.event(Event::Text(chunk("b", None)));
    assert_eq!(summary(&transcript).len(), 4);
}
