//! Steps that scenarios share: an agent with every capability, an open turn, and checks that a
//! client is still alive.

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::judge::{Kind, Message};
use crate::stage::{Answer, Id, WireError};
use crate::{Stage, Step, Stop, Version};

/// Every capability of an agent in version 1, drafts included.
pub(crate) fn everything() -> Value {
    json!({
        "loadSession": true,
        "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
        "mcpCapabilities": { "http": true, "sse": true, "acp": true },
        "sessionCapabilities": {
            "list": {}, "delete": {}, "resume": {}, "close": {}, "fork": {}, "additionalDirectories": {},
            "archive": {}, "status": {}, "title": {}, "systemPrompt": { "mode": { "override": {} } },
        },
        "auth": { "logout": {}, "status": {} },
        "providers": {},
        "nes": {
            "events": { "document": {
                "didOpen": {}, "didChange": { "syncKind": "incremental" }, "didClose": {}, "didSave": {}, "didFocus": {},
            } },
            "context": { "diagnostics": {}, "recentFiles": { "maxCount": 2 } },
        },
    })
}

/// [`everything`] without the capability at `pointer`.
pub(crate) fn without(pointer: &str) -> Value {
    let mut capabilities = everything();
    if let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(parent)) = capabilities.pointer_mut(parent)
    {
        parent.remove(name);
    }
    capabilities
}

/// An open turn of the client.
pub(crate) struct Turn {
    pub(crate) session: String,
    pub(crate) prompt: Id,
    /// Whether the client answers unknown requests, so that it can be probed.
    pub(crate) answers: bool,
}

impl Turn {
    /// Params with the session id.
    pub(crate) fn with(&self, more: Value) -> Value {
        let mut params = more;
        params["sessionId"] = json!(self.session);
        params
    }

    pub(crate) fn answers_unknown(&self) -> bool {
        self.answers
    }

    /// Ends the scenario if the client cannot be probed.
    pub(crate) fn must_answer(&self) -> Step {
        if self.answers {
            return Ok(());
        }
        Err(Stop::NotExercised(
            "the client does not answer unknown requests, so silence cannot be judged".to_owned(),
        ))
    }
}

/// The id of new sessions.
pub(crate) const NEW: &str = "sess-attache-new";

/// Answers the client's requests up to its first prompt, which stays open.
pub(crate) async fn open_turn(stage: &mut Stage) -> Result<Turn, Stop> {
    open_turn_with(stage, everything(), json!({})).await
}

pub(crate) async fn open_turn_with(
    stage: &mut Stage,
    capabilities: Value,
    session: Value,
) -> Result<Turn, Stop> {
    stage.accept(capabilities).await?;
    new_session(stage, NEW, session).await?;
    first_prompt(stage, NEW).await
}

/// Waits until the client calls `method` and serves its other requests before.
pub(crate) async fn serve_until(stage: &mut Stage, method: &str) -> Result<Rc<Message>, Stop> {
    loop {
        let message = stage.next().await.map_err(|stop| match stop {
            Stop::Deadline(_) => Stop::Deadline(format!("a request for {method}")),
            stop => stop,
        })?;
        match &message.kind {
            Kind::Request { method: asked, .. } if asked == method => return Ok(message),
            Kind::Request { method, params, .. } => {
                serve(stage, &message, good_answer(method, params)).await?
            }
            _ => {}
        }
    }
}

