//! The control socket of a session: a Unix socket at which its owner serves the commands of the
//! same user.
//!
//! Both sides check that the peer runs as the same user. Lines, connections and the time for a
//! request are bounded.

use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache_conn::private::user_id;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use super::ask::{Answered, Ask};
use super::protocol::{
    Answer, FollowUp, Incoming, RemoteCommand, Reply, Request, parse_incoming, push_wire, reply_line, to_line,
};
use super::turn::{Stop, stopped};
use crate::error::{Context as _, Failure, Result};
use crate::paths::{Paths, private_dir};
use crate::session_store::hash;
use crate::wire::Lines;

/// The longest socket path that every supported system accepts.
const LONGEST_PATH: usize = 100;
/// The longest line: a message of the largest size that a connection to an agent takes, with its
/// envelope.
const LONGEST_LINE: usize = (64 << 20) + (64 << 10);
/// The longest line of a command after its request.
const LONGEST_FOLLOW_UP: usize = 1 << 20;
/// The longest request that is not a prompt.
const SMALL_REQUEST: usize = 64 << 10;
/// How many requests longer than [`SMALL_REQUEST`] are read at once.
pub(super) const LARGE_REQUESTS: usize = 2;
/// How long a command may take to send its request.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// How long a command may leave replies unread once its prompt is to end. Before that a slow reader
/// is waited for.
const READ_TIME: Duration = Duration::from_secs(5);

/// The socket of a session's owner. Its directory is private.
pub(super) fn socket_path(paths: &Paths, id: &str) -> io::Result<PathBuf> {
    let name = format!("{:016x}.sock", hash(id));
    let path = paths.runtime.join(&name);
    if path.as_os_str().len() <= LONGEST_PATH {
        private_dir(&paths.runtime)?;
        return Ok(path);
    }
    let own = format!("attache-{:016x}", hash(&paths.state.to_string_lossy()));
    // TMPDIR may be too deep as well.
    let temporary = std::env::temp_dir().join(&own);
    let fits = temporary.join(&name).as_os_str().len() <= LONGEST_PATH;
    let dir = if fits { temporary } else { Path::new("/tmp").join(&own) };
    private_dir(&dir)?;
    Ok(dir.join(name))
}

/// An error unless the process at the other end runs as this user.
fn check_user(stream: &UnixStream) -> io::Result<()> {
    let (peer, own) = (stream.peer_cred()?.uid(), user_id());
    if peer == own {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("the process at the session's socket runs as user {peer}, and this is user {own}"),
    ))
}

/// Reads up to the end of a line, which is kept. False at the end of the input. Cancel safe: what
/// was read is in `line`.
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

/// A command's connection to the owner of a session.
pub(super) struct OwnerConnection {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    line: Vec<u8>,
}

impl OwnerConnection {
    /// Connects to a process of this user. `PermissionDenied` if it is one of another user.
    pub(super) async fn open(path: &Path) -> io::Result<OwnerConnection> {
        let stream = UnixStream::connect(path).await?;
        check_user(&stream)?;
        let (reader, writer) = stream.into_split();
        Ok(OwnerConnection { reader: BufReader::new(reader), writer, line: Vec::new() })
    }

    pub(super) async fn request(&mut self, request: &Request) -> io::Result<()> {
        self.writer.write_all(&to_line(request)?).await
    }

    pub(super) async fn send(&mut self, message: &FollowUp) -> io::Result<()> {
        self.writer.write_all(&to_line(message)?).await
    }

    /// Returns the next line; `None` at the end. Cancel safe.
    pub(super) async fn next(&mut self) -> io::Result<Option<Incoming<'_>>> {
        if self.line.last() == Some(&b'\n') {
            self.line.clear();
        }
        if !read_line(&mut self.reader, &mut self.line, LONGEST_LINE).await? {
            return Ok(None);
        }
        parse_incoming(self.line.strip_suffix(b"\n").unwrap_or(&self.line)).map(Some)
    }
}

/// Serves the commands that connect to a [`ControlSocket`].
pub(super) trait Handler: Send + Sync + 'static {
    fn session(&self) -> &str;

    /// Refuses prompts and settings of a process that may not send them.
    fn check_peer(&self, pid: Option<u32>) -> Result<()>;

    /// Permits to read a long request, held while it is read. `None` refuses long requests.
    fn large_requests(&self) -> Option<&Semaphore>;

    /// Records that a connection or a request was refused.
    fn refused(&self, text: &str);

    fn serve(self: Arc<Self>, request: ServedRequest) -> impl Future<Output = ()> + Send;
}

/// A valid request, and the connection to answer it.
pub(super) struct ServedRequest {
    pub(super) command: RemoteCommand,
    /// The length of the request in bytes.
    pub(super) size: usize,
    pub(super) follow_ups: FollowUps,
    pub(super) replies: Replies,
}

