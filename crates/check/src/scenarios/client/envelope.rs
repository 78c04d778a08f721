//! JSON-RPC: odd, wrong and invalid messages.

use std::rc::Rc;

use serde_json::{Value, json};

use super::steps::{Turn, answer_to, end, leaves, lives, new_session, open_turn, probe, prompted};
use crate::judge::{Kind, Message};
use crate::scenarios::scenario_table;
use crate::stage::Id;
use crate::{Need, Stage, Step, Stop, Version};

scenario_table! { Client:
    "wrong-version": "a request of another JSON-RPC is not carried out", ["RPC-01"] in BOTH => wrong_version;
    "odd-ids": "answers carry the id of their request, of whatever form", ["RPC-05"] in BOTH => odd_ids;
    "no-ids": "a list and an object are no ids", ["RPC-06"] => no_ids;
    "same-id": "a request with the id of a pending one of the client is served", ["RPC-08"] => same_id;
    "not-json": "a line that is no JSON is reported and survived", ["RPC-09"] in BOTH => not_json;
    "no-message": "JSON that is no message is reported, an answer without version dropped",
        ["RPC-10"] in BOTH => no_message;
    "batch": "a batch is refused once", ["RPC-11", "V2-38"] in BOTH => batch;
    "unknown-method": "an unknown method is refused as such",
        ["RPC-12", "RPC-15"] in BOTH => unknown_method;
    "bad-params": "params that do not fit are refused as such", ["RPC-13", "RPC-25"] in BOTH => bad_params;
    "error-codes": "error codes are used for what they mean",
        ["RPC-03", "RPC-15", "RPC-17", "RPC-18"] => error_codes;
    "unknown-error": "a turn that fails with an unknown code", ["RPC-16"] in BOTH => unknown_error;
    "notifications": "notifications are not answered, whatever is wrong with them",
        ["RPC-04", "EXT-08", "CANCEL-14"] in BOTH => notifications;
    "unknown-answer": "an unsolicited response is dropped", ["RPC-14"] in BOTH => unknown_answer;
    "side-by-side": "a request that takes long does not hold up others",
        ["RPC-20"] needs [Need::Client("terminal")] => side_by_side;
    "one-answer": "each request gets one answer", ["RPC-02", "RPC-23", "RPC-24"] in BOTH => one_answer;
    "two-turns": "two sessions at work at once", ["RPC-08", "RPC-20"] needs [Need::Act("two")] in BOTH => two_turns;
}

/// The answers among `received`.
fn answers(message: &[Rc<Message>]) -> impl Iterator<Item = (&Value, Result<&Value, i64>)> {
    message.iter().filter_map(|message| match &message.kind {
        Kind::Response { id, outcome: Ok(result) } => Some((id, Ok(result))),
        Kind::Response { id, outcome: Err(error) } => Some((id, Err(error["code"].as_i64().unwrap_or(0)))),
        _ => None,
    })
}

