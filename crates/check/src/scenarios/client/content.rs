//! The content of prompts.

use serde_json::{Value, json};

use super::steps::{everything, find, new_session, prompted, whole_act};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Client:
    "image-missing": "no image for an agent that takes none",
        ["PROMPT-02", "CONT-02"] needs [Need::Act("image")] in BOTH => lacks("image", "image");
    "image": "an image for an agent that takes it",
        ["PROMPT-02", "CONT-01", "CONT-02", "CONT-03"] needs [Need::Act("image")] in BOTH => has("image");
    "audio-missing": "no audio for an agent that takes none",
        ["PROMPT-02", "CONT-02"] needs [Need::Act("audio")] in BOTH => lacks("audio", "audio");
    "audio": "audio for an agent that takes it",
        ["PROMPT-02", "CONT-01", "CONT-02", "CONT-03"] needs [Need::Act("audio")] in BOTH => has("audio");
    "resource-missing": "no resource for an agent that takes none",
        ["PROMPT-02", "CONT-02"] needs [Need::Act("resource")] in BOTH => lacks("resource", "embeddedContext");
    "resource": "a resource for an agent that takes it",
        ["PROMPT-02", "CONT-01", "CONT-02", "CONT-04"] needs [Need::Act("resource")] in BOTH => has("resource");
    "link": "a link to a resource", ["CONT-01", "CONT-05"] needs [Need::Act("link")] in BOTH
        => link;
    "command": "a slash command is a prompt", ["CMD-04"] needs [Need::Act("command")] => command;
    "refusal": "a turn that the agent refused", ["PROMPT-14"] => refusal;
}

/// The blocks of the prompt that the client sent.
async fn blocks(stage: &mut Stage, capabilities: Value) -> Result<Vec<Value>, Stop> {
    let said = whole_act(stage, capabilities).await?;
    let prompt = find(&said, "session/prompt").map(|asked| asked.params()["prompt"].clone());
    match prompt {
        Some(Value::Array(blocks)) => Ok(blocks),
        Some(_) => Err(Stop::Broken("the prompt is no list of blocks".to_owned())),
        None => Err(Stop::NotExercised("the client sent no prompt".to_owned())),
    }
}

async fn lacks(stage: &mut Stage, kind: &str, capability: &str) -> Step {
    let mut capabilities = everything();
    capabilities["promptCapabilities"][capability] = json!(false);
    let blocks = blocks(stage, capabilities).await;
    // One that says that it cannot and leaves keeps the rule too.
    let sent = match blocks {
        Ok(blocks) => blocks.iter().any(|block| block["type"] == kind),
        Err(Stop::NotExercised(_)) => false,
        Err(stop) => return Err(stop),
    };
    for rule in ["PROMPT-02", "CONT-02"] {
        stage.check(rule, !sent, format!("a block of type {kind} came, which the agent does not take"));
    }
    Ok(())
}

async fn has(stage: &mut Stage, kind: &str) -> Step {
    let blocks = blocks(stage, everything()).await?;
    if !blocks.iter().any(|block| block["type"] == kind) {
        return Err(Stop::NotExercised(format!(
            "the client was asked to send a block of type {kind} and did not"
        )));
    }
    stage.pass_all(&["PROMPT-02", "CONT-02"]);
    Ok(())
}

async fn link(stage: &mut Stage) -> Step {
    blocks(stage, everything()).await.map(drop)
}

async fn command(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    new_session(stage, super::steps::NEW, json!({})).await?;
    let commands = json!([{ "name": "attache", "description": "A command", "input": { "hint": "what" } }]);
    let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
    stage.update(super::steps::NEW, update).await?;
    let (prompt, asked) = prompted(stage).await?;
    let text = &asked.params()["prompt"][0]["text"];
    if let Some(text) = text.as_str() {
        stage.check(
            "CMD-04",
            text.starts_with("/attache"),
            format!("the command was run by the text {text:?}"),
        );
    }
    stage.end_turn(&prompt, "end_turn").await
}

async fn refusal(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    new_session(stage, super::steps::NEW, json!({})).await?;
    let (prompt, _) = prompted(stage).await?;
    stage.end_turn(&prompt, "refusal").await?;
    super::steps::leaves(stage, &["PROMPT-14"], "a refused turn").await
}
