//! Modes and config options.

use serde_json::{Value, json};

use super::{begin, ping, unseen};
use crate::judge::agent::values;
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::{Stage, Step, Stop, Version};

scenario_table! { Agent:
    "modes": "the mode is changed", ["MODE-01", "MODE-04", "MODE-05", "MODE-06", "MODE-10", "MODE-11"]
        => modes;
    "options": "config options are changed",
        ["CONF-05", "CONF-09", "CONF-11", "CONF-13", "CONF-15", "CONF-18", "CONF-19", "MODE-10"]
        in BOTH => options;
    "options-plain": "a client that knows no boolean options", ["CONF-07"] => plain;
    "own-changes": "the agent changes its mode and options itself",
        ["MODE-07", "MODE-08", "CONF-16"] in BOTH => own_changes;
    "models": "the model, as drafts had it", ["MODEL-01", "MODEL-03"] => models;
}

fn known(stage: &Stage, session: &str) -> (Value, Value) {
    let known = stage.log().sessions.get(session);
    known.map(|known| (known.modes.clone(), known.config.clone())).unwrap_or_default()
}

async fn modes(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let (modes, _) = known(stage, &session);
    if !modes.is_object() {
        return Err(Stop::NotApplicable("the agent has no modes".to_owned()));
    }
    let offered: Vec<Value> =
        modes["availableModes"].as_array().into_iter().flatten().map(|mode| mode["id"].clone()).collect();
    for mode in &offered {
        match stage.call("session/set_mode", json!({ "sessionId": session, "modeId": mode })).await {
            Ok(Ok(result)) => {
                stage.pass("MODE-05");
                stage.check(
                    "MODE-11",
                    result.is_null() || result.is_object(),
                    format!("the answer is {result}"),
                );
                ping(stage).await?;
                mirrored(stage, &session, mode);
            }
            Ok(Err(error)) => {
                let wrong = matches!(error.code, -32602 | -32601);
                if wrong {
                    stage.fail(
                        "MODE-05",
                        format!("`modeId` {mode} of the offered modes was refused: {}", error.message),
                    );
                }
            }
            // RPC-24 judges that.
            Err(Stop::Deadline(_)) => return unseen("session/set_mode is not answered"),
            Err(stop) => return Err(stop),
        }
    }
    let none = stage.call("session/set_mode", json!({ "sessionId": session })).await?;
    stage.check("MODE-05", none.is_err(), "session/set_mode without a mode was accepted");
    match stage.call("session/set_mode", json!({ "sessionId": session, "modeId": "attache-ghost" })).await? {
        Err(error) => stage.check(
            "MODE-04",
            error.code == -32602,
            format!("refused with {} instead of -32602", error.code),
        ),
        Ok(_) => stage.fail("MODE-04", "a mode that was not offered was accepted"),
    }
    during_a_turn(stage, &session, offered.first().cloned().unwrap_or_default()).await
}

/// The option of the mode follows, if it names modes in the same way.
// MODE-10
fn mirrored(stage: &mut Stage, session: &str, mode: &Value) {
    let (_, config) = known(stage, session);
    let option = config.as_array().into_iter().flatten().find(|option| option["category"] == "mode");
    let Some(option) = option.filter(|option| values(option).any(|value| value == mode)) else { return };
    let now = option["currentValue"].clone();
    stage.check("MODE-10", now == *mode, format!("the mode was set to {mode} and its option is {now}"));
}

/// Also while the agent works.
// MODE-06
async fn during_a_turn(stage: &mut Stage, session: &str, mode: Value) -> Step {
    let id = super::sessions::busy(stage, session).await?;
    let answer = stage.call("session/set_mode", json!({ "sessionId": session, "modeId": mode })).await?;
    stage.check("MODE-06", answer.is_ok(), "the mode cannot be changed during a turn");
    stage.cancel(session).await?;
    let open: Vec<Value> = stage
        .log()
        .open_for(crate::Role::Agent, "session/request_permission")
        .map(|asked| asked.id.clone())
        .collect();
    for question in open {
        stage.answer(&question, json!({ "outcome": { "outcome": "cancelled" } })).await?;
    }
    stage.expect(&id).await?.ok();
    Ok(())
}