/// The socket at which the owner of a session listens. Dropping it removes the socket; commands
/// that are being served are not affected.
pub(super) struct ControlSocket {
    path: PathBuf,
    accepting: JoinHandle<()>,
}

impl ControlSocket {
    /// Listens for at most `limit` commands at once. The caller holds the lock of the session, so a
    /// socket that exists already is left over.
    pub(super) fn open<H: Handler>(paths: &Paths, handler: Arc<H>, limit: usize) -> Result<ControlSocket> {
        let bind = || {
            let path = socket_path(paths, handler.session())?;
            let _ = fs::remove_file(&path);
            let listener = UnixListener::bind(&path)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            io::Result::Ok((path, listener))
        };
        let (path, listener) = bind().context("the session's socket")?;
        Ok(ControlSocket { path, accepting: tokio::spawn(accept(listener, handler, limit)) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = fs::remove_file(&self.path);
    }
}

async fn accept<H: Handler>(listener: UnixListener, handler: Arc<H>, limit: usize) {
    let permits = Arc::new(Semaphore::new(limit));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => match permits.clone().try_acquire_owned() {
                Ok(permit) => {
                    let handler = handler.clone();
                    tokio::spawn(async move {
                        serve(stream, handler).await;
                        drop(permit);
                    });
                }
                Err(_) if check_user(&stream).is_ok() => {
                    // Without waiting: nothing else is accepted meanwhile.
                    let failure = Failure::runtime("too many commands use this session");
                    let _ = reply_line(&Reply::Failure(failure)).and_then(|line| stream.try_write(&line));
                }
                Err(_) => {}
            },
            // Probably out of file descriptors, which other connections free.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Serves one command.
async fn serve<H: Handler>(stream: UnixStream, handler: Arc<H>) {
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid()).and_then(|pid| u32::try_from(pid).ok());
    let peer = handler.check_peer(pid);
    // A peer that cannot prompt needs no long request.
    let large = handler.large_requests().filter(|_| peer.is_ok());
    let (request, size, follow_ups, mut replies) = match receive(stream, large).await {
        Ok(received) => received,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return,
        Err(error) => return handler.refused(&format!("refused a connection: {error}")),
    };
    let refused = if request.session != handler.session() {
        Err(Failure::runtime("this is not the process of that session"))
    } else if matches!(request.command, RemoteCommand::Prompt(_) | RemoteCommand::Set(_)) {
        peer
    } else {
        Ok(())
    };
    if let Err(failure) = refused {
        handler.refused(&format!("refused a request of process {}: {failure}", pid.unwrap_or_default()));
        replies.refuse(failure).await;
        return;
    }
    handler.serve(ServedRequest { command: request.command, size, follow_ups, replies }).await;
}

/// Reads the request of a command of this user. An invalid one is answered here.
///
/// # Errors
/// Why there is none, for the log.
async fn receive(
    stream: UnixStream,
    large: Option<&Semaphore>,
) -> io::Result<(Request, usize, FollowUps, Replies)> {
    check_user(&stream)?;
    let (reader, writer) = stream.into_split();
    let (mut reader, mut replies, mut line) = (BufReader::new(reader), Replies(writer), Vec::new());
    let reading = async {
        match (read_line(&mut reader, &mut line, SMALL_REQUEST).await, large) {
            (Err(error), Some(large)) if error.kind() == io::ErrorKind::InvalidData => {
                let _permit = large.acquire().await.map_err(io::Error::other)?;
                read_line(&mut reader, &mut line, LONGEST_LINE).await
            }
            (read, _) => read,
        }
    };
    let read = tokio::time::timeout(REQUEST_TIME, reading).await;
    let problem = match read {
        Ok(Ok(true)) => match Request::parse(&line) {
            Ok(request) => {
                return Ok((request, line.len(), FollowUps { reader, line: Vec::new() }, replies));
            }
            Err(problem) => problem,
        },
        // Commands connect to see whether an owner exists, and close again.
        Ok(Ok(false)) if line.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(Ok(false)) => "the request has no end".to_owned(),
        Ok(Err(error)) => format!("the request cannot be read: {error}"),
        Err(_) => format!("the request took longer than {} s", REQUEST_TIME.as_secs()),
    };
    // A peer that does not read must not keep its place.
    let refusing = replies.refuse(Failure::runtime(&problem));
    let _ = tokio::time::timeout(Duration::from_secs(1), refusing).await;
    Err(io::Error::new(io::ErrorKind::InvalidData, problem))
}

/// The owner's end of a connection, for replies.
pub(super) struct Replies(OwnedWriteHalf);

impl Replies {
    pub(super) async fn send(&mut self, reply: &Reply) -> io::Result<()> {
        self.0.write_all(&reply_line(reply)?).await
    }

    /// Replies with a failure. A command that is gone is ignored.
    pub(super) async fn refuse(&mut self, failure: Failure) {
        let _ = self.send(&Reply::Failure(failure)).await;
    }
}

/// The messages of a command after its request.
pub(super) struct FollowUps {
    reader: BufReader<OwnedReadHalf>,
    line: Vec<u8>,
}

impl FollowUps {
    /// Returns the next valid message; `None` when the command is gone or sends a line that is too
    /// long.
    pub(super) async fn next(&mut self) -> Option<FollowUp> {
        loop {
            self.line.clear();
            if !read_line(&mut self.reader, &mut self.line, LONGEST_FOLLOW_UP).await.ok()? {
                return None;
            }
            if let Ok(message) = serde_json::from_slice(&self.line) {
                return Some(message);
            }
        }
    }
}

/// The open question of a command, if there is one.
#[derive(Clone, Default)]
pub(super) struct Questions(Arc<Mutex<OpenQuestion>>);

#[derive(Default)]
struct OpenQuestion {
    last: u64,
    answer: Option<oneshot::Sender<Option<Answer>>>,
    closed: bool,
}

impl Questions {
    fn lock(&self) -> MutexGuard<'_, OpenQuestion> {
        self.0.lock()
    }

    /// Opens a question and withdraws the one before.
    fn open(&self) -> (u64, oneshot::Receiver<Option<Answer>>) {
        let (sender, receiver) = oneshot::channel();
        let mut open = self.lock();
        open.last += 1;
        open.answer = (!open.closed).then_some(sender);
        (open.last, receiver)
    }

    /// Passes an answer on if it belongs to the open question.
    pub(super) fn answer(&self, question: u64, answer: Option<Answer>) {
        let mut open = self.lock();
        if open.last == question
            && let Some(sender) = open.answer.take()
        {
            let _ = sender.send(answer);
        }
    }

    /// The command is gone: no question is answered any more.
    pub(super) fn close(&self) {
        let mut open = self.lock();
        open.closed = true;
        open.answer = None;
    }
}

/// Shows a prompt to the command that waits for it.
pub(crate) struct RemoteRenderer {
    replies: Replies,
    questions: Questions,
    attended: bool,
    buffer: Vec<u8>,
    /// Resolves when the prompt is to end.
    stop: Stop,
    /// The command did not read in time.
    lost: bool,
}

impl RemoteRenderer {
    pub(super) fn new(replies: Replies, questions: Questions, attended: bool, stop: Stop) -> Self {
        RemoteRenderer { replies, questions, attended, buffer: Vec::new(), stop, lost: false }
    }

