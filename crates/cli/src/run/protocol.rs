//! The messages between a command and the process that owns a session, and how they are framed.
//!
//! A command sends one [`Request`] as a line of JSON and then, while its prompt runs,
//! [`FollowUp`]s. It receives lines whose first byte is their kind: `<` a line from the agent,
//! `>` a line to it, `=` a [`Reply`]. Closing the connection cancels the prompt.

use std::io;
use std::time::Duration;

use attache::{ContentBlock, Flow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ask::Ask;
use super::permits::Permits;
use super::worker::Setting;
use crate::error::Failure;

/// The version of these messages. Both sides must have the same.
pub(super) const VERSION: u32 = 4;

/// The first message of a command.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) version: u32,
    pub(super) session: String,
    pub(super) command: RemoteCommand,
}

/// A command for the process that owns a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RemoteCommand {
    Prompt(Box<PromptRequest>),
    Set(Setting),
    /// Cancels the running prompt.
    Cancel,
    /// Cancels all prompts, closes the session and ends the process.
    Close,
    /// Ends the process after its prompts; another process takes over the session.
    Leave,
    Status,
}

/// A prompt for a session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PromptRequest {
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) permits: Permits,
    /// Switch to this model first.
    pub(super) model: Option<String>,
    /// Whether the command waits for the end of the prompt.
    pub(super) wait: bool,
    /// Whether the command can ask the user.
    pub(super) attended: bool,
    /// Changes how long the idle process is kept.
    pub(super) ttl: Option<Duration>,
}

/// A message of the owner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Failure(Failure),
    /// The prompt is in the queue, after this many others.
    Queued {
        request: String,
        ahead: u64,
    },
    /// Whether there was a prompt to cancel.
    Cancelled(bool),
    Set(SetResult),
    Status(OwnerStatus),
    /// A permission question. Later messages withdraw it.
    Choose {
        question: u64,
        ask: Ask,
    },
    /// A question that is answered by a line.
    ReadLine {
        question: u64,
        text: String,
    },
    /// A line to show before a question.
    Tell(String),
    /// Wait before the next question takes an answer.
    Pause,
    /// Open this page, if the user has agreed to it.
    Open(String),
    /// A note to show in every format.
    Note(String),
    /// A decision about a permission.
    Permission(String),
    /// The end of the prompt.
    Ended,
}

/// The result of a setting.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SetResult {
    /// The options after the change, as the agent reports them.
    pub(super) options: Value,
    /// Whether the agent was started for it and restored the session.
    pub(super) resumed: bool,
}

/// The state of the process that owns a session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OwnerStatus {
    pub(super) prompts: usize,
    pub(super) pid: u32,
    /// Whether it is a chat.
    pub(super) chat: bool,
}

/// A message of a command whose prompt runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FollowUp {
    Cancel,
    Answer { question: u64, answer: Option<Answer> },
}

/// An answer to [`Reply::Choose`] or [`Reply::ReadLine`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Choice(usize),
    /// A refusal, and the prompt that the agent gets instead.
    Instead(String),
    Line(String),
}

/// A line of the owner.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// A message between agent and client.
    Wire(Flow, &'a [u8]),
    Reply(Reply),
}

impl Request {
    pub(super) fn new(session: &str, command: RemoteCommand) -> Request {
        Request { version: VERSION, session: session.to_owned(), command }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// The reason why it cannot be served.
    pub(super) fn parse(line: &[u8]) -> Result<Request, String> {
        #[derive(Deserialize)]
        struct AnyVersion {
            version: Value,
        }
        let other_version = "the session is held by another version of this program; close it first";
        match serde_json::from_slice::<Request>(line) {
            Ok(request) if request.version == VERSION => Ok(request),
            Ok(_) => Err(other_version.to_owned()),
            Err(error) => match serde_json::from_slice::<AnyVersion>(line) {
                Ok(found) if found.version != VERSION => Err(other_version.to_owned()),
                _ => Err(format!("the request is not valid: {error}")),
            },
        }
    }
}

/// A message as one line of JSON.
pub(super) fn to_line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// A reply as a line.
pub(super) fn reply_line(reply: &Reply) -> io::Result<Vec<u8>> {
    let mut line = vec![b'='];
    serde_json::to_writer(&mut line, reply)?;
    line.push(b'\n');
    Ok(line)
}

/// Appends a message between agent and client.
pub(super) fn push_wire(buffer: &mut Vec<u8>, flow: Flow, line: &[u8]) {
    buffer.push(if flow == Flow::In { b'<' } else { b'>' });
    buffer.extend_from_slice(line);
    buffer.push(b'\n');
}

/// Reads a line of the owner.
pub(super) fn parse_incoming(line: &[u8]) -> io::Result<Incoming<'_>> {
    match line.split_first() {
        Some((b'<', line)) => Ok(Incoming::Wire(Flow::In, line)),
        Some((b'>', line)) => Ok(Incoming::Wire(Flow::Out, line)),
        Some((b'=', line)) => Ok(Incoming::Reply(serde_json::from_slice(line)?)),
        _ => Err(io::Error::other("the session's process sent an unknown line")),
    }
}
