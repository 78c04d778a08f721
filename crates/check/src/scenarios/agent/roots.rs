//! The environment of a session: directories and MCP servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::{capabilities, open_with, opening, reopening, turn, unseen, words};
use crate::judge::Message;
use crate::scenarios::scenario_table;
use crate::schema::Method;
use crate::stage::Permission;
use crate::{Need, Stage, Step, Stop, Version};

const ROOTS: Need = Need::Agent("sessionCapabilities.additionalDirectories");

scenario_table! { Agent:
    "cwd": "a relative path is one of the session's directory", ["ROOT-02"] in BOTH => cwd;
    "roots": "relative paths with an additional directory",
        ["ROOT-06", "ROOT-07", "TOOL-02"] needs [ROOTS] in BOTH => roots;
    "roots-wrong": "additional directories that are none", ["ROOT-10", "ROOT-11"] needs [ROOTS] in BOTH
        => wrong;
    "roots-gone": "additional directories are those of the request",
        ["ROOT-12", "ROOT-04"] needs [ROOTS, Need::Agent("sessionCapabilities.list")] in BOTH
        => gone;
    "roots-fork": "a fork has no additional directories but its own", ["FORK-05"]
        needs [ROOTS, Need::Agent("sessionCapabilities.fork"), Need::Agent("sessionCapabilities.list")]
        in BOTH => forked;
    "outside": "a path outside, directly and through a link", ["ROOT-03", "ROOT-18"] in BOTH
        => outside;
    "mcp-stdio": "an MCP server that is a program", ["MCP-02", "MCP-05", "MCP-09"] in BOTH
        => program;
    "mcp-wrong": "MCP servers that are none", ["MCP-08", "MCP-10", "MCP-11"] in BOTH
        => wrong_servers;
    "mcp-acp": "an MCP server that the client serves over the connection",
        ["MCPA-04"] needs [Need::Agent("mcpCapabilities.acp")] in BOTH => served(true);
    "mcp-acp-old": "the same in the form of August 2026",
        ["MCPA-03"] needs [Need::Agent("mcpCapabilities.acp")] => served(false);
}

const ASK: &str = "in your working directory and tell me its first line.";

/// The path of each file that the agent looked for since `mark`: read through the client, or in
/// version 2 named as the location of a tool call.
fn read(stage: &Stage, mark: usize) -> Vec<String> {
    let version = stage.version();
    let paths = |message: &Message| -> Vec<String> {
        let path = |place: &Value| place["path"].as_str().map(str::to_owned);
        match version {
            Version::V1 if message.asks("fs/read_text_file") => path(message.params()).into_iter().collect(),
            Version::V1 => Vec::new(),
            Version::V2 => {
                let update = message.update().filter(|(_, kind, _)| *kind == "tool_call_update");
                let places = update.and_then(|(_, _, update)| update["locations"].as_array());
                places.into_iter().flatten().filter_map(path).collect()
            }
        }
    };
    stage.received(mark).iter().flat_map(|message| paths(message)).collect()
}

async fn cwd(stage: &mut Stage) -> Step {
    stage.initialize(capabilities()).await?;
    let session = stage.new_session().await?;
    let mark = stage.mark();
    turn(stage, &session, &format!("Read the file `notes.txt` {ASK}")).await?.ok();
    let wanted = stage.cwd().join("notes.txt");
    let paths = read(stage, mark);
    let Some(path) = paths.iter().find(|path| path.ends_with("notes.txt")) else {
        // An agent that reads the file itself shows it by its text.
        if words(stage, &session, mark).contains("alpha") {
            stage.pass("ROOT-02");
            return Ok(());
        }
        return unseen("the agent did not read the file");
    };
    let right = Path::new(path) == wanted || paths.iter().any(|path| Path::new(path) == wanted);
    stage.check(
        "ROOT-02",
        right || !super::is_absolute(path),
        format!("`notes.txt` was looked for at {path:?}, the session is in {wanted:?}"),
    );
    Ok(())
}

