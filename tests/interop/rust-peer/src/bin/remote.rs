//! A client on the official Rust SDK that connects to a server: `remote URL PROMPT [SESSION]`.
//! Sends one prompt in a new session, or in SESSION, which is loaded, and grants what is asked for.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::*;
use agent_client_protocol::{Agent, Client, Error};
use agent_client_protocol_http::HttpClient;
use interop_rust_peer::{on_notification, on_request};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (url, prompt) = args.next().zip(args.next()).ok_or("usage: remote URL PROMPT [SESSION]")?;
    let session = args.next();
    let cwd = std::env::current_dir()?;
    let client = Client
        .v1()
        .name("interop-remote")
        .on_receive_notification(async move |_: SessionNotification, _| Ok(()), on_notification!())
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let chosen = request.options.first().map(|option| {
                    let id = option.option_id.0.to_string();
                    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id))
                });
                let outcome = chosen.unwrap_or(RequestPermissionOutcome::Cancelled);
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_request!(),
        );
    let http = HttpClient::with_endpoint(&url)?;
    client
        .connect_with(http, async |agent: ConnectionTo<Agent>| {
            let info = Implementation::new("interop-remote", "1.0.0");
            let initialize = InitializeRequest::new(ProtocolVersion::V1).client_info(info);
            agent.send_request(initialize).block_task().await?;
            let id = match session {
                Some(session) => {
                    let load = LoadSessionRequest::new(session.clone(), cwd);
                    agent.send_request(load).block_task().await?;
                    SessionId::new(session)
                }
                None => agent.send_request(NewSessionRequest::new(cwd)).block_task().await?.session_id,
            };
            let text = vec![ContentBlock::Text(TextContent::new(prompt))];
            agent.send_request(PromptRequest::new(id, text)).block_task().await?;
            Ok::<(), Error>(())
        })
        .await?;
    Ok(())
}
