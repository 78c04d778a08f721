//! What the interop agent and client on the official Rust SDK share: the extension messages.

use agent_client_protocol::{JsonRpcNotification, JsonRpcRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_interop/echo", response = Value)]
pub struct Echo {
    pub value: Value,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_interop/notes", response = Value)]
pub struct Notes {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_interop/note")]
pub struct Note {
    pub i: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_interop/reverse", response = Value)]
pub struct Reverse {
    pub text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_interop/ping")]
pub struct Ping {
    pub n: u32,
}

/// The number of an error.
pub fn number(error: &agent_client_protocol::Error) -> i32 {
    error.code.into()
}

/// The error for a file or terminal that does not exist.
pub fn missing(uri: impl ToString) -> agent_client_protocol::Error {
    let data = serde_json::json!({"uri": uri.to_string()});
    agent_client_protocol::Error::new(-32002, "Resource not found").data(data)
}
