//! What prompts are made of.

use serde_json::{Value, json};

use super::play::{everything, find, new_session, prompted, scene, whole_act};
use crate::{BoxFuture, Need, Scenario, Stage, Step, Stop};

/// Two scenarios per kind of block: without the capability it stays out, with it watchers look at it.
macro_rules! block {
    ($lacks:ident, $has:ident, $kind:literal, $capability:literal) => {
        fn $lacks(stage: &mut Stage) -> BoxFuture<'_, Step> {
            Box::pin(lacks(stage, $kind, $capability))
        }
        fn $has(stage: &mut Stage) -> BoxFuture<'_, Step> {
            Box::pin(has(stage, $kind))
        }
    };
}

block!(no_image, image, "image", "image");
block!(no_audio, audio, "audio", "audio");
block!(no_resource, resource, "resource", "embeddedContext");

pub(super) const SCENARIOS: &[Scenario] = &[
    scene(
        "image-missing",
        "no image for an agent that takes none",
        &["PROMPT-02", "CONT-02"],
        &[Need::Act("image")],
        no_image,
    ),
    scene(
        "image",
        "an image for an agent that takes it",
        &["PROMPT-02", "CONT-01", "CONT-02", "CONT-03"],
        &[Need::Act("image")],
        image,
    ),
    scene(
        "audio-missing",
        "no audio for an agent that takes none",
        &["PROMPT-02", "CONT-02"],
        &[Need::Act("audio")],
        no_audio,
    ),
    scene(
        "audio",
        "audio for an agent that takes it",
        &["PROMPT-02", "CONT-01", "CONT-02", "CONT-03"],
        &[Need::Act("audio")],
        audio,
    ),
    scene(
        "resource-missing",
        "no resource for an agent that takes none",
        &["PROMPT-02", "CONT-02"],
        &[Need::Act("resource")],
        no_resource,
    ),
    scene(
        "resource",
        "a resource for an agent that takes it",
        &["PROMPT-02", "CONT-01", "CONT-02", "CONT-04"],
        &[Need::Act("resource")],
        resource,
    ),
    scene("link", "a link to a resource", &["CONT-01", "CONT-05"], &[Need::Act("link")], link),
    scene("command", "a slash command is a prompt", &["CMD-04"], &[Need::Act("command")], command),
    scene("refusal", "a turn that the agent refused", &["PROMPT-14"], &[], refusal),
];

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
            "the client was told to send a block of type {kind} and did not"
        )));
    }
    stage.pass("PROMPT-02");
    stage.pass("CONT-02");
    Ok(())
}

fn link(stage: &mut Stage) -> BoxFuture<'_, Step> {
    Box::pin(async move { blocks(stage, everything()).await.map(drop) })
}

fn command(stage: &mut Stage) -> BoxFuture<'_, Step> {
    Box::pin(async move {
        stage.accept(everything()).await?;
        new_session(stage, super::play::NEW, json!({})).await?;
        let commands =
            json!([{ "name": "attache", "description": "A command", "input": { "hint": "what" } }]);
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
        stage.update(super::play::NEW, update).await?;
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
    })
}

fn refusal(stage: &mut Stage) -> BoxFuture<'_, Step> {
    Box::pin(async move {
        stage.accept(everything()).await?;
        new_session(stage, super::play::NEW, json!({})).await?;
        let (prompt, _) = prompted(stage).await?;
        stage.end_turn(&prompt, "refusal").await?;
        super::play::leaves(stage, &["PROMPT-14"], "a refused turn").await
    })
}
