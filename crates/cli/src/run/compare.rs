//! `attache compare`: one prompt for several agents, one after the other.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use attache::wire::v1::{
    PermissionOption, RequestPermissionOutcome, RequestPermissionResponse, SessionNotification,
};
use attache::{ContentBlock, Flow};
use attache_rpc::Frame;
use serde::Deserialize;
use serde_json::{Number, Value, json};

use super::exec::{may_exec, one_shot, stoppable};
use super::input;
use super::permits::Permits;
use super::renderer::Renderer;
use super::setup::SessionSetup;
use crate::cx::Cx;
use crate::error::{Failure, Kind, Result};
use crate::lenient::{PromptResult, TokenCounts};
use crate::output::Format;
use crate::runtime::runtime;
use crate::wire::Lines;
use attache_term::render::text::{Look, inline, width};
use attache_transcript::{BoundedText, Role};

/// Default time limit of an agent.
const PATIENCE: Duration = Duration::from_secs(300);
/// Characters of an answer that are shown.
const PREVIEW: usize = 200;

/// Sends one prompt to several agents.
pub(crate) fn compare(cx: &Cx) -> Result<()> {
    may_exec(cx)?;
    if cx.flags.agent.is_some() {
        return Err(Failure::usage("name the agents to compare; --agent is for one"));
    }
    let (agents, prompt) = read(cx)?;
    let mut permits = Permits::new(cx)?;
    permits.timeout.get_or_insert(PATIENCE);
    cx.warn();
    let mut rows = Vec::new();
    let mut interrupted = false;
    for agent in agents {
        let setup = SessionSetup::of(cx, cx.agent_named(agent)?)?;
        let row = runtime(async { Ok(ask(cx, agent, setup, &permits, &prompt).await) })?;
        interrupted = row.kind == Some(Kind::Interrupted);
        rows.push(row);
        if interrupted {
            break;
        }
    }
    print(cx, &rows);
    let kind = |wanted: &str| rows.iter().any(|row| row.status == wanted);
    let failed = match () {
        () if interrupted => return Err(seen(Kind::Interrupted)),
        () if kind("error") => Kind::Runtime,
        () if kind("permission_denied") => Kind::PermissionDenied,
        () if kind("cancelled") => Kind::Timeout,
        () => return Ok(()),
    };
    Err(seen(failed))
}

/// The rows say what happened; this is only for the exit code.
fn seen(kind: Kind) -> Failure {
    let mut failure = Failure::new(kind, "not every agent came to an end");
    failure.shown = true;
    failure
}

/// The agents, and the prompt after them or in a file.
fn read(cx: &Cx) -> Result<(Vec<&str>, Vec<ContentBlock>)> {
    let words: Vec<&str> = cx.args.words.iter().map(String::as_str).collect();
    if cx.flags.prompt.file.is_some() {
        return Ok((words, input::file(cx)?));
    }
    match words.split_last() {
        Some((prompt, agents)) if !agents.is_empty() => {
            if prompt.trim().is_empty() {
                return Err(Failure::usage("the prompt is empty"));
            }
            Ok((agents.to_vec(), vec![ContentBlock::from(*prompt)]))
        }
        _ => Err(Failure::usage("name one agent at least, then the prompt")
            .hint("for example: attache compare gemini codex 'what is this?'")),
    }
}

struct Row {
    agent: String,
    status: &'static str,
    kind: Option<Kind>,
    stop_reason: Option<String>,
    time: Duration,
    summary: Summary,
    error: Option<String>,
}

async fn ask(cx: &Cx, agent: &str, setup: SessionSetup, permits: &Permits, prompt: &[ContentBlock]) -> Row {
    let start = Instant::now();
    let mut renderer = Renderer::Summary(Box::default());
    let shot = |stop| one_shot(cx, setup, permits.clone(), Vec::new(), prompt.to_vec(), &mut renderer, stop);
    let result = stoppable(shot).await;
    let summary = match renderer {
        Renderer::Summary(summary) => *summary,
        _ => Summary::default(),
    };
    let (status, kind, stop_reason, error) = match result {
        Ok(ended) => {
            let status = match ended.reason.as_str() {
                "cancelled" => "cancelled",
                _ if summary.denied > 0 => "permission_denied",
                _ => "ok",
            };
            (status, None, Some(ended.reason.as_str().to_owned()), None)
        }
        Err(failure) => {
            let status = match failure.kind {
                Kind::Timeout | Kind::Interrupted => "cancelled",
                Kind::PermissionDenied | Kind::PromptUnavailable => "permission_denied",
                _ => "error",
            };
            (status, Some(failure.kind), None, Some(crate::output::without_secrets(&failure).message))
        }
    };
    Row { agent: agent.to_owned(), status, kind, stop_reason, time: start.elapsed(), summary, error }
}

fn print(cx: &Cx, rows: &[Row]) {
    match cx.output.format {
        Format::Json => cx.output.json(&rows.iter().map(Row::to_json).collect()),
        Format::Quiet => {
            rows.iter().for_each(|row| cx.output.row(format_args!("{}\t{}", row.agent, row.status)))
        }
        Format::Text => cx.output.print(&table(rows)),
    }
}

