//! Masking in JSON, without taking the text apart: what holds no secret is copied as it is.

use std::borrow::Cow;

use super::names::Level;
use super::{MASKED, Mask, is_secret_name};

/// Deeper than any message should be.
const MAX_DEPTH: usize = 128;

/// `None` if the line is not JSON.
pub(super) fn mask<'a>(mask: &Mask, level: Level, line: &'a str) -> Option<Cow<'a, str>> {
    let mut copy = Copy { mask, level, line, at: 0, done: 0, out: String::new() };
    copy.value(Place::Plain, 0)?;
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

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Plain,
    /// In the `params` of a message.
    Params,
    /// Below `env` or `headers`: a list of names and values, or an object of them.
    Pairs,
    /// The same for the variables that an agent gives a command: their names tell which are secret. The others are needed to
    /// run the command again.
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

    fn value(&mut self, place: Place, depth: usize) -> Option<()> {
        self.blanks();
        match self.peek()? {
            _ if depth > MAX_DEPTH => None,
            b'{' => self.object(place, depth),
            b'[' => self.array(place, depth),
            b'"' => {
                let start = self.at;
                let text = self.string()?;
                let masked = match place {
                    Place::Secret => Cow::Borrowed(MASKED),
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
                // A secret that is a number is one all the same; where types must stay, numbers do.
                if self.level == Level::Names && self.mask.text(word) != word {
                    self.put(start, MASKED)?;
                }
                Some(())
            }
        }
    }

    /// Has a text in the place of the value that began at `start` and ends here.
    fn put(&mut self, start: usize, text: &str) -> Option<()> {
        let new = serde_json::to_string(text).ok()?;
        self.out.push_str(&self.line[self.done..start]);
        self.out.push_str(&new);
        self.done = self.at;
        Some(())
    }

    /// Reads a string and moves behind it.
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

    fn object(&mut self, place: Place, depth: usize) -> Option<()> {
        let named = match place {
            Place::NamedPairs => self.name_of_pair(),
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
            let inner = match (key.as_ref(), place) {
                _ if self.level == Level::Tokens => Place::Plain,
                ("params", Place::Plain) => Place::Params,
                ("env", Place::Params) => Place::NamedPairs,
                ("env" | "headers", _) => Place::Pairs,
                ("name" | "type" | "_meta", Place::NamedPairs) => Place::Plain,
                (key, Place::NamedPairs) => match is_secret_name(named.as_deref().unwrap_or(key)) {
                    true => Place::Secret,
                    false => Place::Plain,
                },
                ("name" | "type" | "_meta", Place::Pairs) => Place::Plain,
                (_, Place::Pairs | Place::Secret) => Place::Secret,
                (key, Place::Plain | Place::Params) if is_secret_name(key) => Place::Secret,
                _ => Place::Plain,
            };
            self.value(inner, depth + 1)?;
            match self.next_or_end(b'}')? {
                true => {}
                false => return Some(()),
            }
        }
    }

    /// The `name` of the object that begins here, wherever in it that stands.
    fn name_of_pair(&self) -> Option<String> {
        let mut values = serde_json::Deserializer::from_str(self.line.get(self.at..)?).into_iter();
        let pair: serde_json::Value = values.next()?.ok()?;
        pair.get("name")?.as_str().map(str::to_owned)
    }

    fn array(&mut self, place: Place, depth: usize) -> Option<()> {
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(place, depth + 1)?;
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
