//! Agents behind a real server, by each transport.

use attache::agent::{Agent, AgentSession, OpenedSession, Turn};
use attache::client::{AgentHandle, Client, Event};
use attache::http::client::HttpClient;
use attache::http::client::remote::{Options, Transport, connect};
use attache::http::server::{Options as ServerOptions, Server};
use attache::wire::v1::PermissionOptionKind::AllowOnce;
use attache::wire::v1::SessionUpdate;
use attache::{Error, Prompt, Reason, Result, StopReason};

const LARGE: usize = 1 << 20;

struct Worker;

impl AgentSession for Worker {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        match &*prompt.text() {
            "ask" => {
                let allowed = turn.question("Run it?").ask().await?.is_allowed();
                turn.say(if allowed { "allowed" } else { "denied" }).await?;
            }
            "large" => turn.say("ä".repeat(LARGE / 2)).await?,
            "wait" => {
                turn.say("waiting").await?;
                turn.until_cancelled(std::future::pending::<()>()).await?;
            }
            "many" => {
                for number in 0..500 {
                    turn.say(format!("{number} ")).await?;
                }
            }
            text => turn.say(text).await?,
        }
        Ok(StopReason::EndTurn)
    }
}

fn agent() -> Agent {
    Agent::new(|_| async { Ok(OpenedSession::new(Worker)) }).load(|request| async move {
        for number in 0..50 {
            request.session.send(SessionUpdate::agent_message(format!("{number} "))).await?;
        }
        Ok(Worker)
    })
}

/// Runs a prompt, allows everything, and returns the text.
async fn run(session: &mut attache::client::Session, prompt: &str) -> (String, StopReason) {
    let mut turn = session.prompt(prompt).await.unwrap();
    let mut text = String::new();
    while let Some(event) = turn.next().await.unwrap() {
        match event {
            Event::Text(part) => {
                text.push_str(&part);
                if text == "waiting" {
                    turn.cancel();
                }
            }
            Event::Permission(ask) => ask.choose_kind(AllowOnce),
            _ => {}
        }
    }
    (text, turn.stop_reason().unwrap())
}

async fn conversation(agent: &AgentHandle) {
    let mut session = agent.new_session("/work").await.unwrap();
    assert_eq!(run(&mut session, "ask").await, ("allowed".to_owned(), StopReason::EndTurn));
    let (large, _) = run(&mut session, "large").await;
    assert!(large.len() == LARGE && large.chars().all(|c| c == 'ä'));
    let numbers: String = (0..500).map(|number| format!("{number} ")).collect();
    assert_eq!(run(&mut session, "many").await.0, numbers);
    assert_eq!(run(&mut session, "wait").await.1, StopReason::Cancelled);
    let mut second = agent.new_session("/work").await.unwrap();
    assert_eq!(run(&mut second, "hello").await.0, "hello");
    assert_eq!(run(&mut session, "again").await.0, "again");
    let mut loading = agent.loader().unwrap().load("old", "/work").await.unwrap();
    let mut history = String::new();
    while let Some(event) = loading.next().await.unwrap() {
        if let Event::Text(part) = event {
            history.push_str(&part);
        }
    }
    let expected: String = (0..50).map(|number| format!("{number} ")).collect();
    assert_eq!(history, expected);
    let mut loaded = loading.finish().await.unwrap();
    assert_eq!(run(&mut loaded, "hello").await.0, "hello");
}

#[tokio::test]
async fn a_conversation_by_each_transport() {
    let server = Server::bind("127.0.0.1:0", ServerOptions::default()).await.unwrap();
    let url = server.url();
    let origin = url.trim_end_matches("/acp").to_owned();
    let serving = tokio::spawn(agent().serve_clients(server));
    // Without options the environment decides about proxies, never for this machine.
    conversation(&Client::new().connect(url.as_str()).await.unwrap()).await;
    let options = Options { client: Some(HttpClient::new(None).unwrap()), ..Options::default() };
    options.transports.insert(&origin, Transport::StreamableHttp);
    for http2_prior_knowledge in [false, true] {
        let options = Options { http2_prior_knowledge, ..options.clone() };
        let agent = Client::new().connect(connect(&url, &options).await.unwrap()).await.unwrap();
        conversation(&agent).await;
    }
    serving.abort();
}

#[tokio::test]
async fn a_server_that_ends_closes_the_connection() {
    let server = Server::bind("127.0.0.1:0", ServerOptions::default()).await.unwrap();
    let url = server.url();
    let options = Options { client: Some(HttpClient::new(None).unwrap()), ..Options::default() };
    options.transports.insert(url.trim_end_matches("/acp"), Transport::StreamableHttp);
    let serving = tokio::spawn(agent().serve_clients(server));
    let agent = Client::new().connect(connect(&url, &options).await.unwrap()).await.unwrap();
    let mut session = agent.new_session("/work").await.unwrap();
    let mut turn = session.prompt("wait").await.unwrap();
    while !matches!(turn.next().await.unwrap().unwrap(), Event::Text(_)) {}
    serving.abort();
    let error = loop {
        match turn.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the turn has no end"),
            Err(error) => break error,
        }
    };
    let Error::Closed(closed) = error else { panic!("{error:?}") };
    assert!(matches!(&closed.reason, Reason::Io(_)), "{closed}");
}

#[tokio::test]
async fn urls_of_nothing_are_errors() {
    for url in ["ftp://host/acp", "ws://127.0.0.1:1/acp"] {
        assert!(matches!(Client::new().connect(url).await, Err(Error::Io(_))), "{url}");
    }
}
