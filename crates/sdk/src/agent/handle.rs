//! Updates of a session outside of turns.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use attache_conn::CallError;
use attache_wire::Patch;
use attache_wire::v1::{
    AvailableCommand, AvailableCommandsUpdate, ConfigOptionUpdate, CurrentModeUpdate, SessionConfigId,
    SessionConfigOption, SessionId, SessionInfoUpdate, SessionModeId, SessionUpdate,
};

use super::client::{ClientHandle, SharedIds};
use super::options;
use super::session::OptionValue;
use super::table::SessionEntry;
use crate::task::lock;
use crate::{Error, Result};

/// Updates that are held for a session that is not open yet.
const HELD: usize = 1024;

/// Sends updates outside of turns: commands, modes, options, titles, replayed history. Part of
/// [`OpenRequest`](super::OpenRequest). Cheap to clone; it does not keep the session alive and
/// fails when the session is over.
///
/// Example: [`OpenedSession`](super::OpenedSession).
#[derive(Clone)]
pub struct SessionHandle(Arc<Inner>);

struct Inner {
    client: ClientHandle,
    id: SessionId,
    ids: SharedIds,
    gate: Mutex<Gate>,
    /// The session could not be opened.
    failed: AtomicBool,
}

/// Whether updates may pass.
enum Gate {
    // SESS-31: updates are held until the response that names the session is written.
    Shut(Vec<SessionUpdate>),
    // SESS-12: the client knows the id, so a replay is sent at once.
    Replay,
    /// The client wants no replay.
    Discard,
    /// The session is open.
    Open(Weak<SessionEntry>),
}

impl Gate {
    /// Sends the held updates and the commands.
    fn release(
        &mut self,
        client: &ClientHandle,
        entry: &SessionEntry,
        commands: Option<Vec<AvailableCommand>>,
    ) {
        let send = |update: SessionUpdate| {
            client.peer().notify_now("session/update", &client.outgoing(&entry.id, &entry.ids, update));
        };
        if let Gate::Shut(held) = self {
            std::mem::take(held).into_iter().for_each(send);
        }
        if let Some(commands) = commands {
            send(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands)));
        }
        client.flush_records();
    }
}

impl SessionHandle {
    /// A handle that holds updates back until the session is open.
    pub(super) fn shut(client: ClientHandle, id: SessionId) -> Self {
        SessionHandle::new(client, id, Gate::Shut(Vec::new()))
    }

    /// A handle through which a session is replayed.
    pub(super) fn replay(client: ClientHandle, id: SessionId) -> Self {
        SessionHandle::new(client, id, Gate::Replay)
    }

    /// A handle that drops a replay.
    pub(super) fn discarding(client: ClientHandle, id: SessionId) -> Self {
        SessionHandle::new(client, id, Gate::Discard)
    }

    fn new(client: ClientHandle, id: SessionId, gate: Gate) -> Self {
        let (ids, failed) = (client.message_ids(), AtomicBool::new(false));
        SessionHandle(Arc::new(Inner { client, id, ids, gate: Mutex::new(gate), failed }))
    }

    pub(super) fn ids(&self) -> &SharedIds {
        &self.0.ids
    }

    /// Drops all updates of a session that could not be opened.
    pub(super) fn failed(&self) {
        self.0.failed.store(true, Ordering::SeqCst);
        *lock(&self.0.gate) = Gate::Open(Weak::new());
    }

