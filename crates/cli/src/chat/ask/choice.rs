//! Permission questions: effects, answers, and the scope of each answer.

use std::sync::Arc;
use std::time::Duration;

use attache::client::PermissionAsk;
use attache::wire::v1::RequestPermissionRequest;
use attache_host::policy::{self, Answer, Decision, Policy, Section, Silence};
use crossterm::event::KeyEvent;
use tokio::sync::oneshot;

use super::super::item::in_full;
use super::super::view::Canvas;
use super::{QuestionView, Refusal, Step};
use attache_term::answers::{self, Answers, Outcome};
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{reveal, wrap, wrap_hard};
use attache_term::render::{diff, markdown};

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
    answers: Answers,
    /// What the user refused.
    pub(super) refusal: Option<Refusal>,
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
        Choice::new(Asker::Agent { ask, request: Box::new(request), policy }, question)
    }

    /// A question of our own guard.
    pub(crate) fn guard(question: policy::Question, reply: oneshot::Sender<Answer>) -> Choice {
        Choice::new(Asker::Guard(reply), Box::new(question))
    }

    fn new(asker: Asker, question: Box<policy::Question>) -> Choice {
        let answers = crate::run::answers(&question.choices);
        Choice { asker: Some(asker), question, answers, refusal: None }
    }

    pub(crate) fn intro(&self, canvas: &Canvas) -> Vec<Line> {
        let mut lines = vec![];
        let head =
            Line::styled("? ", Style::BOLD.colour(Colour::Yellow)).with(self.head(canvas), Style::BOLD);
        lines.extend(wrap(&head, canvas.columns, &Line::new(), &Line::from("  ")));
        let sections = crate::run::sections(&self.question, &self.question.headline());
        lines.extend(sections.iter().flat_map(|section| render_section(section, canvas)));
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
        let answers = self.answers.render(canvas.columns, canvas.rows, canvas.look, ready);
        let cursor = answers.cursor.map(|(row, column)| (lines.len() + row, column));
        lines.extend(answers.lines);
        QuestionView { lines, cursor }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, canvas: &Canvas) -> Step {
        match self.answers.key(key) {
            Outcome::Ignored => Step::Nothing,
            Outcome::Changed => Step::Changed,
            Outcome::Interrupt => Step::Interrupt,
            Outcome::Chosen(at) => self.choose(at, canvas),
            Outcome::Instead(text) => self.refuse_with(text, canvas),
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.answers.paste(text);
    }

    /// Refuses, and hands on the text that the agent gets instead.
    fn refuse_with(&mut self, text: String, canvas: &Canvas) -> Step {
        let refusal = crate::run::refusal(&self.question.choices);
        let lines = match refusal.map(|at| self.choose(at, canvas)) {
            Some(Step::Done(lines)) => lines,
            // An agent that offers no refusal gets none; the turn is cancelled.
            _ => Vec::new(),
        };
        Step::Instead(text, lines)
    }

    fn choose(&mut self, at: usize, canvas: &Canvas) -> Step {
        let Some(chosen) = self.question.choices.get(at).cloned() else { return Step::Nothing };
        let Some(asker) = self.asker.take() else { return Step::Nothing };
        if !chosen.allows {
            self.refusal = Some(match &asker {
                Asker::Agent { request, .. } => Refusal::Call(request.tool_call.tool_call_id.clone()),
                Asker::Guard(_) => Refusal::Guard,
            });
        }
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
    answers::one_line(text, canvas.look)
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
            // The bar shows already that the text is quoted.
            let lines = shown.lines().filter(|line| !markdown::is_fence(line));
            lines.flat_map(|line| wrap_hard(&Line::from(line), canvas.columns, &bar, &bar)).collect()
        }
        Section::Command(text) => in_full(text, canvas),
        Section::Change { path, old, new } => {
            diff::render(canvas.short(path), old.as_deref(), new, canvas.columns, None, canvas.look)
        }
    }
}
