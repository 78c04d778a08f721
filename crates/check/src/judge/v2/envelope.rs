//! Ids of requests and of error answers.

use crate::judge::{EventLog, Findings, Kind, Message, Watcher};

/// Judges ids.
#[derive(Debug)]
pub(super) struct Ids;

impl Watcher for Ids {
    fn rules(&self) -> &'static [&'static str] {
        &["V2-01", "V2-02"]
    }

    fn observe(&mut self, _: &EventLog, message: &Message, out: &mut Findings) {
        match &message.kind {
            Kind::Request { id, method, .. } => {
                let fits = id.is_string() || id.is_i64() || id.is_u64();
                out.check("V2-01", message, fits, || format!("{method} has the id {id}"));
            }
            Kind::Response { outcome: Err(_), .. } => {
                let named = message.json.get("id").is_some();
                out.check("V2-02", message, named, || "an error answer has no `id`".to_owned());
            }
            _ => {}
        }
    }
}
