//! Two futures, and the first one to end wins.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Who was first.
pub(crate) enum First<A, B> {
    Left(A),
    Right(B),
}

/// Polls the left one first, so that a result that is there is never lost to a cancellation that is there too.
///
/// A future that is passed by value is moved twice and held twice over; large ones are better passed pinned.
pub(crate) async fn race<A: Future, B: Future>(left: A, right: B) -> First<A::Output, B::Output> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    poll_fn(|cx| {
        if let Poll::Ready(value) = left.as_mut().poll(cx) {
            return Poll::Ready(First::Left(value));
        }
        right.as_mut().poll(cx).map(First::Right)
    })
    .await
}
