//! `initialize` and the params of sessions.

use super::Client;
use super::wire::{Answer, Halt, failure};
use serde_json::{Value, json};
use std::path::Path;

impl Client {
    /// INIT-01, INIT-02: the first message, and its answer before anything else.
    pub(super) async fn initialize(&self) -> Result<(), Halt> {
        let params = self.introduction();
        if self.is("INIT-01") {
            let _ = self.call("session/new", self.opening()).await;
        }
        if self.is("INIT-02") || self.is("SESS-01") {
            // Sent before the answer to initialize; the outcome does not matter.
            let (id, answer) = self.ask("initialize", params).await;
            if self.is("SESS-01") {
                let _ = self.ask("session/new", self.opening()).await;
            } else if !self.acts("cancel") {
                self.tell("session/cancel", json!({ "sessionId": "sess-early" })).await;
            }
            return self.introduced(self.outcome(id, answer).await?);
        }
        match self.call("initialize", params).await {
            // INIT-09: without a common version there is nothing to go on with.
            Err(Halt::Refused(_)) if self.is("INIT-09/refused") => {
                self.state().agent = json!({ "capabilities": { "session": {} } });
                Ok(())
            }
            answer => self.introduced(answer?),
        }
    }

    fn introduced(&self, agent: Value) -> Result<(), Halt> {
        let version = agent.get("protocolVersion").and_then(Value::as_u64);
        // INIT-16, INIT-20: any capabilities are accepted.
        let capabilities = match self.speaks_2() {
            true => super::v2::capability(&agent, "/sessionCapabilities/delete"),
            false => agent.get("agentCapabilities"),
        };
        let stumbles = match capabilities {
            None => self.is("INIT-16"),
            Some(capabilities) => self.is("INIT-20") && !capabilities.is_object(),
        };
        if stumbles {
            return Err(Halt::Unsupported);
        }
        self.state().agent = agent;
        // INIT-09: an unknown version ends the connection.
        match version {
            Some(1) if !self.speaks_2() => Ok(()),
            Some(2) if self.speaks_2() => Ok(()),
            _ if self.is("INIT-09") => Ok(()),
            _ => Err(Halt::Unsupported),
        }
    }

    /// INIT-04, INIT-12, INIT-17: version, name and everything that the client can.
    fn introduction(&self) -> Value {
        if self.speaks_2() {
            return self.introduction_2();
        }
        // INIT-05: the version is a number.
        let version = match self.setup.variant.as_deref() {
            Some("INIT-04") => json!(0),
            Some("INIT-05") => json!("1"),
            _ => json!(1),
        };
        let mut params = json!({
            "protocolVersion": version,
            "clientCapabilities": self.capabilities(),
            "clientInfo": { "name": "mutant-client", "title": "The good client", "version": "0.1.0" },
        });
        match self.setup.variant.as_deref() {
            Some("INIT-12") => drop(params.as_object_mut().map(|params| params.remove("clientInfo"))),
            Some("INIT-17") => drop(params.as_object_mut().map(|params| params.remove("clientCapabilities"))),
            Some("INIT-24") => {
                params["_meta"] = json!({ "attache.dev/apiKey": "sk-not-a-real-key-0123456789" })
            }
            Some("INIT-27") => params["clientCapabilities"]["hologram"] = json!(true),
            _ => {}
        }
        params
    }

    fn capabilities(&self) -> Value {
        if self.acts("bare") {
            return json!({});
        }
        let mut elicitation = json!({ "form": {} });
        if self.acts("url") || self.acts("decline") {
            elicitation["url"] = json!({});
        }
        let mut capabilities = json!({
            "fs": { "readTextFile": true, "writeTextFile": true },
            "terminal": true,
            "session": { "configOptions": { "boolean": {} }, "notices": {}, "compaction": {} },
            "auth": { "terminal": self.setup.relaunch.is_some() },
            "elicitation": elicitation,
            "plan": {},
            "subagents": {},
        });
        if self.is("EXT-09") {
            // Announced by itself, which says nothing of the agent.
            capabilities["_meta"] = json!({ "attache.dev": { "hello": true } });
        }
        if self.acts("nes") {
            capabilities["nes"] = json!({ "jump": {}, "rename": {}, "searchAndReplace": {} });
            capabilities["positionEncodings"] = json!(["utf-16"]);
        }
        capabilities
    }

