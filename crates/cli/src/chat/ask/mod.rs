//! Questions: what the agent, or our own guards, want to know from the user. One at a time is on the screen.
//!
//! PERM-12: several may be open at once; they wait in line. Each has an introduction, which goes up into the history in full,
//! and a few lines below that take the keys.

pub(crate) mod choice;
mod field;
pub(crate) mod form;
mod pattern;
pub(crate) mod url;

use std::time::Duration;

use attache::wire::v1::ElicitationId;
use crossterm::event::KeyEvent;

use self::choice::Choice;
use self::form::Form;
use self::url::Page;
use super::view::Canvas;
use attache_term::render::style::Line;

/// What a key did to a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// It looks different now.
    Changed,
    /// It is answered; these lines say how.
    Done(Vec<Line>),
    /// It is answered, and a page is to be opened.
    Open(String, Vec<Line>),
}

/// What a question looks like.
#[derive(Debug, Default)]
pub(crate) struct Face {
    pub(crate) lines: Vec<Line>,
    /// Where text is entered.
    pub(crate) cursor: Option<(usize, usize)>,
}

#[derive(Debug)]
pub(crate) enum Question {
    Choice(Box<Choice>),
    Form(Box<Form>),
    Page(Box<Page>),
}

impl Question {
    /// What it is about, in full.
    pub(crate) fn intro(&self, canvas: &Canvas) -> Vec<Line> {
        match self {
            Question::Choice(choice) => choice.intro(canvas),
            Question::Form(form) => form.intro(canvas),
            Question::Page(page) => page.intro(canvas),
        }
    }

    /// Keys are shown when they work: `ready`.
    pub(crate) fn face(&self, canvas: &Canvas, ready: bool) -> Face {
        match self {
            Question::Choice(choice) => choice.face(canvas, ready),
            Question::Form(form) => form.face(canvas, ready),
            Question::Page(page) => page.face(canvas, ready),
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, canvas: &Canvas) -> Step {
        match self {
            Question::Choice(choice) => choice.key(key, canvas),
            Question::Form(form) => form.key(key, canvas),
            Question::Page(page) => page.key(key, canvas),
        }
    }

    /// Whether it is the one of this id.
    pub(crate) fn is(&self, id: &ElicitationId) -> bool {
        matches!(self, Question::Page(page) if page.is(id))
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Question::Form(form) = self {
            form.paste(text);
        }
    }

    /// Nobody has answered in time.
    pub(crate) fn expire(&mut self) {
        if let Question::Choice(choice) = self {
            choice.expire();
        }
    }

    /// How long it may stand.
    pub(crate) fn limit(&self) -> Option<Duration> {
        match self {
            Question::Choice(choice) => choice.limit(),
            Question::Form(_) | Question::Page(_) => None,
        }
    }

    /// Whether somebody still waits for the answer.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Question::Choice(choice) => choice.is_open(),
            Question::Form(form) => form.is_open(),
            Question::Page(page) => page.is_open(),
        }
    }

    /// Waits until nobody wants the answer any more.
    pub(crate) async fn withdrawn(&mut self) {
        match self {
            Question::Choice(choice) => choice.withdrawn().await,
            Question::Form(form) => form.withdrawn().await,
            Question::Page(page) => page.withdrawn().await,
        }
    }
}
