//! What other hubs ask for, as commands.

use crate::network::{Action, id};
use crate::session::{Command, Forward};

/// The command of an action that has no reply of its own.
pub(crate) fn command(action: Action) -> Option<Command> {
    let method = String::new;
    let params = || serde_json::value::RawValue::NULL.to_owned();
    Some(match action {
        Action::Cancel { connection } => Command::Cancel { connection },
        Action::CancelPrompt { prompt } => Command::CancelPrompt { prompt },
        Action::Forward { connection, id: raw, method, params } => {
            Command::Forward(Forward { connection, id: id(&raw)?, method, params })
        }
        Action::Interrupt { connection, id: raw } => {
            Command::Interrupt(Forward { connection, id: id(&raw)?, method: method(), params: params() })
        }
        Action::CancelForward { connection, id: raw } => Command::CancelForward { connection, id: id(&raw)? },
        Action::Notify { method, params } => Command::Notify { method, params },
        Action::Answer { question, by, outcome } => Command::Answer { question, by: by.identity(), outcome },
        Action::Prompt { .. } | Action::Close | Action::PromptStatus { .. } | Action::Adopt => return None,
    })
}
