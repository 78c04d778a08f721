//! Hooks: command lines of the settings before and after tool calls and at the end of a turn.
//!
//! Calls that only read have no hooks. A hook that fails before a call prevents it.

use attache::Result;
use serde_json::Value;

use super::TurnContext;
use super::configured_command::{self, CommandResult};
use super::model_stream::RequestedCall;
use crate::options::Hooks;
use crate::tools::{self, ToolError};

/// The most bytes of a call's arguments that a hook gets; systems limit the size of a variable.
const MAX_INPUT: usize = 64 << 10;
/// How often the hook at the end may prolong a turn.
const MAX_PROLONGATIONS: u32 = 3;

/// A tool call that has hooks.
pub(super) struct HookedCall {
    hooks: Hooks,
    tool: String,
    arguments: Value,
}

impl HookedCall {
    /// `None` for a call without hooks.
    pub(super) fn new(cx: &TurnContext, requested: &RequestedCall) -> Option<Self> {
        let hooks = &cx.session.agent.options.hooks;
        let call = requested.call.as_ref().ok()?;
        let (info, _) = cx.tools.get(&call.name)?;
        let has_hooks = hooks.before_tool.is_some() || hooks.after_tool.is_some();
        (has_hooks && !info.is_read_only()).then(|| HookedCall {
            hooks: hooks.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        })
    }

    /// Runs the hook before the call. The call may run if this succeeds.
    pub(super) async fn before(&self, cx: &TurnContext) -> tools::Result<()> {
        let Some(line) = &self.hooks.before_tool else { return Ok(()) };
        match configured_command::run(cx, line, self.env("before_tool")).await? {
            CommandResult::Succeeded => Ok(()),
            CommandResult::Failed(text) => {
                Err(format!("not run: the hook `{line}` refused it:\n{text}").into())
            }
            // A guard that cannot run allows nothing.
            CommandResult::Denied => Err(ToolError::Denied),
            CommandResult::Cancelled => Err(ToolError::Cancelled),
        }
    }

    /// Runs the hook after the call. Returns its output for the model if it fails.
    pub(super) async fn after(&self, cx: &TurnContext) -> tools::Result<Option<String>> {
        let Some(line) = &self.hooks.after_tool else { return Ok(None) };
        Ok(match configured_command::run(cx, line, self.env("after_tool")).await? {
            CommandResult::Failed(text) => {
                Some(format!("\n[After this call the hook `{line}` reports:]\n{text}"))
            }
            _ => None,
        })
    }

    fn env(&self, hook: &str) -> Vec<(String, String)> {
        let mut env = vec![variable("ATTACHE_HOOK", hook), variable("ATTACHE_TOOL", &self.tool)];
        let input = self.arguments.to_string();
        if input.len() <= MAX_INPUT {
            env.push(variable("ATTACHE_TOOL_INPUT", &input));
        }
        if let Some(path) = self.arguments["path"].as_str().filter(|path| !path.contains('\0')) {
            env.push(variable("ATTACHE_TOOL_PATH", path));
        }
        env
    }
}

fn variable(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// The hook at the end of a turn.
pub(super) struct TurnEnd {
    /// `None` if there is no hook, or the user did not allow it.
    line: Option<String>,
    prolongations: u32,
}

impl TurnEnd {
    pub(super) fn new(cx: &TurnContext) -> Self {
        TurnEnd { line: cx.session.agent.options.hooks.turn_end.clone(), prolongations: 0 }
    }

    /// Runs the hook. Returns its output for the model if it fails and the turn is to continue.
    pub(super) async fn run(&mut self, cx: &TurnContext) -> Result<Option<String>> {
        let mode = cx.session.conversation().mode;
        let can_run = cx.tools.get("run").is_some_and(|(info, _)| info.is_available_in(mode));
        let Some(line) = self.line.clone().filter(|_| can_run) else { return Ok(None) };
        match configured_command::run(cx, &line, vec![variable("ATTACHE_HOOK", "turn_end")]).await? {
            CommandResult::Failed(text) if self.prolongations < MAX_PROLONGATIONS => {
                self.prolongations += 1;
                Ok(Some(format!("[At the end of your turn the hook `{line}` reports:]\n{text}")))
            }
            CommandResult::Denied => {
                self.line = None;
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}
