//! Lists and titles of sessions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::{is_text, items};
use crate::Role;

// LIST-03, LIST-10, LIST-12, LIST-13, SSTAT-05
#[derive(Default)]
pub(super) struct Lists {
    /// By session: the title as the last update has it; `None` after one that cleared it.
    titles: BTreeMap<String, Option<String>>,
}

impl Watcher for Lists {
    fn rules(&self) -> &'static [&'static str] {
        &["LIST-03", "LIST-10", "LIST-12", "LIST-13", "SSTAT-05"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.from != Role::Agent {
            return;
        }
        if let Some((_, result)) = log.result_of(message, "session/list") {
            let cursor = &result["nextCursor"];
            let whole = result["sessions"].is_array() && (cursor.is_null() || cursor.is_string());
            out.check("LIST-03", message, whole, || {
                "`sessions` must be a list and `nextCursor` a string".to_owned()
            });
            let archives = log.can(Role::Agent, "sessionCapabilities.archive");
            for info in items(&result["sessions"]) {
                self.info(message, info, out);
                if archives {
                    out.check("SSTAT-05", message, info["archived"].is_boolean(), || {
                        format!("the session {} does not say whether it is archived", info["sessionId"])
                    });
                }
            }
        }
        if let Some((session, "session_info_update", update)) = message.update() {
            let own = ["sessionId", "cwd", "additionalDirectories"]
                .into_iter()
                .find(|key| update.get(key).is_some());
            out.check("LIST-13", message, own.is_none(), || {
                format!("the update carries `{}`", own.unwrap_or_default())
            });
            match update.get("title") {
                Some(Value::String(title)) => {
                    self.titles.insert(session.to_owned(), Some(title.clone()));
                }
                Some(Value::Null) => {
                    self.titles.insert(session.to_owned(), None);
                }
                _ => {}
            }
        }
    }
}

impl Lists {
    fn info(&self, message: &Message, info: &Value, out: &mut Findings) {
        let time = &info["updatedAt"];
        let title = &info["title"];
        let whole = is_text(&info["sessionId"])
            && (title.is_null() || title.is_string())
            && (time.is_null() || time.as_str().is_some_and(is_time));
        out.check("LIST-10", message, whole, || format!("a session is {info}"));
        // LIST-12: only what contradicts the meaning of null and of absence is judged; a title may
        // be shortened or created again.
        let Some(sent) = info["sessionId"].as_str().and_then(|id| self.titles.get(id)) else { return };
        out.check("LIST-12", message, sent.is_some() != title.is_null(), || match sent {
            Some(_) => "no update cleared the title, and the list has none".to_owned(),
            None => format!("the title was cleared, and the list says {title}"),
        });
    }
}

/// ISO 8601, date and time.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = b"dddd-dd-ddTdd:dd";
    bytes.len() >= shape.len()
        && bytes.iter().zip(shape).all(|(byte, wanted)| match wanted {
            b'd' => byte.is_ascii_digit(),
            b'T' => matches!(byte, b'T' | b't' | b' '),
            other => byte == other,
        })
}
