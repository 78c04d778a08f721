//! What a hub offers to a client that comes back: positions and prompts that may be sent again
//! (`docs/hub.md`).

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use attache_conn::rpc::Id;
use memchr::memmem;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::ws::random_key;

/// Prompts that are kept until their response, and their bytes. Further ones fail at a cut.
const PROMPTS: usize = 64;
const PROMPT_BYTES: usize = 32 << 20;
/// The longest prompt id.
const NAME_BYTES: usize = 256;

/// A place in the journal of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    epoch: u64,
    seq: u64,
}

impl Position {
    fn parse(at: &str) -> Option<Position> {
        let (epoch, seq) = at.split_once('.')?;
        Some(Position { epoch: epoch.parse().ok()?, seq: seq.parse().ok()? })
    }

    /// The position in the result of a request that opened a session.
    pub(super) fn of_result(result: &Value) -> Option<Position> {
        Position::parse(result["_meta"]["attache"]["at"].as_str()?)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.seq)
    }
}

/// The hub at the other end.
pub(super) struct Hub {
    is_v2: bool,
    /// Prompts with an id may be sent again.
    repeats_prompts: bool,
    /// The client counts positions itself, so it gets everything.
    is_counting_client: bool,
    /// Our prompt ids begin with this.
    nonce: Option<String>,
    next_prompt: u64,
    prompts: Vec<KeptPrompt>,
}

/// A prompt without a response.
struct KeptPrompt {
    id: Id,
    session: String,
    name: String,
    line: Vec<u8>,
    is_cancelled: bool,
}

/// What a message is for the client and its count.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) position: Option<Position>,
    /// The client gets the message.
    pub(super) is_shown: bool,
}

impl Hub {
    /// Returns the hub that an `initialize` response announces; `None` for other agents and for
    /// hubs without positions.
    pub(super) fn announced(initialized: &Value, is_counting_client: bool) -> Option<Hub> {
        let is_v2 = initialized["protocolVersion"].as_u64() >= Some(2);
        let capabilities = if is_v2 { "capabilities" } else { "agentCapabilities" };
        let announced = &initialized[capabilities]["_meta"]["attache"];
        let hub = Hub {
            is_v2,
            repeats_prompts: announced["prompt"] == true,
            is_counting_client,
            nonce: random_key().ok(),
            next_prompt: 0,
            prompts: Vec::new(),
        };
        (announced["after"] == true).then_some(hub)
    }

    pub(super) fn is_counting_client(&self) -> bool {
        self.is_counting_client
    }

    /// The ids of the prompts that are kept.
    pub(super) fn into_prompts(self) -> Vec<Id> {
        self.prompts.into_iter().map(|prompt| prompt.id).collect()
    }

    /// Takes over from the connection before, with its prompts.
    pub(super) fn continue_from(&mut self, before: Hub) {
        self.nonce = before.nonce;
        self.next_prompt = before.next_prompt;
        self.prompts = before.prompts;
    }

    /// Counts a message of a session. Parses only those that may say something about the position.
    pub(super) fn count(&self, before: Option<Position>, method: &str, params: &str) -> Counted {
        let next = before.map(|Position { epoch, seq }| Position { epoch, seq: seq.saturating_add(1) });
        if method == "_attache/position" {
            let at = serde_json::from_str::<Value>(params).unwrap_or_default();
            let position = at["at"].as_str().and_then(Position::parse);
            return Counted { position, is_shown: self.is_counting_client };
        }
        if memmem::find(params.as_bytes(), b"\"attache\"").is_none() {
            return Counted { position: next, is_shown: true };
        }
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let meta = &params["_meta"]["attache"];
        let position = match meta.get("at") {
            Some(Value::String(at)) => Position::parse(at),
            Some(Value::Null) => before,
            _ => next,
        };
        let prompt = if method == "_attache/turn_ended" { &params["prompt"] } else { &meta["prompt"] };
        // The client has its own prompt already, and the response says how its turn ended.
        let is_shown =
            self.is_counting_client || self.is_v2 || !prompt.as_str().is_some_and(|name| self.is_own(name));
        Counted { position, is_shown }
    }

    fn is_own(&self, name: &str) -> bool {
        self.nonce.as_deref().is_some_and(|nonce| name.starts_with(nonce))
            || self.prompts.iter().any(|prompt| prompt.name == name)
    }

