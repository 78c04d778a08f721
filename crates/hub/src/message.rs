//! JSON-RPC lines: what the hub reads of them, and those that it writes itself.

use attache_conn::rpc::{ErrorObject, Id, encode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Levels of objects and arrays in a message.
pub(crate) const DEPTH: usize = 1024;

/// The result or the error of a request, undecoded.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// The `result` member.
    Result(Box<RawValue>),
    /// The `error` member.
    Error(Box<RawValue>),
}

impl Outcome {
    pub(crate) fn result(value: &impl Serialize) -> Outcome {
        Outcome::Result(raw(value))
    }

    pub(crate) fn error(error: &ErrorObject) -> Outcome {
        Outcome::Error(raw(error))
    }

    pub(crate) fn of(outcome: Result<&RawValue, ErrorObject>) -> Outcome {
        match outcome {
            Ok(result) => Outcome::Result(result.to_owned()),
            Err(error) => Outcome::error(&error),
        }
    }
}

/// The error of a turn that did not come to its end.
pub(crate) fn interrupted(why: &str) -> ErrorObject {
    ErrorObject::internal(why).with_data(&json!({"attache": {"interrupted": true}}))
}

/// Whether an error is one of [`interrupted`].
pub(crate) fn is_interrupted(error: &ErrorObject) -> bool {
    let data = error.data.as_ref().and_then(|data| serde_json::from_str::<Value>(data.get()).ok());
    data.is_some_and(|data| data["attache"]["interrupted"] == true)
}

/// The JSON of a value; `null` if it has none.
pub(crate) fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A request, with its line feed.
pub(crate) fn request(id: &Id, method: &str, params: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut line = Vec::new();
    // A value that has no JSON leaves nothing behind; the hub's own values all have.
    let _ = encode::request(&mut line, id, method, params);
    line
}

/// A notification, with its line feed.
pub(crate) fn notification(method: &str, params: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut line = Vec::new();
    let _ = encode::notification(&mut line, method, params);
    line
}

/// A response, with its line feed.
pub(crate) fn response(id: &Id, outcome: &Outcome) -> Vec<u8> {
    let mut line = Vec::new();
    let _ = match outcome {
        Outcome::Result(result) => encode::result(&mut line, id, result),
        Outcome::Error(error) => match serde_json::from_str(error.get()) {
            Ok(error) => encode::error(&mut line, id, &error),
            Err(_) => encode::error(&mut line, id, &ErrorObject::internal("the request failed")),
        },
    };
    line
}

/// The members of params that the hub looks at.
#[derive(Default, Deserialize)]
pub(crate) struct SessionParams<'a> {
    #[serde(borrow, rename = "sessionId")]
    session: Option<&'a RawValue>,
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default)]
    attache: Option<ClientMeta>,
}

/// `_meta.attache` of a request.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ClientMeta {
    /// The cursor of `session/resume`.
    pub(crate) after: Option<String>,
    /// An unknown cursor is an error.
    #[serde(default)]
    pub(crate) strict: bool,
    /// The id of a prompt.
    pub(crate) prompt: Option<String>,
}

impl<'a> SessionParams<'a> {
    /// Reads params. Params in another form have no session.
    pub(crate) fn read(params: Option<&'a RawValue>) -> SessionParams<'a> {
        let read = |params: &'a RawValue| serde_json::from_str(params.get()).ok();
        params.and_then(read).unwrap_or_default()
    }

    pub(crate) fn session(&self) -> Option<String> {
        self.session.and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    pub(crate) fn meta(self) -> ClientMeta {
        self.meta.and_then(|meta| meta.attache).unwrap_or_default()
    }
}

/// The range of the value of `sessionId` within `params`.
fn session_range(params: &str) -> Option<(usize, usize)> {
    let value = serde_json::from_str::<SessionParams<'_>>(params).ok()?.session?.get();
    let start = (value.as_ptr() as usize).checked_sub(params.as_ptr() as usize)?;
    Some((start, start + value.len()))
}

/// Params with another session id, and everything else as it was.
pub(crate) fn with_session(params: &RawValue, session: &str) -> Box<RawValue> {
    let text = params.get();
    let Some((start, end)) = session_range(text) else { return params.to_owned() };
    let (Some(before), Some(after)) = (text.get(..start), text.get(end..)) else { return params.to_owned() };
    let name = raw(&session);
    RawValue::from_string(format!("{before}{}{after}", name.get())).unwrap_or_else(|_| params.to_owned())
}
