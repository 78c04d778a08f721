//! Command lines of the settings. They run by the tool `run`, with its permissions, sandbox and
//! limits.

use std::sync::Arc;

use attache::Result;
use attache::wire::v1::ToolKind;
use serde_json::json;

use super::model_stream::RequestedCall;
use super::{TurnContext, call};
use crate::model::{ToolCall, text_of};
use crate::text::head_and_tail;
use crate::tools::ToolError;

/// The most bytes of output for the model.
const MAX_TEXT: usize = 8 << 10;

/// The result of a command line of the settings.
pub(super) enum CommandResult {
    Succeeded,
    /// It failed, with this output.
    Failed(String),
    /// The user did not allow it.
    Denied,
    Cancelled,
}

/// Runs a command line with these variables. The client sees it as a tool call.
pub(super) async fn run(cx: &TurnContext, line: &str, env: Vec<(String, String)>) -> Result<CommandResult> {
    let report = cx.turn.turn().tool("run").kind(ToolKind::Execute).name("run");
    let report = cx.session.reporter.start_tool(report).await?;
    let (id, name) = ("configured".to_owned(), "run".to_owned());
    let call = ToolCall { id, name, arguments: json!({ "command": line }), signature: None };
    let requested = RequestedCall { call: Ok(call), report: Some(Arc::new(report)) };
    let mut cx = cx.clone();
    cx.tool.command_env = env.into();
    let (text, failed) = match call::run(&cx, requested).await {
        Ok(output) => (text_of(&output.parts), output.failed),
        Err(ToolError::Denied) => return Ok(CommandResult::Denied),
        Err(ToolError::Cancelled) => return Ok(CommandResult::Cancelled),
        Err(error) => (error.to_string(), true),
    };
    Ok(match failed {
        true => CommandResult::Failed(head_and_tail(&text, MAX_TEXT.min(cx.session.result_limit()))),
        false => CommandResult::Succeeded,
    })
}
