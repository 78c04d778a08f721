//! State that the handlers of one connection share.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use attache_conn::{CancelToken, IncomingRequest, Peer, Responder};
use attache_rpc::ErrorObject;
use attache_wire::Request;
use attache_wire::v1::{ConfigOptionUpdate, SessionUpdate};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use super::builder::{Services, Start};
use super::client::{ClientHandle, ClientInfo};
use super::options;
use super::record::Recorder;
use super::session::BoxFuture;
use super::table::{SessionEntry, SessionTable};
use crate::race::{First, race};
use crate::report::ErrorReporter;
use crate::task::catch;
use crate::task::lock;
use crate::{Error, Result, SessionId};

pub(super) struct Core {
    pub(super) peer: Peer,
    pub(super) services: Services,
    pub(super) errors: ErrorReporter,
    pub(super) sessions: SessionTable,
    #[cfg(feature = "drafts")]
    pub(super) nes: super::drafts::NesTable,
    pub(super) logged_in: AtomicBool,
    client: Mutex<Option<ClientHandle>>,
    /// `Here` on a runtime with one thread, where a task would block the reader just as long.
    pub(super) start: Start,
    tasks: Tasks,
}

/// The running handlers.
#[derive(Default)]
struct Tasks {
    count: AtomicUsize,
    ended: Notify,
    /// Ends all of them.
    abort: CancelToken,
}

/// Responds with the result of a handler.
pub(super) type Answer = Box<dyn FnOnce(Responder) + Send>;

