//! Authentication.

use std::time::Duration;

use serde_json::{Value, json};

use super::steps::{
    NEW, end, everything, find, goes_on, leaves, lives, new_session, open_turn, prompted, serve_rest,
    serve_until, without,
};
use crate::judge::Kind;
use crate::scenarios::scenario_table;
use crate::target::Launch;
use crate::{Need, Stage, Step, Stop, Version};

scenario_table! { Client in BOTH:
    "login-needed": "a session only after authentication", ["AUTH-02", "AUTH-03", "AUTH-20"] => needed;
    "login-untyped": "a method without a type is the agent's own",
        ["AUTH-07", "AUTH-03"] needs [Need::Act("login")] in V1 => untyped;
    "login-terminal": "a terminal method is not passed to authenticate",
        ["AUTH-10"] needs [Need::Act("login")] => terminal;
    "login-in-terminal": "the agent's program is started once more, with what the method adds",
        ["AUTH-11", "AUTH-12"] needs [Need::Act("login"), Need::Client("auth.terminal")] => in_terminal;
    "login-in-vain": "a program that ends badly is no login",
        ["AUTH-12"] needs [Need::Act("login"), Need::Client("auth.terminal")] => in_vain;
    "login-unknown-kind": "a method of an unknown kind is left alone",
        ["AUTH-21"] needs [Need::Act("login")] => unknown_kind;
    "logout-missing": "no logout where the agent has none",
        ["AUTH-16"] needs [Need::Act("logout")] => logout_missing;
    "logout": "logout where the agent has it", ["AUTH-16"] needs [Need::Act("logout")] => logout;
    "auth-state": "an unknown state of authentication", ["AUTH-23"] => state;
    "auth-status": "the same in answer to a question", ["AUTH-23"] needs [Need::Act("auth_status")] => status;
    "login-again": "a turn that wants authentication again", ["AUTH-19"] => again;
}

/// The answer to `initialize` with this authentication method of version 1, as the version names
/// its members.
fn offering(stage: &Stage, mut method: Value) -> Value {
    if stage.version() == Version::V2 {
        method["methodId"] = method["id"].take();
        if let Some(members) = method.as_object_mut() {
            members.remove("id");
            members.entry("type").or_insert_with(|| json!("agent"));
            if let Some(Value::Object(env)) = members.get("env") {
                let env: Value =
                    env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
                members.insert("env".to_owned(), env);
            }
        }
    }
    let mut result = stage.greeting(&everything());
    result["authMethods"] = json!([method]);
    result
}

/// A method of the agent's own.
fn key() -> Value {
    json!({ "id": "attache-key", "name": "A key", "description": "Log in with a key" })
}

async fn needed(stage: &mut Stage) -> Step {
    stage.accept_with(offering(stage, key())).await?;
    let mut known = false;
    let mut refused = None;
    loop {
        let asked = stage.next().await.map_err(|stop| match stop {
            Stop::PeerGone | Stop::Deadline(_) => {
                Stop::NotExercised("the client does not authenticate by itself".to_owned())
            }
            stop => stop,
        })?;
        let Kind::Request { id, method, params } = &asked.kind else { continue };
        match method.as_str() {
            method if method == stage.version().login_method() => {
                known = true;
                stage.answer(id, json!({})).await?;
            }
            "session/new" if known => {
                stage.pass("AUTH-02");
                stage.answer(id, json!({ "sessionId": NEW })).await?;
                return serve_rest(stage, |_, _| None).await.map(drop);
            }
            "session/new" if refused.is_some_and(|refused| asked.index > refused) => {
                stage.fail("AUTH-02", "session/new came again without authentication");
                return Ok(());
            }
            "session/new" => {
                // Another that is on its way already is no answer to the refusal.
                stage.quiet(Duration::from_millis(200)).await?;
                refused = Some(stage.trace().entries.len());
                stage.answer_error(id, -32000, "Authentication required").await?;
            }
            method => match super::steps::good_answer(method, params) {
                Ok(result) => stage.answer(id, result).await?,
                Err((code, message)) => stage.answer_error(id, code, message).await?,
            },
        }
    }
}

