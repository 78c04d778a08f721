//! Scenarios that judge an agent: the checker plays the client.
//!
//! One file per section of rules. An agent is free in what it does in a turn: if it does something
//! else than the prompt asks, the scenario reports *not exercised*. Only a violation of a rule's
//! text is a failure.

mod auth;
mod cancel;
mod content;
mod elicit;
mod envelope;
mod extra;
mod history;
mod lists;
mod nes;
mod open;
mod options;
mod providers;
mod roots;
mod sessions;
mod tools;
mod transcript;
mod v2;

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) use crate::judge::agent::is_absolute;
use crate::judge::{Kind, Message};
use crate::stage::{Answer, Id};
use crate::{Scenario, Stage, Step, Stop, Version};

/// The scenarios, in the order in which they run.
pub(super) fn scenarios() -> Vec<Scenario> {
    let families: [&[Scenario]; 15] = [
        open::SCENARIOS,
        auth::SCENARIOS,
        envelope::SCENARIOS,
        sessions::SCENARIOS,
        history::SCENARIOS,
        lists::SCENARIOS,
        roots::SCENARIOS,
        content::SCENARIOS,
        cancel::SCENARIOS,
        tools::SCENARIOS,
        options::SCENARIOS,
        elicit::SCENARIOS,
        extra::SCENARIOS,
        providers::SCENARIOS,
        nes::SCENARIOS,
    ];
    let mut all = families.concat();
    all.extend(v2::scenarios());
    all
}

/// Every capability of a client, drafts included.
pub(crate) fn capabilities() -> Value {
    let mut all = Stage::all_capabilities();
    all["nes"] = json!({ "jump": {}, "rename": {}, "searchAndReplace": {} });
    all["positionEncodings"] = json!(["utf-16", "utf-8"]);
    all
}

/// Initializes with every capability and opens a session.
pub(crate) async fn begin(stage: &mut Stage) -> Result<String, Stop> {
    stage.initialize(capabilities()).await?;
    stage.new_session().await
}

/// Sends a prompt of one text.
pub(crate) async fn prompt(stage: &mut Stage, session: &str, text: &str) -> Result<Id, Stop> {
    stage.prompt_blocks(session, json!([{ "type": "text", "text": text }])).await
}

/// Sends a prompt of one text and waits for the end of the turn.
pub(crate) async fn turn(stage: &mut Stage, session: &str, text: &str) -> Result<Answer, Stop> {
    let id = prompt(stage, session, text).await?;
    stage.end_of(&id).await
}

/// The params that open a session in the scenario's directory, with the members of `more`.
pub(crate) fn opening(stage: &Stage, more: Value) -> Value {
    let mut params = json!({ "cwd": stage.cwd().to_string_lossy(), "mcpServers": [] });
    if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
        params.extend(more);
    }
    params
}

/// The params that open a known session again.
pub(crate) fn reopening(stage: &Stage, session: &str) -> Value {
    opening(stage, json!({ "sessionId": session }))
}

/// Opens a session with the members of `more` and returns its id.
pub(crate) async fn open_with(stage: &mut Stage, more: Value) -> Result<String, Stop> {
    let params = opening(stage, more);
    let result = stage.open_session(params).await?;
    let id = result["sessionId"].as_str();
    id.map(str::to_owned).ok_or_else(|| Stop::Broken("session/new named no session".to_owned()))
}

/// The text that the agent sent to this session since `mark`.
pub(crate) fn words(stage: &Stage, session: &str, mark: usize) -> String {
    let said = stage.received(mark).iter().filter_map(|message| message.update());
    let said = said.filter(|(of, ..)| *of == session).flat_map(|(_, kind, update)| match kind {
        "agent_message_chunk" => vec![&update["content"]],
        "agent_message" => update["content"].as_array().into_iter().flatten().collect(),
        _ => Vec::new(),
    });
    said.filter_map(|block| block["text"].as_str()).collect()
}

/// Whether a message asks for permission.
pub(crate) fn is_question(message: &Message) -> bool {
    message.asks("session/request_permission")
}

/// Error answers that came with the id null.
pub(crate) fn anonymous_errors(message: &[Rc<Message>]) -> Vec<i64> {
    let code = |message: &Rc<Message>| match &message.kind {
        Kind::Response { id: Value::Null, outcome: Err(error) } => Some(error["code"].as_i64().unwrap_or(0)),
        _ => None,
    };
    message.iter().filter_map(code).collect()
}

/// Sends a harmless request and waits for the answer, so that the agent has read everything before
/// it. Other messages stay in the inbox.
pub(crate) async fn ping(stage: &mut Stage) -> Step {
    let id = stage.request("_attache/probe", json!({})).await?;
    stage.expect(&id).await?.ok();
    Ok(())
}

/// Serves the agent until a message is `wanted`. Returns `false` if the turn `id` ends before.
pub(crate) async fn served(
    stage: &mut Stage,
    id: &Id,
    wanted: impl Fn(&Message) -> bool,
) -> Result<bool, Stop> {
    let mark = stage.mark();
    let patience = stage.deadline() * 3;
    let mut waited = Duration::ZERO;
    while waited < patience {
        stage.quiet(GLANCE).await?;
        waited += GLANCE;
        if stage.received(mark).iter().any(|message| wanted(message)) {
            return Ok(true);
        }
        if !stage.is_running(id) {
            return Ok(false);
        }
    }
    Ok(false)
}

const GLANCE: Duration = Duration::from_millis(50);

/// Judges the end of a turn in which a request of the agent was refused with an unknown
/// code.
// RPC-16
pub(crate) fn odd_code_ended(stage: &mut Stage, ended: Result<Answer, Stop>) -> Step {
    match ended {
        Ok(_) => stage.pass("RPC-16"),
        Err(Stop::PeerGone) => {
            stage.fail("RPC-16", "the agent ended when its request was refused with -31999")
        }
        Err(Stop::Deadline(_)) => {
            stage.fail("RPC-16", "the turn does not end after a request was refused with -31999")
        }
        Err(stop) => return Err(stop),
    }
    Ok(())
}

/// Opens a known session again with its history.
pub(crate) async fn replay(stage: &mut Stage, session: &str) -> Result<Answer, Stop> {
    replay_with(stage, session, json!({})).await
}

/// Like [`replay`], with the members of `more`.
pub(crate) async fn replay_with(stage: &mut Stage, session: &str, more: Value) -> Result<Answer, Stop> {
    let mut params = opening(stage, more);
    params["sessionId"] = json!(session);
    match stage.version() {
        Version::V1 => stage.call("session/load", params).await,
        Version::V2 => {
            params["replayFrom"] = json!({ "type": "start" });
            stage.call("session/resume", params).await
        }
    }
}

/// Whether the session's directory is really there.
pub(crate) fn on_disk(stage: &Stage) -> bool {
    stage.cwd().is_dir()
}

/// Ends the scenario as not exercised.
pub(crate) fn unseen<T>(why: &str) -> Result<T, Stop> {
    Err(Stop::NotExercised(why.to_owned()))
}
