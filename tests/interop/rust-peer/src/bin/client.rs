//! The interop client on the official Rust SDK: `client [--skip a,b] -- AGENT ARGS…|URL`. Runs
//! every scenario of ../../../scenarios.json against the agent and prints what it saw, one JSON
//! line per observation.

#[path = "../host.rs"]
mod host;
#[path = "../reconnect.rs"]
mod reconnect;
#[path = "../scenarios.rs"]
mod scenarios;

use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::*;
use agent_client_protocol::{AcpAgent, Agent, Client, Error};
use agent_client_protocol_http::HttpClient;
use host::Host;
use interop_rust_peer::{Ping, Reverse, on_notification, on_request};
use scenarios::{NAMES, Scenarios, See};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let cut = args.iter().position(|a| a == "--").ok_or("usage: client [--skip a,b] -- AGENT ARGS…")?;
    let skip: Vec<String> = match &args[..cut] {
        [flag, names] if flag == "--skip" => names.split(',').map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let agent = args[cut + 1..].to_vec();
    let host = Host::default();
    let is_wanted = |name: &str| !skip.iter().any(|skipped| skipped == name);
    if NAMES.iter().any(|name| is_wanted(name)) {
        let h = host.clone();
        connect(&agent, &host, async |cx: ConnectionTo<Agent>| {
            let scenarios = Scenarios::new(cx, h);
            for name in NAMES.iter().filter(|name| is_wanted(name)) {
                report(name, scenarios.run(name, &See(name))).await;
            }
            Ok(())
        })
        .await?;
    }
    if is_wanted(reconnect::NAME) {
        report(reconnect::NAME, reconnect::run(&agent, &host, &See(reconnect::NAME))).await;
    }
    // The SDK has ended the agent's process group by now; it does not tell how the agent ended.
    println!("{}", json!({"end": null}));
    Ok(())
}

/// How long a scenario may take. A build without optimization reads a long event slowly.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a scenario, and prints why it broke off if it did.
async fn report(name: &str, scenario: impl Future<Output = Result<(), Error>>) {
    match tokio::time::timeout(LIMIT, scenario).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => println!("{}", json!({"scenario": name, "error": format!("{error:?}")})),
        Err(_) => println!("{}", json!({"scenario": name, "error": "timed out"})),
    }
}

/// Connects to an agent and runs something on the connection.
pub async fn connect<T>(
    agent: &[String],
    host: &Host,
    run: impl AsyncFnOnce(ConnectionTo<Agent>) -> Result<T, Error>,
) -> Result<T, Error> {
    let [h1, h2, h3, h4, h5, h6, h7, h8, h9, h10, h11, h12] = std::array::from_fn(|_| host.clone());
    let client = Client
        .v1()
        .name("interop-client")
        .on_receive_notification(
            async move |n: SessionNotification, _| {
                h1.record(&n.session_id.0, host::brief(&serde_json::to_value(&n.update)?));
                Ok(())
            },
            on_notification!(),
        )
        .on_receive_request(
            async move |r: RequestPermissionRequest, responder, cx: ConnectionTo<Agent>| {
                responder.respond(h2.permission(&cx, r)?)
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: ReadTextFileRequest, responder, _| responder.respond_with_result(h3.read(&r)),
            on_request!(),
        )
        .on_receive_request(
            async move |r: WriteTextFileRequest, responder, _| responder.respond_with_result(h4.write(&r)),
            on_request!(),
        )
        .on_receive_request(
            async move |r: CreateTerminalRequest, responder, _| responder.respond_with_result(h5.create(&r)),
            on_request!(),
        )
        .on_receive_request(
            async move |r: TerminalOutputRequest, responder, _| responder.respond_with_result(h6.output(&r)),
            on_request!(),
        )
        .on_receive_request(
            async move |r: WaitForTerminalExitRequest, responder, cx: ConnectionTo<Agent>| {
                let h = h7.clone();
                cx.spawn(async move { responder.respond_with_result(h.wait(&r).await) })
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: KillTerminalRequest, responder, _| {
                responder.respond_with_result(h8.kill(&r.terminal_id).map(|()| KillTerminalResponse::new()))
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: ReleaseTerminalRequest, responder, _| {
                responder
                    .respond_with_result(h9.release(&r.terminal_id).map(|()| ReleaseTerminalResponse::new()))
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: CreateElicitationRequest, responder, _| {
                responder.respond_with_result(h10.elicitation(&r))
            },
            on_request!(),
        )
        .on_receive_notification(
            async move |n: CompleteElicitationNotification, _| {
                h11.record("", format!("elicitation_complete:{}", n.elicitation_id.0));
                Ok(())
            },
            on_notification!(),
        )
        .on_receive_request(
            async move |r: Reverse, responder, _| {
                responder.respond(json!({"text": r.text.chars().rev().collect::<String>()}))
            },
            on_request!(),
        )
        .on_receive_notification(
            async move |n: Ping, _| {
                h12.record("", format!("ping:{}", n.n));
                Ok(())
            },
            on_notification!(),
        );
    match agent {
        [url] if url.contains("://") => {
            let http = HttpClient::with_endpoint(url).map_err(Error::into_internal_error)?;
            client.connect_with(http, run).await
        }
        _ => client.connect_with(AcpAgent::from_args(agent.to_vec())?, run).await,
    }
}
