//! Targets: peers under test, started afresh for each scenario.

#[cfg(unix)]
mod listening;
mod memory;
mod process;
#[cfg(unix)]
mod program;
mod server;

#[cfg(unix)]
pub use listening::{Connecting, Listening};
pub use memory::Memory;
pub use process::Process;
pub(crate) use process::exit_of;
#[cfg(unix)]
pub use program::{Action, Program};
pub use server::Server;

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::prompts::PromptKind;
use crate::remote::{Endpoint, Observations};
use crate::transport::Transport;

/// A future on the checker's own thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The session that actions such as `load`, `resume` and `delete` refer to; replaces `{session}` in
/// a client's command.
pub const SESSION: &str = "sess-attache-check";

/// The additional directories that actions such as `roots` refer to; replace `{root}` and
/// `{root:2}` in a client's command. They lie in the scenario's directory and are removed with it.
pub fn roots(cwd: &Path) -> [PathBuf; 2] {
    [cwd.join("root-one"), cwd.join("root-two")]
}

/// A requirement of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A capability of the agent, a path below `agentCapabilities`: `sessionCapabilities.list`.
    /// Checked by `Stage::initialize`.
    Agent(&'static str),
    /// A capability of the client, a path below `clientCapabilities`: `fs.readTextFile`. Checked by
    /// `Stage::accept`.
    Client(&'static str),
    /// An action of the client under test: `load`, `cancel`. Without one the client sends one
    /// prompt.
    Act(&'static str),
    /// Two actions of the client in one conversation: the second happens while the first has its
    /// effect. A command for both is named `first+second`.
    Acts(&'static str, &'static str),
    /// A prompt of this kind must have an effect on the agent.
    Prompt(PromptKind),
    /// The scenario is about this transport.
    Transport(Transport),
}

/// A peer under test.
pub trait Target {
    /// Starts the peer for one scenario.
    fn open<'a>(&'a self, fresh: &'a StartOptions) -> BoxFuture<'a, io::Result<Connection>>;

    /// Returns why this target cannot meet `need`, if that is known before the start.
    fn lacks(&self, need: &Need) -> Option<String> {
        let _ = need;
        None
    }

    /// Whether the peer can see the directory of the scenario. Peers in memory never touch the
    /// disk.
    fn is_real(&self) -> bool {
        true
    }

    /// The server under test, for scenarios that write their own requests and frames.
    fn endpoint(&self) -> Option<&Endpoint> {
        None
    }

    /// The command line for the head of a report.
    fn command(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How to start a peer for one scenario.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The name of the scenario.
    pub scenario: &'static str,
    /// The action of a client under test: `prompt`, `load`, `cancel`…
    pub act: &'static str,
    /// An action during that one, see [`Need::Acts`].
    pub then: Option<&'static str>,
    /// The text of the prompt that a client under test sends.
    pub prompt: String,
    /// The directory of the scenario.
    pub cwd: PathBuf,
    /// The transport that the scenario is about. Such a scenario connects to a server by itself.
    pub transport: Option<Transport>,
}

/// The connection to a started peer.
pub struct Connection {
    /// The peer's output.
    pub reader: Box<dyn AsyncRead + Unpin>,
    /// The peer's input; dropping it closes that.
    pub writer: Box<dyn AsyncWrite + Unpin>,
    /// The peer's program.
    pub process: Box<dyn PeerProcess>,
    /// Findings about its transport.
    pub observations: Observations,
}

impl Connection {
    /// Connects to a peer of which only the two streams are known.
    pub fn from_io(
        reader: impl AsyncRead + Unpin + 'static,
        writer: impl AsyncWrite + Unpin + 'static,
    ) -> Connection {
        Connection {
            reader: Box::new(reader),
            writer: Box::new(writer),
            process: Box::new(NoProcess),
            observations: Observations::default(),
        }
    }
}

/// The exit status of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Arguments and variables that a client added when it started the agent's program again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Arguments after the usual ones.
    pub args: Vec<String>,
    /// Variables whose names begin with `ATTACHE_CHECK_`; others are private.
    pub env: Vec<(String, String)>,
}

/// The program of a peer.
pub trait PeerProcess {
    /// Waits for the program to exit. Returns `None` at once if that cannot be observed.
    fn exit(&mut self) -> BoxFuture<'_, Option<Exit>> {
        Box::pin(async { None })
    }

    /// The last lines of stderr.
    fn stderr(&self) -> String {
        String::new()
    }

    /// Makes a running client act now (`cancel`). Peers in memory act by themselves.
    ///
    /// # Errors
    /// If the client cannot be reached.
    fn act(&mut self, act: &str) -> io::Result<()> {
        let _ = act;
        Ok(())
    }

    /// Waits until the client starts the agent's program a second time, as for a login in a
    /// terminal, makes that process exit with `code` and returns how it was started. Returns `None`
    /// at once if a second start cannot be observed.
    fn relaunched(&mut self, code: u8) -> BoxFuture<'_, Option<Launch>> {
        let _ = code;
        Box::pin(async { None })
    }

    /// Ends the program and waits until it is gone.
    fn end(self: Box<Self>) -> BoxFuture<'static, Option<Exit>> {
        Box::pin(async { None })
    }
}

struct NoProcess;

impl PeerProcess for NoProcess {}
