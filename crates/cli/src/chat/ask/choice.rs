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
use super::{QuestionView, Refusal, Step};
use attache_term::editor::{ActionResult, Editor};
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{reveal, wrap, wrap_hard};
use attache_term::render::{diff, markdown};

/// The row after the answers.
const INSTEAD: &str = "No, and do this instead";

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
    /// The selected row: an answer, or after them "no, and do this instead".
    selected: usize,
    /// The text of "do this instead", while it is being written.
    instead: Option<Editor>,
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
        let asker = Asker::Agent { ask, request: Box::new(request), policy };
        Choice { asker: Some(asker), question, selected: 0, instead: None, refusal: None }
    }

    /// A question of our own guard.
    pub(crate) fn guard(question: policy::Question, reply: oneshot::Sender<Answer>) -> Choice {
        let asker = Some(Asker::Guard(reply));
        Choice { asker, question: Box::new(question), selected: 0, instead: None, refusal: None }
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
        let rows =
            self.question.choices.iter().map(|choice| (choice.key, choice.label.as_str(), choice.allows));
        let rows = rows.chain([(self.instead_key(), INSTEAD, false)]);
        for (at, (key, label, allows)) in rows.enumerate() {
            let colour = if allows { Colour::Green } else { Colour::Red };
            let key = key.map_or(String::new(), |key| key.to_string());
            let selected = ready && at == self.selected;
            let pointer = if selected { canvas.look.pick("❯ ", "> ") } else { "  " };
            let line = match ready {
                true => Line::styled(format!("{pointer}{} {key:1} ", at + 1), Style::BOLD.colour(colour)),
                false => Line::styled(canvas.look.pick("  ·   ", "  .   "), Style::DIM),
            };
            let style = if selected { Style::BOLD } else { Style::PLAIN };
            let label = Line::styled(one_line(label, canvas), style);
            lines.extend(wrap(&label, canvas.columns, &line, &Line::from("      ")));
        }
        if let Some(instead) = &self.instead {
            let prompt = Line::styled("      > ", Style::BOLD.colour(Colour::Cyan));
            let painted = instead.render(&prompt, canvas.columns, (canvas.rows / 4).max(1), canvas.look);
            let cursor = Some((lines.len() + painted.row, painted.column));
            lines.extend(painted.lines);
            return QuestionView { lines, cursor };
        }
        QuestionView { lines, cursor: None }
    }

    /// Returns the letter of "do this instead", unless an answer has it.
    fn instead_key(&self) -> Option<char> {
        self.question.choices.iter().all(|choice| choice.key != Some('i')).then_some('i')
    }

    pub(crate) fn key(&mut self, key: KeyEvent, canvas: &Canvas) -> Step {
        if let Some(instead) = &mut self.instead {
            return match key.code {
                KeyCode::Esc => {
                    self.instead = None;
                    Step::Changed
                }
                _ => match instead.key(key) {
                    ActionResult::Submit(text) => self.refuse_with(text, canvas),
                    _ => Step::Changed,
                },
            };
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Step::Nothing;
        }
        let rows = self.question.choices.len() + 1;
        let at = match key.code {
            KeyCode::Esc => return Step::Interrupt,
            KeyCode::Up | KeyCode::BackTab => {
                self.selected = (self.selected + rows - 1) % rows;
                return Step::Changed;
            }
            KeyCode::Down | KeyCode::Tab => {
                self.selected = (self.selected + 1) % rows;
                return Step::Changed;
            }
            KeyCode::Enter => Some(self.selected),
            KeyCode::Char(c) if Some(c) == self.instead_key() => Some(rows - 1),
            KeyCode::Char(c) => match c.to_digit(10) {
                Some(number) => (number as usize).checked_sub(1),
                None => self.question.choices.iter().position(|choice| choice.key == Some(c)),
            },
            _ => None,
        };
        match at {
            Some(at) if at + 1 == rows => {
                self.selected = at;
                self.instead = Some(Editor::default());
                Step::Changed
            }
            Some(at) => self.choose(at, canvas),
            None => Step::Nothing,
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(instead) = &mut self.instead {
            instead.paste(text);
        }
    }

    /// Refuses, and hands on the text that the agent gets instead.
    fn refuse_with(&mut self, text: String, canvas: &Canvas) -> Step {
        let refusal = self.question.choices.iter().position(|choice| choice.answer == Answer::Reject);
        let refusal = refusal.or_else(|| self.question.choices.iter().position(|choice| !choice.allows));
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
