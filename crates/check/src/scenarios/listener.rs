//! Scenarios that judge the transport of a client. The listener observes requests and frames; these
//! lead the conversation in which they are sent.

use serde_json::{Value, json};

use crate::judge::{Kind, Message};
use crate::scenarios::client::steps::{
    Turn, answer_to, end, everything, lives, open_turn, serve_rest, serve_until,
};
use crate::scenarios::scenario_table;
use crate::target::Need;
use crate::{Stage, Step, Stop, Transport};

/// The requirement of scenarios about Streamable HTTP.
const HTTP: Need = Need::Transport(Transport::Http);
/// The requirement of scenarios about WebSocket.
const WEB_SOCKET: Need = Need::Transport(Transport::WebSocket);
const LOAD: Need = Need::Act("load");

scenario_table! { Client:
    "http-client-requests": "the headers of every request of a turn",
        ["HTTP-05", "HTTP-14", "HTTP-15", "HTTP-17", "HTTP-18", "HTTP-24", "HTTP-28"] needs [HTTP] => requests;
    "http-client-events": "events with comments, names, ids and several lines of data",
        ["HTTP-32"] needs [HTTP] => survives("HTTP-32", "events with comments and several lines");
    "http-client-load": "the answer to session/load on the stream of the connection",
        ["HTTP-13"] needs [HTTP, LOAD] => load;
    "http-client-either-stream": "messages of the session on its stream and on that of the connection, in turn",
        ["HTTP-40"] needs [HTTP] => either_stream;
    "ws-client-messages": "the upgrade and the frames of a turn",
        ["WS-01", "WS-03", "WS-04", "WS-10"] needs [WEB_SOCKET] => messages;
    "ws-client-binary": "binary messages between the others",
        ["WS-05"] needs [WEB_SOCKET] => survives("WS-05", "binary messages");
    "ws-client-ping": "a ping before every message", ["WS-08"] needs [WEB_SOCKET] => ping;
    "ws-client-fragments": "every message in three frames, with a ping between them",
        ["WS-11"] needs [WEB_SOCKET] => survives("WS-11", "messages in three frames");
    "ws-client-close": "the closing handshake during a turn", ["WS-12"] needs [WEB_SOCKET] => close;
}

/// A turn with an update and a request of the agent.
async fn turn(stage: &mut Stage) -> Result<Turn, Stop> {
    let turn = open_turn(stage).await?;
    stage.say(&turn.session, "hello").await?;
    let call =
        json!({ "toolCallId": "call-1", "title": "Remove a file", "kind": "delete", "status": "pending" });
    let options = json!([
        { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ]);
    let question = stage.ask_permission(&turn.session, call, options).await?;
    // A person may have to decide; the turn goes on without.
    match answer_to(stage, &question).await {
        Ok(_) | Err(Stop::Deadline(_)) => Ok(turn),
        Err(stop) => Err(stop),
    }
}

async fn requests(stage: &mut Stage) -> Step {
    let turn = turn(stage).await?;
    end(stage, &turn).await?;
    stage.closed().await
}

async fn messages(stage: &mut Stage) -> Step {
    requests(stage).await
}

/// The client takes part in a turn over a transport that deviates from the usual.
async fn survives(stage: &mut Stage, rule: &'static str, what: &str) -> Step {
    let turn = match turn(stage).await {
        Ok(turn) => turn,
        Err(stop @ (Stop::Deadline(_) | Stop::PeerGone)) => {
            stage.fail(rule, format!("the client did not get over {what}: {stop}"));
            return Err(stop);
        }
        Err(stop) => return Err(stop),
    };
    lives(stage, &turn, &[rule], what).await?;
    let anonymous = |message: &Message| matches!(&message.kind, Kind::Response { id: Value::Null, .. });
    if stage.received(0).iter().any(|message| anonymous(message)) {
        stage.fail(rule, format!("the client refuses {what} as messages"));
    }
    end(stage, &turn).await
}

/// Requests of the session, every second one on the stream of the connection.
async fn either_stream(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    if !turn.answers {
        return Err(Stop::NotExercised("the client does not answer unknown requests".to_owned()));
    }
    for _ in 0..2 {
        let probe = stage.request("_attache/probe", json!({ "sessionId": turn.session })).await?;
        match answer_to(stage, &probe).await {
            Ok(_) => stage.pass("HTTP-40"),
            Err(stop @ (Stop::Deadline(_) | Stop::PeerGone)) => {
                stage.fail(
                    "HTTP-40",
                    "a request of the session on the stream of the connection is not answered",
                );
                return Err(stop);
            }
            Err(stop) => return Err(stop),
        }
    }
    end(stage, &turn).await
}

async fn ping(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    if !stage.observes("WS-08").await {
        stage.fail("WS-08", "a ping is not answered");
    }
    end(stage, &turn).await
}

async fn load(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    let asked = serve_until(stage, "session/load").await?;
    stage.reply(&asked, json!({})).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    let went_on = said.iter().any(|message| message.method() == Some("session/prompt"));
    stage.check(
        "HTTP-13",
        went_on,
        "the client does not go on after the answer to session/load on the stream of the connection",
    );
    Ok(())
}

async fn close(stage: &mut Stage) -> Step {
    let _turn = open_turn(stage).await?;
    stage.close_input();
    if !stage.observes("WS-12").await {
        stage.fail("WS-12", "the client does not answer a close frame");
    }
    Ok(())
}
