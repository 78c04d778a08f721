//! What the handlers of one connection share.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_conn::{CancelToken, Peer, Responder};
use attache_rpc::ErrorObject;
use attache_wire::Request;
use attache_wire::v1::{ConfigOptionUpdate, SessionUpdate};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::builder::Services;
use super::client::{Client, Hello, Outgoing};
use super::nes::NesTable;
use super::options;
use super::table::{Entry, Table, lock};
use crate::race::{First, race};
use crate::{Error, Result, SessionId};

pub(super) struct Core {
    pub(super) peer: Peer,
    pub(super) services: Services,
    pub(super) sessions: Table,
    pub(super) nes: NesTable,
    pub(super) logged_in: AtomicBool,
    hello: Mutex<Option<Arc<Hello>>>,
    tasks: Tasks,
}

/// The handlers that are running.
#[derive(Default)]
struct Tasks {
    count: AtomicUsize,
    ended: Notify,
    /// Ends them all.
    abort: CancelToken,
}

impl Core {
    pub(super) fn new(peer: Peer, services: Services) -> Arc<Self> {
        let logged_in = services.auth.as_ref().is_none_or(|auth| auth.is_logged_in());
        Arc::new(Core {
            peer,
            services,
            sessions: Table::default(),
            nes: NesTable::default(),
            logged_in: AtomicBool::new(logged_in),
            hello: Mutex::new(None),
            tasks: Tasks::default(),
        })
    }

    /// The client, once it has said hello.
    pub(super) fn client(&self) -> Option<Client> {
        let hello = lock(&self.hello).clone()?;
        Some(Client { peer: self.peer.clone(), hello })
    }

    pub(super) fn greet(&self, hello: Hello) {
        *lock(&self.hello) = Some(Arc::new(hello));
    }

    /// AUTH-05: until somebody is logged in, sessions are refused.
    pub(super) fn check_login(&self) -> Result<()> {
        if self.logged_in.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Error::Refused(ErrorObject::auth_required()))
    }

    pub(super) fn session(&self, id: &SessionId) -> Result<Arc<Entry>> {
        self.sessions.get(id.as_str()).ok_or_else(|| super::unknown_session(id))
    }

    /// Runs a handler as a task of its own, so that it can wait for as long as it likes.
    pub(super) fn spawn(self: &Arc<Self>, handler: impl Future<Output = ()> + Send + 'static) {
        let core = self.clone();
        core.tasks.count.fetch_add(1, Ordering::AcqRel);
        tokio::spawn(async move {
            let _counted = Counted(core.clone());
            race(handler, core.tasks.abort.cancelled()).await;
        });
    }

    /// Reads a request and answers it with what a handler makes of it. CANCEL-15, CANCEL-16: when the peer cancels the
    /// request the handler is dropped and the answer is `cancelled`.
    pub(super) fn answer<R, F, Fut>(
        self: &Arc<Self>,
        params: Option<&RawValue>,
        responder: Responder,
        handler: F,
    ) where
        R: Request,
        F: FnOnce(Arc<Core>, R) -> Fut,
        Fut: Future<Output = Result<R::Response>> + Send + 'static,
    {
        match super::decode::<R>(params) {
            Err(error) => responder.err(error.to_wire()),
            Ok(request) => {
                let answering = handler(self.clone(), request);
                self.answer_later(responder, answering, |responder, response| responder.ok(&response));
            }
        }
    }

    /// Waits for a result in a task of its own and answers with it.
    pub(super) fn answer_later<T: Send + 'static>(
        self: &Arc<Self>,
        responder: Responder,
        answering: impl Future<Output = Result<T>> + Send + 'static,
        ok: impl FnOnce(Responder, T) + Send + 'static,
    ) {
        self.spawn(async move {
            let token = responder.cancellation();
            match race(answering, token.cancelled()).await {
                First::Left(Ok(response)) => ok(responder, response),
                First::Left(Err(error)) => responder.err(error.to_wire()),
                First::Right(()) => responder.err(ErrorObject::cancelled()),
            }
        });
    }

    /// The connection is gone: cancels all turns, gives handlers some time to end by themselves, then drops them.
    pub(super) async fn wind_down(&self, grace: Duration) {
        for entry in self.sessions.all() {
            entry.cancel();
        }
        if let Err(_elapsed) = tokio::time::timeout(grace, self.until_no_tasks()).await {
            self.tasks.abort.cancel();
            self.until_no_tasks().await;
        }
        for entry in self.sessions.all() {
            self.sessions.remove(entry.id.as_str());
            let _ = tokio::time::timeout(grace, entry.session.closed()).await;
        }
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

struct Counted(Arc<Core>);

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.tasks.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.tasks.ended.notify_waiters();
        }
    }
}

impl Core {
    /// Sends an update outside of a turn, without waiting for room: used for single, small updates that follow a request
    /// of the client.
    pub(super) fn send_update(&self, entry: &Entry, update: SessionUpdate) {
        self.peer.notify_now("session/update", &Outgoing { session: &entry.id, update });
    }

    /// CONF-16: the complete list, when something changed it.
    pub(super) fn send_options(&self, entry: &Entry, changed: bool) {
        let Some(client) = self.client().filter(|_| changed) else { return };
        let options = options::visible(&entry.state().offers, &client);
        if let Some(options) = options {
            self.send_update(entry, SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options)));
        }
    }
}
