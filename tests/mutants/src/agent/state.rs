//! The state of the agent.

use attache_conn::CancelToken;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct State {
    /// `clientCapabilities`, as they came.
    pub(crate) client: Value,
    pub(crate) initialized: bool,
    /// Set by `logout`: sessions are refused until the next login.
    pub(crate) locked_out: bool,
    /// The last account status that was sent.
    pub(crate) told: Value,
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) nes: BTreeMap<String, Nes>,
    pub(crate) providers: Vec<Provider>,
    pub(crate) last: u64,
    /// Requests of the client that are being worked on, so that `$/cancel_request` finds them.
    pub(crate) working: Vec<(Value, CancelToken)>,
    /// Open URL elicitations, each with a token that is cancelled by the visit.
    pub(crate) visits: BTreeMap<String, CancelToken>,
    /// The state of version 2, once that is negotiated.
    pub(crate) v2: Option<super::v2::State>,
    /// Version 1 is refused.
    pub(crate) only_2: bool,
    /// The advertised capabilities.
    pub(crate) advertised: Value,
}

/// A session, open or only kept.
#[derive(Clone, Default)]
pub(crate) struct Session {
    pub(crate) cwd: String,
    pub(crate) roots: Vec<String>,
    /// The updates that a load replays.
    pub(crate) history: Vec<Value>,
    pub(crate) mode: String,
    pub(crate) config: BTreeMap<String, Value>,
    pub(crate) title: Option<String>,
    /// The client chose the title.
    pub(crate) titled: bool,
    pub(crate) archived: bool,
    pub(crate) open: bool,
    /// The running turn.
    pub(crate) turn: Option<CancelToken>,
    /// `session/cancel` came for it.
    pub(crate) told_to_stop: bool,
    /// Raised when that turn has been answered.
    pub(crate) idle: CancelToken,
    /// Names of MCP servers that the client serves over this connection.
    pub(crate) mcp: Vec<String>,
    /// Order of creation.
    pub(crate) born: u64,
}

/// A next-edit session.
#[derive(Clone, Default)]
pub(crate) struct Nes {
    pub(crate) documents: BTreeMap<String, (i64, String)>,
    pub(crate) cancel: CancelToken,
}

/// A way to a model.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) id: &'static str,
    pub(crate) required: bool,
    pub(crate) current: Option<(String, String)>,
    pub(crate) headers: Value,
}

impl State {
    /// A number that was not used before.
    pub(crate) fn count(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// INIT-15, INIT-19: whether the client advertised `path`; an object or `true` says yes, null
    /// and absence no.
    pub(crate) fn client_has(&self, path: &str) -> bool {
        let found = path.split('.').fold(&self.client, |value, key| &value[key]);
        found.is_object() || found == &Value::Bool(true)
    }

    /// The session of that id, in either version.
    pub(crate) fn kept(&mut self, id: &str) -> Option<&mut Session> {
        match &mut self.v2 {
            Some(v2) => v2.sessions.get_mut(id).map(|session| &mut session.base),
            None => self.sessions.get_mut(id),
        }
    }

    /// The providers that there are at first.
    pub(crate) fn set_up_providers(&mut self) {
        if self.providers.is_empty() {
            let main = Some(("openai".to_owned(), "https://models.example".to_owned()));
            let provider = |id, required, current| Provider { id, required, current, headers: Value::Null };
            self.providers = vec![provider("main", true, main.clone()), provider("spare", false, main)];
        }
    }

    /// The open session of that id.
    pub(crate) fn open(&mut self, id: &str) -> Option<&mut Session> {
        self.sessions.get_mut(id).filter(|session| session.open)
    }
}

impl Session {
    pub(crate) fn new(cwd: &str, roots: Vec<String>) -> Session {
        let config = [("model", "small"), ("thought", "low"), ("style", "plain")];
        Session {
            cwd: cwd.to_owned(),
            roots,
            mode: "ask".to_owned(),
            config: config.iter().map(|&(id, value)| (id.to_owned(), json!(value))).collect(),
            open: true,
            ..Session::default()
        }
    }

