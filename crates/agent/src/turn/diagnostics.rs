//! Diagnostics after edits: a command of the settings, such as a compiler, whose complaints the
//! model gets.

use std::collections::HashSet;

use attache::Result;
use attache::wire::v1::ToolKind;

use super::TurnContext;
use super::configured_command::{self, CommandResult};
use super::model_stream::RequestedCall;
use crate::model::{Part, ToolCall};

/// The diagnostics of one turn.
pub(super) struct Diagnostics {
    /// `None` if there is no command, or the user did not allow it.
    command: Option<String>,
}

impl Diagnostics {
    pub(super) fn new(cx: &TurnContext) -> Self {
        Diagnostics { command: cx.session.agent.options.diagnostics.clone() }
    }

    /// The ids of the calls that change files.
    pub(super) fn edits(&self, cx: &TurnContext, calls: &[RequestedCall]) -> HashSet<String> {
        use ToolKind::{Delete, Edit, Move};
        let is_edit = |call: &&ToolCall| {
            cx.tools.get(&call.name).is_some_and(|(info, _)| matches!(info.kind, Edit | Delete | Move))
        };
        let calls = calls.iter().filter_map(|call| call.call.as_ref().ok());
        calls.filter(|_| self.command.is_some()).filter(is_edit).map(|call| call.id.clone()).collect()
    }

    /// Runs the command if one of these calls has changed a file. Returns its complaints for the
    /// model.
    pub(super) async fn run(
        &mut self,
        cx: &TurnContext,
        edits: &HashSet<String>,
        results: &[Part],
    ) -> Result<Option<Part>> {
        let is_change = |part: &Part| match part {
            Part::Result { call, failed, .. } => !failed && edits.contains(call),
            _ => false,
        };
        if cx.turn.turn().is_cancelled() || !results.iter().any(is_change) {
            return Ok(None);
        }
        let Some(command) = self.command.clone() else { return Ok(None) };
        Ok(match configured_command::run(cx, &command, Vec::new()).await? {
            CommandResult::Failed(complaints) => {
                Some(Part::Text(format!("[After your changes `{command}` reports:]\n{complaints}")))
            }
            CommandResult::Denied => {
                self.command = None;
                None
            }
            CommandResult::Succeeded | CommandResult::Cancelled => None,
        })
    }
}
