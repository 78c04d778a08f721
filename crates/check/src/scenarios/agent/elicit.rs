//! Elicitations: forms and pages.

use serde_json::{Value, json};

use super::{begin, ping, served, turn, unseen, words};
use crate::judge::Message;
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::stage::Reply;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent in BOTH:
    "form": "the agent asks with a form", ["ELIC-04", "ELIC-05", "ELIC-10", "ELIC-12", "ELIC-31"]
        needs [Need::Prompt(PromptKind::Elicit)] => form;
    "form-refused": "a form is declined, cancelled, or fails",
        ["ELIC-20"] needs [Need::Prompt(PromptKind::Elicit)] => refused;
    "form-odd": "a form is answered with an unknown action",
        ["ELIC-33"] needs [Need::Prompt(PromptKind::Elicit)] => odd;
    "form-only": "a client without pages asks for something secret", ["ELIC-15"] => secret;
    "one-mode": "a client that knows one mode only", ["ELIC-01"] => one_mode;
    "page": "the agent asks to visit a page; agreeing is not visiting",
        ["ELIC-17", "ELIC-21", "ELIC-23", "ELIC-24", "ELIC-26", "ELIC-27"]
        needs [Need::Prompt(PromptKind::ElicitUrl)] => page;
    "page-refused": "a page is declined",
        ["ELIC-20"] needs [Need::Prompt(PromptKind::ElicitUrl)] => page_refused;
}

fn asks(message: &Message) -> bool {
    message.asks("elicitation/create")
}

/// Fills a form: each text property gets `text`.
fn filled(params: &Value, text: &str) -> Value {
    let mut content = json!({});
    for (name, property) in params["requestedSchema"]["properties"].as_object().into_iter().flatten() {
        match property["type"].as_str() {
            Some("string") => {
                let choice = property["enum"]
                    .as_array()
                    .and_then(|list| list.first())
                    .or_else(|| property["oneOf"].get(0).map(|option| &option["const"]));
                content[name] = choice.cloned().unwrap_or_else(|| json!(text));
            }
            Some("boolean") => content[name] = json!(true),
            Some("integer" | "number") => {
                content[name] = property.get("minimum").cloned().unwrap_or(json!(1))
            }
            _ => {}
        }
    }
    content
}

/// Answers elicitations with this action and the requested content.
fn answer(stage: &mut Stage, action: &'static str, text: &'static str) {
    stage.services.answer_with("elicitation/create", move |params| {
        let mut result = json!({ "action": action });
        if params["mode"] == "form" || params["requestedSchema"].is_object() {
            result["content"] = filled(params, text);
        }
        Reply::Result(result)
    });
}

async fn form(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    answer(stage, "accept", "green");
    let mark = stage.mark();
    stage.turn(&session, PromptKind::Elicit).await?.ok();
    if !stage.received(mark).iter().any(|message| asks(message)) {
        return unseen("the agent asked for nothing with a form");
    }
    // ELIC-12: content that does not fit the schema is rejected.
    stage.services.answer_with("elicitation/create", |params| {
        let names = params["requestedSchema"]["properties"].as_object();
        let content: serde_json::Map<String, Value> =
            names.into_iter().flatten().map(|(name, _)| (name.clone(), json!(["attache-wrong"]))).collect();
        Reply::Result(json!({ "action": "accept", "content": content }))
    });
    let mark = stage.mark();
    stage.turn(&session, PromptKind::Elicit).await?.ok();
    let taken = words(stage, &session, mark).contains("attache-wrong");
    stage.check("ELIC-12", !taken, "a value that does not fit the form was taken");
    Ok(())
}