    /// Ties the handle to the open session, and sends held updates and commands before anything
    /// else.
    // CMD-01
    pub(super) fn opened(mut self, entry: &Arc<SessionEntry>, commands: Option<Vec<AvailableCommand>>) {
        // Without another handle nothing can be sent at the same time or later.
        if let Some(Inner { client, gate, .. }) = Arc::get_mut(&mut self.0) {
            let gate = gate.get_mut().unwrap_or_else(PoisonError::into_inner);
            return gate.release(client, entry, commands);
        }
        let mut gate = lock(&self.0.gate);
        gate.release(&self.0.client, entry, commands);
        *gate = Gate::Open(Arc::downgrade(entry));
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// The open session.
    pub(super) fn entry(&self) -> Result<Arc<SessionEntry>> {
        match &*lock(&self.0.gate) {
            Gate::Open(entry) => {
                let entry = entry.upgrade().filter(|entry| !entry.is_over());
                entry.ok_or_else(session_over)
            }
            _ => Err(Error::internal("the session is not open yet")),
        }
    }

    /// The client.
    pub fn client(&self) -> &ClientHandle {
        &self.0.client
    }

    /// Sends any update. Content of a turn belongs into [`Turn`](super::Turn), which sends it
    /// before the response.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the update needs a capability that the client does not have.
    pub async fn send(&self, update: SessionUpdate) -> Result<()> {
        let update = self.client().adapt(update)?;
        if let (true, SessionUpdate::CurrentModeUpdate(update)) = (self.client().is_v2(), &update) {
            return self.send_mode(&update.current_mode_id).await;
        }
        let entry = match &mut *lock(&self.0.gate) {
            Gate::Shut(held) if held.len() < HELD => {
                held.push(update);
                return Ok(());
            }
            Gate::Shut(_) => return Err(Error::internal("too many updates for a session that is not open")),
            Gate::Replay => None,
            Gate::Discard => return Ok(()),
            Gate::Open(entry) => Some(entry.upgrade().ok_or_else(session_over)?),
        };
        let (session, over) =
            entry.as_ref().map_or((&self.0.id, &self.0.failed), |entry| (&entry.id, &entry.shared().over));
        // A history that is replayed was recorded when it was new.
        let mut params = self.client().outgoing(session, &self.0.ids, update);
        params.recorder = params.recorder.filter(|_| entry.is_some());
        let sent = self.client().peer().unless(over).notify("session/update", &params).await;
        self.client().flush_records();
        match sent {
            Err(CallError::Withdrawn) => Err(session_over()),
            sent => Ok(sent?),
        }
    }

    /// Version 2 has options only, so a mode is sent as one. Before the session is open it is part
    /// of the response.
    async fn send_mode(&self, mode: &SessionModeId) -> Result<()> {
        let Ok(entry) = self.entry() else { return Ok(()) };
        options::put_mode(entry.state().settings(), mode)?;
        Box::pin(self.send_options()).await
    }

    /// Replaces the list of slash commands.
    // CMD-02
    pub async fn set_commands(&self, commands: Vec<AvailableCommand>) -> Result<()> {
        self.send(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))).await
    }

    /// Sets or clears the title of the session.
    pub async fn set_title(&self, title: Option<String>) -> Result<()> {
        let update = SessionInfoUpdate::new().title(Patch::from(title));
        self.send(SessionUpdate::SessionInfoUpdate(update)).await
    }

    /// Changes the mode and notifies the client. Does not call
    /// [`AgentSession::mode_changed`](super::AgentSession::mode_changed).
    // MODE-07
    pub async fn set_mode(&self, mode: impl Into<SessionModeId>) -> Result<()> {
        let mode = mode.into();
        let changed = options::put_mode(self.entry()?.state().settings(), &mode)?;
        if self.client().is_v2() {
            return self.send_options().await;
        }
        self.send(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode))).await?;
        if changed { self.send_options().await } else { Ok(()) }
    }

    /// Changes an option and notifies the client. Does not call
    /// [`AgentSession::option_changed`](super::AgentSession::option_changed).
    // CONF-16
    pub async fn set_option(&self, id: impl Into<SessionConfigId>, value: OptionValue) -> Result<()> {
        let changed = options::put_option(self.entry()?.state().settings(), &id.into(), &value)?;
        if let Some(mode) = changed.mode.filter(|_| !self.client().is_v2()) {
            self.send(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode))).await?;
        }
        self.send_options().await
    }

    /// Replaces the list of options and notifies the client.
    // CONF-16
    pub async fn set_options(&self, options: Vec<SessionConfigOption>) -> Result<()> {
        options::check_options(&options)?;
        let entry = self.entry()?;
        let before = options::mode_of_option(entry.state().settings());
        entry.state().settings().options = Some(options);
        let mode = options::mode_of_option(entry.state().settings());
        if let Some(mode) = mode.filter(|mode| !self.client().is_v2() && before.as_ref() != Some(mode)) {
            self.send(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode))).await?;
        }
        self.send_options().await
    }

    /// Sends the complete list of options, if there is one.
    async fn send_options(&self) -> Result<()> {
        let options = options::visible(self.entry()?.state().settings(), self.client());
        match options {
            Some(options) => {
                self.send(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options))).await
            }
            None => Ok(()),
        }
    }
}

pub(super) fn session_over() -> Error {
    Error::internal("the session is over")
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionHandle").field(&self.0.id).finish()
    }
}
