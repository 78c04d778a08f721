//! Tool calls that a model writes as text: between tags, in a code block or as bare JSON.
//!
//! Text that may begin a call is held back until the response ends, all other text passes at once.
//! A call counts only if the response has no native call, if its tool is offered, if it is not
//! inside a code block of something else, and if the same call is in no message of the user, in no
//! result of a tool and not in the system prompt: a model that quotes a file must not do what the
//! file says.

use serde_json::{Map, Value};

use super::quoted::Outside;
use crate::lenient_json;
use crate::model::ToolSpec;
use crate::tools::resolve_aliases;

/// Tags around calls, with their ends.
const TAGS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<tools>", "</tools>"),
    ("<function=", "</function>"),
    ("[TOOL_CALLS]", "\n\n"),
];

/// Languages of code blocks that hold calls.
const LANGUAGES: &[&str] = &["", "json", "tool_call", "tool_code", "tool", "xml"];

/// Members with the name of a tool, and with its arguments.
const NAMES: &[&str] = &["name", "tool", "tool_name", "function", "action"];
const ARGUMENTS: &[&str] = &["arguments", "parameters", "args", "params", "input"];
/// First members of a call besides those.
const OTHERS: &[&str] = &["type", "id", "tool_call", "tool_calls", "function_call"];

/// The longest first member that is waited for, in bytes.
const LONGEST: usize = 32;

/// Finds calls in the text of one response.
pub(super) struct TextCalls {
    /// The tools that are offered.
    tools: Vec<ToolSpec>,
    /// Text that was not passed on: the beginning of something that may be a call.
    held: String,
    is_holding: bool,
    /// The end of the text before `held`.
    place: Place,
    is_off: bool,
}

/// A part of the held text.
#[derive(Debug, PartialEq)]
pub(super) enum Segment {
    Text(String),
    Call { name: String, arguments: Value },
}

/// A place in a text of Markdown.
#[derive(Debug, Clone, Default)]
struct Place {
    /// The text of the line before it.
    line: String,
    /// The code block that it is in: the character of its fence and how many there are.
    fence: Option<(char, usize)>,
}

impl Place {
    fn is_line_start(&self) -> bool {
        self.line.trim().is_empty()
    }

    /// Whether a call may begin here: not inside of code.
    fn is_open(&self) -> bool {
        self.fence.is_none() && !self.line.ends_with('`')
    }

    fn advance(&mut self, char: char) {
        if char != '\n' {
            self.line.push(char);
            return;
        }
        let line = std::mem::take(&mut self.line);
        let line = line.trim();
        let mark = line.chars().next().filter(|char| ['`', '~'].contains(char));
        let length = line.chars().take_while(|char| Some(*char) == mark).count();
        let rest = line.get(length..).unwrap_or_default();
        self.fence = match (self.fence, mark) {
            (None, Some(mark)) if length >= 3 && !rest.contains('`') => Some((mark, length)),
            (Some((own, opened)), Some(mark)) if own == mark && length >= opened && rest.is_empty() => None,
            (fence, _) => fence,
        };
    }
}

enum Guess {
    No,
    /// More text is needed to know.
    Maybe,
    Yes,
}

impl TextCalls {
    pub(super) fn new(tools: Vec<ToolSpec>) -> Self {
        let is_off = tools.is_empty();
        TextCalls { tools, held: String::new(), is_holding: false, place: Place::default(), is_off }
    }

    /// Adds text. Returns what can be passed on.
    pub(super) fn push(&mut self, text: &str) -> String {
        if self.is_off {
            return text.to_owned();
        }
        self.held.push_str(text);
        if self.is_holding {
            return String::new();
        }
        let mut at = 0;
        while let Some(char) = self.held[at..].chars().next() {
            let rest = &self.held[at..];
            let guess = match char {
                _ if !self.place.is_open() => Guess::No,
                '<' => tag(rest),
                '[' if matches!(tag(rest), Guess::No) && self.place.is_line_start() => json(rest),
                '[' => tag(rest),
                '{' if self.place.is_line_start() => json(rest),
                '`' if self.place.is_line_start() => block(rest),
                _ => Guess::No,
            };
            match guess {
                Guess::No => {
                    self.place.advance(char);
                    at += char.len_utf8();
                }
                Guess::Maybe => break,
                Guess::Yes => {
                    self.is_holding = true;
                    break;
                }
            }
        }
        let held = self.held.split_off(at);
        std::mem::replace(&mut self.held, held)
    }

