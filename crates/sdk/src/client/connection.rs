//! One connection to an agent: which sessions it has, who waits for what, and what nobody claims.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use attache_conn::{CallError, CallId, Closed, Peer, Responder, Waiting};
use attache_wire::Request;
use attache_wire::v1::{
    ElicitationId, InitializeResponse, ProtocolVersion, SessionId, SessionUpdate, decode_tolerant_result,
};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::builder::Services;
use super::events::{ConnectionEvent, ConnectionEventQueue};
use super::lane::Lane;
use super::size;
use crate::report::ErrorReporter;
use crate::task::catch_handler_panic;
use crate::{Error, Result};

/// How much is kept of what comes for sessions whose answer is still on its way.
const EARLY_BYTES: usize = 4 << 20;
/// How many url elicitations are remembered.
const ELICITATIONS: usize = 1024;
/// How many lines of noise are remembered, for the error that explains why nothing works.
const NOISE_LINES: usize = 20;
/// How much of each.
const NOISE_LENGTH: usize = 300;

/// What all handles of one connection share.
pub(crate) struct Core {
    pub(crate) peer: Peer,
    pub(crate) services: Services,
    pub(crate) errors: ErrorReporter,
    pub(crate) initialized: OnceLock<InitializeResponse>,
    pub(crate) events: Arc<ConnectionEventQueue>,
    routes: Mutex<Routes>,
    noise: Mutex<VecDeque<String>>,
    elicitations: Mutex<HashMap<ElicitationId, Weak<Lane>>>,
}

/// Which lane a session's messages go to.
#[derive(Default)]
struct Routes {
    lanes: HashMap<SessionId, Route>,
    /// How many sessions are about to get their id. Until they have it, messages for unknown sessions may be theirs.
    opening: usize,
    early: HashMap<SessionId, Vec<EarlyMessage>>,
    early_bytes: usize,
}

/// A session, or a subagent whose events go to the session that started it.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) lane: Arc<Lane>,
    pub(crate) child: bool,
}

/// Something for a session that is not known yet.
pub(crate) enum EarlyMessage {
    Update(Box<SessionUpdate>, usize),
    Request {
        serve: Box<dyn FnOnce(&Arc<Core>, Route, Responder) + Send>,
        bytes: usize,
        responder: Responder,
    },
}

/// What something that is kept costs beside its text, with the name of its session.
const EARLY_OVERHEAD: usize = 512;

impl EarlyMessage {
    fn bytes(&self) -> usize {
        let text = match self {
            EarlyMessage::Update(_, bytes) | EarlyMessage::Request { bytes, .. } => *bytes,
        };
        text + EARLY_OVERHEAD
    }
}

static UNINITIALIZED: LazyLock<InitializeResponse> =
    LazyLock::new(|| InitializeResponse::new(ProtocolVersion::V1));

impl Core {
    pub(crate) fn new(peer: Peer, services: Services) -> Arc<Self> {
        let events = Arc::new(ConnectionEventQueue::new(peer.backlog().clone()));
        let errors = ErrorReporter::new(services.on_error.clone(), peer.clone());
        Arc::new(Core {
            peer,
            services,
            errors,
            initialized: OnceLock::new(),
            events,
            routes: Mutex::new(Routes::default()),
            noise: Mutex::new(VecDeque::new()),
            elicitations: Mutex::new(HashMap::new()),
        })
    }

