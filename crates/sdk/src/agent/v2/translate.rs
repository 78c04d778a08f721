//! Version 2 for clients of an agent of version 1, for programs that stand between them and keep
//! the sessions, such as a hub.
//!
//! Functions translate the values of requests and responses. A [`Session`] translates updates,
//! which needs a few facts of the updates before: the message that a chunk belongs to, and the
//! options that a new mode is part of.
//!
//! ```
//! use attache::agent::translate::Session;
//! use attache::wire::v1::SessionNotification;
//!
//! let mut session = Session::new(None, None);
//! let chunk = r#"{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}"#;
//! let chunk: SessionNotification = serde_json::from_str(chunk).unwrap();
//! let params = session.update(&chunk, "m1".into()).unwrap();
//! assert!(params.get().contains(r#""messageId":"m1""#));
//! ```

use std::cell::RefCell;

use attache_rpc::ErrorObject;
use attache_wire::v1::{
    self, InitializeResponse, MessageId, RequestPermissionRequest, SessionConfigOption,
    SessionConfigOptionCategory, SessionModeId, SessionModeState, SessionNotification, SessionUpdate,
    StopReason,
};
use attache_wire::v2;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::super::options;
use super::super::session::Settings;
use super::convert;
use super::encode::{self, MessageIds};
use crate::Error;

/// The title of a question that has none.
const QUESTION: &str = "The agent asks for permission";

/// Reads the params of `initialize` from a client that offers `offered`, version 2 or later, and
/// gives out what they say in version 1.
///
/// Example: [`translate`](self).
///
/// # Errors
/// Params that do not fit.
pub fn initialize(params: Option<&RawValue>, offered: u16) -> Result<v1::InitializeRequest, ErrorObject> {
    let request = super::decode_initialize(params, offered)?;
    Ok(v1::InitializeRequest::new(v1::ProtocolVersion::V1)
        .client_capabilities(convert::client_capabilities(request.capabilities))
        .client_info(request.info))
}

/// The agent's response to `initialize`. `info` is used if the agent does not name itself.
///
/// Example: [`translate`](self).
pub fn initialized(response: InitializeResponse, info: v1::Implementation) -> v2::InitializeResponse {
    let meta = response.agent_capabilities.meta.clone();
    let capabilities = convert::agent_capabilities(response.agent_capabilities).meta(meta);
    v2::InitializeResponse::new(v1::ProtocolVersion::V2, response.agent_info.unwrap_or(info))
        .capabilities(capabilities)
        .auth_methods(convert::auth_methods(response.auth_methods))
}

/// The params of `session/new`.
///
/// Example: [`translate`](self).
///
/// # Errors
/// MCP servers that version 1 does not have.
// V2-25
pub fn new_session(request: v2::NewSessionRequest) -> Result<v1::NewSessionRequest, ErrorObject> {
    let servers = convert::mcp_servers(request.mcp_servers).map_err(refusal)?;
    let roots = request.additional_directories;
    let translated = v1::NewSessionRequest::new(request.cwd, servers)
        .additional_directories((!roots.is_empty()).then_some(roots))
        .meta(request.meta);
    #[cfg(feature = "unstable")]
    let translated =
        translated.system_prompt(convert::system_prompt(request.system_prompt).map_err(refusal)?);
    Ok(translated)
}

fn refusal(error: Error) -> ErrorObject {
    match error {
        Error::Refused(refusal) => refusal,
        error => ErrorObject::invalid_params(error.to_string()),
    }
}

/// The reason why a turn ended, from the response to its prompt.
///
/// Example: [`translate`](self).
pub fn stop_reason(response: Result<StopReason, ErrorObject>) -> v2::StopReason {
    convert::stop_reason(response)
}

/// The params of `session/request_permission`.
///
/// Example: [`translate`](self).
// V2-24: the title of the tool call is that of the question.
pub fn permission(request: &RequestPermissionRequest) -> serde_json::Result<Box<RawValue>> {
    struct ToolCall<'a>(&'a v1::ToolCallUpdate);
    impl Serialize for ToolCall<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            encode::tool_call_members(self.0, &mut map)?;
            map.end()
        }
    }
    struct Subject<'a>(&'a v1::ToolCallUpdate);
    impl Serialize for Subject<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(2))?;
            map.serialize_entry("type", "tool_call")?;
            map.serialize_entry("toolCall", &ToolCall(self.0))?;
            map.end()
        }
    }
    struct Question<'a>(&'a RequestPermissionRequest);
    impl Serialize for Question<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let Question(request) = self;
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("sessionId", &request.session_id)?;
            map.serialize_entry("title", request.tool_call.title.as_deref().unwrap_or(QUESTION))?;
            map.serialize_entry("subject", &Subject(&request.tool_call))?;
            map.serialize_entry("options", &request.options)?;
            encode::meta(&mut map, request.meta.as_ref())?;
            map.end()
        }
    }
    serde_json::value::to_raw_value(&Question(request))
}

