//! Content blocks.

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::{is_one_of, items};
use crate::{Role, Version};

// CONT-01, CONT-03, CONT-04, CONT-05, MSG-02
pub(super) struct Contents;

const TYPES: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];

impl Watcher for Contents {
    fn rules(&self) -> &'static [&'static str] {
        &["CONT-01", "CONT-03", "CONT-04", "CONT-05", "MSG-02", "MSG-05"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.from != Role::Agent {
            return;
        }
        let Some((_, kind, update)) = message.update() else { return };
        let block = |message: &Message, content: &Value, out: &mut Findings| {
            block(message, log.version(), content, out);
        };
        match kind {
            "user_message" | "agent_message" | "agent_thought" => {
                items(&update["content"]).for_each(|item| block(message, item, out));
            }
            "tool_call_content_chunk" if is_content_item(&update["content"]) => {
                block(message, &update["content"]["content"], out);
            }
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                block(message, &update["content"], out);
                if let Some(id) = update.get("messageId").filter(|id| !id.is_null()) {
                    out.check("MSG-02", message, id.is_string(), || {
                        format!("`messageId` is {id}, not a string")
                    });
                }
            }
            "tool_call" | "tool_call_update" => {
                let contents = items(&update["content"]).filter(|item| is_content_item(item));
                contents.for_each(|item| block(message, &item["content"], out));
            }
            "compaction_summary_chunk" | "session_message_chunk" => block(message, &update["content"], out),
            "compaction_update" => items(&update["summary"]).for_each(|item| block(message, item, out)),
            "session_message" => items(&update["content"]).for_each(|item| block(message, item, out)),
            "usage_update" => {
                let whole = update["used"].is_u64() && update["size"].is_u64();
                out.check("MSG-05", message, whole, || {
                    "`used` and `size` must both be whole numbers".to_owned()
                });
            }
            _ => {}
        }
    }
}

/// Whether an item of a tool call is a content block.
// TOOL-14 is about one that lacks its block.
fn is_content_item(item: &Value) -> bool {
    item["type"] == "content" && item["content"].is_object()
}

fn block(message: &Message, version: Version, block: &Value, out: &mut Findings) {
    let kind = &block["type"];
    let is_known = is_content_type(version, kind);
    out.check("CONT-01", message, is_known, || format!("a block of type {kind}"));
    match kind.as_str() {
        Some("image" | "audio") => {
            let named = block["mimeType"].is_string();
            out.check("CONT-03", message, named && block["data"].as_str().is_some_and(is_base64), || {
                if named { "`data` is not base64".to_owned() } else { "`mimeType` is missing".to_owned() }
            });
        }
        Some("resource") => {
            let resource = &block["resource"];
            let body = resource["text"].is_string() || resource["blob"].as_str().is_some_and(is_base64);
            out.check("CONT-04", message, resource["uri"].is_string() && body, || {
                "a resource needs `uri` and `text` or a base64 `blob`".to_owned()
            });
        }
        Some("resource_link") => {
            let named = block["uri"].is_string() && block["name"].is_string();
            out.check("CONT-05", message, named, || "a link needs `uri` and `name`".to_owned());
        }
        _ => {}
    }
}

/// Whether a block may have this type. Version 2 has room for extensions.
// V2-22
pub(crate) fn is_content_type(version: Version, kind: &Value) -> bool {
    let extension = kind.as_str().is_some_and(|kind| kind.starts_with('_'));
    is_one_of(kind, &TYPES) || (version == Version::V2 && extension)
}

/// Whether the text is base64 in either alphabet, padded or not, in one line or several, since the
/// sources do not say which. No decoder of the `base64` crate accepts all of these.
pub(crate) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    let mut digits = 0_usize;
    for byte in body.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
        if !is_digit(byte) {
            return false;
        }
        digits += 1;
    }
    // One digit alone has fewer bits than a byte.
    digits % 4 != 1 && text.len() - body.len() <= 2
}

#[cfg(test)]
mod tests {
    use super::is_base64;

    #[test]
    fn base64_in_either_alphabet_with_or_without_padding() {
        for text in ["", "YQ==", "YQ", "YWI=", "YWJj", "-_-_", "+/+/", "YWJj\r\nYWJj\n"] {
            assert!(is_base64(text), "{text:?}");
        }
        for text in ["Y", "YWJjY", "YQ===", "Y Q=", "Y=Q=", "not base64!", "é"] {
            assert!(!is_base64(text), "{text:?}");
        }
    }
}
