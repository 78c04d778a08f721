//! Negotiation, login, ids, and params that do not fit.

use serde_json::{Value, json};

use crate::judge::Kind;
use crate::scenarios::agent::{anonymous_errors, begin, opening, reopening, unseen};
use crate::scenarios::scenario_table;
use crate::{Stage, Step, Stop};

scenario_table! { Agent in V2:
    "v2-version": "version 2 is asked for",
        ["INIT-05", "INIT-06", "INIT-24", "INIT-27", "V2-04"] => version;
    "v2-newest": "a version that does not exist yet is asked for", ["INIT-08"] => newest;
    "v2-older": "version 1 is asked for", ["INIT-08", "INIT-25"] => older;
    "v2-again": "initialize comes again, before and after another request", ["INIT-25"] => again;
    "v2-null-id": "a request with a null id", ["V2-01"] => null_id;
    "v2-error-ids": "errors name the request that they answer", ["V2-02"] => error_ids;
    "v2-withdrawn": "withdrawing unknown and answered requests does nothing", ["V2-42"] => withdrawn;
    "v2-auth": "login and logout are there if there are methods", ["V2-07"] => auth;
    "v2-bad-payload": "known types with a wrong payload are refused", ["V2-20"] => bad_payload;
    "v2-unsupported": "types that the agent does not support are refused", ["V2-25"] => unsupported;
}

/// The params of `initialize`.
fn offer(version: u64) -> Value {
    let info = json!({ "name": "attache-check", "version": env!("CARGO_PKG_VERSION") });
    json!({ "protocolVersion": version, "info": info, "capabilities": {} })
}

/// The highest version at or below the offer.
// INIT-08
async fn newest(stage: &mut Stage) -> Step {
    let answered = match stage.call("initialize", offer(65_535)).await? {
        Ok(result) => result["protocolVersion"].clone(),
        Err(error) if error.code == -32000 => return unseen("the agent wants a login"),
        Err(error) => {
            let why = format!("refused with {} instead of a version that the agent knows", error.code);
            stage.fail("INIT-08", why);
            return Ok(());
        }
    };
    let mut highest = answered == 2;
    if answered == 1 {
        // INIT-25: a second offer shows whether version 2 was passed over.
        let second = stage.call("initialize", offer(2)).await?;
        highest = !second.is_ok_and(|result| result["protocolVersion"] == 2);
    }
    stage.check("INIT-08", highest, format!("version 65535 was asked for and {answered} answered"));
    Ok(())
}

/// An agent without version 1 names those that it has, and waits for another offer.
// INIT-08
async fn older(stage: &mut Stage) -> Step {
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    match stage.call("initialize", params).await? {
        Ok(result) => {
            let version = &result["protocolVersion"];
            stage.check("INIT-08", *version == 1, format!("version 1 was asked for and {version} answered"));
        }
        Err(error) if error.code == -32000 => return unseen("the agent wants a login"),
        Err(error) => {
            let data = &error.data;
            let newer = |version: &Value| version.as_u64().is_some_and(|version| version > 1);
            let named = data["supported"].as_array();
            let named = named.is_some_and(|list| !list.is_empty() && list.iter().all(newer));
            let fits = error.code == -32022 && data["requested"] == 1 && named;
            stage.check("INIT-08", fits, format!("version 1 was refused with {error}, data {data}"));
            let open = stage.call("initialize", offer(2)).await?.is_ok();
            stage.check("INIT-25", open, "after a refused offer initialize was refused");
        }
    }
    Ok(())
}

/// Until the first other request the latest offer counts, but the version stays.
// INIT-25
async fn again(stage: &mut Stage) -> Step {
    // Not by the stage, which may log in: that is another request.
    let first = stage.call("initialize", offer(2)).await?;
    if !first.is_ok_and(|result| result["protocolVersion"] == 2) {
        return Err(Stop::NotApplicable("the agent does not speak version 2".to_owned()));
    }
    let kept = stage.call("initialize", offer(2)).await?.is_ok();
    stage.check("INIT-25", kept, "a second initialize before any other request was refused");
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let moved = stage.call("initialize", params).await?.is_ok_and(|result| result["protocolVersion"] == 1);
    stage.check("INIT-25", !moved, "a repeated initialize moved a connection of version 2 to version 1");
    if moved {
        return Ok(());
    }
    stage.call("session/list", json!({})).await?.ok();
    let refused = stage.call("initialize", offer(2)).await?.is_err_and(|error| error.code == -32600);
    stage.check("INIT-25", refused, "initialize after another request was not refused with -32600");
    Ok(())
}

