//! Subagents: sessions whose events go to the session that started them.

use std::collections::HashMap;
use std::sync::Arc;

use attache_wire::v1::{CancelNotification, SessionId, SubagentUpdate};
use attache_wire::{Notification, Patch};

use crate::client::SessionControl;
use crate::client::connection::{Core, Route};
use crate::client::lane::Lane;

/// Subagents of a session, and bytes of their ids.
const CHILDREN: usize = 1_024;
const CHILD_ID_BYTES: usize = 1 << 10;

/// The subagents of a session.
#[derive(Default)]
pub(in crate::client) struct Children(HashMap<SessionId, Child>);

#[derive(Default)]
struct Child {
    // SUBA-03: whether it supports cancelling.
    cancel: bool,
}

impl Children {
    /// Adds a subagent. Returns `false` if there are too many or its id is too long.
    pub(in crate::client) fn adopt(&mut self, id: &SessionId) -> bool {
        if !self.0.contains_key(id) && (self.0.len() >= CHILDREN || id.as_str().len() > CHILD_ID_BYTES) {
            return false;
        }
        self.0.entry(id.clone()).or_default();
        true
    }

    pub(in crate::client) fn ids(&self) -> Vec<SessionId> {
        self.0.keys().cloned().collect()
    }

    // SUBA-02: a subagent is announced before its other messages.
    pub(in crate::client) fn note(&mut self, update: &SubagentUpdate) {
        let Some(child) = self.0.get_mut(&update.session_id) else { return };
        match &update.capabilities {
            Patch::Keep => {}
            Patch::Clear => child.cancel = false,
            Patch::Set(capabilities) => child.cancel = capabilities.cancel.is_some(),
        }
    }
}

impl Core {
    // SUBA-02: routes messages of an announced subagent to its session, unless that has too many.
    pub(in crate::client) fn add_child(&self, id: &SessionId, lane: &Arc<Lane>) {
        if lane.children(|children| children.adopt(id)) {
            let route = Route { lane: lane.clone(), child: true };
            self.routes().insert_child(id.clone(), route);
        }
    }
}

impl SessionControl {
    /// Cancels a subagent. Returns `false`, and sends nothing, if it does not support that.
    // SUBA-03
    pub fn cancel_subagent(&self, id: &SessionId) -> bool {
        let supported = self.lane.children(|children| children.0.get(id).is_some_and(|child| child.cancel));
        supported
            && self.lane.peer.notify_now(CancelNotification::METHOD, &CancelNotification::new(id.clone()))
    }
}
