//! Requests of clients of version 2, as those of version 1.

use std::sync::atomic::Ordering;

use attache::agent::translate::{self, OptionChange};
use attache::wire::v1::{Implementation, InitializeResponse};
use attache::wire::v2;
use attache_conn::rpc::{ErrorObject, Id};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Client;
use crate::attachment::{Form, settings_of};
use crate::message::{self, ClientMeta, Outcome, SessionParams};

/// Whether version 2 has a method.
// V2-39
pub(super) fn is_known(method: &str) -> bool {
    const METHODS: [&str; 12] = [
        "initialize",
        "auth/login",
        "auth/logout",
        "session/new",
        "session/resume",
        "session/list",
        "session/close",
        "session/delete",
        "session/prompt",
        "session/set_config_option",
        "tool_call/cancel",
        "terminal/cancel",
    ];
    METHODS.contains(&method) || method.starts_with('_')
}

impl Client {
    pub(super) fn is_v2(&self) -> bool {
        self.connection.is_v2.load(Ordering::Relaxed)
    }

    /// Takes note of the version and the capabilities that a client offers.
    pub(super) fn negotiate(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let read = |params: &RawValue| serde_json::from_str(params.get()).ok();
        let mut offer: Value = params.and_then(read).unwrap_or_default();
        let version = offer["protocolVersion"].as_u64().and_then(|version| u16::try_from(version).ok());
        let is_v2 = version.is_some_and(|version| version >= 2);
        if self.is_v2() {
            if self.has_requests.load(Ordering::Relaxed) {
                return Err(ErrorObject::invalid_request("the connection is initialized"));
            }
            if !is_v2 {
                let data = json!({"requested": version, "supported": [2]});
                let error = ErrorObject::new(UNSUPPORTED_VERSION, "this connection has version 2");
                return Err(error.with_data(&data));
            }
        }
        if let Some(version) = version.filter(|_| is_v2) {
            offer = serde_json::to_value(translate::initialize(params, version)?).unwrap_or_default();
        }
        let capabilities = &offer["clientCapabilities"];
        self.connection.is_v2.store(is_v2, Ordering::Relaxed);
        if capabilities["_meta"]["attache"].is_object() {
            self.connection.counts.store(true, Ordering::Relaxed);
        }
        // An editor elsewhere has files of its own under the same paths.
        let is_editor = capabilities["fs"]["readTextFile"] == true && self.identity().is_local();
        self.connection.is_editor.store(is_editor, Ordering::Relaxed);
        self.elicitation.store(capabilities["elicitation"].is_object(), Ordering::Relaxed);
        Ok(())
    }

    /// Passes a request about a session on to its agent.
    pub(super) async fn forward_v2(
        &self,
        id: &Id,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), ErrorObject> {
        let session = SessionParams::read(params).session();
        match method {
            "session/set_config_option" => {
                let session = self.session(session.as_deref())?;
                let request: v2::SetSessionConfigOptionRequest = decode(params)?;
                match settings_of(&session).set_config_option(request)? {
                    OptionChange::Mode(request) => {
                        let form = Form::Mode(request.mode_id.as_str().to_owned());
                        let params = message::raw(&request);
                        self.forward(id, "session/set_mode", Some(&params), form).await
                    }
                    OptionChange::Option(request) => {
                        self.forward(id, method, Some(&message::raw(&request)), Form::Options).await
                    }
                    _ => Err(ErrorObject::method_not_found(method)),
                }
            }
            // V2-31: agents of version 1 have nothing that can be cancelled by itself.
            "tool_call/cancel" | "terminal/cancel" => {
                self.session(session.as_deref())?;
                Err(ErrorObject::invalid_params("there is nothing with this id that can be cancelled"))
            }
            _ => self.forward(id, method, params, Form::Same).await,
        }
    }
}

/// The code of an offer that cannot be accepted.
const UNSUPPORTED_VERSION: i32 = -32022;

fn decode<T: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    attache::wire::decode(params).map_err(|error| ErrorObject::invalid_params(error.to_string()))
}

/// The params of `session/new`.
pub(super) fn new_session(params: &RawValue) -> Result<Box<RawValue>, ErrorObject> {
    translate::new_session(decode(Some(params))?).map(|request| message::raw(&request))
}

/// The response to `initialize`.
pub(super) fn initialized(result: Value, info: &(String, String)) -> Result<Box<RawValue>, ErrorObject> {
    let response: InitializeResponse =
        serde_json::from_value(result).map_err(|_| ErrorObject::internal("the agent has no capabilities"))?;
    let (name, version) = info;
    let info = Implementation::new(name.as_str(), version.as_str());
    Ok(message::raw(&translate::initialized(response, info)))
}

/// The request of version 1 that `session/resume` stands for, and the cursor in it.
// V2-25, V2-26
pub(super) fn replay_from(params: Option<&RawValue>) -> Result<(&'static str, ClientMeta), ErrorObject> {
    #[derive(Deserialize)]
    struct Cursor {
        at: String,
    }
    let request: v2::ResumeSessionRequest = decode(params)?;
    match request.replay_from {
        None => Ok(("session/resume", ClientMeta::default())),
        Some(v2::ReplayFrom::Start(_)) => Ok(("session/load", ClientMeta::default())),
        Some(v2::ReplayFrom::Other(other)) if other.tag == "_attache_after" => {
            let Cursor { at } = other
                .object
                .parse()
                .map_err(|error| ErrorObject::invalid_params(format!("replayFrom: {error}")))?;
            Ok(("session/resume", ClientMeta { after: Some(at), strict: true, prompt: None }))
        }
        Some(_) => Err(ErrorObject::invalid_params("the hub cannot replay from there")),
    }
}

/// The answer to a question.
// V2-23: an outcome that version 1 does not know is no approval.
pub(super) fn answer(outcome: Outcome) -> Outcome {
    let Outcome::Result(result) = &outcome else { return outcome };
    let is_unknown = serde_json::from_str::<Value>(result.get()).is_ok_and(|result| {
        let kind = result["outcome"]["outcome"].as_str();
        kind.is_some_and(|kind| !matches!(kind, "selected" | "cancelled"))
    });
    match is_unknown {
        true => Outcome::result(&json!({"outcome": {"outcome": "cancelled"}})),
        false => outcome,
    }
}
