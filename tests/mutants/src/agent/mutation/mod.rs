//! Variants that change outgoing messages.

mod content;
mod session;

use serde_json::{Value, json};

/// Changes a message as the variant does; `about` is its method, or the method that it answers.
pub(crate) fn message(variant: &str, about: &str, message: &mut Value) {
    if variant.is_empty() {
        return;
    }
    let answers = message.get("method").is_none();
    match variant {
        "RPC-01" if about == "session/update" => message["jsonrpc"] = json!("1.0"),
        "RPC-02" if answers && about == "session/set_mode" => remove(message, "result"),
        "RPC-03" if answers && about == "_attache/probe" => message["error"]["code"] = json!("no method"),
        "RPC-05" if answers && message["id"] == -1 => message["id"] = json!("-1"),
        "RPC-17" if message.get("error").is_some() => {
            message["error"]["message"] = json!("Error:\n  at first\n  and then again\n  and so on");
        }
        "RPC-23" if answers && about == "session/set_mode" && message.get("result").is_some() => {
            message["error"] = Value::Null;
        }
        _ if answers => {
            if let Some(result) = message.get_mut("result") {
                session::answer(variant, about, result);
            }
        }
        _ => {
            let params = &mut message["params"];
            session::call(variant, about, params);
            if about == "session/update" {
                content::update(variant, &mut params["update"]);
            }
        }
    }
}

/// The lines of a message: one, unless the variant has other ideas.
pub(crate) fn bytes(variant: &str, about: &str, message: &Value) -> Vec<Vec<u8>> {
    let line = message.to_string();
    let answers = message.get("method").is_none();
    match variant {
        "RPC-24" if answers && about == "session/set_mode" => vec![],
        "RPC-24/twice" if answers && about == "session/set_mode" => vec![line.clone().into(), line.into()],
        "STDIO-01" if line.contains('ü') => {
            // ISO 8859-1.
            let (before, after) = line.split_once('ü').unwrap_or_default();
            vec![[before.as_bytes(), &[0xFC], after.as_bytes()].concat()]
        }
        "STDIO-04" if line.contains("usage_update") => vec![format!("{line}{line}").into()],
        "STDIO-05" if line.contains("grüße\\n") => vec![line.replace("grüße\\n", "grüße\n").into()],
        "STDIO-08/log" if answers && about == "session/new" => {
            vec![b"[info] a session was made".to_vec(), line.into()]
        }
        _ => vec![line.into()],
    }
}

/// Takes a member away.
pub(crate) fn remove(value: &mut Value, key: &str) {
    if let Some(object) = value.as_object_mut() {
        object.remove(key);
    }
}

/// The path without its beginning.
pub(crate) fn relative(path: &mut Value) {
    if let Some(text) = path.as_str() {
        *path = json!(text.trim_start_matches('/'));
    }
}
