//! MCP over this connection: the agent uses servers that the client provides. Unstable.
//!
//! There are no connections: every message names its server and the MCP request it belongs to. An
//! older draft opened a connection first; the feature `drafts` has those types.

// MCPA-04

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::shape::*;
use crate::{Json, Meta};

ids! {
    /// Id of an MCP server that is reached through this connection.
    McpServerAcpId,
    /// Id of an MCP request within its server.
    McpRequestId,
}

object! {
    /// A server that is reached through this connection.
    pub struct McpServerAcp { // MCPA-02, MCPA-06
        required {
            /// A name to show.
            name "name": String [Required],
            /// Id of the server, for `mcp/message`.
            server_id "serverId": McpServerAcpId [Required],
        }
    }
}

object! {
    /// An MCP request.
    pub struct MessageMcpRequest {
        required {
            /// The server.
            server_id "serverId": McpServerAcpId [Required],
            /// Id of the MCP request, assigned by the caller.
            request_id "requestId": McpRequestId [Required],
            /// The MCP method.
            method "method": String [Required],
        }
        optional {
            /// The MCP params, an object.
            params "params": Option<Json> [AnyObject],
        }
    }
}

object! {
    /// An MCP notification that belongs to a running MCP request.
    pub struct MessageMcpNotification {
        required {
            /// The server.
            server_id "serverId": McpServerAcpId [Required],
            /// The running MCP request.
            request_id "requestId": McpRequestId [Required],
            /// The MCP method.
            method "method": String [Required],
        }
        optional {
            /// The MCP params, an object.
            params "params": Option<Json> [AnyObject],
        }
    }
}

// MCPA-05
/// The outcome of an MCP request. A server that cannot be reached is an error of the outer request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MessageMcpResponse {
    /// The MCP result, which may be `null`, or the MCP error.
    pub outcome: Result<Json, McpError>,
    /// Custom metadata of extensions (`_meta`).
    pub meta: Option<Meta>,
}

impl MessageMcpResponse {
    /// A result.
    pub fn result(result: impl Into<Json>) -> Self {
        MessageMcpResponse { outcome: Ok(result.into()), meta: None }
    }

    /// An error.
    pub fn error(error: McpError) -> Self {
        MessageMcpResponse { outcome: Err(error), meta: None }
    }

    /// Custom metadata of extensions (`_meta`).
    pub fn meta(mut self, meta: impl crate::IntoField<Option<Meta>>) -> Self {
        self.meta = meta.into_field();
        self
    }
}

impl<'de> Deserialize<'de> for MessageMcpResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members::deserialize(deserializer)?;
        let meta = members.take::<OptionalMeta, _, D::Error>("_meta")?;
        // MCPA-05: `null` is a result, and a result wins over an error.
        let outcome = match members.take::<NullableJson, Option<Json>, D::Error>("result")? {
            Some(result) => Ok(result),
            None => match members.take::<Optional, Option<McpError>, D::Error>("error")? {
                Some(error) => Err(error),
                None => return Err(D::Error::custom("neither `result` nor `error`")),
            },
        };
        Ok(MessageMcpResponse { outcome, meta })
    }
}

impl Serialize for MessageMcpResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.outcome {
            Ok(result) => map.serialize_entry("result", result)?,
            Err(error) => map.serialize_entry("error", error)?,
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

/// An error of MCP, passed through unchanged.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct McpError {
    /// The code; never one of this protocol.
    pub code: i32,
    /// The error message.
    pub message: String,
    /// Details of the error; `null` is kept.
    pub data: Option<Json>,
    /// Unknown members.
    pub more: Vec<(String, Json)>,
}

impl McpError {
    /// An `McpError` with its required members.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        McpError { code, message: message.into(), data: None, more: Vec::new() }
    }

    /// Details of the error.
    pub fn data(mut self, data: impl crate::IntoField<Option<Json>>) -> Self {
        self.data = data.into_field();
        self
    }
}

impl<'de> Deserialize<'de> for McpError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members::deserialize(deserializer)?;
        Ok(McpError {
            code: members.take::<Required, _, D::Error>("code")?,
            message: members.take::<Required, _, D::Error>("message")?,
            data: members.take::<NullableJson, _, D::Error>("data")?,
            more: members.into_entries(),
        })
    }
}

impl Serialize for McpError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.message)?;
        if let Some(data) = &self.data {
            map.serialize_entry("data", data)?;
        }
        for (name, value) in &self.more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

crate::methods! {
    "mcp/message": MessageMcpRequest => MessageMcpResponse,
}

crate::notifications! {
    "mcp/message": MessageMcpNotification,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::v1::*;

    fn same(text: &str) -> MessageMcpResponse {
        let response: MessageMcpResponse = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&response).unwrap(), text);
        response
    }

    #[test]
    fn null_is_a_result() {
        // shows MCPA-05
        assert_eq!(same(r#"{"result":null}"#).outcome.unwrap().get(), "null");
        assert!(same(r#"{"result":{"tools":[]},"_meta":{"a":1}}"#).meta.is_some());
    }

    #[test]
    fn errors_are_handed_through_whole() {
        // shows MCPA-05: `data: null` and foreign members survive
        same(r#"{"error":{"code":-32601,"message":"no tool","data":null}}"#);
        let error = same(r#"{"error":{"code":1,"message":"m","retry":{"after":5}}}"#).outcome.unwrap_err();
        assert_eq!(error.data, None);
        assert_eq!(error.more.len(), 1);
    }

    #[test]
    fn a_result_wins_and_one_of_both_must_be_there() {
        // shows MCPA-05
        let both = r#"{"error":{"code":1,"message":"m"},"result":null}"#;
        assert!(serde_json::from_str::<MessageMcpResponse>(both).unwrap().outcome.is_ok());
        for text in
            ["{}", r#"{"error":null}"#, r#"{"error":{}}"#, r#"{"error":{"code":"1","message":"m"}}"#, "null"]
        {
            assert!(serde_json::from_str::<MessageMcpResponse>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_two_forms_are_distinguished() {
        // shows MCPA-03, MCPA-04
        let older = r#"{"connectionId":"c","method":"tools/list"}"#;
        assert!(serde_json::from_str::<MessageMcpRequest>(older).is_err());
        assert!(serde_json::from_str::<ConnectedMcpRequest>(older).is_ok());
        let newer = r#"{"serverId":"s","requestId":"r","method":"tools/list"}"#;
        assert!(serde_json::from_str::<MessageMcpRequest>(newer).is_ok());
        assert!(serde_json::from_str::<ConnectedMcpRequest>(newer).is_err());
    }

    #[test]
    fn inner_params_are_an_object() {
        // shows MCPA-04
        let with = |params: &str| {
            let text = format!(r#"{{"serverId":"s","requestId":"r","method":"x","params":{params}}}"#);
            serde_json::from_str::<MessageMcpRequest>(&text)
        };
        assert_eq!(with("null").unwrap().params, None);
        assert_eq!(with(r#"{"a": null}"#).unwrap().params.unwrap().get(), r#"{"a": null}"#);
        assert!(with("[1]").is_err() && with("5").is_err());
    }
}
