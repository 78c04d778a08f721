//! Texts and content.

use crate::agent::turn::{Act, Context, Turn};
use serde_json::{Value, json};

/// PROMPT-13, SESS-06: the words again, in their session.
pub(super) async fn say(turn: &Turn, text: &str) -> Act {
    turn.wait(tokio::task::yield_now()).await?;
    if turn.agent.is("PROMPT-12") {
        turn.agent.update("another-session", json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })).await;
    }
    // CMD-05 broken: the input of a command is lost.
    let lost = turn.agent.is("CMD-05") && text.starts_with("/echo");
    turn.say(if lost { "echo" } else { text }).await;
    turn.update(json!({
        "sessionUpdate": "usage_update", "used": 1200, "size": 200_000,
        "cost": { "amount": 0.02, "currency": "USD" }, "_meta": trace(turn),
    }))
    .await;
    Ok(())
}

/// CONT-01: every type of content.
pub(crate) async fn everything(turn: &impl Context) {
    let marks = json!({ "audience": ["user"], "priority": 0.5 });
    let blocks = [
        json!({ "type": "text", "text": "Look", "annotations": marks }),
        json!({ "type": "image", "data": "aGVsbG8=", "mimeType": "image/png", "uri": "file:///a.png" }),
        json!({ "type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav" }),
        json!({ "type": "resource_link", "uri": "file:///a.txt", "name": "a.txt", "size": 5, "title": "A" }),
        json!({ "type": "resource", "resource": { "uri": "file:///a.txt", "text": "hello", "mimeType": "text/plain" } }),
        json!({ "type": "resource", "resource": { "uri": "file:///a.bin", "blob": "aGVsbG8=" } }),
    ];
    for block in blocks {
        turn.show(block).await;
    }
    // INIT-28, EXT-09: a name of its own, announced in `_meta` of its capabilities.
    turn.agent().notify("_mutants.attache/shown", json!({})).await;
}

/// EXT-10: under these names nothing but the context of a trace.
fn trace(turn: &Turn) -> Value {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    match () {
        () if turn.agent.is("EXT-10") => json!({ "traceparent": "the usage before" }),
        () if turn.agent.is("EXT-10/state") => json!({ "traceparent": parent, "tracestate": { "turn": 1 } }),
        () => json!({ "traceparent": parent, "tracestate": "mutants=1", "baggage": "turn=1" }),
    }
}
