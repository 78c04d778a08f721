//! Restored sessions: load and resume.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::transcript::{Exchange, Transcript};
use super::{begin, reopening, turn, unseen};
use crate::judge::{Message, is_conversation, part, v2};
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

/// The message and tool updates of a session since `mark`.
pub(super) fn replay<'a>(
    stage: &'a Stage,
    session: &'a str,
    mark: usize,
) -> impl Iterator<Item = (&'a Message, &'a str, &'a Value)> {
    parts(stage.received(mark), session)
}

fn parts<'a>(
    messages: &'a [Rc<Message>],
    session: &'a str,
) -> impl Iterator<Item = (&'a Message, &'a str, &'a Value)> {
    messages.iter().filter_map(move |message| {
        let (_, kind, update) = message.update()?;
        ((is_conversation(kind) || v2::is_conversation(kind)) && message.params()["sessionId"] == *session)
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

/// The time in which a replay that goes on after the answer is expected to show it.
const LATE: Duration = Duration::from_secs(2);

async fn load(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let mark = stage.mark();
    let live = play(stage, &session).await?;
    let contents_live = contents(stage, &session, mark);
    put_down(stage, &session).await?;
    let mark = stage.mark();
    let id = stage.request("session/load", reopening(stage, &session)).await?;
    if let Err(error) = stage.expect(&id).await? {
        // Whether a session can be loaded in the process that made it is nowhere said.
        return unseen(&format!("session/load was refused: {} {}", error.code, error.message));
    }
    stage.quiet(LATE).await?;
    on_time(stage, &session, mark, &id, &live);
    whole(stage, &session, mark, &live);
    let again = contents(stage, &session, mark);
    replaced(stage, &contents_live, &again);
    let ids = message_ids(stage, &session, mark);
    put_down(stage, &session).await?;
    let mark = stage.mark();
    if stage.call("session/load", reopening(stage, &session)).await?.is_ok() {
        stage.quiet(LATE).await?;
        let again = message_ids(stage, &session, mark);
        stage.check("SESS-17", again == ids, "the message ids of two replays differ");
    }
    Ok(())
}

/// Plays turns that a replay is compared with.
pub(super) async fn play(stage: &mut Stage, session: &str) -> Result<Vec<Exchange>, Stop> {
    let said = [
        format!("Notice: say {TOKEN} again. Use no tools."),
        stage.prompt_text(PromptKind::Say),
        stage.prompt_text(PromptKind::Read),
    ];
    let mut live = Vec::new();
    for text in said {
        let mark = stage.mark();
        let ended = turn(stage, session, &text).await?;
        let whole = ended.is_ok_and(|result| result["stopReason"] == "end_turn");
        if whole {
            live.push(Exchange::of_turn(&text, replay(stage, session, mark)));
        } else if live.is_empty() {
            return unseen("the prompt failed, so there is nothing to open again");
        }
    }
    Ok(live)
}

fn message_ids(stage: &Stage, session: &str, mark: usize) -> Vec<Value> {
    replay(stage, session, mark).map(|(_, _, update)| update["messageId"].clone()).collect()
}

/// Nothing that was there before the load comes after its answer. A new message may.
// SESS-12
fn on_time(stage: &mut Stage, session: &str, mark: usize, id: &Id, live: &[Exchange]) {
    let answers = |message: &Rc<Message>| message.id() == Some(id) && message.method().is_none();
    let answer = mark + stage.received(mark).iter().position(answers).unwrap_or_default();
    let before: Vec<String> = replay(stage, session, 0)
        .filter(|(message, ..)| stage.received(mark).first().is_some_and(|first| message.index < first.index))
        .filter_map(|(_, _, update)| part(update))
        .collect();
    // Short words are known again if they are an answer that is missing before.
    let (early, late) = stage.received(mark).split_at(answer - mark);
    let (early, all) = (Transcript::of(parts(early, session)), Transcript::of(parts(late, session)));
    let is_late_answer =
        live.iter().any(|turn| !early.holds_answer(turn) && all.holds_answer(turn) && turn.has_answer());
    let late = replay(stage, session, answer)
        .find(|(_, kind, update)| {
            *kind == "user_message_chunk"
                || part(update).is_some_and(|part| before.contains(&part))
                || (is_late_answer && *kind == "agent_message_chunk")
        })
        .map(|(message, kind, _)| (message.index, kind.to_owned()));
    match late {
        Some((at, kind)) => {
            stage.fail_at("SESS-12", &[at], format!("`{kind}` comes after the answer to session/load"));
        }
        None => stage.pass("SESS-12"),
    }
}

/// Every message of user and agent, in their order, whenever they come. White space and
/// chunk boundaries may differ. The tool calls too.
// SESS-11, SESS-15
fn whole(stage: &mut Stage, session: &str, mark: usize, live: &[Exchange]) {
    let named = |wanted: &str| {
        replay(stage, session, mark)
            .any(|(_, kind, update)| kind == wanted && update["messageId"].is_string())
    };
    let (agents, users) = (named("agent_message_chunk"), named("user_message_chunk"));
    let noticed = stage
        .received(mark)
        .iter()
        .any(|message| message.update().is_some_and(|(_, kind, _)| kind == "notice"));
    let replayed = Transcript::of(replay(stage, session, mark));
    match replayed.missing(live) {
        None => stage.pass("SESS-11"),
        Some(what) => stage.fail("SESS-11", format!("the replay lacks {what}; it is: {replayed}")),
    }
    let calls = live.iter().map(Exchange::tools).sum::<usize>();
    let why = format!("{calls} tool calls were made, the replay has {}", replayed.tools());
    stage.check("SESS-15", replayed.tools() >= calls, why);
    if let Some(what) = replayed.misplaced(live) {
        stage.fail("SESS-15", what);
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

/// The content of an update replaces the old one. An agent that appends shows it in the
/// replay, where the call ends with all contents.
// TOOL-06
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
