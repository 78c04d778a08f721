//! Questions to the user: `elicitation/create` and `elicitation/complete`.

// ELIC-01 to ELIC-34

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::shape::*;
use crate::v1::{ElicitationId, ElicitationSchema, Fields, RequestId, SessionId, ToolCallId};
use crate::{Json, Meta};

#[path = "../both/elicitation.rs"]
mod both;
#[path = "../both/elicitation_value.rs"]
mod value;
pub use both::*;

object! {
    /// The question belongs to a session, and perhaps to a tool call.
    pub struct ElicitationSessionScope {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
        optional {
            /// The tool call.
            tool_call_id "toolCallId": Option<ToolCallId> [LenientText],
        }
        no_meta!
    }
}

// ELIC-14
/// A form to fill in. Never for secrets.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "a mode is its members")]
pub struct ElicitationFormMode {
    /// The session or request that the question belongs to.
    pub scope: ElicitationScope,
    /// The form.
    pub requested_schema: ElicitationSchema,
}

// ELIC-15
/// A URL to open.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "a mode is its members")]
pub struct ElicitationUrlMode {
    /// The session or request that the question belongs to.
    pub scope: ElicitationScope,
    /// Id of the question until it is completed.
    pub elicitation_id: ElicitationId, // ELIC-21
    /// The URL.
    pub url: String, // ELIC-26 to ELIC-31
}

/// An unlisted mode, kept unchanged.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "a mode is its members")]
pub struct ElicitationOtherMode {
    /// Its name.
    pub mode: String,
    /// The session or request that the question belongs to.
    pub scope: ElicitationScope,
    /// Unknown members.
    pub members: Vec<(String, Json)>,
}

/// The mode of a question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationMode {
    /// A form to fill in.
    Form(ElicitationFormMode),
    /// A URL to open.
    Url(ElicitationUrlMode),
    /// An unlisted mode.
    Other(ElicitationOtherMode), // ELIC-33
}

impl ElicitationMode {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            ElicitationMode::Form(_) => "form",
            ElicitationMode::Url(_) => "url",
            ElicitationMode::Other(other) => &other.mode,
        }
    }

    /// The session or request that the question belongs to.
    pub fn scope(&self) -> &ElicitationScope {
        match self {
            ElicitationMode::Form(form) => &form.scope,
            ElicitationMode::Url(url) => &url.scope,
            ElicitationMode::Other(other) => &other.scope,
        }
    }
}

// ELIC-04
/// A question to the user. The mode is always given.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CreateElicitationRequest {
    /// The mode.
    pub mode: ElicitationMode,
    /// The message to show.
    pub message: String, // ELIC-09
    /// Custom metadata of extensions (`_meta`).
    pub meta: Option<Meta>,
}

impl CreateElicitationRequest {
    /// A question with a form to fill in.
    pub fn form(
        scope: impl Into<ElicitationScope>,
        message: impl Into<String>,
        requested_schema: ElicitationSchema,
    ) -> Self {
        let form = ElicitationFormMode { scope: scope.into(), requested_schema };
        CreateElicitationRequest { mode: ElicitationMode::Form(form), message: message.into(), meta: None }
    }

    /// A question with a URL to open.
    pub fn url(
        scope: impl Into<ElicitationScope>,
        message: impl Into<String>,
        elicitation_id: impl Into<ElicitationId>,
        url: impl Into<String>,
    ) -> Self {
        let url = ElicitationUrlMode {
            scope: scope.into(),
            elicitation_id: elicitation_id.into(),
            url: url.into(),
        };
        CreateElicitationRequest { mode: ElicitationMode::Url(url), message: message.into(), meta: None }
    }

    /// Custom metadata of extensions (`_meta`).
    pub fn meta(mut self, meta: impl crate::IntoField<Option<Meta>>) -> Self {
        self.meta = meta.into_field();
        self
    }
}

impl<'de> Deserialize<'de> for CreateElicitationRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members::deserialize(deserializer)?;
        let mode = members.take::<Required, String, D::Error>("mode")?;
        let message = members.take::<Required, String, D::Error>("message")?;
        let meta = members.take::<OptionalMeta, Option<Meta>, D::Error>("_meta")?;
        let scope = ElicitationScope::take::<D::Error>(&mut members)?;
        let mode = match &*mode {
            "form" => {
                let requested_schema = members.take::<Required, _, D::Error>("requestedSchema")?;
                ElicitationMode::Form(ElicitationFormMode { scope, requested_schema })
            }
            "url" => {
                let elicitation_id = members.take::<Required, _, D::Error>("elicitationId")?;
                let url = members.take::<Required, _, D::Error>("url")?;
                ElicitationMode::Url(ElicitationUrlMode { scope, elicitation_id, url })
            }
            _ => {
                let members = members.into_entries();
                ElicitationMode::Other(ElicitationOtherMode { mode, scope, members })
            }
        };
        Ok(CreateElicitationRequest { mode, message, meta })
    }
}