    /// What the agent said about itself. INIT-15: until it has said something, it can do nothing.
    pub(crate) fn initialized(&self) -> &InitializeResponse {
        self.initialized.get().unwrap_or(&UNINITIALIZED)
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a session: one look-up, however many there are.
    pub(crate) fn find(&self, id: &str) -> Option<Route> {
        self.routes().lanes.get(id).cloned()
    }

    /// Adds a session whose id is known before the agent answers.
    ///
    /// # Errors
    /// When the session is open here already.
    pub(crate) fn register(&self, lane: &Arc<Lane>) -> Result<()> {
        let mut routes = self.routes();
        if routes.lanes.contains_key(&lane.id) {
            return Err(Error::Invalid(format!("the session `{}` is already open; drop it first", lane.id)));
        }
        routes.lanes.insert(lane.id.clone(), Route { lane: lane.clone(), child: false });
        Ok(())
    }

    /// Adds a session whose id just arrived, and gives it what came too early for it.
    pub(crate) fn adopt(self: &Arc<Self>, lane: &Arc<Lane>) {
        let early = {
            let mut routes = self.routes();
            routes.lanes.insert(lane.id.clone(), Route { lane: lane.clone(), child: false });
            let early = routes.early.remove(&lane.id).unwrap_or_default();
            routes.early_bytes -= early.iter().map(EarlyMessage::bytes).sum::<usize>();
            early
        };
        for early in early {
            let route = Route { lane: lane.clone(), child: false };
            match early {
                EarlyMessage::Update(update, bytes) => self.deliver(&lane.id, route, *update, bytes),
                EarlyMessage::Request { serve, responder, .. } => serve(self, route, responder),
            }
        }
    }

    /// SUBA-02: a subagent was announced; what bears its id goes to the session that announced it. One that the session has
    /// no room for stays unknown.
    pub(crate) fn add_child(&self, id: &SessionId, lane: &Arc<Lane>) {
        if lane.adopt_child(id) {
            let route = Route { lane: lane.clone(), child: true };
            self.routes().lanes.entry(id.clone()).or_insert(route);
        }
    }

    /// Forgets a session and its subagents.
    pub(crate) fn unregister(&self, lane: &Arc<Lane>) {
        let children = lane.children();
        let mut routes = self.routes();
        for id in children.iter().chain([&lane.id]) {
            if routes.lanes.get(id).is_some_and(|route| Arc::ptr_eq(&route.lane, lane)) {
                routes.lanes.remove(id);
            }
        }
        drop(routes);
        lane.close(None);
    }

    /// Keeps something for a session that may be about to get its id; gives it back if that cannot be.
    pub(crate) fn hold_early(&self, id: &str, early: EarlyMessage) -> std::result::Result<(), EarlyMessage> {
        let mut routes = self.routes();
        let bytes = early.bytes();
        if routes.opening == 0 || routes.early_bytes + bytes > EARLY_BYTES {
            return Err(early);
        }
        routes.early_bytes += bytes;
        routes.early.entry(SessionId::from(id)).or_default().push(early);
        Ok(())
    }

    /// From here on, until the guard is dropped, early messages are kept.
    pub(crate) fn opening(self: &Arc<Self>) -> OpeningGuard {
        self.routes().opening += 1;
        OpeningGuard(Arc::downgrade(self))
    }

    /// An update for a session that nobody has. SESS-32: ignored, but not in secret.
    pub(crate) fn stray(&self, session_id: SessionId, update: Box<SessionUpdate>, bytes: usize) {
        self.events.push(ConnectionEvent::Stray { session_id, update }, bytes);
    }

    /// Remembers where the end of a url elicitation has to be told.
    pub(crate) fn remember_elicitation(&self, id: &ElicitationId, lane: Option<&Arc<Lane>>) {
        let mut all = self.elicitations.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ELICITATIONS {
            all.retain(|_, lane| lane.strong_count() > 0);
        }
        if all.len() < ELICITATIONS {
            all.insert(id.clone(), lane.map_or_else(Weak::new, Arc::downgrade));
        }
    }

    /// ELIC-25: `None` for an id that is unknown or finished. `Some(None)` if it belonged to no session.
    pub(crate) fn take_elicitation(&self, id: &ElicitationId) -> Option<Option<Arc<Lane>>> {
        let mut all = self.elicitations.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(id).map(|lane| lane.upgrade())
    }

    /// The agent printed something that is not a message.
    pub(crate) fn noise(&self, line: &[u8], why: &str) {
        // A line may be megabytes long, and its beginning is all that is shown.
        let head = line.get(..4 * NOISE_LENGTH).unwrap_or(line);
        let text = String::from_utf8_lossy(head);
        let mut shown: String = text.trim_end().chars().take(NOISE_LENGTH).collect();
        if shown.len() < text.trim_end().len() || head.len() < line.len() {
            shown.push('…');
        }
        if let Some(hook) = &self.services.on_noise {
            catch_handler_panic(|| hook(line, why));
        }
        self.events.push(ConnectionEvent::Noise { line: shown.clone(), why: why.to_owned() }, shown.len());
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        if noise.len() == NOISE_LINES {
            noise.pop_front();
        }
        noise.push_back(shown);
    }

    /// What the agent printed instead of messages.
    pub(crate) fn printed(&self) -> String {
        let noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The connection is over: everybody who waits is told.
    pub(crate) fn closed(&self, closed: &Closed) {
        for lane in self.take_lanes() {
            lane.close(Some(closed));
        }
        self.events.close();
    }

    fn take_lanes(&self) -> Vec<Arc<Lane>> {
        let lanes = std::mem::take(&mut self.routes().lanes);
        lanes.into_values().filter(|route| !route.child).map(|route| route.lane).collect()
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn request<R: Request>(&self, request: &R) -> Result<R::Response> {
        let raw = self.peer.call(R::METHOD, request).await?;
        read::<R>(&raw)
    }

    /// Sends a request whose answer is taken in by the reader, between the message before and the one after it: for
    /// answers that change what later messages mean.
    pub(crate) fn in_order<R: Request, T: Send + 'static>(
        &self,
        request: &R,
        on_answer: impl FnOnce(Result<R::Response>) -> T + Send + 'static,
    ) -> InOrder<T> {
        let (sender, receiver) = oneshot::channel();
        let waiting = self.peer.backlog().waiting();
        let call = self.peer.call_with(R::METHOD, request, move |answer| {
            // When nobody waits any more, what came of it is dropped.
            let _ = sender.send(on_answer(answered::<R>(answer)));
        });
        InOrder { receiver, peer: self.peer.clone(), call: Some(call), _waiting: waiting }
    }
}

impl Drop for Core {
    /// The last handle is gone, so nobody can use the connection any more.
    fn drop(&mut self) {
        for lane in self.take_lanes() {
            lane.close(None);
        }
        self.events.close();
        self.peer.close();
    }
}

/// Reads the outcome of a call.
pub(crate) fn answered<R: Request>(answer: Result<&RawValue, CallError>) -> Result<R::Response> {
    read::<R>(answer?)
}

fn read<R: Request>(raw: &RawValue) -> Result<R::Response> {
    let fail = |reason: String| Error::Decode { method: R::METHOD.to_owned(), reason };
    size::check_answer(raw.get()).map_err(fail)?;
    decode_tolerant_result(R::METHOD, Some(raw)).map_err(|error| fail(error.to_string()))
}

/// A session is about to get its id.
pub(crate) struct OpeningGuard(Weak<Core>);

impl Drop for OpeningGuard {
    fn drop(&mut self) {
        let Some(core) = self.0.upgrade() else { return };
        let mut routes = core.routes();
        routes.opening -= 1;
        if routes.opening > 0 {
            return;
        }
        let left = std::mem::take(&mut routes.early);
        routes.early_bytes = 0;
        drop(routes);
        for (id, early) in left {
            for early in early {
                match early {
                    EarlyMessage::Update(update, bytes) => core.stray(id.clone(), update, bytes),
                    EarlyMessage::Request { responder, .. } => {
                        responder.err(Error::unknown_session(id.as_str()).to_wire())
                    }
                }
            }
        }
    }
}

/// The answer of [`Core::in_order`]. Dropping it tells the agent that nobody waits any more.
pub(crate) struct InOrder<T> {
    receiver: oneshot::Receiver<T>,
    peer: Peer,
    call: Option<CallId>,
    _waiting: Waiting,
}

impl<T> Future for InOrder<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.receiver).poll(cx));
        self.call = None;
        Poll::Ready(answer.map_err(|_| Error::Cancelled))
    }
}

impl<T> Drop for InOrder<T> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.peer.abandon(call);
        }
    }
}
