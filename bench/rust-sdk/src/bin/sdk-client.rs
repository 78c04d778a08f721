//! The bench client on the official Rust SDK: one typed handler for updates, or with `sess` its own
//! session handles.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::util::MatchDispatch;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, InitializeRequest, NewSessionRequest,
    PromptRequest, ReadTextFileRequest, ReadTextFileResponse, SessionNotification, SessionUpdate,
};
use agent_client_protocol::v1::{ConnectionTo, SessionMessage};
use agent_client_protocol::{AcpAgent, Agent, Client, Result};
use bench_probe::{Job, Meter, Report, Seen, proc};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[tokio::main]
async fn main() {
    let report = match Job::from_args() {
        Ok(job) => run(job).await.map_err(|error| error.to_string()),
        Err(why) => Err(why),
    };
    match report {
        Ok(line) => println!("{line}"),
        Err(why) => println!("{}", Report::failure("client", &why)),
    }
}

async fn run(job: Job) -> Result<String> {
    let agent = AcpAgent::from_args(job.agent.clone())?;
    let seen = Arc::new(Seen::default());
    let counted = seen.clone();
    let jitter = job.mode == "jitter";
    if job.mode == "sess" {
        // A handler for the whole connection would take the updates before the session sees them.
        return Client
            .v1()
            .connect_with(agent, async move |connection| {
                initialize(&connection).await?;
                with_sessions(&job, &connection, &seen).await
            })
            .await;
    }
    Client
        .v1()
        .on_receive_notification(
            async move |update: SessionNotification, _connection| {
                if let SessionUpdate::AgentMessageChunk(chunk) = &update.update
                    && let ContentBlock::Text(block) = &chunk.content
                {
                    if jitter {
                        tokio::time::sleep(Job::jitter(&block.text)).await;
                    }
                    counted.text(&block.text);
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |_: ReadTextFileRequest, responder, _connection| {
                responder.respond(ReadTextFileResponse::new("hello from the file"))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(agent, async move |connection| {
            initialize(&connection).await?;
            with_handler(&job, &connection, &seen).await
        })
        .await
}

async fn initialize(agent: &ConnectionTo<Agent>) -> Result<()> {
    let files = FileSystemCapabilities::new().read_text_file(true);
    let hello =
        InitializeRequest::new(ProtocolVersion::V1).client_capabilities(ClientCapabilities::new().fs(files));
    agent.send_request(hello).block_task().await?;
    Ok(())
}

async fn with_handler(job: &Job, agent: &ConnectionTo<Agent>, seen: &Seen) -> Result<String> {
    let open = || agent.send_request(NewSessionRequest::new("/tmp")).block_task();
    if job.mode == "rtt" {
        let mut times = Vec::with_capacity(job.n());
        let meter = Meter::start();
        for _ in 0..job.n() {
            let start = Instant::now();
            open().await?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        return Ok(meter.stop(job, seen).times(&mut times).finish());
    }
    let session = open().await?.session_id;
    let meter = Meter::start();
    agent.send_request(PromptRequest::new(session, vec![job.prompt().into()])).block_task().await?;
    let at_response = seen.handled();
    while job.mode != "call" && seen.handled() < job.n() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(meter.stop(job, seen).number("handled_at_response", at_response).finish())
}

async fn with_sessions(job: &Job, agent: &ConnectionTo<Agent>, seen: &Seen) -> Result<String> {
    let me = std::process::id();
    let before = proc::rss(me);
    let opening = Instant::now();
    let mut open = Vec::new();
    for _ in 0..job.sessions() {
        open.push(agent.build_session("/tmp").block_task().start_session().await?.session);
    }
    let each = opening.elapsed().as_secs_f64() * 1e6 / open.len() as f64;
    let held = proc::rss(me);
    let middle = open.len() / 2;
    let session = &mut open[middle];
    let meter = Meter::start();
    session.send_prompt(job.prompt())?;
    loop {
        match session.read_update().await? {
            SessionMessage::Message(message) => {
                MatchDispatch::new(message.into_raw())
                    .if_notification(async |update: SessionNotification| {
                        if let SessionUpdate::AgentMessageChunk(chunk) = &update.update
                            && let ContentBlock::Text(block) = &chunk.content
                        {
                            seen.text(&block.text);
                        }
                        Ok(())
                    })
                    .await
                    .otherwise_ignore()?;
            }
            SessionMessage::PromptResponse(response) => {
                response?;
                break;
            }
            _ => {}
        }
    }
    Ok(meter
        .stop(job, seen)
        .number("sessions", job.sessions())
        .fixed("open_us_per", each, 1)
        .number("rss_1_kb", before as usize)
        .number("rss_s_kb", held as usize)
        .finish())
}
