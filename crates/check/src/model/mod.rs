//! A scripted model server on loopback, for agents that need a model to be exercised.
//!
//! It speaks the chat completions and responses APIs of OpenAI, the messages API of Anthropic and
//! the generateContent API of Gemini, with and without streaming. Markers in the prompt decide the
//! reply ([`prompts`] sends them), so an agent reads, edits, runs commands, asks and is cancelled
//! without an account.
//!
//! Reading order: `serve.rs` (one connection), `talk.rs` (a request of any API as a value),
//! `script.rs` (the reply), the four APIs in `api/`, then `agents.rs` (settings of known agents).
//!
//! Never here: a connection from or to another machine, an unbounded number of connections, or a
//! request body beyond 32 MB.

mod agents;
mod api;
mod http;
mod log;
mod script;
mod serve;
mod talk;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use attache_conn::private::TempDir;
use parking_lot::Mutex;

use crate::prompts::{PromptKind, Prompts};

pub use agents::KnownAgent;

/// The name of the model.
pub const MODEL: &str = "fake-model";

/// The most connections at once. Others are closed at once.
const MOST_CONNECTIONS: usize = 256;

/// What makes the model use an agent's tools, by kind of prompt.
const MARKERS: &[(PromptKind, &str)] = &[
    (PromptKind::Say, "[[answer hello]]"),
    (PromptKind::Read, "[[read {cwd}/notes.txt]]"),
    (PromptKind::Write, "[[create {cwd}/out.txt done]]"),
    (PromptKind::Run, "[[run touch {cwd}/ran.txt && echo attache]]"),
    (PromptKind::RunLong, "[[run sleep 600]]"),
    (PromptKind::Ask, "[[run rm {cwd}/old.txt]]"),
    (PromptKind::Think, "[[slow]]"),
    (PromptKind::Plan, "[[plan]]"),
    (PromptKind::Lines, "[[answer grüße, 世界]]"),
    (PromptKind::Background, "[[background sleep 600]]"),
];

/// Sets the texts of the prompts that the model has a reply for.
pub fn prompts(prompts: &mut Prompts) {
    for (kind, marker) in MARKERS {
        prompts.set(*kind, *marker);
    }
}

/// A model server that is running. It ends when this is dropped.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    home: TempDir,
    shared: Arc<Shared>,
    accepts: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    connections: Mutex<HashMap<u64, TcpStream>>,
}

impl FakeModel {
    /// Starts a server on a free loopback port. Requests are written to `log`, one JSON object per
    /// line.
    ///
    /// # Errors
    /// If no port is free, or the log or a private directory cannot be created.
    pub fn start(log: Option<&Path>) -> io::Result<FakeModel> {
        let log = Arc::new(log.map_or_else(|| Ok(log::Log::none()), log::Log::create)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        let accepts = std::thread::Builder::new()
            .name("fake-model".to_owned())
            .spawn(move || accept(&listener, &accepting, &log))?;
        let home = TempDir::new("attache-check-home")?;
        Ok(FakeModel { address, home, shared, accepts: Some(accepts) })
    }

    /// The address, such as `http://127.0.0.1:40001`. The APIs of OpenAI are below `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Writes the settings of the agent that `command` starts into a private home directory, and
    /// returns variables for its process: that directory, the server as the address of every
    /// provider, and as the proxy to all else, which it refuses.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn environment(&self, command: &[String]) -> io::Result<Vec<(String, String)>> {
        agents::environment(command, &self.url(), self.home.path())
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        // A connection wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
        // After the thread has ended, so that a connection that it was just accepting is closed
        // too.
        for (_, stream) in self.shared.connections.lock().drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, log: &Arc<log::Log>) {
    for (number, stream) in (0..).zip(listener.incoming()) {
        if shared.stopped.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(copy) = stream.try_clone() else { continue };
        {
            let mut connections = shared.connections.lock();
            if connections.len() >= MOST_CONNECTIONS {
                continue;
            }
            connections.insert(number, copy);
        }
        let (served, log) = (Arc::clone(shared), Arc::clone(log));
        let thread = std::thread::Builder::new().name("fake-model connection".to_owned()).spawn(move || {
            serve::connection(stream, &log);
            served.connections.lock().remove(&number);
        });
        if thread.is_err() {
            shared.connections.lock().remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn it_answers_several_clients_and_ends_with_its_value() {
        let model = FakeModel::start(None).unwrap();
        let ask = |mut client: &TcpStream| {
            client.write_all(b"GET /v1/models HTTP/1.1\r\n\r\n").unwrap();
            let mut start = [0; 15];
            client.read_exact(&mut start).unwrap();
            assert_eq!(&start, b"HTTP/1.1 200 OK");
        };
        let clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(model.address).unwrap()).collect();
        clients.iter().for_each(ask);
        let address = model.address;
        drop(model);
        for mut client in clients {
            // The rest of the answer, then the end.
            let _ = client.read_to_end(&mut Vec::new());
        }
        // A process that another test is just starting has a copy of the listener until it executes
        // its program. A connection to that copy is never accepted.
        if let Ok(mut late) = TcpStream::connect(address) {
            let _ = late.write_all(b"GET /v1/models HTTP/1.1\r\n\r\n");
            let mut answer = Vec::new();
            let _ = late.read_to_end(&mut answer);
            assert!(answer.is_empty(), "{answer:?}");
        }
    }
}
