//! How a command talks to the process that owns a session: over a Unix socket, line by line.
//!
//! The command sends one JSON object, what it wants, and then, while a prompt of its own runs, `{"answer":…}` to questions and
//! `{"cancel":true}`. It reads lines whose first letter says what they are: `<` a line from the agent, `>` a line to it, `=` a
//! JSON object of the owner's own. The end of the connection takes back what was asked for.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use attache::Flow;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::ask::Ask;
use crate::error::{Failure, Kind};
use crate::paths::{Paths, private_dir};
use crate::session_store::hash;
use crate::wire::Lines;

/// What both sides must agree on.
pub(super) const VERSION: u64 = 1;

/// The longest path that a socket can have, on the stingiest of systems.
const LONGEST: usize = 100;

/// Where the owner of a session listens. The directory is the user's alone.
pub(super) fn socket(paths: &Paths, id: &str) -> io::Result<PathBuf> {
    let name = format!("{:016x}.sock", hash(id));
    let path = paths.runtime.join(&name);
    if path.as_os_str().len() <= LONGEST {
        private_dir(&paths.runtime)?;
        return Ok(path);
    }
    let own = format!("attache-{:016x}", hash(&paths.state.to_string_lossy()));
    // The usual place for what is temporary may be too deep as well.
    let temporary = std::env::temp_dir().join(&own);
    let fits = temporary.join(&name).as_os_str().len() <= LONGEST;
    let dir = if fits { temporary } else { Path::new("/tmp").join(&own) };
    private_dir(&dir)?;
    private_dir(&paths.state)?;
    // Others can make directories there too.
    let (ours, theirs) = (fs::metadata(&paths.state)?, fs::symlink_metadata(&dir)?);
    if !theirs.is_dir() || theirs.uid() != ours.uid() || theirs.mode() & 0o077 != 0 {
        return Err(io::Error::other(format!("{} is not a directory of yours alone", dir.display())));
    }
    Ok(dir.join(name))
}

/// One end of such a connection, as the command sees it.
pub(super) struct Link {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    line: Vec<u8>,
}

/// What the owner says.
pub(super) enum Heard<'a> {
    Line(Flow, &'a [u8]),
    Own(Value),
    End,
}

impl Link {
    pub(super) async fn connect(path: &Path) -> io::Result<Link> {
        Ok(Link::new(UnixStream::connect(path).await?))
    }

    pub(super) fn new(stream: UnixStream) -> Link {
        let (reader, writer) = stream.into_split();
        Link { reader: BufReader::new(reader), writer, line: Vec::new() }
    }

    pub(super) async fn send(&mut self, value: &Value) -> io::Result<()> {
        self.writer.write_all(format!("{value}\n").as_bytes()).await
    }

    /// The next thing that the owner says. It is safe to drop the future: what was read is kept.
    pub(super) async fn hear(&mut self) -> io::Result<Heard<'_>> {
        if self.line.last() == Some(&b'\n') {
            self.line.clear();
        }
        self.reader.read_until(b'\n', &mut self.line).await?;
        let Some(line) = self.line.strip_suffix(b"\n") else { return Ok(Heard::End) };
        match line.split_first() {
            Some((b'<', line)) => Ok(Heard::Line(Flow::In, line)),
            Some((b'>', line)) => Ok(Heard::Line(Flow::Out, line)),
            Some((b'=', line)) => Ok(Heard::Own(serde_json::from_slice(line).map_err(io::Error::other)?)),
            _ => Err(io::Error::other("the session's process says something else than it should")),
        }
    }

    pub(super) fn into_parts(self) -> (BufReader<OwnedReadHalf>, OwnedWriteHalf) {
        (self.reader, self.writer)
    }
}

/// The owner's end: a command that waits for its prompt.
pub(crate) struct RemoteFront {
    writer: OwnedWriteHalf,
    answers: mpsc::Receiver<Value>,
    attended: bool,
    buffer: Vec<u8>,
}

impl RemoteFront {
    pub(super) fn new(writer: OwnedWriteHalf, answers: mpsc::Receiver<Value>, attended: bool) -> Self {
        RemoteFront { writer, answers, attended, buffer: Vec::new() }
    }

    pub(super) fn is_attended(&self) -> bool {
        self.attended
    }

    pub(super) async fn lines(&mut self, lines: &Lines) -> io::Result<()> {
        for (flow, line) in lines.iter() {
            self.buffer.push(if flow == Flow::In { b'<' } else { b'>' });
            self.buffer.extend_from_slice(line);
            self.buffer.push(b'\n');
        }
        let written = self.writer.write_all(&self.buffer).await;
        self.buffer.clear();
        if self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
        written
    }

    pub(super) async fn say(&mut self, value: &Value) -> io::Result<()> {
        say(&mut self.writer, value).await
    }

    pub(super) async fn ask(&mut self, ask: &Ask) -> Option<usize> {
        let answer = self.answer(&json!({ "ask": ask.to_json() })).await?;
        answer.as_u64().and_then(|choice| usize::try_from(choice).ok())
    }

    pub(super) async fn line_for(&mut self, question: &str) -> Option<String> {
        let answer = self.answer(&json!({ "line": question })).await?;
        answer.as_str().map(str::to_owned)
    }

    async fn answer(&mut self, question: &Value) -> Option<Value> {
        // An answer to a question that was taken back is not an answer to this one.
        while self.answers.try_recv().is_ok() {}
        self.say(question).await.ok()?;
        self.answers.recv().await
    }

    pub(super) async fn tell(&mut self, text: &str) {
        let _ = self.say(&json!({ "tell": text })).await;
    }

    pub(super) async fn open(&mut self, url: &str) {
        let _ = self.say(&json!({ "open": url })).await;
    }

    pub(super) async fn note(&mut self, text: &str) {
        let _ = self.say(&json!({ "note": text })).await;
    }

    pub(super) async fn permission(&mut self, notice: &str) {
        let _ = self.say(&json!({ "permission": notice })).await;
    }
}

/// Says something of the owner's own.
pub(super) async fn say(writer: &mut OwnedWriteHalf, value: &Value) -> io::Result<()> {
    writer.write_all(format!("={value}\n").as_bytes()).await
}

pub(super) fn failure_to_json(failure: &Failure) -> Value {
    json!({
        "kind": failure.kind.name(),
        "detail": failure.detail,
        "message": failure.message,
        "stderr": failure.stderr,
        "hints": failure.hints,
        "answered": failure.answered.as_ref().map(|answer| json!({ "code": answer.code, "message": answer.message })),
    })
}

pub(super) fn failure_from_json(value: &Value) -> Failure {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let kind = Kind::from_name(text("kind").unwrap_or_default());
    let mut failure = Failure::new(kind, text("message").unwrap_or("the session's process failed"));
    failure.detail = text("detail").map(str::to_owned);
    let hints = value.get("hints").and_then(Value::as_array).into_iter().flatten();
    failure.hints = hints.filter_map(|hint| hint.as_str().map(str::to_owned)).collect();
    let stderr = value.get("stderr").and_then(Value::as_array).into_iter().flatten();
    failure.stderr = stderr.filter_map(|line| line.as_str().map(str::to_owned)).collect();
    failure.answered = value.get("answered").filter(|answer| answer.is_object()).map(|answer| {
        let code = answer.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
        let message = answer.get("message").and_then(Value::as_str).unwrap_or_default();
        attache::ErrorObject::new(code.unwrap_or(attache::code::INTERNAL_ERROR), message)
    });
    failure
}
