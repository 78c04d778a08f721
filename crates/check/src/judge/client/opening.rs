//! The client's `initialize` and authentication.

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::items;
use crate::Role;

pub(super) struct Opening;

impl Watcher for Opening {
    fn rules(&self) -> &'static [&'static str] {
        &["INIT-04", "INIT-12", "INIT-17", "INIT-24", "INIT-27", "INIT-28", "AUTH-03", "AUTH-10", "AUTH-20"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        match message.call(Role::Client) {
            Some(("initialize", params)) => introduction(message, params, out),
            Some((method, params)) if method == log.version().login_method() => {
                authentication(log, message, method, params, out);
            }
            Some((method, _)) if method.starts_with('_') => {
                out.check("INIT-28", message, log.announces_extensions(), || {
                    format!("{method} is called, and no `_meta` of a capability announces anything")
                });
            }
            _ => {}
        }
    }
}

/// The capabilities of clients, drafts included.
const CAPABILITIES: &[&str] = &[
    "fs",
    "terminal",
    "session",
    "subagents",
    "plan",
    "auth",
    "elicitation",
    "nes",
    "positionEncodings",
    "_meta",
];

fn introduction(message: &Message, params: &Value, out: &mut Findings) {
    let version = &params["protocolVersion"];
    // One of the wrong type says nothing about which is the newest.
    if version.is_u64() || version.is_null() {
        let real = version.as_u64().is_some_and(|version| version >= 1);
        out.check("INIT-04", message, real, || {
            format!("{version} is no version that a client could support")
        });
    }
    let info = &params["clientInfo"];
    let named = info["name"].is_string() && info["version"].is_string();
    out.check("INIT-12", message, named, || {
        "the client does not state its name and version in `clientInfo`".to_owned()
    });
    let stated = params["clientCapabilities"].is_object();
    out.check("INIT-17", message, stated, || "the client does not state its capabilities".to_owned());
    // Shapes find members that do not belong there.
    let known = |name: &String| CAPABILITIES.contains(&name.as_str());
    if params["clientCapabilities"].as_object().is_some_and(|members| members.keys().all(known)) {
        out.pass("INIT-27", message);
    }
    match secret(params, "params") {
        Some(place) => out.fail("INIT-24", message, format!("`{place}` looks like a credential")),
        None => out.pass("INIT-24", message),
    }
}

/// Where a member stands whose name says that its text is a credential.
fn secret(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            let plain: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
            let names = [
                "apikey",
                "accesstoken",
                "authtoken",
                "bearertoken",
                "password",
                "secret",
                "credential",
                "authorization",
            ];
            let suspicious =
                names.iter().any(|name| plain.ends_with(name) || plain.ends_with(&format!("{name}s")));
            let filled = value.as_str().is_some_and(|text| !text.is_empty());
            if suspicious && filled { Some(path) } else { secret(value, &path) }
        }),
        Value::Array(list) => {
            list.iter().enumerate().find_map(|(place, value)| secret(value, &format!("{path}.{place}")))
        }
        _ => None,
    }
}

fn authentication(log: &EventLog, message: &Message, login: &str, params: &Value, out: &mut Findings) {
    let id = &params["methodId"];
    let key = log.version().auth_key();
    let offered = items(&log.initialized["authMethods"]).find(|method| method[key] == *id);
    out.check("AUTH-03", message, offered.is_some(), || format!("the method {id} was not announced"));
    if let Some(method) = offered {
        let terminal = method["type"] == "terminal";
        out.check("AUTH-10", message, !terminal, || {
            format!("{id} is a terminal method, which is not for `{login}`")
        });
    }
    let more = params.get("credentials").or(params.get("method"));
    out.check("AUTH-20", message, more.is_none(), || format!("{login} carries more than the id of a method"));
}
