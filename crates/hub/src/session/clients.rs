//! The clients of a session, as the providers of its agent need them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{Asker, Command, Session};
use crate::providers::{Answering, Clients};

/// How long an editor may take to say what its buffer holds; then the file counts.
const EDITOR: Duration = Duration::from_secs(5);

/// A client whose unsaved text counts.
pub(crate) trait Editor: Send + Sync {
    /// The number of its connection.
    fn id(&self) -> u64;
    /// Asks for the text of a file.
    fn read(self: Arc<Self>, session: String, params: Value) -> Answering;
}

/// The clients of a session. Does not keep the session in memory.
pub(super) struct SessionClients {
    id: String,
    session: Weak<Session>,
}

impl SessionClients {
    pub(super) fn new(session: &Arc<Session>) -> Self {
        SessionClients { id: session.id().to_owned(), session: Arc::downgrade(session) }
    }
}

impl Clients for SessionClients {
    fn session(&self) -> &str {
        &self.id
    }

    fn ask(&self, params: Box<RawValue>) -> Answering {
        let session = self.session.clone();
        Box::pin(async move {
            let (reply, answered) = oneshot::channel();
            session.upgrade()?.send(Command::Ask(params, Asker::Hub(reply))).await.ok()?;
            answered.await.ok()
        })
    }

    fn read_buffer(&self, params: Value) -> Answering {
        let editor = self.session.upgrade().and_then(|session| session.editors.lock().last().cloned());
        let id = self.id.clone();
        Box::pin(async move {
            let read = editor?.read(id, params);
            tokio::time::timeout(EDITOR, read).await.ok()?
        })
    }
}
