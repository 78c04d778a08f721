//! Messages whose params arrive unvalidated.

use crate::kit::{Wire, connect};
use attache_conn::rpc::ErrorObject;
use attache_conn::{Dispatch, IncomingNotification, IncomingRequest, Limits, Responder, Side, open};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Decodes `decode`, opens `open`, rejects `reject`, drops everything else, and reports each step.
struct Reader {
    report: mpsc::Sender<String>,
    open: Vec<Responder>,
}

impl Reader {
    fn report(&self, text: String) {
        self.report.try_send(text).unwrap();
    }
}

/// Params that are objects with a member `a`, or with a member `b` that only the fallback accepts.
fn parse(text: &str) -> serde_json::Result<Value> {
    let value: Value = serde_json::from_str(text)?;
    match value.get("a") {
        Some(_) => Ok(value),
        None => Err(serde::de::Error::missing_field("a")),
    }
}

impl Dispatch for Reader {
    fn request(&mut self, request: IncomingRequest<'_>) {
        match request.method() {
            "decode" => {
                let decoded = request.decode(parse, |raw| {
                    let value: Value = serde_json::from_str(raw.unwrap().get()).unwrap();
                    value.get("b").cloned().ok_or_else(|| ErrorObject::invalid_params("neither"))
                });
                let Some((params, responder)) = decoded else { return self.report("refused".to_owned()) };
                self.report(format!("decoded {params}"));
                match params["keep"] {
                    Value::Null => responder.ok(&1),
                    _ => self.open.push(responder),
                }
            }
            "open" => {
                let Some((params, responder)) = request.open() else {
                    return self.report("refused".to_owned());
                };
                self.report(format!("opened {}", params.map_or("nothing", |raw| raw.get())));
                responder.ok(&2);
            }
            "reject" => request.reject(ErrorObject::internal("no")),
            _ => {}
        }
    }

    fn notification(&mut self, notification: IncomingNotification<'_>) {
        match notification.method() {
            "decode" => {
                let decoded = notification.decode(parse, |raw| Some(json!(raw.map(|raw| raw.get()))));
                self.report(format!("decoded {decoded:?}"));
            }
            "open" => {
                let opened = notification.open().map(|raw| raw.map(|raw| raw.get().to_owned()));
                self.report(format!("opened {opened:?}"));
            }
            _ => {}
        }
    }

    fn noise(&mut self, line: &[u8], reason: &str) {
        self.report(format!("noise {} {reason}", String::from_utf8_lossy(line)));
    }
}

fn serve(limits: Limits) -> (Wire, mpsc::Receiver<String>) {
    let (link, wire) = Wire::new();
    let (report, reports) = mpsc::channel(100);
    let (_peer, driver) = open(link, limits, Side::Agent, |_| Reader { report, open: Vec::new() });
    tokio::spawn(driver);
    (wire, reports)
}

/// Writes a line and returns the report about it.
async fn report(wire: &mut Wire, reports: &mut mpsc::Receiver<String>, line: &str) -> String {
    wire.write(format!("{line}\n")).await;
    reports.recv().await.unwrap()
}

#[tokio::test]
async fn requests_are_decoded_opened_and_rejected() {
    let (mut wire, mut reports) = serve(Limits::default());
    for (line, expected, response) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"decode","params":{"a":2}}"#,
            r#"decoded {"a":2}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":1}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"decode","params":{"b":[]}}"#,
            "decoded []",
            r#"{"jsonrpc":"2.0","id":"x","result":1}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":8,"method":"open","params":{}}"#,
            "opened {}",
            r#"{"jsonrpc":"2.0","id":8,"result":2}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":9,"method":"open"}"#,
            "opened nothing",
            r#"{"jsonrpc":"2.0","id":9,"result":2}"#,
        ),
        // Unusual members after the params.
        (
            r#"{"jsonrpc":"2.0","method":"open","params":{"a":1},"id":10}"#,
            "opened None",
            r#"{"jsonrpc":"2.0","id":10,"result":2}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":11,"method":"decode","params":{"a":1},"x":{}}"#,
            "refused",
            r#"{"jsonrpc":"2.0","id":11,"result":1}"#,
        ),
    ] {
        assert_eq!(report(&mut wire, &mut reports, line).await, expected, "{line}");
        assert_eq!(wire.line().await, response);
        while reports.try_recv().is_ok() {}
    }
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"reject\",\"params\":{}}\n").await;
    assert_eq!(wire.json().await["error"]["message"], "no");
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"decode\",\"params\":{}}\n").await;
    assert_eq!(wire.json().await["error"]["code"], -32602);
    // shows RPC-24: a request that its handler drops is answered
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"drop\",\"params\":{}}\n").await;
    let dropped = wire.json().await;
    assert_eq!((&dropped["id"], &dropped["error"]["code"]), (&json!(1), &json!(-32603)));
}

