//! One connection to an agent: its sessions, and messages that belong to none.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::path::PathBuf;
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

/// Bytes of messages that are kept for sessions whose id is not known yet.
const EARLY_BYTES: usize = 4 << 20;
/// URL elicitations that are remembered.
const ELICITATIONS: usize = 1024;
/// Lines of noise that are remembered for errors.
const NOISE_LINES: usize = 20;
/// Characters of each.
const NOISE_LENGTH: usize = 300;

/// State that all handles of a connection share.
pub(crate) struct Core {
    pub(crate) peer: Peer,
    pub(crate) services: Services,
    pub(crate) errors: ErrorReporter,
    pub(crate) initialized: OnceLock<InitializeResponse>,
    /// The capabilities of an agent of version 2, which say more.
    pub(crate) capabilities_v2: OnceLock<attache_wire::v2::AgentCapabilities>,
    pub(crate) events: Arc<ConnectionEventQueue>,
    routes: Mutex<Routes>,
    noise: Mutex<VecDeque<String>>,
    elicitations: Mutex<HashMap<ElicitationId, Weak<Lane>>>,
}

/// The lanes of sessions.
#[derive(Default)]
pub(super) struct Routes {
    lanes: HashMap<SessionId, Route>,
    /// The route of the latest update, which is mostly that of the next one. It saves a hash.
    last: Option<(SessionId, Route)>,
    /// Sessions whose id is not known yet. Messages for unknown sessions may be theirs.
    opening: usize,
    early: HashMap<SessionId, Vec<EarlyMessage>>,
    early_bytes: usize,
}

impl Routes {
    /// Removes an id if it belongs to `lane`.
    fn remove(&mut self, id: &SessionId, lane: &Arc<Lane>) {
        if self.lanes.get(id).is_some_and(|route| Arc::ptr_eq(&route.lane, lane)) {
            self.lanes.remove(id);
            self.last = None;
        }
    }

    fn insert(&mut self, id: SessionId, route: Route) {
        self.lanes.insert(id, route);
        self.last = None;
    }

    /// Adds a subagent, unless its id is in use.
    #[cfg(feature = "unstable")]
    pub(super) fn insert_child(&mut self, id: SessionId, route: Route) {
        self.lanes.entry(id).or_insert(route);
    }
}

/// A session, or a subagent whose events go to the session that started it.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) lane: Arc<Lane>,
    pub(crate) child: bool,
}

/// Serves a request as soon as its session is known.
type ServeFn = Box<dyn FnOnce(&Arc<Core>, Route, Responder) + Send>;

/// An update in the form of its version.
pub(crate) enum Update {
    V1(SessionUpdate),
    V2(attache_wire::v2::SessionUpdate),
}

/// A message for a session that is not known yet.
pub(crate) enum EarlyMessage {
    Update(Box<Update>, usize),
    Request { serve: ServeFn, bytes: usize, responder: Responder },
}

