//! The connector of the official Rust SDK before an agent that serves one version or both:
//! `versions [--only 1] -- AGENT ARGS…`, where `--only` names the version that the agent has.
//! Prints `ok NAME` or `not ok NAME: WHY` for each of its checks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::{AcpAgent, Agent, Client, ConnectTo, Error, Result, v1, v2};
use interop_rust_peer::{on_notification, on_request};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// For one check.
const LIMIT: Duration = Duration::from_secs(20);

fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::into_internal_error)
}

/// What a conversation has shown.
#[derive(Default)]
struct Seen {
    version: u16,
    text: String,
    stop: String,
}

type Log = Arc<Mutex<Seen>>;

fn cwd() -> String {
    std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned()
}

/// The text of an update, if it is a part of the agent's message.
fn said(params: &Value) -> Option<&str> {
    let update = &params["update"];
    (update["sessionUpdate"] == "agent_message_chunk").then(|| update["content"]["text"].as_str())?
}

/// A client of version 1 that has one conversation.
struct ClientV1 {
    log: Log,
    /// The client has files, and the agent reads one.
    has_files: bool,
}

impl ConnectTo<Agent> for ClientV1 {
    async fn connect_to(self, agent: impl ConnectTo<Client>) -> Result<()> {
        use v1::ConnectionTo;
        use v1::schema::*;
        let (log, updates) = (self.log, Arc::<Mutex<String>>::default());
        let text = updates.clone();
        Client
            .v1()
            .on_receive_notification(
                async move |update: SessionNotification, _: ConnectionTo<Agent>| {
                    let update = serde_json::to_value(&update)?;
                    updates.lock().unwrap().push_str(said(&update).unwrap_or_default());
                    Ok(())
                },
                on_notification!(),
            )
            .on_receive_request(
                async move |_: ReadTextFileRequest, responder, _: ConnectionTo<Agent>| {
                    responder.respond(ReadTextFileResponse::new("from the client"))
                },
                on_request!(),
            )
            .connect_with(agent, async move |connection: ConnectionTo<Agent>| {
                // What version 2 has without a capability, as the connector compares the offers.
                let mut capabilities = json!({"session": {"configOptions": {"boolean": {}}}});
                if self.has_files {
                    capabilities["fs"] = json!({"readTextFile": true});
                }
                let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities,
                    "clientInfo": {"name": "interop-versions", "version": "1"}});
                let hello = connection.send_request(typed::<InitializeRequest>(hello)?).block_task().await?;
                let login = typed::<AuthenticateRequest>(json!({"methodId": "pass"}))?;
                connection.send_request(login).block_task().await?;
                let session = connection.send_request(NewSessionRequest::new(cwd())).block_task().await?;
                let prompt =
                    if self.has_files { format!("read {}/lines.txt", cwd()) } else { "say hello".into() };
                let prompt =
                    json!({"sessionId": session.session_id, "prompt": [{"type": "text", "text": prompt}]});
                let end = connection.send_request(typed::<PromptRequest>(prompt)?).block_task().await?;
                let mut log = log.lock().unwrap();
                log.version = if hello.protocol_version == ProtocolVersion::V1 { 1 } else { 0 };
                log.text.push_str(&text.lock().unwrap());
                log.stop = serde_json::to_value(end.stop_reason)?.as_str().unwrap_or_default().into();
                Ok(())
            })
            .await
    }
}

/// A client of version 2 that has one conversation.
struct ClientV2(Log);