    /// Whether the agent announced the capability at `pointer`. INIT-15, INIT-19: an object or
    /// `true` is yes; null, false and nothing are no.
    pub(super) fn agent_has(&self, pointer: &str) -> bool {
        if self.ignores(pointer) {
            return true;
        }
        let state = self.state();
        let found = match self.speaks_2() {
            true => super::v2::capability(&state.agent, pointer),
            false => state.agent.pointer(&format!("/agentCapabilities{pointer}")),
        };
        match found {
            Some(Value::Null) => self.is("INIT-19"),
            Some(Value::Bool(yes)) => *yes,
            found => found.is_some_and(Value::is_object),
        }
    }

    /// Ends the action unless the agent announced the capability at `pointer`.
    pub(super) fn require(&self, pointer: &str) -> Result<(), Halt> {
        if self.agent_has(pointer) { Ok(()) } else { Err(Halt::Unsupported) }
    }

    /// Whether this variant does not look at that capability.
    fn ignores(&self, pointer: &str) -> bool {
        let rules: &[&str] = match pointer {
            "/loadSession" => &["SESS-07", "SESS-08"],
            "/sessionCapabilities/resume" => &["SESS-20", "SESS-21"],
            "/sessionCapabilities/close" => &["SESS-25", "SESS-26"],
            "/sessionCapabilities/list" => &["LIST-01", "LIST-02"],
            "/sessionCapabilities/delete" => &["DEL-01", "DEL-02"],
            "/sessionCapabilities/fork" => &["FORK-01"],
            "/sessionCapabilities/additionalDirectories" => &["ROOT-08"],
            "/sessionCapabilities/systemPrompt" => &["SYSP-01"],
            "/sessionCapabilities/systemPrompt/mode/override" => &["SYSP-01/override"],
            "/promptCapabilities/image" => &["PROMPT-02", "CONT-02"],
            "/promptCapabilities/audio" => &["CONT-02/audio"],
            "/promptCapabilities/embeddedContext" => &["CONT-02/resource"],
            "/mcpCapabilities/stdio" => &["MCP-03/stdio"],
            "/mcpCapabilities/http" => &["MCP-03"],
            "/mcpCapabilities/sse" => &["MCP-03/sse"],
            "/mcpCapabilities/acp" => &["MCPA-01"],
            "/auth/logout" => &["AUTH-16"],
            "/providers" => &["PROV-02"],
            "/nes" => &["NES-01"],
            "/nes/events/document/didClose" => &["NES-02"],
            "/nes/context/recentFiles" => &["NES-03"],
            _ => &[],
        };
        self.setup.variant.as_deref().is_some_and(|variant| rules.contains(&variant))
    }

    /// The params that session/new, load, resume and fork share.
    pub(super) fn opening(&self) -> Value {
        // SESS-33: a session needs its directory and the list of servers.
        if self.is("SESS-33") && self.acts("prompt") {
            return json!({});
        }
        // ROOT-01: an absolute directory.
        let cwd = if self.is("ROOT-01") { "." } else { &*self.setup.cwd.to_string_lossy() };
        // MCP-07 and SESS-10: the list is there, also when it is empty.
        let mut opening = json!({ "cwd": cwd, "mcpServers": self.servers() });
        let roots = self.roots();
        // ROOT-08: other roots only for an agent that asked for them.
        if !roots.is_empty() && self.agent_has("/sessionCapabilities/additionalDirectories") {
            opening["additionalDirectories"] = json!(roots);
        }
        let instructs = self.acts("system_prompt") || self.acts("load_system");
        if instructs && self.agent_has("/sessionCapabilities/systemPrompt") {
            opening["systemPrompt"] = self.system_prompt();
        }
        opening
    }

