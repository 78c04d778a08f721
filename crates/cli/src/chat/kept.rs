//! The recorded session that the chat is in. What is said here goes on with `attache prompt -s NAME`, and the other way round.

use attache::client::Session;
use attache::wire::v1::SessionId;

use crate::run::{SessionLock, Setting, note_session, note_setting};
use crate::session_store::{Record, Store};
use crate::time::now;

pub(crate) struct Kept {
    store: Store,
    id: String,
    /// What the agent calls it.
    session: SessionId,
    /// Whether the chat is in it, and has not gone on with another one.
    here: bool,
    _held: SessionLock,
}

impl Kept {
    pub(crate) fn new(store: Store, record: &Record, held: SessionLock) -> Kept {
        let session = SessionId::from(record.session_id.as_str());
        let kept = Kept { store, id: record.id.clone(), session, here: true, _held: held };
        kept.change(|record| record.pid = Some(std::process::id()));
        kept
    }

    pub(crate) fn record(&self) -> Option<Record> {
        self.store.get(&self.id)
    }

    /// What was said in it and by whom, the oldest first, as far as this program has seen it.
    pub(crate) fn said(&self) -> Vec<(&'static str, String)> {
        let entries = self.store.history(&self.id).entries().unwrap_or_default();
        entries.into_iter().map(|entry| (entry.role, entry.text)).collect()
    }

    /// A record that cannot be written is no reason to end a conversation.
    fn change(&self, change: impl FnOnce(&mut Record)) {
        let _ = self.store.change(&self.id, change);
    }

    /// The chat goes on with this session. Gives back whether it is the recorded one.
    pub(crate) fn opened(&mut self, session: &Session) -> bool {
        self.here = *session.id() == self.session;
        if self.here {
            self.change(|record| note_session(record, session));
        }
        self.here
    }

    /// A session that takes the place of the recorded one.
    pub(crate) fn replaced(&mut self, session: &Session) {
        self.session = session.id().clone();
        self.opened(session);
    }

    /// Whether the session of this id is the recorded one.
    pub(crate) fn is(&self, id: &SessionId) -> bool {
        self.session == *id
    }

    /// An agent runs that has the session.
    pub(crate) fn started(&self, restorable: bool) {
        self.change(|record| {
            record.restorable = Some(restorable);
            record.agent_started_at = Some(now());
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

    /// A setting is made again when the session is.
    pub(crate) fn set(&self, setting: &Setting) {
        if self.here {
            self.change(|record| note_setting(record, setting));
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.change(|record| record.pid = None);
    }
}
