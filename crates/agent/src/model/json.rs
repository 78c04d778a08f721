//! Messages as JSON and back, for the store.
//!
//! ```json
//! {"role":"assistant","parts":[{"type":"text","text":"hello"},{"type":"call","id":"c1","name":"read","arguments":{}}]}
//! ```

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::message::{Message, Part, Role, ToolCall};

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("role", self.role.word())?;
        map.serialize_entry("parts", &self.parts)?;
        map.end()
    }
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Part::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Part::Image { mime, data } => media(&mut map, "image", mime, data)?,
            Part::Audio { mime, data } => media(&mut map, "audio", mime, data)?,
            Part::Thought { text, seal } => {
                map.serialize_entry("type", "thought")?;
                map.serialize_entry("text", text)?;
                sealed(&mut map, seal.as_ref())?;
            }
            Part::Call(call) => {
                map.serialize_entry("type", "call")?;
                map.serialize_entry("id", &call.id)?;
                map.serialize_entry("name", &call.name)?;
                map.serialize_entry("arguments", &call.arguments)?;
                sealed(&mut map, call.seal.as_ref())?;
            }
            Part::Result { call, parts, failed } => {
                map.serialize_entry("type", "result")?;
                map.serialize_entry("call", call)?;
                map.serialize_entry("parts", parts)?;
                map.serialize_entry("failed", failed)?;
            }
        }
        map.end()
    }
}

fn media<M: SerializeMap>(map: &mut M, kind: &str, mime: &str, data: &str) -> Result<(), M::Error> {
    map.serialize_entry("type", kind)?;
    map.serialize_entry("mime", mime)?;
    map.serialize_entry("data", data)
}

fn sealed<M: SerializeMap>(map: &mut M, seal: Option<&Value>) -> Result<(), M::Error> {
    match seal {
        Some(seal) => map.serialize_entry("seal", seal),
        None => Ok(()),
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        message(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        part(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn message(value: Value) -> Result<Message, String> {
    let mut object = object(value)?;
    let role = match text(&mut object, "role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        other => return Err(format!("`{other}` is no role")),
    };
    Ok(Message { role, parts: parts(&mut object)? })
}

fn part(value: Value) -> Result<Part, String> {
    let mut object = object(value)?;
    let object = &mut object;
    Ok(match text(object, "type")?.as_str() {
        "text" => Part::Text(text(object, "text")?),
        "image" => Part::Image { mime: text(object, "mime")?, data: text(object, "data")? },
        "audio" => Part::Audio { mime: text(object, "mime")?, data: text(object, "data")? },
        "thought" => Part::Thought { text: text(object, "text")?, seal: object.remove("seal") },
        "call" => Part::Call(ToolCall {
            id: text(object, "id")?,
            name: text(object, "name")?,
            arguments: object.remove("arguments").ok_or("a call without arguments")?,
            seal: object.remove("seal"),
        }),
        "result" => Part::Result {
            call: text(object, "call")?,
            failed: object.get("failed").and_then(Value::as_bool).unwrap_or(false),
            parts: parts(object)?,
        },
        other => return Err(format!("`{other}` is no kind of part")),
    })
}

fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err("expected an object".to_owned()),
    }
}

// Values are taken out, so that a picture of some megabytes is not copied.
fn text(object: &mut Map<String, Value>, key: &str) -> Result<String, String> {
    match object.remove(key) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("`{key}` must be a text")),
    }
}

fn parts(object: &mut Map<String, Value>) -> Result<Vec<Part>, String> {
    match object.remove("parts") {
        Some(Value::Array(parts)) => parts.into_iter().map(part).collect(),
        _ => Err("`parts` must be a list".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_part_comes_back_as_it_was() {
        let call = ToolCall {
            id: "c1".into(),
            name: "read".into(),
            arguments: json!({"path": "a"}),
            seal: Some(json!({"of": "gemini"})),
        };
        let image = Part::Image { mime: "image/png".into(), data: "AA==".into() };
        let message = Message {
            role: Role::Assistant,
            parts: vec![
                Part::Text("a \"b\"\n".into()),
                image.clone(),
                Part::Audio { mime: "audio/wav".into(), data: "AA==".into() },
                Part::Thought {
                    text: String::new(),
                    seal: Some(json!({"of": "anthropic", "signature": "s"})),
                },
                Part::Thought { text: "hm".into(), seal: None },
                Part::Call(call),
                Part::Result { call: "c1".into(), parts: vec![Part::Text("x".into()), image], failed: true },
            ],
        };
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message, "{text}");
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for text in [
            "[]",
            r#"{"role":"system","parts":[]}"#,
            r#"{"role":"user"}"#,
            r#"{"role":"user","parts":[{"type":"smell"}]}"#,
            r#"{"role":"user","parts":[{"type":"call","id":"1","name":"x"}]}"#,
        ] {
            assert!(serde_json::from_str::<Message>(text).is_err(), "{text}");
        }
    }
}