async fn roots(stage: &mut Stage) -> Step {
    stage.initialize(capabilities()).await?;
    let other = stage.cwd().join("other");
    make_dir(stage, &other);
    put_file(stage, other.join("only-there.txt"), "attache-other\n");
    // The control: a file of the session's own directory is read when there are no other ones.
    let plain = stage.new_session().await?;
    let mark = stage.mark();
    turn(stage, &plain, &format!("Read the file `notes.txt` {ASK}")).await?.ok();
    let reads = |stage: &Stage, session: &str, mark: usize| {
        let asks = stage.version() == Version::V1 && !read(stage, mark).is_empty();
        asks || words(stage, session, mark).contains("alpha")
    };
    if !reads(stage, &plain, mark) {
        return unseen("the agent did not read the file");
    }
    let session = open_with(stage, json!({ "additionalDirectories": [other.to_string_lossy()] })).await?;
    let mark = stage.mark();
    turn(stage, &session, &format!("Read the file `notes.txt` {ASK}")).await?.ok();
    let same = reads(stage, &session, mark)
        && !read(stage, mark).iter().any(|path| Path::new(path).starts_with(&other));
    // Looked for in the other directory it is ROOT-06 that is broken.
    if !read(stage, mark).iter().any(|path| Path::new(path).starts_with(&other)) {
        stage.check(
            "ROOT-07",
            same,
            "a file of the session's directory is read no more when there is an additional one",
        );
    }
    let mark = stage.mark();
    turn(stage, &session, &format!("Read the file `only-there.txt` {ASK}")).await?.ok();
    let paths = read(stage, mark);
    match paths.first() {
        Some(path) => {
            let right = !Path::new(path).starts_with(&other);
            stage.check(
                "ROOT-06",
                right,
                format!("a relative path was looked for at {path:?}, in an additional directory"),
            );
        }
        None => stage.skip("ROOT-06", "the agent does not show where it looked for the file"),
    }
    Ok(())
}

/// Provides a file, on disk if there is one.
fn put_file(stage: &mut Stage, path: PathBuf, text: &str) {
    if super::on_disk(stage) {
        // As in `make_dir`: without the file the scenario shows nothing.
        std::fs::write(&path, text).ok();
    }
    stage.services.set_file(path, text);
}

pub(super) fn make_dir(stage: &Stage, path: &Path) {
    if super::on_disk(stage) {
        // If it cannot be made the agent will not find it, and the scenario shows nothing.
        std::fs::create_dir_all(path).ok();
    }
}

async fn wrong(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    for list in [json!(["rel"]), json!([""]), json!([5])] {
        let answer =
            stage.call("session/new", opening(stage, json!({ "additionalDirectories": list }))).await?;
        match answer {
            Err(error) if error.code == -32000 => return unseen("the agent wants authentication"),
            Err(_) => stage.pass("ROOT-10"),
            Ok(_) => stage.fail("ROOT-10", format!("the additional directories {list} were accepted")),
        }
    }
    let absent = stage.call("session/new", opening(stage, json!({}))).await?;
    let empty = stage.call("session/new", opening(stage, json!({ "additionalDirectories": [] }))).await?;
    if absent.is_ok() {
        stage.check("ROOT-11", empty.is_ok(), "an empty list of additional directories was refused");
    }
    Ok(())
}

/// The additional directories of a session in the list; `None` if it is not listed.
async fn listed_roots(stage: &mut Stage, session: &str) -> Result<Option<Value>, Stop> {
    let mut params = json!({});
    loop {
        let page = stage.call("session/list", params.clone()).await?.unwrap_or_default();
        let found =
            page["sessions"].as_array().into_iter().flatten().find(|info| info["sessionId"] == *session);
        if let Some(info) = found {
            return Ok(Some(info["additionalDirectories"].clone()));
        }
        match page["nextCursor"].as_str() {
            Some(cursor)
                if params["cursor"] != cursor && !page["sessions"].as_array().is_none_or(Vec::is_empty) =>
            {
                params["cursor"] = json!(cursor);
            }
            _ => return Ok(None),
        }
    }
}

fn is_empty(roots: &Value) -> bool {
    roots.as_array().is_none_or(Vec::is_empty)
}

/// A session with an additional directory that the list shows; it is closed again if that can be
/// done.
async fn with_root(stage: &mut Stage) -> Result<String, Stop> {
    stage.initialize(capabilities()).await?;
    let other = stage.cwd().join("other");
    make_dir(stage, &other);
    let session = open_with(stage, json!({ "additionalDirectories": [other.to_string_lossy()] })).await?;
    turn(stage, &session, "Say hello. Use no tools.").await?.ok();
    match listed_roots(stage, &session).await? {
        Some(roots) if !is_empty(&roots) => Ok(session),
        _ => unseen("the list does not show additional directories"),
    }
}

