//! The environment of a session: directories, MCP servers, system prompt.

use std::path::{Path, PathBuf};

use attache_conn::private::TempDir;
use serde_json::{Value, json};

use super::files::reads_the_disk;
use super::steps::{Turn, describe_answer, end, everything, find, open_turn, whole_act, without};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

const READ: &[Need] = &[Need::Client("fs.readTextFile")];

scenario_table! { Client:
    "directory": "a new session has an absolute directory", ["ROOT-01", "ROOT-04", "MCP-07"] in BOTH
        => directory;
    "outside": "files outside of the session's roots are refused",
        ["ROOT-17", "FS-15", "ROOT-11"] needs READ => outside;
    "links": "links that lead outside are refused", ["ROOT-18"] needs READ => links;
    "roots-missing": "no other roots where the agent takes none",
        ["ROOT-08"] needs [Need::Act("roots")] in BOTH => no_roots;
    "roots": "other roots where the agent takes them",
        ["ROOT-08", "ROOT-09", "ROOT-19"] needs [Need::Act("roots")] in BOTH => with_roots;
    "mcp-stdio": "an MCP server that is a program",
        ["MCP-03", "MCP-06", "MCP-07", "ROOT-04"] needs [Need::Act("mcp")] in BOTH => mcp;
    "mcp-stdio-missing": "no MCP servers that are programs where the agent starts none",
        ["MCP-03"] needs [Need::Act("mcp")] in V2 => no_stdio;
    "mcp-missing": "no MCP servers of kinds that the agent cannot reach",
        ["MCP-03"] needs [Need::Act("mcp_http")] in BOTH => no_mcp;
    "mcp-http": "MCP servers over HTTP", ["MCP-03", "MCP-07"] needs [Need::Act("mcp_http")] in BOTH
        => with_mcp;
    "mcp-acp-missing": "no MCP servers over ACP where the agent takes none",
        ["MCPA-01"] needs [Need::Act("mcp_acp")] in BOTH => no_acp;
    "mcp-acp": "MCP servers over ACP",
        ["MCPA-01", "MCPA-02", "MCPA-05", "MCPA-06"] needs [Need::Act("mcp_acp")] in BOTH => with_acp;
    "system-prompt-missing": "no system prompt where the agent takes none",
        ["SYSP-01"] needs [Need::Act("system_prompt")] in BOTH => no_system;
    "system-prompt-append": "no replacement of the agent's own system prompt where it forbids that",
        ["SYSP-01", "SYSP-03"] needs [Need::Act("system_prompt")] in BOTH => append;
    "system-prompt": "a system prompt of text",
        ["SYSP-01", "SYSP-03"] needs [Need::Act("system_prompt")] in BOTH => with_system;
}

/// The params of the session/new that the client sent.
async fn new_session(stage: &mut Stage, capabilities: Value) -> Result<Value, Stop> {
    let said = whole_act(stage, capabilities).await?;
    let asked = find(&said, "session/new");
    asked
        .map(|asked| asked.params().clone())
        .ok_or_else(|| Stop::NotExercised("the client opened no session".to_owned()))
}

async fn directory(stage: &mut Stage) -> Step {
    new_session(stage, everything()).await.map(drop)
}

/// A directory beside that of the scenario, with a file in it; gone with this value.
struct Beside(TempDir);

impl Beside {
    fn new(cwd: &Path) -> Result<Beside, Stop> {
        let made = TempDir::within(cwd.parent().unwrap_or(cwd), "attache-beside").map(Beside);
        let made = made.and_then(|beside| std::fs::write(beside.file(), "a secret\n").map(|()| beside));
        made.map_err(|error| Stop::Broken(format!("cannot make a directory beside the session's: {error}")))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("secret.txt")
    }
}

/// Whether the client hands the file over.
async fn hands_over(stage: &mut Stage, turn: &Turn, path: &Path) -> Result<bool, Stop> {
    Ok(stage.read_file(&turn.session, &path.to_string_lossy()).await?.is_ok())
}

async fn outside(stage: &mut Stage) -> Step {
    let beside = Beside::new(stage.cwd())?;
    let turn = open_turn(stage).await?;
    reads_the_disk(stage, &turn).await?;
    let system = Path::new(if cfg!(windows) { "C:\\Windows\\win.ini" } else { "/etc/passwd" });
    let around =
        stage.cwd().join("..").join(beside.0.path().file_name().unwrap_or_default()).join("secret.txt");
    let given = hands_over(stage, &turn, system).await?;
    let why = format!("{} was handed over", system.display());
    stage.check("ROOT-17", !given, why.clone());
    stage.check("FS-15", !given, why);
    if !given {
        // One that keeps no roots at all is said so above.
        let given =
            hands_over(stage, &turn, &beside.file()).await? || hands_over(stage, &turn, &around).await?;
        let named = stage.log().sessions.get(&turn.session).is_some_and(|session| !session.roots.is_empty());
        if !named {
            stage.check(
                "ROOT-11",
                !given,
                "without other roots a file beside the session's directory was handed over",
            );
        }
    }
    end(stage, &turn).await
}

