//! Steps of scenarios in which the checker plays the client.

use serde_json::{Value, json};

use super::{Answer, Id, Stage, Stop};
use crate::prompts::PromptKind;
use crate::role::Role;
use crate::target::Need;
use crate::version::Version;

/// Every capability of a client, as version 1 names them.
pub(crate) fn everything() -> Value {
    json!({
        "fs": { "readTextFile": true, "writeTextFile": true },
        "terminal": true,
        "auth": { "terminal": true },
        "elicitation": { "form": {}, "url": {} },
        "plan": {},
        "subagents": {},
        "session": { "notices": {}, "compaction": {}, "configOptions": { "boolean": {} } },
    })
}

impl Stage {
    /// Everything that a client can advertise, for [`initialize`](Self::initialize).
    pub fn all_capabilities() -> Value {
        everything()
    }

    /// Sends `initialize` with these capabilities and returns the result. Then checks the
    /// requirements of the scenario and logs in if the user named a method.
    ///
    /// # Errors
    /// [`Stop::NotApplicable`] if the agent lacks a requirement of the scenario, [`Stop::Broken`]
    /// if it refuses `initialize`, [`Stop::NotExercised`] if it refuses the login.
    pub async fn initialize(&mut self, capabilities: Value) -> Result<Value, Stop> {
        let params = self.offer(capabilities);
        let answer = self.call("initialize", params).await?;
        let result =
            answer.map_err(|error| Stop::Broken(format!("initialize was refused: {}", error.message)))?;
        if !self.speaks() {
            return Err(Stop::NotApplicable(format!("the agent does not speak version {}", self.version())));
        }
        self.check_needs()?;
        if let Some(method) = self.setup.login.clone() {
            let login = self.call(self.version().login_method(), json!({ "methodId": method })).await?;
            login.map_err(|error| {
                Stop::NotExercised(format!("the login with `{method}` was refused: {}", error.message))
            })?;
        }
        Ok(result)
    }

    /// The params of `initialize` with these capabilities of version 1, as the version names them.
    pub(crate) fn offer(&self, capabilities: Value) -> Value {
        let info = json!({ "name": "attache-check", "title": "Attaché check", "version": env!("CARGO_PKG_VERSION") });
        match self.version() {
            Version::V1 => {
                json!({ "protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info })
            }
            Version::V2 => {
                let mut able = json!({});
                if capabilities["auth"]["terminal"] == true {
                    able["auth"] = json!({ "terminal": {} });
                }
                for same in ["elicitation", "_meta"] {
                    if let Some(value) = capabilities.get(same) {
                        able[same] = value.clone();
                    }
                }
                json!({ "protocolVersion": 2, "capabilities": able, "info": info })
            }
        }
    }

    pub(super) fn check_needs(&self) -> Result<(), Stop> {
        for need in self.setup.needs {
            match need {
                Need::Agent(path) if self.peer() == Role::Agent => self.need(path)?,
                Need::Client(path) if self.peer() == Role::Client => self.need(path)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens a session in the scenario's directory without MCP servers and returns its id.
    ///
    /// # Errors
    /// [`Stop::NotExercised`] if the agent wants authentication, [`Stop::Broken`] if there is no
    /// id.
    pub async fn new_session(&mut self) -> Result<String, Stop> {
        let cwd = self.setup.cwd.to_string_lossy().into_owned();
        let result = self.open_session(json!({ "cwd": cwd, "mcpServers": [] })).await?;
        let id = result["sessionId"].as_str();
        id.map(str::to_owned).ok_or_else(|| Stop::Broken("session/new named no session".to_owned()))
    }

    /// Sends `session/new` with these params and returns the result.
    ///
    /// # Errors
    /// As [`new_session`](Self::new_session).
    pub async fn open_session(&mut self, params: Value) -> Result<Value, Stop> {
        self.call("session/new", params).await?.map_err(|error| match error.code {
            -32000 => Stop::NotExercised("the agent wants a login before it opens a session".to_owned()),
            _ => Stop::Broken(format!("session/new was refused: {} {}", error.code, error.message)),
        })
    }

    /// The text of a prompt of this kind.
    pub fn prompt_text(&self, kind: PromptKind) -> String {
        self.setup.prompts.text(kind, &self.setup.cwd)
    }

    /// Sends a prompt of this kind. [`expect`](Self::expect) waits for the answer.
    pub async fn prompt(&mut self, session: &str, kind: PromptKind) -> Result<Id, Stop> {
        let text = self.prompt_text(kind);
        self.prompt_blocks(session, json!([{ "type": "text", "text": text }])).await
    }

    /// Sends a prompt of these content blocks.
    pub async fn prompt_blocks(&mut self, session: &str, blocks: Value) -> Result<Id, Stop> {
        self.request("session/prompt", json!({ "sessionId": session, "prompt": blocks })).await
    }

    /// Sends a prompt of this kind and waits for the end of its turn.
    pub async fn turn(&mut self, session: &str, kind: PromptKind) -> Result<Answer, Stop> {
        let id = self.prompt(session, kind).await?;
        self.end_of(&id).await
    }

    /// Waits for the end of the turn of the prompt `id`: its answer, in version 2 also the idle
    /// state after it, whose stop reason is added to the result.
    pub async fn end_of(&mut self, id: &Id) -> Result<Answer, Stop> {
        let asked = self.own_request(id);
        let mut answer = self.expect(id).await?;
        if let (Version::V2, Some(asked), Ok(result)) = (self.version(), asked, &mut answer) {
            let ends = self.turn_end(&asked);
            let idle = self.until("the end of the turn", ends).await?;
            result["stopReason"] = idle.params()["update"]["stopReason"].clone();
        }
        Ok(answer)
    }

    /// `session/cancel`.
    pub async fn cancel(&mut self, session: &str) -> Result<(), Stop> {
        self.notify("session/cancel", json!({ "sessionId": session })).await
    }
}
