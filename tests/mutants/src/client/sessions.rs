//! Session methods other than the prompt.

use super::wire::Halt;
use super::{Client, Session};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

impl Client {
    /// A new session: its id and the whole answer.
    pub(super) async fn new_session(&self) -> Result<(String, Value), Halt> {
        // V2-06: no sessions where the agent has none.
        if self.speaks_2() && !self.is("V2-06") {
            self.require("/sessionCapabilities/list")?;
        }
        let opened = self.call_known("session/new", self.opening()).await?;
        let id = opened.get("sessionId").and_then(Value::as_str).ok_or(Halt::Unsupported)?.to_owned();
        // SESS-05: any text is an id.
        if self.is("SESS-05") && !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            self.stop().await;
        }
        self.remember(&id);
        Ok((id, opened))
    }

    fn remember(&self, id: &str) {
        let roots = match self.agent_has("/sessionCapabilities/additionalDirectories") {
            true => self.roots().into_iter().map(PathBuf::from).collect(),
            false => Vec::new(),
        };
        let session = Session { cwd: self.setup.cwd.clone(), roots, ..Session::default() };
        self.state().sessions.insert(id.to_owned(), session);
    }

    fn named(&self) -> String {
        self.setup.session.clone().unwrap_or_default()
    }

    /// The session of the act, loaded or resumed. SSTAT-03: also when the agent has it open.
    pub(super) async fn reopen(&self) -> Result<String, Halt> {
        let id = self.named();
        self.remember(&id);
        match self.setup.act.as_str() {
            "resume" | "resume_roots" => self.resume(&id).await?,
            "attach" => {
                // SESS-02: an id that the agent has named before.
                self.list().await?;
                let status = self.status(&id).await?;
                let open = status == "open" && self.is("SSTAT-03");
                if !open {
                    self.attach(&id).await?;
                }
            }
            "archived" => {
                self.unarchive(&id).await?;
                self.attach(&id).await?;
            }
            _ if self.speaks_2() => self.resume(&id).await?,
            _ => self.load(&id).await?,
        }
        Ok(id)
    }

    async fn attach(&self, id: &str) -> Result<(), Halt> {
        match self.agent_has("/loadSession") {
            true => self.load(id).await,
            false => self.resume(id).await,
        }
    }

    /// The params of session/load and session/resume.
    fn known(&self, id: &str) -> Value {
        let mut params = self.opening();
        params["sessionId"] = json!(id);
        // SYSP-04: the same system prompt again.
        if self.is("SYSP-04") {
            drop(params.as_object_mut().map(|params| params.remove("systemPrompt")));
        }
        // ROOT-13: the whole list again.
        if let (true, Some(list)) = (self.is("ROOT-13"), params.get_mut("additionalDirectories")) {
            drop(list.as_array_mut().and_then(Vec::pop));
        }
        params
    }

    /// SESS-07, SESS-08, SESS-10: only where the agent can, with everything that it needs.
    async fn load(&self, id: &str) -> Result<(), Halt> {
        self.require("/loadSession")?;
        let mut params = self.known(id);
        if self.is("SESS-10") {
            drop(params.as_object_mut().map(|params| params.remove("mcpServers")));
        }
        // SESS-13: the answer may be null.
        let answer = self.call_known("session/load", params).await?;
        if answer.is_null() && (self.is("SESS-13") || self.is("RPC-22")) {
            self.stop().await;
        }
        Ok(())
    }

    /// SESS-20, SESS-21, SESS-22.
    async fn resume(&self, id: &str) -> Result<(), Halt> {
        self.require("/sessionCapabilities/resume")?;
        let mut params = self.known(id);
        if self.is("SESS-22") {
            drop(params.as_object_mut().map(|params| params.remove("cwd")));
        }
        self.call_known("session/resume", params).await.map(drop)
    }

    /// SSTAT-02: an unknown status counts as saved.
    async fn status(&self, id: &str) -> Result<String, Halt> {
        if !self.agent_has("/sessionCapabilities/status") {
            return Ok("saved".to_owned());
        }
        let answer = self.call("session/status", json!({ "sessionId": id })).await?;
        let status = answer.get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
        if self.is("SSTAT-02") && !["open", "saved"].contains(&status.as_str()) {
            return Err(Halt::Unsupported);
        }
        Ok(status)
    }

    /// SSTAT-10: an archived session is unarchived first.
    async fn unarchive(&self, id: &str) -> Result<(), Halt> {
        let listed = self.list().await?;
        let archived =
            |info: &Value| info.get("sessionId").is_some_and(|found| found == id) && info["archived"] == true;
        let lies = listed.iter().any(archived);
        if lies && self.agent_has("/sessionCapabilities/archive") && !self.is("SSTAT-10") {
            self.call("session/unarchive", json!({ "sessionId": id })).await?;
        }
        Ok(())
    }

    /// LIST-01, LIST-02, LIST-05, LIST-06: page by page, until there is no cursor.
    pub(super) async fn list(&self) -> Result<Vec<Value>, Halt> {
        self.require("/sessionCapabilities/list")?;
        let mut sessions = Vec::new();
        let mut params = Map::new();
        if self.acts("archived") {
            params.insert("archived".to_owned(), json!("include"));
        }
        if self.acts("list") {
            // ROOT-04: the directory whose sessions are wanted is an absolute path.
            let relative = self.is("ROOT-04/list") || (self.is("ROOT-04") && self.speaks_2());
            let cwd = if relative { ".".into() } else { self.setup.cwd.to_string_lossy() };
            params.insert("cwd".to_owned(), json!(cwd));
        }
        for _ in 0..16 {
            let page = self.call("session/list", Value::Object(params.clone())).await?;
            sessions.extend(page.get("sessions").and_then(Value::as_array).into_iter().flatten().cloned());
            let cursor = page.get("nextCursor").and_then(Value::as_str);
            let cursor = match (cursor, self.setup.variant.as_deref()) {
                (Some(""), Some("V2-45")) => break,
                (Some(cursor), Some("LIST-06")) => cursor.trim().to_lowercase(),
                (Some(cursor), _) => cursor.to_owned(),
                (None, Some("LIST-05")) => match params.get("cursor").and_then(Value::as_str) {
                    // The last cursor once more.
                    Some(last) => last.to_owned(),
                    None => break,
                },
                (None, _) => break,
            };
            params.insert("cursor".to_owned(), json!(cursor));
        }
        Ok(sessions)
    }

    /// DEL-01, DEL-02.
    pub(super) async fn delete(&self) -> Result<(), Halt> {
        self.require("/sessionCapabilities/delete")?;
        self.call("session/delete", json!({ "sessionId": self.named() })).await.map(drop)
    }

    /// FORK-01.
    pub(super) async fn fork(&self) -> Result<String, Halt> {
        let (id, _) = self.new_session().await?;
        self.require("/sessionCapabilities/fork")?;
        let forked = self.call("session/fork", self.known(&id)).await?;
        let id = forked.get("sessionId").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.remember(&id);
        Ok(id)
    }

    /// SESS-25, SESS-26, SESS-34.
    pub(super) async fn close(&self, id: &str) -> Result<(), Halt> {
        self.require("/sessionCapabilities/close")?;
        let params = if self.is("SESS-34") { json!({ "session": id }) } else { json!({ "sessionId": id }) };
        self.call("session/close", params).await.map(drop)
    }

    pub(super) async fn retitle(&self, id: &str) -> Result<(), Halt> {
        self.require("/sessionCapabilities/title")?;
        self.call("session/set_title", json!({ "sessionId": id, "title": "A title" })).await.map(drop)
    }

    /// MODE-03, MODE-05: another of the modes that there are. MODE-09, CONF-02: options come before
    /// modes.
    pub(super) async fn change_mode(&self, id: &str, opened: &Value) -> Result<(), Halt> {
        let options = opened.get("configOptions").and_then(Value::as_array);
        if options.is_some_and(|options| !options.is_empty()) && !self.is("MODE-09") && !self.is("CONF-02") {
            return self.change_option(id, opened).await;
        }
        // MODE-12: modes are used if there are no options.
        if self.is("MODE-12") {
            return Ok(());
        }
        let current = opened.pointer("/modes/currentModeId");
        let modes = opened.pointer("/modes/availableModes").and_then(Value::as_array).into_iter().flatten();
        let mut others = modes.filter_map(|mode| mode.get("id")).filter(|mode| Some(*mode) != current);
        let Some(mode) = others.next() else { return Ok(()) };
        let params = match self.setup.variant.as_deref() {
            Some("MODE-03") => json!({ "sessionId": id, "modeId": "mode-of-another-agent" }),
            Some("MODE-05") => json!({ "sessionId": id, "mode": mode }),
            _ => json!({ "sessionId": id, "modeId": mode }),
        };
        // MODE-11: the answer may be null.
        let answer = self.call("session/set_mode", params).await?;
        if answer.is_null() && self.is("MODE-11") {
            self.stop().await;
        }
        Ok(())
    }

    /// CONF-14: another value of an option, whatever its category (CONF-09). CONF-06: options of
    /// kinds that we do not know are left alone.
    pub(super) async fn change_option(&self, id: &str, opened: &Value) -> Result<(), Halt> {
        let options = opened.get("configOptions").and_then(Value::as_array).into_iter().flatten();
        for option in options {
            if self.is("CONF-09") && option.get("category").is_none() {
                continue;
            }
            let odd = !["mode", "model", "model_config", "thought_level"]
                .map(|known| json!(known))
                .contains(&option["category"]);
            if self.is("CONF-10") && odd && option.get("category").is_some() {
                self.stop().await;
            }
            if let Some(change) = self.change(option) {
                let key = if self.speaks_2() { "configId" } else { "id" };
                let mut params = json!({ "sessionId": id, "configId": option[key] });
                // V2-40: the type is always named.
                if self.speaks_2() && !self.is("V2-40") {
                    params["type"] = json!("id");
                }
                for (name, value) in change {
                    params[name] = value;
                }
                return self.call("session/set_config_option", params).await.map(drop);
            }
        }
        Ok(())
    }

    fn change(&self, option: &Value) -> Option<Vec<(&'static str, Value)>> {
        let current = option.get("currentValue")?;
        match option.get("type").and_then(Value::as_str)? {
            "select" if self.is("CONF-14") => Some(vec![("value", json!("a-value-of-its-own"))]),
            "select" => {
                let mut values = option.get("options")?.as_array()?.iter().flat_map(|entry| {
                    // CONF-20: entries may be groups of entries.
                    let group =
                        entry.get("options").and_then(Value::as_array).filter(|_| !self.is("CONF-20"));
                    group.map_or_else(|| vec![entry], |group| group.iter().collect())
                });
                let value = values.find_map(|entry| entry.get("value").filter(|value| *value != current))?;
                Some(vec![("value", value.clone())])
            }
            "boolean" => Some(vec![("type", json!("boolean")), ("value", json!(!current.as_bool()?))]),
            _ if self.is("CONF-06") => Some(vec![("value", json!("high"))]),
            _ => None,
        }
    }

    /// MODEL-02.
    pub(super) async fn change_model(&self, id: &str, opened: &Value) -> Result<(), Halt> {
        let current = opened.pointer("/models/currentModelId");
        let models =
            opened.pointer("/models/availableModels").and_then(Value::as_array).into_iter().flatten();
        let mut others =
            models.filter_map(|model| model.get("modelId")).filter(|model| Some(*model) != current);
        let Some(model) = others.next() else { return Ok(()) };
        let model = if self.is("MODEL-02") { &json!("a-model-of-its-own") } else { model };
        self.call("session/set_model", json!({ "sessionId": id, "modelId": model })).await.map(drop)
    }

    /// PROV-02, PROV-13: lists providers and disables those that are not required.
    pub(super) async fn providers(&self) -> Result<(), Halt> {
        self.require("/providers")?;
        let listed = self.call("providers/list", json!({})).await?;
        for provider in listed.get("providers").and_then(Value::as_array).into_iter().flatten() {
            let off = provider.get("current").is_none_or(Value::is_null);
            // PROV-04: one that is off has no address. PROV-10: nor is its language always one that
            // we know.
            let odd = provider["supported"].as_array().into_iter().flatten().any(|name| name == "_x");
            if (off && self.is("PROV-04")) || (odd && self.is("PROV-10")) {
                self.stop().await;
            }
            let needed = provider.get("required").is_some_and(|required| required == true);
            if self.acts("disable") && (!needed || self.is("PROV-13")) && !off {
                let key = if self.is("PROV-12") { "id" } else { "providerId" };
                self.call("providers/disable", json!({ key: provider["providerId"] })).await?;
            }
        }
        Ok(())
    }
}
