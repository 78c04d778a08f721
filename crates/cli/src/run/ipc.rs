//! How a command talks to the process that owns a session: over a Unix socket, line by line.
//!
//! The command sends one JSON object, its request, and then, while a prompt of its own runs, `{"answer":…,"question":N}` and
//! `{"cancel":true}`. It reads lines whose first letter says what they are: `<` a line from the agent, `>` a line to it, `=` a
//! JSON object of the owner's own. The end of the connection takes back what was asked for.
//!
//! Both sides check that the other one runs as the same user. Lines, connections and the time for the first line are bounded.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache::Flow;
use attache_conn::private::user_id;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};

use super::ask::Ask;
use super::turn::{Stop, stopped};
use crate::error::{Failure, Kind};
use crate::paths::{Paths, private_dir};
use crate::session_store::hash;
use crate::wire::Lines;

/// What both sides must agree on.
pub(super) const VERSION: u64 = 2;

/// The longest path that a socket can have, on the stingiest of systems.
const LONGEST: usize = 100;
/// The longest line: a message of the largest size that a connection to an agent takes, with what is added to it.
const LONGEST_LINE: usize = (64 << 20) + (64 << 10);
/// The longest line of a command after its request: an answer.
const LONGEST_ANSWER: usize = 1 << 20;
/// The longest request that is not a prompt.
pub(super) const SMALL_REQUEST: usize = 64 << 10;
/// The longest prompt, and how many of more than [`SMALL_REQUEST`] are read at once.
pub(super) const LARGE_REQUEST: usize = LONGEST_LINE;
pub(super) const LARGE_REQUESTS: usize = 2;
/// How long a command may take to send its request.
const REQUEST_TIME: Duration = Duration::from_secs(10);

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
    Ok(dir.join(name))
}