async fn links(stage: &mut Stage) -> Step {
    let beside = Beside::new(stage.cwd())?;
    let (file, dir) = (stage.cwd().join("link.txt"), stage.cwd().join("link"));
    let made = link(&beside.file(), &file).and_then(|()| link(beside.0.path(), &dir));
    made.map_err(|error| Stop::NotExercised(format!("no links can be made here: {error}")))?;
    let turn = open_turn(stage).await?;
    reads_the_disk(stage, &turn).await?;
    let whole = hands_over(stage, &turn, &beside.file()).await?;
    if whole {
        return Err(Stop::NotExercised("the client keeps no roots (ROOT-17)".to_owned()));
    }
    for path in [file, dir.join("secret.txt")] {
        let given = hands_over(stage, &turn, &path).await?;
        stage.check("ROOT-18", !given, format!("{}, which leads outside, was handed over", path.display()));
    }
    end(stage, &turn).await
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

async fn no_roots(stage: &mut Stage) -> Step {
    let params = new_session(stage, without("/sessionCapabilities/additionalDirectories")).await?;
    let named = params["additionalDirectories"].as_array().is_some_and(|list| !list.is_empty());
    stage.check("ROOT-08", !named, "additionalDirectories came, which the agent does not announce");
    Ok(())
}

async fn with_roots(stage: &mut Stage) -> Step {
    let params = new_session(stage, everything()).await?;
    match params["additionalDirectories"].as_array() {
        Some(list) if !list.is_empty() => Ok(()),
        _ => Err(Stop::NotExercised("the client was asked to name other roots and did not".to_owned())),
    }
}

async fn mcp(stage: &mut Stage) -> Step {
    let params = new_session(stage, everything()).await?;
    match params["mcpServers"].as_array() {
        Some(list) if !list.is_empty() => Ok(()),
        _ => Err(Stop::NotExercised("the client was asked to pass an MCP server and did not".to_owned())),
    }
}

fn kinds(params: &Value) -> Vec<String> {
    let servers = params["mcpServers"].as_array().into_iter().flatten();
    servers.filter_map(|server| server["type"].as_str().map(str::to_owned)).collect()
}

async fn no_mcp(stage: &mut Stage) -> Step {
    let mut capabilities = everything();
    capabilities["mcpCapabilities"] = json!({});
    let params = new_session(stage, capabilities).await?;
    let passed = kinds(&params).iter().any(|kind| kind == "http" || kind == "sse");
    stage.check("MCP-03", !passed, "a server over HTTP was passed, which the agent does not announce");
    Ok(())
}

async fn no_stdio(stage: &mut Stage) -> Step {
    let mut capabilities = everything();
    capabilities["mcpCapabilities"]["stdio"] = json!(false);
    let params = new_session(stage, capabilities).await?;
    let passed = kinds(&params).iter().any(|kind| kind == "stdio");
    stage.check(
        "MCP-03",
        !passed,
        "a server that is a program was passed, which the agent does not announce",
    );
    Ok(())
}

async fn with_mcp(stage: &mut Stage) -> Step {
    let params = new_session(stage, everything()).await?;
    if !kinds(&params).iter().any(|kind| kind == "http" || kind == "sse") {
        return Err(Stop::NotExercised(
            "the client was asked to pass servers over HTTP and did not".to_owned(),
        ));
    }
    stage.pass("MCP-03");
    Ok(())
}

async fn no_acp(stage: &mut Stage) -> Step {
    let params = new_session(stage, without("/mcpCapabilities/acp")).await?;
    let passed = kinds(&params).iter().any(|kind| kind == "acp");
    stage.check("MCPA-01", !passed, "a server over ACP was passed, which the agent does not announce");
    Ok(())
}

async fn with_acp(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let params = stage
        .received(0)
        .iter()
        .find(|message| message.asks("session/new"))
        .map(|message| message.params().clone());
    let servers = params.as_ref().map(|params| params["mcpServers"].clone()).unwrap_or_default();
    let server = servers.as_array().into_iter().flatten().find(|server| server["type"] == "acp").cloned();
    let Some(server) = server else {
        return Err(Stop::NotExercised(
            "the client was asked to pass a server over ACP and did not".to_owned(),
        ));
    };
    stage.pass("MCPA-01");
    if !server["serverId"].is_string() {
        return Err(Stop::NotExercised("the server over ACP has no id to call it by".to_owned()));
    }
    for (number, method) in [(1, "tools/list"), (2, "no/such")] {
        let params =
            json!({ "serverId": server["serverId"], "requestId": number, "method": method, "params": {} });
        let answer = stage.call("mcp/message", params).await?;
        let one = |answer: &Value| answer.get("result").is_some() != answer.get("error").is_some();
        // ACP's own errors are for servers that cannot be reached.
        let kept = answer.as_ref().is_ok_and(one);
        stage.check(
            "MCPA-05",
            kept,
            format!("mcp/message for `{method}` was answered {answer}", answer = describe_answer(&answer)),
        );
    }
    end(stage, &turn).await
}

async fn no_system(stage: &mut Stage) -> Step {
    let params = new_session(stage, without("/sessionCapabilities/systemPrompt")).await?;
    stage.check(
        "SYSP-01",
        params["systemPrompt"].is_null(),
        "systemPrompt came, which the agent does not announce",
    );
    Ok(())
}

async fn append(stage: &mut Stage) -> Step {
    let params = new_session(stage, without("/sessionCapabilities/systemPrompt/mode/override")).await?;
    let over = params["systemPrompt"]["mode"] == "override";
    stage.check("SYSP-01", !over, "the mode override came, which the agent does not announce");
    Ok(())
}

async fn with_system(stage: &mut Stage) -> Step {
    let params = new_session(stage, everything()).await?;
    if params["systemPrompt"].is_null() {
        return Err(Stop::NotExercised(
            "the client was asked to send a system prompt and did not".to_owned(),
        ));
    }
    stage.pass("SYSP-01");
    Ok(())
}
