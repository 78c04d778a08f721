//! May this be done? The agent's permission questions, and those of our own guards.

use std::sync::Arc;
use std::time::Duration;

use attache::client::PermissionAsk;
use attache::wire::v1::{
    ContentBlock, PermissionOptionId, PermissionOptionKind, RequestPermissionRequest, ToolCallContent,
};
use attache_host::policy::{Answer as HostAnswer, Decision, Policy, Silence, What};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::oneshot;

use super::super::block::in_full;
use super::super::render::diff;
use super::super::render::style::{Colour, Line, Style};
use super::super::render::text::{clean, wrap};
use super::super::tool::{ToolState, kind_name};
use super::super::view::Canvas;
use super::{Face, Step};

/// What is decided about.
#[derive(Debug, Clone)]
enum Detail {
    /// A command or another text.
    Text(String),
    /// A change of a file.
    Change { path: String, old: Option<String>, new: String },
}

#[derive(Debug)]
enum Asker {
    /// The agent; the request is completed by what was known of the tool call before.
    Agent { ask: PermissionAsk, request: Box<RequestPermissionRequest>, policy: Arc<Policy> },
    /// One of our own guards: the agent uses something without having asked.
    Host(oneshot::Sender<HostAnswer>),
}

#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Option(PermissionOptionId),
    Host(HostAnswer),
    /// Nobody decided.
    Cancel,
}

#[derive(Debug)]
struct Row {
    key: Option<char>,
    label: String,
    allows: bool,
    answer: Answer,
}

/// A question with a few answers to choose from.
#[derive(Debug)]
pub(crate) struct Choice {
    asker: Option<Asker>,
    title: String,
    details: Vec<Detail>,
    rows: Vec<Row>,
}

impl Drop for Choice {
    fn drop(&mut self) {
        // Taken back by the agent, or left behind by a turn that ended.
        if let Some(Asker::Agent { request, policy, .. }) = &self.asker {
            policy.withdrawn(request);
        }
    }
}

impl Choice {
    /// `tool` is all that is known about the call, this question included.
    pub(crate) fn permission(
        ask: PermissionAsk,
        request: RequestPermissionRequest,
        tool: &ToolState,
        policy: Arc<Policy>,
    ) -> Choice {
        let mut rows: Vec<Row> = Vec::new();
        for option in ask.options() {
            let key = match option.kind {
                PermissionOptionKind::AllowOnce => 'y',
                PermissionOptionKind::AllowAlways => 'a',
                PermissionOptionKind::RejectOnce => 'n',
                _ => 'N',
            };
            // PERM-11: of two options of a kind the first has the letter, and each has its number.
            let key = Some(key).filter(|key| rows.iter().all(|row| row.key != Some(*key)));
            rows.push(Row {
                key,
                label: option.name.clone(),
                allows: option.kind.allows(),
                answer: Answer::Option(option.option_id.clone()),
            });
        }
        // There is a no, whatever was offered. PERM-04: it is then not an option, but no decision.
        if rows.iter().all(|row| row.key != Some('n')) {
            rows.push(Row {
                key: Some('n'),
                label: "Not now".to_owned(),
                allows: false,
                answer: Answer::Cancel,
            });
        }
        let title = if tool.title.is_empty() { tool.id.as_str() } else { tool.title.as_str() };
        let title = format!("{} {title}", kind_name(tool.kind));
        let asker = Asker::Agent { ask, request: Box::new(request), policy };
        Choice { asker: Some(asker), title, details: details(tool), rows }
    }

    pub(crate) fn host(what: What, reply: oneshot::Sender<HostAnswer>) -> Choice {
        let row = |key, label: &str, answer: HostAnswer| Row {
            key: Some(key),
            label: label.to_owned(),
            allows: answer != HostAnswer::Deny,
            answer: Answer::Host(answer),
        };
        let (title, detail) = match what {
            What::Read(path) => (format!("read {}", path.display()), None),
            What::Write { path, content } => {
                // What is there now, to show what would change. What cannot be read as text is replaced whole.
                let old = std::fs::read_to_string(&path).ok();
                let path = path.display().to_string();
                (format!("write {path}"), Some(Detail::Change { path, old, new: content }))
            }
            What::Run { command, cwd } => {
                (format!("run a command in {}", cwd.display()), Some(Detail::Text(command.text().to_owned())))
            }
            _ => ("something that was not asked for".to_owned(), None),
        };
        Choice {
            asker: Some(Asker::Host(reply)),
            title,
            details: detail.into_iter().collect(),
            rows: vec![
                row('y', "Allow", HostAnswer::Allow),
                row('a', "Always allow in this project", HostAnswer::AllowAlways),
                row('n', "Reject", HostAnswer::Deny),
            ],
        }
    }

