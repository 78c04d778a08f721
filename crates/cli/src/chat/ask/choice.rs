//! Permission questions: effects, answers, and the scope of each answer.

use std::sync::Arc;
use std::time::Duration;

use attache::client::PermissionAsk;
use attache::wire::v1::RequestPermissionRequest;
use attache_host::policy::{self, Answer, Decision, Policy, Section, Silence};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::oneshot;

use super::super::item::in_full;
use super::super::view::Canvas;
use super::{QuestionView, Step};
use attache_term::render::diff;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{reveal, wrap, wrap_hard};

/// The receiver of the answer.
#[derive(Debug)]
enum Asker {
    /// The agent. The request is completed with earlier updates of the tool call.
    Agent { ask: PermissionAsk, request: Box<RequestPermissionRequest>, policy: Arc<Policy> },
    /// Our own guard, if the agent acts without asking.
    Guard(oneshot::Sender<Answer>),
}

/// A permission question with its answers.
#[derive(Debug)]
pub(crate) struct Choice {
    asker: Option<Asker>,
    question: Box<policy::Question>,
}

impl Drop for Choice {
    fn drop(&mut self) {
        // Withdrawn by the agent, or its turn has ended.
        if let Some(Asker::Agent { request, policy, .. }) = &self.asker {
            policy.withdrawn(request);
        }
    }
}

impl Choice {
    /// A question that the agent asks.
    pub(crate) fn permission(
        ask: PermissionAsk,
        request: RequestPermissionRequest,
        question: Box<policy::Question>,
        policy: Arc<Policy>,
    ) -> Choice {
        let asker = Asker::Agent { ask, request: Box::new(request), policy };
        Choice { asker: Some(asker), question }
    }

    /// A question of our own guard.
    pub(crate) fn guard(question: policy::Question, reply: oneshot::Sender<Answer>) -> Choice {
        Choice { asker: Some(Asker::Guard(reply)), question: Box::new(question) }
    }

    pub(crate) fn intro(&self, canvas: &Canvas) -> Vec<Line> {
        let mut lines = vec![];
        let head =
            Line::styled("? ", Style::BOLD.colour(Colour::Yellow)).with(self.head(canvas), Style::BOLD);
        lines.extend(wrap(&head, canvas.columns, &Line::new(), &Line::from("  ")));
        for section in self.question.sections() {
            lines.extend(render_section(&section, canvas));
        }
        lines
    }

    fn head(&self, canvas: &Canvas) -> String {
        one_line(&self.question.headline(), canvas)
    }

    pub(crate) fn view(&self, canvas: &Canvas, ready: bool) -> QuestionView {
        let head = Line::styled(self.head(canvas), Style::BOLD);
        let mut lines = wrap(&head, canvas.columns, &Line::new(), &Line::from("  "));
        // The question is above; these are the answers.
        lines.truncate(2);
        for (at, choice) in self.question.choices.iter().enumerate() {
            let colour = if choice.allows { Colour::Green } else { Colour::Red };
            let key = choice.key.map_or(String::new(), |key| key.to_string());
            let line = match ready {
                true => Line::styled(format!("  {} {key:1} ", at + 1), Style::BOLD.colour(colour)),
                false => Line::styled(canvas.look.pick("  ·   ", "  .   "), Style::DIM),
            };
            let label = Line::from(one_line(&choice.label, canvas));
            lines.extend(wrap(&label, canvas.columns, &line, &Line::from("      ")));
        }
        QuestionView { lines, cursor: None }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, canvas: &Canvas) -> Step {
        let KeyCode::Char(c) = key.code else { return Step::Nothing };
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Step::Nothing;
        }
        let choices = &self.question.choices;
        let chosen = match c.to_digit(10) {
            Some(number) => (number as usize).checked_sub(1).and_then(|at| choices.get(at)),
            None => choices.iter().find(|choice| choice.key == Some(c)),
        };
        let Some(chosen) = chosen.cloned() else { return Step::Nothing };
        let Some(asker) = self.asker.take() else { return Step::Nothing };
        match asker {
            // PERM-04, PERM-11: only an offered option. After a withdrawal nothing happens.
            Asker::Agent { ask, request, policy } => {
                if ask.is_open()
                    && let Ok(Decision::Choose(selected)) =
                        policy.answer(&request, &self.question, &chosen.answer)
                {
                    let _ = ask.choose(&selected.option);
                }
            }
            Asker::Guard(reply) => drop(reply.send(chosen.answer.clone())),
        }
        let (mark, colour) = match chosen.allows {
            true => (canvas.look.pick("✓ ", "+ "), Colour::Green),
            false => (canvas.look.pick("✗ ", "x "), Colour::Red),
        };
        let line = Line::styled(mark, Style::of(colour)).with(one_line(&chosen.label, canvas), Style::DIM);
        Step::Done(wrap(&line, canvas.columns, &Line::new(), &Line::from("  ")))
    }

    /// Applies the policy for questions without an answer.
    pub(crate) fn expire(&mut self) {
        if let Some(Asker::Agent { ask, request, policy }) = self.asker.take()
            && let Decision::Choose(selected) = policy.unanswered(&request, Silence::TimeLimit)
        {
            let _ = ask.choose(&selected.option);
        }
    }

    /// Returns the time limit. The guard has its own timer.
    pub(crate) fn limit(&self) -> Option<Duration> {
        match &self.asker {
            Some(Asker::Agent { .. }) => self.question.limit,
            _ => None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        match &self.asker {
            Some(Asker::Agent { ask, .. }) => ask.is_open(),
            Some(Asker::Guard(reply)) => !reply.is_closed(),
            None => false,
        }
    }

    pub(crate) async fn withdrawn(&mut self) {
        match &mut self.asker {
            Some(Asker::Agent { ask, .. }) => ask.withdrawn().await,
            Some(Asker::Guard(reply)) => reply.closed().await,
            None => {}
        }
    }
}

/// Returns the text in one line with control characters made visible.
fn one_line(text: &str, canvas: &Canvas) -> String {
    reveal(text, canvas.look).replace('\n', canvas.look.pick("⏎", " "))
}

/// Renders a part of a question. A bar marks text of the agent, so that it cannot pass for ours.
pub(crate) fn render_section(section: &Section, canvas: &Canvas) -> Vec<Line> {
    match section {
        Section::Text(text) => {
            let line = Line::from(one_line(text, canvas));
            wrap(&line, canvas.columns, &Line::from("  "), &Line::from("  "))
        }
        Section::Quote(text) => {
            let bar = Line::styled(canvas.look.pick("  │ ", "  | "), Style::DIM);
            let shown = reveal(text, canvas.look);
            shown.lines().flat_map(|line| wrap_hard(&Line::from(line), canvas.columns, &bar, &bar)).collect()
        }
        Section::Command(text) => in_full(text, canvas),
        Section::Change { path, old, new } => {
            diff::render(canvas.short(path), old.as_deref(), new, canvas.columns, None, canvas.look)
        }
    }
}
