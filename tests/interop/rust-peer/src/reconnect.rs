//! The connection is cut: between turns, during a turn, and after a prompt whose answer is lost.
//!
//! The SDK does not connect again, and the end of a connection may end everything that runs on it:
//! each part has a connection of its own, and the session is resumed on it.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::*;
use agent_client_protocol::{Agent, Error, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::connect;
use crate::host::Host;
use crate::scenarios::{Scenarios, See};

pub const NAME: &str = "reconnect";

/// Sends a command to the proxy before the server, and waits until it is in force.
async fn proxy(command: &str) -> Result<()> {
    let exchange = async {
        let control = std::env::var("ATTACHE_INTEROP_CUT").map_err(std::io::Error::other)?;
        let mut control = TcpStream::connect(control).await?;
        control.write_all(format!("{command}\n").as_bytes()).await?;
        control.read_to_end(&mut Vec::new()).await
    };
    exchange.await.map(drop).map_err(Error::into_internal_error)
}

fn outcome<T>(result: Result<T>) -> &'static str {
    if result.is_ok() { "no error" } else { "error" }
}

/// Introduces this client on a new connection.
async fn introduce(cx: ConnectionTo<Agent>, host: &Host) -> Result<Scenarios> {
    cx.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
    cx.send_request(AuthenticateRequest::new("pass")).block_task().await?;
    Ok(Scenarios::new(cx, host.clone()))
}

pub async fn run(agent: &[String], host: &Host, out: &See) -> Result<()> {
    let mut id = None;
    let part = connect(agent, host, async |cx: ConnectionTo<Agent>| {
        let scenarios = introduce(cx, host).await?;
        let session = scenarios.fresh().await?;
        scenarios.text(&session, "say one").await?;
        id = Some(session);
        proxy("cut").await
    });
    let first = part.await;
    let Some(id) = id else { return first };

    let part = connect(agent, host, async |cx: ConnectionTo<Agent>| {
        let scenarios = introduce(cx, host).await?;
        scenarios.resume_again(&id).await?;
        out.see("between", scenarios.text(&id, "count").await?);
        let (ended, cut) = tokio::join!(scenarios.turn(&id, "forever"), async {
            scenarios.ticks(&id, 3).await;
            proxy("cut").await
        });
        cut.and(ended)
    });
    out.see("during", outcome(part.await));

    let part = connect(agent, host, async |cx: ConnectionTo<Agent>| {
        let scenarios = introduce(cx, host).await?;
        scenarios.resume_again(&id).await?;
        out.see("after", scenarios.text(&id, "count").await?);
        proxy("cut at end_turn").await?;
        scenarios.turn(&id, "say two").await
    });
    out.see("lost", outcome(part.await));

    connect(agent, host, async |cx: ConnectionTo<Agent>| {
        let scenarios = introduce(cx, host).await?;
        scenarios.resume_again(&id).await?;
        out.see("once", scenarios.text(&id, "count").await?);
        Ok(())
    })
    .await
}
