//! What a client knows of the sessions, as docs/hub.md tells clients to count, kept in a log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::log::{self, Log};

/// A session as one client has seen it.
#[derive(Debug, Default)]
pub(crate) struct SessionView {
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
    /// Texts by position; `>` is before those of the user.
    pub(crate) texts: BTreeMap<u64, String>,
}

/// A prompt of the client.
#[derive(Clone, Debug)]
pub(crate) struct SentPrompt {
    pub(crate) session: String,
    pub(crate) text: String,
    /// The response, `result` or `error`.
    pub(crate) response: Option<Value>,
}

/// Everything that a client knows.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) sessions: BTreeMap<String, SessionView>,
    pub(crate) prompts: BTreeMap<String, SentPrompt>,
    /// Answers that the client gave, by the id of the prompt.
    pub(crate) answers: BTreeMap<String, BTreeSet<String>>,
}

impl View {
    /// Reads a log. Fails when the client has broken a law by itself, as by seeing an entry twice.
    pub(crate) fn read(path: &Path) -> Result<View, String> {
        let mut view = View::default();
        for event in log::read(path) {
            view.apply(&event)?;
        }
        Ok(view)
    }

    fn apply(&mut self, event: &Value) -> Result<(), String> {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str() {
            Some("seen") => {
                let session = self.sessions.entry(text("session")).or_default();
                let (epoch, seq) = (number(&event["epoch"]), number(&event["seq"]));
                if seq < session.seq {
                    return Err(format!("the position went back from {} to {seq}", session.seq));
                }
                (session.epoch, session.seq) = (epoch, seq);
                if let Some(text) = event["text"].as_str()
                    && let Some(before) = session.texts.insert(seq, text.to_owned())
                {
                    return Err(format!("position {seq} was seen twice: {before}, {text}"));
                }
            }
            Some("prompt") => {
                let prompt = SentPrompt { session: text("session"), text: text("text"), response: None };
                self.prompts.insert(text("id"), prompt);
            }
            Some("response") => {
                if let Some(prompt) = self.prompts.get_mut(&text("id")) {
                    prompt.response = Some(event["response"].clone());
                }
            }
            Some("answer") => drop(self.answers.entry(text("question")).or_default().insert(text("answer"))),
            _ => {}
        }
        Ok(())
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// A view whose changes are written down first.
pub(crate) struct Recorder {
    pub(crate) view: View,
    log: Option<Log>,
}

impl Recorder {
    /// Continues the log of a client.
    pub(crate) fn open(path: &Path) -> Result<Recorder, String> {
        Ok(Recorder { view: View::read(path)?, log: Some(Log::open(path)?) })
    }

    /// A view without a log.
    pub(crate) fn new() -> Recorder {
        Recorder { view: View::default(), log: None }
    }

    pub(crate) fn record(&mut self, event: &Value) -> Result<(), String> {
        if let Some(log) = &mut self.log {
            log.write(event)?;
        }
        self.view.apply(event)
    }

    /// Sets the position of a session.
    pub(crate) fn set(&mut self, session: &str, at: &str) -> Result<(), String> {
        let (epoch, seq) = parse(at)?;
        self.record(&json!({"event": "seen", "session": session, "epoch": epoch, "seq": seq}))
    }

    /// Counts a message of a session.
    pub(crate) fn see(&mut self, message: &Value) -> Result<(), String> {
        let params = &message["params"];
        let (Some(session), Some(method)) = (params["sessionId"].as_str(), message["method"].as_str()) else {
            return Ok(());
        };
        let meta = &params["_meta"]["attache"];
        let at = if method == "_attache/position" { &params["at"] } else { &meta["at"] };
        let known = self.view.sessions.get(session).map(|session| (session.epoch, session.seq));
        let (epoch, seq) = known.unwrap_or_default();
        let (epoch, seq) = match (at.as_str(), meta.is_object()) {
            (Some(at), _) => parse(at)?,
            (None, true) => return Ok(()),
            (None, false) => (epoch, seq + 1),
        };
        let mut event = json!({"event": "seen", "session": session, "epoch": epoch, "seq": seq});
        if let Some(text) = text(message) {
            event["text"] = json!(text);
        }
        self.record(&event)
    }
}

fn parse(at: &str) -> Result<(u64, u64), String> {
    let parts = at.split_once('.').and_then(|(epoch, seq)| Some((epoch.parse().ok()?, seq.parse().ok()?)));
    parts.ok_or_else(|| format!("not a position: {at}"))
}

/// The text of an update: `>` before that of the user.
fn text(message: &Value) -> Option<String> {
    let update = &message["params"]["update"];
    let text = update["content"]["text"].as_str()?;
    match update["sessionUpdate"].as_str()? {
        "user_message_chunk" => Some(format!("> {text}")),
        _ => Some(text.to_owned()),
    }
}