/// Bytes of an early message beside its text.
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
            capabilities_v2: OnceLock::new(),
            events,
            routes: Mutex::new(Routes::default()),
            noise: Mutex::new(VecDeque::new()),
            elicitations: Mutex::new(HashMap::new()),
        })
    }

    /// The response to `initialize`.
    // INIT-15: before it, the agent has no capabilities.
    pub(crate) fn initialized(&self) -> &InitializeResponse {
        self.initialized.get().unwrap_or(&UNINITIALIZED)
    }

    /// Whether the connection speaks version 2.
    pub(crate) fn is_v2(&self) -> bool {
        self.initialized().protocol_version == ProtocolVersion::V2
    }

    /// Creates the lane of a session.
    pub(crate) fn lane(&self, id: SessionId, roots: Arc<[PathBuf]>) -> Arc<Lane> {
        Lane::new(id, roots, self.peer.clone(), self.initialized().protocol_version)
    }

    pub(super) fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the lane of a session.
    pub(crate) fn find(&self, id: &str) -> Option<Route> {
        let mut routes = self.routes();
        if let Some((last, route)) = &routes.last
            && *last == *id
        {
            return Some(route.clone());
        }
        let (id, route) = routes.lanes.get_key_value(id)?;
        let found = route.clone();
        routes.last = Some((id.clone(), found.clone()));
        Some(found)
    }

    /// Adds a session whose id is known before the agent answers.
    ///
    /// # Errors
    /// When the session is already open on this connection.
    pub(crate) fn register(&self, lane: &Arc<Lane>) -> Result<()> {
        let mut routes = self.routes();
        if routes.lanes.contains_key(&lane.id) {
            return Err(Error::Invalid(format!("the session `{}` is already open; drop it first", lane.id)));
        }
        routes.insert(lane.id.clone(), Route { lane: lane.clone(), child: false });
        Ok(())
    }

    /// Adds a session whose id just arrived, and delivers its early messages.
    pub(crate) fn adopt(self: &Arc<Self>, lane: &Arc<Lane>) {
        let early = {
            let mut routes = self.routes();
            routes.insert(lane.id.clone(), Route { lane: lane.clone(), child: false });
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

    /// Removes a session and its subagents.
    pub(crate) fn unregister(&self, lane: &Arc<Lane>) {
        #[cfg(feature = "unstable")]
        let children = lane.children(|children| children.ids());
        let mut routes = self.routes();
        routes.remove(&lane.id, lane);
        #[cfg(feature = "unstable")]
        children.iter().for_each(|id| routes.remove(id, lane));
        drop(routes);
        lane.close(None);
    }

    /// Keeps an early message, or returns it if no session is being opened or the space is used up.
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

    /// Keeps early messages until the guard is dropped.
    pub(crate) fn opening(self: &Arc<Self>) -> OpeningGuard {
        self.routes().opening += 1;
        OpeningGuard(Arc::downgrade(self))
    }

    // SESS-32: reports an update of an unknown session.
    pub(crate) fn stray(&self, session_id: SessionId, update: Update, bytes: usize) {
        let update = match update {
            Update::V1(update) => Box::new(update),
            // Most updates are the same in both versions.
            Update::V2(update) => {
                let text = serde_json::to_string(&update).unwrap_or_default();
                match serde_json::from_str(&text) {
                    Ok(update) => Box::new(update),
                    Err(_) => return self.noise(text.as_bytes(), "an update of an unknown session"),
                }
            }
        };
        self.events.push(ConnectionEvent::Stray { session_id, update }, bytes);
    }

    /// Remembers the session of a URL elicitation.
    pub(crate) fn remember_elicitation(&self, id: &ElicitationId, lane: Option<&Arc<Lane>>) {
        let mut all = self.elicitations.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ELICITATIONS {
            all.retain(|_, lane| lane.strong_count() > 0);
        }
        if all.len() < ELICITATIONS {
            all.insert(id.clone(), lane.map_or_else(Weak::new, Arc::downgrade));
        }
    }

    // ELIC-25: `None` for an id that is unknown or finished. `Some(None)` if it belonged to no
    // session.
    pub(crate) fn take_elicitation(&self, id: &ElicitationId) -> Option<Option<Arc<Lane>>> {
        let mut all = self.elicitations.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(id).map(|lane| lane.upgrade())
    }

    /// Reports a line that is not a message.
    pub(crate) fn noise(&self, line: &[u8], why: &str) {
        // A line may be megabytes long; only its start is shown.
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

    /// Recent lines that were not messages.
    pub(crate) fn printed(&self) -> String {
        let noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Ends all sessions after the end of the connection.
    pub(crate) fn closed(&self, closed: &Closed) {
        for lane in self.take_lanes() {
            lane.close(Some(closed));
        }
        self.events.close();
    }

    fn take_lanes(&self) -> Vec<Arc<Lane>> {
        let mut routes = self.routes();
        routes.last = None;
        let lanes = std::mem::take(&mut routes.lanes);
        drop(routes);
        lanes.into_values().filter(|route| !route.child).map(|route| route.lane).collect()
    }

    /// Sends a request and decodes the response.
    pub(crate) async fn request<R: Request>(&self, request: &R) -> Result<R::Response> {
        let raw = self.peer.call(R::METHOD, request).await?;
        read::<R>(&raw)
    }

    /// Sends a request whose response is handled by the reader, in wire order, because it affects
    /// later messages.
    pub(crate) fn in_order<R: Request, T: Send + 'static>(
        &self,
        request: &R,
        on_answer: impl FnOnce(Result<R::Response>) -> T + Send + 'static,
    ) -> InOrder<T> {
        let (sender, receiver) = oneshot::channel();
        let waiting = self.peer.backlog().waiting();
        let call = self.peer.call_with(R::METHOD, request, move |answer| {
            // A caller that stopped waiting drops the value.
            let _ = sender.send(on_answer(answered::<R>(answer)));
        });
        InOrder { receiver, peer: self.peer.clone(), call: Some(call), _waiting: waiting }
    }
}

impl Drop for Core {
    /// Closes the connection with its last handle.
    fn drop(&mut self) {
        for lane in self.take_lanes() {
            lane.close(None);
        }
        self.events.close();
        self.peer.close();
    }
}

/// Decodes the outcome of a call.
pub(crate) fn answered<R: Request>(answer: Result<&RawValue, CallError>) -> Result<R::Response> {
    read::<R>(answer?)
}

pub(crate) fn read<R: Request>(raw: &RawValue) -> Result<R::Response> {
    let fail = |reason: String| Error::Decode { method: R::METHOD.to_owned(), reason };
    size::check_answer(raw.get()).map_err(fail)?;
    decode_tolerant_result(R::METHOD, Some(raw)).map_err(|error| fail(error.to_string()))
}

/// Marks a session that waits for its id.
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
                    EarlyMessage::Update(update, bytes) => core.stray(id.clone(), *update, bytes),
                    EarlyMessage::Request { responder, .. } => {
                        responder.err(Error::unknown_session(id.as_str()).to_wire())
                    }
                }
            }
        }
    }
}

/// The response of [`Core::in_order`]. Dropping it cancels the request.
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
