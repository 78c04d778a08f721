//! Elicitation.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::steps::{Turn, answer_to, describe_answer, end, leaves, lives, open_turn, probe};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

const FORM: &[Need] = &[Need::Client("elicitation.form")];

scenario_table! { Client in BOTH:
    "form": "a form is answered with content that fits", ["ELIC-18", "ELIC-19", "ELIC-11"] needs FORM => form;
    "unknown-mode": "an unknown mode is not accepted",
        ["ELIC-33"] needs [Need::Client("elicitation")] => unknown_mode;
    "mode-missing": "a mode that was not offered is refused",
        ["ELIC-02"] needs [Need::Client("elicitation")] => mode_missing;
    "url": "consent to open a page is given before the page is done",
        ["ELIC-17", "ELIC-18", "ELIC-22"] needs [Need::Act("url"), Need::Client("elicitation.url")] => url;
    "url-unvisited": "a page is not visited without consent",
        ["ELIC-28"] needs [Need::Act("decline"), Need::Client("elicitation.url")] => unvisited;
    "complete-unknown": "the end of an unknown elicitation", ["ELIC-25"] => complete_unknown;
    "withdrawn-error": "an error that was withdrawn is an unknown one", ["ELIC-34"] in V1 => withdrawn_error;
}

fn undecided() -> Stop {
    Stop::NotExercised("the question is not answered".to_owned())
}

async fn ask(stage: &mut Stage, turn: &Turn, params: Value) -> Result<Result<Value, i64>, Stop> {
    let id = stage.request("elicitation/create", turn.with(params)).await?;
    match answer_to(stage, &id).await {
        Ok(answer) => Ok(answer.map_err(|error| error.code)),
        Err(Stop::Deadline(_)) => Err(undecided()),
        Err(stop) => Err(stop),
    }
}

async fn form(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 3, "maxLength": 40 },
            "count": { "type": "integer", "minimum": 2, "maximum": 9 },
            "sure": { "type": "boolean" },
            "colour": { "type": "string", "enum": ["red", "green"] },
        },
        "required": ["name", "count", "sure", "colour"],
    });
    let params = json!({ "mode": "form", "message": "A few questions", "requestedSchema": schema });
    if let Ok(answer) = ask(stage, &turn, params).await?
        && answer["action"] == "accept"
    {
        let content = &answer["content"];
        let typed = content["name"].is_string()
            && content["count"].is_i64()
            && content["sure"].is_boolean()
            && content["colour"].is_string();
        stage.check(
            "ELIC-19",
            typed,
            format!("the content {content} does not fit the types that were asked for"),
        );
        if typed {
            let name = content["name"].as_str().map_or(0, |name| name.chars().count());
            let count = content["count"].as_i64().unwrap_or_default();
            let colour = content["colour"] == "red" || content["colour"] == "green";
            let valid = (3..=40).contains(&name) && (2..=9).contains(&count) && colour;
            stage.check(
                "ELIC-11",
                valid,
                format!("the content {content} is out of the limits that were asked for"),
            );
        }
    }
    end(stage, &turn).await
}

async fn unknown_mode(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let answer = ask(stage, &turn, json!({ "mode": "_x", "message": "A question of another kind" })).await?;
    let accepted = answer.as_ref().is_ok_and(|answer| answer["action"] == "accept");
    stage.check("ELIC-33", !accepted, "an elicitation of the unknown mode `_x` was accepted");
    end(stage, &turn).await
}

async fn mode_missing(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let params = match (stage.need("elicitation.form").is_ok(), stage.need("elicitation.url").is_ok()) {
        (true, true) => return Err(Stop::NotApplicable("the client offers both modes".to_owned())),
        (true, false) => json!({
            "mode": "url", "message": "A page", "elicitationId": "el-1", "url": "https://example.com/attache",
        }),
        _ => {
            json!({ "mode": "form", "message": "A form", "requestedSchema": { "type": "object", "properties": {} } })
        }
    };
    let mode = params["mode"].clone();
    let answer = ask(stage, &turn, params).await?;
    stage.check(
        "ELIC-02",
        answer == Err(-32602),
        format!(
            "the mode {mode}, which was not offered, was answered {answer}",
            answer = describe_answer(&answer)
        ),
    );
    end(stage, &turn).await
}

fn page(id: &str, url: &str) -> Value {
    json!({ "mode": "url", "message": "Please log in", "elicitationId": id, "url": url })
}

async fn url(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let id =
        stage.request("elicitation/create", turn.with(page("el-1", "https://example.com/attache"))).await?;
    match answer_to(stage, &id).await {
        Ok(Ok(answer)) if answer["action"] == "accept" => stage.pass("ELIC-17"),
        Ok(_) => return Err(Stop::NotExercised("the client did not consent".to_owned())),
        Err(Stop::Deadline(_)) => {
            stage.notify("elicitation/complete", json!({ "elicitationId": "el-1" })).await?;
            answer_to(stage, &id).await.map_err(|_| undecided())?.map_err(|_| undecided())?;
            stage.fail("ELIC-17", "consent came only after the agent said that the elicitation is complete");
        }
        Err(stop) => return Err(stop),
    }
    let odd = "an id / with ünïcode & more";
    let answer = ask(stage, &turn, page(odd, "https://example.com/attache")).await;
    match answer {
        Ok(answer) => stage.check(
            "ELIC-22",
            answer.is_ok(),
            format!("the elicitation id {odd:?} was refused: {answer}", answer = describe_answer(&answer)),
        ),
        Err(Stop::NotExercised(_)) => {}
        Err(stop) => return Err(stop),
    }
    end(stage, &turn).await
}

async fn unvisited(stage: &mut Stage) -> Step {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    let listener =
        listener.map_err(|error| Stop::NotExercised(format!("no page can be offered: {error}")))?;
    let port = listener.local_addr().map(|address| address.port()).unwrap_or_default();
    let turn = open_turn(stage).await?;
    let answer = ask(stage, &turn, page("el-1", &format!("http://127.0.0.1:{port}/attache"))).await?;
    if answer.as_ref().is_ok_and(|answer| answer["action"] == "accept") {
        return Err(Stop::NotExercised("the client consented".to_owned()));
    }
    probe(stage).await?;
    stage.check(
        "ELIC-28",
        listener.accept().is_err(),
        "the page was visited, and the user had not consented",
    );
    end(stage, &turn).await
}

async fn complete_unknown(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    stage.notify("elicitation/complete", json!({ "elicitationId": "el-ghost" })).await?;
    lives(stage, &turn, &["ELIC-25"], "the end of an unknown elicitation").await?;
    end(stage, &turn).await
}

async fn withdrawn_error(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let data = json!({ "elicitations": [] });
    let error = json!({ "code": -32042, "message": "URL elicitation required", "data": data });
    stage.send(json!({ "jsonrpc": "2.0", "id": turn.prompt, "error": error })).await?;
    leaves(stage, &["ELIC-34"], "the error -32042").await
}
