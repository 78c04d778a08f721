//! Blocking streams with a thread each, with a bounded hand-over: for files, terminals and
//! platforms where standard streams cannot be polled.
//!
//! The threads are ours and not those of the runtime, whose shutdown would wait for a read that
//! never returns.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of one chunk.
const CHUNK: usize = 64 << 10;

/// Reads `input` on a separate thread.
pub(crate) fn reader(mut input: impl Read + Send + 'static) -> impl AsyncRead + Send + Unpin {
    let slot = Slot::shared();
    let theirs = Arc::clone(&slot);
    spawn(&slot, "attache-stdin", move || {
        let mut chunk = vec![0; CHUNK];
        loop {
            match input.read(&mut chunk) {
                Ok(0) => return theirs.end(Ok(())),
                Ok(count) => {
                    if !theirs.give(chunk.get(..count).unwrap_or_default()) {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return theirs.end(Err(error)),
            }
        }
    });
    ThreadReader(slot)
}

/// Writes `output` on a separate thread.
pub(crate) fn writer(mut output: impl Write + Send + 'static) -> impl AsyncWrite + Send + Unpin {
    let slot = Slot::shared();
    let theirs = Arc::clone(&slot);
    spawn(&slot, "attache-stdout", move || {
        let mut chunk = Vec::new();
        while theirs.take(&mut chunk) {
            if let Err(error) = output.write_all(&chunk).and_then(|()| output.flush()) {
                return theirs.end(Err(error));
            }
        }
    });
    ThreadWriter(slot)
}

fn spawn(slot: &Slot, name: &str, body: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name(name.to_owned()).spawn(body) {
        slot.end(Err(error));
    }
}

/// One chunk between a thread and a task.
struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    chunk: Vec<u8>,
    /// The chunk was taken by the writing thread and is not written yet.
    writing: bool,
    /// How far the task has read into the chunk.
    read: usize,
    /// The thread is done, for this reason.
    end: Option<io::Result<()>>,
    /// The task is gone.
    abandoned: bool,
    waker: Option<Waker>,
}

impl Slot {
    fn shared() -> Arc<Slot> {
        Arc::new(Slot { state: Mutex::default(), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(
        &self,
        state: MutexGuard<'s, State>,
        until: impl Fn(&State) -> bool,
    ) -> MutexGuard<'s, State> {
        self.changed.wait_while(state, |state| !until(state)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Reading thread: hands over `bytes` and waits until they are taken. `false`: the task is
    /// gone.
    fn give(&self, bytes: &[u8]) -> bool {
        let mut state = self.lock();
        state.chunk.clear();
        state.chunk.extend_from_slice(bytes);
        state.read = 0;
        wake(&mut state);
        let state = self.wait(state, |state| state.abandoned || state.read == state.chunk.len());
        !state.abandoned
    }

    /// Writing thread: the chunk before is written; waits for the next one. `false`: there will be
    /// none.
    fn take(&self, chunk: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        state.writing = false;
        wake(&mut state);
        let mut state = self.wait(state, |state| state.abandoned || !state.chunk.is_empty());
        chunk.clear();
        std::mem::swap(chunk, &mut state.chunk);
        state.writing = !chunk.is_empty();
        state.writing
    }

    fn end(&self, how: io::Result<()>) {
        let mut state = self.lock();
        state.end = Some(how);
        state.writing = false;
        wake(&mut state);
    }

    fn abandon(&self) {
        self.lock().abandoned = true;
        self.changed.notify_all();
    }
}

fn wake(state: &mut State) {
    if let Some(waker) = state.waker.take() {
        waker.wake();
    }
}

struct ThreadReader(Arc<Slot>);

impl AsyncRead for ThreadReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        let rest = state.chunk.get(state.read..).unwrap_or_default();
        if !rest.is_empty() {
            let count = rest.len().min(buffer.remaining());
            buffer.put_slice(rest.get(..count).unwrap_or_default());
            state.read += count;
            self.0.changed.notify_all();
            return Poll::Ready(Ok(()));
        }
        match state.end.take() {
            Some(end) => {
                state.end = Some(Ok(()));
                Poll::Ready(end)
            }
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for ThreadReader {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

struct ThreadWriter(Arc<Slot>);

impl ThreadWriter {
    /// Whether the thread has written everything; its error is returned once, and "broken pipe"
    /// after that.
    fn poll_idle(&self, cx: &Context<'_>) -> Poll<io::Result<MutexGuard<'_, State>>> {
        let mut state = self.0.lock();
        if let Some(end) = state.end.take() {
            state.end = Some(Ok(()));
            return Poll::Ready(Err(end.err().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())));
        }
        if state.writing || !state.chunk.is_empty() {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(state))
    }
}

impl AsyncWrite for ThreadWriter {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = std::task::ready!(self.poll_idle(cx))?;
        let count = bytes.len().min(CHUNK);
        state.chunk.extend_from_slice(bytes.get(..count).unwrap_or_default());
        self.0.changed.notify_all();
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_idle(cx).map_ok(drop)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl Drop for ThreadWriter {
    fn drop(&mut self) {
        // The thread writes the slot and then ends.
        self.0.abandon();
    }
}