/// The params that set a select, but for the value. Version 2 names the type.
// V2-40
fn setting(version: Version, session: &str, option: &Value) -> Value {
    let mut params = json!({ "sessionId": session, "configId": option });
    if version == Version::V2 {
        params["type"] = json!("id");
    }
    params
}

/// Another value than the current one, if there is one, and the params that set it.
fn other(version: Version, session: &str, option: &Value) -> Option<Value> {
    let mut params = setting(version, session, &option[version.option_key()]);
    match option["type"].as_str()? {
        "boolean" => {
            params["type"] = json!("boolean");
            params["value"] = json!(option["currentValue"] != true);
        }
        _ => params["value"] = values(option).find(|value| **value != option["currentValue"])?.clone(),
    }
    Some(params)
}

async fn options(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let (_, config) = known(stage, &session);
    let list: Vec<Value> = config.as_array().cloned().unwrap_or_default();
    if list.is_empty() {
        return Err(Stop::NotApplicable("the agent has no config options".to_owned()));
    }
    let key = stage.version().option_key();
    // Options that an answer left out although they are there, as the next one shows.
    let mut missing: Vec<Value> = Vec::new();
    for option in &list {
        let Some(params) = other(stage.version(), &session, option) else { continue };
        let id = &option[key];
        let result = match stage.call("session/set_config_option", params.clone()).await? {
            Ok(result) => result,
            Err(error) => {
                // An agent may have reasons to refuse a value. CONF-09: the category is none.
                let mut named = params.clone();
                named["category"] = option["category"].clone();
                if option["category"].is_string()
                    && stage.call("session/set_config_option", named).await?.is_ok()
                {
                    let why =
                        format!("{params} was refused ({}), and taken with its category", error.message);
                    stage.fail("CONF-09", why);
                }
                continue;
            }
        };
        let now: Vec<&Value> = result["configOptions"].as_array().into_iter().flatten().collect();
        let set = now.iter().find(|entry| entry[key] == *id);
        stage.check(
            "CONF-13",
            set.is_some_and(|entry| entry["currentValue"] == params["value"]),
            format!("{id} was set to {} and the answer does not say so", params["value"]),
        );
        stage.check(
            "CONF-13",
            !missing.contains(id),
            format!("{id} can be set, and an earlier answer left it out"),
        );
        if option["category"].is_string() {
            stage.pass("CONF-09");
        }
        if option["category"] == "mode" && known(stage, &session).0.is_object() {
            ping(stage).await?;
            let mode = known(stage, &session).0["currentModeId"].clone();
            stage.check(
                "MODE-10",
                mode == params["value"],
                format!("the option of the mode was set to {} and the mode is {mode}", params["value"]),
            );
        }
        missing.extend(
            list.iter()
                .map(|option| &option[key])
                .filter(|id| !now.iter().any(|entry| entry[key] == **id))
                .cloned(),
        );
    }
    for (option, value) in [(&json!("attache-ghost"), "x"), (&list[0][key], "attache-ghost")] {
        let mut params = setting(stage.version(), &session, option);
        params["value"] = json!(value);
        match stage.call("session/set_config_option", params.clone()).await? {
            Err(error) => stage.check(
                "CONF-15",
                error.code == -32602,
                format!("refused with {} instead of -32602", error.code),
            ),
            Ok(_) => stage.fail("CONF-15", format!("{params} was accepted")),
        }
    }
    Ok(())
}

