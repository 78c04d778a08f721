//! `initialize` in all its variants, and clients that lack capabilities.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{begin, capabilities, opening, prompt, turn, unseen};
use crate::judge::Message;
use crate::judge::agent::needed;
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::{Role, Stage, Step, Stop};

scenario_table! { Agent:
    "version-1": "version 1 is asked for",
        ["INIT-05", "INIT-06", "INIT-11", "INIT-13", "INIT-18", "INIT-24", "INIT-27", "INIT-29", "INIT-31", "AUTH-14",
         "MCP-04"] => version_1;
    "version-newest": "a version that does not exist yet is asked for",
        ["INIT-07"] => version_unknown(65_535);
    "version-0": "a version that is too old is asked for", ["INIT-07"] => version_unknown(0);
    "version-text": "a version that is no number is asked for", ["INIT-05"] in BOTH => version_text;
    "too-early": "a session before initialize", ["INIT-03"] in BOTH => too_early;
    "twice": "initialize comes twice", ["INIT-25"] => twice;
    "bare-client": "a client without any capability asks for everything",
        ["INIT-22", "FS-02", "TERM-02", "ELIC-01", "ELIC-03", "CONF-07",
         "CONF-08", "NOTE-01", "NOTE-04", "NOTE-06", "PLAN-07", "PLAN-08", "SUBA-01", "AUTH-08", "INIT-10",
         "INIT-16"] in BOTH => bare_client;
    "null-capabilities": "capabilities that are null count as none", ["INIT-19"] in BOTH
        => null_capabilities;
    "reading-client": "a client that only reads files", ["FS-02"] => half_files("readTextFile");
    "writing-client": "a client that only writes files", ["FS-02"] => half_files("writeTextFile");
    "odd-capabilities": "capabilities that are no object", ["INIT-20"] => odd_capabilities;
    "baseline": "what every agent can do: a session, a prompt with text and a link, cancel",
        ["INIT-21", "INIT-22", "PROMPT-03", "PROMPT-07", "PROMPT-08", "INIT-10"] in BOTH
        => baseline;
}

/// The params of `initialize`.
fn hello(version: Value, capabilities: Value) -> Value {
    let info = json!({ "name": "attache-check", "version": env!("CARGO_PKG_VERSION") });
    json!({ "protocolVersion": version, "clientCapabilities": capabilities, "clientInfo": info })
}

async fn version_1(stage: &mut Stage) -> Step {
    let result = stage.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await?;
    let result = match result {
        Ok(result) => result,
        // INIT-24: authentication follows later, by a method of the answer.
        Err(error) if error.code == -32000 => {
            stage.fail("INIT-24", "initialize itself wants credentials");
            return Ok(());
        }
        Err(error) => {
            stage.fail("INIT-29", format!("initialize without clientInfo was refused: {}", error.message));
            return Ok(());
        }
    };
    stage.pass_all(&["INIT-24", "INIT-29"]);
    let version = &result["protocolVersion"];
    if version.is_u64() {
        stage.check("INIT-06", *version == 1, format!("version 1 was asked for and {version} answered"));
    }
    let able = &result["agentCapabilities"];
    if able.is_object() {
        let yes_or_no = |value: &Value| value.is_null() || value.is_boolean();
        let wrong = [
            ("loadSession", yes_or_no(&able["loadSession"])),
            (
                "promptCapabilities",
                able["promptCapabilities"].is_null() || able["promptCapabilities"].is_object(),
            ),
            ("mcpCapabilities", able["mcpCapabilities"].is_null() || able["mcpCapabilities"].is_object()),
            (
                "sessionCapabilities",
                able["sessionCapabilities"].is_null() || able["sessionCapabilities"].is_object(),
            ),
        ];
        let http = able["mcpCapabilities"]["http"] == true;
        stage.check("MCP-04", http, "MCP servers over http are not supported");
        let wrong = wrong.into_iter().find(|(_, fits)| !fits);
        stage.check(
            "INIT-18",
            wrong.is_none(),
            format!("`{}` is malformed", wrong.map_or("", |(name, _)| name)),
        );
    }
    Ok(())
}

