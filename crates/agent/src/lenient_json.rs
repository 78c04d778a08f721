//! JSON as models write it: with trailing commas, line breaks inside strings, single quotes,
//! Python's literals, and without the last brackets. A text with more than one meaning is refused,
//! such as a string that is cut off.

use serde_json::{Map, Number, Value};

/// The deepest nesting.
const MAX_DEPTH: usize = 64;

/// Reads a text that is one value. Brackets that are missing at its end are added, and extra ones
/// are dropped.
pub(crate) fn read(text: &str) -> Option<Value> {
    let (value, end) = read_prefix(text)?;
    text[end..].chars().all(|char| char.is_whitespace() || "]}".contains(char)).then_some(value)
}

/// Reads the value at the beginning of a text. Returns it and where it ends.
pub(crate) fn read_prefix(text: &str) -> Option<(Value, usize)> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    Some((value, reader.at))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The next character that is no whitespace; it is not consumed.
    fn peek(&mut self) -> Option<char> {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            quote @ ('"' | '\'') => self.string(quote).map(Value::String),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut members = Map::new();
        loop {
            match self.peek() {
                None => break,
                Some('}') => {
                    self.at += 1;
                    break;
                }
                Some(',') if !members.is_empty() => self.at += 1,
                Some(quote @ ('"' | '\'')) => {
                    let name = self.string(quote)?;
                    (self.peek()? == ':').then_some(())?;
                    self.at += 1;
                    let value = self.value(depth + 1)?;
                    // Which of two values is meant cannot be known.
                    if members.insert(name, value).is_some() {
                        return None;
                    }
                    matches!(self.peek(), None | Some(',' | '}')).then_some(())?;
                }
                Some(_) => return None,
            }
        }
        Some(Value::Object(members))
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            match self.peek() {
                None => break,
                Some(']') => {
                    self.at += 1;
                    break;
                }
                Some(',') if !items.is_empty() => self.at += 1,
                Some(_) => {
                    items.push(self.value(depth + 1)?);
                    matches!(self.peek(), None | Some(',' | ']')).then_some(())?;
                }
            }
        }
        Some(Value::Array(items))
    }

    /// A string in these quotes. An apostrophe within single quotes belongs to the string unless a
    /// delimiter follows it.
    fn string(&mut self, quote: char) -> Option<String> {
        self.at += 1;
        let mut text = String::new();
        let mut chars = self.text[self.at..].char_indices();
        while let Some((at, char)) = chars.next() {
            if char == quote {
                let after = self.text[self.at + at + 1..].trim_start().chars().next();
                if quote == '"' || matches!(after, None | Some(',' | ':' | '}' | ']')) {
                    self.at += at + 1;
                    return Some(text);
                }
            }
            if char != '\\' {
                text.push(char);
                continue;
            }
            match chars.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                char @ ('"' | '\'' | '\\' | '/') => text.push(char),
                // A line break after a backslash continues the string in several languages.
                '\n' => text.push('\n'),
                'u' => text.push(escaped(&mut chars)?),
                // Regular expressions are often written with single backslashes.
                other => text.extend(['\\', other]),
            }
        }
        None
    }

    fn word(&mut self) -> Option<Value> {
        let rest = self.rest();
        let end = rest.find(|char: char| char.is_whitespace() || ",:]}".contains(char));
        // A word at the end of the text may be cut off.
        let word = &rest[..end?];
        let value = match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            _ => Value::Number(serde_json::from_str::<Number>(word).ok()?),
        };
        self.at += word.len();
        Some(value)
    }
}

/// The character of `\uXXXX`, or of two of them.
fn escaped(chars: &mut std::str::CharIndices<'_>) -> Option<char> {
    let first = unit(chars)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first.into());
    }
    let next: String = chars.by_ref().take(2).map(|(_, char)| char).collect();
    let second = unit(chars).filter(|_| next == "\\u")?;
    char::decode_utf16([first, second]).next()?.ok()
}

fn unit(chars: &mut std::str::CharIndices<'_>) -> Option<u16> {
    let digits: String = chars.by_ref().take(4).map(|(_, char)| char).collect();
    u16::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_models_write_is_read() {
        for (text, value) in [
            (r#"{"a": [1, 2,], "b": "x",}"#, json!({"a": [1, 2], "b": "x"})),
            ("{\"a\": \"one\ntwo\tthree\"}", json!({"a": "one\ntwo\tthree"})),
            (
                "{'path': 'it's.txt', 'all': True, 'x': None}",
                json!({"path": "it's.txt", "all": true, "x": null}),
            ),
            (r#"{"edits": [{"old": "a", "new": "b"}"#, json!({"edits": [{"old": "a", "new": "b"}]})),
            (r#"{"a": "x"}}"#, json!({"a": "x"})),
            (r#"{"pattern": "\d+\s\"q\" \u00e4\ud83d\ude00"}"#, json!({"pattern": "\\d+\\s\"q\" ä😀"})),
            ("{}", json!({})),
        ] {
            assert_eq!(read(text), Some(value), "{text}");
        }
    }

    #[test]
    fn what_may_mean_two_things_is_refused() {
        for text in [
            "",
            r#"{"a": "cut of"#,
            r#"{"a": 12"#,
            r#"{"a": tru"#,
            r#"{"a":"#,
            r#"{"a""#,
            r#"{"a": 1 "b": 2}"#,
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": 1} and more"#,
            r#"{a: 1}"#,
            r#"{"a": "\ud83d"}"#,
            &"[".repeat(10_000),
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn valid_json_means_what_it_means() {
        let value = json!({"a": [1, -2.5e3, true, null, "ü\n\"\\/"], "b": {"c": []}});
        assert_eq!(read(&value.to_string()), Some(value.clone()));
        assert_eq!(
            read_prefix(&format!(" {value} rest")),
            Some((value.clone(), value.to_string().len() + 1))
        );
    }
}