fn permission(stage: &Stage, turn: &Turn) -> Value {
    if stage.version() == Version::V2 {
        return super::v2::question(turn);
    }
    turn.with(json!({
        "toolCall": { "toolCallId": "call-1", "title": "Remove a file", "kind": "delete" },
        "options": [
            { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ],
    }))
}

async fn wrong_version(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let mark = stage.mark();
    for version in [json!("1.0"), Value::Null] {
        let mut request = json!({ "id": "other", "method": "session/request_permission", "params": permission(stage, &turn) });
        if !version.is_null() {
            request["jsonrpc"] = version;
        }
        stage.send(request).await?;
    }
    probe(stage).await?;
    let served = answers(stage.received(mark)).any(|(id, outcome)| id == "other" && outcome.is_ok());
    stage.check("RPC-01", !served, "a request without `\"jsonrpc\":\"2.0\"` was carried out");
    end(stage, &turn).await
}

async fn odd_ids(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    for id in [json!(0), json!(-1), json!("a"), json!("1"), json!(1_u64 << 53), json!("")] {
        let mark = stage.mark();
        stage.request_as(id.clone(), "_attache/id", json!({})).await?;
        match answer_to(stage, &id).await {
            Ok(_) => stage.pass("RPC-05"),
            Err(Stop::Deadline(what)) => {
                let like = |other: &Value| text_of(other) == text_of(&id);
                let why = answers(stage.received(mark)).find(|(other, _)| like(other)).map(|(other, _)| {
                    format!("the request with the id {id} was answered with the id {other}")
                });
                let Some(why) = why else { return Err(Stop::Deadline(what)) };
                stage.fail("RPC-05", why);
            }
            Err(stop) => return Err(stop),
        }
    }
    end(stage, &turn).await
}

/// An id without its quotes.
fn text_of(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

async fn no_ids(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    for id in [json!([1]), json!({})] {
        let mark = stage.mark();
        stage.request_as(id.clone(), "_attache/id", json!({})).await?;
        probe(stage).await?;
        let refused =
            answers(stage.received(mark)).any(|(id, outcome)| id.is_null() && outcome == Err(-32600));
        stage.check("RPC-06", refused, format!("the id {id} was not refused with -32600 and a null id"));
    }
    end(stage, &turn).await
}

async fn same_id(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    if !turn.answers_unknown() {
        return Err(Stop::NotExercised("the client does not answer unknown requests".to_owned()));
    }
    let id: Id = turn.prompt.clone();
    if !id.is_string() && !id.is_i64() {
        return Err(Stop::NotExercised("the client's own ids are none".to_owned()));
    }
    stage.request_as(id.clone(), "_attache/same", json!({})).await?;
    match answer_to(stage, &id).await {
        Ok(_) => stage.pass("RPC-08"),
        Err(Stop::Deadline(_)) => {
            stage.fail("RPC-08", "a request with the id of the client's own pending prompt was not answered");
        }
        Err(stop) => return Err(stop),
    }
    end(stage, &turn).await
}

/// Sends a line and sees that it is refused with `code`, once, without an id.
async fn refused(stage: &mut Stage, rule: &'static str, line: &[u8], code: i64) -> Step {
    let mark = stage.mark();
    stage.send_line(line).await?;
    let shown = String::from_utf8_lossy(line).into_owned();
    match probe(stage).await {
        Ok(()) => {
            // A client that could read the id may name it.
            let own = serde_json::from_slice::<Value>(line).unwrap_or_default()["id"].clone();
            let fits = |id: &Value| id.is_null() || *id == own;
            let count = answers(stage.received(mark))
                .filter(|(id, outcome)| fits(id) && *outcome == Err(code))
                .count();
            stage.check(
                rule,
                count == 1,
                format!("`{shown}` was refused {count} times with {code} and a null id"),
            );
            Ok(())
        }
        Err(stop) => {
            stage.fail(rule, format!("after `{shown}` the conversation did not go on: {stop}"));
            Err(stop)
        }
    }
}

async fn not_json(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    refused(stage, "RPC-09", b"{oops", -32700).await?;
    end(stage, &turn).await
}

async fn no_message(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    for line in ["5", "\"x\"", "{}", "{\"jsonrpc\":\"2.0\",\"id\":7}"] {
        refused(stage, "RPC-10", line.as_bytes(), -32600).await?;
    }
    let mark = stage.mark();
    stage.send_line("{\"id\":7,\"result\":1}").await?;
    probe(stage).await?;
    let said = answers(stage.received(mark)).count() > 1;
    stage.check("RPC-10", !said, "something that has the shape of an answer was answered");
    end(stage, &turn).await
}

async fn batch(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let entry = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "_attache/entry", "params": {} });
    let line = json!([entry("one"), entry("two")]).to_string();
    let mark = stage.mark();
    let rule = if stage.version() == Version::V1 { "RPC-11" } else { "V2-38" };
    refused(stage, rule, line.as_bytes(), -32600).await?;
    let run = answers(stage.received(mark)).any(|(id, _)| id == "one" || id == "two");
    stage.check(rule, !run, "entries of a batch were answered one by one");
    end(stage, &turn).await
}

