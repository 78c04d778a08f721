//! Text that did not come from the model: what the user wrote, what tools returned, and the system
//! prompt, which holds the project's own instructions.

use serde_json::Value;

use crate::lenient_json;
use crate::model::{Message, Part, Role};

/// All text of a conversation that did not come from the model.
pub(super) struct Outside<'a> {
    texts: Vec<&'a str>,
}

impl<'a> Outside<'a> {
    pub(super) fn new(system: &'a str, messages: &'a [Message]) -> Self {
        let mut texts = vec![system];
        let from_outside = messages.iter().filter(|message| message.role == Role::User);
        from_outside.flat_map(|message| &message.parts).for_each(|part| collect(part, &mut texts));
        Outside { texts }
    }

    /// Whether this text is in it. Line numbers and indentation do not count.
    pub(super) fn has_text(&self, text: &str) -> bool {
        let text = essence(text);
        self.texts.iter().any(|own| essence(own).contains(&text))
    }

    /// Whether it has JSON for which `is_match` is true, of at most `longest` bytes.
    pub(super) fn has_json(&self, longest: usize, is_match: impl Fn(&Value) -> bool) -> bool {
        self.texts.iter().any(|text| {
            let plain = without_line_numbers(text);
            // JSON within a string of JSON.
            let unescaped = plain.contains("\\\"").then(|| plain.replace("\\\"", "\""));
            std::iter::once(plain).chain(unescaped).any(|text| {
                text.match_indices('{').any(|(at, _)| {
                    let (window, _) = crate::text::clip(&text[at..], longest);
                    lenient_json::read_prefix(window).is_some_and(|(value, _)| is_match(&value))
                })
            })
        })
    }
}

fn collect<'a>(part: &'a Part, texts: &mut Vec<&'a str>) {
    match part {
        Part::Text(own) => texts.push(own),
        Part::Result { parts, .. } => parts.iter().for_each(|part| collect(part, texts)),
        _ => {}
    }
}

/// A text without whitespace, digits and backslashes.
fn essence(text: &str) -> String {
    text.chars().filter(|char| !char.is_whitespace() && !char.is_ascii_digit() && *char != '\\').collect()
}

/// A text without the numbers that `read` puts before each line.
fn without_line_numbers(text: &str) -> String {
    let line = |line: &'_ str| -> usize {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && line[digits..].starts_with('\t') { digits + 1 } else { 0 }
    };
    text.split_inclusive('\n').map(|text| &text[line(text)..]).collect()
}
