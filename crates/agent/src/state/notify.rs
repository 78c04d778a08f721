//! Notifies open sessions when the list of models has changed.

use std::sync::{Arc, Weak};

use super::{AgentState, SessionState};
use crate::model::{ModelInfo, Models};
use parking_lot::Mutex;

/// Notifies open sessions when the list of models has changed: by a login, a logout or the client's
/// `providers/*`.
// CONF-16
#[derive(Clone, Default)]
pub(crate) struct ModelChangeNotifier(Option<Arc<Inner>>);

struct Inner {
    agent: Arc<AgentState>,
    /// Sessions that were opened; closed ones are removed when the list would have to grow.
    sessions: Mutex<Vec<Weak<SessionState>>>,
}

impl ModelChangeNotifier {
    pub(crate) fn new(agent: Arc<AgentState>) -> Self {
        ModelChangeNotifier(Some(Arc::new(Inner { agent, sessions: Mutex::default() })))
    }

    /// Adds an open session.
    pub(crate) fn add(&self, session: &Arc<SessionState>) {
        let Some(inner) = &self.0 else { return };
        let mut sessions = inner.sessions.lock();
        if sessions.len() == sessions.capacity() {
            sessions.retain(|session| session.strong_count() > 0);
        }
        sessions.push(Arc::downgrade(session));
    }

    /// Awaits `change`, and notifies the open sessions if the list of models is another one
    /// afterwards.
    pub(crate) async fn watch<T>(&self, models: &Models, change: impl Future<Output = T>) -> T {
        let specs = || models.list().iter().map(ModelInfo::spec).collect::<Vec<_>>();
        let before = specs();
        let result = change.await;
        if let Some(inner) = &self.0
            && specs() != before
        {
            inner.notify().await;
        }
        result
    }
}

impl Inner {
    async fn notify(&self) {
        let models = self.agent.models().await;
        let open: Vec<Arc<SessionState>> = {
            let sessions = self.sessions.lock();
            sessions.iter().filter_map(Weak::upgrade).collect()
        };
        for session in open {
            // A session that is being closed cannot be notified, and need not be.
            let _ = session.models_changed(models.clone()).await;
        }
    }
}

impl std::fmt::Debug for ModelChangeNotifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ModelChangeNotifier")
    }
}
