//! `sessions watch`: follows a session without taking part in it.
//!
//! All of it comes from the history, which the process that owns the session appends to. Every
//! event has a cursor, from which watching can go on later.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::time::Duration;

use attache::Flow;
use serde_json::{Value, json};

use super::find;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::{Format, TurnRenderer};
use crate::runtime::{interrupted, runtime};
use crate::session_store::{Record, Store, hash};
use attache_term::render::style::Line;

/// How often the history is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// Requests that are remembered until their answer comes; a connection has no more open.
const OPEN: usize = 4096;

/// Watches a session until it is closed.
pub(crate) fn watch(cx: &Cx) -> Result<()> {
    let record = find(cx, &cx.agent()?, cx.flags.sessions.name.as_deref(), true)?;
    let after = cx.flags.sessions.cursor.as_deref().map(|cursor| place(cursor, &record)).transpose()?;
    let mut watch = Watch::new(cx, &record, after.unwrap_or_default());
    runtime(async {
        tokio::select! {
            // First, so that the signal is heard before anything is printed.
            biased;
            // Interrupting is the normal way to stop.
            () = interrupted() => Ok(()),
            result = watch.run() => result,
        }
    })
}

fn cursor(record: &str, sequence: u64) -> String {
    format!("{:016x}-{sequence}", hash(record))
}

/// Which event a cursor means.
fn place(text: &str, record: &Record) -> Result<u64> {
    let wrong = || {
        Failure::usage(format_args!("`{text}` is not a cursor of this command"))
            .detail("WATCH_CURSOR_INVALID")
    };
    let (session, sequence) = text.rsplit_once('-').ok_or_else(wrong)?;
    let sequence = sequence.parse().map_err(|_| wrong())?;
    if session != format!("{:016x}", hash(&record.id)) {
        return Err(Failure::usage("the cursor belongs to another session").detail("WATCH_CURSOR_FOREIGN"));
    }
    Ok(sequence)
}

struct Watch<'a> {
    cx: &'a Cx,
    store: Store,
    id: String,
    /// As far as the history was read.
    offset: u64,
    sequence: u64,
    /// Events up to this one are known already.
    after: u64,
    /// The prompt that runs.
    request: Option<String>,
    /// Requests of the agent that are open, by id, to tell whose answers are whose.
    asked: Vec<Value>,
    screen: TurnRenderer,
}

