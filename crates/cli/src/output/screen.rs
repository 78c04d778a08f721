//! Takes the lines of a turn and renders them.

use std::hash::{BuildHasher as _, RandomState};

use attache::Flow;
use attache_rpc::{Frame, Id};

use super::json::Json;
use super::quiet::Quiet;
use super::text::Text;
use super::{Format, Mark, Output, Written, failure_json, quiet_line, without_secrets};
use crate::error::{Failure, Kind};

/// Levels of nesting that are looked into; the connection has checked them already.
const DEPTH: usize = 1024;

/// Open requests that are remembered. A connection allows no more; a history file may hold more.
const OPEN: usize = 4096;

/// Methods whose responses are rendered.
const METHODS: [&str; 3] = ["session/prompt", "session/load", "fs/read_text_file"];

/// A message as renderers see it.
pub(super) struct Seen<'a> {
    pub(super) flow: Flow,
    pub(super) line: &'a [u8],
    pub(super) frame: Frame<'a>,
    /// For an answer, the method of the request.
    pub(super) answers: Option<&'a str>,
}

/// Renders a turn in the format that was asked for.
pub(crate) struct Screen {
    kind: Renderer,
    /// Open requests by sender and hash of the id; an id may be as long as a message.
    open: Vec<(Flow, u64, &'static str)>,
    hasher: RandomState,
    /// A stored session is being loaded, and its history has been printed before.
    loading: bool,
    session: Option<String>,
    pub(crate) out: Written,
}

enum Renderer {
    Text(Text),
    Json(Json),
    Quiet(Quiet),
}

impl Screen {
    pub(crate) fn new(output: &Output) -> Screen {
        let kind = match output.format {
            Format::Text => Renderer::Text(Text::new(output.suppress_reads)),
            Format::Json => Renderer::Json(Json::new(output.suppress_reads)),
            Format::Quiet => Renderer::Quiet(Quiet::default()),
        };
        Screen {
            kind,
            open: Vec::new(),
            hasher: RandomState::new(),
            loading: false,
            session: None,
            out: Written::new(output.stdout, output.stderr),
        }
    }

    /// A line went over the wire.
    pub(crate) fn line(&mut self, flow: Flow, line: &[u8]) {
        let frame = Frame::parse(line, DEPTH);
        let answers = self.correlate(flow, &frame);
        // SESS-08: the history comes between the request and its answer.
        if self.loading && flow == Flow::In && is_update(&frame) {
            return;
        }
        let seen = Seen { flow, line, frame, answers };
        match &mut self.kind {
            Renderer::Text(text) => text.message(&seen, &mut self.out),
            Renderer::Json(json) => json.message(&seen, &mut self.out),
            Renderer::Quiet(quiet) => quiet.message(&seen, &mut self.out),
        }
    }

    /// Keeps account of requests, so that answers are known by their method.
    fn correlate(&mut self, flow: Flow, frame: &Frame<'_>) -> Option<&'static str> {
        match frame {
            Frame::Request { id, method, params } => {
                let method = METHODS.into_iter().find(|known| known == method)?;
                // The same method from the other side is a different request.
                if (flow == Flow::In) != method.starts_with("fs/") {
                    return None;
                }
                if method == "session/load" {
                    self.loading = true;
                }
                if method == "session/prompt"
                    && let Some(params) = params
                    && let Ok(value) = serde_json::from_str::<serde_json::Value>(params.get())
                {
                    self.session = value.get("sessionId").and_then(|id| id.as_str()).map(str::to_owned);
                }
                if self.open.len() >= OPEN {
                    self.open.remove(0);
                }
                let id = self.hash(id);
                self.open.push((flow, id, method));
                None
            }
            Frame::Response { id, .. } => {
                let id = self.hash(id);
                let at = self.open.iter().position(|(sent, open, _)| *sent != flow && *open == id)?;
                let (_, _, method) = self.open.swap_remove(at);
                if method == "session/load" {
                    self.loading = false;
                }
                Some(method)
            }
            _ => None,
        }
    }

    fn hash(&self, id: &Id) -> u64 {
        self.hasher.hash_one(id)
    }

    /// Something went wrong while the turn ran. Afterwards the failure counts as shown.
    pub(crate) fn failure(&mut self, failure: &mut Failure) {
        if failure.shown {
            return;
        }
        // No turn has begun: this is for the person and not a part of the result. It is printed on stderr at the end.
        if matches!(self.kind, Renderer::Text(_)) && failure.is_missing_model() {
            return;
        }
        *failure = without_secrets(failure);
        match &mut self.kind {
            // The agent's own words are in the stream, and so are the denied requests.
            Renderer::Json(_) if failure.answered.is_some() || failure.kind == Kind::PermissionDenied => {}
            Renderer::Json(_) => {
                let line = failure_json(failure, self.session.as_deref()).to_string();
                self.out.stdout.json(line.as_bytes());
            }
            Renderer::Quiet(quiet) => {
                quiet.flush(&mut self.out);
                self.out.stderr.line(&quiet_line(failure));
            }
            Renderer::Text(text) if failure.kind == Kind::Interrupted => text.flush(&mut self.out),
            Renderer::Text(text) => text.failure(failure, &mut self.out),
        }
        failure.shown = true;
    }

    /// Tells something about permissions, where there is a place for it.
    pub(crate) fn permission(&mut self, notice: &str) {
        match &mut self.kind {
            Renderer::Text(text) => text.notice(Mark::Permission, notice, &mut self.out),
            Renderer::Quiet(_) => {
                self.out.stderr.line(&Mark::Note.then(format!("permission: {notice}")));
            }
            Renderer::Json(_) => {}
        }
    }

    /// The turn is over: what was held back is written.
    pub(crate) fn finish(&mut self) {
        match &mut self.kind {
            Renderer::Text(text) => text.flush(&mut self.out),
            Renderer::Quiet(quiet) => quiet.flush(&mut self.out),
            Renderer::Json(_) => {}
        }
    }
}

fn is_update(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::Notification { method, .. } if method == "session/update")
}
