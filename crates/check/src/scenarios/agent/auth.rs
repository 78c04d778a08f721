//! Authentication. No scenario logs out a user who was logged in before.

use serde_json::{Value, json};

use super::{capabilities, opening};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent in BOTH:
    "auth": "a session is refused until the client authenticates",
        ["AUTH-01", "AUTH-05", "AUTH-06", "AUTH-07", "AUTH-17", "AUTH-22", "AUTH-24", "AUTH-26"] => auth;
    "auth-unknown": "an authentication method that was not offered", ["AUTH-04"] => unknown;
    "auth-status": "the authentication status is reported and not changed",
        ["AUTH-22"] needs [Need::Agent("auth.status")] => status;
    "auth-terminal": "a login in a terminal is offered only to those who can", ["AUTH-08"] => terminal;
}

async fn auth(stage: &mut Stage) -> Step {
    let result = stage.initialize(capabilities()).await?;
    let params = opening(stage, json!({}));
    match stage.call("session/new", params.clone()).await? {
        Ok(_) => {
            return Err(Stop::NotApplicable("the agent opens sessions without authentication".to_owned()));
        }
        Err(error) if error.code == -32000 => stage.pass("AUTH-05"),
        Err(error) => return Err(Stop::NotExercised(format!("session/new was refused: {}", error.message))),
    }
    ask_status(stage).await?;
    let methods = result["authMethods"].as_array().cloned().unwrap_or_default();
    stage.check("AUTH-01", !methods.is_empty(), "authentication is wanted and no method is announced");
    // AUTH-07: a method without a type is the agent's own.
    let Some(method) = methods.iter().find(|method| matches!(method["type"].as_str(), None | Some("agent")))
    else {
        return Err(Stop::NotExercised("the agent has no method that a client can call".to_owned()));
    };
    stage.not_applicable("RPC-24", "a login takes as long as a person takes");
    let typed = method.get("type").is_some();
    let version = stage.version();
    match stage.call(version.login_method(), json!({ "methodId": method[version.auth_key()] })).await? {
        Ok(_) if !typed => stage.pass("AUTH-07"),
        Ok(_) => {}
        Err(error) if !typed && matches!(error.code, -32601 | -32602) => {
            stage.fail(
                "AUTH-07",
                format!("a method without type was offered and is refused: {}", error.message),
            );
            return Ok(());
        }
        Err(error) => return Err(Stop::NotExercised(format!("the login failed: {}", error.message))),
    }
    let answer = stage.call("session/new", params.clone()).await?;
    stage.check("AUTH-06", answer.is_ok(), "after the login a session is still refused");
    // Logged in by this scenario, so it may log out again.
    if stage.need("auth.logout").is_ok() && stage.call(version.logout_method(), json!({})).await?.is_ok() {
        let answer = stage.call("session/new", params).await?;
        let refused = answer.is_err_and(|error| error.code == -32000);
        stage.check("AUTH-17", refused, "after logout a session is opened without authentication");
    }
    Ok(())
}

/// Two requests get the same answer, and never -32000.
// AUTH-22
async fn ask_status(stage: &mut Stage) -> Step {
    if stage.need("auth.status").is_err() {
        return Ok(());
    }
    let mut states: Vec<Value> = Vec::new();
    for _ in 0..2 {
        match stage.call("auth/status", json!({})).await? {
            Ok(result) => states.push(result["state"].clone()),
            Err(error) if error.code == -32000 => {
                stage.fail("AUTH-22", "auth/status was answered with -32000")
            }
            Err(_) => {}
        }
    }
    if let [first, second] = states.as_slice() {
        stage.check("AUTH-22", first == second, format!("asking changed {first} to {second}"));
    }
    Ok(())
}

async fn status(stage: &mut Stage) -> Step {
    stage.initialize(capabilities()).await?;
    ask_status(stage).await
}

async fn unknown(stage: &mut Stage) -> Step {
    let result = stage.initialize(capabilities()).await?;
    if result["authMethods"].as_array().is_none_or(Vec::is_empty) {
        return Err(Stop::NotApplicable("the agent offers no authentication".to_owned()));
    }
    match stage.call(stage.version().login_method(), json!({ "methodId": "attache-ghost" })).await? {
        Err(error) => stage.check(
            "AUTH-04",
            error.code == -32602,
            format!("refused with {} instead of -32602", error.code),
        ),
        Ok(_) => stage.fail("AUTH-04", "a method that was not offered was accepted"),
    }
    Ok(())
}

/// A watcher looks at the methods of the answer.
async fn terminal(stage: &mut Stage) -> Step {
    stage.initialize(json!({ "auth": { "terminal": false } })).await?;
    stage.probe().await?;
    Ok(())
}
