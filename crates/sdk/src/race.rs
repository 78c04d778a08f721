//! Races two futures.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// The output of the future that ended first.
pub(crate) enum First<A, B> {
    Left(A),
    Right(B),
}

/// Runs both futures until one ends. The left one is polled first, so that a result is never lost
/// to a cancellation that is ready too. Pass large futures pinned: by value they are moved twice.
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
