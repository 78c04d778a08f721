//! Questions of the agent and of our own guards to the user. One at a time is on the screen.
//!
//! Several may be open at once and are queued. Each has an introduction, which goes to the
//! scrollback in full, and a few lines below that take keys.

// PERM-12

pub(crate) mod choice;
mod field;
pub(crate) mod form;
mod pattern;
pub(crate) mod url;

use std::time::Duration;

use attache::wire::v1::{ElicitationId, ToolCallId};
use crossterm::event::KeyEvent;

use self::choice::Choice;
use self::form::Form;
use self::url::Page;
use super::view::Canvas;
use attache_term::render::style::Line;

/// The result of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The key has no meaning.
    Nothing,
    /// The question changed.
    Changed,
    /// It is answered; the lines show the answer.
    Done(Vec<Line>),
    /// It is answered, and a page must be opened.
    Open(String, Vec<Line>),
    /// It is refused, and the agent gets this prompt in place of what it was doing.
    Instead(String, Vec<Line>),
    /// The turn that asks must be cancelled.
    Interrupt,
}

/// What was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A tool call of the agent.
    Call(ToolCallId),
    /// A request to this client, which names no tool call.
    Guard,
}

/// The rendered question.
#[derive(Debug, Default)]
pub(crate) struct QuestionView {
    pub(crate) lines: Vec<Line>,
    /// The cursor, if text is entered.
    pub(crate) cursor: Option<(usize, usize)>,
}

#[derive(Debug)]
pub(crate) enum Question {
    Choice(Box<Choice>),
    Form(Box<Form>),
    Page(Box<Page>),
}

impl Question {
    /// Renders the introduction in full.
    pub(crate) fn intro(&self, canvas: &Canvas) -> Vec<Line> {
        match self {
            Question::Choice(choice) => choice.intro(canvas),
            Question::Form(form) => form.intro(canvas),
            Question::Page(page) => page.intro(canvas),
        }
    }

    /// Renders the question; keys are shown once they work (`ready`).
    pub(crate) fn view(&self, canvas: &Canvas, ready: bool) -> QuestionView {
        match self {
            Question::Choice(choice) => choice.view(canvas, ready),
            Question::Form(form) => form.view(canvas, ready),
            Question::Page(page) => page.view(canvas, ready),
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, canvas: &Canvas) -> Step {
        match self {
            Question::Choice(choice) => choice.key(key, canvas),
            Question::Form(form) => form.key(key, canvas),
            Question::Page(page) => page.key(key, canvas),
        }
    }

    /// Returns whether it has this id.
    pub(crate) fn is(&self, id: &ElicitationId) -> bool {
        matches!(self, Question::Page(page) if page.is(id))
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match self {
            Question::Form(form) => form.paste(text),
            Question::Choice(choice) => choice.paste(text),
            Question::Page(_) => {}
        }
    }

    /// Returns what the user refused.
    pub(crate) fn refusal(self) -> Option<Refusal> {
        match self {
            Question::Choice(mut choice) => choice.refusal.take(),
            Question::Form(_) | Question::Page(_) => None,
        }
    }

    /// Expires the question.
    pub(crate) fn expire(&mut self) {
        if let Question::Choice(choice) = self {
            choice.expire();
        }
    }

    /// Returns the time limit.
    pub(crate) fn limit(&self) -> Option<Duration> {
        match self {
            Question::Choice(choice) => choice.limit(),
            Question::Form(_) | Question::Page(_) => None,
        }
    }

    /// Returns whether the answer is still awaited.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Question::Choice(choice) => choice.is_open(),
            Question::Form(form) => form.is_open(),
            Question::Page(page) => page.is_open(),
        }
    }

    /// Waits until the question is withdrawn.
    pub(crate) async fn withdrawn(&mut self) {
        match self {
            Question::Choice(choice) => choice.withdrawn().await,
            Question::Form(form) => form.withdrawn().await,
            Question::Page(page) => page.withdrawn().await,
        }
    }
}
