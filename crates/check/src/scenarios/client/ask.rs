//! Permission.

use std::time::Duration;

use serde_json::{Value, json};

use super::steps::{Turn, answer_to, end, open_turn};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Client:
    "permission": "the answer is one of the options, by its id", ["PERM-04", "PERM-11"] in BOTH
        => permission;
    "permission-two": "two questions at once", ["PERM-04", "PERM-12"] in BOTH => two;
    "permission-undecided": "only the user decides",
        ["PERM-05", "PERM-06"] needs [Need::Act("ask")] => undecided;
}

/// Requests permission, with opaque ids and two options of one kind.
pub(super) async fn ask(stage: &mut Stage, turn: &Turn, call: &str) -> Result<Value, Stop> {
    let call = json!({ "toolCallId": call, "title": "Remove a file", "kind": "delete", "status": "pending" });
    let options = json!([
        { "optionId": "opt/1 é", "name": "Allow", "kind": "allow_once" },
        { "optionId": "opt/2", "name": "Allow in this directory", "kind": "allow_once" },
        { "optionId": "opt/3", "name": "Reject", "kind": "reject_once" },
    ]);
    stage.ask_permission(&turn.session, call, options).await
}

async fn decided(stage: &mut Stage, id: &Value) -> Result<Value, Stop> {
    let undecided = || {
        Stop::NotExercised(
            "the question is not answered: let the client allow or reject by itself".to_owned(),
        )
    };
    match answer_to(stage, id).await {
        Err(Stop::Deadline(_)) => Err(undecided()),
        Ok(Ok(result)) => Ok(result["outcome"].clone()),
        Ok(Err(error)) => {
            stage.fail(
                "PERM-04",
                format!("the question was answered with the error {} {}", error.code, error.message),
            );
            Err(undecided())
        }
        Err(stop) => Err(stop),
    }
}

async fn permission(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let id = ask(stage, &turn, "call-1").await?;
    let outcome = decided(stage, &id).await?;
    let option = &outcome["optionId"];
    if outcome["outcome"] == "selected" {
        let named_by_kind =
            ["allow_once", "reject_once", "Allow", "Reject"].iter().any(|name| *option == *name);
        let why = format!("the option was named {option}, which is not its id");
        stage.check("PERM-11", !named_by_kind, why);
    }
    end(stage, &turn).await
}

async fn two(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let one = ask(stage, &turn, "call-1").await?;
    let two = ask(stage, &turn, "call-2").await?;
    decided(stage, &one).await?;
    match decided(stage, &two).await {
        Ok(_) => stage.pass("PERM-12"),
        Err(Stop::NotExercised(_)) => stage.fail("PERM-12", "of two questions only one was answered"),
        Err(stop) => return Err(stop),
    }
    end(stage, &turn).await
}

async fn undecided(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let id = ask(stage, &turn, "call-1").await?;
    let mark = stage.mark();
    stage.quiet(Duration::from_secs(2)).await?;
    let answer = stage
        .received(mark)
        .iter()
        .find(|message| message.id() == Some(&id))
        .map(|message| message.json["result"]["outcome"].clone());
    // Rejecting decides nothing that the user would have to undo.
    let allowed =
        answer.is_some_and(|outcome| outcome["outcome"] == "selected" && outcome["optionId"] != "opt/3");
    for rule in ["PERM-05", "PERM-06"] {
        stage.check(rule, !allowed, "the tool call was allowed, and no user was asked");
    }
    end(stage, &turn).await
}
