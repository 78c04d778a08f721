//! Messages on streams: which stream a message takes, and how long streams live.

use serde_json::{Value, json};
use tokio::time::{Duration, sleep, timeout};

use super::HTTP;
use super::client::{Client, Events, send};
use crate::prompts::PromptKind;
use crate::remote::http1::Request;
use crate::scenarios::scenario_table;
use crate::{Stage, Step, Stop};

scenario_table! { Agent in BOTH:
    "http-accepted": "a POST is accepted before the work is done", ["HTTP-08"] needs [HTTP] => accepted;
    "http-streams": "two sessions, each with a stream, and the stream of the connection",
        ["HTTP-09", "HTTP-10", "HTTP-11", "HTTP-12"] needs [HTTP] => streams;
    "http-late-stream": "a stream that is opened after its messages", ["HTTP-31"] needs [HTTP] => late_stream;
    "http-reordered-streams": "streams that are opened in another order than their messages, one of them again",
        ["HTTP-31"] needs [HTTP] => reordered;
    "http-second-stream": "a stream that is opened twice", ["HTTP-21"] needs [HTTP] => second_stream;
    "http-delete": "the end of a connection", ["HTTP-22"] needs [HTTP] => delete;
    "http-cancel-request": "a notification about the connection with a session id",
        ["HTTP-34"] needs [HTTP] => cancel_request;
    "http-close": "the stream of a session that is closed", ["HTTP-35"] needs [HTTP] => close;
}

async fn accepted(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut events = client.stream(stage, None).await?;
    let (id, message) = client.message("_attache/probe", json!({}));
    let mut response = client.post(stage, None, &message).await?;
    let status = response.status;
    let body = match status {
        202 => timeout(stage.deadline(), response.text()).await.ok().and_then(Result::ok).unwrap_or_default(),
        _ => String::new(),
    };
    if status != 202 || !body.is_empty() {
        let what = if body.is_empty() { "" } else { " with a body" };
        stage.fail("HTTP-08", format!("a POST gets {status}{what}, not 202 without one"));
        return Ok(());
    }
    stage.pass("HTTP-08");
    events.answer(stage, &client, &id).await?;
    let session = client.new_session(stage, &mut events).await?;
    let mut own = client.stream(stage, Some(&session)).await?;
    let (id, prompt) = client.prompt(stage, &session, PromptKind::Ask);
    let request = client.of(Request::post(&prompt), Some(&session));
    let endpoint = client.endpoint.clone();
    let mut post = Box::pin(async move { request.send(&endpoint).await.map(|response| response.status) });
    // A turn that waits for a permission cannot end, so the 202 must not wait for its end.
    let mut is_posted = false;
    loop {
        let message = tokio::select! {
            posted = &mut post, if !is_posted => {
                posted.map_err(|error| Stop::Broken(format!("the POST of a prompt: {error}")))?;
                is_posted = true;
                continue;
            }
            message = own.next(stage, "the end of the turn") => message?,
        };
        let Some(message) = message else {
            return Err(Stop::Broken("the stream ended before the turn".to_owned()));
        };
        if message["id"] == id && message.get("method").is_none() {
            break;
        }
        if message["method"] == "session/request_permission" && !is_posted {
            is_posted = matches!(timeout(stage.deadline(), &mut post).await, Ok(Ok(_)));
            stage.check(
                "HTTP-08",
                is_posted,
                "the POST of a prompt is not answered while the turn waits for a permission",
            );
            if !is_posted {
                return Ok(());
            }
        }
        if message.get("method").is_some() && message.get("id").is_some() {
            own.refuse(stage, &client, &message).await?;
        }
    }
    client.delete(stage).await?;
    Ok(())
}

/// The session that a message names.
fn session_of(message: &Value) -> Option<&str> {
    message["params"]["sessionId"].as_str()
}

