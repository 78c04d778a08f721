//! The report, printed step by step or at the end.

use std::time::Duration;

use attache_host::secrets::Mask;
use serde_json::{Map, Value, json};

use crate::agents::AgentSpec;
use crate::cx::Cx;
use crate::output::{Format, locale_is_unicode};
use attache_term::render::style::{Colour, Line, Style};

/// The state of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Fine,
    /// It works, but not as it should.
    Odd,
    Broken,
    Skipped,
}

/// A finished step.
#[derive(Debug)]
pub(super) struct Step {
    name: &'static str,
    state: State,
    message: String,
    time: Option<Duration>,
    /// Output of the agent.
    lines: Vec<String>,
    /// How to fix it.
    hints: Vec<String>,
}

impl Step {
    pub(super) fn new(name: &'static str, state: State, message: impl Into<String>) -> Step {
        Step { name, state, message: message.into(), time: None, lines: Vec::new(), hints: Vec::new() }
    }

    pub(super) fn time(mut self, time: Duration) -> Step {
        self.time = Some(time);
        self
    }

    pub(super) fn lines(mut self, lines: impl IntoIterator<Item = String>) -> Step {
        self.lines.extend(lines);
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Step {
        self.hints.push(hint.into());
        self
    }
}

/// All steps.
pub(super) struct Report<'a> {
    cx: &'a Cx,
    steps: Vec<Step>,
    /// Facts about the agent, for scripts.
    facts: Map<String, Value>,
    mask: Mask,
    marks: [&'static str; 4],
}

/// The most lines of output that are shown.
const MOST_LINES: usize = 12;
const LONGEST_LINE: usize = 300;

impl<'a> Report<'a> {
    pub(super) fn new(cx: &'a Cx, spec: &AgentSpec) -> Report<'a> {
        let mask = Mask::from_env().with(spec.env.iter().map(|(_, value)| value.clone()));
        let mut facts = Map::new();
        facts.insert("agent".to_owned(), json!(spec.name));
        facts.insert("command".to_owned(), json!(mask.text(&spec.identity())));
        if cx.output.format == Format::Text {
            cx.output.row(format_args!("{}: {}", spec.name, mask.text(&spec.identity())));
        }
        let marks = if is_utf8() { ["✓", "!", "✗", "-"] } else { ["ok", "!", "x", "-"] };
        Report { cx, steps: Vec::new(), facts, mask, marks }
    }

    pub(super) fn fact(&mut self, name: &str, value: Value) {
        self.facts.insert(name.to_owned(), value);
    }

    pub(super) fn add(&mut self, mut step: Step) {
        step.message = self.mask.text(&step.message).into_owned();
        let dropped = step.lines.len().saturating_sub(MOST_LINES);
        step.lines.drain(..dropped);
        for line in &mut step.lines {
            // The beginning of a long line identifies it.
            let short: String = self.mask.text(line).chars().take(LONGEST_LINE).collect();
            *line = short;
        }
        if self.cx.output.format == Format::Text {
            self.cx.output.styled(&self.lines(&step));
        }
        self.steps.push(step);
    }

    fn lines(&self, step: &Step) -> Vec<Line> {
        let (at, style) = match step.state {
            State::Fine => (0, Style::of(Colour::Green)),
            State::Odd => (1, Style::of(Colour::Yellow)),
            State::Broken => (2, Style::of(Colour::Red)),
            State::Skipped => (3, Style::DIM),
        };
        let mark = self.marks.get(at).copied().unwrap_or_default();
        let time = step.time.map(|time| format!(" ({})", duration(time))).unwrap_or_default();
        let mut message = step.message.lines();
        let first = message.next().unwrap_or_default();
        let head = Line::styled(format!("{mark:<2}"), style);
        let mut lines = vec![head.with(format!(" {:<12} {first}{time}", step.name), Style::PLAIN)];
        let quoted = message.chain(step.lines.iter().map(String::as_str));
        lines.extend(quoted.map(|line| Line::from(format!("      | {line}"))));
        let arrow = if is_utf8() { "→" } else { "->" };
        lines.extend(step.hints.iter().map(|hint| Line::from(format!("      {arrow} {hint}"))));
        lines
    }

    pub(super) fn is_well(&self) -> bool {
        self.steps.iter().all(|step| step.state != State::Broken)
    }

    /// Prints the summary.
    pub(super) fn finish(&mut self) {
        let output = &self.cx.output;
        match output.format {
            Format::Json => {
                let mut all = std::mem::take(&mut self.facts);
                all.insert("ok".to_owned(), json!(self.is_well()));
                all.insert("steps".to_owned(), self.steps.iter().map(step_json).collect());
                output.json(&Value::Object(all));
            }
            Format::Quiet => output.line(if self.is_well() { "ok" } else { "failed" }),
            Format::Text => {
                let odd = self.steps.iter().filter(|step| step.state == State::Odd).count();
                let name = self.facts.get("agent").and_then(Value::as_str).unwrap_or_default();
                output.row(match (self.is_well(), odd) {
                    (true, 0) => format!("{name} works"),
                    (true, 1) => format!("{name} works, with 1 warning"),
                    (true, odd) => format!("{name} works, with {odd} warnings"),
                    (false, _) => format!("{name} does not work"),
                });
            }
        }
    }
}

fn step_json(step: &Step) -> Value {
    let state = match step.state {
        State::Fine => "ok",
        State::Odd => "warning",
        State::Broken => "failed",
        State::Skipped => "skipped",
    };
    json!({
        "name": step.name,
        "state": state,
        "message": step.message,
        "milliseconds": step.time.map(|time| time.as_millis() as u64),
        "lines": step.lines,
        "hints": step.hints,
    })
}

fn duration(time: Duration) -> String {
    match time.as_millis() {
        0..1000 => format!("{} ms", time.as_millis()),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// Whether the terminal shows more than ASCII, according to the environment.
fn is_utf8() -> bool {
    locale_is_unicode() == Some(true)
}
