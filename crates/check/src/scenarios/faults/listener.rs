//! Faults of a server, and what a remote client must still do afterwards.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use serde_json::json;

use crate::remote::{CUT_AT, FAULT_METHOD};
use crate::scenarios::client::steps::{
    NEW, Turn, answer_to, end, everything, first_prompt, lives, new_session, open_turn, prompted,
};
use crate::scenarios::scenario_table;
use crate::target::Need;
use crate::{Stage, Step, Stop, Transport};

const HTTP: Need = Need::Transport(Transport::Http);
const WEB_SOCKET: Need = Need::Transport(Transport::WebSocket);

scenario_table! { Client, faults:
    "http-client-fault-cut": "streams that end at any byte of an event, during a turn",
        ["HTTP-41"] needs [HTTP] => cut("HTTP-41");
    "ws-client-fault-cut": "a WebSocket that ends at any byte of a frame, during a turn",
        ["WS-19"] needs [WEB_SOCKET] => cut("WS-19");
    "http-client-fault-busy": "a prompt that is refused with 429 and Retry-After", ["HTTP-42"] needs [HTTP] => busy;
    "http-client-fault-refused-stream": "a session whose first streams are refused with 404",
        ["HTTP-43"] needs [HTTP] => refused_stream;
    "http-client-fault-late-accept": "a prompt whose 202 comes after a request of the agent",
        ["HTTP-44"] needs [HTTP] => late_accept;
    "http-client-fault-pieces": "an event in pieces that end within a character",
        ["HTTP-45"] needs [HTTP] => pieces;
    "http-client-fault-ids": "responses to requests that were never sent", ["RPC-14"] needs [HTTP] => unknown_ids;
    "ws-client-fault-ids": "responses to requests that were never sent",
        ["RPC-14"] needs [WEB_SOCKET] => unknown_ids;
    "http-client-fault-session": "updates of another session on the stream of a session",
        ["SESS-32"] needs [HTTP] => unknown_session;
    "ws-client-fault-session": "updates of a session that does not exist",
        ["SESS-32"] needs [WEB_SOCKET] => unknown_session;
    "ws-client-fault-redirect": "an upgrade that is redirected", ["WS-22"] needs [WEB_SOCKET] => redirect;
    "ws-client-fault-oversized": "the head of a frame of a terabyte",
        ["WS-21"] needs [WEB_SOCKET] => wrong_frame("WS-21", "a frame of a terabyte");
    "ws-client-fault-compressed": "a compressed frame although nothing was agreed on",
        ["WS-20"] needs [WEB_SOCKET] => wrong_frame("WS-20", "a frame with a reserved bit");
    "ws-client-fault-masked": "a masked frame",
        ["WS-20"] needs [WEB_SOCKET] => wrong_frame("WS-20", "a masked frame");
    "ws-client-fault-opcode": "a frame with an unknown opcode",
        ["WS-20"] needs [WEB_SOCKET] => wrong_frame("WS-20", "a frame with an unknown opcode");
}

/// The connection is cut under the response to a prompt, which waits for a client that comes again.
async fn cut(stage: &mut Stage, rule: &'static str) -> Step {
    let turn = open_turn(stage).await?;
    let before = stage.mark();
    // The trace shows the place.
    let cut_at = RandomState::new().build_hasher().finish() % 1000;
    stage.notify(FAULT_METHOD, turn.with(json!({ CUT_AT: cut_at }))).await?;
    end(stage, &turn).await?;
    loop {
        match stage.next().await {
            // It may have been under way before.
            Ok(_) if stage.mark() == before => {}
            Ok(_) | Err(Stop::PeerGone) => {
                stage.pass(rule);
                return Ok(());
            }
            Err(stop @ Stop::Deadline(_)) => {
                stage.fail(
                    rule,
                    "the client was cut off during a turn and waits: it neither connects again nor goes on nor ends",
                );
                return Err(stop);
            }
            Err(stop) => return Err(stop),
        }
    }
}

/// The client must not take part in a conversation with a server that sends such frames.
async fn wrong_frame(stage: &mut Stage, rule: &'static str, what: &str) -> Step {
    let turn = open_turn(stage).await?;
    stage.notify(FAULT_METHOD, turn.with(json!({}))).await?;
    if !stage.observes(rule).await {
        stage.fail(rule, format!("{what} does not end the connection"));
    }
    Ok(())
}