/// A change of an option, in version 1.
///
/// Example: [`translate`](self).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OptionChange {
    /// The option stands for the modes of the agent. The response to `session/set_mode` has no
    /// options.
    Mode(v1::SetSessionModeRequest),
    /// Any other option.
    Option(v1::SetSessionConfigOptionRequest),
}

/// A session of an agent of version 1 as a client of version 2 sees it. Its memory is that of the
/// agent's modes and options.
///
/// Example: [`translate`](self).
#[derive(Debug)]
pub struct Session {
    ids: RefCell<MessageIds>,
    settings: Settings,
}

impl Session {
    /// A session with the modes and options of the response that opened it.
    pub fn new(modes: Option<SessionModeState>, options: Option<Vec<SessionConfigOption>>) -> Self {
        let settings = Settings {
            modes,
            options,
            #[cfg(feature = "drafts")]
            models: None,
        };
        Session { ids: RefCell::default(), settings }
    }

    /// The options, of which one stands for the modes if the agent has modes and no option for
    /// them.
    pub fn options(&self) -> Vec<v2::SessionConfigOption> {
        let mut converted = convert::options(self.settings.options.as_deref().unwrap_or_default());
        if let Some(modes) = options::modes_as_option(&self.settings) {
            converted.extend(convert::options(&[convert::mode_option(modes)]));
        }
        converted
    }

    /// Replaces the options of the agent.
    pub fn set_options(&mut self, options: Vec<SessionConfigOption>) {
        self.settings.options = Some(options);
    }

    /// Sets the present mode. Returns whether an option changed with it.
    pub fn set_mode(&mut self, mode: &SessionModeId) -> bool {
        let is_option = options::modes_as_option(&self.settings).is_some();
        if let Some(modes) = &mut self.settings.modes {
            modes.current_mode_id = mode.clone();
        }
        let category = SessionConfigOptionCategory::Mode;
        options::put_category(&mut self.settings, &category, mode.as_str()) || is_option
    }

    /// The params of `session/set_config_option`.
    ///
    /// # Errors
    /// A value of an unknown type.
    // V2-25, V2-40
    pub fn set_config_option(
        &self,
        request: v2::SetSessionConfigOptionRequest,
    ) -> Result<OptionChange, ErrorObject> {
        let is_mode =
            request.config_id == *convert::MODE && options::modes_as_option(&self.settings).is_some();
        let value = match request.value {
            v2::SessionConfigOptionValue::Id(mode) if is_mode => {
                let request = v1::SetSessionModeRequest::new(request.session_id, mode.as_str());
                return Ok(OptionChange::Mode(request));
            }
            v2::SessionConfigOptionValue::Id(value) => v1::SessionConfigOptionValue::ValueId(value),
            v2::SessionConfigOptionValue::Boolean(flag) => v1::SessionConfigOptionValue::Boolean(flag),
            _ => return Err(ErrorObject::invalid_params("this kind of value is not known")),
        };
        let change = v1::SetSessionConfigOptionRequest::new(request.session_id, request.config_id, value);
        Ok(OptionChange::Option(change.meta(request.meta)))
    }

    /// Begins a message of the user: the following pieces of one belong to it.
    pub fn begin_user_message(&mut self, id: MessageId) {
        self.ids.get_mut().begin("user_message_chunk", id);
    }

    /// Ends the present message, as the end of a turn does.
    pub fn end_message(&mut self) {
        self.ids.get_mut().end_message();
    }

    /// The message that the latest piece belongs to.
    pub fn message(&self) -> Option<MessageId> {
        self.ids.borrow().present().cloned()
    }

    /// The params of an update in version 2. `None` if there is nothing to report in it.
    ///
    /// If the update begins a message and does not name it, that message gets the id `new_message`.
    pub fn update(
        &mut self,
        notification: &SessionNotification,
        new_message: MessageId,
    ) -> Option<Box<RawValue>> {
        self.ids.get_mut().name_next(new_message);
        let options = match &notification.update {
            SessionUpdate::CurrentModeUpdate(update) => match self.set_mode(&update.current_mode_id) {
                true => Some(self.options()),
                false => return None,
            },
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.set_options(update.config_options.clone());
                Some(self.options())
            }
            _ => None,
        };
        let update = match options {
            Some(options) => {
                self.ids.get_mut().end_message();
                Update::Options(v2::ConfigOptionUpdate::new(options).into())
            }
            None => Update::Same(&notification.update, &self.ids),
        };
        serde_json::value::to_raw_value(&Params(notification, update)).ok()
    }
}

enum Update<'a> {
    Options(v2::SessionUpdate),
    Same(&'a SessionUpdate, &'a RefCell<MessageIds>),
}

impl Serialize for Update<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Update::Options(update) => update.serialize(serializer),
            Update::Same(update, ids) => encode::update(update, &mut ids.borrow_mut(), serializer),
        }
    }
}

struct Params<'a>(&'a SessionNotification, Update<'a>);

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Params(notification, update) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("sessionId", &notification.session_id)?;
        map.serialize_entry("update", update)?;
        encode::meta(&mut map, notification.meta.as_ref())?;
        map.end()
    }
}
