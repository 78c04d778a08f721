//! Lines in both directions. Reads while it writes, so that two peers with full pipes do not
//! deadlock.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::trace::LineEnd;

/// The most bytes that a peer may send in one scenario.
const LIMIT: usize = 512 << 20;
/// The most lines: each is kept, and a short one takes far more memory than its bytes.
const LINES: usize = 100_000;

pub(super) struct Wire {
    reader: Box<dyn AsyncRead + Unpin>,
    writer: Option<Box<dyn AsyncWrite + Unpin>>,
    buffer: Vec<u8>,
    /// The length of `buffer` that was searched for a line feed.
    searched: usize,
    total: usize,
    lines: usize,
    /// The start of a line that was sent without its end.
    unsent: Vec<u8>,
    ended: bool,
}

/// Input from the peer.
pub(super) enum Incoming {
    /// Lines, each with its end.
    Lines(Vec<(Vec<u8>, LineEnd)>),
    /// End of the stream.
    End,
}

impl Wire {
    pub(super) fn new(reader: Box<dyn AsyncRead + Unpin>, writer: Box<dyn AsyncWrite + Unpin>) -> Wire {
        Wire {
            reader,
            writer: Some(writer),
            buffer: Vec::new(),
            searched: 0,
            total: 0,
            lines: 0,
            unsent: Vec::new(),
            ended: false,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Closes the output. Returns `false` if it was closed already.
    pub(super) fn close(&mut self) -> bool {
        self.writer.take().is_some()
    }

    /// The lines that end in `bytes`, which are about to be sent.
    pub(super) fn sent(&mut self, bytes: &[u8]) -> Vec<(Vec<u8>, LineEnd)> {
        self.unsent.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(place) = self.unsent.iter().position(|byte| *byte == b'\n') {
            let rest = self.unsent.split_off(place + 1);
            lines.push(without_end(std::mem::replace(&mut self.unsent, rest)));
        }
        lines
    }

    /// Writes some of `bytes` or reads something, whichever is possible first. Cancel safe.
    pub(super) async fn turn(&mut self, bytes: &[u8]) -> io::Result<(usize, Option<Incoming>)> {
        let Wire { reader, writer, buffer, ended, .. } = self;
        let Some(writer) = writer else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let count = tokio::select! {
            biased;
            written = writer.write(bytes) => return written.map(|count| (count, None)),
            count = reader.read_buf(buffer), if !*ended => count?,
        };
        Ok((0, Some(self.came(count)?)))
    }

    /// Flushes the output. Cancel safe.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Some(writer) => writer.flush().await,
            None => Ok(()),
        }
    }

    /// Waits for input. Cancel safe.
    pub(super) async fn read(&mut self) -> io::Result<Incoming> {
        if self.ended {
            return Ok(Incoming::End);
        }
        self.buffer.reserve(64 << 10);
        let count = self.reader.read_buf(&mut self.buffer).await?;
        self.came(count)
    }

    fn came(&mut self, count: usize) -> io::Result<Incoming> {
        self.total += count;
        if self.total > LIMIT || self.lines > LINES {
            return Err(io::Error::other("the peer does not stop talking"));
        }
        if count == 0 {
            self.ended = true;
            if self.buffer.is_empty() {
                return Ok(Incoming::End);
            }
            return Ok(Incoming::Lines(vec![(std::mem::take(&mut self.buffer), LineEnd::Open)]));
        }
        let mut lines = Vec::new();
        let mut start = 0;
        while let Some(place) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + place + 1;
            lines.push(without_end(self.buffer[start..end].to_vec()));
            start = end;
            self.searched = end;
        }
        self.lines += lines.len();
        self.buffer.drain(..start);
        self.searched = self.buffer.len();
        Ok(Incoming::Lines(lines))
    }
}

fn without_end(mut line: Vec<u8>) -> (Vec<u8>, LineEnd) {
    line.pop();
    if line.last() == Some(&b'\r') {
        line.pop();
        return (line, LineEnd::CrLf);
    }
    (line, LineEnd::Lf)
}
