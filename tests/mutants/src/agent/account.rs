//! Before sessions: initialize, authentication, providers.

use super::params::{maybe, text};
use super::state::Provider;
use super::wire::{Agent, Refusal, Reply};
use serde_json::{Value, json};

/// The agent's capabilities.
fn capabilities() -> Value {
    json!({
        "loadSession": true,
        "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
        "mcpCapabilities": { "http": true, "sse": true, "acp": true },
        "sessionCapabilities": {
            "list": {}, "delete": {}, "additionalDirectories": {}, "fork": {}, "archive": {}, "status": {},
            "title": {}, "resume": {}, "close": {}, "systemPrompt": { "mode": { "override": {} } },
        },
        "auth": { "logout": {}, "status": {} },
        "providers": {},
        "nes": {
            "events": { "document": {
                "didOpen": {}, "didChange": { "syncKind": "full" }, "didClose": {}, "didSave": {}, "didFocus": {},
            } },
            "context": { "recentFiles": { "maxCount": 4 }, "diagnostics": {} },
        },
        "_meta": { "mutants.attache": { "echo": true } },
    })
}

impl Agent {
    pub(crate) fn initialize(&self, params: &Value) -> Reply {
        if self.is("INIT-24") && params["_meta"]["apiKey"].is_null() {
            return Err(Refusal::new(-32000, "Authentication required"));
        }
        let odd = params.get("clientCapabilities").is_some_and(|given| !given.is_object());
        if (self.is("INIT-29") && params.get("clientInfo").is_none()) || (self.is("INIT-20") && odd) {
            return Err(Refusal::params("`clientInfo` or `clientCapabilities` is wrong"));
        }
        if self.is("INIT-25") {
            self.state().sessions.clear();
        }
        let version = self.version(&params["protocolVersion"])?;
        // INIT-20: capabilities that are no object are none.
        let client = Some(&params["clientCapabilities"]).filter(|given| given.is_object());
        let client = client.cloned().unwrap_or_else(|| json!({}));
        let mut answer = json!({
            "protocolVersion": version,
            "agentCapabilities": capabilities(),
            "agentInfo": { "name": "mutant-agent", "title": "Mutant agent", "version": "1.0.0" },
            "authMethods": [{ "id": "key", "name": "Key", "description": "A key of your own" }],
        });
        answer["agentCapabilities"]["positionEncoding"] = self.encoding(&client["positionEncodings"]);
        // AUTH-08: a terminal login is offered only to clients that can open one.
        if client["auth"]["terminal"] == true || self.is("AUTH-08") {
            let login = json!({ "type": "terminal", "id": "login", "name": "Log in", "args": ["--login"], "env": {} });
            answer["authMethods"].as_array_mut().into_iter().for_each(|list| list.push(login.clone()));
        }
        let mut state = self.state();
        state.client = client;
        state.initialized = true;
        state.advertised = answer["agentCapabilities"].clone();
        state.set_up_providers();
        Ok(answer)
    }

    /// INIT-05, INIT-06, INIT-07: the answer is version 1; later ones are answered by version 2.
    fn version(&self, asked: &Value) -> Result<Value, Refusal> {
        let number = asked.as_u64().filter(|number| *number <= u64::from(u16::MAX));
        match number {
            Some(number) if self.is("INIT-07") => Ok(json!(number)),
            Some(1) if self.is("INIT-06") => Ok(json!(2)),
            Some(_) => Ok(json!(1)),
            None if self.is("INIT-05/accepts") => Ok(asked.clone()),
            None => Err(Refusal::params("`protocolVersion` must be a whole number from 0 to 65535")),
        }
    }

    /// NES-10: one of the client's encodings; UTF-16 if it names none.
    fn encoding(&self, offered: &Value) -> Value {
        if self.is("NES-10") {
            return json!("utf-8");
        }
        let known = |name: &&Value| ["utf-16", "utf-8", "utf-32"].iter().any(|known| *name == known);
        offered.as_array().and_then(|list| list.iter().find(known)).cloned().unwrap_or(json!("utf-16"))
    }

    pub(crate) fn authenticate(&self, params: &Value) -> Reply {
        match text(params, "methodId")? {
            // AUTH-07: a method without a type is the agent's own.
            "key" if self.is("AUTH-07") => Err(Refusal::params("log in with a terminal")),
            "key" => {
                self.state().locked_out = self.is("AUTH-06");
                Ok(json!({}))
            }
            _ if self.is("AUTH-04") => Ok(json!({})),
            // A terminal method is run in a terminal, never called.
            _ => Err(Refusal::params("no such method")),
        }
    }

