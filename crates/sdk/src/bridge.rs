//! Two links joined.

use crate::{Flow, FrameReader, FrameWriter, Link, Tap};
use attache_rpc::{Fault, Frame, Malformed, Scan};
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes that are collected for one write.
const BATCH: usize = 256 << 10;
/// Levels of objects and arrays in a message that is looked at.
const DEPTH: usize = 1024;
/// How long an agent may send on after its client has left.
const LINGER: Duration = Duration::from_secs(2);

/// The end of a [`bridge`].
///
/// Example: [`bridge`].
#[derive(Debug)]
#[non_exhaustive]
pub struct BridgeEnd {
    /// The client ended it, not the agent.
    pub by_client: bool,
    /// The failure that ended it, if any.
    pub error: Option<io::Error>,
    /// The exit status of an agent that was our child.
    pub exit: Option<ExitStatus>,
    /// The last lines of its stderr.
    pub stderr_tail: String,
}

/// What happens when the client of a [`bridge`] has sent its last message.
///
/// Example: [`bridge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    /// The agent is ended: the client is gone.
    EndAgent,
    /// The agent is ended when it has answered all requests: the client may still read, as behind a
    /// pipe.
    AwaitAnswers,
}

/// Passes messages between a client and an agent, unchanged and in order, until one of them ends. A
/// child process is ended with its tree. The [taps](Link::tap) of both links see every message.
///
/// Notifications of the client whose method begins with `$/` end here, except `$/cancel_request`:
/// they are about the connection, such as the keep-alive `$/ping` of some clients, and many agents
/// answer them with an error.
///
/// ```
/// use attache::{ClientEnd, Link, bridge};
///
/// # async fn run() -> std::io::Result<()> {
/// let listener = attache::listen_tcp("127.0.0.1:0").await?;
/// let end = bridge(listener.accept().await?, Link::spawn("my-agent")?, ClientEnd::EndAgent).await;
/// println!("the agent exited: {:?}", end.exit);
/// # Ok(()) }
/// ```
pub async fn bridge(mut client: Link, mut agent: Link, at_end: ClientEnd) -> BridgeEnd {
    let taps = Taps([Mutex::new(client.take_tap()), Mutex::new(agent.take_tap())]);
    let (mut from_client, mut to_client) = client.split();
    let (mut from_agent, mut to_agent) = agent.split();
    let mut end = BridgeEnd { by_client: false, error: None, exit: None, stderr_tail: String::new() };
    let open = Open::default();
    {
        let mut down = std::pin::pin!(pass(&mut from_agent, &mut to_client, |line| {
            taps.pass(Flow::Out, line);
            open.answered(line);
            true
        }));
        let ended = tokio::select! {
            ended = pass(&mut from_client, &mut to_agent, |line| {
                taps.pass(Flow::In, line);
                open.asked(line)
            }) => match ended {
                // The agent reads no more: what it has sent is passed on, and its end counts.
                Err(Failed::Write(_)) => tokio::time::timeout(LINGER, &mut down).await.unwrap_or(ended),
                ended => {
                    end.by_client = true;
                    ended
                }
            },
            ended = &mut down => {
                end.by_client = matches!(ended, Err(Failed::Write(_)));
                ended
            }
        };
        end.error = ended.err().map(Failed::into_inner);
        if end.by_client && end.error.is_none() {
            let mut is_over = false;
            if at_end == ClientEnd::AwaitAnswers {
                tokio::select! {
                    () = open.none() => {}
                    ended = &mut down => {
                        is_over = true;
                        end.error = ended.err().map(Failed::into_inner);
                    }
                }
            }
            // STDIO-10: the end of its input asks the agent to exit; its last messages may still be
            // wanted.
            let _ = to_agent.close().await;
            if !is_over {
                let _ = tokio::time::timeout(LINGER, down).await;
            }
        }
    }
    drop(to_agent);
    let _ = tokio::time::timeout(LINGER, to_client.close()).await;
    drop((from_client, to_client));
    if let Some(guard) = from_agent.take_child() {
        // A child that still prints must not be blocked by a full pipe while it exits.
        let drain = async { while !matches!(from_agent.next().await, Ok(None) | Err(_)) {} };
        end.exit = Some(tokio::join!(guard.shutdown(), drain).0);
        end.stderr_tail = guard.stderr_tail();
    }
    end
}

/// The taps of the client's link and of the agent's. A message that comes in by one goes out by the
/// other.
struct Taps([Mutex<Option<Tap>>; 2]);

impl Taps {
    /// Shows a message, which has this direction on the client's link.
    fn pass(&self, flow: Flow, line: &[u8]) {
        let other = if flow == Flow::In { Flow::Out } else { Flow::In };
        for (tap, flow) in self.0.iter().zip([flow, other]) {
            if let Some(tap) = &mut *tap.lock().unwrap_or_else(PoisonError::into_inner) {
                tap(flow, line);
            }
        }
    }
}

/// The number of requests of the client without an answer.
#[derive(Default)]
struct Open {
    count: std::sync::atomic::AtomicUsize,
    changed: tokio::sync::Notify,
}

impl Open {
    /// Counts a request. Returns whether the line is for the agent.
    fn asked(&self, line: &[u8]) -> bool {
        let is_request = match Scan::line(line, DEPTH) {
            Scan::Call(call) => call.id.is_some(),
            // CANCEL-14, CANCEL-13
            Scan::Frame(Frame::Notification { method, .. }) => {
                return !method.starts_with("$/") || method == "$/cancel_request";
            }
            Scan::Frame(Frame::Malformed(Malformed { fault: Fault::NotMessage, answer: None, .. })) => {
                return false;
            }
            Scan::Frame(frame) => matches!(frame, Frame::Request { .. }),
        };
        self.count.fetch_add(usize::from(is_request), Ordering::Relaxed);
        true
    }

    fn answered(&self, line: &[u8]) {
        if matches!(Scan::line(line, DEPTH), Scan::Frame(Frame::Response { .. })) {
            // An answer without a question does not count.
            let _ = self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| open.checked_sub(1));
            self.changed.notify_one();
        }
    }

    /// Waits until all are answered.
    async fn none(&self) {
        while self.count.load(Ordering::Relaxed) > 0 {
            self.changed.notified().await;
        }
    }
}

/// The side of a direction that failed.
enum Failed {
    Read(io::Error),
    Write(io::Error),
}

impl Failed {
    fn into_inner(self) -> io::Error {
        match self {
            Failed::Read(error) | Failed::Write(error) => error,
        }
    }
}

/// Passes messages in one direction until the end of the input. `seen` returns whether a message is
/// passed.
async fn pass(
    from: &mut FrameReader,
    to: &mut FrameWriter,
    mut seen: impl FnMut(&[u8]) -> bool,
) -> Result<(), Failed> {
    let mut feed = |to: &mut FrameWriter, line: &[u8]| {
        if seen(line) {
            to.feed(line);
        }
        line.len()
    };
    while let Some(line) = from.next().await.map_err(Failed::Read)? {
        let mut fed = feed(to, line);
        // Messages that are there already go into the same write.
        while fed < BATCH {
            tokio::select! {
                biased;
                line = from.next() => match line.map_err(Failed::Read)? {
                    Some(line) => fed += feed(to, line),
                    None => return to.flush().await.map_err(Failed::Write),
                },
                () = std::future::ready(()) => break,
            }
        }
        tokio::select! {
            biased;
            flushed = to.flush() => flushed.map_err(Failed::Write)?,
            error = from.keep_alive() => return Err(Failed::Read(error)),
        }
    }
    Ok(())
}