    pub(super) fn is_attended(&self) -> bool {
        self.attended
    }

    pub(super) async fn lines(&mut self, lines: &Lines) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        for (flow, line) in lines.iter() {
            push_wire(&mut buffer, flow, line);
        }
        let written = self.write(&buffer).await;
        buffer.clear();
        if buffer.capacity() <= 1 << 20 {
            self.buffer = buffer;
        }
        written
    }

    /// Sends a reply. Errors are kept: every later write fails, too.
    pub(super) async fn send(&mut self, reply: Reply) {
        match reply_line(&reply) {
            Ok(line) => drop(self.write(&line).await),
            Err(_) => self.lost = true,
        }
    }

    /// Writes to the command. A command that does not read cannot keep its prompt from being
    /// cancelled.
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
            written = self.replies.0.write_all(bytes) => written,
            () = late => Err(io::ErrorKind::TimedOut.into()),
        };
        self.lost = written.is_err();
        written
    }

    pub(super) async fn ask(&mut self, ask: &Ask) -> Option<Answered> {
        let answer = self.answer(|question| Reply::Choose { question, ask: ask.clone() });
        match answer.await? {
            Answer::Choice(choice) => Some(Answered::Choice(choice)),
            Answer::Instead(prompt) => Some(Answered::Instead(prompt)),
            Answer::Line(_) => None,
        }
    }

    pub(super) async fn line_for(&mut self, text: &str) -> Option<String> {
        let answer = self.answer(|question| Reply::ReadLine { question, text: text.to_owned() });
        if let Answer::Line(line) = answer.await? { Some(line) } else { None }
    }

    /// Asks and waits for the answer to this question.
    async fn answer(&mut self, ask: impl FnOnce(u64) -> Reply) -> Option<Answer> {
        let (question, answer) = self.questions.open();
        self.send(ask(question)).await;
        if self.lost { None } else { answer.await.ok().flatten() }
    }
}