    /// Whether text is held back.
    pub(super) fn has_text(&self) -> bool {
        !self.held.is_empty()
    }

    /// Stops looking for calls, because the response has native ones or was cut off. Returns the
    /// text that was held back.
    pub(super) fn stop(&mut self) -> String {
        self.is_off = true;
        std::mem::take(&mut self.held)
    }

    /// The calls in the text that was held back, and the text around them. `outside` is what the
    /// model may quote.
    pub(super) fn finish(&mut self, outside: &Outside<'_>) -> Vec<Segment> {
        let held = self.stop();
        let mut segments = Vec::new();
        let mut text = String::new();
        let mut at = 0;
        let mut place = self.place.clone();
        while let Some(char) = held[at..].chars().next() {
            let rest = &held[at..];
            let on_line = || self.fenced(rest).or_else(|| self.bare(rest));
            let found = || self.tagged(rest).or_else(|| place.is_line_start().then(on_line)?);
            let found = place.is_open().then(found).flatten();
            match found.filter(|(calls, length)| !self.is_quoted(&rest[..*length], calls, outside)) {
                Some((calls, length)) => {
                    push_text(&mut segments, &mut text);
                    segments.extend(calls);
                    at += length;
                }
                None => {
                    place.advance(char);
                    text.push(char);
                    at += char.len_utf8();
                }
            }
        }
        push_text(&mut segments, &mut text);
        segments
    }

    fn tagged(&self, text: &str) -> Option<(Vec<Segment>, usize)> {
        let (tag, end) = TAGS.iter().find(|(tag, _)| text.starts_with(tag))?;
        let length = text.find(end).unwrap_or(text.len());
        let whole = (length + end.len()).min(text.len());
        let body = &text[tag.len()..length];
        let calls = match *tag {
            "<function=" => vec![self.xml(&text[..length])?],
            _ if body.trim_start().starts_with("<function=") => {
                let calls = body.split("</function>").filter(|part| part.contains("<function="));
                calls.map(|call| self.xml(call.trim_start())).collect::<Option<_>>()?
            }
            _ => self.calls(body, false)?,
        };
        Some((calls, whole))
    }

    fn fenced(&self, text: &str) -> Option<(Vec<Segment>, usize)> {
        let (language, body) = text.strip_prefix("```")?.split_once('\n')?;
        LANGUAGES.contains(&language.trim()).then_some(())?;
        let length = body.find("\n```").unwrap_or(body.len());
        let calls = match self.tagged(body[..length].trim()) {
            Some((calls, _)) => calls,
            None => self.calls(&body[..length], true)?,
        };
        let start = text.len() - body.len();
        Some((calls, (start + length + "\n```".len()).min(text.len())))
    }

    fn bare(&self, text: &str) -> Option<(Vec<Segment>, usize)> {
        text.starts_with(['{', '[']).then_some(())?;
        let (value, length) = lenient_json::read_prefix(text)?;
        Some((self.of_value(&value, true)?, length))
    }

    /// The calls of a text with nothing but JSON. `strict` wants arguments that fit the tool.
    fn calls(&self, text: &str, strict: bool) -> Option<Vec<Segment>> {
        let mut rest = text.trim();
        let mut calls = Vec::new();
        while !rest.is_empty() {
            let (value, length) = lenient_json::read_prefix(rest)?;
            calls.extend(self.of_value(&value, strict)?);
            rest =
                rest[length..].trim_start_matches(|char: char| char.is_whitespace() || ",]}".contains(char));
        }
        (!calls.is_empty()).then_some(calls)
    }

