//! A progress line on stderr that is redrawn in place.

use super::channel::Channel;
use super::surface::Surface;
use crate::render::style::Line;

/// A progress line on a terminal. It is erased on drop.
#[derive(Debug)]
pub struct StatusLine {
    channel: Channel,
    drawn: bool,
}

impl StatusLine {
    /// `None` if stderr is not a terminal.
    pub fn new(stderr: Surface) -> Option<StatusLine> {
        stderr.terminal.then(|| StatusLine { channel: Channel::new(stderr), drawn: false })
    }

    /// Draws a text in place of the one before.
    pub fn show(&mut self, text: &str) {
        self.drawn = true;
        self.channel.replace(&Line::from(text));
        let _ = self.channel.write();
    }

    /// Erases the line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.channel.replace(&Line::new());
            let _ = self.channel.write();
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}