    pub(crate) fn logout(&self) -> Reply {
        self.state().locked_out = !self.is("AUTH-17");
        Ok(json!({}))
    }

    /// AUTH-26: how things stand.
    fn account(&self) -> Value {
        let locked = self.state().locked_out;
        let known = if locked { "unauthenticated" } else { "authenticated" };
        json!({ "state": known, "accounts": [{ "label": "key", "active": !(locked || self.is("AUTH-26")) }] })
    }

    /// AUTH-22: says how things stand and changes nothing.
    pub(crate) fn auth_status(&self) -> Reply {
        if self.is("AUTH-22") && self.state().locked_out {
            return Err(Refusal::new(-32000, "Authentication required"));
        }
        let report = self.account();
        let mut state = self.state();
        if self.is("AUTH-22/changes") {
            state.locked_out = false;
        }
        state.told = report.clone();
        Ok(report)
    }

    /// AUTH-24: reports a change once.
    pub(crate) async fn tell_account(&self) {
        let report = self.account();
        if std::mem::replace(&mut self.state().told, report.clone()) == report {
            return;
        }
        for _ in 0..if self.is("AUTH-24") { 2 } else { 1 } {
            self.notify("auth/status_update", report.clone()).await;
        }
    }

    /// PROV-03: the settings without their headers.
    pub(crate) fn list_providers(&self) -> Reply {
        let state = self.state();
        let one = |provider: &Provider| {
            let mut info = json!({
                "providerId": provider.id, "supported": ["openai", "anthropic"], "required": provider.required,
            });
            if let Some((api, base)) = &provider.current {
                info["current"] = json!({ "apiType": api, "baseUrl": base });
                if self.is("PROV-03") && !provider.headers.is_null() {
                    info["current"]["headers"] = provider.headers.clone();
                }
            }
            info
        };
        Ok(json!({ "providers": state.providers.iter().map(one).collect::<Vec<_>>() }))
    }

    /// PROV-12: `id` is the older name of the key.
    fn provider_id<'a>(&self, params: &'a Value) -> Result<&'a str, Refusal> {
        maybe(params, "providerId")?.map_or_else(|| text(params, "id"), Ok)
    }

    pub(crate) fn set_provider(&self, params: &Value) -> Reply {
        let (id, api, base) = (self.provider_id(params)?, text(params, "apiType")?, text(params, "baseUrl")?);
        if !params["headers"].is_null() && !params["headers"].is_object() {
            return Err(Refusal::params("`headers` must be an object"));
        }
        // PROV-10: an unknown protocol is refused.
        if !matches!(api, "openai" | "anthropic") {
            if self.is("PROV-10") {
                self.die();
            }
            if !self.is("PROV-06") {
                return Err(Refusal::params("a protocol that is not supported"));
            }
        }
        let mut state = self.state();
        let provider = state.providers.iter_mut().find(|provider| provider.id == id);
        let provider = provider.ok_or_else(|| Refusal::params("no such provider"))?;
        // PROV-05: all of it is replaced.
        provider.headers = params["headers"].clone();
        if !(self.is("PROV-05") && provider.current.is_some()) {
            provider.current = Some((api.to_owned(), base.to_owned()));
        }
        Ok(json!({}))
    }

    pub(crate) fn disable_provider(&self, params: &Value) -> Reply {
        let id = self.provider_id(params)?;
        let mut state = self.state();
        let Some(provider) = state.providers.iter_mut().find(|provider| provider.id == id) else {
            // PROV-08: it is not there, as wished.
            return if self.is("PROV-08") { Err(Refusal::params("no such provider")) } else { Ok(json!({})) };
        };
        if provider.required && !self.is("PROV-07") {
            return Err(Refusal::params("this provider is required"));
        }
        if !self.is("PROV-04") {
            provider.current = None;
        }
        if self.is("PROV-09") {
            state.providers.retain(|provider| provider.id != id);
        }
        Ok(json!({}))
    }

    /// Whether the client may open sessions now.
    pub(crate) fn admit(&self) -> Result<(), Refusal> {
        let state = self.state();
        if !state.initialized && !self.is("INIT-03") {
            return Err(Refusal::new(-32600, "Initialize first"));
        }
        if state.locked_out {
            return Err(Refusal::new(-32000, "Authentication required"));
        }
        Ok(())
    }
}
