//! Comparison of a replay with the conversation that it repeats.
//!
//! An agent stores a conversation in its own way: chunks are joined, white space changes, prompts
//! get additions. So messages are compared by their words, and a message counts as repeated if more
//! than half of its words are there.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::judge::Message;

/// A prompt and the agent's reaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchange {
    prompt: String,
    /// All text of the agent.
    text: String,
    /// The text after the last tool call.
    answer: String,
    tools: BTreeSet<String>,
}

/// A replay, cut at the user's messages.
#[derive(Debug)]
pub(super) struct Transcript(Vec<Exchange>);

impl Exchange {
    /// A turn that ran: the text of its prompt and its updates.
    pub(super) fn of_turn<'a>(
        prompt: &str,
        updates: impl Iterator<Item = (&'a Message, &'a str, &'a Value)>,
    ) -> Exchange {
        let mut exchange = Exchange { prompt: prompt.to_owned(), ..Exchange::default() };
        // An echo of the prompt is none of the agent's words.
        let updates = updates.filter(|(_, kind, _)| *kind != "user_message_chunk");
        updates.for_each(|(_, kind, update)| exchange.take(kind, update));
        exchange
    }

    fn take(&mut self, kind: &str, update: &Value) {
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match kind {
            "user_message_chunk" => self.prompt.push_str(text),
            "agent_message_chunk" => {
                self.text.push_str(text);
                self.answer.push_str(text);
            }
            "tool_call" | "tool_call_update" => {
                self.tools.extend(update["toolCallId"].as_str().map(str::to_owned));
                self.answer.clear();
                self.text.push(' ');
            }
            _ => {}
        }
    }

    /// The number of tool calls.
    pub(super) fn tools(&self) -> usize {
        self.tools.len()
    }

    /// Whether the agent said something at the end.
    pub(super) fn has_answer(&self) -> bool {
        words(&self.answer).next().is_some()
    }

    fn is_silent(&self) -> bool {
        words(&self.text).next().is_none() && self.tools.is_empty()
    }
}

impl Transcript {
    /// The updates of a replay.
    pub(super) fn of<'a>(updates: impl Iterator<Item = (&'a Message, &'a str, &'a Value)>) -> Transcript {
        let mut list: Vec<Exchange> = Vec::new();
        for (_, kind, update) in updates {
            let begins = kind == "user_message_chunk" && list.last().is_none_or(|last| !last.is_silent());
            if begins || list.is_empty() {
                list.push(Exchange::default());
            }
            if let Some(last) = list.last_mut() {
                last.take(kind, update);
            }
        }
        Transcript(list)
    }

    /// The number of tool calls.
    pub(super) fn tools(&self) -> usize {
        let all: BTreeSet<&String> = self.0.iter().flat_map(|exchange| &exchange.tools).collect();
        all.len()
    }

    /// Whether the answer of this turn is anywhere in the replay.
    pub(super) fn holds_answer(&self, turn: &Exchange) -> bool {
        self.0.iter().any(|exchange| holds(&exchange.text, &turn.answer))
    }

    /// The first message of these turns that is not in the replay, in words.
    pub(super) fn missing(&self, turns: &[Exchange]) -> Option<String> {
        let mut from = 0;
        for (number, turn) in turns.iter().enumerate() {
            let rest = self.0.get(from..).unwrap_or_default();
            let Some(place) = rest.iter().position(|exchange| holds(&exchange.prompt, &turn.prompt)) else {
                return Some(format!("the prompt {:?}", turn.prompt));
            };
            from += place;
            let next = turns.get(number + 1).map(|turn| &turn.prompt);
            let rest = &self.0[from..];
            // The reaction ends where the next prompt begins.
            let end = next
                .and_then(|prompt| rest.iter().skip(1).position(|exchange| holds(&exchange.prompt, prompt)));
            let text: String = rest.iter().take(end.map_or(rest.len(), |end| end + 1)).fold(
                String::new(),
                |mut text, exchange| {
                    text.push_str(&exchange.text);
                    text.push(' ');
                    text
                },
            );
            if !holds(&text, &turn.answer) {
                return Some(format!("the answer {:?} to {:?}", turn.answer, turn.prompt));
            }
            // Prompts without a reaction between them are one message of the replay.
            from += usize::from(!turn.is_silent());
        }
        None
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for exchange in &self.0 {
            write!(f, "[user {:?}, agent {:?}]", exchange.prompt, exchange.text)?;
        }
        Ok(())
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(str::to_lowercase)
}

/// Whether more than half of the words of `wanted` are in `text`.
fn holds(text: &str, wanted: &str) -> bool {
    let there: BTreeSet<String> = words(text).collect();
    let wanted: BTreeSet<String> = words(wanted).collect();
    let found = wanted.iter().filter(|word| there.contains(*word)).count();
    wanted.is_empty() || found * 2 > wanted.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(prompt: &str, text: &str) -> Exchange {
        Exchange {
            prompt: prompt.to_owned(),
            text: text.to_owned(),
            answer: text.to_owned(),
            ..Exchange::default()
        }
    }

    #[test]
    fn a_replay_may_join_and_add_words_but_not_lose_a_message() {
        let live =
            [exchange("say one", "one, two"), exchange("read the file", "alpha"), exchange("say one", "")];
        let same = Transcript(live.to_vec());
        assert_eq!(same.missing(&live), None);
        let added = Transcript(vec![
            exchange("<context>\nsay one", "one,two and more"),
            exchange("read the file now", "Alpha"),
            exchange("say one", ""),
        ]);
        assert_eq!(added.missing(&live), None);
        let lost = Transcript(vec![exchange("say one", "one, two"), exchange("say one", "")]);
        assert!(lost.missing(&live).is_some_and(|what| what.contains("read the file")));
        let unanswered = Transcript(vec![
            exchange("say one", "one, two"),
            exchange("read the file", ""),
            exchange("say one", ""),
        ]);
        assert!(unanswered.missing(&live).is_some_and(|what| what.contains("alpha")));
        let turned = Transcript(vec![live[1].clone(), live[0].clone(), live[2].clone()]);
        assert!(turned.missing(&live).is_some());
    }

    #[test]
    fn prompts_without_a_reaction_are_one_message() {
        let live = [exchange("say one", ""), exchange("say two", "two")];
        assert_eq!(Transcript(vec![exchange("say onesay two one", "two")]).missing(&live), None);
    }
}
