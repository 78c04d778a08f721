//! The envelope: ids, errors, notifications, lines.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{anonymous_errors, begin, is_question, odd_code_ended, opening, ping, prompt, unseen};
use crate::judge::{Kind, Message};
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::stage::Reply;
use crate::{Need, Stage, Step, Stop, Version};

scenario_table! { Agent:
    "ids": "ids of every type come back unchanged", ["RPC-05", "RPC-06"] in BOTH => ids;
    "notifications": "unknown or malformed notifications are not answered",
        ["RPC-04", "EXT-08", "CANCEL-10", "CANCEL-14", "CANCEL-20"] in BOTH => notifications;
    "garbage": "a line that is not JSON", ["RPC-09", "RPC-15", "STDIO-01"] in BOTH => garbage;
    "no-message": "JSON that is no message", ["RPC-10", "RPC-11", "V2-38"] in BOTH => no_message;
    "unknown-method": "an unknown method is refused as such",
        ["RPC-03", "RPC-12", "RPC-15", "RPC-17", "EXT-07"] in BOTH => unknown_method;
    "wrong-params": "params that do not fit are refused as such", ["RPC-13", "RPC-25"] in BOTH => wrong_params;
    "stray-answer": "an unsolicited response changes nothing", ["RPC-14"] in BOTH => stray_answer;
    "odd-code": "an unknown error code",
        ["RPC-16"] needs [Need::Prompt(PromptKind::Read)] => odd_code;
    "at-once": "requests are served while a turn goes on, also with ids that the agent uses itself",
        ["RPC-08", "RPC-20"] needs [Need::Prompt(PromptKind::Ask)] in BOTH => at_once;
    "two-reads": "two requests of the agent are open together", ["RPC-08"] => two_reads;
    "answers": "every request is answered, once", ["RPC-01", "RPC-02", "RPC-23", "RPC-24"] in BOTH => answers;
    "lines": "text with line breaks and letters beyond ASCII stays in one line",
        ["STDIO-01", "STDIO-04", "STDIO-05", "STDIO-08", "STDIO-16"]
        needs [Need::Prompt(PromptKind::Lines)] in BOTH => lines;
}

async fn ids(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    for id in [json!(0), json!(-1), json!("a"), json!("1"), json!(1_u64 << 53)] {
        stage.request_as(id.clone(), "_attache/probe", json!({})).await?;
        let message =
            stage.until("an answer", |message| matches!(message.kind, Kind::Response { .. })).await?;
        let came = message.id().cloned().unwrap_or_default();
        stage.check(
            "RPC-05",
            came == id,
            format!("a request with the id {id} was answered with the id {came}"),
        );
    }
    for id in [json!([1]), json!({})] {
        stage.request_as(id.clone(), "_attache/probe", json!({})).await?;
        let answered = stage.probe().await?.into_iter().any(|message| match &message.kind {
            Kind::Response { id: came, outcome } => {
                *came == id && outcome.as_ref().err().is_none_or(|error| error["code"] != -32600)
            }
            _ => false,
        });
        stage.check("RPC-06", !answered, format!("{id} is no id, and the request was served"));
    }
    Ok(())
}

async fn notifications(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.probe().await?;
    let ghost = json!({ "sessionId": "attache-ghost" });
    let cases = [
        ("EXT-08", "_attache/nothing", json!({})),
        ("EXT-08", "attache/nothing", json!({ "x": 1 })),
        ("CANCEL-14", "$/attache", json!({})),
        ("CANCEL-20", "$/cancel_request", json!({ "requestId": 99_999 })),
        ("CANCEL-10", "session/cancel", json!({ "sessionId": session })),
        ("CANCEL-10", "session/cancel", ghost),
        ("RPC-04", "session/cancel", json!([1, 2])),
    ];
    for (rule, method, params) in cases {
        stage.notify(method, params.clone()).await?;
        let message = match stage.probe().await {
            Ok(message) => message,
            Err(Stop::PeerGone) => {
                stage.fail(rule, format!("the agent ended after the notification {method} {params}"));
                return Err(Stop::PeerGone);
            }
            Err(stop) => return Err(stop),
        };
        let answer = message.iter().find(|message| matches!(message.kind, Kind::Response { .. }));
        match answer {
            Some(answer) => {
                let why = format!("the notification {method} was answered");
                stage.fail_at("RPC-04", &[answer.index], why);
            }
            None => stage.pass("RPC-04"),
        }
        stage.pass(rule);
    }
    Ok(())
}

