//! The writing half of a socket: lines become frames.

use super::{BATCH, Socket};
use crate::ws::closer::Closer;
use crate::ws::frame::{self, Close, Header, MAX_CONTROL, MAX_HEADER, Opcode};
use crate::ws::wakers::Half;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Appends a control frame.
    pub(super) fn queue(&mut self, opcode: Opcode, payload: &[u8]) {
        if self.close_sent {
            return;
        }
        let header =
            Header { is_final: true, opcode, mask: self.keys.next(self.role), len: payload.len() as u64 };
        append(&mut self.output, &header, payload);
    }

    pub(super) fn queue_close(&mut self, code: u16, reason: &str) {
        let mut payload = code.to_be_bytes().to_vec();
        for c in reason.chars() {
            if payload.len() + c.len_utf8() > MAX_CONTROL {
                break;
            }
            payload.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.queue(Opcode::Close, &payload);
        self.close_sent = true;
    }

    /// Encodes lines as frames. Returns the number of bytes that were taken.
    pub(super) fn encode(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() && self.output.len() < BATCH {
            let piece = rest.get(..self.settings.frame).unwrap_or(rest);
            let (payload, is_final) = match memchr::memchr(b'\n', piece) {
                Some(end) => (piece.get(..end).unwrap_or_default(), true),
                None => (piece, false),
            };
            rest = rest.get(payload.len() + usize::from(is_final)..).unwrap_or_default();
            // A frame limit right before the line feed leaves an empty last frame, which is valid.
            let opcode = if self.continues { Opcode::Continuation } else { Opcode::Text };
            let header =
                Header { is_final, opcode, mask: self.keys.next(self.role), len: payload.len() as u64 };
            self.continues = !is_final;
            append(&mut self.output, &header, payload);
        }
        bytes.len() - rest.len()
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.close_sent {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "the WebSocket is closed")));
        }
        if self.output.len() >= BATCH {
            ready!(self.poll_output(cx, Half::Writer))?;
        }
        Poll::Ready(Ok(self.encode(bytes)))
    }

    /// Writes all frames to the socket.
    pub(super) fn poll_output(&mut self, cx: &Context<'_>, half: Half) -> Poll<io::Result<()>> {
        if self.written < self.output.len() {
            self.writers.register(half, cx);
            let mut cx = Context::from_waker(&self.writers_waker);
            while let Some(rest) = self.output.get(self.written..)
                && !rest.is_empty()
            {
                match ready!(Pin::new(&mut self.io).poll_write(&mut cx, rest)) {
                    Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Ok(count) => self.written += count,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }
        self.written = 0;
        self.output.clear();
        if self.output.capacity() > 2 * BATCH {
            self.output = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what the reader has queued, as far as the socket takes it. An error is left to the
    /// writer: there may still be something to read.
    pub(super) fn send_now(&mut self, cx: &mut Context<'_>) {
        if self.output.is_empty() {
            return;
        }
        if let Poll::Ready(Ok(())) = self.poll_output(cx, Half::Reader) {
            let _ = Pin::new(&mut self.io).poll_flush(cx);
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_output(cx, Half::Writer))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.close_sent {
            let end = self.closer.as_ref().and_then(Closer::end);
            let end = end.unwrap_or(Close { code: 1000, reason: String::new() });
            self.queue_close(end.code, &end.reason);
        }
        ready!(self.poll_flush(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

fn append(out: &mut Vec<u8>, header: &Header, payload: &[u8]) {
    out.reserve(MAX_HEADER + payload.len());
    frame::write_header(out, header);
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(mask) = header.mask {
        frame::apply_mask(out.get_mut(start..).unwrap_or_default(), mask, 0);
    }
}
