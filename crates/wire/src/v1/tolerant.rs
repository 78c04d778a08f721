//! Reading what is not quite right, where only one thing can be meant.
//!
//! Everything else in this crate is strict about what starts processes or ends turns. Some documents and peers
//! write a few messages in a way that no schema allows but whose meaning is plain. A message is read strictly
//! first; only if that fails it is repaired as the table below says, and then read strictly again. Nothing here
//! touches what we send, and what cannot be repaired is refused with the error of the first reading.
//!
//! | method | repaired |
//! |---|---|
//! | `initialize`, `proxy/initialize` | a `protocolVersion` of digits in quotes is that number |
//! | `session/new`, `session/load` | without `mcpServers` there are none |
//! | `session/new`, `load`, `resume`, `fork` | an MCP server that is a program, without `args` or `env`, has none |
//! | `session/prompt` | a text is a prompt of one text block (PROMPT-05) |
//! | `session/set_mode` | `mode` stands for `modeId` (MODE-05) |
//! | `session/set_config_option` | a boolean `value` needs no `type` |
//! | `session/update` | in a `current_mode_update`, `modeId` stands for `currentModeId` (MODE-07) |
//! | `providers/set`, `providers/disable`, result of `providers/list` | `id` stands for `providerId` |

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::v1::Fields;
use crate::{Json, decode};

/// An object whose members are not read yet.
type Draft = Fields<Json>;

/// Reads the params of a request or a notification.
pub fn decode_tolerant<T: DeserializeOwned>(
    method: &str,
    params: Option<&RawValue>,
) -> serde_json::Result<T> {
    strict_or_repaired(params, |draft| repair_params(method, draft))
}

/// Reads the result of a request.
pub fn decode_tolerant_result<T: DeserializeOwned>(
    method: &str,
    result: Option<&RawValue>,
) -> serde_json::Result<T> {
    strict_or_repaired(result, |draft| match method {
        "providers/list" => edit_each(draft, "providers", |provider| stand_in(provider, "id", "providerId")),
        _ => None,
    })
}

fn strict_or_repaired<T: DeserializeOwned>(
    raw: Option<&RawValue>,
    repair: impl FnOnce(&mut Draft) -> Option<()>,
) -> serde_json::Result<T> {
    decode(raw).or_else(|error| {
        let repaired = raw.and_then(|raw| {
            let mut draft = serde_json::from_str::<Draft>(raw.get()).ok()?;
            repair(&mut draft)?;
            Json::new(&draft).ok()?.parse().ok()
        });
        repaired.ok_or(error)
    })
}

/// `None` if there is nothing to repair.
fn repair_params(method: &str, draft: &mut Draft) -> Option<()> {
    match method {
        "initialize" | "proxy/initialize" => {
            let version: String = draft.get("protocolVersion")?.parse().ok()?;
            let digits = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
            let version = digits.then(|| version.parse::<u16>().ok()).flatten()?;
            set(draft, "protocolVersion", &version)
        }
        "session/new" | "session/load" | "session/resume" | "session/fork" => {
            let none = if matches!(method, "session/new" | "session/load") {
                default_list(draft, "mcpServers")
            } else {
                None
            };
            let programs = edit_each(draft, "mcpServers", |server| {
                // MCP-08: a server that names its type is not taken for a program.
                if server.get("command").is_none() || server.get("type").is_some() {
                    return None;
                }
                default_list(server, "args").max(default_list(server, "env"))
            });
            none.max(programs)
        }
        "session/prompt" => {
            let text: String = draft.get("prompt")?.parse().ok()?;
            set(draft, "prompt", &[super::ContentBlock::from(text)])
        }
        "session/set_mode" => stand_in(draft, "mode", "modeId"),
        "session/set_config_option" => {
            draft.get("value")?.parse::<bool>().ok()?;
            if draft.get("type").is_some() {
                return None;
            }
            set(draft, "type", "boolean")
        }
        "session/update" => {
            let mut update: Draft = draft.get("update")?.parse().ok()?;
            let kind: String = update.get("sessionUpdate")?.parse().ok()?;
            if kind != "current_mode_update" {
                return None;
            }
            stand_in(&mut update, "modeId", "currentModeId")?;
            set(draft, "update", &update)
        }
        "providers/set" | "providers/disable" => stand_in(draft, "id", "providerId"),
        _ => None,
    }
}

fn set<T: serde::Serialize + ?Sized>(draft: &mut Draft, name: &str, value: &T) -> Option<()> {
    draft.insert(name, Json::new(value).ok()?);
    Some(())
}

/// Lets a member stand for one that is absent. It stays where it was: members that nobody knows do no harm.
fn stand_in(draft: &mut Draft, name: &str, for_name: &str) -> Option<()> {
    if draft.get(for_name).is_some() {
        return None;
    }
    let value = draft.get(name)?.clone();
    draft.insert(for_name, value);
    Some(())
}

fn default_list(draft: &mut Draft, name: &str) -> Option<()> {
    if draft.get(name).is_some() {
        return None;
    }
    set(draft, name, &[(); 0])
}

/// Repairs the objects of a list.
fn edit_each(draft: &mut Draft, list: &str, edit: impl Fn(&mut Draft) -> Option<()>) -> Option<()> {
    let mut entries: Vec<Draft> = draft.get(list)?.parse().ok()?;
    let edited = entries.iter_mut().map(edit).max().flatten();
    edited.and_then(|()| set(draft, list, &entries))
}

#[cfg(test)]
#[path = "tolerant_tests.rs"]
mod tests;