async fn unknown_method(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    // A method that only agents serve is unknown to a client.
    for method in ["no/such", "session/new", "$/such"] {
        match stage.call(method, json!({})).await {
            Ok(Err(error)) => {
                // RPC-15: codes that mean something else.
                let other = [-32700, -32000, -32800].contains(&error.code);
                let rule = if other { "RPC-15" } else { "RPC-12" };
                let why = format!("`{method}` was refused with {} instead of -32601", error.code);
                stage.check(rule, error.code == -32601, why);
                if error.code == -32601 {
                    stage.pass("RPC-15");
                }
            }
            Ok(Ok(result)) => {
                stage.fail("RPC-12", format!("`{method}` was answered with the result {result}"))
            }
            Err(Stop::Deadline(_)) => {
                stage.fail("RPC-12", format!("`{method}` was not answered"));
                return Err(Stop::Deadline("the answer to an unknown request".to_owned()));
            }
            Err(stop) => return Err(stop),
        }
    }
    end(stage, &turn).await
}

async fn bad_params(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let mut wrong = vec![("session/request_permission", json!({ "sessionId": turn.session }))];
    if stage.need("fs.readTextFile").is_ok() {
        wrong.push(("fs/read_text_file", json!({ "sessionId": turn.session })));
        wrong.push(("fs/read_text_file", turn.with(json!({ "path": 5 }))));
    }
    if stage.need("terminal").is_ok() {
        wrong.push(("terminal/create", json!({ "sessionId": turn.session })));
    }
    for (method, params) in wrong {
        refuses_params(stage, "RPC-13", method, params).await?;
    }
    refuses_params(stage, "RPC-25", "session/request_permission", json!([turn.session])).await?;
    end(stage, &turn).await
}

