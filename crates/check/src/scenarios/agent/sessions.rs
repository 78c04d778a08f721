//! Sessions: created, parallel, closed, forked, archived.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Value, json};

use super::{
    begin, is_question, open_with, opening, ping, prompt, reopening, replay, replay_with, turn, unseen, words,
};
use crate::judge::Message;
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::stage::Id;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent:
    "sessions": "several sessions have ids of their own", ["SESS-03"] in BOTH => several;
    "side-by-side": "two sessions work at once and do not mix",
        ["SESS-06", "PROMPT-12", "CANCEL-11"] => side_by_side;
    "unknown-session": "a prompt for a session that does not exist", ["RPC-18"] => unknown_session;
    "close": "a session is closed while it works", ["SESS-27", "SESS-29", "SESS-30"]
        needs [Need::Agent("sessionCapabilities.close")] => put_away("session/close", "SESS-27");
    "archive": "a session is archived while it works", ["SSTAT-04", "SSTAT-05", "SSTAT-07"]
        needs [Need::Agent("sessionCapabilities.archive")] in BOTH => put_away("session/archive", "SSTAT-04");
    "fork": "a session is forked and both go on",
        ["FORK-02", "FORK-03"] needs [Need::Agent("sessionCapabilities.fork")] in BOTH => fork;
    "status": "asking how a session stands does not change it",
        ["SSTAT-01"] needs [Need::Agent("sessionCapabilities.status")] in BOTH => status;
    "title": "a title that the user chose",
        ["SSTAT-08", "SSTAT-09"] needs [Need::Agent("sessionCapabilities.title")] in BOTH => title;
    "system-prompt": "a system prompt of an unknown mode",
        ["SYSP-02"] needs [Need::Agent("sessionCapabilities.systemPrompt")] in BOTH => system_prompt;
    "system-prompt-place": "a system prompt is nothing that the user said", ["SYSP-05"]
        needs [Need::Agent("sessionCapabilities.systemPrompt"), Need::Agent("loadSession")] in BOTH
        => system_place;
}

async fn several(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    let mut seen = BTreeSet::new();
    for _ in 0..6 {
        let id = stage.new_session().await?;
        stage.check("SESS-03", seen.insert(id.clone()), format!("the id {id:?} was given twice"));
    }
    Ok(())
}

async fn side_by_side(stage: &mut Stage) -> Step {
    let left = begin(stage).await?;
    let right = stage.new_session().await?;
    if left == right {
        return unseen("two sessions have the same id");
    }
    stage.services.hold("session/request_permission");
    let (one, two) =
        (stage.prompt(&left, PromptKind::Ask).await?, stage.prompt(&right, PromptKind::Ask).await?);
    let mut open = Vec::new();
    for id in [&one, &two] {
        open.extend(stage.during(id, is_question).await?);
    }
    if open.len() < 2 {
        return unseen("the agent did not ask for a permission in both sessions");
    }
    let named: BTreeSet<&str> =
        open.iter().filter_map(|message| message.params()["sessionId"].as_str()).collect();
    stage.check("PROMPT-12", named.len() == 2, "two turns of two sessions ask in the name of one");
    stage.pass("SESS-06");
    stage.cancel(&left).await?;
    let cancelled = answer_cancelled(stage, &open, &left).await?;
    stage.expect(&one).await?.ok();
    // The other turn still waits for its answer: nothing has ended it.
    ping(stage).await?;
    let still = stage.log().sessions.get(&right).is_some_and(|session| !session.prompts.is_empty());
    if cancelled {
        stage.check("CANCEL-11", still, "the cancel of one session ended the turn of another");
    }
    answer_cancelled(stage, &open, &right).await?;
    stage.cancel(&right).await?;
    stage.expect(&two).await?.ok();
    stage.services.release("session/request_permission");
    labelled(stage, [&left, &right]).await
}

/// What one session was asked to say is not said in the other.
// PROMPT-12
async fn labelled(stage: &mut Stage, sessions: [&str; 2]) -> Step {
    const WORDS: [&str; 2] = ["attache-heron", "attache-plover"];
    let mark = stage.mark();
    let mut open = Vec::new();
    for (session, word) in sessions.iter().zip(WORDS) {
        open.push(prompt(stage, session, &format!("Repeat the word {word}. Use no tools.")).await?);
    }
    for id in &open {
        stage.expect(id).await?.ok();
    }
    let said = sessions.map(|session| words(stage, session, mark));
    let mixed = WORDS
        .iter()
        .zip(&said)
        .zip(said.iter().rev())
        .any(|((own, here), there)| !here.contains(own) && there.contains(own));
    let spoke = WORDS.iter().any(|word| said.iter().any(|text| text.contains(word)));
    if spoke {
        stage.check("PROMPT-12", !mixed, "what one session was asked to say was said in another");
    }
    Ok(())
}

