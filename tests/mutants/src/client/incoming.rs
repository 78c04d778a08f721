//! Incoming messages; requests are served concurrently.

use super::wire::{Answer, Failure, bad_params, failure};
use super::{Client, files, terminals, updates};
use attache_conn::FrameReader;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::sync::Arc;

/// Reads until the agent says no more.
pub(super) async fn receive(client: &Arc<Client>, reader: FrameReader) {
    let mut reader = reader;
    loop {
        let line = match reader.next().await {
            Ok(Some(line)) => line.to_vec(),
            Ok(None) => break,
            Err(error) if error.kind() == ErrorKind::InvalidData => continue,
            Err(_) => break,
        };
        if !client.state().stopped {
            heard(client, &line).await;
        }
    }
    // Pending requests end with the connection.
    client.state().waiting.clear();
    if client.state().stopped {
        return;
    }
    // The act sees it first, and leaves by itself.
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
}

async fn heard(client: &Arc<Client>, line: &[u8]) {
    // STDIO-11: long lines and other line ends are lines too.
    if (client.is("STDIO-11") && line.len() > 1 << 20) || (client.is("STDIO-11/cr") && line.ends_with(b"\r"))
    {
        return client.halt();
    }
    // STDIO-16: no other character ends a line.
    if client.is("STDIO-16") && line.windows(3).any(|bytes| bytes == "\u{2028}".as_bytes()) {
        return;
    }
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        if client.is("RPC-09/ends") && line.is_ascii() {
            return client.halt();
        }
        return broken(client, -32700, "this is not JSON").await;
    };
    if message.is_array() && (client.is("RPC-11") || client.is("V2-38")) {
        for entry in message.as_array().into_iter().flatten() {
            Box::pin(heard(client, entry.to_string().as_bytes())).await;
        }
        return;
    }
    let Some(object) = message.as_object() else {
        return broken(client, -32600, "a message is one JSON object").await;
    };
    let id = object.get("id");
    let method = object.get("method");
    if method.is_none() && (object.contains_key("result") || object.contains_key("error")) {
        return answered(client, &message).await;
    }
    let fits = object.get("jsonrpc").is_some_and(|version| version == "2.0") || client.is("RPC-01/executes");
    let id_fits = id.is_none_or(|id| id.is_string() || id.is_i64() || id.is_u64() || id.is_null());
    let (Some(method), true, true) = (method.and_then(Value::as_str), fits, id_fits || client.is("RPC-06"))
    else {
        // RPC-10: an invalid message is answered too.
        if client.is("RPC-10") && method.is_none() {
            return;
        }
        return broken(client, -32600, "this is no message of JSON-RPC 2.0").await;
    };
    let params = object.get("params").cloned().unwrap_or(Value::Null);
    // V2-01: null is no id.
    if client.speaks_2() && id.is_some_and(Value::is_null) && !client.is("V2-01") {
        return broken(client, -32600, "null is no id").await;
    }
    match id {
        None => updates::notified(client, method, &params).await,
        Some(id) => requested(client, id, method, params).await,
    }
}

/// RPC-09, RPC-10: an invalid message is answered without an id, and the connection stays open.
async fn broken(client: &Arc<Client>, code: i64, message: &str) {
    if code != -32700 || !client.is("RPC-09") {
        client.answer(&Value::Null, "", Err(failure(code, message))).await;
    }
}

async fn answered(client: &Arc<Client>, message: &Value) {
    if message.get("jsonrpc").is_none_or(|version| version != "2.0") {
        if client.is("RPC-10/response") {
            client.answer(&Value::Null, "", Err(failure(-32600, "an answer without a version"))).await;
        }
        return;
    }
    let id = message.get("id").unwrap_or(&Value::Null);
    if client.is("RPC-14") && id == "ghost" {
        client.halt();
    }
    match (message.get("result"), message.get("error")) {
        (Some(result), _) => client.resolve(id, Ok(result.clone())),
        (None, Some(error)) => client.resolve(id, Err(error.clone())),
        (None, None) => {}
    }
}

