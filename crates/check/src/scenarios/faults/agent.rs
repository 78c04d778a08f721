//! Faults of a client, and what the agent must still do afterwards.

use std::time::Duration;

use serde_json::{Value, json};

use crate::judge::Kind;
use crate::prompts::PromptKind;
use crate::scenarios::agent::{
    begin, capabilities, is_question, on_disk, opening, ping, prompt, unseen, words,
};
use crate::scenarios::scenario_table;
use crate::stage::Reply;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent, faults:
    "fault-split": "a line that comes byte by byte", ["RPC-24", "STDIO-04"] => split;
    "fault-joined": "several lines in one write, one of them halved", ["RPC-24", "RPC-20"] in BOTH => joined;
    "fault-line-ends": "carriage returns and blank lines", ["STDIO-11"] in BOTH => line_ends;
    "fault-long-line": "a line of ten megabytes", ["STDIO-11"] in BOTH => long_line;
    "fault-deep": "a line that is nested deeply", ["RPC-09"] in BOTH => deep;
    "fault-garbage": "many lines that are no messages", ["RPC-09", "RPC-10"] in BOTH => garbage;
    "fault-same-id": "two requests with one id", ["RPC-24"] in BOTH => same_id;
    "fault-answers": "unsolicited, late and repeated responses", ["RPC-14"] in BOTH => stray_answers;
    "fault-codes": "errors with unknown codes",
        ["RPC-16"] needs [Need::Prompt(PromptKind::Run)] => codes;
    "fault-null": "a permission that is answered with nothing, or with something unknown",
        ["PERM-09"] needs [Need::Prompt(PromptKind::Write)] => null_permission;
    "fault-null-form": "a form that is answered with nothing",
        ["ELIC-20", "ELIC-33"] needs [Need::Prompt(PromptKind::Elicit)] => null_form;
    "fault-deaf": "the client does not read for a while", ["RPC-24"] => deaf;
    "fault-leaving": "the client leaves in the middle of a turn", ["STDIO-08"] => leaving;
}

/// A request still gets its answer.
// RPC-24
async fn still_answers(stage: &mut Stage, rule: &'static str, after: &str) -> Step {
    match ping(stage).await {
        Ok(()) => {
            stage.pass(rule);
            Ok(())
        }
        Err(Stop::PeerGone) => {
            stage.fail(rule, format!("the agent ended after {after}"));
            Err(Stop::PeerGone)
        }
        Err(Stop::Deadline(what)) => {
            stage.fail(rule, format!("nothing is answered after {after}"));
            Err(Stop::Deadline(what))
        }
        Err(stop) => Err(stop),
    }
}

async fn split(stage: &mut Stage) -> Step {
    let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities() });
    let line =
        json!({ "jsonrpc": "2.0", "id": "split", "method": "initialize", "params": params }).to_string();
    for byte in line.as_bytes() {
        stage.send_bytes([*byte]).await?;
        // So that each byte is a read of its own.
        tokio::task::yield_now().await;
    }
    stage.send_bytes("\n").await?;
    match stage.expect(&json!("split")).await {
        Ok(_) => stage.pass_all(&["RPC-24", "STDIO-04"]),
        Err(Stop::Deadline(_)) => stage.fail("STDIO-04", "a line that came in pieces is not answered"),
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn joined(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    let ask = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "_attache/probe" }).to_string();
    let third = ask("three");
    let (head, tail) = third.split_at(third.len() / 2);
    stage.send_bytes(format!("{}\n{}\n{head}", ask("one"), ask("two"))).await?;
    for id in ["one", "two"] {
        stage.expect(&json!(id)).await?.ok();
    }
    stage.send_bytes(format!("{tail}\n")).await?;
    stage.expect(&json!("three")).await?.ok();
    stage.pass_all(&["RPC-24", "RPC-20"]);
    Ok(())
}

async fn line_ends(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    let ask = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "_attache/probe" }).to_string();
    stage.send_bytes(format!("{}\r\n", ask("cr"))).await?;
    tolerated(stage, "cr", "a line that ends with a carriage return").await?;
    stage.send_bytes(format!("\n\r\n  \n{}\n", ask("blank"))).await?;
    tolerated(stage, "blank", "blank lines").await
}