async fn version_unknown(stage: &mut Stage, version: u64) -> Step {
    let answer = stage.call("initialize", hello(json!(version), json!({}))).await?;
    match answer {
        Ok(result) => {
            let came = &result["protocolVersion"];
            stage.check(
                "INIT-07",
                *came != version,
                format!("version {version} does not exist, and the agent agreed to it"),
            );
        }
        // An agent of version 2 only has nothing to answer to a version below; that it says in its
        // own code.
        Err(error) if matches!(error.code, -32022 | -32000) => {
            stage.skip("INIT-07", "the agent does not speak version 1")
        }
        Err(error) => stage.fail(
            "INIT-07",
            format!("refused with {} instead of a version that the agent knows", error.code),
        ),
    }
    Ok(())
}

async fn version_text(stage: &mut Stage) -> Step {
    let answer = stage.call("initialize", hello(json!("one"), json!({}))).await?;
    // A text is a version that the agent does not know, so it may offer its own one (INIT-07).
    let kept = answer.as_ref().map_or(true, |result| result["protocolVersion"].is_u64());
    stage.check("INIT-05", kept, "the version \"one\" was taken over");
    Ok(())
}

async fn too_early(stage: &mut Stage) -> Step {
    // Messages about a session that should not have been opened are judged by INIT-03.
    stage.not_applicable("INIT-10", "the scenario began before initialize");
    let params = opening(stage, json!({}));
    let answer = stage.call("session/new", params).await?;
    stage.check("INIT-03", answer.is_err(), "a session was opened before initialize");
    Ok(())
}

async fn twice(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let again = hello(json!(1), capabilities());
    if let Err(error) = stage.call("initialize", again).await? {
        stage.check(
            "INIT-25",
            error.code == -32600,
            format!("refused with {} instead of -32600", error.code),
        );
        return Ok(());
    }
    let alive = stage.turn(&session, PromptKind::Say).await?.is_ok();
    stage.check("INIT-25", alive, "the session from before the second initialize is lost");
    Ok(())
}

/// Prompts that ask an agent to use client capabilities.
const WISHES: [&str; 3] = [
    "Notice: tell me something as a notice of the session, not as a message.",
    "Compact the context of this session.",
    "Delegate the question what time it is to a subagent.",
];
const KINDS: [PromptKind; 7] = [
    PromptKind::Say,
    PromptKind::Read,
    PromptKind::Write,
    PromptKind::Run,
    PromptKind::Plan,
    PromptKind::Elicit,
    PromptKind::ElicitUrl,
];

async fn bare_client(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    let result = stage.call("session/new", opening(stage, json!({}))).await?;
    let result =
        result.map_err(|error| Stop::NotExercised(format!("session/new was refused: {}", error.message)))?;
    let session = result["sessionId"].as_str().unwrap_or_default().to_owned();
    if result["configOptions"].is_array() {
        stage.pass_all(&["CONF-07", "CONF-08"]);
    }
    let mark = stage.mark();
    let mut turns = Vec::new();
    for kind in KINDS {
        let ended = stage.turn(&session, kind).await?;
        // In version 2 a turn that fails is an answered prompt.
        turns.push((kind, ended.is_ok_and(|result| result["stopReason"] != "error")));
    }
    // An agent whose model does not work shows nothing here.
    let worked = turns.iter().any(|(_, worked)| *worked);
    for (kind, ended) in turns.into_iter().filter(|_| worked) {
        match kind {
            PromptKind::Say => {
                stage.check("INIT-16", ended, "a client without capabilities cannot even have a word");
            }
            PromptKind::Elicit => stage.check("ELIC-03", ended, "without elicitation the turn fails"),
            _ => {}
        }
    }
    for (at, text) in WISHES.into_iter().enumerate() {
        let ended = turn(stage, &session, text).await?;
        // NOTE-04: nothing depends on notices, so a turn without them ends the same way.
        if at == 0 && worked {
            match ended {
                Ok(_) => stage.pass("NOTE-04"),
                // An agent that refuses any words but some of its own shows nothing.
                Err(_) if turn(stage, &session, "Say hello again. Use no tools.").await?.is_err() => {
                    stage.skip("NOTE-04", "the agent takes no words of the checker's own");
                }
                Err(error) => stage.fail("NOTE-04", format!("without notices the turn fails: {error}")),
            }
        }
    }
    if worked && !stage.received(mark).iter().any(|message| lacking(stage, message).is_some()) {
        let rules = ["FS-02", "TERM-02", "ELIC-01", "PLAN-07", "NOTE-01", "NOTE-06", "SUBA-01", "AUTH-08"];
        stage.pass_all(&rules);
    }
    Ok(())
}