async fn gone(stage: &mut Stage) -> Step {
    let session = with_root(stage).await?;
    if stage.need("sessionCapabilities.close").is_ok() {
        stage.call("session/close", json!({ "sessionId": session })).await?.ok();
    }
    let ways = [("session/resume", "sessionCapabilities.resume"), ("session/load", "loadSession")];
    let ways = ways.into_iter().filter(|(method, _)| Method::of(stage.version(), method).is_some());
    let mut any = false;
    for (method, capability) in ways.collect::<Vec<_>>() {
        if stage.need(capability).is_err() || stage.call(method, reopening(stage, &session)).await?.is_err() {
            continue;
        }
        any = true;
        let roots = listed_roots(stage, &session).await?.unwrap_or_default();
        stage.check(
            "ROOT-12",
            is_empty(&roots),
            format!("{method} named no additional directories, and now there are {roots}"),
        );
    }
    if any { Ok(()) } else { unseen("the session could not be opened again") }
}

async fn forked(stage: &mut Stage) -> Step {
    let session = with_root(stage).await?;
    let fork = match stage.call("session/fork", reopening(stage, &session)).await? {
        Ok(result) => result["sessionId"].as_str().unwrap_or_default().to_owned(),
        Err(error) => return unseen(&format!("session/fork was refused: {}", error.message)),
    };
    if fork == session {
        return unseen("the fork has the name of its source");
    }
    if let Some(roots) = listed_roots(stage, &fork).await? {
        stage.check(
            "FORK-05",
            is_empty(&roots),
            format!("the fork named no additional directories, and has {roots}"),
        );
    }
    Ok(())
}

/// Needs files that are really there.
async fn outside(stage: &mut Stage) -> Step {
    if !super::on_disk(stage) {
        return unseen("links need a disk");
    }
    // A client that provides files guards them itself, and an agent may read a file that the user
    // allows: so neither.
    stage.initialize(json!({})).await?;
    stage.services.permission = Permission::Reject;
    let (inner, outer) = (stage.cwd().join("inner"), stage.cwd().join("outer"));
    make_dir(stage, &inner);
    make_dir(stage, &outer);
    let secret = outer.join("secret.txt");
    let made =
        std::fs::write(&secret, "attache-secret\n").and_then(|()| link(&secret, &inner.join("link.txt")));
    if let Err(error) = made {
        return unseen(&format!("the files could not be made: {error}"));
    }
    let session = open_with(stage, json!({ "cwd": inner.to_string_lossy() })).await?;
    let mark = stage.mark();
    turn(
        stage,
        &session,
        &format!("Read the file `{}` and tell me its first line.", secret.to_string_lossy()),
    )
    .await?
    .ok();
    let seen = |stage: &Stage, mark: usize| words(stage, &session, mark).contains("attache-secret");
    let direct = seen(stage, mark);
    let tried = |message: &Message| {
        super::is_question(message)
            || message.update().is_some_and(|(_, kind, _)| kind.starts_with("tool_call"))
    };
    if !direct && !stage.received(mark).iter().any(|message| tried(message)) {
        return unseen("the agent did not try to read the file");
    }
    stage.check("ROOT-03", !direct, "a file outside of the session's directory was read");
    if direct {
        return unseen("the agent has no boundary that a link could cross");
    }
    let mark = stage.mark();
    turn(stage, &session, &format!("Read the file `link.txt` {ASK}")).await?.ok();
    let through = seen(stage, mark);
    stage.check("ROOT-18", !through, "a file outside was refused by its path and read through a link");
    Ok(())
}

#[cfg(unix)]
fn link(to: &Path, from: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(to, from)
}

