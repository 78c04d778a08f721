//! Notifications, which wait for room.

use crate::shared::{Shared, wake};
use crate::{CallError, Peer};
use attache_rpc::RequestError;
use serde::Serialize;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// After so many bytes in a row a producer lets others run, however much room there is.
const STREAK: usize = 128 << 10;

/// A notification on its way into the write buffer. It is not encoded before there is room for it, and it is sent
/// once the future was polled with room, also if the future is dropped then.
#[must_use = "a notification is sent when it is awaited"]
pub struct Notify<'a, P: ?Sized> {
    peer: &'a Peer,
    method: &'a str,
    params: &'a P,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    Fresh,
    Parked(u64),
    Written,
}

impl<'a, P: Serialize + ?Sized> Notify<'a, P> {
    pub(crate) fn new(peer: &'a Peer, method: &'a str, params: &'a P) -> Self {
        Notify { peer, method, params, stage: Stage::Fresh }
    }

    fn poll_write(&mut self, cx: &Context<'_>) -> Poll<Result<(), CallError>> {
        let shared: &Shared = self.peer.shared();
        let mut state = shared.lock();
        let ticket = match self.stage {
            Stage::Written => return Poll::Ready(Ok(())),
            Stage::Parked(ticket) => Some(ticket),
            Stage::Fresh => None,
        };
        if let Some(closed) = shared.refusal(&state) {
            return Poll::Ready(Err(CallError::Closed(closed)));
        }
        let turn = match ticket {
            Some(ticket) => state.room.is_first(ticket),
            None => state.room.is_empty(),
        };
        if !turn || state.out.len() >= shared.limits.outgoing {
            self.stage = Stage::Parked(state.room.park(ticket, cx.waker()));
            return Poll::Pending;
        }
        if let Some(ticket) = ticket {
            state.room.leave(ticket);
        }
        self.stage = Stage::Written;
        let before = state.out.len();
        let state_ref = &mut *state;
        let written = state_ref.machine.notify(self.method, self.params, &mut state_ref.out);
        let tired = before / STREAK != state.out.len() / STREAK;
        let next = if state.out.len() < shared.limits.outgoing { state.room.first() } else { None };
        let driver = state.rouse_if_asleep();
        drop(state);
        wake(driver);
        wake(next);
        match written {
            Err(error) => Poll::Ready(Err(CallError::Encode(RequestError::Encode(error)))),
            Ok(()) if tired => {
                // A plain loop of notifications never finds a full buffer while the writer keeps up; it would keep its thread
                // for itself.
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
                let mut state = self.peer.shared().lock();
                state.room.leave(ticket);
                // The wake that was meant for this one goes to the next.
                if state.out.len() < self.peer.shared().limits.outgoing { state.room.first() } else { None }
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