/// A watcher looks at the options.
async fn plain(stage: &mut Stage) -> Step {
    stage.initialize(json!({ "session": { "configOptions": {} } })).await?;
    let session = stage.new_session().await?;
    let (_, config) = known(stage, &session);
    if !config.is_array() {
        return Err(Stop::NotApplicable("the agent has no config options".to_owned()));
    }
    stage.turn(&session, PromptKind::Config).await?.ok();
    stage.pass("CONF-07");
    Ok(())
}

async fn own_changes(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let before = known(stage, &session).1.as_array().map(Vec::len);
    let mark = stage.mark();
    stage.turn(&session, PromptKind::Mode).await?.ok();
    let changed = stage
        .received(mark)
        .iter()
        .any(|message| message.update().is_some_and(|(_, kind, _)| kind == "current_mode_update"));
    let asked = stage.received(mark).iter().any(|message| super::is_question(message));
    if changed && asked {
        stage.pass("MODE-08");
    }
    let mark = stage.mark();
    stage.turn(&session, PromptKind::Config).await?.ok();
    let lists: Vec<Option<usize>> = stage
        .received(mark)
        .iter()
        .filter_map(|message| {
            let (_, kind, update) = message.update()?;
            (kind == "config_option_update").then(|| update["configOptions"].as_array().map(Vec::len))
        })
        .collect();
    if let Some(count) = lists.last() {
        stage.check("CONF-16", *count >= before, "an update of options does not list them all");
    }
    Ok(())
}

/// An older way to choose the model; kept in step with the option, or refused as unknown.
// MODEL-03
async fn models(stage: &mut Stage) -> Step {
    stage.initialize(super::capabilities()).await?;
    let result = stage.open_session(super::opening(stage, json!({}))).await?;
    let session = result["sessionId"].as_str().unwrap_or_default().to_owned();
    let models = &result["models"];
    if !models.is_object() {
        return Err(Stop::NotApplicable("the agent does not name models in its sessions".to_owned()));
    }
    let offered: Vec<Value> = models["availableModels"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|model| model["modelId"].clone())
        .collect();
    stage.check(
        "MODEL-01",
        offered.contains(&models["currentModelId"]),
        "the current model is not among those offered",
    );
    let another = offered.iter().find(|id| **id != models["currentModelId"]).cloned();
    let Some(model) = another else { return unseen("there is one model only") };
    match stage.call("session/set_model", json!({ "sessionId": session, "modelId": model })).await? {
        Ok(_) => {
            ping(stage).await?;
            let (_, config) = known(stage, &session);
            let option =
                config.as_array().into_iter().flatten().find(|option| option["category"] == "model").cloned();
            match option.map(|option| in_step(&option, &model)) {
                Some(Some(kept)) => {
                    stage.check("MODEL-03", kept, "the option of the model is not kept in step");
                }
                Some(None) => stage.skip("MODEL-03", "the option names models in another way"),
                None => stage.pass("MODEL-03"),
            }
        }
        Err(error) => stage.check(
            "MODEL-03",
            error.code == -32601,
            format!("models are offered and session/set_model was refused with {}", error.code),
        ),
    }
    Ok(())
}

/// Whether the option selects this model; `None` if it has no model with that id.
fn in_step(option: &Value, model: &Value) -> Option<bool> {
    let values = option["options"].as_array()?.iter();
    let mut values = values.flat_map(|value| {
        value["options"].as_array().map_or_else(|| vec![value], |group| group.iter().collect())
    });
    values.any(|value| value["value"] == *model).then(|| option["currentValue"] == *model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_and_an_option_are_compared_where_they_share_a_name() {
        let flat = json!({ "currentValue": "a", "options": [{ "value": "a" }, { "value": "b" }] });
        assert_eq!(in_step(&flat, &json!("a")), Some(true));
        assert_eq!(in_step(&flat, &json!("b")), Some(false));
        assert_eq!(in_step(&flat, &json!("a[low]")), None);
        let grouped =
            json!({ "currentValue": "a", "options": [{ "group": "g", "options": [{ "value": "b" }] }] });
        assert_eq!(in_step(&grouped, &json!("b")), Some(false));
    }
}
