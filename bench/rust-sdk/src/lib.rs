//! The bench agent on the official Rust SDK, for standard streams and for servers, written the way
//! its README and examples write agents: multi-threaded runtime, one typed handler per method, the
//! turn in a spawned task.

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse,
    NewSessionRequest, NewSessionResponse, PermissionOption, PermissionOptionKind, PromptRequest,
    PromptResponse, ReadTextFileRequest, RequestPermissionRequest, SessionNotification, SessionUpdate,
    StopReason, TextContent, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::{Agent, Client, ConnectTo, Result};
use bench_probe::{Order, chunk, padding, stamp};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The agent; its sessions are `s-1`, `s-2`, ….
pub fn agent() -> impl ConnectTo<Client> {
    static SESSIONS: AtomicU64 = AtomicU64::new(0);
    Agent
        .v1()
        .name("bench")
        .on_receive_request(
            async move |hello: InitializeRequest, responder, _connection| {
                let capabilities = AgentCapabilities::new();
                responder
                    .respond(InitializeResponse::new(hello.protocol_version).agent_capabilities(capabilities))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _connection| {
                let number = SESSIONS.fetch_add(1, Ordering::Relaxed) + 1;
                responder.respond(NewSessionResponse::new(format!("s-{number}")))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |prompt: PromptRequest, responder, connection: ConnectionTo<Client>| {
                let client = connection.clone();
                connection.spawn(async move {
                    turn(&client, &prompt).await?;
                    responder.respond(PromptResponse::new(StopReason::EndTurn))
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |_: CancelNotification, _connection| Ok(()),
            agent_client_protocol::on_receive_notification!(),
        )
}

async fn turn(client: &ConnectionTo<Client>, prompt: &PromptRequest) -> Result<()> {
    let order = match prompt.prompt.first() {
        Some(ContentBlock::Text(block)) => Order::parse(&block.text),
        _ => Order::Nothing,
    };
    let session = || prompt.session_id.clone();
    let update = |i, padding: &str| {
        let text = ContentBlock::Text(TextContent::new(chunk(i, padding)));
        SessionNotification::new(session(), SessionUpdate::AgentMessageChunk(ContentChunk::new(text)))
    };
    match order {
        // Sending does not wait, nor can an author make it wait: the plain loop is what one writes.
        Order::Stream { n, len } => {
            let padding = padding(len);
            for i in 0..n {
                client.send_notification(update(i, &padding))?;
            }
        }
        Order::Streamy { n, len } => {
            let padding = padding(len);
            for i in 0..n {
                client.send_notification(update(i, &padding))?;
                tokio::task::yield_now().await;
            }
        }
        Order::Read { n } => {
            for _ in 0..n {
                let request = ReadTextFileRequest::new(session(), "/tmp/x.txt");
                client.send_request(request).block_task().await?;
            }
        }
        Order::Perm { n } => {
            for _ in 0..n {
                let mut fields = ToolCallUpdateFields::new();
                fields.title = Some("edit".into());
                let options = vec![
                    PermissionOption::new("a", "Allow", PermissionOptionKind::AllowOnce),
                    PermissionOption::new("r", "Reject", PermissionOptionKind::RejectOnce),
                ];
                let call = ToolCallUpdate::new("t1", fields);
                let request = RequestPermissionRequest::new(session(), call, options);
                client.send_request(request).block_task().await?;
            }
        }
        Order::Paced { n, ms } => {
            let mut clock = tokio::time::interval(Duration::from_millis(ms));
            for _ in 0..n {
                clock.tick().await;
                let text = ContentBlock::Text(TextContent::new(stamp()));
                let chunk = SessionUpdate::AgentMessageChunk(ContentChunk::new(text));
                client.send_notification(SessionNotification::new(session(), chunk))?;
            }
        }
        Order::Nothing => {}
    }
    Ok(())
}
