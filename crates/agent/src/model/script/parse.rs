//! Parses a script line by line.

use std::time::Duration;

use serde_json::Value;

use crate::model::{ErrorKind, ModelError, Price, Stop, Usage};

/// A script: its head and its scenes.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) head: Head,
    pub(super) scenes: Vec<Scene>,
}

/// The lines before the first scene.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) name: Option<String>,
    pub(super) window: u64,
    pub(super) images: bool,
    pub(super) audio: bool,
    pub(super) price: Option<Price>,
    /// The pause before each piece of text.
    pub(super) pace: Duration,
}

/// The responses of one turn: one step per request.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) when: Vec<Condition>,
    pub(super) steps: Vec<Step>,
}

/// One response.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) when: Vec<Condition>,
    /// Repeated while the turn continues.
    pub(super) forever: bool,
    pub(super) actions: Vec<Action>,
}

/// A text that the target must contain.
#[derive(Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) target: Target,
    pub(super) part: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// The user's last text.
    Text,
    /// The results of the last calls.
    Result,
    /// The system prompt.
    System,
}

/// One line of a step.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    Say(String),
    Think(String),
    Call { name: String, arguments: Value },
    BadCall { name: String, raw: String },
    Wait(Duration),
    Retry { after: Duration, why: String },
    Usage(Usage),
    Stop(Stop),
    Fail(ModelError),
    Flood(String),
    Hang,
}

/// Parses a script. An error names the line.
pub(super) fn script(text: &str) -> Result<Script, String> {
    let mut script = Script { head: Head::new(), scenes: Vec::new() };
    for (number, line) in logical_lines(text) {
        take(&mut script, &line).map_err(|error| format!("line {number}: {error}"))?;
    }
    script.scenes.retain(|scene| !scene.steps.is_empty());
    if script.scenes.is_empty() {
        return Err("no scene; begin one with a line `==`".to_owned());
    }
    Ok(script)
}

impl Head {
    fn new() -> Self {
        Head { name: None, window: 100_000, images: true, audio: false, price: None, pace: Duration::ZERO }
    }
}

/// Lines with their numbers, without comments and blank lines. Indented lines continue the line
/// before.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut blanks = 0;
    for (place, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() {
            blanks += 1;
        } else if let (Some(more), Some((_, last))) = (line.strip_prefix("  "), lines.last_mut()) {
            // Blank lines within a text belong to it.
            (0..=blanks).for_each(|_| last.push('\n'));
            last.push_str(more);
            blanks = 0;
        } else {
            blanks = 0;
            if !line.starts_with('#') {
                lines.push((place + 1, line.to_owned()));
            }
        }
    }
    lines
}

fn take(script: &mut Script, line: &str) -> Result<(), String> {
    if let Some(rest) = line.strip_prefix("==") {
        script.scenes.push(Scene { when: conditions(rest.trim())?, steps: Vec::new() });
        return Ok(());
    }
    let Some(scene) = script.scenes.last_mut() else { return head(&mut script.head, line) };
    if let Some(rest) = line.strip_prefix("--") {
        let rest = rest.trim();
        let (forever, rest) = match rest.strip_prefix("forever") {
            Some(rest) => (true, rest.trim_start()),
            None => (false, rest),
        };
        scene.steps.push(Step { when: conditions(rest)?, forever, actions: Vec::new() });
        return Ok(());
    }
    if scene.steps.is_empty() {
        scene.steps.push(Step::default());
    }
    if let Some(step) = scene.steps.last_mut() {
        step.actions.push(action(line)?);
    }
    Ok(())
}

fn head(head: &mut Head, line: &str) -> Result<(), String> {
    let (key, value) =
        line.split_once(':').ok_or("expected `name: …` or the first scene, a line with `==`")?;
    let value = value.trim();
    match key.trim() {
        "name" => head.name = Some(value.to_owned()),
        "window" => head.window = number(value)?,
        "images" => head.images = yes(value)?,
        "audio" => head.audio = yes(value)?,
        "pace" => head.pace = duration(value)?,
        "price" => head.price = Some(price(value)?),
        other => {
            return Err(format!(
                "unknown setting `{other}`; available: name, window, images, audio, pace, price"
            ));
        }
    }
    Ok(())
}