async fn streams(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut connection = match client.stream(stage, None).await {
        Ok(connection) => connection,
        Err(Stop::Broken(why)) => {
            stage.fail("HTTP-10", why.clone());
            return Err(Stop::Broken(why));
        }
        Err(stop) => return Err(stop),
    };
    let is_stream = connection.response.is_type("text/event-stream");
    stage.check("HTTP-10", is_stream, "the stream of the connection is not text/event-stream");
    let opened = client.new_session(stage, &mut connection).await;
    let first = match opened {
        Ok(session) => session,
        Err(stop @ (Stop::Deadline(_) | Stop::Broken(_))) => {
            let answers = connection.seen.iter().any(|message| message.get("method").is_none());
            match answers {
                true => stage
                    .fail("HTTP-09", "the stream of the connection has no answer with the id of session/new"),
                false => stage.fail(
                    "HTTP-11",
                    "the answer to session/new does not come on the stream of the connection",
                ),
            }
            return Err(stop);
        }
        Err(stop) => return Err(stop),
    };
    stage.pass("HTTP-09");
    stage.pass("HTTP-11");
    let second = client.new_session(stage, &mut connection).await?;
    let mut of_first = client.stream(stage, Some(&first)).await?;
    let mut of_second = client.stream(stage, Some(&second)).await?;
    for (session, events) in [(&first, &mut of_first), (&second, &mut of_second)] {
        let (id, prompt) = client.prompt(stage, session, PromptKind::Say);
        client.accept(stage, Some(session), &prompt).await?;
        match events.answer(stage, &client, &id).await {
            Ok(_) => stage.pass("HTTP-10"),
            Err(stop @ (Stop::Deadline(_) | Stop::Broken(_))) => {
                stage.fail("HTTP-10", "the answer to a prompt does not come on the stream of its session");
                return Err(stop);
            }
            Err(stop) => return Err(stop),
        }
    }
    let (id, probe) = client.message("_attache/probe", json!({}));
    client.accept(stage, None, &probe).await?;
    connection.answer(stage, &client, &id).await?;
    only(stage, &of_first, &first);
    only(stage, &of_second, &second);
    let stray = connection.seen.iter().find(|message| session_of(message).is_some());
    stage.check(
        "HTTP-11",
        stray.is_none(),
        format!("a message of a session is on the stream of the connection: {}", method(stray)),
    );
    client.delete(stage).await?;
    Ok(())
}

/// The stream has messages of this session alone.
// HTTP-12
fn only(stage: &mut Stage, events: &Events, session: &str) {
    let foreign =
        events.seen.iter().find(|message| session_of(message).is_some_and(|other| other != session));
    stage.check(
        "HTTP-12",
        foreign.is_none(),
        format!("a message of another session is on the stream of a session: {}", method(foreign)),
    );
}

fn method(message: Option<&Value>) -> String {
    message.and_then(|message| message["method"].as_str()).unwrap_or_default().to_owned()
}

async fn late_stream(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (id, probe) = client.message("_attache/probe", json!({}));
        client.accept(stage, None, &probe).await?;
        ids.push(id);
    }
    let mut events = client.stream(stage, None).await?;
    for id in ids {
        if let Err(stop @ (Stop::Deadline(_) | Stop::Broken(_))) = events.answer(stage, &client, &id).await {
            stage.fail(
                "HTTP-31",
                "an answer from before the stream was opened does not come on it, or not in order",
            );
            return Err(stop);
        }
    }
    stage.pass("HTTP-31");
    client.delete(stage).await?;
    Ok(())
}

/// Time for the server to learn that the reader of a stream is gone.
const NOTICE: Duration = Duration::from_secs(1);