/// Listens at a session's socket. The caller holds the lock of the session, so what lies there is left over.
pub(super) fn listen(path: &Path) -> io::Result<UnixListener> {
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// An error unless the process at the other end runs as this user.
pub(super) fn check_user(stream: &UnixStream) -> io::Result<()> {
    let (peer, own) = (stream.peer_cred()?.uid(), user_id());
    if peer == own {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("the process at the session's socket runs as user {peer}, and this is user {own}"),
    ))
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
    /// Connects to a process of this user. `PermissionDenied` if it is one of another user.
    pub(super) async fn connect(path: &Path) -> io::Result<Link> {
        let stream = UnixStream::connect(path).await?;
        check_user(&stream)?;
        Ok(Link::new(stream))
    }

    fn new(stream: UnixStream) -> Link {
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
        if !read_line(&mut self.reader, &mut self.line, LONGEST_LINE).await? {
            return Ok(Heard::End);
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        match line.split_first() {
            Some((b'<', line)) => Ok(Heard::Line(Flow::In, line)),
            Some((b'>', line)) => Ok(Heard::Line(Flow::Out, line)),
            Some((b'=', line)) => Ok(Heard::Own(serde_json::from_slice(line).map_err(io::Error::other)?)),
            _ => Err(io::Error::other("the session's process says something else than it should")),
        }
    }
}

/// Reads up to the end of a line, which is kept. False at the end of the input. It is safe to drop the future: what was read is
/// in `line`.
async fn read_line(
    reader: &mut BufReader<OwnedReadHalf>,
    line: &mut Vec<u8>,
    longest: usize,
) -> io::Result<bool> {
    let room = longest.saturating_sub(line.len()) as u64;
    reader.take(room).read_until(b'\n', line).await?;
    if line.last() == Some(&b'\n') {
        return Ok(true);
    }
    if line.len() >= longest {
        let text = format!("a line is longer than {longest} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(false)
}

/// The process at the other end of a connection, where the system tells.
pub(super) fn peer_pid(stream: &UnixStream) -> Option<u32> {
    stream.peer_cred().ok()?.pid().and_then(|pid| u32::try_from(pid).ok())
}

/// A command at the socket, as the owner sees it: its request, and how to answer.
pub(super) struct Request {
    pub(super) message: Value,
    /// How long the request is.
    pub(super) size: usize,
    pub(super) reader: Answers,
    pub(super) writer: OwnedWriteHalf,
}

/// Reads the request of a command of this user. One that is not understood is answered here. With `large`, it may be a prompt, and
/// waits for a place there if it is a long one.
///
/// # Errors
/// Why there is none, for the log.
pub(super) async fn receive(stream: UnixStream, large: Option<&Semaphore>) -> io::Result<Request> {
    check_user(&stream)?;
    let Link { mut reader, mut writer, mut line } = Link::new(stream);
    let reading = async {
        match (read_line(&mut reader, &mut line, SMALL_REQUEST).await, large) {
            (Err(error), Some(large)) if error.kind() == io::ErrorKind::InvalidData => {
                let place = large.acquire().await.map_err(io::Error::other)?;
                let read = read_line(&mut reader, &mut line, LARGE_REQUEST).await?;
                drop(place);
                Ok(read)
            }
            (read, _) => read,
        }
    };
    let read = tokio::time::timeout(REQUEST_TIME, reading).await;
    let problem = match read {
        Ok(Ok(true)) => match serde_json::from_slice::<Value>(&line) {
            Ok(message) if message.is_object() => {
                let size = line.len();
                return Ok(Request { message, size, reader: Answers { reader, line: Vec::new() }, writer });
            }
            Ok(_) => "a request is a JSON object".to_owned(),
            Err(error) => format!("the request is not valid JSON: {error}"),
        },
        // Commands look whether somebody is there and leave.
        Ok(Ok(false)) if line.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(Ok(false)) => "the request has no end".to_owned(),
        Ok(Err(error)) => format!("the request cannot be read: {error}"),
        Err(_) => format!("the request took longer than {} s", REQUEST_TIME.as_secs()),
    };
    // Nothing waits for a peer that does not read.
    let failure = Failure::runtime(&problem);
    let _ = tokio::time::timeout(Duration::from_secs(1), refuse(&mut writer, &failure)).await;
    Err(io::Error::new(io::ErrorKind::InvalidData, problem))
}

/// What a command says after its request.
pub(super) struct Answers {
    reader: BufReader<OwnedReadHalf>,
    line: Vec<u8>,
}

impl Answers {
    /// The next message that is one; `None` when the command has gone or sends a line that is too long.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            self.line.clear();
            if !read_line(&mut self.reader, &mut self.line, LONGEST_ANSWER).await.ok()? {
                return None;
            }
            if let Ok(message) = serde_json::from_slice(&self.line) {
                return Some(message);
            }
        }
    }
}

/// The question that a command has been asked, if there is one.
#[derive(Clone, Default)]
pub(super) struct Questions(Arc<Mutex<Asked>>);

#[derive(Default)]
struct Asked {
    last: u64,
    open: Option<oneshot::Sender<Value>>,
    closed: bool,
}

impl Questions {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a question in the place of the one before, which nobody can answer any more.
    fn open(&self) -> (u64, oneshot::Receiver<Value>) {
        let (sender, receiver) = oneshot::channel();
        let mut asked = self.lock();
        asked.last += 1;
        asked.open = (!asked.closed).then_some(sender);
        (asked.last, receiver)
    }

    /// Passes an answer on if it is one to the open question.
    pub(super) fn answer(&self, question: u64, answer: Value) {
        let mut asked = self.lock();
        if asked.last == question
            && let Some(open) = asked.open.take()
        {
            let _ = open.send(answer);
        }
    }

    /// The command has gone: no question is answered any more.
    pub(super) fn close(&self) {
        let mut asked = self.lock();
        asked.closed = true;
        asked.open = None;
    }
}

/// The owner's end: a command that waits for its prompt.
pub(crate) struct RemoteFront {
    writer: OwnedWriteHalf,
    questions: Questions,
    attended: bool,
    buffer: Vec<u8>,
    /// Hears that the prompt is to end.
    stop: Stop,
    /// The command did not read in time.
    lost: bool,
}

/// How long a command may leave unread what is written for it, once its prompt is to end. Before that a slow reader is waited for.
const READ_TIME: Duration = Duration::from_secs(5);

impl RemoteFront {
    pub(super) fn new(writer: OwnedWriteHalf, questions: Questions, attended: bool, stop: Stop) -> Self {
        RemoteFront { writer, questions, attended, buffer: Vec::new(), stop, lost: false }
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
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.write(&buffer).await;
        buffer.clear();
        if buffer.capacity() <= 1 << 20 {
            self.buffer = buffer;
        }
        written
    }

    pub(super) async fn say(&mut self, value: &Value) -> io::Result<()> {
        self.write(format!("={value}\n").as_bytes()).await
    }

    /// Writes to the command. One that does not read cannot keep its prompt from being cancelled.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.lost {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let stop = &mut self.stop;
        let late = async {
            stopped(stop).await;
            tokio::time::sleep(READ_TIME).await;
        };
        let written = tokio::select! {
            biased;
            written = self.writer.write_all(bytes) => written,
            () = late => Err(io::ErrorKind::TimedOut.into()),
        };
        self.lost = written.is_err();
        written
    }

    pub(super) async fn ask(&mut self, ask: &Ask) -> Option<usize> {
        let answer = self.answer("ask", ask.to_json()).await?;
        answer.as_u64().and_then(|choice| usize::try_from(choice).ok())
    }

    pub(super) async fn line_for(&mut self, question: &str) -> Option<String> {
        let answer = self.answer("line", json!(question)).await?;
        answer.as_str().map(str::to_owned)
    }

    /// Asks, and waits for the answer to this very question.
    async fn answer(&mut self, kind: &str, question: Value) -> Option<Value> {
        let (id, answer) = self.questions.open();
        self.say(&json!({ kind: question, "question": id })).await.ok()?;
        answer.await.ok()
    }

    pub(super) async fn tell(&mut self, text: &str) {
        let _ = self.say(&json!({ "tell": text })).await;
    }

    pub(super) async fn pause(&mut self) {
        let _ = self.say(&json!({ "pause": true })).await;
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

/// Answers with a failure.
pub(super) async fn refuse(writer: &mut OwnedWriteHalf, failure: &Failure) -> io::Result<()> {
    say(writer, &json!({ "failure": failure_to_json(failure) })).await
}

/// Answers with a failure if that is possible without waiting.
pub(super) fn refuse_at_once(stream: &UnixStream, failure: &Failure) {
    let answer = json!({ "failure": failure_to_json(failure) });
    if check_user(stream).is_ok() {
        let _ = stream.try_write(format!("={answer}\n").as_bytes());
    }
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