/// `when "…"`, `when result "…" and system "…"`, or nothing.
fn conditions(text: &str) -> Result<Vec<Condition>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut rest = text.strip_prefix("when ").ok_or(r#"expected `when "…"`"#)?.trim_start();
    let mut conditions = Vec::new();
    loop {
        let targets = [("text", Target::Text), ("result", Target::Result), ("system", Target::System)];
        let mut target = Target::Text;
        for (word, named) in targets {
            if let Some(after) = rest.strip_prefix(word) {
                (target, rest) = (named, after.trim_start());
            }
        }
        let (part, after) = quoted(rest)?;
        conditions.push(Condition { target, part });
        rest = after.trim_start();
        if rest.is_empty() {
            return Ok(conditions);
        }
        rest = rest.strip_prefix("and ").ok_or("expected `and` or the end of the line")?.trim_start();
    }
}

/// A JSON string at the front, and what follows it.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    match values.next() {
        Some(Ok(part)) => Ok((part, &text[values.byte_offset()..])),
        _ => Err(format!("expected a text in quotes, found `{text}`")),
    }
}

fn action(line: &str) -> Result<Action, String> {
    let (word, rest) = match line.split_once([' ', '\n']) {
        Some((word, rest)) => (word, rest.trim()),
        None => (line, ""),
    };
    Ok(match word.trim_end_matches(':') {
        "say" => Action::Say(rest.to_owned()),
        "think" => Action::Think(rest.to_owned()),
        "call" => {
            let (name, arguments) = rest.split_once([' ', '\n']).unwrap_or((rest, "{}"));
            let arguments: Value = serde_json::from_str(arguments)
                .map_err(|error| format!("the arguments of `{name}`: {error}"))?;
            if !arguments.is_object() {
                return Err(format!("the arguments of `{name}` must be an object"));
            }
            Action::Call { name: name.to_owned(), arguments }
        }
        "badcall" => {
            let (name, raw) = rest.split_once([' ', '\n']).unwrap_or((rest, ""));
            Action::BadCall { name: name.to_owned(), raw: raw.to_owned() }
        }
        "wait" => Action::Wait(duration(rest)?),
        "retry" => {
            let (after, why) = rest.split_once(' ').unwrap_or((rest, "asked to"));
            Action::Retry { after: duration(after)?, why: why.to_owned() }
        }
        "usage" => Action::Usage(usage(rest)?),
        "stop" => Action::Stop(match rest {
            "done" => Stop::Done,
            "calls" => Stop::Calls,
            "max_tokens" => Stop::MaxTokens,
            "refused" => Stop::Refused,
            other => Stop::Other(other.to_owned()),
        }),
        "fail" => fail(rest)?,
        "flood" => Action::Flood(rest.to_owned()),
        "hang" => Action::Hang,
        other => {
            return Err(format!(
                "unknown action `{other}`; available: say, think, call, badcall, wait, retry, usage, stop, fail, flood, hang"
            ));
        }
    })
}

/// `overloaded`, `rate_limited after 3s`, `network the cable is out`.
fn fail(text: &str) -> Result<Action, String> {
    let (kind, mut message) = text.split_once(' ').unwrap_or((text, ""));
    let Some((_, kind)) = ErrorKind::NAMES.into_iter().find(|(name, _)| *name == kind) else {
        let names = ErrorKind::NAMES.map(|(name, _)| name).join(", ");
        return Err(format!("no failure \"{kind}\"; available: {names}"));
    };
    let mut after = None;
    if let Some(rest) = message.strip_prefix("after ") {
        let (time, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        (after, message) = (Some(duration(time)?), rest);
    }
    let message = if message.is_empty() { "scripted failure" } else { message };
    Ok(Action::Fail(ModelError { retry_after: after, ..ModelError::new(kind, message) }))
}

fn usage(text: &str) -> Result<Usage, String> {
    let mut usage = Usage::default();
    for pair in text.split_whitespace() {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| format!("expected `input=…`, found `{pair}`"))?;
        let value = number(value)?;
        match key {
            "input" => usage.input = value,
            "output" => usage.output = value,
            "cache_read" => usage.cache_read = value,
            "cache_write" => usage.cache_write = value,
            "thought" => usage.thought = value,
            other => return Err(format!("unknown kind of tokens `{other}`")),
        }
    }
    Ok(usage)
}

/// Dollars per million tokens, input and output: `3 15`.
fn price(text: &str) -> Result<Price, String> {
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [input, output] => Ok(Price::with_usual_cache(input, output)),
        _ => Err("expected the price of input and output, such as `3 15`".to_owned()),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

fn yes(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("`{text}` is neither yes nor no")),
    }
}

/// `250ms`, `2s`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write `250ms` or `2s`");
    if let Some(number) = text.strip_suffix("ms") {
        return number.parse().map(Duration::from_millis).map_err(|_| wrong());
    }
    let seconds: f64 = text.strip_suffix('s').ok_or_else(wrong)?.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}
