//! Calls for the user, who may look at another window: bell, desktop notice, window title.

use std::time::{Duration, Instant};

use attache_term::screen::{Alert, Desktop};

/// What is used to call the user.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    bell: bool,
    desktop: Option<Desktop>,
    /// A shorter turn ends without a call: its user is still there.
    after: Duration,
    title: bool,
    alert: Option<Alert>,
}

impl Attention {
    /// Reads the settings `notify`, `notify_after` and `title`.
    pub(crate) fn new(notify: &str, after: Duration, title: bool) -> Attention {
        let (bell, desktop) = match notify {
            "auto" => (true, Desktop::of_terminal()),
            "bell" => (true, None),
            "osc9" => (false, Some(Desktop::Osc9)),
            "osc777" => (false, Some(Desktop::Osc777)),
            _ => (false, None),
        };
        Attention { bell, desktop, after, title, alert: None }
    }

    /// The agent asks something.
    pub(crate) fn asks(&mut self, agent: &str) {
        self.call(format!("{agent} asks you"));
    }

    /// A turn has ended.
    pub(crate) fn done(&mut self, since: Instant, well: bool, agent: &str) {
        if since.elapsed() >= self.after {
            self.call(if well { format!("{agent} is done") } else { format!("{agent} failed") });
        }
    }

    fn call(&mut self, text: String) {
        if self.bell || self.desktop.is_some() {
            self.alert = Some(Alert { text, bell: self.bell, desktop: self.desktop });
        }
    }

    pub(crate) fn take(&mut self) -> Option<Alert> {
        self.alert.take()
    }

    /// Whether the title of the window is set.
    pub(crate) fn has_title(&self) -> bool {
        self.title
    }
}