/// Serves a client that logs in and returns its authentication method.
async fn login(stage: &mut Stage, method: Value) -> Result<Option<Value>, Stop> {
    stage.accept_with(offering(stage, method)).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    Ok(find(&said, stage.version().login_method()).map(|asked| asked.params()["methodId"].clone()))
}

async fn untyped(stage: &mut Stage) -> Step {
    let with = login(stage, key()).await?;
    stage.check("AUTH-07", with.is_some(), "a method without a type was not used for authenticate");
    Ok(())
}

async fn terminal(stage: &mut Stage) -> Step {
    let method =
        json!({ "id": "attache-tty", "name": "In a terminal", "type": "terminal", "args": ["--login"] });
    let with = login(stage, method).await?;
    let why = format!("{} was called with a terminal method", stage.version().login_method());
    stage.check("AUTH-10", with.is_none(), why);
    Ok(())
}

/// Offers a login in a terminal and lets its program end with `code`.
async fn launched(stage: &mut Stage, code: u8) -> Result<Launch, Stop> {
    let env = json!({ "ATTACHE_CHECK_LOGIN": "yes" });
    let args = ["--attache-login", "two words"];
    let method =
        json!({ "id": "attache-tty", "name": "In a terminal", "type": "terminal", "args": args, "env": env });
    stage.accept_with(offering(stage, method)).await?;
    stage.relaunched(code).await
}

async fn in_terminal(stage: &mut Stage) -> Step {
    let launch = launched(stage, 0).await?;
    let args = launch.args == ["--attache-login", "two words"];
    let env = launch.env.iter().any(|(name, value)| name == "ATTACHE_CHECK_LOGIN" && value == "yes");
    stage.check("AUTH-11", args && env, format!("the program was started with {launch:?}"));
    serve_rest(stage, |_, _| None).await.map(drop)
}

async fn in_vain(stage: &mut Stage) -> Step {
    // A start as an agent does not end as a login that fails.
    if launched(stage, 1).await?.args.is_empty() {
        return Err(Stop::NotExercised("the client did not log in by the program's words".to_owned()));
    }
    let ended = stage.trace().entries.len();
    let said = serve_rest(stage, |_, _| None).await?;
    let went_on = said.iter().any(|message| message.asks("session/new") && message.index >= ended);
    stage.check("AUTH-12", !went_on, "after a login that failed the client went on to a session");
    Ok(())
}

async fn unknown_kind(stage: &mut Stage) -> Step {
    let vars = json!([{ "name": "ATTACHE_KEY" }]);
    let method = json!({ "id": "attache-env", "name": "A variable", "type": "env_var", "vars": vars });
    let with = login(stage, method).await?;
    let why = format!("{} was called with a method of an unknown kind", stage.version().login_method());
    stage.check("AUTH-21", with.is_none(), why);
    Ok(())
}

async fn logout_missing(stage: &mut Stage) -> Step {
    stage.accept(without("/auth/logout")).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    let method = stage.version().logout_method();
    let why = format!("{method} was called, which the agent does not have");
    stage.check("AUTH-16", find(&said, method).is_none(), why);
    Ok(())
}

async fn logout(stage: &mut Stage) -> Step {
    stage.accept_with(offering(stage, key())).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    if find(&said, stage.version().logout_method()).is_none() {
        return Err(Stop::NotExercised("the client was asked to log out and did not".to_owned()));
    }
    stage.pass("AUTH-16");
    Ok(())
}

async fn state(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    stage.notify("auth/status_update", json!({ "state": "_x" })).await?;
    lives(stage, &turn, &["AUTH-23"], "the state `_x` of authentication").await?;
    end(stage, &turn).await
}

async fn status(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    let asked = serve_until(stage, "auth/status").await?;
    stage.reply(&asked, json!({ "state": "_x" })).await?;
    goes_on(stage, &["AUTH-23"], "the state `_x` of authentication").await
}

async fn again(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    new_session(stage, NEW, json!({})).await?;
    let (prompt, _) = prompted(stage).await?;
    stage.answer_error(&prompt, -32000, "Authentication required").await?;
    leaves(stage, &["AUTH-19"], "a turn that wants authentication").await
}
