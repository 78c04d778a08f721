//! Modes, config options, models and providers.

use std::rc::Rc;

use serde_json::{Value, json};

use super::steps::{everything, find, goes_on, leaves, serve_rest, serve_until};
use crate::judge::Message;
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop, Version};

/// The option that can be changed; the client's command for it is configured once.
const EFFORT: &str = "attache-effort";
const CONFIG: &[Need] = &[Need::Act("config")];

scenario_table! { Client:
    "mode": "another of the modes that there are",
        ["MODE-03", "MODE-05", "MODE-11", "MODE-12"] needs [Need::Act("mode")] => mode;
    "mode-or-option": "config options come before modes",
        ["MODE-09", "CONF-02"] needs [Need::Act("mode")] => mode_or_option;
    "option-plain": "an option without a category", ["CONF-09", "CONF-14", "V2-40"] needs CONFIG in BOTH
        => plain;
    "option-category": "options of unknown categories", ["CONF-10"] needs CONFIG in BOTH => category;
    "option-unknown": "an option of an unknown type is left alone",
        ["CONF-06"] needs CONFIG in BOTH => unknown;
    "option-groups": "values in groups", ["CONF-20", "CONF-14"] needs CONFIG in BOTH => groups;
    "option-boolean": "an option that is on or off",
        ["CONF-14", "V2-40"]
        needs [Need::Act("config"), Need::Client("session.configOptions.boolean")] in BOTH => boolean;
    "model": "another of the models that there are", ["MODEL-02"] needs [Need::Act("model")] => model;
    "providers-off": "providers that are off", ["PROV-04"] needs [Need::Act("providers")] in BOTH => providers_off;
    "providers-odd": "a provider with an unknown API type",
        ["PROV-10"] needs [Need::Act("providers")] in BOTH => providers_odd;
    "provider-required": "a provider that is needed is not turned off",
        ["PROV-13", "PROV-12"] needs [Need::Act("disable")] in BOTH => required;
}

/// Serves the client's act in a session that is opened with `session`, and gives back the first
/// request for `method`.
async fn change(stage: &mut Stage, session: Value, method: &str) -> Result<Option<Rc<Message>>, Stop> {
    stage.accept(everything()).await?;
    let mut opened = session;
    opened["sessionId"] = json!(super::steps::NEW);
    for option in opened.get_mut("configOptions").and_then(Value::as_array_mut).into_iter().flatten() {
        in_words_of(stage.version(), option);
    }
    let options = opened["configOptions"].clone();
    let said = serve_rest(stage, |method, _| match method {
        "session/new" => Some(Ok(opened.clone())),
        "session/set_config_option" => Some(Ok(json!({ "configOptions": options }))),
        "session/set_mode" => Some(Ok(Value::Null)),
        _ => None,
    })
    .await?;
    Ok(find(&said, method).cloned())
}

/// Renames the ids of an option of version 1 as the version has them.
fn in_words_of(version: Version, option: &mut Value) {
    if version == Version::V1 {
        return;
    }
    let rename = |object: &mut Value, old: &str, new: &str| {
        let id = object.as_object_mut().and_then(|object| object.remove(old));
        if let Some(id) = id {
            object[new] = id;
        }
    };
    rename(option, "id", version.option_key());
    for entry in option.get_mut("options").and_then(Value::as_array_mut).into_iter().flatten() {
        rename(entry, "group", "groupId");
    }
}

fn modes() -> Value {
    let mode = |id: &str| json!({ "id": id, "name": id });
    json!({ "currentModeId": "attache-ask", "availableModes": [mode("attache-ask"), mode("attache-code")] })
}

fn select(id: &str, category: Option<&str>) -> Value {
    let value = |value: &str| json!({ "value": value, "name": value });
    let mut option = json!({
        "id": id, "name": id, "type": "select", "currentValue": "attache-low", "options": [value("attache-low"), value("attache-high")],
    });
    if let Some(category) = category {
        option["category"] = json!(category);
    }
    option
}

fn not_changed(what: &str) -> Stop {
    Stop::NotExercised(format!("the client was asked to change {what} and did not"))
}

async fn mode(stage: &mut Stage) -> Step {
    // Watchers look at the request; the answer is null.
    let asked = change(stage, json!({ "modes": modes() }), "session/set_mode").await?;
    stage.check("MODE-12", asked.is_some(), "there are modes and no options, and the mode was not changed");
    asked.ok_or_else(|| not_changed("the mode"))?;
    let prompted = stage.received(0).iter().any(|message| message.asks("session/prompt"));
    if prompted {
        stage.pass("MODE-11");
        return Ok(());
    }
    leaves(stage, &["MODE-11"], "session/set_mode answered with null").await
}

async fn mode_or_option(stage: &mut Stage) -> Step {
    let session = json!({ "modes": modes(), "configOptions": [select("attache-mode", Some("mode"))] });
    let old = change(stage, session, "session/set_mode").await?;
    let new = stage.received(0).iter().any(|message| message.asks("session/set_config_option"));
    if old.is_none() && !new {
        return Err(not_changed("the mode"));
    }
    for rule in ["MODE-09", "CONF-02"] {
        stage.check(rule, new, "session/set_mode was used although there are config options");
    }
    Ok(())
}

