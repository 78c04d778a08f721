#![allow(clippy::unwrap_used)]

use super::*;
use crate::trace::{Entry, Header, LineEnd};

/// A recording from lines that begin with `>` (client) or `<` (agent).
fn trace(lines: &[&str]) -> Trace {
    let entries = lines.iter().enumerate().map(|(index, line)| {
        let (way, text) = line.split_at(1);
        let from = if way == ">" { Role::Client } else { Role::Agent };
        Entry {
            at: Duration::from_secs(index as u64),
            kind: EntryKind::Line { from, text: text.trim().into(), end: LineEnd::Lf },
        }
    });
    Trace { head: Header::default(), entries: entries.collect() }
}

/// The other side: sends a line when the one before it was answered as recorded.
struct Peer {
    reader: FrameReader,
    writer: FrameWriter,
}

impl Peer {
    async fn say(&mut self, message: Value) {
        self.writer.send(message.to_string().as_bytes()).await.unwrap();
    }
    async fn hear(&mut self) -> Value {
        serde_json::from_slice(self.reader.next().await.unwrap().unwrap()).unwrap()
    }
}

/// Plays `trace` to what `act` does.
async fn play<F: Future<Output = ()>>(
    trace: &Trace,
    options: &Options,
    act: impl FnOnce(Peer) -> F,
) -> Outcome {
    let (ours, theirs) = Link::pair();
    let (reader, writer) = theirs.split();
    let (outcome, ()) = tokio::join!(replay(trace, ours, options, |_| {}), act(Peer { reader, writer }));
    outcome
}

const TALK: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
    r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#,
    r#"> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/then","mcpServers":[]}}"#,
    r#"< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-then"}}"#,
    r#"> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-then","prompt":[{"type":"text","text":"hi"}]}}"#,
    r#"< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-then","update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","locations":[{"path":"/then/a.rs"}]}}}"#,
    r#"< {"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s-then","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"yes-then","name":"Yes","kind":"allow_once"}]}}"#,
    r#"> {"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"selected","optionId":"yes-then"}}}"#,
    r#"< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#,
];

fn options(part: Role) -> Options {
    Options { part, ..Options::default() }
}