async fn garbage(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    stage.send_line("{oops").await?;
    let codes = match stage.probe().await {
        Ok(message) => anonymous_errors(&message),
        Err(Stop::PeerGone) => {
            stage.fail("RPC-09", "the agent ended when it got a line that is not JSON");
            return Err(Stop::PeerGone);
        }
        Err(stop) => return Err(stop),
    };
    match codes.as_slice() {
        [-32700] => {
            stage.pass_all(&["RPC-09", "RPC-15"]);
        }
        [] => stage.fail("RPC-09", "a line that is not JSON was not answered"),
        [code] => stage.fail("RPC-15", format!("a line that is not JSON was answered with {code}")),
        _ => stage.fail("RPC-09", format!("one line that is not JSON was answered with {codes:?}")),
    }
    // STDIO-01: bytes that are no UTF-8. The agent may refuse them or hang up; it may not fall
    // silent.
    stage.send_line(b"{\"jsonrpc\":\"2.0\",\"method\":\"_attache/\xff\xfe\"}").await?;
    match stage.probe().await {
        Ok(_) | Err(Stop::PeerGone) => stage.pass("STDIO-01"),
        Err(Stop::Deadline(_)) => {
            stage.fail("STDIO-01", "after a line that is not UTF-8 nothing is answered")
        }
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn no_message(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    stage.probe().await?;
    for line in ["5", "\"x\"", "{}", "{\"jsonrpc\":\"2.0\",\"id\":7}"] {
        let message = after(stage, line, "RPC-10").await?;
        // The id may be taken from the line where there is one.
        let refused = message.iter().any(|message| {
            matches!(&message.kind, Kind::Response { outcome: Err(error), .. } if error["code"] == -32600)
        });
        stage.check("RPC-10", refused, format!("{line} was not answered with -32600"));
    }
    let message = after(stage, "{\"id\":7,\"result\":1}", "RPC-10").await?;
    let silent = !message.iter().any(|message| matches!(message.kind, Kind::Response { .. }));
    stage.check("RPC-10", silent, "something shaped like an answer was answered");
    let one = json!({ "jsonrpc": "2.0", "id": "batch", "method": "_attache/probe" });
    let codes = anonymous_errors(&after(stage, &json!([one, one]).to_string(), "RPC-11").await?);
    for rule in ["RPC-11", "V2-38"] {
        let why = format!("a batch was answered with {codes:?}, not with one -32600");
        stage.check(rule, codes == [-32600], why);
    }
    Ok(())
}

/// Returns the messages after an invalid line; an agent that exits there has broken `rule`.
async fn after(stage: &mut Stage, line: &str, rule: &'static str) -> Result<Vec<Rc<Message>>, Stop> {
    stage.send_line(line).await?;
    let message = stage.probe().await;
    if matches!(message, Err(Stop::PeerGone)) {
        stage.fail(rule, format!("the agent ended when it got {line}"));
    }
    message
}

async fn unknown_method(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    for (rule, method) in [("RPC-12", "no/such"), ("EXT-07", "_attache/no-such")] {
        match stage.call(method, json!({})).await? {
            Err(error) if error.code == -32601 => stage.pass(rule),
            // RPC-15 judges this code itself.
            Err(error) if error.code == -32700 => {}
            Err(error) => {
                stage.fail(rule, format!("{method} was refused with {} instead of -32601", error.code))
            }
            Ok(result) => stage.fail(rule, format!("{method} was answered with {result}")),
        }
    }
    stage.probe().await?;
    Ok(())
}

async fn wrong_params(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let cases = [
        ("RPC-13", "session/new", json!({ "mcpServers": [] })),
        ("RPC-13", "session/prompt", json!({ "sessionId": session })),
        ("RPC-13", "session/prompt", json!({ "sessionId": session, "prompt": 5 })),
        ("RPC-25", "session/new", json!([stage.cwd().to_string_lossy(), []])),
    ];
    for (rule, method, params) in cases {
        match stage.call(method, params.clone()).await? {
            Err(error) if error.code == -32602 => stage.pass(rule),
            Err(error) => stage
                .fail(rule, format!("{method} {params} was refused with {} instead of -32602", error.code)),
            Ok(_) => stage.fail(rule, format!("{method} {params} was accepted")),
        }
    }
    Ok(())
}

async fn stray_answer(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    stage.answer(&json!("attache-ghost"), json!({})).await?;
    match stage.probe().await {
        Ok(_) => stage.pass("RPC-14"),
        Err(Stop::PeerGone) => {
            stage.fail("RPC-14", "the agent ended when it got an answer that it had not asked for")
        }
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn odd_code(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.services.answer_with("fs/read_text_file", |_| Reply::Error(-31_999, "odd".to_owned()));
    let mark = stage.mark();
    let ended = stage.turn(&session, PromptKind::Read).await;
    if !stage.received(mark).iter().any(|message| message.asks("fs/read_text_file")) {
        ended?.ok();
        return unseen("the agent read no file through the client");
    }
    odd_code_ended(stage, ended)
}

async fn at_once(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.services.hold("session/request_permission");
    let turn = stage.prompt(&session, PromptKind::Ask).await?;
    let Some(question) = stage.during(&turn, is_question).await? else {
        return unseen("the agent asked for no permission");
    };
    let params = opening(stage, json!({}));
    match stage.call("session/new", params.clone()).await {
        Ok(_) => stage.pass("RPC-20"),
        Err(Stop::Deadline(_)) => {
            stage.fail("RPC-20", "while a turn waits, session/new is not answered");
            return Ok(());
        }
        Err(stop) => return Err(stop),
    }
    // RPC-08: the ids of the two directions have nothing to do with each other.
    let id = question.id().cloned().unwrap_or_default();
    stage.request_as(id.clone(), "_attache/probe", json!({})).await?;
    match stage.expect(&id).await {
        Ok(_) => stage.pass("RPC-08"),
        Err(Stop::Deadline(_)) => stage
            .fail("RPC-08", format!("a request with the id {id}, which the agent uses too, is not answered")),
        Err(stop) => return Err(stop),
    }
    stage.services.release("session/request_permission");
    let options = question.params()["options"].clone();
    stage
        .answer(&id, json!({ "outcome": { "outcome": "selected", "optionId": options[0]["optionId"] } }))
        .await?;
    stage.end_of(&turn).await?.ok();
    Ok(())
}

async fn two_reads(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let text = "Compare the files `notes.txt` and `old.txt`: read both at the same time, then tell me whether they differ.";
    let id = prompt(stage, &session, text).await?;
    stage.services.hold("fs/read_text_file");
    let read = |message: &Message| message.asks("fs/read_text_file");
    let Some(first) = stage.during(&id, read).await? else {
        return unseen("the agent read no file through the client");
    };
    // If a second one comes while the first waits, they are open together; a watcher looks at their
    // ids.
    ping(stage).await?;
    stage.services.release("fs/read_text_file");
    stage.answer(first.id().unwrap_or(&Value::Null), json!({ "content": "text\n" })).await?;
    match stage.expect(&id).await {
        Ok(_) | Err(Stop::Deadline(_)) => Ok(()),
        Err(stop) => Err(stop),
    }
}

/// One answer each, counted by a watcher; here it is waited for.
// RPC-24
async fn answers(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let mode = stage
        .log()
        .sessions
        .get(&session)
        .map(|known| known.modes["currentModeId"].clone())
        .unwrap_or_default();
    let mut cases = vec![("session/prompt", json!({ "sessionId": "attache-ghost", "prompt": [] }))];
    if mode.is_string() {
        cases.push(("session/set_mode", json!({ "sessionId": session, "modeId": mode })));
    }
    if stage.version() == Version::V2 || stage.need("sessionCapabilities.list").is_ok() {
        cases.push(("session/list", json!({})));
    }
    for (method, params) in cases {
        match stage.call(method, params).await {
            Ok(_) => stage.pass("RPC-24"),
            Err(Stop::Deadline(_)) => stage.fail("RPC-24", format!("{method} is not answered")),
            Err(stop) => return Err(stop),
        }
    }
    stage.turn(&session, PromptKind::Say).await?.ok();
    stage.probe().await?;
    Ok(())
}

async fn lines(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    if stage.turn(&session, PromptKind::Lines).await?.is_err() {
        return unseen("a prompt without anything odd fails too");
    }
    // STDIO-16: only 0x0A ends a line; U+2028 stands unescaped in this prompt. The rest of the
    // prompt was accepted before, so a refusal is about that character.
    let words = stage.prompt_text(PromptKind::Lines);
    let odd = "one\u{2028}two\u{85}three";
    let blocks = json!([{ "type": "text", "text": words }, { "type": "text", "text": odd }]);
    let id = stage.prompt_blocks(&session, blocks).await?;
    match stage.end_of(&id).await {
        Ok(Ok(_)) => stage.pass("STDIO-16"),
        Ok(Err(error)) => stage
            .fail("STDIO-16", format!("a prompt with U+2028 was refused: {} {}", error.code, error.message)),
        Err(Stop::Deadline(_)) => stage.fail("STDIO-16", "a prompt with U+2028 is not answered"),
        Err(stop) => return Err(stop),
    }
    Ok(())
}
