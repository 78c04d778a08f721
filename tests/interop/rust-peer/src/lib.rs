//! The parts that the interop programs on the official Rust SDK share: the agents, extension
//! messages, macros.

pub mod agent_v1;
pub mod agent_v2;
pub mod sessions;
mod turn;

use agent_client_protocol::{JsonRpcNotification, JsonRpcRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The receiver of requests, for handlers.
#[macro_export]
macro_rules! on_request {
    () => {
        agent_client_protocol::on_receive_request!()
    };
}

/// The receiver of notifications, for handlers.
#[macro_export]
macro_rules! on_notification {
    () => {
        agent_client_protocol::on_receive_notification!()
    };
}

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