    fn of_value(&self, value: &Value, strict: bool) -> Option<Vec<Segment>> {
        let members = match value {
            Value::Array(items) if !items.is_empty() => {
                let calls: Option<Vec<_>> = items.iter().map(|item| self.of_value(item, strict)).collect();
                return calls.map(|calls| calls.into_iter().flatten().collect());
            }
            Value::Object(members) => members,
            _ => return None,
        };
        for wrapper in ["tool_calls", "tool_call", "function_call", "function"] {
            if let Some(inner @ (Value::Object(_) | Value::Array(_))) = members.get(wrapper) {
                return self.of_value(inner, strict);
            }
        }
        let name = NAMES.iter().find_map(|name| members.get(*name)?.as_str())?;
        let arguments = ARGUMENTS.iter().find_map(|name| members.get(*name));
        let arguments = match arguments {
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(Value::String(text)) => match lenient_json::read(text)? {
                Value::Object(arguments) => arguments,
                _ => return None,
            },
            None if !strict => Map::new(),
            _ => return None,
        };
        let tool = self.tools.iter().find(|tool| tool.name == name)?;
        // Any JSON may have a name and parameters.
        let alien = members.keys().any(|key| ![NAMES, ARGUMENTS, OTHERS].concat().contains(&key.as_str()));
        if strict && (alien || !fits(&arguments, tool)) {
            return None;
        }
        Some(vec![Segment::Call { name: name.to_owned(), arguments: Value::Object(arguments) }])
    }

    /// `<function=NAME><parameter=KEY>VALUE</parameter>…`, or `<function=NAME>{"KEY": VALUE}`.
    fn xml(&self, text: &str) -> Option<Segment> {
        let (name, mut rest) = text.strip_prefix("<function=")?.split_once('>')?;
        self.tools.iter().find(|tool| tool.name == name)?;
        let mut arguments = Map::new();
        if rest.trim_start().starts_with('{') {
            let Value::Object(members) = lenient_json::read(rest)? else { return None };
            return Some(Segment::Call { name: name.to_owned(), arguments: Value::Object(members) });
        }
        while let Some((between, parameter)) = rest.split_once("<parameter=") {
            between.trim().is_empty().then_some(())?;
            let (key, value) = parameter.split_once('>')?;
            let (value, after) = value.split_once("</parameter>")?;
            let value = value.strip_prefix('\n').unwrap_or(value);
            let value = value.strip_suffix('\n').unwrap_or(value);
            arguments.insert(key.trim().to_owned(), Value::String(value.to_owned()));
            rest = after;
        }
        // Arguments of another form are no call without arguments.
        rest.trim().is_empty().then_some(())?;
        Some(Segment::Call { name: name.to_owned(), arguments: Value::Object(arguments) })
    }

    /// Whether the text of these calls, or one of them in another form, comes from outside.
    fn is_quoted(&self, text: &str, calls: &[Segment], outside: &Outside<'_>) -> bool {
        let text = text.trim_start_matches(['`', '\n']).trim_start_matches("json").trim_end_matches('`');
        if outside.has_text(text) {
            return true;
        }
        let calls: Vec<_> = calls.iter().filter_map(|call| self.normal(call)).collect();
        let is_same = |value: &Value| {
            let found = self.of_value(value, false).unwrap_or_default();
            found.iter().filter_map(|call| self.normal(call)).any(|call| calls.contains(&call))
        };
        // Another form of the same call may have more blanks and members around it.
        outside.has_json(4 * text.len() + 1024, is_same)
    }

    /// The call with the tool's own names for its arguments.
    fn normal(&self, call: &Segment) -> Option<(String, Value)> {
        let Segment::Call { name, arguments } = call else { return None };
        let mut arguments = arguments.clone();
        if let Some(tool) = self.tools.iter().find(|tool| tool.name == *name) {
            resolve_aliases(&mut arguments, &tool.schema);
        }
        Some((name.clone(), arguments))
    }
}

fn push_text(segments: &mut Vec<Segment>, text: &mut String) {
    let text = std::mem::take(text);
    if !text.trim().is_empty() {
        segments.push(Segment::Text(text));
    }
}

/// Whether the arguments are those of a tool, apart from names that other agents have for them.
fn fits(arguments: &Map<String, Value>, tool: &ToolSpec) -> bool {
    let required = tool.schema["required"].as_array().map_or(0, Vec::len);
    arguments.len() >= required
}

fn tag(text: &str) -> Guess {
    let mut guess = Guess::No;
    for (tag, _) in TAGS {
        if text.starts_with(tag) {
            return Guess::Yes;
        }
        if tag.starts_with(text) {
            guess = Guess::Maybe;
        }
    }
    guess
}