/// The first prompt is refused by the transport, so the agent gets the second.
async fn busy(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    new_session(stage, NEW, json!({})).await?;
    match first_prompt(stage, NEW).await {
        // The transport has seen when it came.
        Ok(turn) => end(stage, &turn).await,
        // It reports the failure and ends.
        Err(Stop::PeerGone) => {
            stage.pass("HTTP-42");
            Ok(())
        }
        Err(stop @ Stop::Deadline(_)) => {
            let why = "after status 429 the client neither sends the prompt again nor ends";
            stage.fail("HTTP-42", why);
            Err(stop)
        }
        Err(stop) => Err(stop),
    }
}

async fn refused_stream(stage: &mut Stage) -> Step {
    let what = "a stream of the session that was refused with 404";
    let turn = survive_until_prompt(stage, "HTTP-43", what).await?;
    stage.say(&turn.session, "hello").await?;
    lives(stage, &turn, &["HTTP-43"], what).await?;
    end(stage, &turn).await
}

/// Opens a turn, whose failure breaks the rule.
async fn survive_until_prompt(stage: &mut Stage, rule: &'static str, what: &str) -> Result<Turn, Stop> {
    let turn = open_turn(stage).await;
    if let Err(stop @ (Stop::Deadline(_) | Stop::PeerGone)) = &turn {
        stage.fail(rule, format!("the client did not get over {what}: {stop}"));
    }
    turn
}

/// The response to the prompt's POST waits until the client has answered a request.
async fn late_accept(stage: &mut Stage) -> Step {
    const RULE: &str = "HTTP-44";
    stage.accept(everything()).await?;
    new_session(stage, NEW, json!({})).await?;
    let (prompt, _) = prompted(stage).await?;
    let turn = Turn { session: NEW.to_owned(), prompt, answers: true };
    let probe = stage.request("_attache/probe", turn.with(json!({}))).await?;
    let answer = answer_to(stage, &probe).await;
    stage.notify(FAULT_METHOD, turn.with(json!({}))).await?;
    match answer {
        Ok(_) => stage.pass(RULE),
        Err(stop @ Stop::Deadline(_)) => {
            if answer_to(stage, &probe).await.is_err() {
                let why = "the client does not answer unknown requests, so silence cannot be judged";
                return Err(Stop::NotExercised(why.to_owned()));
            }
            stage.fail(RULE, "an answer waits for the response to the POST of the prompt");
            return Err(stop);
        }
        Err(stop) => return Err(stop),
    }
    end(stage, &turn).await
}

async fn pieces(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    for text in ["Größe", "\u{1f600}\u{20ac}"] {
        stage.say(&turn.session, text).await?;
    }
    let what = "an event in pieces that end within a character";
    if !turn.answers {
        return lives(stage, &turn, &["HTTP-45"], what).await;
    }
    // On the same stream.
    let probe = stage.request("_attache/probe", turn.with(json!({}))).await?;
    match answer_to(stage, &probe).await {
        Ok(_) => stage.pass("HTTP-45"),
        Err(stop @ (Stop::Deadline(_) | Stop::PeerGone)) => {
            stage.fail("HTTP-45", format!("the client did not get over {what}: {stop}"));
            return Err(stop);
        }
        Err(stop) => return Err(stop),
    }
    end(stage, &turn).await
}

async fn unknown_ids(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    stage.answer(&json!("nobody"), json!({ "stopReason": "end_turn" })).await?;
    stage.answer_error(&json!(987_654), -32603, "to nobody").await?;
    lives(stage, &turn, &["RPC-14"], "responses to requests that it did not send").await?;
    end(stage, &turn).await
}

async fn unknown_session(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    stage.say("sess-attache-nowhere", "hello").await?;
    lives(stage, &turn, &["SESS-32"], "an update of a session that it does not know").await?;
    end(stage, &turn).await
}

/// Most clients end, because they cannot connect.
async fn redirect(stage: &mut Stage) -> Step {
    match stage.until_asked("initialize").await {
        Err(Stop::PeerGone | Stop::Deadline(_)) => {
            stage.pass("WS-22");
            Ok(())
        }
        // The transport has seen the second request.
        outcome => outcome.map(drop),
    }
}