impl ConnectTo<Agent> for ClientV2 {
    async fn connect_to(self, agent: impl ConnectTo<Client>) -> Result<()> {
        use v2::ConnectionTo;
        use v2::schema::*;
        let log = self.0;
        let (sender, mut updates) = mpsc::channel(1_000);
        Client
            .v2()
            .on_receive_notification(
                async move |update: UpdateSessionNotification, _: ConnectionTo<Agent>| {
                    let _ = sender.send(serde_json::to_value(&update)?).await;
                    Ok(())
                },
                on_notification!(),
            )
            .connect_with(agent, async move |connection: ConnectionTo<Agent>| {
                let hello = json!({"protocolVersion": 2, "info": {"name": "interop-versions", "version": "1"},
                    "capabilities": {}});
                let hello = connection.send_request(typed::<InitializeRequest>(hello)?).block_task().await?;
                let login = typed::<LoginAuthRequest>(json!({"methodId": "pass"}))?;
                connection.send_request(login).block_task().await?;
                let session = connection.send_request(NewSessionRequest::new(cwd())).block_task().await?;
                let prompt =
                    json!({"sessionId": session.session_id, "prompt": [{"type": "text", "text": "say hello"}]});
                connection.send_request(typed::<PromptRequest>(prompt)?).block_task().await?;
                while let Some(update) = updates.recv().await {
                    let mut log = log.lock().unwrap();
                    log.version = if hello.protocol_version == ProtocolVersion::V2 { 2 } else { 0 };
                    log.text.push_str(said(&update).unwrap_or_default());
                    if let Some(stop) = update["update"]["stopReason"].as_str() {
                        log.stop = stop.to_owned();
                        break;
                    }
                }
                Ok(())
            })
            .await
    }
}

/// Which clients the connector has.
struct Offer {
    v1: bool,
    v2: bool,
    has_files: bool,
}

/// Connects with these clients, and compares the version, the number of starts and the text.
async fn connect(agent: &[String], offer: Offer, version: u16, starts: u32) -> Result<()> {
    let Offer { v1, v2, has_files } = offer;
    let log = Log::default();
    let started = Arc::new(AtomicU32::new(0));
    let mut connector = Client.protocol_connector();
    if v1 {
        let log = log.clone();
        connector = connector.with_v1(move || ClientV1 { log: log.clone(), has_files });
    }
    if v2 {
        let log = log.clone();
        connector = connector.with_v2(move || ClientV2(log.clone()));
    }
    let (args, counted) = (agent.to_vec(), started.clone());
    let start = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        AcpAgent::from_args(args.clone()).expect("an agent has a program")
    };
    connector.connect_to(start).await?;
    let log = log.lock().unwrap();
    let expected = if has_files && version == 1 { "from the client" } else { "hello" };
    let seen = (log.version, started.load(Ordering::SeqCst), log.text.as_str(), log.stop.as_str());
    match seen == (version, starts, expected, "end_turn") {
        true => Ok(()),
        false => Err(Error::internal_error().data(json!(format!("{seen:?}")))),
    }
}

/// Runs one check. Returns whether it holds.
async fn check(name: &str, check: impl Future<Output = Result<()>>) -> bool {
    match tokio::time::timeout(LIMIT, check).await {
        Ok(Ok(())) => println!("ok {name}"),
        Ok(Err(error)) => {
            println!("not ok {name}: {}", serde_json::to_string(&error).unwrap_or_default());
            return false;
        }
        Err(_) => {
            println!("not ok {name}: timed out");
            return false;
        }
    }
    true
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let cut = args.iter().position(|arg| arg == "--").ok_or("usage: versions [--only 1] -- AGENT ARGS…")?;
    let agent = &args[cut + 1..];
    let has_v2 = cut == 0;
    let (v1, v2, both) = (
        Offer { v1: true, v2: false, has_files: true },
        Offer { v1: false, v2: true, has_files: false },
        Offer { v1: true, v2: true, has_files: false },
    );
    let files = Offer { v1: true, v2: true, has_files: true };
    let mut ok = check("version_1", connect(agent, v1, 1, 1)).await;
    if has_v2 {
        ok &= check("version_2", connect(agent, v2, 2, 1)).await;
        ok &= check("both", connect(agent, both, 2, 1)).await;
        ok &= check("both_with_files", connect(agent, files, 2, 1)).await;
    } else {
        // The connection is kept if the offer of version 1 would be the same, and made again if it
        // has files.
        ok &= check("both", connect(agent, both, 1, 1)).await;
        ok &= check("both_with_files", connect(agent, files, 1, 2)).await;
    }
    if ok { Ok(()) } else { Err("some checks failed".into()) }
}
