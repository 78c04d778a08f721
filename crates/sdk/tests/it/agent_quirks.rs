//! What real clients do on the wire, and lines that are no messages: all of it is survived.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache::{Error, Limits, Reason, Result, StopReason};
use serde_json::{Value, json};

use crate::agent_rig::{Rig, agent, echo, full_client, new, prompt};

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_its_input_still_gets_its_answers() {
    // a client that writes everything, closes stdin without waiting, and reads what comes
    let (link, theirs) = attache::Link::pair();
    let agent = agent(|turn, _| {
        Box::pin(async move {
            turn.until_cancelled(std::future::pending::<()>()).await?;
            Ok(StopReason::EndTurn)
        })
    });
    let serving = tokio::spawn(agent.serve(link));
    let (mut reader, mut writer) = theirs.split();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}});
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": new()});
    writer.send(hello.to_string().as_bytes()).await.unwrap();
    writer.send(open.to_string().as_bytes()).await.unwrap();
    for _ in 0..2 {
        reader.next().await.unwrap().unwrap();
    }
    let ask = json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt("s1", "wait")});
    writer.send(ask.to_string().as_bytes()).await.unwrap();
    writer.close().await.unwrap();
    let line: Value = serde_json::from_slice(reader.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(line, json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "cancelled"}}));
    assert!(reader.next().await.unwrap().is_none());
    serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_is_an_error() {
    let (link, theirs) = attache::Link::pair();
    let serving = tokio::spawn(echo().serve(link));
    let (_reader, mut writer) = theirs.split();
    writer.send(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"no/such\"}").await.unwrap();
    drop((_reader, writer));
    assert!(serving.await.unwrap().is_ok());

    let (near, mut far) = tokio::io::duplex(1 << 10);
    let (reader, writer) = tokio::io::split(near);
    let serving = tokio::spawn(echo().serve(attache::Link::from_io(reader, writer)));
    tokio::io::AsyncWriteExt::write_all(&mut far, b"{\"jsonrpc\":\"2.0\",\"id\":0").await.unwrap();
    drop(far);
    match serving.await.unwrap() {
        Err(Error::Closed(closed)) => assert!(matches!(closed.reason, Reason::HalfLine(_))),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn odd_lines_are_survived() {
    // shows RPC-01, RPC-06, RPC-09, RPC-10, RPC-11, RPC-14, STDIO-11, STDIO-16
    let mut rig = Rig::open(echo(), json!({})).await;
    for (line, code) in [
        ("{oops", -32700),
        ("hello there", -32700),
        ("5", -32600),
        ("{}", -32600),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"session/new"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, -32600),
    ] {
        rig.client.raw(line).await;
        let answer = rig.client.line().await;
        assert_eq!(answer["error"]["code"], code, "{line}");
        assert_eq!(answer["id"], Value::Null, "{line}");
    }
    for silent in [
        "",
        "   ",
        "\r",
        r#"{"jsonrpc":"2.0","id":"ghost","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{"ok":true}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":400,"message":"{}"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":null}"#,
        r#"{"jsonrpc":"2.0","method":"_unknown/notification"}"#,
    ] {
        rig.client.raw(silent).await;
    }
    rig.assert_responsive().await;
    let text = "line\u{2028}separator\u{2029}\u{85}\u{c}";
    rig.client.raw(&format!(r#"{{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{{"sessionId":"s1","prompt":[{{"type":"text","text":"line{0}separator{1}{2}\f"}}]}}}}{3}"#, '\u{2028}', '\u{2029}', '\u{85}', '\r')).await;
    rig.expect_text("s1", text).await;
    rig.expect_end("p", "end_turn").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_large_prompt_and_one_that_is_too_large() {
    // shows STDIO-11
    let limits = Limits::default().frame(12 << 20);
    let seen = Arc::new(AtomicUsize::new(0));
    let inner = seen.clone();
    let agent = agent(move |_, prompt| {
        inner.store(prompt.text().len(), Ordering::Relaxed);
        Box::pin(async { Ok(StopReason::EndTurn) })
    });
    let mut rig = Rig::open(agent.limits(limits), json!({})).await;
    rig.prompt("p", "s1", &"x".repeat(10 << 20)).await;
    rig.expect_end("p", "end_turn").await;
    assert_eq!(seen.load(Ordering::Relaxed), 10 << 20);
    rig.prompt("p", "s1", &"x".repeat(13 << 20)).await;
    assert!(rig.client.line().await["error"]["code"].is_i64());
    rig.assert_responsive().await;
}

#[tokio::test(start_paused = true)]
async fn ids_are_echoed_as_they_are_and_both_sides_may_use_the_same() {
    // shows RPC-05, RPC-08
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                turn.say(turn.read_files().unwrap().read("/x").await?).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        full_client(),
    )
    .await;
    for (round, id) in
        [json!(0), json!(-1), json!("a"), json!("1"), json!(1_u64 << 53), json!(1)].iter().enumerate()
    {
        rig.client.request(id.clone(), "session/prompt", prompt("s1", "")).await;
        let read = rig.client.expect("fs/read_text_file").await;
        assert_eq!(read["id"], round);
        rig.client.answer(&read, json!({"content": "text"})).await;
        rig.expect_text("s1", "text").await;
        assert_eq!(rig.client.line().await["id"], *id);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_written_is_an_error() {
    // shows RPC-24
    struct Unwritable;
    impl serde::Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    impl<'de> serde::Deserialize<'de> for Unwritable {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            serde::de::IgnoredAny::deserialize(deserializer).map(|_| Unwritable)
        }
    }
    impl attache::Request for Unwritable {
        const METHOD: &'static str = "_x/unwritable";
        type Response = Unwritable;
    }
    let agent = echo().on_request(|request: Unwritable, _| async { Ok(request) });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.expect_error("_x/unwritable", json!({}), -32603).await;
    rig.assert_responsive().await;
}

#[tokio::test(start_paused = true)]
async fn unanswered_requests_block_one_turn_only() {
    // shows CANCEL-05: the user cancels, and the turn ends without the answer
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                turn.read_files().unwrap().read("/x").await?;
                Ok(StopReason::EndTurn)
            })
        }),
        full_client(),
    )
    .await;
    rig.new_session("s2").await;
    rig.prompt("a", "s1", "").await;
    rig.client.expect("fs/read_text_file").await;
    rig.prompt("b", "s2", "").await;
    let read = rig.client.expect("fs/read_text_file").await;
    rig.client.answer(&read, json!({"content": ""})).await;
    rig.expect_end("b", "end_turn").await;
    rig.cancel("s1").await;
    rig.client.expect("$/cancel_request").await;
    rig.expect_end("a", "cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn an_update_may_be_very_large() {
    let text = "x\u{2028}".repeat(200_000);
    let said = text.clone();
    let mut rig = Rig::open(
        agent(move |turn, _| {
            let said = said.clone();
            Box::pin(async move {
                turn.say(said).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    rig.prompt("p", "s1", "").await;
    rig.expect_text("s1", &text).await;
    rig.expect_end("p", "end_turn").await;
}