impl Row {
    fn to_json(&self) -> Value {
        json!({
            "agent": self.agent,
            "status": self.status,
            "stop_reason": self.stop_reason,
            "wall_ms": u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            "input_tokens": self.summary.usage.input_tokens,
            "output_tokens": self.summary.usage.output_tokens,
            "total_tokens": self.summary.usage.total_tokens,
            "final_message": preview(self.summary.text.as_str()),
            "error": self.error.as_deref().map(preview),
            "permission_requests": self.summary.asked,
            "permission_denied": self.summary.denied,
        })
    }
}

fn table(rows: &[Row]) -> String {
    let head = [
        "agent",
        "status",
        "wall_ms",
        "input",
        "output",
        "total",
        "permissions",
        "stop_reason",
        "final_message",
        "error",
    ];
    let cells = |row: &Row| {
        let text =
            |value: Option<String>| value.filter(|value| !value.is_empty()).unwrap_or_else(|| "-".to_owned());
        let usage = &row.summary.usage;
        let tokens = |count: &Option<Number>| text(count.as_ref().map(Number::to_string));
        vec![
            row.agent.clone(),
            row.status.to_owned(),
            row.time.as_millis().to_string(),
            tokens(&usage.input_tokens),
            tokens(&usage.output_tokens),
            tokens(&usage.total_tokens),
            format!("{}/{}", row.summary.denied, row.summary.asked),
            text(row.stop_reason.clone()),
            text(Some(preview(row.summary.text.as_str()))),
            text(row.error.as_deref().map(preview)),
        ]
    };
    let mut lines: Vec<Vec<String>> = vec![head.iter().map(|name| (*name).to_owned()).collect()];
    lines.extend(rows.iter().map(cells));
    let widest = |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|cell| width(cell)).max();
    let widths: Vec<usize> = (0..head.len()).map(|at| widest(at).unwrap_or_default()).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let padded: Vec<String> =
            line.iter().zip(&widths).map(|(cell, wide)| padded_to(cell, *wide)).collect();
        text.push_str(&format!("{}\n", padded.join("  ").trim_end()));
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text.push_str(&format!("{}\n", rule.join("  ")));
        }
    }
    text
}

fn padded_to(cell: &str, columns: usize) -> String {
    format!("{cell}{}", " ".repeat(columns.saturating_sub(width(cell))))
}

/// In one line, and not too much of it.
fn preview(text: &str) -> String {
    let line = inline(text, Look { colours: false, unicode: true });
    match line.char_indices().nth(PREVIEW) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// The result of an agent without a screen. Only hashes and beginnings of the agent's texts are
/// kept.
pub(crate) struct Summary {
    text: BoundedText,
    usage: TokenCounts,
    asked: usize,
    denied: usize,
    hasher: RandomState,
    /// The open questions, each with the options that allow the action.
    open: Vec<(u64, Vec<u64>)>,
}

impl Default for Summary {
    fn default() -> Summary {
        Summary {
            text: BoundedText::new(Role::Agent, 64 * PREVIEW),
            usage: TokenCounts::default(),
            asked: 0,
            denied: 0,
            hasher: RandomState::new(),
            open: Vec::new(),
        }
    }
}

impl Summary {
    pub(super) fn lines(&mut self, lines: &Lines) {
        for (flow, line) in lines.iter() {
            self.line(flow, line);
        }
    }

    fn line(&mut self, flow: Flow, line: &[u8]) {
        match Frame::parse(line, 1024) {
            Frame::Notification { method, params: Some(params) } if method == "session/update" => {
                if let Ok(notification) = serde_json::from_str::<SessionNotification>(params.get()) {
                    self.text.fold(&notification.update, ContentBlock::as_text);
                }
            }
            Frame::Request { id, method, params: Some(params) }
                if flow == Flow::In && method == "session/request_permission" =>
            {
                self.asked += 1;
                let request = serde_json::from_str::<Options>(params.get()).unwrap_or_default();
                let allowing = request.options.iter().filter(|option| option.kind.allows());
                let allowing = allowing.map(|option| self.hasher.hash_one(option.option_id.as_str()));
                self.open.push((self.hasher.hash_one(&id), allowing.collect()));
            }
            Frame::Response { id, outcome: Ok(result) } => {
                let id = self.hasher.hash_one(&id);
                if flow == Flow::In {
                    let result = PromptResult::parse(result.get());
                    if result.stop_reason.is_some() {
                        self.usage = result.usage.unwrap_or_default();
                    }
                } else if let Some(at) = self.open.iter().position(|(open, _)| *open == id) {
                    let (_, allowing) = self.open.swap_remove(at);
                    let response = serde_json::from_str::<RequestPermissionResponse>(result.get());
                    let allowed = match response.map(|response| response.outcome) {
                        Ok(RequestPermissionOutcome::Selected(selected)) => {
                            allowing.contains(&self.hasher.hash_one(selected.option_id.as_str()))
                        }
                        _ => false,
                    };
                    self.denied += usize::from(!allowed);
                }
            }
            _ => {}
        }
    }
}

/// The options of a permission request.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    options: Vec<PermissionOption>,
}
