//! Faults of an agent, and what the client must still do afterwards.

use std::time::Duration;

use serde_json::{Value, json};

use crate::scenarios::client::steps::{
    NEW, Turn, answer_to, end, everything, first_prompt, leaves, lives, new_session, open_turn, probe,
    prompted, readable, serve_rest, serve_until,
};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Client, faults:
    "fault-bytes": "a request that comes byte by byte", ["STDIO-04"] => bytes;
    "fault-joined": "two messages in one write, and one and a half", ["STDIO-04"] => joined;
    "fault-crlf": "lines that end in CR LF, and blank ones", ["STDIO-11"] => crlf;
    "fault-long": "a line of ten megabytes", ["STDIO-11"] => long;
    "fault-separators": "separators of Unicode within a text", ["STDIO-16"] => separators;
    "fault-deep": "JSON of ten thousand levels", ["RPC-09"] => deep;
    "fault-garbage": "lines of a log among the messages", ["RPC-09"] => garbage;
    "fault-not-utf8": "a line that is not UTF-8", ["STDIO-01"] => not_utf8;
    "fault-doubles": "repeated and unsolicited responses", ["RPC-14"] => doubles;
    "fault-same-ids": "two requests of one id", ["RPC-20"] => same_ids;
    "fault-odd-errors": "a turn that fails with an error of another form", ["RPC-16"] => odd_error;
    "fault-null-session": "a session without an id", ["SESS-02"] => null_session;
    "fault-early-update": "an update before the session is named", ["SESS-32"] => early_update;
    "fault-bare-permission": "a question about a call that says nothing of itself",
        ["PERM-04"] => bare_permission;
    "fault-deaf": "an agent that reads nothing for a while",
        ["RPC-24"] needs [Need::Client("fs.readTextFile")] => deaf;
    "fault-end": "an agent that says no more in the middle of a turn", ["STDIO-10"] => mute;
}

fn probe_line(id: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "_attache/probe", "params": {} }).to_string()
}