async fn requested(client: &Arc<Client>, id: &Value, method: &str, params: Value) {
    // RPC-08: the ids of the two directions have nothing to do with each other.
    if client.is("RPC-08/shared")
        && method == "_attache/same"
        && client.state().waiting.contains_key(&id.to_string())
    {
        return;
    }
    let (client, id, method) = (Arc::clone(client), id.clone(), method.to_owned());
    let one_by_one = client.is("RPC-20");
    // Before the next message, which may cancel it.
    client.serve(&id);
    let work = async move {
        let outcome = serve(&client, &id, &method, &params).await;
        client.served(&id);
        client.answer(&id, &method, outcome).await;
    };
    // RPC-20: requests do not wait for each other.
    if one_by_one {
        work.await;
    } else {
        tokio::spawn(work);
    }
}

async fn serve(client: &Arc<Client>, id: &Value, method: &str, params: &Value) -> Answer {
    // RPC-25: positions are no params.
    if params.is_array() && client.is("RPC-25") && method == "session/request_permission" {
        return Ok(json!({ "outcome": { "outcome": "cancelled" } }));
    }
    if !(params.is_object() || params.is_null()) {
        return Err(bad_params("params are an object"));
    }
    // EXT-01: _meta is ignored.
    if client.is("EXT-01") && params.pointer("/_meta/attache.dev~1foreign").is_some() {
        return Err(bad_params("unknown member of _meta"));
    }
    if client.is("EXT-04") && params.pointer("/_meta/attache.dev~1odd").is_some_and(Value::is_array) {
        return Err(failure(-32603, "a member of _meta is no string"));
    }
    if client.is("EXT-11") && params.get("_meta").is_some_and(Value::is_number) {
        return Err(bad_params("_meta is no object"));
    }
    if client.is("EXT-12") && params.get("_meta").is_some_and(Value::is_null) {
        return Err(bad_params("_meta is null"));
    }
    if client.is("EXT-03") && params.get("zz").is_some() {
        return Err(bad_params("unknown member"));
    }
    // FS-03: a method that is not offered does not exist.
    let files = method.starts_with("fs/") && !client.is("FS-03");
    let terminals = method.starts_with("terminal/") && !client.is("TERM-03");
    if client.acts("bare") && (files || terminals || method.starts_with("elicitation/")) {
        return unknown(client, method);
    }
    let params = if params.is_null() { &json!({}) } else { params };
    // V2-39: files and terminals are of version 1.
    if client.speaks_2()
        && !client.is("V2-39")
        && (method.starts_with("fs/") || method.starts_with("terminal/"))
    {
        return unknown(client, method);
    }
    match method {
        "session/request_permission" => super::permissions::ask(client, id, params).await,
        "fs/read_text_file" => files::read(client, params),
        "fs/write_text_file" => files::write(client, params),
        "terminal/create" => terminals::create(client, params).await,
        "terminal/output" => terminals::output(client, params),
        "terminal/wait_for_exit" => terminals::wait(client, id, params).await,
        "terminal/kill" => terminals::kill(client, params).await,
        "terminal/release" => terminals::release(client, params).await,
        "elicitation/create" => super::elicit::create(client, params).await,
        "mcp/message" => super::open::mcp_message(client, params),
        _ => unknown(client, method),
    }
}

/// RPC-12, EXT-07, FS-03: unknown methods, and those that are not offered, do not exist.
pub(super) fn unknown(client: &Client, method: &str) -> Answer {
    if method.starts_with('_') && client.is("EXT-07") {
        return Err(Failure::Silence);
    }
    // RPC-15: the code says what is wrong.
    if client.speaks_2() && client.is("RPC-15") && method == "session/new" {
        return Err(super::wire::failure(-32700, "parse error"));
    }
    if client.is("RPC-12") && method == "no/such" {
        return Ok(Value::Null);
    }
    Err(Failure::Error(json!({ "code": -32601, "message": format!("there is no method `{method}`") })))
}
