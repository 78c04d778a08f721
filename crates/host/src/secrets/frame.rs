//! Masking in JSON, without taking the text apart: what holds no secret is copied as it is.

use std::borrow::Cow;

use super::{MASKED, Mask, is_secret_name};

/// Deeper than any message should be.
const MAX_DEPTH: usize = 128;

/// `None` if the line is not JSON.
pub(super) fn mask<'a>(mask: &Mask, line: &'a str) -> Option<Cow<'a, str>> {
    let mut copy = Copy { mask, line, at: 0, done: 0, out: String::new() };
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
    /// Below `env` or `headers`: a list of names and values, or an object of them.
    Pairs,
    Secret,
}

struct Copy<'a> {
    mask: &'a Mask,
    line: &'a str,
    at: usize,
    /// Up to here the line is in `out`.
    done: usize,
    out: String,
}

impl Copy<'_> {
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
                    _ => self.mask.text(&text),
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
                // A secret that is a number is one all the same.
                if self.mask.text(word) != word {
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
    fn string(&mut self) -> Option<String> {
        let bytes = self.line.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        let text = serde_json::from_str(self.line.get(self.at..=end)?).ok()?;
        self.at = end + 1;
        Some(text)
    }

    fn object(&mut self, place: Place, depth: usize) -> Option<()> {
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
            let inner = match (key.as_str(), place) {
                ("env" | "headers", _) => Place::Pairs,
                ("name" | "type" | "_meta", Place::Pairs) => Place::Plain,
                (_, Place::Pairs | Place::Secret) => Place::Secret,
                (key, Place::Plain) if is_secret_name(key) => Place::Secret,
                _ => Place::Plain,
            };
            self.value(inner, depth + 1)?;
            match self.next_or_end(b'}')? {
                true => {}
                false => return Some(()),
            }
        }
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