#[tokio::test]
async fn notifications_are_decoded_and_opened() {
    let (mut wire, mut reports) = serve(Limits::default());
    for (line, expected) in [
        (
            r#"{"jsonrpc":"2.0","method":"decode","params":{"a":1}}"#,
            r#"decoded Some(Object {"a": Number(1)})"#,
        ),
        (r#"{"jsonrpc":"2.0","method":"decode","params":{"c":1}}"#, r#"decoded Some(String("{\"c\":1}"))"#),
        (r#"{"jsonrpc":"2.0","method":"open","params":{"a":1}}"#, r#"opened Some(Some("{\"a\":1}"))"#),
        (r#"{"jsonrpc":"2.0","method":"open"}"#, "opened Some(None)"),
    ] {
        assert_eq!(report(&mut wire, &mut reports, line).await, expected);
    }
}

#[tokio::test]
async fn lines_that_are_not_json_are_refused() {
    // shows RPC-09
    let (mut wire, mut reports) = serve(Limits::default());
    for (id, method) in ["", r#""id":1,"#].iter().flat_map(|id| ["decode", "open", "drop"].map(|m| (id, m))) {
        for params in [r#"{"a":}"#, r#"{"a":1}}"#, r#"{"a":"\q"}"#] {
            let line = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#);
            wire.write(format!("{line}\n")).await;
            let response = wire.json().await;
            assert_eq!(
                (&response["id"], &response["error"]["code"]),
                (&json!(null), &json!(-32700)),
                "{line}"
            );
            let mut last = String::new();
            while let Ok(report) = reports.try_recv() {
                last = report;
            }
            assert!(last.starts_with("noise "), "{line}: {last}");
        }
    }
}

#[tokio::test]
async fn requests_are_refused_before_their_handler_gets_them() {
    // shows RPC-08
    let (mut wire, mut reports) = serve(Limits::default().open_requests(2));
    let keep =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"decode","params":{{"a":1,"keep":1}}}}"#);
    let kept = r#"decoded {"a":1,"keep":1}"#;
    assert_eq!(report(&mut wire, &mut reports, &keep(1)).await, kept);
    assert_eq!(report(&mut wire, &mut reports, &keep(1)).await, "refused");
    assert!(reports.recv().await.unwrap().ends_with("the id belongs to an open request"));
    let refusal = wire.json().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(null), &json!(-32600)));
    assert_eq!(report(&mut wire, &mut reports, &keep(2)).await, kept);
    assert_eq!(report(&mut wire, &mut reports, &keep(3)).await, "refused");
    assert!(reports.recv().await.unwrap().ends_with("too many requests are open"));
    let refusal = wire.json().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(3), &json!(-32603)));
}

#[tokio::test]
async fn a_late_token_is_already_cancelled() {
    // shows CANCEL-15
    let (link, mut wire) = Wire::new();
    let (_peer, driver, mut received) = connect(link, Limits::default(), Side::Agent);
    tokio::spawn(driver);
    for id in 1..=3 {
        wire.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"a\",\"params\":{{}}}}\n")).await;
    }
    let [(_, _, first), (_, _, second), (_, _, third)] =
        [received.request().await, received.request().await, received.request().await];
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}\n").await;
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"b\"}\n").await;
    received.notification().await;
    assert!(first.cancellation().is_cancelled());
    assert!(!second.cancellation().is_cancelled());
    // One token per request.
    let (one, same) = (second.cancellation(), second.cancellation());
    one.cancel();
    assert!(same.is_cancelled());
    // A token of a request that is over is cancelled.
    drop(wire);
    received.closed().await;
    assert!(third.cancellation().is_cancelled());
}