impl Core {
    pub(super) fn new(peer: Peer, services: Services) -> Arc<Self> {
        let logged_in = services.auth.as_ref().is_none_or(|auth| auth.is_logged_in());
        let errors = ErrorReporter::new(services.on_error.clone(), peer.clone());
        Arc::new(Core {
            peer,
            services,
            errors,
            sessions: SessionTable::default(),
            #[cfg(feature = "drafts")]
            nes: Default::default(),
            logged_in: AtomicBool::new(logged_in),
            client: Mutex::new(None),
            start: match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
                Ok(RuntimeFlavor::CurrentThread) => Start::Here,
                _ => Start::Task,
            },
            tasks: Tasks::default(),
        })
    }

    /// The client, after `initialize`.
    pub(super) fn client(&self) -> Option<ClientHandle> {
        lock(&self.client).clone()
    }

    pub(super) fn set_client(&self, hello: ClientInfo) {
        let recorder = self.services.record.clone().map(Recorder::new);
        *lock(&self.client) = Some(ClientHandle::new(self.peer.clone(), hello, recorder));
    }

    pub(super) fn is_v2(&self) -> bool {
        self.client().is_some_and(|client| client.is_v2())
    }

    // AUTH-05: without a login, sessions are refused.
    pub(super) fn is_logged_in(&self) -> bool {
        self.logged_in.load(Ordering::Acquire)
    }

    pub(super) fn session(&self, id: &SessionId) -> Result<Arc<SessionEntry>> {
        self.sessions.get(id).ok_or_else(|| Error::unknown_session(id.as_str()))
    }

    /// Polls a handler once in the reader and returns its result, if it has one. Otherwise the
    /// caller [spawns](Self::spawn) it; its task polls again at once, so no wakeup is lost.
    ///
    /// Only on a runtime with one thread: most handlers have their result at once, and a task costs
    /// more than they do.
    pub(super) fn begin<T>(&self, handler: &mut BoxFuture<'static, T>) -> Option<T> {
        match self.start {
            Start::Here => match handler.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => Some(result),
                Poll::Pending => None,
            },
            Start::Task => None,
        }
    }

    /// Runs a handler in a task of its own.
    pub(super) fn spawn(
        self: &Arc<Self>,
        handler: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        // Boxed, so that the task is compiled once and small.
        let handler: BoxFuture<'static, ()> = Box::pin(handler);
        self.tasks.count.fetch_add(1, Ordering::AcqRel);
        let counted = TaskGuard(self.clone());
        tokio::spawn(async move {
            let abort = &counted.0.tasks.abort;
            race(handler, pin!(abort.cancelled())).await;
        })
    }

    /// Decodes a request and responds with the result of `handler`.
    pub(super) fn answer<R, F, Fut>(self: &Arc<Self>, request: IncomingRequest<'_>, handler: F)
    where
        R: Request,
        F: FnOnce(Arc<Core>, R) -> Fut,
        Fut: Future<Output = Result<R::Response>> + Send + 'static,
    {
        let session = request.method().starts_with("session/");
        let session = session.then(|| super::member(request.params_text(), "sessionId")).flatten();
        if let Some((request, responder)) = super::read::<R>(request, self.is_v2()) {
            let answering = handler(self.clone(), request);
            self.answer_later(Failing { method: R::METHOD, session }, responder, async move {
                let response = answering.await?;
                Ok(Box::new(move |responder: Responder| responder.ok(&response)) as Answer)
            });
        }
    }

    /// Responds with the result of a handler, from a task of its own unless the result is ready.
    // CANCEL-15, CANCEL-16: when the peer cancels the request, the handler is dropped and the
    // answer is `cancelled`.
    pub(super) fn answer_later(
        self: &Arc<Self>,
        failing: Failing,
        responder: Responder,
        answering: impl Future<Output = Result<Answer>> + Send + 'static,
    ) {
        // Boxed, so that the rest is compiled once.
        let mut answering: BoxFuture<'static, Result<Answer>> = Box::pin(answering);
        if let Some(outcome) = self.begin(&mut answering) {
            return self.settle(&failing, responder, outcome);
        }
        let core = self.clone();
        self.spawn(async move {
            let token = responder.cancellation();
            match race(answering, pin!(token.cancelled())).await {
                First::Left(outcome) => core.settle(&failing, responder, outcome),
                First::Right(()) => responder.err(ErrorObject::cancelled()),
            }
        });
    }

    fn settle(&self, failing: &Failing, responder: Responder, outcome: Result<Answer>) {
        match outcome {
            Ok(answer) => answer(responder),
            Err(error) => {
                responder.err(self.errors.respond(failing.method, failing.session.as_ref(), &error));
            }
        }
    }

    /// Ends a session that was removed from the table: cancels its turn, waits for the response,
    /// calls `closed`. Happens even if the returned future is dropped.
    pub(super) fn end(self: &Arc<Self>, entry: Arc<SessionEntry>) -> impl Future<Output = ()> + Send + use<> {
        entry.shut();
        let grace = self.services.cancel_grace;
        let ending = self.spawn(async move {
            entry.until_idle().await;
            entry.shared().end_background(grace).await;
            entry.shared().over.store(true, Ordering::SeqCst);
            // The panic hook has reported a panic.
            let _ = catch(entry.session.closed()).await;
        });
        async move {
            let _ = ending.await;
        }
    }

    /// Cancels all turns after the end of the connection, gives handlers time to end, then drops
    /// them.
    pub(super) async fn wind_down(self: &Arc<Self>, grace: Duration) {
        for entry in self.sessions.all() {
            entry.shut();
        }
        let _ = tokio::time::timeout(grace, self.until_no_tasks()).await;
        self.tasks.abort.cancel();
        // Handlers that block cannot be dropped and are left running.
        let _ = tokio::time::timeout(grace, self.until_no_tasks()).await;
        #[cfg(feature = "drafts")]
        if let Some(service) = &self.services.drafts.next_edits {
            self.nes.close_all(&**service);
        }
        let mut closing = JoinSet::new();
        for entry in self.sessions.take_all() {
            closing.spawn(async move { entry.session.closed().await });
        }
        let _ = tokio::time::timeout(grace, async { while closing.join_next().await.is_some() {} }).await;
    }

    /// Drops all handlers when `serve` is dropped.
    pub(super) fn abort_on_drop(&self) -> AbortOnDrop {
        AbortOnDrop(self.tasks.abort.clone())
    }

    async fn until_no_tasks(&self) {
        loop {
            let ended = self.tasks.ended.notified();
            if self.tasks.count.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// The request that an error belongs to.
pub(super) struct Failing {
    pub(super) method: &'static str,
    pub(super) session: Option<SessionId>,
}

struct TaskGuard(Arc<Core>);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if self.0.tasks.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.tasks.ended.notify_waiters();
        }
    }
}

pub(super) struct AbortOnDrop(CancelToken);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Core {
    /// Sends an update outside of a turn without waiting for room, for small updates that follow a
    /// request of the client.
    pub(super) fn send_update(&self, entry: &SessionEntry, update: SessionUpdate) {
        let Some(client) = self.client() else { return };
        // Version 2 has options only, which are reported as such.
        if client.is_v2() && matches!(update, SessionUpdate::CurrentModeUpdate(_)) {
            return;
        }
        self.peer.notify_now("session/update", &client.outgoing(&entry.id, &entry.ids, update));
        client.flush_records();
    }

    // CONF-16: sends the complete list after a change.
    pub(super) fn send_options(&self, entry: &SessionEntry, changed: bool) {
        let Some(client) = self.client().filter(|_| changed) else { return };
        let options = options::visible(entry.state().settings(), &client);
        if let Some(options) = options {
            self.send_update(entry, SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options)));
        }
    }
}
