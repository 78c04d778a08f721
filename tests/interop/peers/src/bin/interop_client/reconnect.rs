//! The connection is cut: between turns, during a turn, and after a prompt whose answer is lost.

use attache::client::{Event, Session};
use attache::{Error, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::scenarios::{See, said, turn};

/// Prompts after a cut, each of which may still meet the old connection.
const TRIES: usize = 5;

/// Sends a command to the proxy and waits until it is in force.
async fn proxy(command: &str) -> Result<()> {
    let control = std::env::var("ATTACHE_INTEROP_CUT")
        .map_err(|_| Error::internal("ATTACHE_INTEROP_CUT does not name the proxy"))?;
    let mut control = TcpStream::connect(control).await?;
    control.write_all(format!("{command}\n").as_bytes()).await?;
    control.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// The turns that the agent has kept. The SDK makes the connection again and resumes the session.
async fn count(session: &mut Session) -> Result<String> {
    let mut tries = 0;
    loop {
        tries += 1;
        match said(session, "count").await {
            Err(error) if tries < TRIES && is_cut(&error) => {}
            other => return other,
        }
    }
}

/// Whether an error says that the connection was cut, or that it broke under a message.
fn is_cut(error: &Error) -> bool {
    let text = error.to_string();
    ["the connection was cut", "the connection broke"].iter().any(|part| text.contains(part))
}

fn outcome<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => "no error".to_owned(),
        Err(error) if is_cut(&error) => "error".to_owned(),
        Err(error) => format!("another error: {error}"),
    }
}

/// Runs until it is cut.
async fn forever(session: &mut Session) -> Result<()> {
    let mut turn = session.prompt("forever").await?;
    let mut ticks = 0;
    while let Some(event) = turn.next().await? {
        ticks += usize::from(matches!(event, Event::Text(_)));
        if ticks == 3 {
            proxy("cut").await?;
        }
    }
    Ok(())
}

pub(crate) async fn run(session: &mut Session, out: &See<'_>) -> Result<()> {
    turn(session, "say one").await?;
    proxy("cut").await?;
    out.see("between", count(session).await?);
    out.see("during", outcome(forever(session).await));
    out.see("after", count(session).await?);
    proxy("cut at end_turn").await?;
    out.see("lost", outcome(turn(session, "say two").await));
    out.see("once", count(session).await?);
    Ok(())
}
