//! The part of each message that was given out. It distinguishes new content from content that only
//! grew.
//!
//! No text is kept: a message is its length and a checksum. An agent can only mislead about its own
//! messages.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use attache_wire::v1::{ContentBlock, MessageId};

use crate::client::event::Speaker;

/// Messages that are remembered; the oldest are forgotten first.
const MESSAGES: usize = 4_096;

/// The relation of new content to what was given out of a message.
#[derive(Debug, PartialEq)]
pub(super) enum Replacement {
    /// The message is new.
    New,
    /// The content is the same.
    Same,
    /// The text is the same, followed by this.
    Longer(String),
    /// The content is another.
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The message that was appended to last, which is mostly the next one, too.
    last: Option<(Speaker, MessageId, Seen)>,
    /// With the number of the latest change.
    seen: HashMap<u64, (Seen, u64)>,
    /// Messages and the numbers of their changes, the oldest first.
    order: VecDeque<(u64, u64)>,
    changes: u64,
    keys: RandomState,
}

impl Messages {
    fn key(&self, child: &str, speaker: Speaker, id: &MessageId) -> u64 {
        self.keys.hash_one((child, speaker, id.as_str()))
    }

    /// Notes content that is appended.
    pub(super) fn append(&mut self, child: &str, speaker: Speaker, id: &MessageId, block: &ContentBlock) {
        if let Some((by, last, seen)) = &mut self.last
            && child.is_empty()
            && *by == speaker
            && last == id
        {
            return seen.add(block);
        }
        let mut seen = self.take(child, speaker, id).unwrap_or_default();
        seen.add(block);
        match child.is_empty() {
            true => {
                self.flush();
                self.last = Some((speaker, id.clone(), seen));
            }
            false => self.put(self.key(child, speaker, id), seen),
        }
    }

    /// Notes content that replaces all of a message.
    pub(super) fn replace(
        &mut self,
        child: &str,
        speaker: Speaker,
        id: &MessageId,
        content: &[ContentBlock],
    ) -> Replacement {
        self.flush();
        let before = self.take(child, speaker, id);
        let mut now = Seen::default();
        content.iter().for_each(|block| now.add(block));
        let replacement = match &before {
            None => Replacement::New,
            Some(before) if *before == now => Replacement::Same,
            Some(before) => before.rest(content).map_or(Replacement::Other, Replacement::Longer),
        };
        self.put(self.key(child, speaker, id), now);
        replacement
    }

    fn take(&mut self, child: &str, speaker: Speaker, id: &MessageId) -> Option<Seen> {
        self.seen.remove(&self.key(child, speaker, id)).map(|(seen, _)| seen)
    }

    fn flush(&mut self) {
        if let Some((speaker, id, seen)) = self.last.take() {
            self.put(self.key("", speaker, &id), seen);
        }
    }

    fn put(&mut self, key: u64, seen: Seen) {
        self.changes += 1;
        self.seen.insert(key, (seen, self.changes));
        self.order.push_back((key, self.changes));
        while self.seen.len() > MESSAGES || self.order.len() > 4 * MESSAGES {
            let Some((key, change)) = self.order.pop_front() else { break };
            // A message that changed later has another place in the order.
            if self.seen.get(&key).is_some_and(|(_, latest)| *latest == change) {
                self.seen.remove(&key);
            }
        }
    }
}

/// Length and checksum of a text, and whether there was anything but text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Seen {
    length: usize,
    sum: u64,
    /// Bytes that do not fill a word yet.
    word: u64,
    others: usize,
}

impl Seen {
    fn add(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.add_text(text.text.as_bytes()),
            _ => self.others += 1,
        }
    }

    /// The checksum does not depend on how the text is cut.
    fn add_text(&mut self, text: &[u8]) {
        let mut rest = text;
        while !self.length.is_multiple_of(8)
            && let Some((byte, more)) = rest.split_first()
        {
            self.word |= u64::from(*byte) << (self.length % 8 * 8);
            self.length += 1;
            rest = more;
            if self.length.is_multiple_of(8) {
                self.mix(self.word);
                self.word = 0;
            }
        }
        let (words, tail) = rest.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        self.length += words.len() * 8;
        for byte in tail {
            self.word |= u64::from(*byte) << (self.length % 8 * 8);
            self.length += 1;
        }
    }

    fn mix(&mut self, word: u64) {
        self.sum = (self.sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }

    /// Returns the rest of the content after this text, if the content begins with it and is only
    /// text.
    fn rest(&self, content: &[ContentBlock]) -> Option<String> {
        if self.others > 0 {
            return None;
        }
        let mut all = String::new();
        for block in content {
            let ContentBlock::Text(text) = block else { return None };
            all.push_str(&text.text);
        }
        let mut before = Seen::default();
        before.add_text(all.as_bytes().get(..self.length)?);
        let rest = all.get(self.length..).filter(|_| before == *self)?;
        Some(rest.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> ContentBlock {
        text.into()
    }

    #[test]
    fn content_that_grows_is_told_from_other_content() {
        // shows V2-17
        let (mut messages, id) = (Messages::default(), MessageId::from("m"));
        for chunk in ["Hel", "lo, ", "", "wonderful"] {
            messages.append("", Speaker::Agent, &id, &text(chunk));
        }
        let mut replace = |speaker, content: &[ContentBlock]| messages.replace("", speaker, &id, content);
        assert_eq!(replace(Speaker::Thought, &[text("Hello")]), Replacement::New);
        assert_eq!(replace(Speaker::Agent, &[text("Hello, won"), text("derful")]), Replacement::Same);
        let longer = Replacement::Longer(" world".to_owned());
        assert_eq!(replace(Speaker::Agent, &[text("Hello, wonderful world")]), longer);
        assert_eq!(replace(Speaker::Agent, &[text("Hello, wonderful word")]), Replacement::Other);
        assert_eq!(replace(Speaker::Agent, &[]), Replacement::Other);
        let longer = Replacement::Longer("Hi".to_owned());
        assert_eq!(replace(Speaker::Agent, &[text("Hi")]), longer);
    }

    #[test]
    fn memory_is_bounded() {
        let mut messages = Messages::default();
        for number in 0..3 * MESSAGES {
            messages.append("", Speaker::Agent, &MessageId::from(number.to_string()), &text("x"));
            messages.append("child", Speaker::Agent, &MessageId::from("same"), &text("x"));
        }
        assert!(messages.seen.len() <= MESSAGES && messages.order.len() <= 4 * MESSAGES);
        assert_eq!(
            messages.replace("child", Speaker::Agent, &MessageId::from("same"), &[text("x")]),
            Replacement::Other
        );
    }
}
