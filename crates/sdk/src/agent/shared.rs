//! State of a session that its turns, tool calls and background work share. It does not hold the
//! session itself, so that a session may keep handles of them.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use attache_conn::CancelToken;
use attache_wire::v1::{SessionId, ToolCallId};
use attache_wire::v2;
use tokio::sync::Notify;

use super::client::{ClientHandle, SharedIds};
use super::tool::ToolShared;
use crate::task::lock;

pub(super) struct SessionShared {
    pub(super) id: SessionId,
    pub(super) ids: SharedIds,
    /// Set when no update of the session may be sent any more.
    pub(super) over: AtomicBool,
    /// Most sessions of version 1 need none, and there may be many sessions.
    live: OnceLock<Box<LiveState>>,
}

#[derive(Default)]
struct LiveState {
    /// Locked before the connection.
    activity: Mutex<Activity>,
    /// Notified whenever background work ends.
    background_ended: Notify,
    /// Notified whenever a prompt is offered to the running turn.
    offered: Notify,
}

#[derive(Default)]
struct Activity {
    foreground: Foreground,
    /// `None` until the first background work.
    background: Option<Vec<Arc<ToolShared>>>,
    cancellable: Vec<(CancelKey, CancelToken)>,
    /// The plan that a client of version 1 sees.
    shown_plan: Option<v2::PlanId>,
}

/// The state of the session without its background work.
#[derive(Default, Clone, Copy, PartialEq)]
enum Foreground {
    #[default]
    Idle,
    Running,
    RequiresAction,
}

/// An object that the client can cancel alone.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CancelKey {
    Tool(ToolCallId),
    Terminal(v2::TerminalId),
}

impl SessionShared {
    pub(super) fn new(id: SessionId, ids: SharedIds) -> Arc<Self> {
        Arc::new(SessionShared { id, ids, over: AtomicBool::new(false), live: OnceLock::new() })
    }

    fn live(&self) -> &LiveState {
        self.live.get_or_init(Box::default)
    }

    /// Notified whenever a prompt is offered to the running turn.
    pub(super) fn offered(&self) -> &Notify {
        &self.live().offered
    }

    /// Reports a state of the session, in version 2 only.
    pub(super) fn send_state(&self, client: &ClientHandle, state: impl Into<v2::StateUpdate>) {
        if client.is_v2() {
            let state = state.into();
            let mut activity = lock(&self.live().activity);
            activity.foreground = match &state {
                v2::StateUpdate::Idle(_) => Foreground::Idle,
                v2::StateUpdate::RequiresAction(_) => Foreground::RequiresAction,
                _ => Foreground::Running,
            };
            self.send(client, activity.complete(state));
        }
    }

    /// Reports the state again. It is not a new completion, so it has no stop reason.
    pub(super) fn repeat_state(&self, client: &ClientHandle, busy: bool) {
        self.send(client, lock(&self.live().activity).snapshot(busy));
    }

    /// The state; `busy` if a prompt waits or runs.
    #[cfg(feature = "unstable")]
    pub(super) fn state(&self, busy: bool) -> v2::StateUpdate {
        lock(&self.live().activity).snapshot(busy)
    }

    fn send(&self, client: &ClientHandle, state: v2::StateUpdate) {
        let update = v2::SessionUpdate::from(state);
        let params = super::v2::Params { session: &self.id, update };
        client.peer().unless(&self.over).notify_now("session/update", &params);
    }

    /// Lists work, which the client knows already.
    // V2-36
    pub(super) fn background_starts(&self, client: &ClientHandle, tool: Arc<ToolShared>) {
        let mut activity = lock(&self.live().activity);
        activity.background.get_or_insert_default().push(tool);
        let state = activity.snapshot(false);
        self.send(client, state);
    }

    /// Removes work whose end was reported.
    // V2-36
    pub(super) fn background_ends(&self, client: &ClientHandle, id: &ToolCallId) {
        let mut activity = lock(&self.live().activity);
        let Some(items) = &mut activity.background else { return };
        let before = items.len();
        items.retain(|tool| tool.id != *id);
        if items.len() < before {
            let state = activity.snapshot(false);
            self.send(client, state);
            drop(activity);
            self.live().background_ended.notify_waiters();
        }
    }

    fn background(&self) -> Vec<Arc<ToolShared>> {
        let live = self.live.get();
        live.and_then(|live| lock(&live.activity).background.clone()).unwrap_or_default()
    }

    /// Cancels all background work.
    pub(super) fn cancel_background(&self) {
        self.background().iter().for_each(|tool| tool.token.cancel());
    }

    /// Waits until no background work is left, and reports the rest as cancelled after `grace`.
    // V2-28
    pub(super) async fn end_background(&self, grace: Duration) {
        if self.background().is_empty() {
            return;
        }
        let ended = async {
            loop {
                let notified = self.live().background_ended.notified();
                if self.background().is_empty() {
                    return;
                }
                notified.await;
            }
        };
        if tokio::time::timeout(grace, ended).await.is_err() {
            self.background().iter().for_each(|tool| tool.abandon(true));
        }
    }

    pub(super) fn add_cancellable(&self, key: CancelKey, token: CancelToken) {
        lock(&self.live().activity).cancellable.push((key, token));
    }

    pub(super) fn remove_cancellable(&self, key: &CancelKey) {
        lock(&self.live().activity).cancellable.retain(|(other, _)| other != key);
    }

    /// Cancels one object. `false` if it is unknown, has ended or cannot be cancelled.
    // V2-31
    pub(super) fn cancel_object(&self, key: &CancelKey) -> bool {
        let token = {
            let activity = lock(&self.live().activity);
            activity.cancellable.iter().find(|(other, _)| other == key).map(|(_, token)| token.clone())
        };
        token.map(|token| token.cancel()).is_some()
    }

    /// Notes the plan that a client of version 1 sees.
    pub(super) fn show_plan(&self, plan: &v2::PlanId) {
        lock(&self.live().activity).shown_plan = Some(plan.clone());
    }

    /// Whether a client of version 1 sees this plan.
    pub(super) fn is_shown_plan(&self, plan: &v2::PlanId) -> bool {
        lock(&self.live().activity).shown_plan.as_ref() == Some(plan)
    }
}

impl Activity {
    fn snapshot(&self, busy: bool) -> v2::StateUpdate {
        self.complete(match self.foreground {
            Foreground::Idle if !busy => v2::IdleStateUpdate::new(None).into(),
            Foreground::Idle | Foreground::Running => v2::RunningStateUpdate::new().into(),
            Foreground::RequiresAction => v2::RequiresActionStateUpdate::new().into(),
        })
    }

    /// Adds the complete list of background work.
    // V2-36
    fn complete(&self, state: v2::StateUpdate) -> v2::StateUpdate {
        let Some(items) = &self.background else { return state };
        let list: Vec<v2::BackgroundWork> =
            items.iter().map(|tool| v2::BackgroundToolCall::new(tool.id.clone()).into()).collect();
        match state {
            v2::StateUpdate::Running(state) => state.background(list).into(),
            v2::StateUpdate::Idle(state) => state.background(list).into(),
            v2::StateUpdate::RequiresAction(state) => state.background(list).into(),
            other => other,
        }
    }
}
