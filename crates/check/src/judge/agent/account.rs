//! The user's account.

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::items;
use crate::Role;

// AUTH-24, AUTH-26
#[derive(Default)]
pub(super) struct Account {
    /// The status that the agent reported last.
    reported: Option<Value>,
}

impl Watcher for Account {
    fn rules(&self) -> &'static [&'static str] {
        &["AUTH-24", "AUTH-26"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if let Some((_, result)) = log.result_of(message, "auth/status") {
            accounts(message, result, out);
            self.reported = Some(result.clone());
        }
        if let Some(("auth/status_update", params)) = message.call(Role::Agent) {
            accounts(message, params, out);
            out.check("AUTH-24", message, self.reported.as_ref() != Some(params), || {
                "nothing has changed since the last report".to_owned()
            });
            self.reported = Some(params.clone());
        }
    }
}

/// Of the accounts that are listed, one is in effect while there is an authentication.
// AUTH-26
fn accounts(message: &Message, report: &Value, out: &mut Findings) {
    if report["state"] == "authenticated" && items(&report["accounts"]).next().is_some() {
        let active = items(&report["accounts"]).any(|account| account["active"] == true);
        out.check("AUTH-26", message, active, || {
            "accounts are listed and none is marked as active".to_owned()
        });
    }
}
