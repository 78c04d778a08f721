//! What happens beside the conversation: subagents, notices, compactions, the wire, limits.

use crate::chat_rig::{CTRL_D, Start};

/// What the agent does when it is asked, one update a line.
fn script(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("  {}\n", line.trim())).collect();
    format!("on session/prompt\n{lines}  done end_turn\n")
}

#[tokio::test]
async fn subagents_are_shown_while_they_work_and_when_they_end() {
    // shows SUBA-04, SUBA-05, SUBA-07
    let mut chat = Start::new()
        .with_script(&script(
            r#"update {"sessionUpdate":"subagent_update","sessionId":"kid-1","title":"Review","description":"reads the change","state":{"state":"running"}}
               update {"sessionUpdate":"subagent_update","sessionId":"kid-2","title":"Search"}
               notify session/update {"sessionId":"kid-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"words of the child"}}}
               notify session/update {"sessionId":"kid-1","update":{"sessionUpdate":"tool_call","toolCallId":"k","title":"Look","kind":"read","status":"completed"}}
               say words of the parent
               wait session/cancel
               update {"sessionUpdate":"subagent_update","sessionId":"kid-1","state":{"state":"idle","stopReason":"end_turn"}}
               update {"sessionUpdate":"subagent_update","sessionId":"kid-2","state":{"state":"idle","stopReason":"error","error":{"code":-32603,"message":"lost its way"}}}"#,
        ))
        .await;
    chat.say("go");
    chat.sees("subagent Review: reads the change").await;
    chat.sees("▸ subagent Review works").await;
    // Nothing was said about its state, so it is not said to be idle.
    chat.sees("▸ subagent Search working").await;
    chat.sees("  words of the child").await;
    chat.sees("  ✓ read Look").await;
    assert!(chat.cell_of("words of the child").dim());
    chat.sees("words of the parent").await;
    chat.keys("\x03");
    chat.sees("subagent Review is done").await;
    chat.sees("✗ subagent Search failed: lost its way").await;
    chat.sees_no_more("▸ subagent").await;
}

#[tokio::test]
async fn messages_between_sessions_notices_and_compactions_are_shown() {
    let mut chat = Start::new()
        .size(50, 80)
        .with_script(&script(
            r#"update {"sessionUpdate":"subagent_update","sessionId":"kid","title":"Review","state":{"state":"running"}}
               update {"sessionUpdate":"session_message","messageId":"m1","senderSessionId":"kid","content":[{"type":"text","text":"found three"}]}
               update {"sessionUpdate":"session_message","messageId":"m2","recipientSessionId":"kid"}
               update {"sessionUpdate":"session_message_chunk","messageId":"m2","content":{"type":"text","text":"look "}}
               update {"sessionUpdate":"session_message_chunk","messageId":"m2","content":{"type":"text","text":"again"}}
               update {"sessionUpdate":"notice","severity":"warning","title":"The key expires","description":"in three days"}
               update {"sessionUpdate":"compaction_update","compactionId":"c1","status":"in_progress"}
               update {"sessionUpdate":"compaction_update","compactionId":"c1","status":"in_progress"}
               update {"sessionUpdate":"compaction_summary_chunk","compactionId":"c1","content":{"type":"text","text":"what was said, in short"}}
               update {"sessionUpdate":"compaction_update","compactionId":"c1","status":"completed"}
               update {"sessionUpdate":"compaction_update","compactionId":"c2","status":"failed","error":"no model"}
               update {"sessionUpdate":"_hologram","depth":3}"#,
        ))
        .await;
    chat.say("go");
    chat.sees("· message from Review").await;
    chat.sees("  found three").await;
    chat.sees("· message to Review").await;
    chat.sees("  look again").await;
    chat.sees("! The key expires\n  in three days").await;
    chat.sees("the conversation could not be compacted: no model").await;
    chat.sees("what was said, in short").await;
    chat.sees("the conversation was compacted").await;
    let text = chat.text();
    assert_eq!(text.matches("is being compacted").count(), 1, "{text}");
    // shows PROMPT-16: what is not known is no part of the conversation.
    assert!(!text.contains("hologram"), "{text}");
}

#[tokio::test]
async fn lines_that_are_no_messages_are_reported_once() {
    let script = script("raw loading the model\n               raw still loading\n               say ready");
    let mut chat = Start::new().with_script(&script).await;
    chat.say("go");
    chat.sees("! the agent prints lines that are no messages (-v shows them all): loading the").await;
    chat.sees("ready").await;
    chat.say("again");
    chat.until("two answers", |screen| screen.contents().matches("ready").count() == 2).await;
    let history = chat.history();
    assert_eq!(history.matches("no messages").count(), 1, "{history}");
}

#[tokio::test]
async fn the_wire_is_shown_and_logged_on_request() {
    let start = Start::new().args(&["--ask", "-v", "--env", "FIRE_TOKEN=sesame-opens"]);
    let log = start.place().home().join("attache/state/logs/chat.log");
    let mut chat = start
        .with_script(&script(
            r#"update {"sessionUpdate":"_hologram","depth":3}
               stderr careful $env.FIRE_TOKEN
               raw this is no JSON
               say the answer $env.FIRE_TOKEN
               wait session/cancel"#,
        ))
        .await;
    chat.sees("the wire log is in").await;
    chat.say("go");
    chat.sees("unknown update from the agent: _hologram").await;
    chat.sees("invalid message: this is no JSON").await;
    chat.sees("!! careful").await;
    chat.sees("<- session/update agent_message_chunk").await;
    assert!(chat.cell_of("<- session/update").dim());
    chat.keys("\x03");
    chat.sees("! cancelled").await;
    chat.keys(CTRL_D);
    assert!(chat.exit().await.success());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(
        log.contains("-> ") && log.contains("session/prompt") && log.contains("agent_message_chunk"),
        "{log}"
    );
    assert!(!log.contains("sesame") && !log.contains("go away"), "{log}");
    // What passes by is no part of the conversation, and not left behind on the screen.
    assert!(!chat.text().contains("<- session"), "{}", chat.text());
    assert!(!chat.written().contains("!! careful sesame"));
}

#[tokio::test]
async fn limits_stand_beside_what_is_used() {
    let mut chat = Start::new()
        .args(&["--ask", "--timeout", "90", "--max-cost", "2.5", "--max-tokens", "50000"])
        .with_script(&script(
            r#"update {"sessionUpdate":"usage_update","used":12300,"size":200000,"cost":{"amount":0.5,"currency":"USD"}}
               wait session/cancel
               update {"sessionUpdate":"usage_update","used":12300,"size":200000,"cost":{"amount":3,"currency":"USD"}}"#,
        ))
        .await;
    chat.sees("0 of 50.0k tokens").await;
    chat.say("go");
    chat.sees("s of 1m30s working").await;
    chat.sees("12.3k/200k (6%) · $0.50 of $2.50 · 12.3k of 50.0k tokens").await;
    chat.keys("\x03");
    chat.sees("$3.00 of $2.50").await;
    chat.sees_no_more("cancelling").await;
    // There is nothing left for another turn.
    chat.say("more");
    chat.sees("3.0000 USD are spent, the limit is 2.5").await;
}