/// The rules about single capabilities of the client.
const OF_CAPABILITIES: [&str; 10] = [
    "FS-02", "TERM-02", "ELIC-01", "PLAN-07", "PLAN-08", "NOTE-01", "NOTE-06", "SUBA-01", "AUTH-08",
    "CONF-07",
];

/// The capability that a message needs and the client lacks.
fn lacking(stage: &Stage, message: &Message) -> Option<&'static str> {
    needed(message).filter(|path| !stage.log().can(Role::Client, path))
}

async fn null_capabilities(stage: &mut Stage) -> Step {
    let nothing = json!({
        "fs": null, "terminal": null, "elicitation": { "form": null, "url": null }, "plan": null, "subagents": null,
        "session": { "notices": null, "compaction": null, "configOptions": { "boolean": null } },
        "auth": { "terminal": null },
    });
    for rule in OF_CAPABILITIES {
        stage.not_applicable(rule, "the scenario is about null, of which INIT-19 speaks");
    }
    stage.initialize(nothing).await?;
    let session = stage.new_session().await?;
    for kind in KINDS {
        match stage.turn(&session, kind).await {
            // A turn may wait for an answer to a question that should not have been asked.
            Err(Stop::Deadline(_)) => stage.cancel(&session).await?,
            ended => drop(ended?),
        }
    }
    for text in WISHES {
        turn(stage, &session, text).await?.ok();
    }
    let uses = |message: &Rc<Message>| lacking(stage, message).map(|path| (message.index, path));
    let used = stage.received(0).iter().find_map(uses);
    match used {
        Some((at, path)) => {
            stage.fail_at("INIT-19", &[at], format!("`{path}` was null and is used all the same"))
        }
        None => stage.pass("INIT-19"),
    }
    Ok(())
}

async fn half_files(stage: &mut Stage, which: &str) -> Step {
    stage.initialize(json!({ "fs": { which: true } })).await?;
    let session = stage.new_session().await?;
    for kind in [PromptKind::Read, PromptKind::Write] {
        stage.turn(&session, kind).await?.ok();
    }
    Ok(())
}

async fn odd_capabilities(stage: &mut Stage) -> Step {
    let params = hello(json!(1), json!("x"));
    let answer = stage.call("initialize", params).await?;
    if answer.as_ref().is_err_and(|error| error.code == -32000) {
        return unseen("initialize wants credentials");
    }
    stage.check(
        "INIT-20",
        answer.is_ok(),
        "capabilities that are no object were refused instead of being ignored",
    );
    Ok(())
}

async fn baseline(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    let session = match stage.new_session().await {
        Err(Stop::Broken(why)) => {
            stage.fail("INIT-22", why);
            return Ok(());
        }
        other => other?,
    };
    let text = stage.prompt_text(PromptKind::Say);
    let id = prompt(stage, &session, &text).await?;
    match stage.end_of(&id).await? {
        Ok(_) => stage.pass("INIT-22"),
        Err(error) if error.code == -32601 => {
            stage.fail("INIT-22", "session/prompt is not supported");
            return Ok(());
        }
        Err(error) => return Err(Stop::NotExercised(format!("the prompt failed: {}", error.message))),
    }
    let uri = format!("file://{}/notes.txt", stage.cwd().to_string_lossy());
    let link = json!({ "type": "resource_link", "uri": uri, "name": "notes.txt" });
    let id = stage.prompt_blocks(&session, json!([{ "type": "text", "text": text }, link])).await?;
    match stage.end_of(&id).await? {
        Ok(_) => stage.pass_all(&["INIT-21", "PROMPT-03"]),
        // Another failure, of the model for example, says nothing about the link.
        Err(error) if matches!(error.code, -32602..=-32600) => {
            for rule in ["INIT-21", "PROMPT-03"] {
                stage.fail(
                    rule,
                    format!("a prompt with text and a resource_link was refused: {}", error.message),
                );
            }
        }
        Err(_) => {}
    }
    stage.cancel(&session).await?;
    stage.probe().await?;
    Ok(())
}
