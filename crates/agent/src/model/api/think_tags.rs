//! Splits thoughts between `<think>` and `</think>` from the beginning of a text, for servers that
//! do not.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thought,
}

/// The position in the text.
enum State {
    /// Only whitespace so far, and perhaps the beginning of the tag.
    Start,
    Inside,
    /// After the closing tag, where whitespace is dropped.
    Gap,
    /// In the text, or there was no tag.
    Text,
}

pub(super) struct ThinkTags {
    state: State,
    /// Text that may be the beginning of a tag.
    held: String,
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

impl ThinkTags {
    pub(super) fn new(expected: bool) -> Self {
        ThinkTags { state: if expected { State::Start } else { State::Text }, held: String::new() }
    }

    /// Adds a piece of text and returns what is certain, by kind.
    pub(super) fn push(&mut self, piece: &str) -> Vec<(Kind, String)> {
        let mut out = Vec::new();
        self.held.push_str(piece);
        if matches!(self.state, State::Start) {
            let front = self.held.trim_start();
            if front.starts_with(OPEN) {
                let start = self.held.len() - front.len() + OPEN.len();
                self.held.drain(..start);
                self.state = State::Inside;
            } else if !OPEN.starts_with(front) {
                self.state = State::Text;
            } else {
                return out;
            }
        }
        if matches!(self.state, State::Inside) {
            if let Some(end) = self.held.find(CLOSE) {
                let rest = self.held.split_off(end);
                out.push((Kind::Thought, std::mem::replace(&mut self.held, rest[CLOSE.len()..].to_owned())));
                self.state = State::Gap;
            } else {
                let keep =
                    (0..CLOSE.len()).rev().find(|len| self.held.ends_with(&CLOSE[..*len])).unwrap_or(0);
                let held = self.held.split_off(self.held.len() - keep);
                out.push((Kind::Thought, std::mem::replace(&mut self.held, held)));
            }
        }
        if matches!(self.state, State::Gap) {
            self.held = self.held.trim_start().to_owned();
            if !self.held.is_empty() {
                self.state = State::Text;
            }
        }
        if matches!(self.state, State::Text) {
            out.push((Kind::Text, std::mem::take(&mut self.held)));
        }
        out.retain(|(_, text)| !text.is_empty());
        out
    }

    /// The rest at the end.
    pub(super) fn rest(&mut self) -> Option<(Kind, String)> {
        let rest = std::mem::take(&mut self.held);
        let kind = if matches!(self.state, State::Inside) { Kind::Thought } else { Kind::Text };
        (!rest.trim().is_empty()).then_some((kind, rest))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn split(expected: bool, pieces: &[&str]) -> (String, String) {
        let mut tags = ThinkTags::new(expected);
        let (mut thought, mut text) = (String::new(), String::new());
        let mut all: Vec<_> = pieces.iter().flat_map(|piece| tags.push(piece)).collect();
        all.extend(tags.rest());
        for (kind, piece) in all {
            if kind == Kind::Thought { thought.push_str(&piece) } else { text.push_str(&piece) }
        }
        (thought, text)
    }

    #[test]
    fn thoughts_are_recognised_at_any_chunk_boundary() {
        let cases = [
            ("\n<think>a < b</thin k</think>\n\n hello </think>", "a < b</thin k", "hello </think>"),
            ("<thinking>no", "", "<thinking>no"),
            ("say <think>no</think>", "", "say <think>no</think>"),
            ("<think>never ends</thi", "never ends</thi", ""),
            ("<thi", "", "<thi"),
            ("", "", ""),
        ];
        for (whole, thought, text) in cases {
            for cut in 0..=whole.len() {
                let found = split(true, &[&whole[..cut], &whole[cut..]]);
                assert_eq!(found, (thought.to_owned(), text.to_owned()), "{whole} cut at {cut}");
            }
        }
        assert_eq!(split(false, &["<think>a</think>"]), (String::new(), "<think>a</think>".to_owned()));
    }
}