impl Serialize for CreateElicitationRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("mode", self.mode.as_str())?;
        self.mode.scope().to_map(&mut map)?;
        map.serialize_entry("message", &self.message)?;
        match &self.mode {
            ElicitationMode::Form(form) => map.serialize_entry("requestedSchema", &form.requested_schema)?,
            ElicitationMode::Url(url) => {
                map.serialize_entry("elicitationId", &url.elicitation_id)?;
                map.serialize_entry("url", &url.url)?;
            }
            ElicitationMode::Other(other) => write_members(&other.members, &mut map)?,
        }
        write_meta(&self.meta, &mut map)?;
        map.end()
    }
}

/// The value of a form field.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationContentValue {
    /// A text.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
    /// The chosen values of a multiple choice.
    StringArray(Vec<String>),
}

impl Serialize for ElicitationContentValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ElicitationContentValue::String(text) => text.serialize(serializer),
            ElicitationContentValue::Integer(number) => number.serialize(serializer),
            ElicitationContentValue::Number(number) => number.serialize(serializer),
            ElicitationContentValue::Boolean(yes) => yes.serialize(serializer),
            ElicitationContentValue::StringArray(list) => list.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ElicitationContentValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentValueVisitor)
    }
}

struct ContentValueVisitor;

impl<'de> Visitor<'de> for ContentValueVisitor {
    type Value = ElicitationContentValue;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, a boolean or a list of texts")
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.into())
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(number.into())
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        // What no i64 holds is still a number.
        Ok(i64::try_from(number).map_or_else(|_| (number as f64).into(), Into::into))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(number.into())
    }
    fn visit_bool<E>(self, yes: bool) -> Result<Self::Value, E> {
        Ok(yes.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(text) = seq.next_element::<String>()? {
            list.push(text);
        }
        Ok(list.into())
    }
}

// ELIC-18
/// The user's response to a question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationAction {
    /// The user accepted.
    Accept(ElicitationAcceptAction),
    /// The user declined.
    Decline,
    /// The user closed the question.
    Cancel,
    /// An unlisted action. It does not count as acceptance.
    Other {
        // ELIC-33
        /// Its name.
        action: String,
        /// Unknown members.
        members: Vec<(String, Json)>,
    },
}

impl ElicitationAction {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            ElicitationAction::Accept(_) => "accept",
            ElicitationAction::Decline => "decline",
            ElicitationAction::Cancel => "cancel",
            ElicitationAction::Other { action, .. } => action,
        }
    }
}

// ELIC-20
/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CreateElicitationResponse {
    /// The user's action.
    pub action: ElicitationAction,
    /// Custom metadata of extensions (`_meta`).
    pub meta: Option<Meta>,
}

impl CreateElicitationResponse {
    /// A `CreateElicitationResponse` with its required members.
    pub fn new(action: impl Into<ElicitationAction>) -> Self {
        CreateElicitationResponse { action: action.into(), meta: None }
    }

    /// Custom metadata of extensions (`_meta`).
    pub fn meta(mut self, meta: impl crate::IntoField<Option<Meta>>) -> Self {
        self.meta = meta.into_field();
        self
    }
}

impl<'de> Deserialize<'de> for CreateElicitationResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members::deserialize(deserializer)?;
        let action = members.take::<Required, String, D::Error>("action")?;
        let meta = members.take::<OptionalMeta, Option<Meta>, D::Error>("_meta")?;
        let action = match &*action {
            "accept" => ElicitationAcceptAction::from_map(members.rest()).map(ElicitationAction::Accept)?,
            "decline" => ElicitationAction::Decline,
            "cancel" => ElicitationAction::Cancel,
            _ => ElicitationAction::Other { action, members: members.into_entries() },
        };
        Ok(CreateElicitationResponse { action, meta })
    }
}

impl Serialize for CreateElicitationResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("action", self.action.as_str())?;
        match &self.action {
            ElicitationAction::Accept(accept) => accept.to_map(&mut map)?,
            ElicitationAction::Other { members, .. } => write_members(members, &mut map)?,
            ElicitationAction::Decline | ElicitationAction::Cancel => {}
        }
        write_meta(&self.meta, &mut map)?;
        map.end()
    }
}

fn write_members<M: SerializeMap>(members: &[(String, Json)], map: &mut M) -> Result<(), M::Error> {
    members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
}

fn write_meta<M: SerializeMap>(meta: &Option<Meta>, map: &mut M) -> Result<(), M::Error> {
    meta.iter().try_for_each(|meta| map.serialize_entry("_meta", meta))
}

object! {
    /// Reports that the interaction at a URL is complete.
    pub struct CompleteElicitationNotification { // ELIC-23 to ELIC-25
        required {
            /// The question.
            elicitation_id "elicitationId": ElicitationId [Required],
        }
    }
}

crate::methods! {
    "elicitation/create": CreateElicitationRequest => CreateElicitationResponse,
}

crate::notifications! {
    "elicitation/complete": CompleteElicitationNotification,
}

#[cfg(test)]
#[path = "elicitation_tests.rs"]
mod tests;
