//! Backpressure for a server that floods us.
//!
//! The service behind the transport starts a task for every request and notification. So unused
//! notifications are dropped here, and requests are received only while few are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;

use super::limits::{DROPPED_IN_A_ROW, OPEN_REQUESTS};

/// A transport with a bound on open requests.
pub(super) struct Bounded<T> {
    inner: T,
    open: Arc<OpenRequests>,
}

/// The server's open requests.
#[derive(Default)]
struct OpenRequests {
    count: AtomicUsize,
    fewer: Notify,
}

impl OpenRequests {
    async fn wait_for_room(&self) {
        loop {
            let fewer = self.fewer.notified();
            if self.count.load(Ordering::Acquire) < OPEN_REQUESTS {
                return;
            }
            fewer.await;
        }
    }
}

/// Counts a response when it is written or dropped.
struct ResponseGuard(Option<Arc<OpenRequests>>);

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            let less = |count: usize| Some(count.saturating_sub(1));
            let _ = open.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
            open.fewer.notify_one();
        }
    }
}

impl<T> Bounded<T> {
    pub(super) fn new(inner: T) -> Self {
        Bounded { inner, open: Arc::default() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let is_response = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let guard = ResponseGuard(is_response.then(|| self.open.clone()));
        let sent = self.inner.send(item);
        async move {
            let _guard = guard;
            sent.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut dropped = 0;
        loop {
            self.open.wait_for_room().await;
            let message = self.inner.receive().await?;
            match &message {
                JsonRpcMessage::Request(_) => drop(self.open.count.fetch_add(1, Ordering::AcqRel)),
                JsonRpcMessage::Notification(message)
                    if !matches!(message.notification, ServerNotification::CancelledNotification(_)) =>
                {
                    dropped += 1;
                    if dropped % DROPPED_IN_A_ROW == 0 {
                        tokio::task::yield_now().await;
                    }
                    continue;
                }
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use rmcp::model::{ClientResult, RequestId};
    use serde_json::json;

    use super::*;

    /// A server that sends requests without end.
    struct Flood(i64);

    impl Transport<RoleClient> for Flood {
        type Error = std::convert::Infallible;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            self.0 += 1;
            let notification = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } });
            let request = json!({ "jsonrpc": "2.0", "id": self.0, "method": "ping" });
            serde_json::from_value(if self.0 % 1000 == 0 { request } else { notification }).ok()
        }

        async fn close(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    fn receive(bounded: &mut Bounded<Flood>) -> Option<RequestId> {
        // Long runs of notifications yield now and then.
        for _ in 0..1000 {
            match pin!(bounded.receive()).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(JsonRpcMessage::Request(request))) => return Some(request.id),
                Poll::Ready(other) => panic!("{other:?}"),
                Poll::Pending => {}
            }
        }
        None
    }

    #[tokio::test]
    async fn requests_are_received_while_few_are_open() {
        let mut bounded = Bounded::new(Flood(0));
        let asked: Vec<RequestId> = (0..OPEN_REQUESTS).map(|_| receive(&mut bounded).unwrap()).collect();
        assert_eq!(receive(&mut bounded), None);
        let answer =
            |id: &RequestId| TxJsonRpcMessage::<RoleClient>::response(ClientResult::empty(()), id.clone());
        bounded.send(answer(&asked[0])).await.unwrap();
        assert!(receive(&mut bounded).is_some());
        assert_eq!(receive(&mut bounded), None);
        // A dropped response makes room too.
        drop(bounded.send(answer(&asked[1])));
        assert!(receive(&mut bounded).is_some());
        assert_eq!(receive(&mut bounded), None);
    }
}
