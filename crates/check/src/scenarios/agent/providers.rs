//! Providers. Every scenario restores what it changed.

use serde_json::{Value, json};

use super::unseen;
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

const PROVIDERS: Need = Need::Agent("providers");

scenario_table! { Agent in BOTH:
    "providers-announced": "providers are listed by those who announce them", ["PROV-01"] => announced;
    "providers": "providers are set and disabled",
        ["PROV-03", "PROV-04", "PROV-05", "PROV-06", "PROV-07", "PROV-08", "PROV-09", "PROV-10", "PROV-12"]
        needs [PROVIDERS] => providers;
}

async fn announced(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    let said = stage.need("providers").is_ok();
    let answer = stage.call("providers/list", json!({})).await?;
    let listed = answer.is_ok_and(|result| result["providers"].is_array());
    match (said, listed) {
        (true, _) => stage.check("PROV-01", listed, "providers are announced and cannot be listed"),
        (false, true) => stage.fail("PROV-01", "providers are listed and were not announced"),
        (false, false) => {
            return Err(Stop::NotApplicable("the agent does not advertise `providers`".to_owned()));
        }
    }
    Ok(())
}

async fn list(stage: &mut Stage) -> Result<Vec<Value>, Stop> {
    match stage.call("providers/list", json!({})).await? {
        Ok(result) => Ok(result["providers"].as_array().cloned().unwrap_or_default()),
        Err(error) => unseen(&format!("providers/list was refused: {}", error.message)),
    }
}

fn named<'a>(list: &'a [Value], id: &Value) -> Option<&'a Value> {
    list.iter().find(|provider| provider["providerId"] == *id)
}

async fn providers(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    let before = list(stage).await?;
    for provider in &before {
        let whole = provider["providerId"].is_string()
            && provider["supported"].is_array()
            && provider["required"].is_boolean();
        stage.check("PROV-03", whole, format!("a provider is {provider}"));
    }
    if let Some(required) = before.iter().find(|provider| provider["required"] == true) {
        let answer = stage.call("providers/disable", json!({ "providerId": required["providerId"] })).await?;
        let refused = answer.as_ref().err().is_some_and(|error| error.code == -32602);
        stage.check(
            "PROV-07",
            refused,
            "a required provider was disabled, or refused with another code than -32602",
        );
    }
    let ghost = stage.call("providers/disable", json!({ "providerId": "attache-ghost" })).await?;
    stage.check("PROV-08", ghost.is_ok(), "disabling an unknown provider was refused");
    let Some(provider) = before.iter().find(|provider| provider["required"] == false) else {
        return unseen("every provider is required");
    };
    let id = provider["providerId"].clone();
    change(stage, &id, &provider["supported"][0]).await?;
    odd(stage, &id).await?;
    disable(stage, &id).await?;
    // As it was before.
    let current = &provider["current"];
    if current.is_object() {
        let back = json!({ "providerId": id, "apiType": current["apiType"], "baseUrl": current["baseUrl"] });
        stage.call("providers/set", back).await?.ok();
    }
    Ok(())
}

/// The second setting replaces the first, and its headers are not listed.
// PROV-03, PROV-05
async fn change(stage: &mut Stage, id: &Value, api: &Value) -> Step {
    for base in ["https://one.attache.example", "https://two.attache.example"] {
        let params = json!({
            "providerId": id, "apiType": api, "baseUrl": base, "headers": { "Authorization": "attache-secret" },
        });
        if let Err(error) = stage.call("providers/set", params).await? {
            return unseen(&format!("providers/set was refused: {}", error.message));
        }
    }
    let now = list(stage).await?;
    stage.check(
        "PROV-03",
        !json!(now).to_string().contains("attache-secret"),
        "the list holds a secret that was set",
    );
    let base = named(&now, id).map(|provider| provider["current"]["baseUrl"].clone()).unwrap_or_default();
    stage.check(
        "PROV-05",
        base == "https://two.attache.example",
        format!("set twice, the provider is at {base}"),
    );
    Ok(())
}

/// An unknown protocol is refused, and everything goes on.
// PROV-06, PROV-10
async fn odd(stage: &mut Stage, id: &Value) -> Step {
    let params = json!({ "providerId": id, "apiType": "_attache", "baseUrl": "https://x.example" });
    let answer = match stage.call("providers/set", params).await {
        Ok(answer) => answer,
        Err(Stop::PeerGone) => {
            stage.fail("PROV-10", "the agent ended at a protocol that it does not know");
            return Err(Stop::PeerGone);
        }
        Err(stop) => return Err(stop),
    };
    stage.pass("PROV-10");
    let refused = answer.is_err_and(|error| error.code == -32602);
    stage.check("PROV-06", refused, "a protocol that is not supported was not refused with -32602");
    let old = json!({ "id": id, "apiType": "_attache", "baseUrl": "https://x.example" });
    let answer = stage.call("providers/set", old).await?;
    stage.check("PROV-12", answer.is_err(), "the older key `id` with an unknown protocol was accepted");
    Ok(())
}

async fn disable(stage: &mut Stage, id: &Value) -> Step {
    if let Err(error) = stage.call("providers/disable", json!({ "providerId": id })).await? {
        return unseen(&format!("providers/disable was refused: {}", error.message));
    }
    let now = list(stage).await?;
    match named(&now, id) {
        Some(provider) => {
            stage.pass("PROV-09");
            stage.check(
                "PROV-04",
                provider["current"].is_null(),
                format!("a disabled provider is still at {}", provider["current"]),
            );
        }
        None => stage.fail("PROV-09", "a disabled provider is gone from the list"),
    }
    Ok(())
}
