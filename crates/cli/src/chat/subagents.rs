//! The subagents of a session: names, states, and messages between sessions.

use attache::wire::Patch;
use attache::wire::v1::{IdleStopReason, SessionId, SessionMessage, StateUpdate, SubagentUpdate};

use super::transcript::{Severity, describe};
use super::view::Canvas;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, cut_line};

/// Most subagents that are tracked.
const MOST: usize = 64;
/// Most rows on the screen.
const ROWS: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Running,
    /// It waits for an answer.
    Waiting,
    Done,
    /// SUBA-04, SUBA-07: an unknown state is neither idle nor the previous one.
    Unknown,
}

#[derive(Debug)]
struct Child {
    id: SessionId,
    title: Option<String>,
    state: State,
}

#[derive(Debug, Default)]
pub(crate) struct Subagents {
    children: Vec<Child>,
    /// The speaker of the last message in the transcript.
    speaking: Option<SessionId>,
}

impl Subagents {
    /// Applies an update (SUBA-05). Returns a notice for the user.
    pub(crate) fn update(&mut self, update: SubagentUpdate) -> Option<(Severity, String)> {
        let known = self.children.iter().position(|child| child.id == update.session_id);
        let at = known.unwrap_or_else(|| {
            if self.children.len() >= MOST {
                let oldest = self.children.iter().position(|child| child.state == State::Done).unwrap_or(0);
                self.children.remove(oldest);
            }
            let id = update.session_id.clone();
            self.children.push(Child { id, title: None, state: State::Unknown });
            self.children.len() - 1
        });
        let child = self.children.get_mut(at)?;
        update.title.apply(&mut child.title);
        let before = child.state.clone();
        let mut ended = None;
        match update.state {
            Patch::Keep => {}
            Patch::Set(StateUpdate::Running(_)) => child.state = State::Running,
            Patch::Set(StateUpdate::RequiresAction(_)) => child.state = State::Waiting,
            Patch::Set(StateUpdate::Idle(idle)) => {
                child.state = State::Done;
                ended = Some(how(idle.stop_reason.as_ref()));
            }
            _ => child.state = State::Unknown,
        }
        let name = child.title.clone().unwrap_or_else(|| child.id.to_string());
        if let Some((severity, how)) = ended.filter(|_| before != State::Done || known.is_none()) {
            return Some((severity, format!("subagent {name} {how}")));
        }
        known.is_none().then(|| {
            let about = match update.description {
                Patch::Set(about) => format!(": {about}"),
                _ => String::new(),
            };
            (Severity::Info, format!("subagent {name}{about}"))
        })
    }

    /// Returns the name of a session.
    pub(crate) fn name(&self, id: &SessionId) -> String {
        let child = self.children.iter().find(|child| child.id == *id);
        child.and_then(|child| child.title.clone()).unwrap_or_else(|| id.to_string())
    }

    /// Notes the speaker of a message. Returns its name if the speaker changed.
    pub(crate) fn speaks(&mut self, id: Option<&SessionId>) -> Option<String> {
        if self.speaking.as_ref() == id {
            return None;
        }
        self.speaking = id.cloned();
        id.map(|id| self.name(id))
    }

    /// Returns head and text of a message between sessions.
    pub(crate) fn letter(&self, letter: SessionMessage) -> (String, String) {
        let who = |id: Patch<SessionId>, word: &str| match id {
            Patch::Set(id) => format!(" {word} {}", self.name(&id)),
            _ => String::new(),
        };
        let head = format!(
            "message{}{}",
            who(letter.sender_session_id, "from"),
            who(letter.recipient_session_id, "to")
        );
        let text = match letter.content {
            Patch::Set(blocks) => blocks.iter().map(describe).collect::<Vec<_>>().join("\n"),
            _ => String::new(),
        };
        (head, text)
    }

    /// Renders the unfinished subagents, a line each.
    pub(crate) fn lines(&self, canvas: &Canvas) -> Vec<Line> {
        let busy: Vec<&Child> = self.children.iter().filter(|child| child.state != State::Done).collect();
        let shown = busy.len().min(ROWS);
        let mut lines: Vec<Line> = busy
            .iter()
            .take(if busy.len() > ROWS { ROWS - 1 } else { shown })
            .map(|child| {
                let (word, style) = match child.state {
                    State::Running => ("works", Style::DIM),
                    State::Waiting => ("waits for an answer", Style::of(Colour::Yellow)),
                    _ => ("working", Style::DIM),
                };
                let name = child.title.as_deref().unwrap_or(child.id.as_str());
                let name = clean(name, canvas.look).replace('\n', " ");
                let line = Line::styled(canvas.look.pick("▸ ", "> "), style)
                    .with(format!("subagent {name} "), Style::PLAIN)
                    .with(word, style);
                cut_line(&line, canvas.columns, canvas.look)
            })
            .collect();
        if busy.len() > ROWS {
            let more = format!("  {} more subagents", busy.len() - lines.len());
            lines.push(Line::styled(more, Style::DIM));
        }
        lines
    }
}

/// Describes the end of a subagent (SUBA-06).
fn how(reason: Option<&IdleStopReason>) -> (Severity, String) {
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
