//! Assembles the events of a response into a message.

use serde_json::{Value, json};

use super::event::{Event, Stop, Usage};
use super::message::{Message, Part, Role, ToolCall};

/// A response, as far as it was received. Add every event; [`Response::message`] is valid at any
/// time.
#[derive(Debug, Clone, Default)]
pub struct Response {
    parts: Vec<Part>,
    /// Whether the last thought is complete, so that the next one is a new part.
    signed: bool,
    /// Tokens used.
    pub usage: Usage,
    /// How it ended; `None` if it has not, or was cut off.
    pub stop: Option<Stop>,
}

impl Response {
    /// Adds an event.
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Text(text) => match self.parts.last_mut() {
                Some(Part::Text(said)) => said.push_str(text),
                _ => self.parts.push(Part::Text(text.clone())),
            },
            Event::Thought(text) => match self.parts.last_mut() {
                Some(Part::Thought { text: thought, .. }) if !self.signed => thought.push_str(text),
                _ => self.think(text.clone(), None),
            },
            Event::Signature(value) => match self.parts.last_mut() {
                Some(Part::Thought { signature, .. }) if !self.signed => {
                    *signature = Some(value.clone());
                    self.signed = true;
                }
                _ => {
                    self.think(String::new(), Some(value.clone()));
                    self.signed = true;
                }
            },
            Event::CallEnds { call: Ok(call), .. } => self.parts.push(Part::Call(call.clone())),
            // An invalid call stays in the conversation, because its failed result needs it.
            // Providers accept objects only, so the raw text becomes a member.
            Event::CallEnds { call: Err(invalid), .. } => self.parts.push(Part::Call(ToolCall {
                id: invalid.id.clone(),
                name: invalid.name.clone(),
                arguments: json!({ "invalid": invalid.raw }),
                signature: None,
            })),
            Event::Usage(usage) => self.usage = *usage,
            Event::End(stop) => self.stop = Some(stop.clone()),
            Event::CallBegins { .. } | Event::CallGrows { .. } | Event::Retry { .. } => {}
        }
    }

    fn think(&mut self, text: String, signature: Option<Value>) {
        self.parts.push(Part::Thought { text, signature });
        self.signed = false;
    }

    /// Whether there is no text, thought or call.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The message so far, without calls that were cut off.
    pub fn message(&self) -> Message {
        Message { role: Role::Assistant, parts: self.parts.clone() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pieces_become_parts_and_signatures_close_thoughts() {
        let mut response = Response::default();
        for event in [
            Event::Thought("a".into()),
            Event::Thought("b".into()),
            Event::Signature(json!(1)),
            Event::Thought("c".into()),
            Event::Signature(json!(2)),
            Event::Signature(json!(3)),
            Event::Text("x".into()),
            Event::Text("y".into()),
            Event::Thought("d".into()),
            Event::End(Stop::Done),
        ] {
            response.add(&event);
        }
        let thought = |text: &str, signature: Option<Value>| Part::Thought { text: text.into(), signature };
        assert_eq!(
            response.message().parts,
            [
                thought("ab", Some(json!(1))),
                thought("c", Some(json!(2))),
                thought("", Some(json!(3))),
                Part::Text("xy".into()),
                thought("d", None),
            ]
        );
        assert_eq!(response.stop, Some(Stop::Done));
    }
}