#[cfg(not(unix))]
fn link(to: &Path, from: &Path) -> std::io::Result<()> {
    let _ = (to, from);
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The smallest MCP server: it leaves a mark, and answers `initialize` and `tools/list`.
const SERVER: &str = r#"printf started > "$1"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"attache","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}\n' "$id" ;;
  esac
done"#;

async fn program(stage: &mut Stage) -> Step {
    if !super::on_disk(stage) || cfg!(not(unix)) {
        return unseen("a program needs a disk and a shell");
    }
    stage.initialize(json!({})).await?;
    if stage.version() == Version::V2 {
        stage.need("mcpCapabilities.stdio")?;
    }
    stage.new_session().await?;
    let version = stage.version();
    let marks = ["started", "started-too"].map(|name| stage.cwd().join(name));
    let server = |command: &str, mark: &Path| {
        let mut server = json!({
            "name": mark.file_name().map(|name| name.to_string_lossy()), "command": command, "env": [],
            "args": ["-c", SERVER, "sh", mark.to_string_lossy()],
        });
        if version == Version::V2 {
            server["type"] = json!("stdio");
        }
        server
    };
    let both = json!(marks.each_ref().map(|mark| server("/bin/sh", mark)));
    let answer = stage.call("session/new", opening(stage, json!({ "mcpServers": both }))).await?;
    let session = match answer {
        Ok(result) => result["sessionId"].as_str().unwrap_or_default().to_owned(),
        Err(error) => {
            stage.fail("MCP-02", format!("a session with stdio MCP servers was refused: {}", error.message));
            return Ok(());
        }
    };
    if !marks.iter().all(|mark| mark.exists()) {
        // Some agents start servers when they are needed first.
        turn(stage, &session, "Say hello. Use no tools.").await?.ok();
        stage.quiet(Duration::from_secs(1)).await?;
    }
    let started = marks.iter().filter(|mark| mark.exists()).count();
    if started > 0 {
        stage.pass("MCP-02");
        stage.check("MCP-05", started == 2, "of two MCP servers one was started");
    }
    let missing = json!([server("/nonexistent/attache", &marks[0])]);
    let answer = stage.call("session/new", opening(stage, json!({ "mcpServers": missing }))).await?;
    stage.check("MCP-09", answer.is_ok(), "a server that does not start prevents the session");
    if started > 0 { Ok(()) } else { unseen("the servers were accepted and not started") }
}

async fn wrong_servers(stage: &mut Stage) -> Step {
    stage.initialize(json!({})).await?;
    stage.new_session().await?;
    let weird = json!([{ "type": "weird", "name": "x", "command": "/bin/true", "args": [], "env": [] }]);
    for (rule, list) in [("MCP-11", json!([5])), ("MCP-11", json!([{ "name": "x" }])), ("MCP-08", weird)] {
        match stage.call("session/new", opening(stage, json!({ "mcpServers": list }))).await? {
            Err(error) if error.code == -32602 => stage.pass(rule),
            Err(error) if rule == "MCP-08" => {
                stage.fail(rule, format!("refused with {} instead of -32602", error.code))
            }
            // MCP-11 forbids skipping entries; RPC-13 judges the error code.
            Err(_) => stage.pass(rule),
            Ok(_) => stage.fail(rule, format!("the servers {list} were accepted")),
        }
    }
    let null = stage.call("session/new", opening(stage, json!({ "mcpServers": null }))).await?;
    stage.check("MCP-10", null.is_ok(), "`mcpServers: null` was refused");
    Ok(())
}

async fn served(stage: &mut Stage, modern: bool) -> Step {
    stage.initialize(capabilities()).await?;
    let server = json!([{ "type": "acp", "name": "attache", "serverId": "attache-server" }]);
    let session = open_with(stage, json!({ "mcpServers": server })).await?;
    serve_mcp(stage, modern);
    if !modern {
        stage.not_applicable("MCPA-04", "the scenario asks for the form of August");
    }
    turn(stage, &session, "Use the tool `time` of the MCP server named attache.").await?.ok();
    Ok(())
}

/// A client of today answers `mcp/message`; one of August wants `mcp/connect` first.
fn serve_mcp(stage: &mut Stage, modern: bool) {
    use crate::stage::Reply;
    let inner = json!({ "content": [] });
    stage.services.answer_with("mcp/message", move |params| match (modern, params.get("connectionId")) {
        (true, None) => Reply::Result(json!({ "result": inner })),
        (false, Some(_)) => Reply::Result(inner.clone()),
        _ => Reply::Error(-32602, "not in this form".to_owned()),
    });
    stage.services.answer_with("mcp/connect", move |_| match modern {
        true => Reply::Error(-32601, "method not found".to_owned()),
        false => Reply::Result(json!({ "connectionId": "attache-connection" })),
    });
    stage.services.answer_with("mcp/disconnect", |_| Reply::Result(json!({})));
}