impl<'a> Watch<'a> {
    fn new(cx: &'a Cx, record: &Record, after: u64) -> Watch<'a> {
        Watch {
            cx,
            store: Store::new(&cx.paths),
            id: record.id.clone(),
            offset: 0,
            sequence: 0,
            after,
            request: None,
            asked: Vec::new(),
            screen: TurnRenderer::new(&cx.output),
        }
    }

    async fn run(&mut self) -> Result<()> {
        let mut first = true;
        let mut alone = false;
        loop {
            if !self.read()? {
                // The reader of stdout is gone.
                return Ok(());
            }
            if first && self.after > self.sequence {
                return Err(Failure::usage("the cursor is beyond the end of this session")
                    .detail("WATCH_CURSOR_FUTURE"));
            }
            first = false;
            let Some(record) = self.store.get(&self.id) else { return Ok(()) };
            match &self.request {
                None if record.is_closed() => return Ok(()),
                // Looked at twice: the end of the history comes before the end of the process.
                Some(request) if alone => {
                    return Err(Failure::runtime(format_args!(
                        "the session's process ended without a response to {request}"
                    ))
                    .detail("WATCH_OUTCOME_UNKNOWN")
                    .hint("its result is unknown; check before you prompt again"));
                }
                request => alone = request.is_some() && !self.store.is_owned(&self.id),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads new lines. `false` if the reader of stdout is gone.
    fn read(&mut self) -> Result<bool> {
        let history = self.store.history(&self.id);
        let mut file = match File::open(history.path()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error).context("the history"),
        };
        file.seek(SeekFrom::Start(self.offset)).context("the history")?;
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = reader.read_until(b'\n', &mut line).context("the history")?;
            // A line that is being written is read when it is whole.
            if line.last() != Some(&b'\n') {
                return Ok(self.flush());
            }
            self.offset += count as u64;
            if let Ok(value) = serde_json::from_slice::<Value>(&line) {
                self.line(value);
            }
            if !self.flush() {
                return Ok(false);
            }
        }
    }

    fn line(&mut self, mut message: Value) {
        let stamped = message.get("at").is_some();
        let request = message.get("request").and_then(Value::as_str).map(str::to_owned);
        if let Some(map) = message.as_object_mut() {
            map.remove("at");
            map.remove("request");
        }
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let id = message.get("id").cloned();
        if method.as_deref() == Some("session/prompt") {
            if self.request.is_some() {
                self.over(&json!({ "status": "failed", "error": { "message": "the turn ended without a response" } }));
            }
            self.request = Some(request.or_else(|| id.as_ref().map(Value::to_string)).unwrap_or_default());
            self.flush();
            self.screen = TurnRenderer::new(&self.cx.output);
            self.event("turn_started", None);
            self.say(&message, Flow::Out);
        } else if method.is_none() && stamped {
            self.say(&message, Flow::In);
            self.over(&result(&message));
        } else {
            let flow = self.flow(method.as_deref(), id);
            self.say(&message, flow);
        }
    }

    /// The sender of a message. The history does not record it, but each side has its own methods.
    fn flow(&mut self, method: Option<&str>, id: Option<Value>) -> Flow {
        match (method, id) {
            (Some("session/cancel" | "$/cancel_request"), None) => Flow::Out,
            (Some(method), id) if !method.starts_with("session/set_") => {
                // A file may hold any number of them.
                if self.asked.len() < OPEN {
                    self.asked.extend(id);
                }
                Flow::In
            }
            (Some(_), _) => Flow::Out,
            (None, id) => match self.asked.iter().position(|asked| Some(asked) == id.as_ref()) {
                Some(at) => {
                    self.asked.swap_remove(at);
                    Flow::Out
                }
                None => Flow::In,
            },
        }
    }

    fn over(&mut self, result: &Value) {
        self.event("turn_result", Some(result));
        self.request = None;
        self.asked.clear();
    }

    fn is_news(&mut self) -> bool {
        self.sequence += 1;
        self.sequence > self.after
    }

    fn say(&mut self, message: &Value, flow: Flow) {
        if !self.is_news() {
            return;
        }
        let ends = message.pointer("/result/stopReason").is_some();
        match self.cx.output.format {
            Format::Json => {
                let event = json!({
                    "cursor": cursor(&self.id, self.sequence),
                    "type": "message",
                    "requestId": self.request,
                    "message": message,
                });
                self.screen.out.stdout.json(event.to_string().as_bytes());
            }
            // The end of the turn is reported separately.
            Format::Text if ends => {}
            _ => self.screen.line(flow, message.to_string().as_bytes()),
        }
    }

    fn event(&mut self, kind: &str, result: Option<&Value>) {
        if !self.is_news() {
            return;
        }
        let cursor = cursor(&self.id, self.sequence);
        let request = self.request.as_deref().unwrap_or_default();
        match self.cx.output.format {
            Format::Json => {
                let mut event = json!({ "cursor": cursor, "type": kind, "requestId": request });
                if let (Some(map), Some(result)) = (event.as_object_mut(), result) {
                    map.insert("result".to_owned(), result.clone());
                }
                self.screen.out.stdout.json(event.to_string().as_bytes());
            }
            Format::Quiet => self.screen.finish(),
            Format::Text => {
                self.screen.finish();
                let text = |key: &str| result.and_then(|result| result.pointer(key)?.as_str());
                let line = match text("/status") {
                    None => format!("[{request}] started cursor={cursor}"),
                    Some(status) => {
                        let detail = text("/stopReason").or_else(|| text("/error/message"));
                        let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
                        format!("[{request}] {status}{detail} cursor={cursor}")
                    }
                };
                self.screen.out.stdout.line(&Line::new());
                self.screen.out.stdout.line(&Line::from(line));
            }
        }
    }

    /// Writes the output. `false` if its reader is gone.
    fn flush(&mut self) -> bool {
        // The cost of a turn is reported to the command that ran it.
        self.screen.out.stderr.forget();
        self.screen.out.stdout.write().is_ok()
    }
}

/// How a turn ended, from the answer to its prompt.
fn result(answer: &Value) -> Value {
    match answer.pointer("/result/stopReason").and_then(Value::as_str) {
        Some(reason) => {
            let status = if reason == "cancelled" { "cancelled" } else { "completed" };
            json!({ "status": status, "stopReason": reason })
        }
        None => {
            let message = answer.pointer("/error/message").and_then(Value::as_str);
            json!({ "status": "failed", "error": { "message": message.unwrap_or("the agent answered with an error") } })
        }
    }
}
