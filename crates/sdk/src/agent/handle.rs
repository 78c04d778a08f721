//! A session's line to the client outside of turns.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use attache_wire::Patch;
use attache_wire::v1::{
    AvailableCommand, AvailableCommandsUpdate, ConfigOptionUpdate, CurrentModeUpdate, SessionConfigId,
    SessionId, SessionInfoUpdate, SessionModeId, SessionUpdate,
};

use super::client::{Client, Outgoing};
use super::options;
use super::session::OptionValue;
use super::table::{Entry, Gate};
use crate::{Error, Result};

/// Sends what belongs to a session but not to a turn: commands, modes, options, titles, replayed history.
/// Cheap to clone; it does not keep the session alive.
#[derive(Clone)]
pub struct SessionHandle {
    pub(super) client: Client,
    inner: Arc<Inner>,
}

struct Inner {
    id: SessionId,
    gate: Arc<Gate>,
    entry: OnceLock<Weak<Entry>>,
}

impl SessionHandle {
    pub(super) fn new(client: Client, id: SessionId, gate: Arc<Gate>) -> Self {
        SessionHandle { client, inner: Arc::new(Inner { id, gate, entry: OnceLock::new() }) }
    }

    /// The session is open: ties the handle to it, lets pass what was held back, and tells the commands (CMD-01).
    pub(super) fn opened(&self, entry: &Arc<Entry>, commands: Option<Vec<AvailableCommand>>) {
        // A handle is opened once; a second call would find the same entry.
        let _ = self.inner.entry.set(Arc::downgrade(entry));
        let send = |update: SessionUpdate| {
            self.client.peer.notify_now("session/update", &Outgoing { session: &entry.id, update });
        };
        self.inner.gate.release(send);
        if let Some(commands) = commands {
            send(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands)));
        }
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.inner.id
    }

    fn entry(&self) -> Option<Arc<Entry>> {
        self.inner.entry.get()?.upgrade()
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends any update. Those that need a capability of the client are refused without it.
    ///
    /// Content that belongs to a turn is better sent through [`Turn`](super::Turn), which keeps it before the turn's end.
    pub async fn send(&self, update: SessionUpdate) -> Result<()> {
        self.client.takes(&update)?;
        let Some(update) = self.inner.gate.hold(update) else { return Ok(()) };
        let entry = self.entry();
        let session = entry.as_ref().map_or(&self.inner.id, |entry| &entry.id);
        Ok(self.client.peer.notify("session/update", &Outgoing { session, update }).await?)
    }

    /// Replaces the list of slash commands (CMD-02).
    pub async fn set_commands(&self, commands: Vec<AvailableCommand>) -> Result<()> {
        self.send(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))).await
    }

    /// Gives the session a title, or takes it away.
    pub async fn set_title(&self, title: Option<String>) -> Result<()> {
        let update = SessionInfoUpdate::new().title(Patch::from(title));
        self.send(SessionUpdate::SessionInfoUpdate(update)).await
    }

    /// Switches the mode from the agent's side and tells the client (MODE-07).
    pub async fn set_mode(&self, mode: impl Into<SessionModeId>) -> Result<()> {
        let mode = mode.into();
        let entry = self.entry().ok_or(Error::Unsupported("modes before the session is open"))?;
        let config = options::put_mode(&mut entry.state().offers, &mode)?;
        self.send(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode))).await?;
        self.send_options(config).await
    }

    /// Sets an option from the agent's side and tells the client (CONF-16).
    pub async fn set_option(&self, id: impl Into<SessionConfigId>, value: OptionValue) -> Result<()> {
        let entry = self.entry().ok_or(Error::Unsupported("options before the session is open"))?;
        let changed = options::put_option(&mut entry.state().offers, &id.into(), &value)?;
        if let Some(mode) = changed.mode {
            self.send(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode))).await?;
        }
        self.send_options(true).await
    }

    /// Sends the complete list of options, if there is one and it changed.
    pub(super) async fn send_options(&self, changed: bool) -> Result<()> {
        let Some(entry) = self.entry().filter(|_| changed) else { return Ok(()) };
        let options = options::visible(&entry.state().offers, &self.client);
        match options {
            Some(options) => {
                self.send(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options))).await
            }
            None => Ok(()),
        }
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionHandle").field(&self.inner.id).finish()
    }
}
