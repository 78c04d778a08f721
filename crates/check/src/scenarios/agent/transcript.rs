//! Comparison of a replay with the conversation that it repeats.
//!
//! An agent stores a conversation in its own way: chunks are joined, white space changes, prompts
//! get additions. So messages are compared by their words, and a message counts as repeated if more
//! than half of its words are there. Updates may be of either version.

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
        let updates = updates.filter(|(_, kind, _)| !is_of_user(kind));
        updates.for_each(|(_, kind, update)| exchange.take(kind, update));
        exchange
    }

    fn take(&mut self, kind: &str, update: &Value) {
        match kind {
            "user_message" | "user_message_chunk" => self.prompt.push_str(&text_of(&update["content"])),
            "agent_message" | "agent_message_chunk" => {
                let text = text_of(&update["content"]);
                self.text.push_str(&text);
                self.answer.push_str(&text);
            }
            "tool_call" | "tool_call_update" | "tool_call_content_chunk" => {
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
            let begins = is_of_user(kind) && list.last().is_none_or(|last| !last.is_silent());
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
        match self.reactions(turns) {
            Err(what) => Some(what),
            Ok(reactions) => {
                let lost = turns.iter().zip(&reactions).find(|(turn, all)| !holds(&all.text, &turn.answer));
                lost.map(|(turn, _)| format!("the answer {:?} to {:?}", turn.answer, turn.prompt))
            }
        }
    }

    /// The first tool call of these turns that the replay has at another place, in words.
    pub(super) fn misplaced(&self, turns: &[Exchange]) -> Option<String> {
        let reactions = self.reactions(turns).ok()?;
        turns.iter().zip(&reactions).find_map(|(turn, all)| {
            // Calls with new ids cannot be found again.
            let known = turn.tools.iter().filter(|id| self.0.iter().any(|one| one.tools.contains(*id)));
            let elsewhere = known.clone().find(|id| !all.tools.contains(*id));
            if let Some(id) = elsewhere {
                return Some(format!("the tool call {id:?} is not in the turn of {:?}", turn.prompt));
            }
            let is_after =
                known.count() > 0 && holds(&all.text, &turn.answer) && !holds(&all.answer, &turn.answer);
            is_after
                .then(|| format!("the answer {:?} comes before the tool calls that led to it", turn.answer))
        })
    }

    /// What the replay has between the prompts of these turns.
    ///
    /// # Errors
    /// The prompt that is missing, in words.
    fn reactions(&self, turns: &[Exchange]) -> Result<Vec<Exchange>, String> {
        let mut from = 0;
        let mut reactions = Vec::new();
        for (number, turn) in turns.iter().enumerate() {
            let rest = self.0.get(from..).unwrap_or_default();
            let Some(place) = rest.iter().position(|exchange| holds(&exchange.prompt, &turn.prompt)) else {
                return Err(format!("the prompt {:?}", turn.prompt));
            };
            from += place;
            let next = turns.get(number + 1).map(|turn| &turn.prompt);
            let rest = &self.0[from..];
            // The reaction ends where the next prompt begins.
            let end = next
                .and_then(|prompt| rest.iter().skip(1).position(|exchange| holds(&exchange.prompt, prompt)));
            let mut all = Exchange::default();
            for exchange in rest.iter().take(end.map_or(rest.len(), |end| end + 1)) {
                if !exchange.tools.is_empty() {
                    all.answer.clear();
                }
                for (text, more) in [(&mut all.text, &exchange.text), (&mut all.answer, &exchange.answer)] {
                    text.push_str(more);
                    text.push(' ');
                }
                all.tools.extend(exchange.tools.iter().cloned());
            }
            reactions.push(all);
            // Prompts without a reaction between them are one message of the replay.
            from += usize::from(!turn.is_silent());
        }
        Ok(reactions)
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

fn is_of_user(kind: &str) -> bool {
    matches!(kind, "user_message" | "user_message_chunk")
}

/// The text of a content block, or of a list of them.
fn text_of(content: &Value) -> String {
    let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
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

    #[test]
    fn a_tool_call_stays_in_its_turn_and_before_the_answer() {
        let with_tool = |id: &str, answer: &str| Exchange {
            tools: [id.to_owned()].into(),
            answer: answer.to_owned(),
            ..exchange("read the file", "alpha")
        };
        let live = [exchange("say one", "one, two"), with_tool("t1", "alpha")];
        assert_eq!(Transcript(live.to_vec()).misplaced(&live), None);
        let after = Transcript(vec![live[0].clone(), with_tool("t1", "")]);
        assert!(after.misplaced(&live).is_some_and(|what| what.contains("before the tool calls")));
        let early = Exchange { tools: ["t1".to_owned()].into(), ..live[0].clone() };
        let moved = Transcript(vec![early, exchange("read the file", "alpha")]);
        assert!(moved.misplaced(&live).is_some_and(|what| what.contains("not in the turn")));
        let renamed = Transcript(vec![live[0].clone(), with_tool("other", "")]);
        assert_eq!(renamed.misplaced(&live), None);
    }

    #[test]
    fn messages_of_version_2_are_lists_of_blocks_or_chunks() {
        let block = |text: &str| serde_json::json!({ "content": [{ "type": "text", "text": text }] });
        let mut exchange = Exchange::default();
        exchange.take("user_message", &block("say one"));
        exchange.take("agent_message", &block("one"));
        exchange.take("tool_call_content_chunk", &serde_json::json!({ "toolCallId": "t" }));
        assert_eq!((exchange.prompt.as_str(), exchange.tools()), ("say one", 1));
        assert!(!exchange.has_answer() && exchange.text.starts_with("one"));
    }
}
