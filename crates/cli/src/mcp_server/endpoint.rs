//! The MCP server of a running session: a Unix socket that the agent reaches through `attache
//! mcp-server --connect SOCKET`.
//!
//! The agent starts that program, so nothing that it says about rights could be believed. It only
//! forwards bytes: files, commands, policy and questions stay in the process that the user started.

use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use attache::wire::v1::{McpServerStdio, SessionId};
use attache_conn::Link;
use attache_conn::private::{TempDir, user_id};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use super::connection::serve;
use super::tools::Toolbox;
use crate::error::{Context as _, Failure, Result};
use crate::output::Relay;
use crate::paths::{Paths, private_dir};

/// Connections at a time. An agent needs one for each of its sessions, and one while it starts its
/// server again.
const CONNECTIONS: usize = 8;
/// The longest socket path that every supported system accepts.
const LONGEST_PATH: usize = 100;

/// The MCP server of a session. Dropping it ends its connections and their commands.
pub(crate) struct Endpoint {
    socket: PathBuf,
    /// The directory of the socket, if it is not in the runtime directory.
    _directory: Option<TempDir>,
    program: PathBuf,
    tools: Toolbox,
    serving: JoinHandle<()>,
}

impl Endpoint {
    /// Listens on a socket that only this user can reach.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub(crate) fn open(paths: &Paths, tools: Toolbox) -> Result<Endpoint> {
        let (socket, directory) = socket_path(paths).context("the socket of the MCP server")?;
        // Left by a process that had the same id.
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).context("the socket of the MCP server")?;
        let program = std::env::current_exe().context("the path of this program")?;
        let serving = tokio::spawn(accept(listener, tools.clone()));
        Ok(Endpoint { socket, _directory: directory, program, tools, serving })
    }

    /// Sets the session; see [`Toolbox::set_session`].
    pub(crate) fn set_session(&self, session: SessionId) {
        self.tools.set_session(session);
    }

    /// The entry for `mcpServers` of a new session.
    pub(crate) fn server(&self) -> McpServerStdio {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let args = ["mcp-server".to_owned(), "--connect".to_owned(), path(&self.socket)];
        McpServerStdio::new("attache", path(&self.program), args, Vec::new())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.serving.abort();
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// A path in a private directory, short enough for a socket.
fn socket_path(paths: &Paths) -> io::Result<(PathBuf, Option<TempDir>)> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let name = format!("mcp-{}-{}.sock", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let socket = paths.runtime.join(&name);
    if socket.as_os_str().len() <= LONGEST_PATH {
        private_dir(&paths.runtime)?;
        return Ok((socket, None));
    }
    let directory = TempDir::within(Path::new("/tmp"), "attache")?;
    Ok((directory.path().join(name), Some(directory)))
}

async fn accept(listener: UnixListener, tools: Toolbox) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS => {
                let Ok((stream, _)) = accepted else { return };
                if check_user(&stream).is_ok() {
                    connections.spawn(serve(Link::from(stream), tools.clone()));
                }
            }
        }
    }
}

/// Forwards standard input and output to the MCP server of a session, until either side ends.
///
/// # Errors
/// If the session has ended.
pub(crate) async fn forward(socket: &Path) -> Result<()> {
    let stream = connect(socket).map_err(|error| {
        Failure::runtime(format_args!("no session at {}: {error}", socket.display()))
            .hint("this command is started by an agent; without --connect it is a server of its own")
    })?;
    let (mut from_session, mut to_session) = stream.into_split();
    let (mut stdin, mut stdout) = (tokio::io::stdin(), Relay::stdout());
    let sent = async {
        tokio::io::copy(&mut stdin, &mut to_session).await?;
        tokio::io::AsyncWriteExt::shutdown(&mut to_session).await
    };
    let received = tokio::io::copy(&mut from_session, &mut stdout);
    tokio::pin!(sent, received);
    // The session answers what is open and closes its side, also after the agent has closed its
    // own.
    tokio::select! {
        _ = &mut received => {}
        _ = &mut sent => {
            let _ = received.await;
        }
    }
    Ok(())
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = StdUnixStream::connect(socket)?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    check_user(&stream)?;
    Ok(stream)
}

/// An error unless the process at the other end runs as this user.
fn check_user(stream: &UnixStream) -> io::Result<()> {
    match stream.peer_cred()?.uid() == user_id() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use attache_host::policy::{Answer, Mode, Policy};
    use serde_json::{Value, json};

    use super::*;
    use crate::client_services::{ClientServices, GuardEvent, Sandbox};
    use crate::mcp_server::Asking;

    fn paths(home: &Path) -> Paths {
        let dir = |name: &str| home.join(name);
        Paths { config: dir("c"), state: dir("s"), cache: dir("h"), data: dir("d"), runtime: dir("r") }
    }

    #[tokio::test]
    async fn questions_of_an_agent_go_to_the_user_of_the_session() {
        let home = TempDir::new("attache-endpoint").unwrap();
        let root = home.path().canonicalize().unwrap();
        let policy = Policy::new(Mode::ASK).roots([&root]);
        let (services, mut events) = ClientServices::new(policy, Sandbox::default());
        let tools = Toolbox::new(services, vec![root.clone()], Asking::User);
        let endpoint = Endpoint::open(&paths(&root), tools).unwrap();
        let entry = endpoint.server();
        let [command, flag, socket] = &*entry.args else { panic!("{entry:?}") };
        assert_eq!((command.as_str(), flag.as_str()), ("mcp-server", "--connect"));
        let socket = PathBuf::from(socket);

        // The agent has no forms, and need not have any.
        let (mut reader, mut writer) = Link::from(connect(&socket).unwrap()).split();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let arguments = json!({ "path": "a.txt", "content": "x" });
        let params = json!({ "name": "write_file", "arguments": arguments, "_meta": meta });
        let call = json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params });
        // The answer for the session holds for the next call.
        endpoint.set_session(SessionId::from("s"));
        let answers = [Some(Answer::Reject), Some(Answer::Session), None];
        for answer in answers {
            let allowed = answer != Some(Answer::Reject);
            writer.send(call.to_string().as_bytes()).await.unwrap();
            if let Some(answer) = answer {
                let Some(GuardEvent::Question(question, reply)) = events.recv().await else { panic!() };
                assert_eq!(question.headline(), "Create a.txt?");
                assert_eq!(question.session, Some(SessionId::from("s")));
                reply.send(answer).unwrap();
            }
            let line = reader.next().await.unwrap().unwrap();
            let response: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(response["result"]["isError"], !allowed, "{response}");
            assert_eq!(root.join("a.txt").exists(), allowed);
            while let Ok(event) = events.try_recv() {
                assert!(matches!(event, GuardEvent::Notice(_)));
            }
        }

        // The end of the session ends the connection.
        drop(endpoint);
        assert!(matches!(reader.next().await, Ok(None) | Err(_)));
        assert!(!socket.exists());
    }
}