/// Answers the open questions of a session as a client does that has cancelled its turn.
async fn answer_cancelled(
    stage: &mut Stage,
    open: &[std::rc::Rc<crate::judge::Message>],
    session: &str,
) -> Result<bool, Stop> {
    let mut any = false;
    for message in open.iter().filter(|message| message.params()["sessionId"] == *session) {
        let id = message.id().cloned().unwrap_or_default();
        stage.answer(&id, json!({ "outcome": { "outcome": "cancelled" } })).await?;
        any = true;
    }
    Ok(any)
}

async fn unknown_session(stage: &mut Stage) -> Step {
    begin(stage).await?;
    let id = prompt(stage, "attache-ghost", "hello").await?;
    match stage.expect(&id).await? {
        Err(error) => {
            let named = error.code == -32002 && error.data["sessionId"] == "attache-ghost";
            stage.check("RPC-18", named, format!("refused with {} {}", error.code, error.data));
        }
        Ok(_) => stage.fail("RPC-18", "a prompt for a session that does not exist was accepted"),
    }
    Ok(())
}

/// A turn that waits for a permission, or one that thinks: it does not end by itself soon.
pub(super) async fn busy(stage: &mut Stage, session: &str) -> Result<Id, Stop> {
    stage.services.hold("session/request_permission");
    let id = stage.prompt(session, PromptKind::Ask).await?;
    if stage.during(&id, is_question).await?.is_some() {
        return Ok(id);
    }
    stage.end_of(&id).await?.ok();
    let id = stage.prompt(session, PromptKind::Think).await?;
    match stage.during(&id, |message| message.update().is_some()).await? {
        Some(_) => Ok(id),
        None => unseen("no turn lasted long enough"),
    }
}

async fn put_away(stage: &mut Stage, method: &str, rule: &'static str) -> Step {
    let session = begin(stage).await?;
    let id = busy(stage, &session).await?;
    let closing = stage.request(method, json!({ "sessionId": session })).await?;
    match stage.end_of(&id).await {
        Ok(Ok(result)) => {
            let reason = &result["stopReason"];
            stage.check(
                rule,
                *reason == "cancelled",
                format!("the running turn ended with {reason}, not as cancelled"),
            );
        }
        Ok(Err(error)) => stage.fail(
            rule,
            format!("the running turn was answered with an error: {} {}", error.code, error.message),
        ),
        Err(Stop::Deadline(_)) => stage.fail(rule, "the running turn goes on"),
        Err(stop) => return Err(stop),
    }
    let closed = stage.expect(&closing).await?;
    match closed {
        Ok(result) if method == "session/close" => {
            stage.check(
                "SESS-29",
                result.as_object().is_some_and(|result| result.keys().all(|key| key == "_meta")),
                format!("the answer is {result}"),
            );
        }
        Ok(_) => {}
        Err(error) => return Err(Stop::NotExercised(format!("{method} was refused: {}", error.message))),
    }
    if method == "session/close" {
        let id = prompt(stage, &session, "hello").await?;
        let refused = stage.expect(&id).await?.is_err_and(|error| error.code == -32002);
        stage.check("SESS-30", refused, "a prompt for a closed session was not refused with -32002");
        return Ok(());
    }
    let again = stage.call(method, json!({ "sessionId": session })).await?.is_ok();
    let back = stage.call("session/unarchive", json!({ "sessionId": session })).await?.is_ok();
    stage.check("SSTAT-07", again && back, "archiving twice or taking it back was refused");
    if stage.need("sessionCapabilities.list").is_ok() {
        stage.call("session/list", json!({ "archived": "include" })).await?.ok();
    }
    Ok(())
}

