//! The subagents of a session: notices about them, their names, and the rows of those that work.

use attache::wire::Patch;
use attache::wire::v1::{IdleStopReason, SessionId, SessionMessage, StateUpdate, SubagentUpdate};
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, cut_line};
use attache_transcript::Transcript;

use super::transcript::Severity;
use super::view::Canvas;

/// Subagents that are remembered.
const MAX_SUBAGENTS: usize = 64;
/// Rows that report about them.
const MAX_ROWS: usize = 4;

/// Returns the notice about an update that is about to be applied, if the user needs one.
pub(crate) fn notice(model: &Transcript, update: &SubagentUpdate) -> Option<(Severity, String)> {
    let known = model.subagents.iter().find(|known| known.session_id == update.session_id);
    let title = match (&update.title, known) {
        (Patch::Keep, Some(known)) => title(known),
        _ => title(update),
    };
    if let Patch::Set(StateUpdate::Idle(idle)) = &update.state
        && !known.is_some_and(is_done)
    {
        let (severity, end) = describe_end(idle.stop_reason.as_ref());
        return Some((severity, format!("subagent {title} {end}")));
    }
    known.is_none().then(|| {
        let about = match &update.description {
            Patch::Set(about) => format!(": {about}"),
            _ => String::new(),
        };
        (Severity::Info, format!("subagent {title}{about}"))
    })
}

/// Forgets a subagent if there are too many, preferably one that is done.
pub(crate) fn forget_old(model: &mut Transcript) {
    if model.subagents.len() >= MAX_SUBAGENTS {
        let oldest = model.subagents.iter().position(is_done).unwrap_or(0);
        model.subagents.remove(oldest);
    }
}

/// Returns the title of a subagent, or its id.
pub(crate) fn name(model: &Transcript, id: &SessionId) -> String {
    let known = model.subagents.iter().find(|known| known.session_id == *id);
    known.map_or(id.as_str(), title).to_owned()
}

/// Returns the line above a message between sessions.
pub(crate) fn message_head(model: &Transcript, message: &SessionMessage) -> String {
    let who = |id: &Patch<SessionId>, word: &str| match id {
        Patch::Set(id) => format!(" {word} {}", name(model, id)),
        _ => String::new(),
    };
    format!("message{}{}", who(&message.sender_session_id, "from"), who(&message.recipient_session_id, "to"))
}

/// Returns a row for each subagent that is not done.
pub(crate) fn rows(model: &Transcript, canvas: &Canvas) -> Vec<Line> {
    let busy: Vec<&SubagentUpdate> = model.subagents.iter().filter(|known| !is_done(known)).collect();
    let shown = if busy.len() > MAX_ROWS { MAX_ROWS - 1 } else { busy.len() };
    let mut lines: Vec<Line> = busy
        .iter()
        .take(shown)
        .map(|subagent| {
            // SUBA-04, SUBA-07: an unknown state is not idle, and not the state before.
            let (word, style) = match &subagent.state {
                Patch::Set(StateUpdate::Running(_)) => ("works", Style::DIM),
                Patch::Set(StateUpdate::RequiresAction(_)) => {
                    ("waits for an answer", Style::of(Colour::Yellow))
                }
                _ => ("working", Style::DIM),
            };
            let name = clean(title(subagent), canvas.look).replace('\n', " ");
            let line = Line::styled(canvas.look.pick("▸ ", "> "), style)
                .with(format!("subagent {name} "), Style::PLAIN)
                .with(word, style);
            cut_line(&line, canvas.columns, canvas.look)
        })
        .collect();
    if busy.len() > shown {
        let more = format!("  {} more subagents", busy.len() - shown);
        lines.push(Line::styled(more, Style::DIM));
    }
    lines
}

fn is_done(subagent: &SubagentUpdate) -> bool {
    matches!(subagent.state, Patch::Set(StateUpdate::Idle(_)))
}

fn title(subagent: &SubagentUpdate) -> &str {
    match &subagent.title {
        Patch::Set(title) => title,
        _ => subagent.session_id.as_str(),
    }
}

/// Describes the end of a subagent.
// SUBA-06
fn describe_end(reason: Option<&IdleStopReason>) -> (Severity, String) {
    match reason {
        None | Some(IdleStopReason::EndTurn) => (Severity::Info, "is done".to_owned()),
        Some(IdleStopReason::Cancelled) => (Severity::Warning, "was cancelled".to_owned()),
        Some(IdleStopReason::Error(reason)) => {
            let why = reason.error.as_ref().map_or(String::new(), |error| format!(": {}", error.message));
            (Severity::Error, format!("failed{why}"))
        }
        Some(other) => (Severity::Warning, format!("stopped ({})", other.as_str())),
    }
}
