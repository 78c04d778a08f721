//! Restored sessions: load and resume.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{begin, reopening, turn, unseen, words};
use crate::judge::{Message, is_conversation};
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::stage::Id;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent:
    "load": "a loaded session replays its history and is open afterwards",
        ["SESS-11", "SESS-12", "SESS-15", "SESS-16", "SESS-17", "TOOL-06", "MSG-06"]
        needs [Need::Agent("loadSession")] => load;
    "load-unknown": "a session that does not exist is loaded",
        ["SESS-19"] needs [Need::Agent("loadSession")] => load_unknown;
    "resume": "a resumed session is open again and repeats nothing",
        ["SESS-23"] needs [Need::Agent("sessionCapabilities.resume")] => resume;
}

/// The message and tool updates of a session between two places.
fn replay<'a>(
    stage: &'a Stage,
    session: &'a str,
    mark: usize,
) -> impl Iterator<Item = (&'a Message, &'a str, &'a Value)> {
    stage.received(mark).iter().filter_map(move |message| {
        let (_, kind, update) = message.update()?;
        (is_conversation(kind) && message.params()["sessionId"] == *session)
            .then_some((&**message, kind, update))
    })
}

/// Closes the session if that can be done, so that it has to come back.
async fn put_down(stage: &mut Stage, session: &str) -> Step {
    if stage.need("sessionCapabilities.close").is_ok() {
        stage.call("session/close", json!({ "sessionId": session })).await?.ok();
    }
    Ok(())
}

/// A word that comes back.
const TOKEN: &str = "attache-remember";

async fn load(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let mark = stage.mark();
    if turn(stage, &session, &format!("Notice: say {TOKEN} again. Use no tools.")).await?.is_err() {
        return unseen("the prompt failed, so there is nothing to load");
    }
    stage.turn(&session, PromptKind::Say).await?.ok();
    stage.turn(&session, PromptKind::Read).await?.ok();
    let (live, said) = (contents(stage, &session, mark), words(stage, &session, mark));
    put_down(stage, &session).await?;
    let mark = stage.mark();
    let id = stage.request("session/load", reopening(stage, &session)).await?;
    if let Err(error) = stage.expect(&id).await? {
        // Whether a session can be loaded in the process that made it is nowhere said.
        return unseen(&format!("session/load was refused: {} {}", error.code, error.message));
    }
    stage.quiet(Duration::from_millis(500)).await?;
    on_time(stage, &session, mark, &id);
    whole(stage, &session, mark, &said);
    let again = contents(stage, &session, mark);
    replaced(stage, &live, &again);
    let ids = message_ids(stage, &session, mark);
    put_down(stage, &session).await?;
    let mark = stage.mark();
    if stage.call("session/load", reopening(stage, &session)).await?.is_ok() {
        stage.quiet(Duration::from_millis(500)).await?;
        let again = message_ids(stage, &session, mark);
        stage.check("SESS-17", again == ids, "the message ids of two replays differ");
    }
    Ok(())
}

fn message_ids(stage: &Stage, session: &str, mark: usize) -> Vec<Value> {
    replay(stage, session, mark).map(|(_, _, update)| update["messageId"].clone()).collect()
}

/// SESS-12: updates after the answer are no replay.
fn on_time(stage: &mut Stage, session: &str, mark: usize, id: &Id) {
    let answers = |message: &Rc<Message>| message.id() == Some(id) && message.method().is_none();
    let answer = stage.received(mark).iter().position(answers).unwrap_or_default();
    let late = replay(stage, session, mark + answer)
        .next()
        .map(|(message, kind, _)| (message.index, kind.to_owned()));
    match late {
        Some((at, kind)) => {
            stage.fail_at("SESS-12", &[at], format!("`{kind}` comes after the answer to session/load"));
        }
        None => stage.pass("SESS-12"),
    }
}

