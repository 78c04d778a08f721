//! The first messages of a client.

use std::time::Duration;

use serde_json::{Value, json};

use super::steps::{
    Turn, end, everything, find, first_prompt, leaves, new_session, open_turn_with, readable, serve_rest,
    whole_act,
};
use crate::judge::{Kind, has_own_rule};
use crate::scenarios::scenario_table;
use crate::schema::Method;
use crate::{Need, Role, Stage, Step, Stop, Version};

scenario_table! { Client:
    "first-words": "initialize comes first, and nothing more until it is answered",
        ["STDIO-03", "STDIO-04", "STDIO-05", "STDIO-09", "INIT-01", "INIT-02", "INIT-04", "INIT-05",
         "INIT-12", "INIT-17", "INIT-24", "INIT-27", "SESS-01", "RPC-01", "RPC-06", "RPC-07"] in BOTH => first_words;
    "unknown-version": "a version that the client does not speak", ["INIT-09"] in BOTH => unknown_version;
    "unsupported-version": "initialize is refused with the versions that the agent speaks",
        ["INIT-09"] in BOTH => unsupported_version;
    "no-capabilities": "an agent that can nothing beyond the baseline",
        ["INIT-15", "INIT-16"] in BOTH => no_capabilities;
    "null-capabilities": "null is no", ["INIT-19"] needs [Need::Act("list")] => null_capability("list");
    "empty-capabilities": "an empty object is yes",
        ["INIT-19"] needs [Need::Act("list")] => empty_capability("list");
    "v2-null-capabilities": "null is no",
        ["INIT-19"] needs [Need::Act("delete")] in V2 => null_capability("delete");
    "v2-empty-capabilities": "an empty object is yes",
        ["INIT-19"] needs [Need::Act("delete")] in V2 => empty_capability("delete");
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
    let mut result = stage.greeting(&everything());
    result["protocolVersion"] = json!(999);
    stage.accept_with(result).await?;
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

/// An agent of later versions refuses the offer. A client may make another.
// INIT-08, INIT-09
async fn unsupported_version(stage: &mut Stage) -> Step {
    let asked = stage.until_asked("initialize").await?;
    stage.must_offer(&asked)?;
    let refused = |id: &Value| {
        let supported = [stage.version().number() + 1];
        let data = json!({ "requested": stage.version().number(), "supported": supported });
        let error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": data });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    };
    let refusal = refused(asked.id().unwrap_or(&Value::Null));
    stage.send(refusal).await?;
    let refused_at = stage.trace().entries.len();
    let said = serve_rest(stage, |_, _| Some(Err((-32022, "Unsupported protocol version")))).await?;
    // Messages before the refusal are not a reaction to it.
    let later = said.iter().filter(|message| message.index >= refused_at);
    let other = later.filter_map(|message| message.method()).find(|method| *method != "initialize");
    let why = format!("after a refused offer the client went on with `{}`", other.unwrap_or_default());
    stage.check("INIT-09", other.is_none(), why);
    Ok(())
}

async fn no_capabilities(stage: &mut Stage) -> Step {
    match stage.version() {
        Version::V1 => stage.accept_with(json!({ "protocolVersion": 1 })).await?,
        Version::V2 => stage.accept(json!({})).await?,
    };
    let said = serve_rest(stage, |_, _| None).await?;
    let used = said
        .iter()
        .filter_map(|message| message.method())
        .find(|method| needs_more(stage.version(), method))
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

/// Whether not every agent serves the method, so that only the rule about capabilities concerns it.
// INIT-15
fn needs_more(version: Version, method: &str) -> bool {
    let theirs = Method::of(version, method).is_some_and(|method| method.is_sent_by(Role::Client));
    let known = match version {
        Version::V1 => method == "authenticate",
        Version::V2 => ["session/list", "session/resume", "session/close"].contains(&method),
    };
    theirs && !known && !BASELINE.contains(&method) && !has_own_rule(method)
}

/// Methods that every agent of both versions serves.
const BASELINE: &[&str] = &["session/new", "session/prompt", "session/cancel", "initialize"];

/// Serves the client's action with this value of a capability. Returns whether it used the method.
async fn uses(stage: &mut Stage, capability: &str, value: Value) -> Result<bool, Stop> {
    let mut capabilities = everything();
    capabilities["sessionCapabilities"][capability] = value;
    let said = whole_act(stage, capabilities).await?;
    Ok(find(&said, &format!("session/{capability}")).is_some())
}

async fn null_capability(stage: &mut Stage, name: &str) -> Step {
    for rule in ["LIST-01", "LIST-02", "DEL-01", "DEL-02"] {
        stage.not_applicable(rule, "the scenario is about null, of which INIT-19 speaks");
    }
    let used = uses(stage, name, Value::Null).await?;
    stage.check("INIT-19", !used, format!("session/{name} came although `{name}` is null"));
    Ok(())
}

async fn empty_capability(stage: &mut Stage, name: &str) -> Step {
    let used = uses(stage, name, json!({})).await?;
    stage.check("INIT-19", used, format!("session/{name} did not come although `{name}` is {{}}"));
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
