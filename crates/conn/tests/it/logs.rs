//! Logs of a connection.

use crate::kit::{Wire, connect};
use attache_conn::{Limits, Side};
use serde_json::json;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Collects spans and events as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Log {
    fn line(&self, name: &str, record: impl FnOnce(&mut dyn Visit)) {
        let mut log = self.0.lock().unwrap();
        log.push_str(name);
        record(&mut Fields(&mut log));
        log.push('\n');
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("attache_conn")
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.line(span.metadata().name(), |visit| span.record(visit));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        self.line("event", |visit| event.record(visit));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// `tracing` decides once per process whether a callsite has a subscriber, and the other tests have
/// none, so that this one runs in a process of its own.
#[test]
fn messages_are_logged_without_their_contents() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "logs::alone"])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "is started by the test above, as a process of its own"]
fn alone() {
    let log = Log::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(log.clone(), || {
        runtime.block_on(async {
            let (link, mut wire) = Wire::new();
            let (peer, driver, mut received) = connect(link, Limits::default(), Side::Client);
            let driver = tokio::spawn(driver);
            let call = peer.call("outgoing/call", &json!({"key": "s3cret"}));
            peer.notify("outgoing/note", &json!({"key": "s3cret"})).await.unwrap();
            wire.line().await;
            wire.line().await;
            wire.write("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":\"s3cret\"}\n").await;
            call.await.unwrap();
            wire.write("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"k\":\"s3cret\"}}\n")
                .await;
            received.request().await.2.ok("s3cret");
            wire.line().await;
            wire.write("{\"s3cret\"}\n").await;
            received.noise().await;
            peer.close();
            driver.await.unwrap();
        });
    });
    let log = log.0.lock().unwrap();
    assert!(!log.contains("s3cret"), "{log}");
    for expected in [
        "peer=\"agent\"",
        "event message=connection opened link=Link(bytes)",
        "event message=request sent method=\"outgoing/call\" id=0 bytes=",
        "event message=notification sent method=\"outgoing/note\" bytes=",
        "event message=response received id=0 ok=true",
        "event message=message received method=m id=7",
        "event message=response sent id=7 ok=true bytes=",
        "event message=message refused bytes=10 reason=\"the line is not JSON\"",
        "event message=connection closed reason=LocalClose",
    ] {
        assert!(log.contains(expected), "no {expected:?} in\n{log}");
    }
}
