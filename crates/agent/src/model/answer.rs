//! The events of an answer put together to the message that it is.

use serde_json::{Value, json};

use super::event::{Event, Stop, Usage};
use super::message::{Message, Part, Role, ToolCall};

/// An answer, as far as it has come. Feed it every event; whatever happens next, [`Answer::message`] is what was said.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    parts: Vec<Part>,
    /// Whether the last thought is complete, so that the next one is another.
    sealed: bool,
    /// Tokens used.
    pub usage: Usage,
    /// How it ended; `None` while it has not, or if it was cut off.
    pub stop: Option<Stop>,
}

impl Answer {
    /// Takes one event in.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Text(text) => match self.parts.last_mut() {
                Some(Part::Text(said)) => said.push_str(text),
                _ => self.parts.push(Part::Text(text.clone())),
            },
            Event::Thought(text) => match self.parts.last_mut() {
                Some(Part::Thought { text: thought, .. }) if !self.sealed => thought.push_str(text),
                _ => self.think(text.clone(), None),
            },
            Event::Seal(value) => match self.parts.last_mut() {
                Some(Part::Thought { seal, .. }) if !self.sealed => {
                    *seal = Some(value.clone());
                    self.sealed = true;
                }
                _ => {
                    self.think(String::new(), Some(value.clone()));
                    self.sealed = true;
                }
            },
            Event::CallEnds { call: Ok(call), .. } => self.parts.push(Part::Call(call.clone())),
            // A call without usable arguments stays in the conversation, so that its failed result has something to
            // answer to. Providers take objects only, so the raw text becomes a member.
            Event::CallEnds { call: Err(bad), .. } => self.parts.push(Part::Call(ToolCall {
                id: bad.id.clone(),
                name: bad.name.clone(),
                arguments: json!({ "invalid": bad.raw }),
                seal: None,
            })),
            Event::Usage(usage) => self.usage = *usage,
            Event::End(stop) => self.stop = Some(stop.clone()),
            Event::CallBegins { .. } | Event::CallGrows { .. } | Event::Retry { .. } => {}
        }
    }

    fn think(&mut self, text: String, seal: Option<Value>) {
        self.parts.push(Part::Thought { text, seal });
        self.sealed = false;
    }

    /// Whether nothing has been said, thought or called.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// What has been said as a message of the model. Calls that were cut off are not in it.
    pub fn message(&self) -> Message {
        Message { role: Role::Assistant, parts: self.parts.clone() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pieces_become_parts_and_seals_close_thoughts() {
        let mut answer = Answer::default();
        for event in [
            Event::Thought("a".into()),
            Event::Thought("b".into()),
            Event::Seal(json!(1)),
            Event::Thought("c".into()),
            Event::Seal(json!(2)),
            Event::Seal(json!(3)),
            Event::Text("x".into()),
            Event::Text("y".into()),
            Event::Thought("d".into()),
            Event::End(Stop::Done),
        ] {
            answer.take(&event);
        }
        let thought = |text: &str, seal: Option<Value>| Part::Thought { text: text.into(), seal };
        assert_eq!(
            answer.message().parts,
            [
                thought("ab", Some(json!(1))),
                thought("c", Some(json!(2))),
                thought("", Some(json!(3))),
                Part::Text("xy".into()),
                thought("d", None),
            ]
        );
        assert_eq!(answer.stop, Some(Stop::Done));
    }
}
