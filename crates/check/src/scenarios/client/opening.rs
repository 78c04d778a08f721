//! The first messages of a client.

use std::time::Duration;

use serde_json::{Value, json};

use super::steps::{
    Turn, end, everything, find, first_prompt, leaves, new_session, open_turn_with, readable, serve_rest,
    whole_act,
};
use crate::judge::Kind;
use crate::scenarios::scenario_table;
use crate::schema::Method;
use crate::{Need, Role, Stage, Step, Stop, Version};

scenario_table! { Client:
    "first-words": "initialize comes first, and nothing more until it is answered",
        ["STDIO-03", "STDIO-04", "STDIO-05", "STDIO-09", "INIT-01", "INIT-02", "INIT-04", "INIT-05",
         "INIT-12", "INIT-17", "INIT-24", "INIT-27", "SESS-01", "RPC-01", "RPC-06", "RPC-07"] in BOTH => first_words;
    "unknown-version": "a version that the client does not speak", ["INIT-09"] => unknown_version;
    "no-capabilities": "an agent that can nothing beyond the baseline",
        ["INIT-15", "INIT-16"] => no_capabilities;
    "null-capabilities": "null is no", ["INIT-19"] needs [Need::Act("list")] => null_capabilities;
    "empty-capabilities": "an empty object is yes",
        ["INIT-19"] needs [Need::Act("list")] => empty_capabilities;
    "odd-capabilities": "capabilities of a wrong type count as absent", ["INIT-20"] => odd_capabilities;
    "agreed-version": "methods of version 1 after it was agreed",
        ["INIT-10", "PROMPT-01", "PROMPT-05", "SESS-02", "EXT-05"] => agreed_version;
    "another-agent": "a session of another agent is not used", ["SESS-04"] => another_agent;
    "end": "when its work is done the client closes the agent's input", ["STDIO-10"] in BOTH => end_of_work;
}

async fn first_words(stage: &mut Stage) -> Step {
    let first = match stage.next().await {
        Ok(first) => first,
        Err(Stop::Deadline(_)) => {
            stage.fail("STDIO-03", "the client said nothing on the agent's standard input");
            return Err(Stop::Broken("the client said nothing".to_owned()));
        }
        Err(stop) => return Err(stop),
    };
    stage.pass("STDIO-03");
    let is_first = first.asks("initialize");
    stage.check("INIT-01", is_first, "the first message is not initialize");
    stage.check("INIT-02", is_first, "the first message is not initialize");
    // Time to show impatience in.
    let early = stage.quiet(Duration::from_secs(2)).await?;
    let said =
        |message: &crate::judge::Message| message.method().is_some_and(|method| !method.starts_with("$/"));
    let early = early.iter().find(|message| said(message) && !message.asks("initialize"));
    let method = early.and_then(|message| message.method()).unwrap_or_default().to_owned();
    stage.check("INIT-02", early.is_none(), format!("`{method}` came before initialize was answered"));
    let session = method.starts_with("session/")
        || (!is_first && first.method().is_some_and(|method| method.starts_with("session/")));
    stage.check("SESS-01", !session, "a session method came before initialize was answered");
    if !is_first {
        return Err(Stop::Broken("the client does not begin with initialize".to_owned()));
    }
    stage.must_offer(&first)?;
    let answer = stage.greeting(&everything());
    stage.reply(&first, answer).await?;
    serve_rest(stage, |_, _| None).await.map(drop)
}

async fn unknown_version(stage: &mut Stage) -> Step {
    stage
        .accept_with(json!({ "protocolVersion": 999, "agentCapabilities": everything(), "authMethods": [] }))
        .await?;
    let answered = stage.trace().entries.len();
    let said = serve_rest(stage, |_, _| None).await?;
    // Messages before the answer are not a reaction to it.
    let mut later = said.iter().filter(|message| message.index >= answered);
    match later.find_map(|message| Some((message.index, message.method()?))) {
        None => stage.pass("INIT-09"),
        Some((index, method)) => {
            let why = format!("after version 999 was agreed the client went on with `{method}`");
            stage.fail_at("INIT-09", &[answered.saturating_sub(1), index], why);
        }
    }
    Ok(())
}

