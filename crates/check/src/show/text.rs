//! A recording as text.

use std::fmt::Write as _;
use std::time::Duration;

use attache_transcript::Role;

use super::session::{Event, Item, SessionEvents};
use super::summary::Summary;
use super::{span, visible};
use crate::trace::Trace;

/// Returns a summary of the recording.
pub fn summary(trace: &Trace) -> String {
    let summary = Summary::new(trace);
    let mut out = String::new();
    let head = &trace.head;
    if !head.command.is_empty() {
        let _ = writeln!(out, "command   {}", visible(&head.command.join(" ")));
    }
    let _ =
        writeln!(out, "started   {}{}", head.started, if head.masked { ", secrets taken out" } else { "" });
    let _ = writeln!(out, "lasted    {}", span(summary.duration));
    if let Some(version) = summary.version {
        let _ = writeln!(out, "protocol  version {version}");
    }
    let _ =
        writeln!(out, "bytes     {} from the client, {} from the agent", summary.bytes.1, summary.bytes.0);
    if summary.noise > 0 {
        let _ = writeln!(
            out,
            "noise     {}",
            counted(summary.noise, "line that is no message", "lines that are no messages")
        );
    }
    match summary.exit {
        Some((Some(code), _)) => _ = writeln!(out, "ended     with {code}"),
        Some((None, signal)) => _ = writeln!(out, "ended     by signal {}", signal.unwrap_or(0)),
        None => {}
    }
    for session in &summary.sessions {
        let turns = session.events.iter().filter(|(_, event)| matches!(event, Event::Ended(_))).count();
        let tools = session.tools.len();
        let _ = writeln!(
            out,
            "session   {}: {}, {}",
            visible(&session.id),
            counted(turns, "turn", "turns"),
            counted(tools, "tool call", "tool calls")
        );
    }
    let _ = writeln!(out, "\nmessages");
    for ((from, method), count) in &summary.counts {
        let _ = writeln!(out, "{count:>8}  {:<7} {}", from.name(), visible(method));
    }
    let failed: Vec<_> =
        summary.requests.iter().filter_map(|request| Some((request, request.error.as_deref()?))).collect();
    if !failed.is_empty() {
        let _ = writeln!(out, "\nerrors");
        for (request, error) in failed {
            let _ = writeln!(
                out,
                "{:>10}  {} of the {}: {}",
                span(request.at),
                visible(&request.method),
                request.from,
                visible(error)
            );
        }
    }
    let open = summary.requests.iter().filter(|request| request.took.is_none());
    for request in open {
        let _ = writeln!(
            out,
            "\nnever answered: {} of the {} at {}",
            visible(&request.method),
            request.from,
            span(request.at)
        );
    }
    out
}

/// Returns the conversations, session by session; only that of `only` if given.
pub fn conversation(trace: &Trace, only: Option<&str>) -> String {
    let summary = Summary::new(trace);
    let mut out = String::new();
    for session in summary.sessions.iter().filter(|session| only.is_none_or(|id| session.id == id)) {
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "── session {} ──", visible(&session.id));
        for (at, event) in &session.events {
            write_event(&mut out, *at, event, session);
        }
    }
    out
}

fn write_event(out: &mut String, at: Duration, event: &Event, session: &SessionEvents) {
    let at = span(at);
    match event {
        Event::Item(index) => match session.item(*index) {
            Some(Item::Message { role, text }) => {
                let author = match role {
                    Role::User => "user",
                    Role::Agent => "agent",
                    Role::Thought => "thought",
                };
                block(out, &at, author, &text);
            }
            Some(Item::ToolCall { kind, title, status, content }) => {
                let time = session.tools.iter().find(|time| time.item == *index);
                let took = time
                    .and_then(|time| Some(format!(", {}", span(time.ended?.saturating_sub(time.at)))))
                    .unwrap_or_default();
                let (kind, title, status) = (visible(&kind), visible(&title), visible(&status));
                let _ = writeln!(out, "{at:>10}  {kind:<8} {title} ({status}{took})");
                indented(out, &content);
            }
            Some(Item::Terminal { command, exit, output }) => {
                let exit = exit.map(|exit| format!(" ({})", visible(&exit))).unwrap_or_default();
                let _ = writeln!(out, "{at:>10}  {:<8} $ {}{exit}", "terminal", visible(&command));
                indented(out, &output);
            }
            None => {}
        },
        Event::Plan(lines) => {
            let _ = writeln!(out, "{at:>10}  plan");
            for line in lines {
                let _ = writeln!(out, "{:>12}{}", "", visible(line));
            }
        }
        Event::Request { method, about, answer } => {
            let answer = answer.as_deref().unwrap_or("no answer");
            let _ = writeln!(out, "{at:>10}  {} {} → {}", visible(method), visible(about), visible(answer));
        }
        Event::Cancelled => _ = writeln!(out, "{at:>10}  the client cancelled"),
        Event::Refused(error) => _ = writeln!(out, "{at:>10}  refused  {}", visible(error)),
        Event::State(state) => _ = writeln!(out, "{at:>10}  state    {}", visible(state)),
        Event::Ended(stop) => _ = writeln!(out, "{at:>10}  end      {}", visible(stop)),
        Event::Other(kind) => _ = writeln!(out, "{at:>10}  {}", visible(kind)),
    }
}

/// Writes a text after its author, indented.
fn block(out: &mut String, at: &str, who: &str, text: &str) {
    let mut lines = visible(text);
    while lines.ends_with('\n') {
        lines.pop();
    }
    let mut lines = lines.lines().map(str::to_owned);
    let _ = writeln!(out, "{at:>10}  {who:<8} {}", lines.next().unwrap_or_default());
    for line in lines {
        let _ = writeln!(out, "{:>21}{line}", "");
    }
}

/// Writes a text below the line before it.
fn indented(out: &mut String, text: &str) {
    for line in visible(text).trim_end_matches('\n').lines() {
        let _ = writeln!(out, "{:>21}{line}", "");
    }
}

/// Returns the durations of tool calls, then of requests.
pub fn timing(trace: &Trace) -> String {
    let summary = Summary::new(trace);
    let mut out = String::new();
    for session in &summary.sessions {
        for tool in &session.tools {
            if out.is_empty() {
                let _ = writeln!(out, "tool calls\n{:>10} {:>10} {:>10}", "at", "waited", "worked");
            }
            // A call that was never in progress did not wait.
            let waited = tool.began.map(|began| span(began.saturating_sub(tool.at))).unwrap_or_default();
            let worked = tool.ended.map_or_else(
                || "open".to_owned(),
                |ended| span(ended.saturating_sub(tool.began.unwrap_or(tool.at))),
            );
            if let Some(Item::ToolCall { title, status, .. }) = session.item(tool.item) {
                let (title, status) = (visible(&title), visible(&status));
                let at = span(tool.at);
                let _ = writeln!(out, "{at:>10} {waited:>10} {worked:>10}  {title} ({status})");
            }
        }
    }
    if !summary.requests.is_empty() {
        let _ =
            writeln!(out, "{}requests\n{:>10} {:>10}", if out.is_empty() { "" } else { "\n" }, "at", "took");
    }
    for request in &summary.requests {
        let took = request.took.map_or_else(|| "open".to_owned(), span);
        let _ = writeln!(
            out,
            "{:>10} {took:>10}  {} of the {}",
            span(request.at),
            visible(&request.method),
            request.from
        );
    }
    out
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
