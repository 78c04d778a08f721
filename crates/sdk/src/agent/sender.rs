//! The way of an update to the client.

use std::sync::Arc;

use attache_conn::CallError;

use super::client::{ClientHandle, Recordable};
use super::handle::session_over;
use super::shared::SessionShared;
use super::turn_state::TurnState;
use crate::Result;

/// Sends updates of a turn until it ends, or of background work until the session does.
#[derive(Clone)]
pub(super) enum UpdateSender {
    Turn(Arc<TurnState>),
    Session(ClientHandle, Arc<SessionShared>),
}

impl UpdateSender {
    pub(super) fn client(&self) -> &ClientHandle {
        match self {
            UpdateSender::Turn(turn) => turn.client(),
            UpdateSender::Session(client, _) => client,
        }
    }

    pub(super) fn is_v2(&self) -> bool {
        self.client().is_v2()
    }

    pub(super) fn shared(&self) -> &Arc<SessionShared> {
        match self {
            UpdateSender::Turn(turn) => turn.shared(),
            UpdateSender::Session(_, shared) => shared,
        }
    }

    /// Sends an update and waits for room.
    pub(super) async fn send<U: Recordable>(&self, update: &U) -> Result<()> {
        match self {
            UpdateSender::Turn(turn) => turn.update(update).await,
            UpdateSender::Session(client, shared) => {
                let params = client.outgoing(&shared.id, &shared.ids, update);
                let sent = client.peer().unless(&shared.over).notify("session/update", &params).await;
                client.flush_records();
                match sent {
                    Err(CallError::Withdrawn) => Err(session_over()),
                    sent => Ok(sent?),
                }
            }
        }
    }

    /// Sends the end of something, even if the turn is cancelled, and does not wait for room.
    /// Returns whether it was sent.
    pub(super) fn send_now<U: Recordable>(&self, update: &U) -> bool {
        match self {
            UpdateSender::Turn(turn) => turn.update_now(update),
            UpdateSender::Session(client, shared) => {
                let params = client.outgoing(&shared.id, &shared.ids, update);
                let sent = client.peer().unless(&shared.over).notify_now("session/update", &params);
                client.flush_records();
                sent
            }
        }
    }
}