async fn no_capabilities(stage: &mut Stage) -> Step {
    stage.accept_with(json!({ "protocolVersion": 1 })).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    let used = said
        .iter()
        .filter_map(|message| message.method())
        .find(|method| needs_more(method))
        .map(str::to_owned);
    let why =
        format!("`{}` was used, which the agent does not announce", used.as_deref().unwrap_or_default());
    let extension = used.as_deref().is_some_and(|method| method.starts_with('_') || method.starts_with("$/"));
    stage.check("INIT-15", used.is_none() || extension, why);
    readable(stage)?;
    let prompted = find(&said, "session/prompt").is_some();
    stage.check("INIT-16", prompted, "with an agent that announces nothing no prompt came");
    Ok(())
}

/// Whether it is a method that not every agent serves.
fn needs_more(method: &str) -> bool {
    let theirs = Method::of(Version::V1, method).is_some_and(|method| method.is_sent_by(Role::Client));
    theirs && !BASELINE.contains(&method)
}

/// Methods that every agent serves.
const BASELINE: &[&str] = &["session/new", "session/prompt", "session/cancel", "initialize", "authenticate"];

fn list(value: Value) -> Value {
    let mut capabilities = everything();
    capabilities["sessionCapabilities"]["list"] = value;
    capabilities
}

async fn null_capabilities(stage: &mut Stage) -> Step {
    let said = whole_act(stage, list(Value::Null)).await?;
    stage.check(
        "INIT-19",
        find(&said, "session/list").is_none(),
        "session/list came although `list` is null",
    );
    Ok(())
}

async fn empty_capabilities(stage: &mut Stage) -> Step {
    let said = whole_act(stage, list(json!({}))).await?;
    stage.check(
        "INIT-19",
        find(&said, "session/list").is_some(),
        "session/list did not come although `list` is {}",
    );
    Ok(())
}

async fn odd_capabilities(stage: &mut Stage) -> Step {
    stage.accept_with(json!({ "protocolVersion": 1, "agentCapabilities": "all", "authMethods": 5 })).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    readable(stage)?;
    stage.check(
        "INIT-20",
        find(&said, "session/prompt").is_some(),
        "the client gave up over odd capabilities",
    );
    Ok(())
}

async fn agreed_version(stage: &mut Stage) -> Step {
    let turn: Turn = open_turn_with(stage, everything(), json!({})).await?;
    end(stage, &turn).await?;
    leaves(stage, &[], "the end of the turn").await
}

async fn another_agent(stage: &mut Stage) -> Step {
    stage
        .accept_with(json!({
            "protocolVersion": 1, "agentCapabilities": everything(), "authMethods": [],
            "agentInfo": { "name": "another-agent", "version": "9" },
        }))
        .await?;
    new_session(stage, "sess-of-another-agent", json!({})).await?;
    let turn = first_prompt(stage, "sess-of-another-agent").await?;
    let prompt = stage.received(0).iter().rev().find(|message| message.asks("session/prompt"));
    let session = prompt.map(|prompt| prompt.params()["sessionId"].clone()).unwrap_or_default();
    let given =
        session.as_str().and_then(|id| stage.log().sessions.get(id)).is_some_and(|session| session.opened);
    let foreign = !given && (session == super::steps::NEW || session == crate::target::SESSION);
    stage.check("SESS-04", !foreign, format!("the session {session} belongs to another agent"));
    end(stage, &turn).await
}

async fn end_of_work(stage: &mut Stage) -> Step {
    let turn = open_turn_with(stage, everything(), json!({})).await?;
    end(stage, &turn).await?;
    // One that stays open for the next prompt has not come to its end.
    if stage.closed().await.is_ok() {
        let cut =
            stage.received(0).last().is_some_and(|message| matches!(message.kind, Kind::Invalid { .. }));
        stage.check("STDIO-10", !cut, "the client left in the middle of a message");
    }
    Ok(())
}