/// SESS-11: the messages of user and agent, whenever they come. White space and chunk boundaries
/// may differ.
fn whole(stage: &mut Stage, session: &str, mark: usize, said: &str) {
    let gather = |wanted: &str| -> String {
        let texts = replay(stage, session, mark).filter(|(_, kind, _)| *kind == wanted);
        texts.filter_map(|(_, _, update)| update["content"]["text"].as_str()).collect()
    };
    let named = |wanted: &str| {
        replay(stage, session, mark)
            .any(|(_, kind, update)| kind == wanted && update["messageId"].is_string())
    };
    let (user, agent) = (gather("user_message_chunk"), gather("agent_message_chunk"));
    let (agents, users) = (named("agent_message_chunk"), named("user_message_chunk"));
    let noticed = stage
        .received(mark)
        .iter()
        .any(|message| message.update().is_some_and(|(_, kind, _)| kind == "notice"));
    let spoke = said.is_empty() || !agent.trim().is_empty();
    let whole = user.contains(TOKEN) && spoke && (!said.contains(TOKEN) || agent.contains(TOKEN));
    stage.check(
        "SESS-11",
        whole,
        format!("of what was said {said:?}, the replay repeats {agent:?} after {user:?}"),
    );
    if whole {
        stage.pass("SESS-15");
    }
    if agents {
        stage.check("MSG-06", users, "messages of the agent have ids, those of the user have none");
    }
    stage.check("SESS-16", !noticed, "a notice was replayed");
}

/// By tool call: the content of each update that brought some.
type Contents = BTreeMap<String, Vec<Vec<Value>>>;

fn contents(stage: &Stage, session: &str, mark: usize) -> Contents {
    let mut found = Contents::new();
    for (_, kind, update) in replay(stage, session, mark) {
        if let ("tool_call" | "tool_call_update", Some(id), Some(content)) =
            (kind, update["toolCallId"].as_str(), update["content"].as_array())
        {
            found.entry(id.to_owned()).or_default().push(content.clone());
        }
    }
    found
}

/// TOOL-06: the content of an update replaces the old one. An agent that appends shows it in the
/// replay, where the call ends with all contents.
fn replaced(stage: &mut Stage, live: &Contents, again: &Contents) {
    for (id, parts) in live.iter().filter(|(_, parts)| parts.len() > 1) {
        let (Some(last), Some(replayed)) = (parts.last(), again.get(id).and_then(|parts| parts.last()))
        else {
            continue;
        };
        let all = parts.concat();
        if replayed == last {
            stage.pass("TOOL-06");
        } else if *replayed == all {
            stage.fail(
                "TOOL-06",
                format!("replayed, the tool call {id:?} has the content of all its updates together"),
            );
        }
    }
}

async fn load_unknown(stage: &mut Stage) -> Step {
    begin(stage).await?;
    match stage.call("session/load", reopening(stage, "attache-ghost")).await? {
        Err(error) => stage.check(
            "SESS-19",
            error.code == -32002,
            format!("refused with {} instead of -32002", error.code),
        ),
        Ok(_) => stage.fail("SESS-19", "a session that does not exist was loaded"),
    }
    Ok(())
}

async fn resume(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.turn(&session, PromptKind::Say).await?.ok();
    put_down(stage, &session).await?;
    let mark = stage.mark();
    let id = stage.request("session/resume", reopening(stage, &session)).await?;
    if let Err(error) = stage.expect(&id).await? {
        return Err(Stop::NotExercised(format!(
            "session/resume was refused: {} {}",
            error.code, error.message
        )));
    }
    let early =
        replay(stage, &session, mark).next().map(|(message, kind, _)| (message.index, kind.to_owned()));
    match early {
        Some((at, kind)) => {
            stage.fail_at("SESS-23", &[at], format!("`{kind}` is sent before the answer to session/resume"))
        }
        None => stage.pass("SESS-23"),
    }
    Ok(())
}
