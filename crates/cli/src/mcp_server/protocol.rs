//! Revisions of MCP and the shapes of their messages.
//!
//! Since 2026-07-28 every request names its revision and the client's capabilities in `_meta`, and
//! a question to the user is a result that the client answers with a second call. Older clients
//! begin with `initialize` and are asked by a request.

use attache_rpc::{ErrorObject, Id};
use serde_json::{Map, Value, json};

/// The newest revision.
pub(super) const NEWEST: &str = "2026-07-28";
/// The revisions that begin with `initialize`, the newest first.
const WITH_HANDSHAKE: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
const UNSUPPORTED_VERSION: i32 = -32022;

/// How long a client may keep the list of tools, which does not change while the server runs.
const CACHE_TIME_MS: u64 = 3_600_000;

const INSTRUCTIONS: &str = "Files and commands of the user's machine, limited to the directories of the session and to what \
     the user permits. A refusal says why; do not work around it.";

/// The capabilities of a client that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientCapabilities {
    /// Whether it shows forms to the user.
    pub(super) forms: bool,
}

impl ClientCapabilities {
    fn read(capabilities: &Value) -> ClientCapabilities {
        // An empty object stands for forms alone.
        let forms = match &capabilities["elicitation"] {
            Value::Object(modes) => modes.is_empty() || modes.get("form").is_some_and(Value::is_object),
            _ => false,
        };
        ClientCapabilities { forms }
    }
}

/// The revision of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Each request describes itself.
    Stateless,
    /// The client began with `initialize`.
    Handshake,
}

/// Returns the revision of a request and the capabilities of its client. `handshake` are those of
/// an `initialize` before it.
///
/// # Errors
/// The error that the client gets.
pub(super) fn era(
    params: &Value,
    handshake: Option<ClientCapabilities>,
) -> Result<(Era, ClientCapabilities), ErrorObject> {
    let meta = &params["_meta"];
    match (&meta[VERSION_KEY], handshake) {
        (Value::Null, Some(client)) => Ok((Era::Handshake, client)),
        (Value::String(version), _) if version == NEWEST => match &meta[CAPABILITIES_KEY] {
            capabilities @ Value::Object(_) => Ok((Era::Stateless, ClientCapabilities::read(capabilities))),
            _ => Err(ErrorObject::invalid_params(format!("`_meta` has no `{CAPABILITIES_KEY}`"))),
        },
        (Value::String(version), _) => {
            let data = json!({ "supported": [NEWEST], "requested": version });
            Err(ErrorObject::new(UNSUPPORTED_VERSION, "Unsupported protocol version").with_data(&data))
        }
        (Value::Null, None) => Err(ErrorObject::invalid_params(format!(
            "`_meta` has no `{VERSION_KEY}`; a client of an older revision calls `initialize` first"
        ))),
        _ => Err(ErrorObject::invalid_params(format!("`{VERSION_KEY}` is not a string"))),
    }
}

/// Answers `initialize` and returns the capabilities of the client.
///
/// # Errors
/// The error that the client gets.
pub(super) fn initialize(params: &Value) -> Result<(Value, ClientCapabilities), ErrorObject> {
    let Some(version) = params["protocolVersion"].as_str() else {
        return Err(ErrorObject::invalid_params("`protocolVersion` is missing"));
    };
    let version = WITH_HANDSHAKE.iter().find(|known| **known == version).unwrap_or(&WITH_HANDSHAKE[0]);
    let result = json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    });
    Ok((result, ClientCapabilities::read(&params["capabilities"])))
}

/// The result of `server/discover`.
pub(super) fn discovery() -> Value {
    json!({
        "supportedVersions": [NEWEST],
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "ttlMs": CACHE_TIME_MS,
        "cacheScope": "private",
    })
}

/// The result of `tools/list`.
pub(super) fn tool_list(era: Era, tools: Vec<Value>) -> Value {
    match era {
        Era::Stateless => json!({ "tools": tools, "ttlMs": CACHE_TIME_MS, "cacheScope": "private" }),
        Era::Handshake => json!({ "tools": tools }),
    }
}

/// A result that asks the user, who answers with a second call.
pub(super) fn input_required(form: &Value, state: &str) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": { QUESTION: { "method": "elicitation/create", "params": form } },
        "requestState": state,
    })
}

/// The key of the question in [`input_required`].
pub(super) const QUESTION: &str = "permission";

/// A response with a result.
pub(super) fn response(id: &Id, era: Era, mut result: Value) -> String {
    if let (Era::Stateless, Some(members)) = (era, result.as_object_mut()) {
        members.entry("resultType").or_insert_with(|| json!("complete"));
        let meta = members.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
        meta[SERVER_KEY] = server_info();
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

/// A response with an error.
pub(super) fn error(id: &Id, error: &ErrorObject) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}

fn server_info() -> Value {
    json!({ "name": "attache", "title": "Attaché", "version": env!("CARGO_PKG_VERSION") })
}
