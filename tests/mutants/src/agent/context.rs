//! A turn as actions see it, in both versions.

use super::state::Session;
use super::wire::Agent;
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;

/// The turn was cancelled.
pub(crate) struct Cancelled;

/// How a part of a turn ends.
pub(crate) type Act = Result<(), Cancelled>;

/// The context of a turn.
pub(crate) trait Context: Sync {
    fn agent(&self) -> &Arc<Agent>;

    fn session(&self) -> &str;

    /// Whether the client advertised the capability that version 1 has at `path`.
    fn client_has(&self, path: &str) -> bool;

    /// Changes the session, if it is open.
    fn change<T>(&self, change: impl FnOnce(&mut Session) -> T) -> Option<T>;

    /// `configOptions` of the session.
    fn options(&self) -> Value;

    /// Waits for `what`, or for the end of the turn.
    fn wait<T: Send>(
        &self,
        what: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T, Cancelled>> + Send;

    /// Text of the agent.
    fn say(&self, text: &str) -> impl Future<Output = ()> + Send;

    /// A content block of the agent.
    fn show(&self, content: Value) -> impl Future<Output = ()> + Send;

    /// An update that belongs to the history.
    fn tell(&self, update: Value) -> impl Future<Output = ()> + Send;

    /// An update that a replay does not repeat.
    fn update(&self, update: Value) -> impl Future<Output = ()> + Send {
        self.agent().update(self.session(), update)
    }

    /// Asks the client.
    fn ask(
        &self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Result<Result<Value, Value>, Cancelled>> + Send {
        self.wait(self.agent().ask(method, params))
    }

    /// A number that was not used before.
    fn count(&self) -> u64 {
        self.agent().state().count()
    }
}