/// A client that does as in the recording, with ids and a directory of its own.
async fn client(mut peer: Peer, text: &str) {
    peer.say(json!({"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":1}})).await;
    assert_eq!(peer.hear().await["id"], "a");
    peer.say(
        json!({"jsonrpc":"2.0","id":"b","method":"session/new","params":{"cwd":"/now","mcpServers":[]}}),
    )
    .await;
    assert_eq!(peer.hear().await, json!({"jsonrpc":"2.0","id":"b","result":{"sessionId":"s-then"}}));
    let prompt = json!([{"type":"text","text":text}]);
    peer.say(json!({"jsonrpc":"2.0","id":"c","method":"session/prompt","params":{"sessionId":"s-then","prompt":prompt}})).await;
    let update = peer.hear().await;
    assert_eq!(update["params"]["update"]["locations"][0]["path"], "/now/a.rs");
    let question = peer.hear().await;
    assert_eq!(question["id"], 7);
    peer.say(
        json!({"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"selected","optionId":"yes-then"}}}),
    )
    .await;
    assert_eq!(peer.hear().await, json!({"jsonrpc":"2.0","id":"c","result":{"stopReason":"end_turn"}}));
}

#[tokio::test(start_paused = true)]
async fn the_agent_of_a_recording_serves_another_client() {
    let outcome = play(&trace(TALK), &options(Role::Agent), |peer| client(peer, "hi")).await;
    assert!(outcome.is_faithful(false), "{:?}", outcome.deviations);
    assert_eq!((outcome.matched, outcome.expected, outcome.said), (4, 4, 5));
}

#[tokio::test(start_paused = true)]
async fn other_content_is_reported_and_counts_only_on_request() {
    let outcome = play(&trace(TALK), &options(Role::Agent), |peer| client(peer, "something else")).await;
    assert!(outcome.is_faithful(false) && !outcome.is_faithful(true));
    let found = outcome
        .deviations
        .iter()
        .any(|d| matches!(d, Deviation::Different { at, .. } if at == &["/params/prompt/0/text"]));
    assert!(found, "{:?}", outcome.deviations);
}

#[tokio::test(start_paused = true)]
async fn the_client_of_a_recording_follows_another_agents_names() {
    let outcome = play(&trace(TALK), &options(Role::Client), |mut peer| async move {
        let hello = peer.hear().await;
        peer.say(json!({"jsonrpc":"2.0","id":hello["id"],"result":{"protocolVersion":1}})).await;
        let new = peer.hear().await;
        assert_eq!(new["method"], "session/new");
        peer.say(json!({"jsonrpc":"2.0","id":new["id"],"result":{"sessionId":"s-now"}})).await;
        let prompt = peer.hear().await;
        assert_eq!(prompt["params"]["sessionId"], "s-now");
        let update = json!({"sessionUpdate":"tool_call","toolCallId":"other","title":"x"});
        peer.say(
            json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-now","update":update}}),
        )
        .await;
        let options = json!([{"optionId":"yes-now","name":"Yes","kind":"allow_once"}]);
        let question = json!({"sessionId":"s-now","toolCall":{"toolCallId":"other"},"options":options});
        peer.say(json!({"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":question}))
            .await;
        assert_eq!(
            peer.hear().await,
            json!({"jsonrpc":"2.0","id":"q","result":{"outcome":{"outcome":"selected","optionId":"yes-now"}}})
        );
        peer.say(json!({"jsonrpc":"2.0","id":prompt["id"],"result":{"stopReason":"end_turn"}})).await;
    })
    .await;
    assert!(outcome.is_faithful(false), "{:?}", outcome.deviations);
    assert_eq!(outcome.matched, 5);
}

#[tokio::test(start_paused = true)]
async fn the_directory_of_a_replay_can_be_another() {
    let options =
        Options { cwd: Some("/somewhere".into()), patience: Duration::from_secs(1), ..options(Role::Client) };
    play(&trace(TALK), &options, |mut peer| async move {
        let hello = peer.hear().await;
        peer.say(json!({"jsonrpc":"2.0","id":hello["id"],"result":{"protocolVersion":1}})).await;
        assert_eq!(peer.hear().await["params"]["cwd"], "/somewhere");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_response_is_reported() {
    let outcome = play(&trace(&TALK[..2]), &options(Role::Agent), |mut peer| async move {
        peer.say(json!({"jsonrpc":"2.0","id":1,"method":"session/list","params":{}})).await;
        assert_eq!(peer.hear().await["error"]["code"], -32603);
        peer.say(json!({"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":1}})).await;
        assert_eq!(peer.hear().await["id"], 2);
    })
    .await;
    assert_eq!(outcome.deviations, [Deviation::Unexpected { said: "session/list".into() }]);
    assert!(!outcome.is_faithful(false));
}

#[tokio::test(start_paused = true)]
async fn missing_messages_are_reported() {
    let outcome = play(&trace(TALK), &options(Role::Agent), |mut peer| async move {
        peer.say(json!({"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":1}})).await;
        peer.hear().await;
        // It stays there, and says nothing more.
        while peer.reader.next().await.unwrap().is_some() {}
    })
    .await;
    let missing = outcome.deviations.iter().filter(|d| matches!(d, Deviation::Missing { .. })).count();
    assert_eq!((missing, outcome.matched), (3, 1), "{:?}", outcome.deviations);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_dies_is_noticed_at_once() {
    let options = Options { patience: Duration::MAX / 4, ..options(Role::Agent) };
    let outcome = play(&trace(TALK), &options, |peer| async move { drop(peer) }).await;
    assert_eq!(outcome.deviations.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn recorded_delays_are_kept() {
    let before = Instant::now();
    let options = Options { delays: true, ..options(Role::Agent) };
    play(&trace(TALK), &options, |peer| client(peer, "hi")).await;
    // Five lines of the agent, each a second after what was before it.
    assert!(before.elapsed() >= Duration::from_secs(5), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_text_may_be_cut_in_other_pieces() {
    let piece = |text: &str| {
        let update = json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":text}});
        json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":update}})
    };
    let lines = [
        r#"> {"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#
            .to_owned(),
        format!("< {}", piece("one ")),
        format!("< {}", piece("two")),
        r#"< {"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_turn"}}"#.to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for pieces in [vec!["one two"], vec!["o", "n", "e", " two"]] {
        let outcome = play(&trace(&lines), &options(Role::Client), |mut peer| async move {
            let prompt = peer.hear().await;
            for text in pieces {
                peer.say(piece(text)).await;
            }
            peer.say(json!({"jsonrpc":"2.0","id":prompt["id"],"result":{"stopReason":"end_turn"}})).await;
        })
        .await;
        assert!(outcome.deviations.is_empty() && outcome.matched == 2, "{outcome:?}");
    }
}

const TALK_V2: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2}}"#,
    r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2}}"#,
    r#"> {"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}"#,
    r#"< {"jsonrpc":"2.0","id":1,"result":{"messageId":"m-then"}}"#,
    r#"< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"m-then","content":[]}}}"#,
    r#"< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}"#,
    r#"< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t-then"}}}"#,
    r#"> {"jsonrpc":"2.0","id":2,"method":"tool_call/cancel","params":{"sessionId":"s","toolCallId":"t-then"}}"#,
    r#"< {"jsonrpc":"2.0","id":2,"result":{}}"#,
    r#"< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}"#,
];

#[tokio::test]
async fn an_agent_of_version_2_answers_the_prompt_first_and_plays_the_states() {
    let trace = trace(TALK_V2);
    let outcome = play(&trace, &options(Role::Agent), |mut peer| async move {
        peer.say(json!({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":2}})).await;
        peer.hear().await;
        peer.say(json!({"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"s","prompt":[]}})).await;
        assert_eq!(peer.hear().await, json!({"jsonrpc":"2.0","id":"p","result":{"messageId":"m-then"}}));
        let kinds = ["user_message", "state_update", "tool_call_update"];
        for kind in kinds {
            assert_eq!(peer.hear().await["params"]["update"]["sessionUpdate"], kind);
        }
        let params = json!({"sessionId":"s","toolCallId":"t-then"});
        peer.say(json!({"jsonrpc":"2.0","id":"c","method":"tool_call/cancel","params":params})).await;
        assert_eq!(peer.hear().await["id"], "c");
        assert_eq!(peer.hear().await["params"]["update"]["stopReason"], "end_turn");
    })
    .await;
    assert!(outcome.is_faithful(false), "{:?}", outcome.deviations);
    assert_eq!((outcome.matched, outcome.expected), (3, 3));
}

/// An agent of version 2 with ids of its own. `order` are its updates before the tool call.
async fn agent_v2(mut peer: Peer, version: u64, order: Vec<Value>) {
    let update = |update: Value| json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":update}});
    assert_eq!(peer.hear().await["method"], "initialize");
    peer.say(json!({"jsonrpc":"2.0","id":0,"result":{"protocolVersion":version}})).await;
    assert_eq!(peer.hear().await["method"], "session/prompt");
    for early in order {
        peer.say(update(early)).await;
    }
    peer.say(json!({"jsonrpc":"2.0","id":1,"result":{"messageId":"m-now"}})).await;
    peer.say(update(json!({"sessionUpdate":"tool_call_update","toolCallId":"t-now"}))).await;
    assert_eq!(peer.hear().await["params"]["toolCallId"], "t-now");
    peer.say(json!({"jsonrpc":"2.0","id":2,"result":{}})).await;
    peer.say(update(json!({"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}))).await;
}

#[tokio::test]
async fn an_insertion_may_be_reported_in_any_order() {
    // shows V2-10
    let trace = trace(TALK_V2);
    let message = json!({"sessionUpdate":"user_message","messageId":"m-now","content":[]});
    let running = json!({"sessionUpdate":"state_update","state":"running"});
    for order in [vec![running.clone(), message.clone()], vec![message.clone(), running.clone()]] {
        let outcome = play(&trace, &options(Role::Client), |peer| agent_v2(peer, 2, order)).await;
        assert!(outcome.is_faithful(false), "{:?}", outcome.deviations);
    }
    // A state is not another one, and the version is that of the recording.
    let idle = json!({"sessionUpdate":"state_update","state":"idle"});
    let outcome =
        play(&trace, &options(Role::Client), |peer| agent_v2(peer, 1, vec![message, running, idle])).await;
    let deviations: Vec<String> = outcome.deviations.iter().map(ToString::to_string).collect();
    assert_eq!(deviations[0], "other protocol: the recording is of version 2, the peer speaks 1");
    let early = "too early: session/update state_update idle";
    assert!(deviations.iter().any(|text| text.starts_with(early)), "{deviations:?}");
}
