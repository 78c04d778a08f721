//! `sessions watch`: follows a session without taking part in it.
//!
//! All of it comes from the history, which the process that owns the session appends to. Every
//! event has a cursor, from which watching can resume later.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::time::Duration;

use attache::Flow;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::find;
use crate::cx::Cx;
use crate::error::{Context as _, DetailCode, Failure, Result};
use crate::output::{Format, TurnRenderer};
use crate::runtime::{Interrupts, runtime};
use crate::session_store::{HistoryLine, Record, Store, hash, without_stamps};
use attache_term::render::style::Line;

/// Interval of reading the history.
const PAUSE: Duration = Duration::from_millis(100);

/// Requests that are remembered until their answer comes; a connection has no more open.
const OPEN: usize = 4096;

/// Watches a session until it is closed.
pub(crate) fn watch(cx: &Cx) -> Result<()> {
    let record = find(cx, &cx.agent()?, cx.flags.sessions.name.as_deref(), true)?;
    let after = cx.flags.sessions.cursor.as_deref().map(|cursor| place(cursor, &record)).transpose()?;
    let mut watch = Watch::new(cx, &record, after.unwrap_or_default());
    runtime(async {
        let mut interrupts = Interrupts::new();
        tokio::select! {
            // First, so that the signal is handled before anything is printed.
            biased;
            // Interrupting is the normal way to stop.
            () = interrupts.next() => Ok(()),
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
            .detail(DetailCode::WatchCursorInvalid)
    };
    let (session, sequence) = text.rsplit_once('-').ok_or_else(wrong)?;
    let sequence = sequence.parse().map_err(|_| wrong())?;
    if session != format!("{:016x}", hash(&record.id)) {
        return Err(
            Failure::usage("the cursor belongs to another session").detail(DetailCode::WatchCursorForeign)
        );
    }
    Ok(sequence)
}

struct Watch<'a> {
    cx: &'a Cx,
    store: Store,
    id: String,
    /// Bytes of the history that were read.
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
                    .detail(DetailCode::WatchCursorFuture));
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
                    .detail(DetailCode::WatchOutcomeUnknown)
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
            self.line(&line);
            if !self.flush() {
                return Ok(false);
            }
        }
    }

    fn line(&mut self, line: &[u8]) {
        let (Some(line), Ok(mut message)) = (HistoryLine::parse(line), serde_json::from_slice(line)) else {
            return;
        };
        without_stamps(&mut message);
        let stop_reason = line.stop_reason();
        let is_stamped = line.is_stamped();
        let method = line.method.as_deref();
        if method == Some("session/prompt") {
            if self.request.is_some() {
                self.over(&TurnResult::failed("the turn ended without a response"));
            }
            let request = line.request.as_ref().and_then(Value::as_str).map(str::to_owned);
            let request = request.or_else(|| line.id.as_ref().map(Value::to_string));
            self.request = Some(request.unwrap_or_default());
            self.flush();
            self.screen = TurnRenderer::new(&self.cx.output);
            self.event("turn_started", None);
            self.say(message, Flow::Out, false);
        } else if method.is_none() && is_stamped {
            self.say(message, Flow::In, stop_reason.is_some());
            self.over(&match stop_reason {
                Some(reason) => TurnResult::stopped(reason),
                None => {
                    let error = line.error.and_then(|error| error.message);
                    TurnResult::failed(error.as_deref().unwrap_or("the agent answered with an error"))
                }
            });
        } else {
            let flow = self.flow(method, line.id);
            self.say(message, flow, stop_reason.is_some());
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

    fn over(&mut self, result: &TurnResult) {
        self.event("turn_result", Some(result));
        self.request = None;
        self.asked.clear();
    }

    fn is_news(&mut self) -> bool {
        self.sequence += 1;
        self.sequence > self.after
    }

    /// Prints a message. `ends` says that it ends the turn.
    fn say(&mut self, message: Map<String, Value>, flow: Flow, ends: bool) {
        if !self.is_news() {
            return;
        }
        let message = Value::Object(message);
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

    fn event(&mut self, kind: &str, result: Option<&TurnResult>) {
        if !self.is_news() {
            return;
        }
        let cursor = cursor(&self.id, self.sequence);
        let request = self.request.as_deref().unwrap_or_default();
        match self.cx.output.format {
            Format::Json => {
                let mut event = json!({ "cursor": cursor, "type": kind, "requestId": request });
                if let (Some(map), Some(result)) = (event.as_object_mut(), result) {
                    map.insert("result".to_owned(), json!(result));
                }
                self.screen.out.stdout.json(event.to_string().as_bytes());
            }
            Format::Quiet => self.screen.finish(),
            Format::Text => {
                self.screen.finish();
                let line = match result {
                    None => format!("[{request}] started cursor={cursor}"),
                    Some(result) => {
                        let error = result.error.as_ref().map(|error| &error.message);
                        let detail = result.stop_reason.as_ref().or(error);
                        let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
                        format!("[{request}] {}{detail} cursor={cursor}", result.status)
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

/// The end of a turn.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TurnResult {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TurnError>,
}

#[derive(Serialize)]
struct TurnError {
    message: String,
}

impl TurnResult {
    fn stopped(reason: String) -> TurnResult {
        let status = if reason == "cancelled" { "cancelled" } else { "completed" };
        TurnResult { status, stop_reason: Some(reason), error: None }
    }

    fn failed(message: &str) -> TurnResult {
        let error = TurnError { message: message.to_owned() };
        TurnResult { status: "failed", stop_reason: None, error: Some(error) }
    }
}