async fn refused(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    for how in ["decline", "cancel", "error"] {
        match how {
            "error" => {
                stage.services.answer_with("elicitation/create", |_| Reply::Error(-32603, "no".to_owned()))
            }
            action => answer(stage, action, "attache-refused"),
        }
        let mark = stage.mark();
        let ended = stage.turn(&session, PromptKind::Elicit).await;
        if !stage.received(mark).iter().any(|message| asks(message)) {
            ended?.ok();
            return unseen("the agent asked for nothing with a form");
        }
        match ended {
            Ok(_) => {
                let taken = words(stage, &session, mark).contains("attache-refused");
                stage.check(
                    "ELIC-20",
                    !taken,
                    format!("the form was answered with {how}, and its content was taken"),
                );
            }
            Err(Stop::PeerGone) => {
                stage.fail("ELIC-20", format!("the agent ended when its form was answered with {how}"));
                return Err(Stop::PeerGone);
            }
            Err(Stop::Deadline(_)) => {
                stage
                    .fail("ELIC-20", format!("the turn does not end after its form was answered with {how}"));
                return Ok(());
            }
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

async fn odd(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    answer(stage, "_attache", "attache-odd");
    let mark = stage.mark();
    stage.turn(&session, PromptKind::Elicit).await?.ok();
    if !stage.received(mark).iter().any(|message| asks(message)) {
        return unseen("the agent asked for nothing with a form");
    }
    let taken = words(stage, &session, mark).contains("attache-odd");
    stage.check("ELIC-33", !taken, "an unknown action was taken for `accept`");
    Ok(())
}

/// A watcher judges the form.
async fn secret(stage: &mut Stage) -> Step {
    stage.initialize(json!({ "elicitation": { "form": {} } })).await?;
    let session = stage.new_session().await?;
    answer(stage, "decline", "");
    let mark = stage.mark();
    let ended = turn(stage, &session, "Obtain a password for the service from me.").await?;
    let asked = stage.received(mark).iter().any(|message| asks(message));
    if !asked && ended.is_ok() {
        stage.pass("ELIC-15");
    }
    Ok(())
}

/// A watcher looks at the modes.
async fn one_mode(stage: &mut Stage) -> Step {
    stage.initialize(json!({ "elicitation": { "form": {} } })).await?;
    let session = stage.new_session().await?;
    answer(stage, "decline", "");
    for kind in [PromptKind::Elicit, PromptKind::ElicitUrl] {
        stage.turn(&session, kind).await?.ok();
    }
    Ok(())
}

async fn page(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    answer(stage, "accept", "");
    let mark = stage.mark();
    let id = stage.prompt(&session, PromptKind::ElicitUrl).await?;
    if !served(stage, &id, |message| asks(message) && message.params()["mode"] == "url").await? {
        return unseen("the agent asked for no visit of a page");
    }
    ping(stage).await?;
    // The page was never opened, so a completion comes too early.
    let done = |message: &Message| message.method() == Some("elicitation/complete");
    let early = stage.received(mark).iter().any(|message| done(message));
    stage.check("ELIC-17", !early, "the user agreed to visit a page, and that was taken for the visit");
    // A page that an agent under test serves is not there; one that knows this notification takes
    // it for the visit.
    let pages: Vec<Value> = stage
        .received(mark)
        .iter()
        .filter(|message| asks(message))
        .map(|message| message.params()["elicitationId"].clone())
        .collect();
    for page in pages {
        stage.notify("_attache/opened", json!({ "elicitationId": page })).await?;
    }
    ping(stage).await?;
    if stage.received(mark).iter().any(|message| done(message)) {
        stage.pass("ELIC-23");
    }
    if stage.is_running(&id) {
        stage.cancel(&session).await?;
    }
    stage.end_of(&id).await?.ok();
    Ok(())
}

async fn page_refused(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    answer(stage, "decline", "");
    let mark = stage.mark();
    let id = stage.prompt(&session, PromptKind::ElicitUrl).await?;
    if !served(stage, &id, asks).await? && !stage.received(mark).iter().any(|message| asks(message)) {
        stage.end_of(&id).await?.ok();
        return unseen("the agent asked for no visit of a page");
    }
    stage.end_of(&id).await?.ok();
    let done = stage.received(mark).iter().any(|message| message.method() == Some("elicitation/complete"));
    stage.check("ELIC-20", !done, "a declined page was taken for a visited one");
    Ok(())
}
