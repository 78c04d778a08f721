//! The meaning of error codes.

// RPC-15

use super::super::{EventLog, Findings, Message, Watcher};
use crate::Role;
use crate::schema::Method;

pub(super) struct Codes;

impl Watcher for Codes {
    fn rules(&self) -> &'static [&'static str] {
        &["RPC-15"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        let Some((asked, Err(error))) = log.response(message) else { return };
        if message.from != Role::Agent {
            return;
        }
        match error["code"].as_i64().unwrap_or_default() {
            // The request that is answered here was read, so it was JSON.
            -32700 => out.fail(
                "RPC-15",
                message,
                format!("{} is answered with the code of a parse error", asked.method),
            ),
            -32601 if Method::of(log.version(), &asked.method).is_none() => out.pass("RPC-15", message),
            _ => {}
        }
    }
}
