//! Masking in JSON text; members without secrets are copied byte by byte.

use std::borrow::Cow;

use super::names::Level;
use super::{MASKED, Mask, is_secret_name};

/// Deeper messages are masked as text.
const MAX_DEPTH: usize = 128;

/// `None` if the line is not JSON.
pub(super) fn mask<'a>(mask: &Mask, level: Level, line: &'a str) -> Option<Cow<'a, str>> {
    let mut copy = Copy { mask, level, line, at: 0, done: 0, out: String::new() };
    copy.value(Position::Plain, 0)?;
    copy.blanks();
    if copy.at != line.len() {
        return None;
    }
    if copy.done == 0 {
        return Some(Cow::Borrowed(line));
    }
    copy.out.push_str(&line[copy.done..]);
    Some(Cow::Owned(copy.out))
}

/// The position of a value in the message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Plain,
    /// In the `params` of a message.
    Params,
    /// Below `env` or `headers`: a list of names and values, or an object of them.
    Pairs,
    /// Variables that an agent gives a command: only those named like secrets are masked, since the
    /// others are needed to run the command again.
    NamedPairs,
    Secret,
}

struct Copy<'a> {
    mask: &'a Mask,
    level: Level,
    line: &'a str,
    at: usize,
    /// Up to here the line is in `out`.
    done: usize,
    out: String,
}

impl<'a> Copy<'a> {
    fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, position: Position, depth: usize) -> Option<()> {
        self.blanks();
        match self.peek()? {
            _ if depth > MAX_DEPTH => None,
            b'{' => self.object(position, depth),
            b'[' => self.array(position, depth),
            b'"' => {
                let start = self.at;
                let text = self.string()?;
                let masked = match position {
                    Position::Secret => Cow::Borrowed(MASKED),
                    _ => self.mask.at(self.level, &text),
                };
                if masked != text {
                    self.put(start, &masked)?;
                }
                Some(())
            }
            _ => {
                let is_end = |c: char| c == ',' || c == '}' || c == ']' || c.is_ascii_whitespace();
                let rest = self.line.get(self.at..)?;
                let length = rest.find(is_end).unwrap_or(rest.len());
                let word = &rest[..length];
                serde_json::from_str::<serde_json::Value>(word).ok()?;
                let start = self.at;
                self.at += length;
                // A secret may be a number; numbers stay where types must not change.
                if self.level == Level::Names && self.mask.text(word) != word {
                    self.put(start, MASKED)?;
                }
                Some(())
            }
        }
    }

    /// Replaces the value between `start` and the current position.
    fn put(&mut self, start: usize, text: &str) -> Option<()> {
        let new = serde_json::to_string(text).ok()?;
        self.out.push_str(&self.line[self.done..start]);
        self.out.push_str(&new);
        self.done = self.at;
        Some(())
    }

    /// Reads a string and advances past it.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let bytes = self.line.as_bytes();
        let mut end = self.at + 1;
        let mut is_plain = true;
        loop {
            match bytes.get(end)? {
                b'"' => break,
                b'\\' => {
                    is_plain = false;
                    end += 2;
                }
                byte => {
                    is_plain &= *byte >= b' ';
                    end += 1;
                }
            }
        }
        let text = match is_plain {
            true => Cow::Borrowed(self.line.get(self.at + 1..end)?),
            false => Cow::Owned(serde_json::from_str(self.line.get(self.at..=end)?).ok()?),
        };
        self.at = end + 1;
        Some(text)
    }

    fn object(&mut self, position: Position, depth: usize) -> Option<()> {
        let named = match position {
            Position::NamedPairs => self.name_of_pair(),
            _ => None,
        };
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return None;
            }
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return None;
            }
            self.at += 1;
            let inner = match (key.as_ref(), position) {
                _ if self.level == Level::Tokens => Position::Plain,
                ("params", Position::Plain) => Position::Params,
                ("env", Position::Params) => Position::NamedPairs,
                ("env" | "headers", _) => Position::Pairs,
                ("name" | "type" | "_meta", Position::NamedPairs) => Position::Plain,
                (key, Position::NamedPairs) => match is_secret_name(named.as_deref().unwrap_or(key)) {
                    true => Position::Secret,
                    false => Position::Plain,
                },
                ("name" | "type" | "_meta", Position::Pairs) => Position::Plain,
                (_, Position::Pairs | Position::Secret) => Position::Secret,
                (key, Position::Plain | Position::Params) if is_secret_name(key) => Position::Secret,
                _ => Position::Plain,
            };
            self.value(inner, depth + 1)?;
            match self.next_or_end(b'}')? {
                true => {}
                false => return Some(()),
            }
        }
    }

    /// The member `name` of the object that begins here.
    fn name_of_pair(&self) -> Option<String> {
        let mut values = serde_json::Deserializer::from_str(self.line.get(self.at..)?).into_iter();
        let pair: serde_json::Value = values.next()?.ok()?;
        pair.get("name")?.as_str().map(str::to_owned)
    }

    fn array(&mut self, position: Position, depth: usize) -> Option<()> {
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(position, depth + 1)?;
            if !self.next_or_end(b']')? {
                return Some(());
            }
        }
    }

    fn next_or_end(&mut self, end: u8) -> Option<bool> {
        self.blanks();
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            byte if byte == end => Some(false),
            _ => None,
        }
    }
}
