//! The saved session of the chat, which `attache prompt -s NAME` continues, and the other way
//! round.

use attache::client::Session;
use attache::wire::v1::{ProtocolVersion, SessionId};

use crate::run::{SessionLock, Setting, note_session, note_setting};
use crate::session_store::{Record, Store};
use crate::time::now;

pub(crate) struct SavedSession {
    store: Store,
    id: String,
    /// The agent's id of the session.
    session: SessionId,
    /// Whether the chat shows it, and not another session.
    here: bool,
    _held: SessionLock,
}

impl SavedSession {
    pub(crate) fn new(store: Store, record: &Record, held: SessionLock) -> SavedSession {
        let session = SessionId::from(record.session_id.as_str());
        let kept = SavedSession { store, id: record.id.clone(), session, here: true, _held: held };
        kept.change(|record| record.pid = Some(std::process::id()));
        kept
    }

    /// Returns the id of the record if the chat shows its session.
    pub(crate) fn conversation(&self) -> Option<&str> {
        self.here.then_some(self.id.as_str())
    }

    pub(crate) fn record(&self) -> Option<Record> {
        self.store.get(&self.id)
    }

    /// Returns whether the session has a name, under which other commands find it.
    pub(crate) fn is_named(&self) -> bool {
        self.record().is_some_and(|record| record.name.is_some())
    }

    /// Returns speaker and text of the recorded messages, the oldest first.
    pub(crate) fn messages(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        // A history that cannot be read to its end is shown up to there.
        let _ = self.store.history(&self.id).read(|message| all.push((message.role, message.text)));
        all
    }

    /// Changes the record. An error does not end the conversation.
    fn change(&self, change: impl FnOnce(&mut Record)) {
        let _ = self.store.change(&self.id, change);
    }

    /// Notes that the chat switched to a session. Returns whether it is the saved one.
    pub(crate) fn opened(&mut self, session: &Session) -> bool {
        self.here = *session.id() == self.session;
        if self.here {
            self.change(|record| note_session(record, session));
        }
        self.here
    }

    /// Replaces the saved session by a new one of the agent.
    pub(crate) fn replaced(&mut self, session: &Session) {
        self.session = session.id().clone();
        self.opened(session);
    }

    /// Returns whether the saved session has this id.
    pub(crate) fn is(&self, id: &SessionId) -> bool {
        self.session == *id
    }

    /// Notes that an agent has opened the session.
    pub(crate) fn started(&self, restorable: bool, version: ProtocolVersion) {
        self.change(|record| {
            record.restorable = Some(restorable);
            record.agent_started_at = Some(now());
            record.protocol_version = Some(version.0);
        });
    }

    pub(crate) fn turn_started(&self) {
        if self.here {
            let started = now();
            self.change(|record| {
                record.last_prompt_at = Some(started.clone());
                record.last_used_at = started;
                record.turns += 1;
            });
        }
    }

    pub(crate) fn turn_ended(&self, session: &Session) {
        if self.here {
            self.change(|record| {
                record.last_used_at = now();
                note_session(record, session);
            });
        }
    }

    /// Saves a setting for the next start of the session.
    pub(crate) fn set(&self, setting: &Setting) {
        if self.here {
            self.change(|record| note_setting(record, setting));
        }
    }
}

impl Drop for SavedSession {
    fn drop(&mut self) {
        self.change(|record| record.pid = None);
    }
}