async fn version(stage: &mut Stage) -> Step {
    match stage.call("initialize", offer(2)).await? {
        Ok(result) => {
            stage.pass("INIT-24");
            let version = &result["protocolVersion"];
            if *version == 1 {
                return Err(Stop::NotApplicable("the agent does not speak version 2".to_owned()));
            }
            stage.check("INIT-06", *version == 2, format!("version 2 was asked for and {version} answered"));
        }
        Err(error) if error.code == -32000 => stage.fail("INIT-24", "initialize itself wants credentials"),
        Err(error) => return Err(Stop::Broken(format!("initialize was refused: {error}"))),
    }
    Ok(())
}

async fn null_id(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    stage.probe().await?;
    stage.request_as(Value::Null, "session/close", json!({ "sessionId": "attache-ghost" })).await?;
    let said = stage.probe().await?;
    let refused = anonymous_errors(&said).contains(&-32600);
    stage.check("V2-01", refused, "a request with a null id was not refused with -32600");
    Ok(())
}

/// A watcher looks at the ids.
// V2-02
async fn error_ids(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    stage.call("no/such", json!({})).await?.ok();
    stage.send_line("{oops").await?;
    stage.probe().await?;
    Ok(())
}

async fn withdrawn(stage: &mut Stage) -> Step {
    begin(stage).await?;
    stage.probe().await?;
    let done = stage.request("session/close", json!({ "sessionId": "attache-ghost" })).await?;
    stage.expect(&done).await?.ok();
    for id in [done, json!("attache-ghost")] {
        stage.notify("$/cancel_request", json!({ "requestId": id })).await?;
        let answered = stage
            .probe()
            .await?
            .iter()
            .any(|message| matches!(&message.kind, Kind::Response { id: other, .. } if *other == id));
        stage.check("V2-42", !answered, format!("withdrawing the request {id} was answered"));
    }
    Ok(())
}

async fn auth(stage: &mut Stage) -> Step {
    let result = stage.initialize(json!({})).await?;
    if result["authMethods"].as_array().is_none_or(Vec::is_empty) {
        return Err(Stop::NotApplicable("the agent has no auth methods".to_owned()));
    }
    // A made-up method is refused, but not as an unknown request.
    for (method, params) in
        [("auth/login", json!({ "methodId": "attache-ghost" })), ("auth/logout", json!({}))]
    {
        let missing = stage.call(method, params).await?.is_err_and(|error| error.code == -32601);
        stage.check("V2-07", !missing, format!("there are auth methods, and {method} does not exist"));
    }
    Ok(())
}

/// Checks that the params are refused with -32602.
async fn refused(stage: &mut Stage, rule: &'static str, method: &str, params: Value) -> Step {
    let shown = params.to_string();
    match stage.call(method, params).await? {
        Err(error) if error.code == -32602 => stage.pass(rule),
        // An agent that wants a login first has not looked at the params.
        Err(error) if error.code == -32000 => return unseen("the agent wants a login"),
        Err(error) => {
            stage.fail(rule, format!("{method} {shown} was refused with {} instead of -32602", error.code));
        }
        Ok(_) => stage.fail(rule, format!("{method} {shown} was accepted")),
    }
    Ok(())
}

async fn bad_payload(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let prompt = |block: Value| json!({ "sessionId": session, "prompt": [block] });
    refused(stage, "V2-20", "session/prompt", prompt(json!({ "type": "text" }))).await?;
    refused(stage, "V2-20", "session/prompt", prompt(json!({ "type": "resource_link", "uri": 5 }))).await?;
    let servers = json!({ "mcpServers": [{ "type": "stdio", "name": "attache" }] });
    let params = opening(stage, servers);
    refused(stage, "V2-20", "session/new", params).await
}

async fn unsupported(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let prompt = |block: Value| json!({ "sessionId": session, "prompt": [block] });
    refused(stage, "V2-25", "session/prompt", prompt(json!({ "type": "_attache" }))).await?;
    let media = [("image", "image/png"), ("audio", "audio/wav")];
    for (kind, mime) in media {
        if stage.need(&format!("session.prompt.{kind}")).is_err() {
            let block = json!({ "type": kind, "data": "AAAA", "mimeType": mime });
            refused(stage, "V2-25", "session/prompt", prompt(block)).await?;
        }
    }
    let servers = json!({ "mcpServers": [{ "type": "_attache", "name": "attache" }] });
    let params = opening(stage, servers);
    refused(stage, "V2-25", "session/new", params).await?;
    let mut params = reopening(stage, &session);
    params["replayFrom"] = json!({ "type": "_attache" });
    refused(stage, "V2-25", "session/resume", params).await?;
    let config = stage.log().sessions.get(&session).map(|known| known.config.clone()).unwrap_or_default();
    if let Some(option) = config.as_array().and_then(|options| options.first()) {
        let params =
            json!({ "sessionId": session, "configId": option["configId"], "type": "_attache", "value": 1 });
        refused(stage, "V2-25", "session/set_config_option", params).await?;
    }
    Ok(())
}