    /// Keeps a prompt until its response, and gives it an id if it has none.
    pub(super) fn keep(&mut self, id: &Id, session: &str, line: &[u8], params: &str) -> Keep {
        let bytes: usize = self.prompts.iter().map(|prompt| prompt.line.len()).sum();
        if !self.repeats_prompts || self.prompts.len() >= PROMPTS || bytes + line.len() > PROMPT_BYTES {
            return Keep::No;
        }
        let own = serde_json::from_str::<Value>(params).unwrap_or_default();
        let (name, named) = match (&own["_meta"]["attache"]["prompt"], &self.nonce) {
            (Value::String(name), _) if (1..=NAME_BYTES).contains(&name.len()) => (name.clone(), None),
            (Value::Null, Some(nonce)) => {
                let name = format!("{nonce}-{}", self.next_prompt);
                let Some(named) = with_prompt_id(line, params, &name) else { return Keep::No };
                self.next_prompt += 1;
                (name, Some(named))
            }
            _ => return Keep::No,
        };
        let line = named.clone().unwrap_or_else(|| line.to_vec());
        let (id, session) = (id.clone(), session.to_owned());
        self.prompts.push(KeptPrompt { id, session, name, line, is_cancelled: false });
        named.map_or(Keep::Same, Keep::As)
    }

    /// Notes that the prompts of a session were cancelled.
    pub(super) fn cancel_session(&mut self, session: &str) {
        let prompts = self.prompts.iter_mut().filter(|prompt| prompt.session == session);
        prompts.for_each(|prompt| prompt.is_cancelled = true);
    }

    /// Notes that a request was cancelled.
    pub(super) fn cancel(&mut self, id: &Id) {
        let prompts = self.prompts.iter_mut().filter(|prompt| prompt.id == *id);
        prompts.for_each(|prompt| prompt.is_cancelled = true);
    }

    /// Notes the response to a prompt.
    pub(super) fn ended(&mut self, id: &Id) {
        self.prompts.retain(|prompt| prompt.id != *id);
    }

    /// The prompts to send again, in order, and the ids of those whose session is lost.
    pub(super) fn repeated(&mut self, is_open: impl Fn(&str) -> bool) -> (Vec<Vec<u8>>, Vec<Id>) {
        let repeats = self.repeats_prompts;
        let lost = self.prompts.extract_if(.., |prompt| !repeats || !is_open(&prompt.session));
        let lost = lost.map(|prompt| prompt.id).collect();
        let mut lines = Vec::new();
        for prompt in &self.prompts {
            lines.push(prompt.line.clone());
            // A cancel that is lost with the connection would leave the turn running. This one
            // reaches no other turn.
            if prompt.is_cancelled {
                lines.push(cancel_line(&prompt.id));
            }
        }
        (lines, lost)
    }
}

/// What happens to a prompt on its way.
pub(super) enum Keep {
    /// It fails at a cut.
    No,
    /// It is kept and sent as it is.
    Same,
    /// It is kept and sent as this line.
    As(Vec<u8>),
}

/// Returns the request that takes back a request with this id.
pub(super) fn cancel_line(id: &Id) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}})
        .to_string()
        .into_bytes()
}

/// Adds the cursor to the params of `session/resume`.
pub(super) fn resume_after(params: &mut Map<String, Value>, position: Position, is_v2: bool) {
    let at = position.to_string();
    if is_v2 {
        params.insert("replayFrom".to_owned(), json!({"type": "_attache_after", "at": at}));
        return;
    }
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    if !meta.is_object() {
        *meta = json!({});
    }
    meta["attache"] = json!({"after": at, "strict": true});
}

/// Declares in a line of `initialize` that positions are counted. Returns the line if it does not
/// say so already, and whether the client counts.
pub(super) fn declare_counting(line: &[u8], params: &str) -> (Option<Vec<u8>>, bool) {
    let read: Value = serde_json::from_str(params).unwrap_or_default();
    let is_v2 = read["protocolVersion"].as_u64() >= Some(2);
    let capabilities = if is_v2 { "capabilities" } else { "clientCapabilities" };
    if read[capabilities]["_meta"]["attache"].is_object() {
        return (None, true);
    }
    let declared = with_member(params, &[capabilities, "_meta", "attache"], "{}");
    (declared.and_then(|declared| with_params(line, params, &declared)), false)
}

fn with_prompt_id(line: &[u8], params: &str, name: &str) -> Option<Vec<u8>> {
    let name = Value::from(name).to_string();
    with_params(line, params, &with_member(params, &["_meta", "attache", "prompt"], &name)?)
}

