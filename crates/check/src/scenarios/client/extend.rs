//! `_meta`, unknown members and methods of extensions.

use serde_json::{Value, json};

use super::steps::{Turn, describe_answer, end, everything, find, open_turn, serve_rest};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop, Version};

scenario_table! { Client in BOTH:
    "meta": "what others write into _meta changes nothing",
        ["EXT-01", "EXT-04", "EXT-10", "EXT-11", "EXT-12"] => meta;
    "unknown-members": "unknown members change nothing", ["EXT-03"] => members;
    "extension-request": "a request of an extension that the client does not know", ["EXT-07"] => request;
    "extension": "an extension is used where it is announced",
        ["INIT-28", "EXT-05", "EXT-06", "EXT-09"] needs [Need::Act("extension")] => extension;
    "extension-announced": "an extension that the agent announces",
        ["INIT-28"] needs [Need::Act("extension")] => announced;
}

/// A request that this client serves.
fn service(stage: &Stage, turn: &Turn) -> Result<(&'static str, Value), Stop> {
    if stage.version() == Version::V2 {
        return Ok(("session/request_permission", super::v2::question(turn)));
    }
    let notes = stage.cwd().join("notes.txt");
    if stage.need("fs.readTextFile").is_ok() {
        return Ok(("fs/read_text_file", turn.with(json!({ "path": notes }))));
    }
    if stage.need("terminal").is_ok() {
        return Ok(("terminal/create", turn.with(json!({ "command": "pwd", "args": [] }))));
    }
    Err(Stop::NotExercised("the client provides neither files nor terminals".to_owned()))
}

/// Asks twice, plain and changed, and sees that the change makes no difference.
async fn ignores(stage: &mut Stage, turn: &Turn, rule: &'static str, name: &str, value: Value) -> Step {
    let (method, plain) = service(stage, turn)?;
    let before = stage.call(method, plain.clone()).await?;
    let mut changed = plain;
    changed[name] = value;
    let shown = changed[name].to_string();
    match stage.call(method, changed).await {
        Ok(after) => {
            let kept = before.is_ok() == after.is_ok();
            stage.check(
                rule,
                kept,
                format!(
                    "with `{name}` of {shown} {method} is answered {after}",
                    after = describe_answer(&after)
                ),
            );
            Ok(())
        }
        Err(Stop::Deadline(_)) => {
            stage.fail(rule, format!("with `{name}` of {shown} {method} is not answered"));
            Ok(())
        }
        Err(stop) => Err(stop),
    }
}

async fn meta(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    ignores(
        stage,
        &turn,
        "EXT-01",
        "_meta",
        json!({ "attache.dev/foreign": "text", "traceparent": "00-0-0-00" }),
    )
    .await?;
    ignores(stage, &turn, "EXT-04", "_meta", json!({ "attache.dev/odd": [null, { "deep": [] }], "n": 5 }))
        .await?;
    ignores(stage, &turn, "EXT-11", "_meta", json!(5)).await?;
    ignores(stage, &turn, "EXT-12", "_meta", Value::Null).await?;
    end(stage, &turn).await
}

async fn members(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    ignores(stage, &turn, "EXT-03", "zz", json!(1)).await?;
    end(stage, &turn).await
}

async fn request(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    match stage.call("_attache.dev/unknown", json!({ "x": 1 })).await {
        Ok(Err(error)) => {
            stage.check("EXT-07", error.code == -32601, format!("it was refused with {}", error.code))
        }
        Ok(Ok(result)) => stage.fail("EXT-07", format!("it was answered with the result {result}")),
        Err(Stop::Deadline(_)) => stage.fail("EXT-07", "it was not answered"),
        Err(stop) => return Err(stop),
    }
    end(stage, &turn).await
}

async fn extension(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    let used = said
        .iter()
        .filter_map(|message| message.method())
        .find(|method| method.starts_with('_'))
        .map(str::to_owned);
    let why =
        format!("`{}` was used, which the agent does not announce", used.as_deref().unwrap_or_default());
    stage.check("EXT-09", used.is_none(), why);
    let _ = find(&said, "session/prompt");
    Ok(())
}

async fn announced(stage: &mut Stage) -> Step {
    let mut capabilities = everything();
    capabilities["_meta"] = json!({ "attache.dev": { "hello": true } });
    stage.accept(capabilities).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    // Whether it was right to use it is for the watchers to say.
    let used = said.iter().filter_map(|message| message.method()).any(|method| method.starts_with('_'));
    if used { Ok(()) } else { Err(Stop::NotExercised("the client used no extension".to_owned())) }
}
