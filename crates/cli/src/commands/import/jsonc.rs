//! JSON with comments and trailing commas.

use serde_json::Value;

/// Parses a text. Comments and trailing commas are replaced by blanks, so that positions in errors
/// are right.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let plain = plain(text);
    // An empty file of settings is one without settings.
    if plain.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(&plain).map_err(|error| error.to_string())
}

fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out: Vec<char> = Vec::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    // Where the last comma is, if nothing but blanks has come since.
    let mut comma: Option<usize> = None;
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('"', _) => {
                comma = None;
                out.push('"');
                while let Some(letter) = letters.next() {
                    out.push(letter);
                    match letter {
                        '\\' => out.extend(letters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => {
                out.push(' ');
                while let Some(letter) = letters.next_if(|letter| *letter != '\n') {
                    out.push(if letter == '\r' { '\r' } else { ' ' });
                }
            }
            ('/', Some('*')) => {
                out.push(' ');
                let mut last = '/';
                for letter in letters.by_ref() {
                    out.push(if letter == '\n' { '\n' } else { ' ' });
                    if last == '*' && letter == '/' {
                        break;
                    }
                    // The star that opens a comment does not close it.
                    last = if last == '/' { ' ' } else { letter };
                }
            }
            (',', _) => {
                comma = Some(out.len());
                out.push(',');
            }
            ('}' | ']', _) => {
                if let Some(comma) = comma.take().and_then(|at| out.get_mut(at)) {
                    *comma = ' ';
                }
                out.push(letter);
            }
            (letter, _) => {
                if !letter.is_whitespace() {
                    comma = None;
                }
                out.push(letter);
            }
        }
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_last_commas() {
        let text = "// head\n{ /* a * / */ \"a\": [1, 2, /* x */ ], // \"b\": 2\n \"url\": \"http://x/*y*/\", \"q\": \"\\\"//\",\n}\n";
        assert_eq!(parse(text).unwrap(), json!({ "a": [1, 2], "url": "http://x/*y*/", "q": "\"//" }));
        assert_eq!(parse(" // nothing\n").unwrap(), json!({}));
        assert_eq!(parse("/**/{}").unwrap(), json!({}));
        assert!(parse("{,}").is_err() || parse("{,}").unwrap() == json!({}));
        assert!(parse("{\"a\": 1 \"b\": 2}").unwrap_err().contains("line 1"));
    }
}
