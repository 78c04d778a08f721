//! Command lines as words and back.

use crate::error::{Failure, Result};

/// Splits a command line as a shell would, by blanks outside of quotes and after no backslash.
/// Nothing is expanded, and `#` begins no comment.
pub(crate) fn split(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), letter) => word.get_or_insert_default().push(letter),
            (_, '\\') => word.get_or_insert_default().push(letters.next().unwrap_or('\\')),
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(Failure::usage(format_args!("a quote is not closed in `{line}`")));
    }
    words.extend(word);
    Ok(words)
}

/// Returns words as a command line that [`split`] reads back as the same words.
///
/// Stored sessions are found by this text, so it must not change. `host::policy::quote` quotes
/// more, because a person reads it as a shell would.
pub(crate) fn join<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_@%+=:,./^~-".contains(letter);
    let quoted = words.into_iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn words_and_back() {
        let words = ["my agent", "--name=it's", "", "plain", "a\\b\"c"];
        let line = join(words);
        assert_eq!(split(&line).unwrap(), words);
        assert_eq!(split(r#"node "a b.mjs" c\ d"#).unwrap(), ["node", "a b.mjs", "c d"]);
        assert!(split("'open").is_err());
    }
}
