//! The messages of the scenarios.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
}

#[derive(Serialize)]
pub struct Notification<'a, P> {
    pub jsonrpc: &'a str,
    pub method: &'a str,
    pub params: P,
}

#[derive(Serialize)]
pub struct Request<'a, P> {
    pub jsonrpc: &'a str,
    pub id: u64,
    pub method: &'a str,
    pub params: P,
}

#[derive(Serialize)]
pub struct Response<'a, T> {
    pub jsonrpc: &'a str,
    pub id: &'a RawValue,
    pub result: T,
}

// Owned strings inside: an SDK hands owned values to a handler, so the floor does too.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Update {
    pub session_id: String,
    pub update: Kind,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub enum Kind {
    UserMessageChunk(Chunk),
    AgentMessageChunk(Chunk),
    AgentThoughtChunk(Chunk),
}

#[derive(Serialize, Deserialize)]
pub struct Chunk {
    pub content: Block,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text { text: String },
    Image { data: String },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub cwd: String,
    pub mcp_servers: Vec<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpened {
    pub session_id: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    pub session_id: String,
    pub prompt: Vec<Block>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    pub stop_reason: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFile {
    pub session_id: String,
    pub path: String,
}

#[derive(Serialize, Deserialize)]
pub struct FileRead {
    pub content: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskPermission {
    pub session_id: String,
    pub tool_call: ToolCall,
    pub options: Vec<Choice>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub tool_call_id: String,
    pub title: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    pub option_id: String,
    pub name: String,
    pub kind: String,
}

#[derive(Serialize, Deserialize)]
pub struct Permission {
    pub outcome: Outcome,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Cancelled,
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: String,
    },
}