async fn refuses_params(stage: &mut Stage, rule: &'static str, method: &str, params: Value) -> Step {
    let shown = params.to_string();
    match stage.call(method, params).await {
        Ok(Err(error)) if error.code == -32602 => stage.pass(rule),
        Ok(Err(error)) => stage
            .fail(rule, format!("{method} with {shown} was refused with {} instead of -32602", error.code)),
        Ok(Ok(_)) => stage.fail(rule, format!("{method} with {shown} was carried out")),
        // No user is involved, so the answer must come in time.
        Err(Stop::Deadline(_)) => stage.fail(rule, format!("{method} with {shown} was not answered")),
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn error_codes(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    if stage.need("fs.readTextFile").is_ok() {
        let path = stage.cwd().join("nothing-here.txt").to_string_lossy().into_owned();
        if let Err(error) = stage.read_file(&turn.session, &path).await? {
            // A client never asks its agent to log in, and the line was JSON.
            let wrong = [-32000, -32700, -32601, -32800].contains(&error.code);
            stage.check("RPC-15", !wrong, format!("a missing file was reported as {}", error.code));
        }
        let path = stage.cwd().join("notes.txt").to_string_lossy().into_owned();
        if let Err(error) = stage.read_file("sess-made-up", &path).await? {
            let kept = error.code == -32002 && error.data["sessionId"] == "sess-made-up";
            stage.check(
                "RPC-18",
                kept,
                format!("an unknown session was reported as {} {}", error.code, error.data),
            );
        }
    }
    if stage.need("terminal").is_ok() {
        let _ = stage.call("terminal/output", turn.with(json!({ "terminalId": "term-made-up" }))).await?;
    }
    end(stage, &turn).await
}

async fn unknown_error(stage: &mut Stage) -> Step {
    stage.accept(super::steps::everything()).await?;
    new_session(stage, super::steps::NEW, json!({})).await?;
    let (prompt, _) = prompted(stage).await?;
    stage.answer_error(&prompt, -31999, "something of its own").await?;
    leaves(stage, &["RPC-16"], "an error with the code -31999").await
}

async fn notifications(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let mark = stage.mark();
    stage.notify("$/attache/later", json!({ "x": 1 })).await?;
    lives(stage, &turn, &["CANCEL-14"], "a notification whose name begins with `$/`").await?;
    stage.notify("_attache/later", json!({ "x": 1 })).await?;
    stage.notify("attache/later", json!({})).await?;
    lives(stage, &turn, &["EXT-08"], "an unknown notification").await?;
    stage.notify("session/update", json!({ "sessionId": turn.session })).await?;
    stage.send_line("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\"}").await?;
    probe(stage).await?;
    let ours = |id: &Value| id.is_null();
    let answered = answers(stage.received(mark)).any(|(id, _)| ours(id));
    stage.check("RPC-04", !answered, "a notification was answered");
    end(stage, &turn).await
}

async fn unknown_answer(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    stage.answer(&json!("ghost"), json!({})).await?;
    lives(stage, &turn, &["RPC-14"], "an answer that it did not ask for").await?;
    end(stage, &turn).await
}

async fn side_by_side(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let terminal = super::terminals::start(stage, &turn, "sleep 600", json!({})).await?;
    let wait = stage.request("terminal/wait_for_exit", turn.with(json!({ "terminalId": terminal }))).await?;
    match probe(stage).await {
        Ok(()) => stage.pass("RPC-20"),
        Err(Stop::Deadline(_)) => {
            stage.fail("RPC-20", "a request was not answered while an earlier one was at work");
            return Err(Stop::Deadline("the answer to a second request".to_owned()));
        }
        Err(stop) => return Err(stop),
    }
    let _ = stage.call("terminal/kill", turn.with(json!({ "terminalId": terminal }))).await?;
    let _ = answer_to(stage, &wait).await?;
    end(stage, &turn).await
}

async fn one_answer(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let path = stage.cwd().join("answer.txt").to_string_lossy().into_owned();
    let mark = stage.mark();
    let mut asked = vec![("an unknown request", stage.request("_attache/one", json!({})).await?)];
    if stage.need("fs.writeTextFile").is_ok() {
        let params = turn.with(json!({ "path": path, "content": "one\n" }));
        asked.push(("fs/write_text_file", stage.request("fs/write_text_file", params).await?));
    }
    if stage.need("fs.readTextFile").is_ok() {
        let params = turn.with(json!({ "path": stage.cwd().join("notes.txt") }));
        asked.push(("fs/read_text_file", stage.request("fs/read_text_file", params).await?));
    }
    if stage.version() == Version::V2 {
        let params = permission(stage, &turn);
        asked
            .push(("session/request_permission", stage.request("session/request_permission", params).await?));
    }
    for (_, id) in &asked {
        match stage.expect(id).await {
            Ok(_) | Err(Stop::Deadline(_)) => {}
            Err(stop) => return Err(stop),
        }
    }
    probe(stage).await?;
    for (what, id) in asked {
        let answers = answers(stage.received(mark)).filter(|(other, _)| **other == id).count();
        let broken = stage.received(mark).iter().any(|message| message.json["id"] == id);
        // One that came but is no answer is the concern of another rule.
        if answers > 0 || !broken {
            stage.check("RPC-24", answers == 1, format!("{what} was answered {answers} times"));
        }
    }
    end(stage, &turn).await
}

async fn two_turns(stage: &mut Stage) -> Step {
    stage.accept(super::steps::everything()).await?;
    new_session(stage, "sess-attache-one", json!({})).await?;
    new_session(stage, "sess-attache-two", json!({})).await?;
    let (first, one) = prompted(stage).await?;
    let (second, two) = prompted(stage).await?;
    stage.check("RPC-08", first != second, format!("two requests at once have the id {first}"));
    // RPC-20: the later one may be answered first.
    for (id, prompt) in [(&second, &two), (&first, &one)] {
        match stage.version() {
            Version::V1 => stage.end_turn(id, "end_turn").await?,
            Version::V2 => {
                stage.insert(prompt).await?;
                let session = prompt.params()["sessionId"].as_str().unwrap_or_default();
                stage.idle(session, "end_turn").await?;
            }
        }
    }
    leaves(stage, &[], "two answers").await
}