    pub(crate) fn intro(&self, canvas: &Canvas) -> Vec<Line> {
        let title = clean(&self.title, canvas.look).replace('\n', " ");
        let head = Line::styled("? ", Style::BOLD.colour(Colour::Yellow)).with(title, Style::BOLD);
        let mut lines = wrap(&head, canvas.columns, &Line::new(), &Line::from("  "));
        for detail in &self.details {
            match detail {
                Detail::Text(text) => lines.extend(in_full(text, canvas)),
                Detail::Change { path, old, new } => {
                    let path = canvas.short(path);
                    lines.extend(diff::render(path, old.as_deref(), new, canvas.columns, None, canvas.look));
                }
            }
        }
        lines
    }

    pub(crate) fn face(&self, canvas: &Canvas) -> Face {
        let head = format!("Allow {}?", clean(&self.title, canvas.look).replace('\n', " "));
        let mut lines =
            wrap(&Line::styled(head, Style::BOLD), canvas.columns, &Line::new(), &Line::from("  "));
        // The question is known from above; what matters here are the answers.
        lines.truncate(2);
        for (at, row) in self.rows.iter().enumerate() {
            let colour = if row.allows { Colour::Green } else { Colour::Red };
            let key = row.key.map_or(String::new(), |key| key.to_string());
            let line = Line::styled(format!("  {} {key:1} ", at + 1), Style::BOLD.colour(colour));
            let label = Line::from(clean(&row.label, canvas.look).replace('\n', " "));
            lines.extend(wrap(&label, canvas.columns, &line, &Line::from("      ")));
        }
        Face { lines, cursor: None }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, canvas: &Canvas) -> Step {
        let KeyCode::Char(c) = key.code else { return Step::Nothing };
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Step::Nothing;
        }
        let number = c.to_digit(10).and_then(|number| (number as usize).checked_sub(1));
        let row = match number {
            Some(at) => self.rows.get(at),
            None => self.rows.iter().find(|row| row.key == Some(c)),
        };
        let Some(row) = row else { return Step::Nothing };
        let Some(asker) = self.asker.take() else { return Step::Nothing };
        match (asker, &row.answer) {
            // PERM-04, PERM-11: by the id, and only what was offered. If the question was withdrawn meanwhile nothing happens.
            (Asker::Agent { ask, request, policy }, Answer::Option(id)) => {
                if ask.is_open() && policy.answered(&request, id).is_ok() {
                    let _ = ask.choose(id);
                }
            }
            (Asker::Agent { request, policy, .. }, _) => policy.withdrawn(&request),
            (Asker::Host(reply), Answer::Host(answer)) => drop(reply.send(*answer)),
            (Asker::Host(_), _) => {}
        }
        let (mark, colour) = match row.allows {
            true => (canvas.look.pick("✓ ", "+ "), Colour::Green),
            false => (canvas.look.pick("✗ ", "x "), Colour::Red),
        };
        let label = clean(&row.label, canvas.look).replace('\n', " ");
        let line = Line::styled(mark, Style::of(colour)).with(label, Style::DIM);
        Step::Done(wrap(&line, canvas.columns, &Line::new(), &Line::from("  ")))
    }

    /// Nobody answered in time: the policy says what that means.
    pub(crate) fn expire(&mut self) {
        if let Some(Asker::Agent { ask, request, policy }) = self.asker.take()
            && let Decision::Choose(choice) = policy.unanswered(&request, Silence::TimeLimit)
        {
            let _ = ask.choose(&choice.option);
        }
    }

    /// How long it may stand. Our own guards look at the clock themselves.
    pub(crate) fn limit(&self) -> Option<Duration> {
        match &self.asker {
            Some(Asker::Agent { policy, .. }) => policy.ask_limit(),
            _ => None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        match &self.asker {
            Some(Asker::Agent { ask, .. }) => ask.is_open(),
            Some(Asker::Host(reply)) => !reply.is_closed(),
            None => false,
        }
    }

    pub(crate) async fn withdrawn(&mut self) {
        match &mut self.asker {
            Some(Asker::Agent { ask, .. }) => ask.withdrawn().await,
            Some(Asker::Host(reply)) => reply.closed().await,
            None => {}
        }
    }
}

/// Everything that helps to decide: the command, the changes, the text, or else the input as it is.
fn details(tool: &ToolState) -> Vec<Detail> {
    let mut details: Vec<Detail> = tool.command().map(Detail::Text).into_iter().collect();
    for content in &tool.content {
        match content {
            ToolCallContent::Diff(change) => details.push(Detail::Change {
                path: change.path.clone(),
                old: change.old_text.clone(),
                new: change.new_text.clone(),
            }),
            ToolCallContent::Content(content) => {
                if let ContentBlock::Text(text) = &content.content {
                    details.push(Detail::Text(text.text.clone()));
                }
            }
            _ => {}
        }
    }
    if details.is_empty() {
        let value = tool.raw_input.as_ref().and_then(|input| input.parse::<serde_json::Value>().ok());
        if let Some(text) = value.and_then(|value| serde_json::to_string_pretty(&value).ok()) {
            details.push(Detail::Text(text));
        }
    }
    for place in &tool.locations {
        let named =
            details.iter().any(|detail| matches!(detail, Detail::Change { path, .. } if *path == place.path));
        if !named && !tool.title.contains(&place.path) {
            details.push(Detail::Text(place.path.clone()));
        }
    }
    details
}
