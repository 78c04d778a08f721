//! The interop client on the official Rust SDK: `client [--skip a,b] -- AGENT ARGS…`.
//! Runs every scenario of ../../../scenarios.json against the agent and prints what it saw, one JSON line per
//! observation.

#[path = "../host.rs"]
mod host;
#[path = "../scenarios.rs"]
mod scenarios;

use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::*;
use agent_client_protocol::{AcpAgent, Agent, Client};
use host::Host;
use interop_rust_peer::{Ping, Reverse};
use scenarios::{NAMES, Scenarios, See};
use serde_json::json;

macro_rules! on_request {
    () => {
        agent_client_protocol::on_receive_request!()
    };
}
macro_rules! on_notification {
    () => {
        agent_client_protocol::on_receive_notification!()
    };
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let cut = args.iter().position(|a| a == "--").ok_or("usage: client [--skip a,b] -- AGENT ARGS…")?;
    let skip: Vec<String> = match &args[..cut] {
        [flag, names] if flag == "--skip" => names.split(',').map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let agent = AcpAgent::from_args(args[cut + 1..].to_vec())?;
    let host = Host::default();
    let [h1, h2, h3, h4, h5, h6, h7, h8, h9, h10, h11, h12] = std::array::from_fn(|_| host.clone());
    Client
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
        )
        .connect_with(agent, async move |cx: ConnectionTo<Agent>| {
            let scenarios = Scenarios::new(cx, host);
            for name in NAMES.iter().filter(|name| !skip.iter().any(|s| s == *name)) {
                let see = See(name);
                match tokio::time::timeout(Duration::from_secs(20), scenarios.run(name, &see)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        println!("{}", json!({"scenario": name, "error": format!("{error:?}")}))
                    }
                    Err(_) => println!("{}", json!({"scenario": name, "error": "timed out"})),
                }
            }
            Ok(())
        })
        .await?;
    // The SDK has ended the agent's process group by now; it does not tell how the agent ended.
    println!("{}", json!({"end": null}));
    Ok(())
}
