//! Asking the user: permissions, forms, pages to visit.

use crate::agent::turn::{Act, Cancelled, Context, Turn};
use attache_conn::CancelToken;
use serde_json::{Value, json};

pub(super) async fn permission(turn: &Turn) -> Act {
    let title = "Delete a file";
    let tool = turn.tool("delete", title, json!({})).await;
    match turn.permitted(&tool, title).await {
        Ok(allowed) => {
            if allowed {
                turn.tool_update(&tool, json!({ "status": "in_progress" })).await;
            }
            turn.tool_end(&tool, allowed, if allowed { "done" } else { "not allowed" }).await;
            turn.say(if allowed { "It is gone" } else { "As you wish" }).await;
            Ok(())
        }
        Err(cancelled) => {
            turn.tool_end(&tool, false, "cancelled").await;
            Err(cancelled)
        }
    }
}

/// ELIC-01: whether the client can be asked in that way.
fn can(turn: &impl Context, mode: &str) -> bool {
    let agent = turn.agent();
    // INIT-19 broken: null counts as yes.
    let null =
        agent.is("INIT-19") && agent.speaks_2() && agent.state().client["elicitation"].get(mode).is_some();
    turn.client_has(&format!("elicitation.{mode}")) || null || agent.is("ELIC-01")
}

/// ELIC-20, ELIC-33: only `accept` is acceptance; everything else is none.
fn accepted(turn: &impl Context, answer: Result<Value, Value>) -> Option<Value> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(_) if turn.agent().is("ELIC-20/error") => {
            turn.agent().die();
            return None;
        }
        Err(_) => return None,
    };
    let action = answer["action"].as_str().unwrap_or_default();
    let fine = match action {
        "accept" => true,
        "decline" | "cancel" => turn.agent().is("ELIC-20"),
        _ => turn.agent().is("ELIC-33"),
    };
    fine.then(|| answer["content"].clone())
}

pub(crate) async fn form(turn: &impl Context) -> Act {
    // ELIC-03: without forms there is still talk.
    if !can(turn, "form") {
        turn.say("Which colour do you like?").await;
        return Ok(());
    }
    let schema = json!({
        "type": "object", "title": "A colour",
        "properties": {
            "colour": { "type": "string", "title": "Colour", "maxLength": 200 },
            "count": { "type": "integer", "minimum": 0, "maximum": 9 },
            "share": { "type": "number" },
            "sure": { "type": "boolean", "default": false },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
        },
        "required": ["colour"],
    });
    let params = json!({
        "sessionId": turn.session(), "mode": "form", "message": "Which colour?", "requestedSchema": schema,
    });
    let answer = turn.ask("elicitation/create", params).await?;
    match accepted(turn, answer).map(|content| content["colour"].clone()) {
        // ELIC-12: the content is validated again.
        Some(Value::String(colour)) => turn.say(&format!("You like {colour}")).await,
        Some(other) if turn.agent().is("ELIC-12") => turn.say(&format!("You like {other}")).await,
        Some(_) => turn.say("That is no colour").await,
        None => turn.say("Never mind").await,
    }
    Ok(())
}

/// Two pages at once, so that two elicitations are open together.
pub(crate) async fn visit(turn: &impl Context) -> Act {
    if !can(turn, "url") {
        turn.say("Please log in on the page of the service").await;
        return Ok(());
    }
    let (left, right) = tokio::join!(page(turn, "login"), page(turn, "terms"));
    left?;
    right
}

/// ELIC-17: an accepted page is not a finished one; completion is sent after the visit.
async fn page(turn: &impl Context, name: &str) -> Act {
    let agent = turn.agent();
    let number = turn.count();
    let id = if agent.is("ELIC-21") { "page".to_owned() } else { format!("page-{number}") };
    let visited = CancelToken::new();
    agent.state().visits.insert(id.clone(), visited.clone());
    let params = json!({
        "sessionId": turn.session(), "mode": "url", "message": "Please visit a page", "elicitationId": id,
        "url": format!("https://service.example/{name}"),
    });
    let answer = turn.ask("elicitation/create", params).await;
    let finished = match answer {
        Ok(answer) if accepted(turn, answer.clone()).is_some() => {
            let refused = answer.is_ok_and(|answer| answer["action"] != "accept");
            if !(refused || agent.is("ELIC-17")) {
                turn.wait(visited.cancelled()).await?;
            }
            true
        }
        Ok(_) => false,
        Err(Cancelled) => return Err(Cancelled),
    };
    agent.state().visits.remove(&id);
    if finished {
        let id = if agent.is("ELIC-24") { "some-other-page" } else { &id };
        agent.notify("elicitation/complete", json!({ "elicitationId": id })).await;
    }
    turn.say(if finished { "Thank you" } else { "Never mind" }).await;
    Ok(())
}

/// ELIC-15: a secret is entered on a page, or not at all.
pub(crate) async fn secret(turn: &impl Context) -> Act {
    if turn.agent().is("ELIC-15") && can(turn, "form") {
        let schema = json!({ "type": "object", "properties": { "password": { "type": "string", "title": "Password" } } });
        let params = json!({
            "sessionId": turn.session(), "mode": "form", "message": "Your password?", "requestedSchema": schema,
        });
        turn.ask("elicitation/create", params).await?.ok();
        return Ok(());
    }
    if can(turn, "url") {
        return page(turn, "password").await;
    }
    turn.say("Please set the password in your settings").await;
    Ok(())
}