async fn reordered(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut events = client.stream(stage, None).await?;
    let session = client.new_session(stage, &mut events).await?;
    drop(events);
    sleep(NOTICE).await;
    stage.exchanged("the stream of the connection is closed");
    let (id, probe) = client.message("_attache/probe", json!({}));
    client.accept(stage, None, &probe).await?;
    // The turn comes later, and its stream is opened first.
    let mut own = client.stream(stage, Some(&session)).await?;
    let (turn, prompt) = client.prompt(stage, &session, PromptKind::Say);
    client.accept(stage, Some(&session), &prompt).await?;
    let answered = own.answer(stage, &client, &turn).await;
    let why = "a turn on an open stream does not end while the stream of the connection is closed";
    judge_arrival(stage, answered, why)?;
    let mut events = client.stream(stage, None).await?;
    let answered = events.answer(stage, &client, &id).await;
    let why = "an answer from while a stream had no reader does not come when it is opened again";
    judge_arrival(stage, answered, why)?;
    client.delete(stage).await?;
    Ok(())
}

/// Judges whether an answer came.
fn judge_arrival(stage: &mut Stage, answered: Result<Value, Stop>, why: &str) -> Step {
    match answered {
        Ok(_) => stage.pass("HTTP-31"),
        Err(Stop::Deadline(_) | Stop::Broken(_)) => stage.fail("HTTP-31", why),
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn second_stream(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let mut first = client.stream(stage, None).await?;
    let response = send(stage, &client.endpoint, &client.of(Request::stream(), None)).await?;
    match response.status {
        409 => stage.pass("HTTP-21"),
        200 => {
            // A client behind a dead socket must come back, so the newest may win; two readers must
            // not share the messages.
            let why = "two streams of one connection are open at once, so messages are split or doubled";
            let ended = first.ends(stage).await;
            stage.check("HTTP-21", ended, why);
        }
        status => stage.fail("HTTP-21", format!("a second stream gets {status}, not 409")),
    }
    client.delete(stage).await?;
    Ok(())
}

async fn delete(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut connection = client.stream(stage, None).await?;
    let session = client.new_session(stage, &mut connection).await.ok();
    let mut own = match &session {
        Some(session) => Some(client.stream(stage, Some(session)).await?),
        None => None,
    };
    let status = client.delete(stage).await?.status;
    if status != 202 {
        stage.fail("HTTP-22", format!("the DELETE of a connection gets {status}, not 202"));
        return Ok(());
    }
    let (_, probe) = client.message("_attache/probe", json!({}));
    let status = client.post(stage, None, &probe).await?.status;
    stage.check("HTTP-22", status == 404, format!("a POST after the DELETE gets {status}, not 404"));
    for events in own.iter_mut().chain([&mut connection]) {
        let ended = events.ends(stage).await;
        stage.check("HTTP-22", ended, "a stream stays open after the DELETE of its connection");
    }
    Ok(())
}

async fn cancel_request(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut events = client.stream(stage, None).await?;
    let session = client.new_session(stage, &mut events).await?;
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "none" } });
    let status = client.post(stage, Some(&session), &cancel).await?.status;
    let kept = (200..300).contains(&status);
    stage.check("HTTP-34", kept, format!("$/cancel_request with a session id is refused with {status}"));
    client.delete(stage).await?;
    Ok(())
}

async fn close(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut events = client.stream(stage, None).await?;
    let session = client.new_session(stage, &mut events).await?;
    let mut own = client.stream(stage, Some(&session)).await?;
    let (id, message) = client.message("session/close", json!({ "sessionId": session }));
    client.accept(stage, Some(&session), &message).await?;
    // The answer may take either stream.
    let is_answer = |message: &Value| message.get("method").is_none() && message["id"] == id;
    let on_own = own.until(stage, &client, "the answer to session/close", is_answer);
    let answered = match timeout(super::client::GLANCE, on_own).await {
        Ok(Err(Stop::Broken(_))) => None,
        Ok(answer) => Some(answer?),
        Err(_) => Some(events.answer(stage, &client, &id).await?),
    };
    if answered.as_ref().is_some_and(|answer| answer.get("error").is_some()) {
        return Err(Stop::NotApplicable("the agent does not close sessions".to_owned()));
    }
    let open = answered.is_some() && own.stays().await;
    stage.check("HTTP-35", open, "the stream of a session ends when the session is closed");
    client.delete(stage).await?;
    Ok(())
}