/// The client answers the request `id`, which was sent in an odd way.
async fn answers(stage: &mut Stage, rule: &'static str, id: &str, what: &str) -> Step {
    match answer_to(stage, &json!(id)).await {
        Ok(_) => stage.pass(rule),
        Err(stop @ (Stop::Deadline(_) | Stop::PeerGone)) => {
            stage.fail(rule, format!("{what} was not understood: {stop}"));
            return Err(stop);
        }
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn bytes(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    for byte in format!("{}\n", probe_line("slow")).bytes() {
        stage.send_bytes([byte]).await?;
        tokio::task::yield_now().await;
    }
    answers(stage, "STDIO-04", "slow", "a message that came byte by byte").await?;
    end(stage, &turn).await
}

async fn joined(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let (one, two, three) = (probe_line("one"), probe_line("two"), probe_line("three"));
    let (head, tail) = three.split_at(three.len() / 2);
    stage.send_bytes(format!("{one}\n{two}\n{head}")).await?;
    stage.quiet(Duration::from_millis(100)).await?;
    stage.send_bytes(format!("{tail}\n")).await?;
    for id in ["one", "two", "three"] {
        answers(stage, "STDIO-04", id, "one of several messages in one write").await?;
    }
    end(stage, &turn).await
}

async fn crlf(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    stage.send_bytes("\n\r\n  \n").await?;
    stage.send_bytes(format!("{}\r\n", probe_line("cr"))).await?;
    answers(stage, "STDIO-11", "cr", "a line that ends in CR LF").await?;
    end(stage, &turn).await
}

async fn long(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let text = "0123456789".repeat(1 << 20);
    stage.say(&turn.session, &text).await?;
    lives(stage, &turn, &["STDIO-11"], "a line of ten megabytes").await?;
    end(stage, &turn).await
}

async fn separators(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let line = "{\"jsonrpc\":\"2.0\",\"id\":\"sep\",\"method\":\"_attache/probe\",\"params\":{\"x\":\"a\u{2028}b\u{2029}c\u{85}d\"}}";
    stage.send_line(line).await?;
    answers(stage, "STDIO-16", "sep", "a text with U+2028 in it").await?;
    end(stage, &turn).await
}

async fn deep(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let (open, close) = ("[".repeat(10_000), "]".repeat(10_000));
    stage
        .send_line(format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"_attache/deep\",\"params\":{{\"x\":{open}{close}}}}}"
        ))
        .await?;
    lives(stage, &turn, &["RPC-09"], "ten thousand levels of JSON").await?;
    end(stage, &turn).await
}

async fn garbage(stage: &mut Stage) -> Step {
    let asked = stage.until_asked("initialize").await?;
    stage.send_line("[INFO] agent 1.0 starts").await?;
    let answer = json!({ "protocolVersion": 1, "agentCapabilities": everything(), "authMethods": [] });
    stage.reply(&asked, answer).await?;
    let turn = match opened(stage).await {
        Err(stop @ (Stop::Deadline(_) | Stop::PeerGone)) => {
            readable(stage)?;
            stage.fail("RPC-09", format!("after a line of a log the conversation did not go on: {stop}"));
            return Err(stop);
        }
        turn => turn?,
    };
    stage.send_line("[DEBUG] { not json").await?;
    lives(stage, &turn, &["RPC-09"], "lines of a log").await?;
    end(stage, &turn).await
}

async fn opened(stage: &mut Stage) -> Result<Turn, Stop> {
    new_session(stage, NEW, json!({})).await?;
    first_prompt(stage, NEW).await
}

async fn not_utf8(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    stage
        .send_line(b"{\"jsonrpc\":\"2.0\",\"method\":\"_attache/bytes\",\"params\":{\"x\":\"\xff\xfe\"}}")
        .await?;
    // Both are allowed: to go on, and to end the connection.
    leaves(stage, &["STDIO-01"], "a line that is not UTF-8").await
}

async fn doubles(stage: &mut Stage) -> Step {
    let first = stage.accept(everything()).await?;
    let again = json!({ "protocolVersion": 1, "agentCapabilities": {}, "authMethods": [] });
    // RPC-07, RPC-08: where ids do not tell requests apart, an unsolicited response cannot be sent.
    let untold = || Err(Stop::NotExercised("the client's ids do not tell its requests apart".to_owned()));
    if first.id() == Some(&Value::Null) {
        return untold();
    }
    stage.reply(&first, again).await?;
    let asked = new_session(stage, NEW, json!({})).await?;
    if asked.id() == first.id() {
        return untold();
    }
    stage.reply(&asked, json!({ "sessionId": "sess-attache-again" })).await?;
    let turn = first_prompt(stage, NEW).await?;
    let prompt = stage.received(0).iter().rev().find(|message| message.asks("session/prompt"));
    let named = prompt.map(|prompt| prompt.params()["sessionId"].clone()).unwrap_or_default();
    stage.check(
        "RPC-14",
        named != "sess-attache-again",
        format!("a second answer was taken for the first: the prompt names {named}"),
    );
    stage.answer(&json!("nobody"), json!({ "stopReason": "end_turn" })).await?;
    stage.answer_error(&json!(987_654), -32603, "to nobody").await?;
    stage.answer(&Value::Null, json!({})).await?;
    lives(stage, &turn, &["RPC-14"], "answers that it did not ask for").await?;
    end(stage, &turn).await
}

async fn same_ids(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    stage.not_applicable("RPC-24", "two requests had one id");
    stage.not_applicable("RPC-05", "two requests had one id");
    stage.send_bytes(format!("{}\n{}\n", probe_line("twice"), probe_line("twice"))).await?;
    lives(stage, &turn, &["RPC-20"], "two requests of one id").await?;
    end(stage, &turn).await
}

async fn odd_error(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let error = json!({ "code": 400, "message": "{\"type\":\"error\",\"inner\":{\"message\":\"bad\"}}", "data": [1, null] });
    stage.send(json!({ "jsonrpc": "2.0", "id": turn.prompt, "error": error })).await?;
    leaves(stage, &["RPC-16"], "an error with the code 400").await
}

async fn null_session(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    let said = serve_rest(stage, |method, _| (method == "session/new").then_some(Ok(Value::Null))).await?;
    let prompt = said.iter().find(|message| message.asks("session/prompt"));
    stage.check("SESS-02", prompt.is_none(), "a prompt came although no session was named");
    Ok(())
}

async fn early_update(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    let asked = serve_until(stage, "session/new").await?;
    let commands = json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] });
    stage.update(NEW, commands).await?;
    stage.reply(&asked, json!({ "sessionId": NEW })).await?;
    match prompted(stage).await {
        Ok((prompt, _)) => {
            stage.pass("SESS-32");
            stage.end_turn(&prompt, "end_turn").await
        }
        Err(stop @ (Stop::Deadline(_) | Stop::PeerGone)) => {
            readable(stage)?;
            stage.fail("SESS-32", format!("after an update before its time no prompt came: {stop}"));
            Err(stop)
        }
        Err(stop) => Err(stop),
    }
}

async fn bare_permission(stage: &mut Stage) -> Step {
    let turn: Turn = open_turn(stage).await?;
    let options = json!([
        { "optionId": "a", "name": "Always", "kind": "allow_always" },
        { "optionId": "b", "name": "Always here", "kind": "allow_always" },
    ]);
    let id = stage.ask_permission(&turn.session, json!({ "toolCallId": "call-bare" }), options).await?;
    match answer_to(stage, &id).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            stage.fail("PERM-04", format!("the question was answered with the error {}", error.code))
        }
        Err(Stop::Deadline(_)) => {
            return Err(Stop::NotExercised("the question is not answered".to_owned()));
        }
        Err(stop) => return Err(stop),
    }
    end(stage, &turn).await
}

async fn deaf(stage: &mut Stage) -> Step {
    let path = stage.cwd().join("big.txt");
    let written = std::fs::write(&path, "0123456789abcdef\n".repeat(20_000));
    written.map_err(|error| Stop::Broken(format!("cannot write a file for the client to read: {error}")))?;
    let turn = open_turn(stage).await?;
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(stage.request("fs/read_text_file", turn.with(json!({ "path": path }))).await?);
    }
    // Nothing is read meanwhile, and the pipe is full long since.
    tokio::time::sleep(Duration::from_secs(3)).await;
    for id in asked {
        match stage.expect(&id).await {
            Ok(_) => stage.pass("RPC-24"),
            Err(stop) => return Err(stop),
        }
    }
    probe(stage).await?;
    end(stage, &turn).await
}

async fn mute(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    stage.say(&turn.session, "and then").await?;
    stage.close_input();
    match stage.closed().await {
        Ok(()) => stage.pass("STDIO-10"),
        Err(Stop::Deadline(_)) => {
            stage.fail(
                "STDIO-10",
                "the agent's output ended, and the client neither left nor closed its side",
            );
        }
        Err(stop) => return Err(stop),
    }
    Ok(())
}
