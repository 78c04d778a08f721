//! Forwards protocol lines of another program to stdout.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncWrite, Stdout};

use super::channel::Channel;
use super::surface::{Stream, Surface};
use crate::render::filter;

/// Forwards bytes to stdout. On a terminal the same JSON is shown with its control characters
/// escaped, and no line begins like one of the program.
#[derive(Debug)]
pub struct Relay {
    stdout: Stdout,
    channel: Channel,
    /// The first bytes of an incomplete character.
    part: Vec<u8>,
    /// Bytes to write, from `at` on.
    ready: Vec<u8>,
    at: usize,
}

impl Relay {
    /// A relay to stdout.
    pub fn stdout() -> Relay {
        Relay::on(Surface::plain(Stream::Stdout))
    }

    fn on(surface: Surface) -> Relay {
        let channel = Channel::new(surface);
        Relay { stdout: tokio::io::stdout(), channel, part: Vec::new(), ready: Vec::new(), at: 0 }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.part.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.part);
        let chunks: Vec<_> = bytes.utf8_chunks().collect();
        for (number, chunk) in chunks.iter().enumerate() {
            for line in chunk.valid().split_inclusive('\n') {
                let text = line.trim_end_matches(['\r', '\n']);
                self.channel.foreign(&filter::json(text));
                self.channel.foreign(if line.ends_with('\n') { "\n" } else { "" });
            }
            let cut = number + 1 == chunks.len() && is_cut(chunk.invalid());
            match chunk.invalid() {
                [] => {}
                invalid if cut => self.part = invalid.to_vec(),
                _ => self.channel.foreign("\u{fffd}"),
            }
        }
        self.channel.take_bytes(&mut self.ready);
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.ready.get(self.at..).filter(|rest| !rest.is_empty()) {
            self.at += ready!(Pin::new(&mut self.stdout).poll_write(cx, rest))?;
        }
        self.ready.clear();
        self.at = 0;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Relay {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !self.channel.surface().terminal {
            return Pin::new(&mut self.stdout).poll_write(cx, bytes);
        }
        ready!(self.poll_ready(cx))?;
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(cx))?;
        Pin::new(&mut self.stdout).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(cx))?;
        Pin::new(&mut self.stdout).poll_shutdown(cx)
    }
}

/// Returns whether these bytes are the beginning of a character.
fn is_cut(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_terminal_gets_json_without_controls_however_it_is_cut() {
        let line = "{\"a\u{9b}é\u{202e}\":1}\r\n\x1b[2Jno json\n\u{1f600}\n".as_bytes();
        let mut broken = line.to_vec();
        broken.extend_from_slice(b"\xff\xc3");
        for size in 1..broken.len() {
            let mut relay = Relay::on(Surface { stream: Stream::Stdout, terminal: true, colours: false });
            broken.chunks(size).for_each(|chunk| relay.take(chunk));
            let text = String::from_utf8_lossy(&relay.ready).into_owned();
            assert_eq!(text, "{\"a\\u009bé\\u202e\":1}\n\\u001b[2Jno json\n\u{1f600}\n\u{fffd}");
        }
    }
}
