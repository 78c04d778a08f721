//! Messages whose params nobody has looked at.

use crate::kit::{Wire, connect};
use attache_conn::{Dispatch, Limits, Responder, Side, Ticket, open};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Takes `take` without anybody's help, and records how everything came.
struct Reader {
    told: mpsc::Sender<String>,
    open: Vec<Responder>,
}

impl Reader {
    fn tell(&self, what: String) {
        self.told.try_send(what).unwrap();
    }
}

impl Dispatch for Reader {
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder) {
        self.tell(format!("request {method} {}", params.map_or("", RawValue::get)));
        responder.ok(&());
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        self.tell(format!("notification {method} {}", params.map_or("", RawValue::get)));
    }

    fn unread(&mut self, method: &str, params: &str) -> bool {
        let taken = method == "take" && serde_json::from_str::<Value>(params).is_ok();
        if taken {
            self.tell(format!("unread {params}"));
        }
        taken
    }

    fn unread_request(&mut self, method: &str, params: &str, ticket: Ticket<'_>) {
        if method != "take" {
            return;
        }
        let Ok(params) = serde_json::from_str::<Value>(params) else { return };
        let Some(responder) = ticket.take() else { return self.tell("refused".to_owned()) };
        self.tell(format!("unread request {params}"));
        match params["keep"] {
            Value::Null => responder.ok(&1),
            _ => self.open.push(responder),
        }
    }

    fn noise(&mut self, line: &[u8], why: &str) {
        self.tell(format!("noise {} {why}", String::from_utf8_lossy(line)));
    }
}

fn serve(limits: Limits) -> (Wire, mpsc::Receiver<String>) {
    let (link, wire) = Wire::new();
    let (told, heard) = mpsc::channel(100);
    let (_peer, driver) = open(link, limits, Side::Agent, |_| Reader { told, open: Vec::new() });
    tokio::spawn(driver);
    (wire, heard)
}

#[tokio::test]
async fn what_is_read_at_once_is_not_looked_at_again() {
    let (mut wire, mut heard) = serve(Limits::default());
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"take\",\"params\":{\"a\":1}}\n").await;
    assert_eq!(heard.recv().await.unwrap(), r#"unread {"a":1}"#);
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"take\",\"params\":{\"b\":2}}\n").await;
    assert_eq!(heard.recv().await.unwrap(), r#"unread request {"b":2}"#);
    assert_eq!(wire.line().await, r#"{"jsonrpc":"2.0","id":7,"result":1}"#);
}

#[tokio::test]
async fn what_is_declined_goes_the_usual_way() {
    let (mut wire, mut heard) = serve(Limits::default());
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"other\",\"params\":{\"a\":1}}\n").await;
    assert_eq!(heard.recv().await.unwrap(), r#"notification other {"a":1}"#);
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"other\",\"params\":{\"b\":2}}\n").await;
    assert_eq!(heard.recv().await.unwrap(), r#"request other {"b":2}"#);
    assert_eq!(wire.line().await, r#"{"jsonrpc":"2.0","id":"x","result":null}"#);
    // Another member behind the params, and blanks: unusual, not wrong.
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"take\",\"params\":{\"a\":1},\"x\":{}}\n").await;
    assert_eq!(heard.recv().await.unwrap(), r#"notification take {"a":1}"#);
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"take\",\"params\":{\"a\":1},\"x\":{}}\n").await;
    assert_eq!(heard.recv().await.unwrap(), r#"request take {"a":1}"#);
    assert_eq!(wire.json().await["id"], 2);
}

#[tokio::test]
async fn what_is_no_json_is_refused_as_ever() {
    // shows RPC-09
    let (mut wire, mut heard) = serve(Limits::default());
    for line in [
        r#"{"jsonrpc":"2.0","method":"take","params":{"a":}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"take","params":{"a":1}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"take","params":{}"#,
    ] {
        wire.write(format!("{line}\n")).await;
        assert_eq!(wire.json().await["error"]["code"], -32700, "{line}");
        assert!(heard.recv().await.unwrap().starts_with("noise "));
    }
}

#[tokio::test]
async fn a_ticket_is_refused_where_a_request_is() {
    // shows RPC-08
    let (mut wire, mut heard) = serve(Limits { open_requests: 2, ..Limits::default() });
    let take = |id: u32| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"take\",\"params\":{{\"keep\":1}}}}\n")
    };
    wire.write(take(1)).await;
    assert_eq!(heard.recv().await.unwrap(), r#"unread request {"keep":1}"#);
    wire.write(take(1)).await;
    assert_eq!(heard.recv().await.unwrap(), "refused");
    assert!(heard.recv().await.unwrap().ends_with("the id belongs to an open request"));
    let refusal = wire.json().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(null), &json!(-32600)));
    wire.write(take(2)).await;
    assert_eq!(heard.recv().await.unwrap(), r#"unread request {"keep":1}"#);
    wire.write(take(3)).await;
    assert_eq!(heard.recv().await.unwrap(), "refused");
    assert!(heard.recv().await.unwrap().ends_with("too many requests are open"));
    let refusal = wire.json().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(3), &json!(-32603)));
}

#[tokio::test]
async fn a_token_that_is_asked_for_late_knows_what_happened() {
    // shows CANCEL-15
    let (link, mut wire) = Wire::new();
    let (_peer, driver, mut heard) = connect(link, Limits::default(), Side::Agent);
    tokio::spawn(driver);
    for id in 1..=3 {
        wire.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"a\",\"params\":{{}}}}\n")).await;
    }
    let [(_, _, first), (_, _, second), (_, _, third)] =
        [heard.request().await, heard.request().await, heard.request().await];
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}\n").await;
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"b\"}\n").await;
    heard.notification().await;
    assert!(first.cancellation().is_cancelled());
    assert!(!second.cancellation().is_cancelled());
    // One token for one request, whoever asks.
    let (one, same) = (second.cancellation(), second.cancellation());
    one.cancel();
    assert!(same.is_cancelled());
    // What is over before anybody asked is over for those who ask.
    drop(wire);
    heard.closed().await;
    assert!(third.cancellation().is_cancelled());
}