    /// `modes` of an answer.
    pub(crate) fn modes(&self) -> Value {
        json!({
            "currentModeId": self.mode,
            "availableModes": MODES.map(|(id, name)| json!({ "id": id, "name": name, "description": "A mode" })),
        })
    }

    /// `models` of an answer, as drafts before June 2026 had it; MODEL-03: kept in step with the
    /// option.
    pub(crate) fn models(&self) -> Value {
        json!({
            "currentModelId": self.config.get("model"),
            "availableModels": MODELS.map(|(id, name)| json!({ "modelId": id, "name": name })),
        })
    }

    /// `configOptions`, all of them (CONF-13); MODE-10: the mode is one of them. CONF-07: booleans
    /// only if `boolean`.
    pub(crate) fn options(&self, boolean: bool) -> Value {
        let choice = |id: &str, name: &str| json!({ "value": id, "name": name });
        let select = |id: &str, name: &str, category: Option<&str>, options: Value| {
            let mut option = json!({
                "type": "select", "id": id, "name": name, "options": options,
                "currentValue": self.config.get(id).cloned().unwrap_or_else(|| json!(self.mode)),
            });
            if let Some(category) = category {
                option["category"] = json!(category);
            }
            option
        };
        let levels = json!([
            { "group": "fast", "name": "Fast", "options": [choice("low", "Low")] },
            { "group": "slow", "name": "Slow", "options": [choice("high", "High")] },
        ]);
        let mut list = vec![
            select("mode", "Mode", Some("mode"), json!(MODES.map(|(id, name)| choice(id, name)))),
            select("model", "Model", Some("model"), json!(MODELS.map(|(id, name)| choice(id, name)))),
            select("thought", "Thinking", Some("thought_level"), levels),
            select(
                "style",
                "Style",
                Some("_style"),
                json!([choice("plain", "Plain"), choice("rich", "Rich")]),
            ),
        ];
        if boolean {
            list.push(json!({
                "type": "boolean", "id": "verbose", "name": "Say more",
                "currentValue": self.config.get("verbose").cloned().unwrap_or(json!(false)),
            }));
        }
        Value::Array(list)
    }

    /// Whether `value` is one that the option offers.
    pub(crate) fn offers(&self, id: &str, value: &Value) -> bool {
        if id == "verbose" {
            return value.is_boolean();
        }
        let options = self.options(false);
        let option = options.as_array().into_iter().flatten().find(|option| option["id"] == id);
        let Some(list) = option.and_then(|option| option["options"].as_array()) else {
            return false;
        };
        let inner = list.iter().filter_map(|group| group["options"].as_array()).flatten();
        list.iter().chain(inner).any(|choice| choice.get("value") == Some(value))
    }

    /// Sets an option.
    pub(crate) fn set(&mut self, option: &str, value: &Value) {
        if option == "mode" {
            self.mode = value.as_str().unwrap_or_default().to_owned();
        } else {
            self.config.insert(option.to_owned(), value.clone());
        }
    }

    /// The entry of `session/list`.
    pub(crate) fn info(&self, id: &str) -> Value {
        let mut info = json!({
            "sessionId": id, "cwd": self.cwd, "archived": self.archived,
            "updatedAt": format!("2026-01-01T00:00:{:02}Z", self.born % 60),
        });
        if !self.roots.is_empty() {
            info["additionalDirectories"] = json!(self.roots);
        }
        if let Some(title) = &self.title {
            info["title"] = json!(title);
        }
        info
    }
}

/// The modes of every session.
pub(crate) const MODES: [(&str, &str); 2] = [("ask", "Ask first"), ("code", "Just do it")];
/// The models of every session.
pub(crate) const MODELS: [(&str, &str); 2] = [("small", "Small"), ("large", "Large")];