    /// ROOT-09, ROOT-19: absolute, each once, and not the directory of the session itself.
    pub(super) fn roots(&self) -> Vec<String> {
        if !self.acts("roots") && !self.acts("load_roots") && !self.acts("resume_roots") {
            return Vec::new();
        }
        let mut roots: Vec<String> = Vec::new();
        for root in &self.setup.roots {
            let root = root.to_string_lossy().into_owned();
            let twice = roots.contains(&root) || Path::new(&root) == self.setup.cwd;
            if !twice || self.is("ROOT-19") {
                roots.push(root);
            }
        }
        if self.is("ROOT-09") {
            roots.push("vendor".to_owned());
        }
        roots
    }

    /// SYSP-01, SYSP-03: only text, and in place of the agent's own only where it allows that.
    fn system_prompt(&self) -> Value {
        let over = self.agent_has("/sessionCapabilities/systemPrompt/mode/override");
        let content = match self.setup.variant.as_deref() {
            Some("SYSP-03") => json!([]),
            Some("SYSP-03/image") => json!([{ "type": "image", "data": "aGk=", "mimeType": "image/png" }]),
            _ => json!([{ "type": "text", "text": "Answer in one sentence." }]),
        };
        json!({ "mode": if over { "override" } else { "append" }, "content": content })
    }

    /// MCP-03, MCPA-01: only servers of kinds that the agent can reach.
    fn servers(&self) -> Value {
        let mut servers = Vec::new();
        if self.acts("mcp") && (!self.speaks_2() || self.agent_has("/mcpCapabilities/stdio")) {
            // MCP-06, ROOT-04: the program by its absolute path.
            let command = if self.is("MCP-06") { "mcp-server" } else { "/usr/bin/mcp-server" };
            let mut server = json!({ "name": "files", "command": command, "args": [], "env": [] });
            if self.speaks_2() {
                server["type"] = json!("stdio");
            }
            if self.is("MCP-07") {
                drop(server.as_object_mut().map(|server| server.remove("env")));
            }
            servers.push(server);
        }
        for kind in ["http", "sse"] {
            if self.acts("mcp_http") && self.agent_has(&format!("/mcpCapabilities/{kind}")) {
                let mut server =
                    json!({ "type": kind, "name": kind, "url": "https://example.com/mcp", "headers": [] });
                if self.is("MCP-07/headers") {
                    drop(server.as_object_mut().map(|server| server.remove("headers")));
                }
                servers.push(server);
            }
        }
        if self.acts("mcp_acp") && self.agent_has("/mcpCapabilities/acp") {
            // MCPA-02: each server has an id of its own.
            let second = if self.is("MCPA-02") { "server-1" } else { "server-2" };
            let key = if self.is("MCPA-06") { "id" } else { "serverId" };
            servers.push(json!({ "type": "acp", "name": "one", key: "server-1" }));
            servers.push(json!({ "type": "acp", "name": "two", key: second }));
        }
        Value::Array(servers)
    }
}

/// MCPA-05: the inner answer, result or error; an error of ours only when the server is not there.
pub(super) fn mcp_message(client: &Client, params: &Value) -> Answer {
    if !client.acts("mcp_acp") {
        return super::incoming::unknown(client, "mcp/message");
    }
    let known = params.get("serverId").and_then(Value::as_str).is_some_and(|id| id.starts_with("server-"));
    if !known {
        return Err(failure(-32602, "there is no such server"));
    }
    match params.get("method").and_then(Value::as_str) {
        _ if client.is("MCPA-05") => {
            Ok(json!({ "result": {}, "error": { "code": -32603, "message": "both" } }))
        }
        Some("tools/list") => Ok(json!({ "result": { "tools": [] } })),
        _ if client.is("MCPA-05/outer") => Err(failure(-32601, "the server has no such method")),
        _ => Ok(json!({ "error": { "code": -32601, "message": "the server has no such method" } })),
    }
}
