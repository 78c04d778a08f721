//! One waker for two tasks.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// The tasks that wait until the socket can be written. A socket remembers one of them, but both
/// halves write: the writer its frames, the reader its pongs. Both are woken.
#[derive(Debug, Default)]
pub(super) struct Writers {
    wakers: Mutex<[Option<Waker>; 2]>,
}

/// The half that writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Half {
    Reader,
    Writer,
}

impl Writers {
    pub(super) fn register(&self, half: Half, cx: &Context<'_>) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        let [reader, writer] = &mut *wakers;
        let slot = match half {
            Half::Reader => reader,
            Half::Writer => writer,
        };
        if !slot.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *slot = Some(cx.waker().clone());
        }
    }
}

impl Wake for Writers {
    fn wake(self: Arc<Self>) {
        let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let [reader, writer] = wakers;
        // Both halves usually belong to one task, which needs one wake.
        match (reader, writer) {
            (Some(reader), Some(writer)) if reader.will_wake(&writer) => writer.wake(),
            (reader, writer) => [reader, writer].into_iter().flatten().for_each(Waker::wake),
        }
    }
}
