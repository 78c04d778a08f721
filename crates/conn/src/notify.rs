//! A notification that waits for room.

use crate::CallError;
use crate::shared::{Over, Shared, is_over, wake};
use attache_rpc::RequestError;
use serde::Serialize;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tracing::trace;

/// A producer yields each time it has filled this many bytes, however much room there is.
const STREAK: usize = 128 << 10;

/// A notification on its way into the write buffer. It is encoded when there is room. Once it was
/// polled with room it is sent, even if the future is dropped.
#[must_use = "a notification is sent when it is awaited"]
pub struct Notify<'a, P: ?Sized> {
    shared: &'a Shared,
    method: &'a str,
    params: &'a P,
    over: Over<'a>,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    Fresh,
    Parked(u64),
    Written,
}

impl<'a, P: Serialize + ?Sized> Notify<'a, P> {
    pub(crate) fn new(shared: &'a Shared, method: &'a str, params: &'a P, over: Over<'a>) -> Self {
        Notify { shared, method, params, over, stage: Stage::Fresh }
    }

    fn poll_write(&mut self, cx: &Context<'_>) -> Poll<Result<(), CallError>> {
        let shared = self.shared;
        let mut state = shared.lock();
        let ticket = match self.stage {
            Stage::Written => return Poll::Ready(Ok(())),
            Stage::Parked(ticket) => Some(ticket),
            Stage::Fresh => None,
        };
        if let Some(closed) = shared.send_refusal(&state) {
            return Poll::Ready(Err(CallError::Closed(closed)));
        }
        let is_first = match ticket {
            Some(ticket) => state.room.is_first(ticket),
            None => state.room.is_empty(),
        };
        if !is_first || state.out.len() >= shared.limits.write_buffer {
            self.stage = Stage::Parked(state.room.park(ticket, cx.waker()));
            return Poll::Pending;
        }
        if is_over(self.over) {
            return Poll::Ready(Err(CallError::Withdrawn));
        }
        if let Some(ticket) = ticket {
            state.room.leave(ticket);
        }
        self.stage = Stage::Written;
        let before = state.out.len();
        let state_ref = &mut *state;
        let written = state_ref.machine.notify(self.method, self.params, &mut state_ref.out);
        let bytes = state.out.len().saturating_sub(before);
        let yields = before / STREAK != state.out.len() / STREAK;
        let next = if state.out.len() < shared.limits.write_buffer { state.room.first() } else { None };
        let driver = state.writer_to_wake();
        drop(state);
        wake(driver);
        wake(next);
        trace!(method = self.method, bytes, "notification sent");
        match written {
            Err(error) => Poll::Ready(Err(CallError::Encode(RequestError::Encode(error)))),
            Ok(()) if yields => {
                // A plain loop of notifications never finds a full buffer while the writer keeps
                // up, so it would never let other tasks run.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(()) => Poll::Ready(Ok(())),
        }
    }
}

impl<P: Serialize + ?Sized> Future for Notify<'_, P> {
    type Output = Result<(), CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_write(cx)
    }
}

impl<P: ?Sized> Drop for Notify<'_, P> {
    fn drop(&mut self) {
        if let Stage::Parked(ticket) = self.stage {
            let next = {
                let mut state = self.shared.lock();
                state.room.leave(ticket);
                // A wake that was meant for this one goes to the next.
                if state.out.len() < self.shared.limits.write_buffer { state.room.first() } else { None }
            };
            wake(next);
        }
    }
}

impl<P: ?Sized> fmt::Debug for Notify<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notify").field("method", &self.method).finish_non_exhaustive()
    }
}
