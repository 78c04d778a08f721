//! Reading and writing.

use crate::agent::turn::{Act, Cancelled, Turn};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// ROOT-02, ROOT-06: where a path leads: relative ones from the session's directory.
fn resolve(turn: &Turn, path: &str) -> PathBuf {
    let agent = &turn.agent;
    let plain = Path::new(&turn.cwd).join(path);
    match turn.roots.first() {
        _ if agent.is("ROOT-02") && !Path::new(path).is_absolute() => Path::new("/somewhere/else").join(path),
        Some(root) if agent.is("ROOT-06") && !Path::new(path).is_absolute() => Path::new(root).join(path),
        _ => plain,
    }
}

/// ROOT-03, ROOT-07, ROOT-18: whether it leads to one of the session's roots, links followed.
fn inside(turn: &Turn, path: &Path) -> bool {
    let agent = &turn.agent;
    if agent.is("ROOT-03") || (agent.is("ROOT-02") && path.starts_with("/somewhere/else")) {
        return true;
    }
    let real = |path: &Path| {
        if agent.is("ROOT-18") { path.to_owned() } else { canonical(path) }
    };
    let cwd = (!agent.is("ROOT-07") || turn.roots.is_empty()).then_some(&turn.cwd);
    cwd.into_iter().chain(&turn.roots).any(|root| real(path).starts_with(real(Path::new(root))))
}

/// The path with its links followed, as far as it exists.
fn canonical(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

/// The text of a file: the client's if it offers files (FS-01, FS-02), else that on disk.
async fn text_of(turn: &Turn, path: &str) -> Result<Option<String>, Cancelled> {
    let agent = &turn.agent;
    if !(turn.client_has("fs.readTextFile")
        || agent.is("FS-01")
        || agent.is("FS-02/read")
        || agent.is("INIT-15"))
    {
        return Ok(std::fs::read_to_string(path).ok());
    }
    let params = json!({ "sessionId": turn.session, "path": path, "line": 1, "limit": 100 });
    let answer = turn.ask("fs/read_text_file", params).await?;
    if answer.is_err() && agent.is("RPC-16") {
        // A code that it does not know is more than it can bear.
        agent.die();
        std::future::pending::<()>().await;
    }
    Ok(answer.ok().and_then(|answer| answer["content"].as_str().map(str::to_owned)))
}

pub(super) async fn read(turn: &Turn, path: &str) -> Act {
    let path = resolve(turn, path);
    let shown = path.to_string_lossy().into_owned();
    let locations = json!([{ "path": shown, "line": 1 }]);
    let tool = turn
        .tool(
            "read",
            &format!("Read {shown}"),
            json!({ "locations": locations, "rawInput": { "path": shown } }),
        )
        .await;
    if !inside(turn, &path) {
        turn.tool_end(&tool, false, "outside of the session's directories").await;
        turn.say("That is not mine to read").await;
        return Ok(());
    }
    let note = json!([{ "type": "content", "content": { "type": "text", "text": "looking" } }]);
    turn.tool_update(&tool, json!({ "status": "in_progress", "content": note })).await;
    let text = match text_of(turn, &shown).await {
        Ok(text) => text,
        Err(cancelled) => {
            turn.tool_end(&tool, false, "cancelled").await;
            return Err(cancelled);
        }
    };
    let Some(text) = text else {
        turn.tool_end(&tool, false, "no such file").await;
        turn.say("There is no such file").await;
        return Ok(());
    };
    turn.tool_end(&tool, true, &text).await;
    turn.say(text.lines().next().unwrap_or_default()).await;
    Ok(())
}

/// Two files at once: two requests are open at the same time.
pub(super) async fn compare(turn: &Turn, paths: &[String]) -> Act {
    let path = |at: usize| {
        let name = paths.get(at).map_or("notes.txt", String::as_str);
        resolve(turn, name).to_string_lossy().into_owned()
    };
    let (left, right) = (path(0), path(1));
    let tool = turn
        .tool("read", "Read two files", json!({ "locations": [{ "path": left }, { "path": right }] }))
        .await;
    let (left, right) = tokio::join!(text_of(turn, &left), text_of(turn, &right));
    let same = left? == right?;
    turn.tool_end(&tool, true, if same { "the same" } else { "not the same" }).await;
    turn.say("I have read both").await;
    Ok(())
}

pub(super) async fn write(turn: &Turn, path: &str, text: &str) -> Act {
    let path = resolve(turn, path);
    let shown = path.to_string_lossy().into_owned();
    let diff = json!([{ "type": "diff", "path": shown, "oldText": null, "newText": text }]);
    let title = format!("Write {shown}");
    let more = json!({ "content": diff, "locations": [{ "path": shown, "line": 1 }], "rawInput": { "path": shown, "text": text } });
    let tool = turn.tool("edit", &title, more).await;
    if !inside(turn, &path) {
        turn.tool_end(&tool, false, "outside of the session's directories").await;
        return Ok(());
    }
    if turn.agent.is("PERM-13") {
        put(turn, &shown, text).await?;
    }
    let allowed = match turn.permitted(&tool, &title).await {
        Ok(allowed) => allowed,
        Err(cancelled) => {
            turn.tool_end(&tool, false, "cancelled").await;
            return Err(cancelled);
        }
    };
    if !allowed {
        // PERM-10: a tool that may not run has failed, and the turn goes on.
        if turn.agent.is("PERM-10") {
            turn.tool_update(&tool, json!({ "status": "in_progress" })).await;
        } else {
            turn.tool_end(&tool, false, "not allowed").await;
        }
        turn.say("As you wish").await;
        return Ok(());
    }
    // TOOL-08: from here on it runs.
    if !turn.agent.is("TOOL-08") {
        turn.tool_update(&tool, json!({ "status": "in_progress" })).await;
    }
    let written = put(turn, &shown, text).await?;
    turn.tool_update(
        &tool,
        json!({ "status": if written { "completed" } else { "failed" }, "content": diff }),
    )
    .await;
    turn.say("Done").await;
    Ok(())
}

async fn put(turn: &Turn, path: &str, text: &str) -> Result<bool, Cancelled> {
    if !(turn.client_has("fs.writeTextFile") || turn.agent.is("FS-02")) {
        return Ok(std::fs::write(path, text).is_ok());
    }
    let params: Value = json!({ "sessionId": turn.session, "path": path, "content": text });
    // RPC-22: `null` is as good an answer as `{}`.
    Ok(match turn.ask("fs/write_text_file", params).await? {
        Ok(answer) if turn.agent.is("RPC-22") => answer.is_object(),
        Ok(_) => true,
        Err(_) => false,
    })
}