async fn plain(stage: &mut Stage) -> Step {
    let asked =
        change(stage, json!({ "configOptions": [select(EFFORT, None)] }), "session/set_config_option")
            .await?;
    stage.check("CONF-09", asked.is_some(), "an option without a category could not be set");
    Ok(())
}

async fn category(stage: &mut Stage) -> Step {
    let options = json!([select(EFFORT, Some("zz")), select("attache-other", Some("_x"))]);
    let asked = change(stage, json!({ "configOptions": options }), "session/set_config_option").await?;
    stage.check("CONF-10", asked.is_some(), "an option of an unknown category could not be set");
    Ok(())
}

async fn unknown(stage: &mut Stage) -> Step {
    let slider = json!({ "id": "attache-slider", "name": "A slider", "type": "_slider", "currentValue": 5, "min": 0, "max": 9 });
    let options = json!([slider, select(EFFORT, Some("thought_level"))]);
    let asked = change(stage, json!({ "configOptions": options }), "session/set_config_option").await?;
    let asked = asked.ok_or_else(|| not_changed("an option"))?;
    let kept = asked.params()["configId"] != "attache-slider";
    stage.check("CONF-06", kept, "an option of an unknown type was set");
    Ok(())
}

async fn groups(stage: &mut Stage) -> Step {
    let value = |value: &str| json!({ "value": value, "name": value });
    let group = |name: &str, values: Value| json!({ "group": name, "name": name, "options": values });
    let option = json!({
        "id": EFFORT, "name": "Effort", "type": "select", "category": "thought_level", "currentValue": "attache-low",
        "options": [group("one", json!([value("attache-low")])), group("two", json!([value("attache-high")]))],
    });
    let asked = change(stage, json!({ "configOptions": [option] }), "session/set_config_option").await?;
    stage.check("CONF-20", asked.is_some(), "an option whose values are in groups could not be set");
    Ok(())
}

async fn boolean(stage: &mut Stage) -> Step {
    let option = json!({ "id": "attache-brave", "name": "Brave", "type": "boolean", "currentValue": false });
    let asked = change(stage, json!({ "configOptions": [option] }), "session/set_config_option").await?;
    asked.map(drop).ok_or_else(|| not_changed("an option"))
}

async fn model(stage: &mut Stage) -> Step {
    let model = |id: &str| json!({ "modelId": id, "name": id });
    let models = json!({ "currentModelId": "attache-small", "availableModels": [model("attache-small"), model("attache-big")] });
    let asked = change(stage, json!({ "models": models }), "session/set_model").await?;
    let asked = asked.ok_or_else(|| not_changed("the model"))?;
    let named = &asked.params()["modelId"];
    let kept = *named == "attache-small" || *named == "attache-big";
    stage.check("MODEL-02", kept, format!("session/set_model names {named}"));
    Ok(())
}

/// Serves the client's act with these providers, and sees that it goes on to a session or leaves.
async fn with_providers(stage: &mut Stage, providers: Value) -> Result<(), Stop> {
    stage.accept(everything()).await?;
    serve_rest(stage, |method, _| {
        (method == "providers/list").then(|| Ok(json!({ "providers": providers })))
    })
    .await?;
    if stage.received(0).iter().any(|message| message.asks("providers/list")) {
        return Ok(());
    }
    Err(Stop::NotExercised("the client did not ask for the providers".to_owned()))
}

/// Answers providers/list with these and sees that the client goes on.
async fn takes(stage: &mut Stage, providers: Value, rule: &'static str, what: &str) -> Step {
    stage.accept(everything()).await?;
    let asked = serve_until(stage, "providers/list").await?;
    stage.reply(&asked, json!({ "providers": providers })).await?;
    goes_on(stage, &[rule], what).await
}

async fn providers_off(stage: &mut Stage) -> Step {
    let off = json!([
        { "providerId": "attache-off", "supported": ["openai"], "required": false, "current": null },
        { "providerId": "attache-gone", "supported": ["openai"], "required": false },
    ]);
    takes(stage, off, "PROV-04", "providers that are off").await
}

async fn providers_odd(stage: &mut Stage) -> Step {
    let odd = json!([{
        "providerId": "attache-odd", "supported": ["_x", "zz"], "required": true,
        "current": { "apiType": "_x", "baseUrl": "https://example.com" },
    }]);
    takes(stage, odd, "PROV-10", "a provider with an unknown API type").await
}

async fn required(stage: &mut Stage) -> Step {
    let provider = |id: &str, required: bool| {
        json!({
            "providerId": id, "supported": ["openai"], "required": required,
            "current": { "apiType": "openai", "baseUrl": "https://example.com" },
        })
    };
    with_providers(stage, json!([provider("attache-needed", true), provider("attache-spare", false)]))
        .await?;
    let off: Vec<Value> = stage
        .received(0)
        .iter()
        .filter(|message| message.asks("providers/disable"))
        .map(|message| message.params().clone())
        .collect();
    let named = |id: &str| off.iter().any(|params| params["providerId"] == id || params["id"] == id);
    stage.check(
        "PROV-13",
        !named("attache-needed"),
        "providers/disable was sent for a provider that is required",
    );
    if named("attache-spare") {
        let kept = off.iter().all(|params| params["providerId"].is_string());
        stage.check("PROV-12", kept, "providers/disable names the provider by another key than providerId");
    }
    Ok(())
}