async fn fork(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.turn(&session, PromptKind::Say).await?.ok();
    let forked = match stage.call("session/fork", reopening(stage, &session)).await? {
        Ok(result) => result["sessionId"].as_str().unwrap_or_default().to_owned(),
        Err(error) => return Err(Stop::NotExercised(format!("session/fork was refused: {}", error.message))),
    };
    let fresh = !forked.is_empty() && forked != session;
    stage.check("FORK-02", fresh, format!("the fork of {session:?} is named {forked:?}"));
    if !fresh {
        return Ok(());
    }
    let mark = stage.mark();
    let ended = turn(stage, &forked, "Say attache-fork-only again. Use no tools.").await?;
    // Perhaps it was for the words.
    let taken = ended.is_ok() || stage.turn(&forked, PromptKind::Say).await?.is_ok();
    stage.check("FORK-03", taken, "a prompt for the fork was refused");
    if words(stage, &forked, mark).is_empty() || stage.need("loadSession").is_err() {
        return Ok(());
    }
    // FORK-02: the fork's messages are not in the source's history.
    let mark = stage.mark();
    if replay(stage, &session).await?.is_ok() {
        let leaked = stage.received(mark).iter().find(|message| {
            message.params()["sessionId"] == *session
                && String::from_utf8_lossy(&message.line).contains("attache-fork-only")
        });
        match leaked.map(|message| message.index) {
            Some(at) => {
                stage.fail_at("FORK-02", &[at], "what was said in the fork is in the source's history")
            }
            None => stage.pass("FORK-02"),
        }
    }
    Ok(())
}

async fn status(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    if stage.need("sessionCapabilities.close").is_ok() {
        stage.call("session/close", json!({ "sessionId": session })).await?.ok();
    }
    let mut seen: Vec<Value> = Vec::new();
    for _ in 0..2 {
        match stage.call("session/status", json!({ "sessionId": session })).await? {
            Ok(result) => seen.push(result["status"].clone()),
            Err(error) => {
                return Err(Stop::NotExercised(format!("session/status was refused: {}", error.message)));
            }
        }
    }
    stage.check("SSTAT-01", seen[0] == seen[1], format!("asking changed {} to {}", seen[0], seen[1]));
    Ok(())
}

async fn title(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let set = |title: &str| json!({ "sessionId": session, "title": title });
    let stored = match stage.call("session/set_title", set("  attache  ")).await? {
        Ok(result) => result["title"].clone(),
        Err(error) => {
            return Err(Stop::NotExercised(format!("session/set_title was refused: {}", error.message)));
        }
    };
    let empty = stage.call("session/set_title", set("   ")).await?;
    let refused = empty.is_err_and(|error| error.code == -32602);
    stage.check("SSTAT-08", stored.is_string() && refused, "an empty title was not refused with -32602");
    turn(stage, &session, "Title this session with a name of your own.").await?.ok();
    if stage.need("sessionCapabilities.list").is_err() {
        return Ok(());
    }
    let list = stage.call("session/list", json!({})).await?.unwrap_or_default();
    let found = list["sessions"].as_array().into_iter().flatten().find(|info| info["sessionId"] == *session);
    if let Some(info) = found {
        let kept = info["title"] == stored || info["title"] == "";
        let now = info["title"].clone();
        stage.check("SSTAT-09", kept, format!("the title {stored} was replaced by {now}"));
    }
    Ok(())
}

async fn system_prompt(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    open_with(stage, json!({})).await?;
    let text = json!([{ "type": "text", "text": "x" }]);
    let params = opening(stage, json!({ "systemPrompt": { "mode": "_attache", "content": text } }));
    let answer = stage.call("session/new", params).await?;
    stage.check("SYSP-02", answer.is_err(), "a system prompt of an unknown mode was accepted");
    Ok(())
}

/// A system prompt must not appear as a user message in the history.
// SYSP-05
async fn system_place(stage: &mut Stage) -> Step {
    const WORD: &str = "attache-saffron";
    stage.initialize(json!({})).await?;
    let content = json!([{ "type": "text", "text": format!("The word of the day is {WORD}.") }]);
    let given = json!({ "systemPrompt": { "mode": "append", "content": content } });
    let session = open_with(stage, given.clone()).await?;
    stage.turn(&session, PromptKind::Say).await?.ok();
    let mark = stage.mark();
    if let Err(error) = replay_with(stage, &session, given).await? {
        return unseen(&format!("the history was refused: {} {}", error.code, error.message));
    }
    let is_user = |kind: &str| kind == "user_message" || kind == "user_message_chunk";
    let users = |message: &&Rc<Message>| message.update().is_some_and(|(_, kind, _)| is_user(kind));
    let said: Vec<_> = stage.received(mark).iter().filter(users).cloned().collect();
    if said.is_empty() {
        return unseen("the history repeats nothing that the user said");
    }
    match said.iter().find(|message| message.params().to_string().contains(WORD)) {
        Some(message) => {
            stage.fail_at("SYSP-05", &[message.index], "the system prompt comes back as words of the user");
        }
        None => stage.pass("SYSP-05"),
    }
    Ok(())
}