/// The line with other params. `params` is a part of it.
fn with_params(line: &[u8], params: &str, other: &str) -> Option<Vec<u8>> {
    let start = (params.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let (before, after) = (line.get(..start)?, line.get(start + params.len()..)?);
    Some([before, other.as_bytes(), after].concat())
}

/// Adds a member to an object within an object, and leaves all other bytes as they are. `None` if
/// the path leads through something that is not an object, or if the member is there.
fn with_member(object: &str, path: &[&str], value: &str) -> Option<String> {
    let (name, rest) = path.split_first()?;
    let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(object).ok()?;
    if let Some(member) = members.get(*name) {
        let member = member.get();
        let inner = with_member(member, rest, value)?;
        let start = (member.as_ptr() as usize).checked_sub(object.as_ptr() as usize)?;
        let (before, after) = (object.get(..start)?, object.get(start + member.len()..)?);
        return Some(format!("{before}{inner}{after}"));
    }
    let nested = rest.iter().rev().fold(value.to_owned(), |value, name| format!(r#"{{"{name}":{value}}}"#));
    let front = object.trim_end().strip_suffix('}')?;
    let comma = if members.is_empty() { "" } else { "," };
    Some(format!(r#"{front}{comma}"{name}":{nested}}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(is_counting_client: bool) -> Hub {
        let announced = json!({"attache": {"after": true, "prompt": true}});
        let initialized = json!({"protocolVersion": 1, "agentCapabilities": {"_meta": announced}});
        Hub::announced(&initialized, is_counting_client).unwrap()
    }

    #[test]
    fn only_a_hub_with_positions_is_one() {
        for capabilities in [json!({}), json!({"_meta": {"attache": {"hub": "0.1.0", "prompt": true}}})] {
            let initialized = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
            assert!(Hub::announced(&initialized, false).is_none());
        }
        let initialized =
            json!({"protocolVersion": 2, "capabilities": {"_meta": {"attache": {"after": true}}}});
        assert!(Hub::announced(&initialized, false).is_some());
    }

    #[test]
    fn members_are_added_without_touching_the_rest() {
        let path = ["_meta", "attache", "prompt"];
        for (before, after) in [
            ("{}", Some(r#"{"_meta":{"attache":{"prompt":"x"}}}"#)),
            (r#"{"a": 1.50 }"#, Some(r#"{"a": 1.50 ,"_meta":{"attache":{"prompt":"x"}}}"#)),
            (
                r#"{"_meta":{"b":"\u00e4"},"a":1}"#,
                Some(r#"{"_meta":{"b":"\u00e4","attache":{"prompt":"x"}},"a":1}"#),
            ),
            (r#"{"_meta":{"attache":{}}}"#, Some(r#"{"_meta":{"attache":{"prompt":"x"}}}"#)),
            (r#"{"_meta":{"attache":{"prompt":"y"}}}"#, None),
            (r#"{"_meta":null}"#, None),
            ("[]", None),
        ] {
            assert_eq!(with_member(before, &path, r#""x""#).as_deref(), after, "{before}");
        }
    }

    #[test]
    fn messages_are_counted_as_the_contract_says() {
        let at = |seq| Some(Position { epoch: 3, seq });
        let hub = hub(false);
        let count = |method: &str, params: Value| {
            let counted = hub.count(at(7), method, &params.to_string());
            (counted.position, counted.is_shown)
        };
        let meta = |value: Value| json!({"sessionId": "s", "_meta": {"attache": value}});
        assert_eq!(count("session/update", json!({"sessionId": "s"})), (at(8), true));
        assert_eq!(count("session/update", meta(json!({"at": "3.20"}))), (at(20), true));
        assert_eq!(count("session/request_permission", meta(json!({"at": null}))), (at(7), true));
        assert_eq!(count("session/update", meta(json!({}))), (at(8), true));
        assert_eq!(count("session/update", json!({"sessionId": "s", "attache": 1})), (at(8), true));
        assert_eq!(count("_attache/position", json!({"sessionId": "s", "at": "3.9"})), (at(9), false));
        let own = format!("{}-0", hub.nonce.as_deref().unwrap());
        for (prompt, is_shown) in [(own.as_str(), false), ("another", true)] {
            assert_eq!(
                count("session/update", meta(json!({"at": "3.8", "prompt": prompt}))),
                (at(8), is_shown)
            );
            let mut ended = meta(json!({"at": "3.8"}));
            ended["prompt"] = json!(prompt);
            assert_eq!(count("_attache/turn_ended", ended), (at(8), is_shown));
        }
    }

    #[test]
    fn prompts_are_kept_with_a_bound() {
        let mut hub = hub(false);
        let line = |name: &str| {
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"_meta": {"attache": {"prompt": name}}}})
                .to_string()
        };
        let mut keep = |number: i64, name: &str| {
            let line = line(name);
            let start = line.find("\"params\":").unwrap() + "\"params\":".len();
            let params = &line[start..line.len() - 1];
            let session = if number % 2 == 0 { "even" } else { "odd" };
            matches!(hub.keep(&Id::Int(number), session, line.as_bytes(), params), Keep::Same)
        };
        assert!(!keep(0, "") && !keep(0, &"x".repeat(NAME_BYTES + 1)), "the hub would not take these ids");
        for number in 0..PROMPTS as i64 {
            assert!(keep(number, &number.to_string()));
        }
        assert!(!keep(1000, "one more"));
        hub.cancel(&Id::Int(0));
        hub.ended(&Id::Int(2));
        let (lines, lost) = hub.repeated(|session| session == "even");
        assert_eq!((lines.len(), lost.len()), (PROMPTS / 2 - 1 + 1, PROMPTS / 2));
        assert_eq!(lines[1], cancel_line(&Id::Int(0)));
    }
}