/// Answers a request. In version 2 a prompt is a turn, and resuming reports the state first.
async fn serve(stage: &mut Stage, asked: &Message, answer: Result<Value, (i64, &'static str)>) -> Step {
    let Kind::Request { id, method, params } = &asked.kind else { return Ok(()) };
    let session = params["sessionId"].as_str().unwrap_or_default();
    match (stage.version(), method.as_str()) {
        (Version::V2, "session/prompt") if answer.is_ok() => {
            stage.insert(asked).await?;
            return stage.idle(session, "end_turn").await;
        }
        (Version::V2, "session/resume") if answer.is_ok() => stage.idle(session, "end_turn").await?,
        _ => {}
    }
    respond(stage, id, answer).await
}

/// Answers session/new with this id and the members of `more`.
pub(crate) async fn new_session(stage: &mut Stage, id: &str, more: Value) -> Result<Rc<Message>, Stop> {
    let asked = serve_until(stage, "session/new").await?;
    let mut result = more;
    result["sessionId"] = json!(id);
    stage.reply(&asked, result).await?;
    Ok(asked)
}

/// Waits for a prompt and returns its id and the request.
pub(crate) async fn prompted(stage: &mut Stage) -> Result<(Id, Rc<Message>), Stop> {
    let asked = serve_until(stage, "session/prompt").await?;
    Ok((asked.id().cloned().unwrap_or_default(), asked))
}

async fn respond(stage: &mut Stage, id: &Id, answer: Result<Value, (i64, &'static str)>) -> Step {
    match answer {
        Ok(result) => stage.answer(id, result).await,
        Err((code, message)) => stage.answer_error(id, code, message).await,
    }
}

/// Waits for the prompt and tests whether the client answers unknown requests.
pub(crate) async fn first_prompt(stage: &mut Stage, session: &str) -> Result<Turn, Stop> {
    let (prompt, asked) = prompted(stage).await?;
    if stage.version() == Version::V2 {
        stage.insert(&asked).await?;
    }
    let answers = match probe(stage).await {
        Ok(()) => true,
        Err(Stop::Deadline(_)) => false,
        Err(stop) => return Err(stop),
    };
    Ok(Turn { session: session.to_owned(), prompt, answers })
}

/// Waits with a timeout.
pub(crate) async fn soon<T>(time: Duration, what: impl Future<Output = Result<T, Stop>>) -> Result<T, Stop> {
    timeout(time, what).await.unwrap_or_else(|_| Err(Stop::Deadline("the client's next step".to_owned())))
}

/// Waits for the answer to a request that may wait for a person or a command.
pub(crate) async fn answer_to(stage: &mut Stage, id: &Id) -> Result<Answer, Stop> {
    let deadline = stage.deadline();
    let answers =
        |message: &Message| matches!(&message.kind, Kind::Response { id: other, .. } if other == id);
    let Ok(message) = timeout(deadline, stage.until("an answer", answers)).await else {
        stage.deadline_passed();
        return Err(Stop::Deadline("the answer".to_owned()));
    };
    let message = message?;
    match &message.kind {
        Kind::Response { outcome: Ok(result), .. } => Ok(Ok(result.clone())),
        Kind::Response { outcome: Err(error), .. } => Ok(Err(WireError::of(error))),
        _ => Err(Stop::Broken("an answer that is none".to_owned())),
    }
}

/// Sends an unknown request and waits for the answer, so that the client has read everything before
/// it.
pub(crate) async fn probe(stage: &mut Stage) -> Step {
    let id = stage.request("_attache/probe", json!({})).await?;
    answer_to(stage, &id).await.map(drop)
}

/// Ends the turn.
pub(crate) async fn end(stage: &mut Stage, turn: &Turn) -> Step {
    match stage.version() {
        Version::V1 => stage.end_turn(&turn.prompt, "end_turn").await,
        Version::V2 => stage.idle(&turn.session, "end_turn").await,
    }
}

/// Checks that the client survived `what`: it answers a probe, or, if it answers no unknown
/// requests, it finishes its turn and exits.
///
/// # Errors
/// If it did not survive.
pub(crate) async fn lives(stage: &mut Stage, turn: &Turn, rules: &[&'static str], what: &str) -> Step {
    let alive = if turn.answers {
        probe(stage).await
    } else {
        end(stage, turn).await?;
        stage.closed().await
    };
    match alive {
        Err(Stop::Deadline(_)) if !turn.answers => {
            Err(Stop::NotExercised("the client neither answers unknown requests nor leaves".to_owned()))
        }
        alive => survived(stage, alive, rules, what),
    }
}

/// Records whether the client survived `what`.
fn survived(stage: &mut Stage, alive: Step, rules: &[&'static str], what: &str) -> Step {
    if let Err(stop) = alive {
        for rule in rules {
            stage.fail(rule, format!("the client did not get over {what}: {stop}"));
        }
        return Err(Stop::Broken(format!("the client did not get over {what}")));
    }
    stage.pass_all(rules);
    Ok(())
}

/// Checks that the client exits after `what`, or stays and answers.
///
/// # Errors
/// As [`lives`].
pub(crate) async fn leaves(stage: &mut Stage, rules: &[&'static str], what: &str) -> Step {
    // Time to take it in.
    stage.quiet(Duration::from_secs(1)).await?;
    let alive = match probe(stage).await {
        Err(Stop::PeerGone) => Ok(()),
        Err(Stop::Deadline(_)) => stage.closed().await,
        other => other,
    };
    survived(stage, alive, rules, what)
}

/// Checks that the client continues its action after `what`, or exits, or stays and answers.
///
/// # Errors
/// As [`lives`].
pub(crate) async fn goes_on(stage: &mut Stage, rules: &[&'static str], what: &str) -> Step {
    let said = serve_rest(stage, |_, _| None).await?;
    if said.is_empty() {
        return leaves(stage, rules, what).await;
    }
    stage.pass_all(rules);
    Ok(())
}

/// Ends the scenario if the client sent a line that is not a message: the missing message may be
/// that line.
pub(crate) fn readable(stage: &Stage) -> Step {
    match stage.received(0).iter().any(|message| matches!(message.kind, Kind::Invalid { .. })) {
        true => Err(Stop::Broken("the client said something that is no message".to_owned())),
        false => Ok(()),
    }
}

/// The answer of a simple agent.
pub(crate) fn good_answer(method: &str, params: &Value) -> Result<Value, (i64, &'static str)> {
    Ok(match method {
        "session/new" => json!({ "sessionId": NEW }),
        "session/fork" => json!({ "sessionId": "sess-attache-forked" }),
        "session/list" => {
            json!({ "sessions": [{ "sessionId": crate::target::SESSION, "cwd": "/", "title": "A session" }] })
        }
        "session/prompt" => json!({ "stopReason": "end_turn" }),
        "session/status" => json!({ "status": "saved" }),
        "session/set_title" => json!({ "title": params["title"] }),
        "session/set_config_option" => json!({ "configOptions": [] }),
        "auth/status" => json!({ "state": "authenticated" }),
        "providers/list" => json!({ "providers": [] }),
        "nes/start" => json!({ "sessionId": "nes-attache" }),
        "nes/suggest" => json!({ "suggestions": [] }),
        "authenticate" | "logout" | "auth/login" | "auth/logout" | "tool_call/cancel" | "session/load"
        | "session/resume" | "session/close" | "session/delete" | "session/archive" | "session/unarchive"
        | "session/set_mode" | "session/set_model" | "providers/set" | "providers/disable" | "nes/close" => {
            json!({})
        }
        _ => return Err((-32601, "there is no such method")),
    })
}

/// Serves the client until it exits or is silent for a deadline. `own` may answer first.
pub(crate) async fn serve_rest(
    stage: &mut Stage,
    mut own: impl FnMut(&str, &Value) -> Option<Result<Value, (i64, &'static str)>>,
) -> Result<Vec<Rc<Message>>, Stop> {
    let mut said = Vec::new();
    loop {
        let message = match stage.next().await {
            Ok(message) => message,
            Err(Stop::PeerGone | Stop::Deadline(_)) => return Ok(said),
            Err(stop) => return Err(stop),
        };
        if let Kind::Request { method, params, .. } = &message.kind {
            let answer = own(method, params).unwrap_or_else(|| good_answer(method, params));
            let sent = serve(stage, &message, answer).await;
            if let Err(Stop::PeerGone) = sent {
                return Ok(said);
            }
            sent?;
        }
        said.push(message);
    }
}

/// Accepts the client with these capabilities, serves its whole action and returns its messages.
pub(crate) async fn whole_act(stage: &mut Stage, capabilities: Value) -> Result<Vec<Rc<Message>>, Stop> {
    stage.accept(capabilities).await?;
    serve_rest(stage, |_, _| None).await
}

/// The first request or notification of `method`.
pub(crate) fn find<'a>(said: &'a [Rc<Message>], method: &str) -> Option<&'a Rc<Message>> {
    said.iter().find(|message| message.method() == Some(method))
}

/// Describes an answer for a report.
pub(super) fn describe_answer<T: Clone + Into<Value>, E: std::fmt::Display>(answer: &Result<T, E>) -> String {
    const MOST: usize = 200;
    match answer {
        Ok(value) => {
            let text: String = value.clone().into().to_string();
            let cut = text.chars().count() > MOST;
            let start: String = text.chars().take(MOST).collect();
            if cut { format!("{start}…") } else { start }
        }
        Err(error) => format!("the error {error}"),
    }
}
