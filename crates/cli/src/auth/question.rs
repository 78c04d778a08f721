//! Questions of an agent during a login: pages to visit, forms to fill in.

use attache::client::{ElicitationAsk, RequestedInput};

use super::ask;
use crate::cx::Cx;
use crate::error::Result;
use crate::forms::{self, Outcome, Person, clean};

/// Asks the user. Without a terminal, `--yes` agrees to pages, which are shown.
pub(super) async fn answer(cx: &Cx, agent: &str, question: ElicitationAsk) -> Result<()> {
    let page = match question.requested() {
        Some(RequestedInput::Url { url, .. }) => Some(clean(url)),
        _ => None,
    };
    let outcome = match page {
        Some(url) if cx.flags.auth.yes || !ask::can_ask() => {
            cx.output.tell(format_args!("{agent} asks: {}\n  {url}", clean(question.message())));
            if cx.flags.auth.yes {
                Outcome::Agreed
            } else {
                cx.output.tell("not a terminal, so the page is not visited; --yes agrees in advance");
                Outcome::Cancelled
            }
        }
        None if !ask::can_ask() => {
            cx.output.tell(format_args!("{agent} asks: {}", clean(question.message())));
            cx.output.tell("not a terminal; log in from one");
            Outcome::Cancelled
        }
        _ => {
            let mut person = Here { cx, failure: None };
            let outcome = forms::ask(&mut person, agent, &question).await;
            if let Some(failure) = person.failure {
                return Err(failure);
            }
            outcome
        }
    };
    outcome.send(question);
    Ok(())
}

/// The user at this terminal.
struct Here<'a> {
    cx: &'a Cx,
    /// The error of the terminal, or an interruption.
    failure: Option<crate::error::Failure>,
}

impl Person for Here<'_> {
    async fn tell(&mut self, text: &str) {
        self.cx.output.tell(text);
    }

    async fn pause(&mut self) {
        crate::output::wait_unanswered().await;
    }

    async fn line(&mut self, question: &str) -> Option<String> {
        match ask::line(question).await {
            Ok(line) => line,
            Err(failure) => {
                self.failure = Some(failure);
                None
            }
        }
    }

    async fn open(&mut self, url: &str) {
        if let Err(program) = forms::open(url) {
            self.cx.output.tell(format_args!("`{program}` cannot be started; open the page yourself"));
        }
    }
}