/// The request with this id is answered as if nothing were odd.
// STDIO-11
async fn tolerated(stage: &mut Stage, id: &str, what: &str) -> Step {
    match stage.expect(&json!(id)).await {
        Ok(_) => stage.pass("STDIO-11"),
        Err(Stop::Deadline(_)) => {
            stage.fail("STDIO-11", format!("{what} prevented an answer"));
            return Ok(());
        }
        Err(Stop::PeerGone) => {
            stage.fail("STDIO-11", format!("the agent ended at {what}"));
            return Err(Stop::PeerGone);
        }
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn long_line(stage: &mut Stage) -> Step {
    // A slow agent gets half a line before the deadline, and may refuse that without an id.
    stage.not_applicable("RPC-04", "the line may be cut off");
    let session = begin(stage).await?;
    // In memory a smaller one says the same.
    let size = if on_disk(stage) { 10 << 20 } else { 256 << 10 };
    let text = format!("{} {}", stage.prompt_text(PromptKind::Say), "x".repeat(size));
    let id = prompt(stage, &session, &text).await?;
    match stage.expect(&id).await {
        // A model may well refuse so much text; the line was read.
        Ok(_) => stage.pass("STDIO-11"),
        Err(Stop::PeerGone) => stage.fail("STDIO-11", format!("the agent ended at a line of {size} bytes")),
        Err(Stop::Deadline(_)) => return still_answers(stage, "STDIO-11", "a long line").await,
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn deep(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    let depth = 20_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    stage
        .send_line(format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"_attache/deep\",\"params\":{{\"x\":{deep}}}}}"
        ))
        .await?;
    still_answers(stage, "RPC-09", "a line that is nested deeply").await
}

async fn garbage(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    let lines: [(&'static str, &[u8]); 8] = [
        ("RPC-09", b"\x00\x01\x02"),
        ("RPC-09", b"}}}}"),
        ("RPC-09", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\""),
        ("RPC-09", b"Content-Length: 5"),
        ("RPC-10", b"\xef\xbb\xbf{}"),
        ("RPC-10", b"{\"jsonrpc\":\"2.0\",\"method\":5}"),
        ("RPC-10", b"null"),
        ("RPC-10", b"[]"),
    ];
    for (rule, line) in lines {
        stage.send_line(line).await?;
        still_answers(stage, rule, &format!("the line {:?}", String::from_utf8_lossy(line))).await?;
    }
    Ok(())
}

async fn same_id(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    // Whatever becomes of the second one: the fault is the client's.
    stage.not_applicable("RPC-24", "the client used an id twice");
    for _ in 0..2 {
        stage.request_as(json!("twice"), "_attache/probe", json!({})).await?;
    }
    still_answers(stage, "RPC-24", "two requests with one id").await
}

async fn stray_answers(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    for id in [json!(0), json!("attache-ghost"), Value::Null, json!(1.5)] {
        stage.answer(&id, json!({ "outcome": { "outcome": "selected", "optionId": "x" } })).await?;
        stage.answer_error(&id, -32603, "no").await?;
    }
    still_answers(stage, "RPC-14", "answers that it did not ask for").await?;
    stage.services.hold("session/request_permission");
    let id = stage.prompt(&session, PromptKind::Ask).await?;
    let Some(question) = stage.during(&id, is_question).await? else {
        return Ok(());
    };
    let question = question.id().cloned().unwrap_or_default();
    for _ in 0..2 {
        stage.answer(&question, json!({ "outcome": { "outcome": "cancelled" } })).await?;
    }
    stage.services.release("session/request_permission");
    stage.end_of(&id).await?.ok();
    // Late: the turn is over.
    stage.answer(&question, json!({ "outcome": { "outcome": "cancelled" } })).await?;
    still_answers(stage, "RPC-14", "an answer that came twice, and late").await
}

async fn codes(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    for code in [400_i64, 0, 1, -31_999, i64::from(i32::MAX), i64::from(i32::MIN)] {
        stage.services.answer_with("terminal/create", move |_| Reply::Error(code, "{\"a\":1}".to_owned()));
        let mark = stage.mark();
        let ended = stage.turn(&session, PromptKind::Run).await;
        if !stage.received(mark).iter().any(|message| message.asks("terminal/create")) {
            ended?.ok();
            return unseen("the agent ran no command in a terminal of the client");
        }
        match ended {
            Ok(_) => stage.pass("RPC-16"),
            Err(Stop::PeerGone) => {
                stage.fail("RPC-16", format!("the agent ended when its request was refused with {code}"));
                return Err(Stop::PeerGone);
            }
            Err(Stop::Deadline(_)) => {
                stage
                    .fail("RPC-16", format!("the turn does not end after a request was refused with {code}"));
                return Ok(());
            }
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

/// Nothing is no approval.
// PERM-09
async fn null_permission(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let answers = [
        Value::Null,
        json!({}),
        json!({ "outcome": null }),
        json!({ "outcome": { "outcome": "_attache" } }),
        json!("yes"),
    ];
    for answer in answers {
        let reply = answer.clone();
        stage.services.answer_with("session/request_permission", move |_| Reply::Result(reply.clone()));
        let mark = stage.mark();
        let ended = stage.turn(&session, PromptKind::Write).await;
        let Some(question) = stage.received(mark).iter().position(|message| is_question(message)) else {
            ended?.ok();
            return unseen("the agent asked for no permission");
        };
        let written =
            stage.received(mark + question).iter().any(|message| message.asks("fs/write_text_file"));
        stage.check("PERM-09", !written, format!("the answer {answer} was taken for an approval"));
        match ended {
            Ok(_) => {}
            Err(Stop::Deadline(_)) => return unseen("the turn does not end"),
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

async fn null_form(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    for answer in
        [Value::Null, json!({}), json!({ "action": 5 }), json!({ "content": { "colour": "attache-null" } })]
    {
        let reply = answer.clone();
        stage.services.answer_with("elicitation/create", move |_| Reply::Result(reply.clone()));
        let mark = stage.mark();
        let ended = stage.turn(&session, PromptKind::Elicit).await;
        if !stage.received(mark).iter().any(|message| message.asks("elicitation/create")) {
            ended?.ok();
            return unseen("the agent asked for nothing with a form");
        }
        match ended {
            Ok(_) => {
                let taken = words(stage, &session, mark).contains("attache-null");
                stage.check("ELIC-33", !taken, "content without an action was taken for `accept`");
                stage.pass("ELIC-20");
            }
            Err(Stop::PeerGone) => {
                stage.fail("ELIC-20", format!("the agent ended when its form was answered with {answer}"));
                return Err(Stop::PeerGone);
            }
            Err(Stop::Deadline(_)) => {
                stage.fail(
                    "ELIC-20",
                    format!("the turn does not end after its form was answered with {answer}"),
                );
                return Ok(());
            }
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

/// A busy client does not read; the agent's output must still be there when it does.
async fn deaf(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let text = format!("Say `{}` again. Use no tools.", "attache ".repeat(20_000));
    let id = prompt(stage, &session, &text).await?;
    let asked: Vec<Value> = (0..20).map(|number| json!(format!("deaf-{number}"))).collect();
    for id in &asked {
        stage.request_as(id.clone(), "_attache/probe", json!({})).await?;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for id in &asked {
        stage.expect(id).await?.ok();
    }
    stage.pass("RPC-24");
    stage.expect(&id).await?.ok();
    Ok(())
}

/// Also a surprised agent says nothing but messages, while its input is closed and its
/// turn goes on.
// STDIO-08
async fn leaving(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let params = opening(stage, json!({}));
    stage.request("session/new", params).await?;
    stage.prompt(&session, PromptKind::Think).await?;
    stage.close_input();
    let message = stage.quiet(Duration::from_millis(500)).await?;
    let broken = message
        .iter()
        .find(|message| matches!(message.kind, Kind::Invalid { .. }))
        .map(|message| message.index);
    match broken {
        Some(at) => stage.fail_at("STDIO-08", &[at], "a line that is no message"),
        None => stage.pass("STDIO-08"),
    }
    Ok(())
}
