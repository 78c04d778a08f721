//! Whom the checker talks to: something that can be opened anew for each scenario.

mod memory;
mod process;
#[cfg(unix)]
mod program;

pub use memory::Memory;
pub use process::Process;
pub(crate) use process::exit_of;
#[cfg(unix)]
pub use program::{Action, Program};

use std::io;
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{BoxFuture, Need};

/// Makes a fresh peer per scenario.
pub trait Target {
    /// Starts a peer.
    fn open<'a>(&'a self, fresh: &'a Fresh) -> BoxFuture<'a, io::Result<Opened>>;

    /// Why a need of a scenario cannot be met with this target, known beforehand.
    fn lacks(&self, need: &Need) -> Option<String> {
        let _ = need;
        None
    }

    /// Whether paths are real: the peer can see the directory of the scenario. In memory nothing touches the disk.
    fn is_real(&self) -> bool {
        true
    }

    /// What it is, for the head of a report.
    fn command(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a fresh peer is told.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// The name of the scenario.
    pub scenario: &'static str,
    /// What a client under test is to do: `prompt`, `load`, `cancel`…
    pub act: &'static str,
    /// The text of the prompt that a client under test is to send.
    pub prompt: String,
    /// The directory of the scenario.
    pub cwd: PathBuf,
}

/// A peer that was started.
pub struct Opened {
    /// What the peer says.
    pub reader: Box<dyn AsyncRead + Unpin>,
    /// What the peer hears; dropping it closes the peer's input.
    pub writer: Box<dyn AsyncWrite + Unpin>,
    /// The program behind it.
    pub life: Box<dyn Life>,
}

impl Opened {
    /// A peer of which nothing is known but its two streams.
    pub fn from_io(
        reader: impl AsyncRead + Unpin + 'static,
        writer: impl AsyncWrite + Unpin + 'static,
    ) -> Opened {
        Opened { reader: Box::new(reader), writer: Box::new(writer), life: Box::new(Unknown) }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// What an agent's program was started with beyond its usual command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Arguments behind the usual ones.
    pub args: Vec<String>,
    /// Variables whose names begin with `ATTACHE_CHECK_`; others are nobody's business.
    pub env: Vec<(String, String)>,
}

/// The program behind a connection.
pub trait Life {
    /// Waits for its end; `None` at once if nothing can be known of it.
    fn exit(&mut self) -> BoxFuture<'_, Option<Exit>> {
        Box::pin(async { None })
    }

    /// The last that it wrote to stderr.
    fn stderr(&self) -> String {
        String::new()
    }

    /// Makes a running client do something now (`cancel`). A peer in memory knows by itself when.
    ///
    /// # Errors
    /// When it cannot be told.
    fn act(&mut self, act: &str) -> io::Result<()> {
        let _ = act;
        Ok(())
    }

    /// Waits until a client starts the agent's program once more beside the one that runs, as for a login in a terminal, lets it end with
    /// `code` and tells what it was started with; `None` at once if such a start cannot be seen.
    fn relaunched(&mut self, code: u8) -> BoxFuture<'_, Option<Launch>> {
        let _ = code;
        Box::pin(async { None })
    }

    /// Ends it, and waits until it is gone.
    fn end(self: Box<Self>) -> BoxFuture<'static, Option<Exit>> {
        Box::pin(async { None })
    }
}

struct Unknown;

impl Life for Unknown {}
