//! The SDK's client with a hub.

use attache::client::{AgentHandle, Client, Event, Protocol, Replay, Session, SessionReplay};
use attache::{Error, Meta, code};
use attache_conn::Link;
use attache_hub::Identity;
use serde_json::{Value, json};

use crate::rig::Rig;

async fn connect(rig: &Rig, protocol: Protocol) -> AgentHandle {
    let (near, far) = Link::pair();
    let hub = rig.hub.clone();
    tokio::spawn(async move { hub.serve(far, Identity::new("me")).await });
    Client::new().protocol(protocol).connect(near).await.unwrap()
}

async fn prompt(session: &mut Session, text: &str) {
    let mut turn = session.prompt(text).await.unwrap();
    while turn.next().await.unwrap().is_some() {}
}

/// The position that the list of sessions has.
async fn position(agent: &AgentHandle) -> String {
    let listed = agent.lister().unwrap().list().all().await.unwrap();
    let meta: Value = listed[0].meta.as_ref().unwrap().get("attache").unwrap();
    meta["at"].as_str().unwrap().to_owned()
}

/// The text of a replayed history, with `>` before that of the user.
async fn text(replay: &mut SessionReplay) -> String {
    let mut text = String::new();
    while let Some(event) = replay.next().await.unwrap() {
        match event {
            Event::User(chunk) => text.extend(["> ", &chunk.text, ": "]),
            Event::Text(chunk) => text.push_str(&chunk.text),
            _ => {}
        }
    }
    text
}

/// A client that comes back gets what follows a position, by `session/resume` in both versions. An
/// unknown one is an error.
#[tokio::test]
async fn a_session_is_reopened_after_a_position() {
    for protocol in [Protocol::V1, Protocol::V2] {
        let rig = Rig::new();
        let first = connect(&rig, protocol).await;
        let mut session = first.new_session("/").await.unwrap();
        let id = session.id().clone();
        prompt(&mut session, "count 3").await;
        let at = position(&first).await;
        prompt(&mut session, "count 4").await;

        let back = connect(&rig, protocol).await;
        let mut replay = back.reopen(id.clone(), "/", Replay::After(at)).await.unwrap();
        assert_eq!(text(&mut replay).await, "> count 4: 1234", "{protocol:?}");
        // The session goes on as it is.
        let mut session = replay.finish().await.unwrap();
        prompt(&mut session, "hello").await;
        assert_eq!(rig.record.of("prompt"), ["count 3", "count 4", "hello"]);

        let whole = connect(&rig, protocol).await;
        let mut replay = whole.reopen(id.clone(), "/", Replay::Start).await.unwrap();
        assert_eq!(text(&mut replay).await, "> count 3: 123> count 4: 1234> hello: hello");
        drop(replay);
        drop(session);

        let unknown = || Replay::After("99.1".to_owned());
        let mut replay = whole.reopen(id.clone(), "/", unknown()).await.unwrap();
        match replay.next().await {
            Err(Error::Refused(error)) => assert_eq!(error.code, code::INVALID_PARAMS),
            other => panic!("{protocol:?}: {other:?}"),
        }
        drop(replay);
        if protocol == Protocol::V1 {
            // The caller's own `_meta` may ask for the whole history instead.
            let meta = Meta::new(&json!({"attache": {"strict": false}})).unwrap();
            let mut replay = back.reopen(id, "/", unknown()).meta(meta).await.unwrap();
            assert_eq!(text(&mut replay).await, "> count 3: 123> count 4: 1234> hello: hello");
        }
    }
}
