//! Tolerant reading of known mistakes whose meaning is unambiguous.
//!
//! Some peers write a few messages in a form that no schema allows but whose meaning is clear. A
//! message is read strictly first. If that fails, it is repaired by the table below and read
//! strictly again; a second failure returns the error of the first reading.
//!
//! | method | repaired |
//! |---|---|
//! | `initialize`, `proxy/initialize` | a `protocolVersion` in quotes is read as a number |
//! | `session/new`, `session/load` | absent `mcpServers` are an empty list |
//! | `session/new`, `load`, `resume`, `fork` | absent `args` and `env` of a stdio server are empty lists |
//! | `session/prompt` | a string becomes one text block |
//! | `session/set_mode` | `mode` is read as `modeId` |
//! | `session/set_config_option` | a boolean `value` needs no `type` |
//! | `session/update` | in a `current_mode_update`, `modeId` is read as `currentModeId` |
//! | `providers/set`, `providers/disable`, result of `providers/list` | `id` is read as `providerId` |

// PROMPT-05, MODE-05, MODE-07

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
        "providers/list" => edit_each(draft, "providers", |provider| copy_to(provider, "id", "providerId")),
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

/// Repairs the params of a method; returns `None` if there is nothing to repair.
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
        "session/set_mode" => copy_to(draft, "mode", "modeId"),
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
            copy_to(&mut update, "modeId", "currentModeId")?;
            set(draft, "update", &update)
        }
        "providers/set" | "providers/disable" => copy_to(draft, "id", "providerId"),
        _ => None,
    }
}

fn set<T: serde::Serialize + ?Sized>(draft: &mut Draft, name: &str, value: &T) -> Option<()> {
    draft.insert(name, Json::new(value).ok()?);
    Some(())
}

/// Copies a member to the name of an absent one. The original stays, because unknown members are
/// ignored.
fn copy_to(draft: &mut Draft, name: &str, for_name: &str) -> Option<()> {
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
