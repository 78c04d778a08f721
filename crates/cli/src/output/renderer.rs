//! Renders the lines of a turn.

use std::hash::{BuildHasher as _, RandomState};

use attache::Flow;
use attache_rpc::{Frame, Id};
use serde::Deserialize;

use super::json::Json;
use super::quiet::Quiet;
use super::text::Text;
use super::{Format, Mark, Output, Written, failure_json, quiet_line, without_secrets};
use crate::error::{Failure, Kind};
use crate::lenient::lenient;

/// Nesting limit; the connection has checked a lower one already.
const DEPTH: usize = 1024;

/// Most open requests. A connection allows no more; a history file may contain more.
const OPEN: usize = 4096;

/// Methods whose responses are rendered.
const METHODS: [&str; 3] = ["session/prompt", "session/load", "fs/read_text_file"];

/// The session of a prompt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    #[serde(default, deserialize_with = "lenient")]
    session_id: Option<String>,
}

/// A message for the renderers.
pub(super) struct WireMessage<'a> {
    pub(super) flow: Flow,
    pub(super) line: &'a [u8],
    pub(super) frame: Frame<'a>,
    /// The method of the request that a response answers.
    pub(super) answers: Option<&'a str>,
}

/// Renders a turn in the chosen format.
pub(crate) struct TurnRenderer {
    kind: FormatRenderer,
    /// Open requests by sender and hash of the id; an id may be as long as a message.
    open: Vec<(Flow, u64, &'static str)>,
    hasher: RandomState,
    /// Whether a session is being loaded, whose history has been printed before.
    loading: bool,
    session: Option<String>,
    pub(crate) out: Written,
}

enum FormatRenderer {
    Text(Box<Text>),
    Json(Json),
    Quiet(Quiet),
}

impl TurnRenderer {
    pub(crate) fn new(output: &Output) -> TurnRenderer {
        let kind = match output.format {
            Format::Text => FormatRenderer::Text(Box::new(Text::new(output.suppress_reads))),
            Format::Json => FormatRenderer::Json(Json::new(output.suppress_reads)),
            Format::Quiet => FormatRenderer::Quiet(Quiet::default()),
        };
        TurnRenderer {
            kind,
            open: Vec::new(),
            hasher: RandomState::new(),
            loading: false,
            session: None,
            out: Written::new(output.stdout, output.stderr),
        }
    }

    /// Renders a line of the wire.
    pub(crate) fn line(&mut self, flow: Flow, line: &[u8]) {
        let frame = Frame::parse(line, DEPTH);
        let answers = self.correlate(flow, &frame);
        // SESS-08: the history comes between the request and its response.
        if self.loading && flow == Flow::In && is_update(&frame) {
            return;
        }
        let seen = WireMessage { flow, line, frame, answers };
        match &mut self.kind {
            FormatRenderer::Text(text) => text.message(&seen, &mut self.out),
            FormatRenderer::Json(json) => json.message(&seen, &mut self.out),
            FormatRenderer::Quiet(quiet) => quiet.message(&seen, &mut self.out),
        }
    }

    /// Tracks requests, to find the method of a response.
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
                    && let Ok(Session { session_id }) = serde_json::from_str(params.get())
                {
                    self.session = session_id;
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

    /// Renders a failure of the turn and marks it as shown.
    pub(crate) fn failure(&mut self, failure: &mut Failure) {
        if failure.shown {
            return;
        }
        // Without a turn the failure is not part of the result; it is printed on stderr at the end.
        if matches!(self.kind, FormatRenderer::Text(_)) && failure.is_missing_model() {
            return;
        }
        *failure = without_secrets(failure);
        match &mut self.kind {
            // The agent's error and the denied requests are in the stream already.
            FormatRenderer::Json(_)
                if failure.answered.is_some() || failure.kind == Kind::PermissionDenied => {}
            FormatRenderer::Json(_) => {
                let line = failure_json(failure, self.session.as_deref()).to_string();
                self.out.stdout.json(line.as_bytes());
            }
            FormatRenderer::Quiet(quiet) => {
                quiet.flush(&mut self.out);
                self.out.stderr.line(&quiet_line(failure));
            }
            FormatRenderer::Text(text) if failure.kind == Kind::Interrupted => text.flush(&mut self.out),
            FormatRenderer::Text(text) => text.failure(failure, &mut self.out),
        }
        failure.shown = true;
    }

    /// Shows a decision about a permission, if the format has a place for it.
    pub(crate) fn permission(&mut self, notice: &str) {
        match &mut self.kind {
            FormatRenderer::Text(text) => text.notice(Mark::Permission, notice, &mut self.out),
            FormatRenderer::Quiet(_) => {
                self.out.stderr.line(&Mark::Note.then(format!("permission: {notice}")));
            }
            FormatRenderer::Json(_) => {}
        }
    }

    /// Ends the turn and writes held-back text.
    pub(crate) fn finish(&mut self) {
        match &mut self.kind {
            FormatRenderer::Text(text) => text.flush(&mut self.out),
            FormatRenderer::Quiet(quiet) => quiet.flush(&mut self.out),
            FormatRenderer::Json(_) => {}
        }
    }
}

fn is_update(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::Notification { method, .. } if method == "session/update")
}