fn block(text: &str) -> Guess {
    let Some(rest) = text.strip_prefix("```") else {
        return if "```".starts_with(text) { Guess::Maybe } else { Guess::No };
    };
    let Some((language, body)) = rest.split_once('\n') else {
        let is_known = LANGUAGES.iter().any(|language| language.starts_with(rest.trim()));
        return if is_known { Guess::Maybe } else { Guess::No };
    };
    if !LANGUAGES.contains(&language.trim()) {
        return Guess::No;
    }
    match body.trim_start() {
        "" => Guess::Maybe,
        body if body.starts_with('<') => tag(body),
        body if body.starts_with(['{', '[']) => json(body),
        _ => Guess::No,
    }
}

/// Whether JSON begins with a member that a call has.
fn json(text: &str) -> Guess {
    let text = text.trim_start_matches('[').trim_start();
    let Some(inner) = text.strip_prefix('{') else {
        return if text.is_empty() { Guess::Maybe } else { Guess::No };
    };
    let inner = inner.trim_start();
    let Some(quote) = inner.chars().next() else { return Guess::Maybe };
    if !['"', '\''].contains(&quote) {
        return Guess::No;
    }
    match inner[1..].split_once(quote) {
        Some((name, _)) if [NAMES, ARGUMENTS, OTHERS].concat().contains(&name) => Guess::Yes,
        Some(_) => Guess::No,
        None if inner.len() > LONGEST => Guess::No,
        None => Guess::Maybe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Message, Part};
    use serde_json::json;

    fn tools() -> Vec<ToolSpec> {
        let schema = json!({"properties": {"path": {}}, "required": ["path"], "additionalProperties": false});
        let tool = |name: &str, schema: &Value| ToolSpec {
            name: name.to_owned(),
            about: String::new(),
            schema: schema.clone(),
        };
        vec![tool("read", &schema), tool("list", &json!({"properties": {}, "required": []}))]
    }

    /// What passes at once, and what the end brings; whatever the pieces, it is the same.
    fn found(text: &str, messages: &[Message]) -> (String, Vec<Segment>) {
        found_with("", text, messages)
    }

    fn found_with(system: &str, text: &str, messages: &[Message]) -> (String, Vec<Segment>) {
        let outside = Outside::new(system, messages);
        let mut whole = TextCalls::new(tools());
        let passed = whole.push(text);
        let result = (passed, whole.finish(&outside));
        let mut pieces = TextCalls::new(tools());
        let passed: String = text.chars().map(|char| pieces.push(&char.to_string())).collect();
        assert_eq!((passed, pieces.finish(&outside)), result, "{text}");
        result
    }

    /// The text of a response in which there are no calls.
    fn only_text(passed: String, rest: Vec<Segment>) -> String {
        let rest: String = rest
            .into_iter()
            .map(|segment| match segment {
                Segment::Text(text) => text,
                Segment::Call { name, arguments } => panic!("a call of {name} with {arguments}"),
            })
            .collect();
        passed + &rest
    }

    fn call(path: &str) -> Segment {
        Segment::Call { name: "read".to_owned(), arguments: json!({ "path": path }) }
    }

    #[test]
    fn calls_of_all_forms_are_found() {
        let json = r#"{"name": "read", "arguments": {"path": "a"}}"#;
        for text in [
            json.to_owned(),
            format!("<tool_call>\n{json}\n</tool_call>"),
            format!("<tool_call>{json}"),
            format!("```json\n{json}\n```"),
            format!("```\n[{json}]\n```\n"),
            format!("[TOOL_CALLS][{json}]"),
            "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>"
                .to_owned(),
            r#"{"type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}}"#
                .to_owned(),
            r#"{"tool": "read", "parameters": {"path": "a",}}"#.to_owned(),
            r#"<function=read>{"path": "a"}</function>"#.to_owned(),
            "<tool_call><function=read>\n{'path': 'a'}\n</function></tool_call>".to_owned(),
        ] {
            assert_eq!(found(&text, &[]), (String::new(), vec![call("a")]), "{text}");
        }
        let (passed, rest) = found(&format!("I read it.\n\n```json\n{json}\n```\nDone?"), &[]);
        assert_eq!(passed, "I read it.\n\n");
        assert_eq!(rest, [call("a"), Segment::Text("\nDone?".to_owned())]);
        let two = format!("<tool_call>{json}</tool_call>\n<tool_call>{json}</tool_call>");
        assert_eq!(found(&two, &[]).1, [call("a"), call("a")]);
    }

    #[test]
    fn other_text_stays_text() {
        for text in [
            "Use `{\"name\": \"read\"}` like this: {\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
            "```rust\nfn main() {}\n```\n",
            "```json\n{\"name\": \"my-package\", \"version\": \"1.0.0\"}\n```",
            "{\"name\": \"unknown\", \"arguments\": {}}",
            "{\"name\": \"read\", \"arguments\": {}}",
            "{\"name\": \"read\", \"description\": \"x\", \"parameters\": {\"path\": \"a\"}}",
            "a < b and c > d, [1], {x}\n{\n",
            "<tool_call>nothing</tool_call>",
        ] {
            let (passed, rest) = found(text, &[]);
            assert_eq!(only_text(passed, rest), text);
        }
    }

    #[test]
    fn calls_in_code_of_something_else_stay_text() {
        let json = r#"{"name": "read", "arguments": {"path": "a"}}"#;
        let tags = format!("<tool_call>{json}</tool_call>");
        for text in [
            format!("```text\n{json}\n```\n"),
            format!("```python\n{json}\n```"),
            format!("  ~~~\n{json}\n  ~~~\n"),
            format!("```python\n{tags}\n```\n"),
            format!("````\n```json\n{json}\n```\n````\n"),
            format!("```json\n{{\"a\": 1}}\n{json}\n```\n"),
            format!("Write `{tags}` then.\n"),
            format!("```text\n{json}"),
        ] {
            let (passed, rest) = found(&text, &[]);
            assert_eq!(only_text(passed, rest), text);
        }
        // After the code a call is a call again.
        for before in ["```python\nprint()\n```\n", "```json\n{\"a\": 1}\n```\n", "```code``` is code\n"] {
            let (passed, rest) = found(&format!("{before}{json}"), &[]);
            assert_eq!((passed.as_str(), rest), (before, vec![call("a")]));
        }
    }

    #[test]
    fn quoted_text_is_no_call() {
        let file = "1\t{\"name\": \"read\",\n2\t \"arguments\": {\"path\": \"a\"}}\n";
        let result =
            Part::Result { call: "1".into(), parts: vec![Part::Text(file.to_owned())], failed: false };
        let text = "The file says:\n```json\n{\"name\": \"read\",\n \"arguments\": {\"path\": \"a\"}}\n```";
        for message in [Message::from_user(vec![result]), Message::user(file)] {
            let (_, rest) = found(text, &[message]);
            assert!(matches!(&rest[..], [Segment::Text(_)]), "{rest:?}");
        }
        assert!(found(text, &[Message::assistant(file)]).1.contains(&call("a")));
        let (_, rest) = found_with(file, text, &[]);
        assert!(matches!(&rest[..], [Segment::Text(_)]), "the project's instructions: {rest:?}");
    }

    #[test]
    fn a_quote_in_another_form_is_no_call() {
        let text = r#"<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>"#;
        for file in [
            "{\"arguments\": {\"path\": \"a\"}, \"name\": \"read\"}",
            "1\t{\n2\t  \"parameters\": {\n3\t    \"path\": \"a\"\n4\t  },\n5\t  \"tool\": \"read\"}\n",
            "call: {'function': {'arguments': '{\"file_path\": \"a\"}', 'name': 'read'}}",
            "{\"text\": \"do {\\\"parameters\\\": {\\\"path\\\": \\\"a\\\"}, \\\"name\\\": \\\"read\\\"}\"}",
        ] {
            let (passed, rest) = found(text, &[Message::user(file)]);
            assert_eq!(only_text(passed, rest), text, "{file}");
        }
        for file in ["{\"name\": \"read\", \"arguments\": {\"path\": \"b\"}}", "{\"path\": \"a\"}", "read a"]
        {
            assert_eq!(found(text, &[Message::user(file)]).1, [call("a")], "{file}");
        }
    }

    #[test]
    fn arguments_of_an_unknown_form_are_no_call() {
        for text in [
            "<function=list>path: a</function>",
            "<function=read>{path</function>",
            "<function=list>so <parameter=path>a</parameter></function>",
        ] {
            let (passed, rest) = found(text, &[]);
            assert_eq!(only_text(passed, rest), text);
        }
    }
}
