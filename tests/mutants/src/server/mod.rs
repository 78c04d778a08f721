//! A proxy between a conformant client and a conformant server. A variant of it breaks one rule of
//! the transports, in the name of either.
//!
//! `client.rs` breaks rules of clients, the rest those of servers: `request.rs` reads requests,
//! `http.rs` answers or forwards them, `frames.rs` carries the frames of WebSockets.

mod client;
mod frames;
mod http;
mod request;

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};

use crate::Variant;

/// Every variant, in the order of the rules.
pub fn variants() -> &'static [Variant] {
    static VARIANTS: LazyLock<Vec<Variant>> = LazyLock::new(|| Variant::table(include_str!("variants.txt")));
    &VARIANTS
}

/// Every variant of a client, in the order of the rules.
pub fn client_variants() -> &'static [Variant] {
    static VARIANTS: LazyLock<Vec<Variant>> =
        LazyLock::new(|| Variant::table(include_str!("client_variants.txt")));
    &VARIANTS
}

/// Stands before the server at `upstream` and returns its own address. Ends with the runtime.
///
/// # Errors
/// If no port is free.
pub async fn proxy(upstream: SocketAddr, variant: Option<&'static str>) -> io::Result<SocketAddr> {
    listen(upstream, variant, false).await
}

/// Stands behind a client that wants to connect to `upstream`, like [`proxy`].
///
/// # Errors
/// If no port is free.
pub async fn client_proxy(upstream: SocketAddr, variant: Option<&'static str>) -> io::Result<SocketAddr> {
    listen(upstream, variant, true).await
}

async fn listen(
    upstream: SocketAddr,
    variant: Option<&'static str>,
    is_client: bool,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let proxy = Arc::new(Proxy {
        upstream,
        variant: variant.unwrap_or_default(),
        is_client,
        is_dead: AtomicBool::new(false),
        one_at_a_time: tokio::sync::Mutex::default(),
        state: Mutex::default(),
        answered: watch::Sender::new(HashSet::new()),
        events: broadcast::Sender::new(64),
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let proxy = Arc::clone(&proxy);
            tokio::spawn(async move {
                // A peer that is gone ends the connection, nothing else.
                let _ = proxy.serve(stream).await;
            });
        }
    });
    Ok(address)
}

struct Proxy {
    upstream: SocketAddr,
    variant: &'static str,
    /// Whether the client is the one that breaks rules.
    is_client: bool,
    /// Set by variants that do not survive a fault.
    is_dead: AtomicBool,
    /// Held by variants that wait for one client while they serve no other.
    one_at_a_time: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    /// The ids of answers that went over streams.
    answered: watch::Sender<HashSet<String>>,
    /// Events of sessions, for the variant that sends them to all.
    events: broadcast::Sender<String>,
}

#[derive(Default)]
struct State {
    /// The last token of a client.
    authorization: Option<String>,
    /// Connections whose stream was opened.
    streams: HashSet<String>,
    /// The ids of requests that close sessions, or load them for a client.
    closing: HashSet<String>,
    /// Whether a frame was sent.
    is_begun: bool,
    /// Streams that were opened, by connection and session.
    opened: HashSet<(String, Option<String>)>,
    /// Requests that came, by connection and id.
    posted: HashSet<(String, String)>,
    /// What a variant counts until it is too much.
    count: usize,
}

impl Proxy {
    /// Whether this proxy plays the variant `name`.
    fn is(&self, name: &str) -> bool {
        self.variant == name
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves nobody any more if this is the variant `name`.
    fn die_of(&self, name: &str) {
        if self.is(name) {
            self.is_dead.store(true, Ordering::Relaxed);
        }
    }

    /// Dies of the thing that is counted here, if it is too much for the variant `name`.
    fn die_of_many(&self, name: &str, max: usize) {
        if !self.is(name) {
            return;
        }
        let mut state = self.state();
        state.count += 1;
        if state.count > max {
            self.is_dead.store(true, Ordering::Relaxed);
        }
    }

    /// A connection ended within a request or a frame.
    fn was_cut(&self) {
        self.die_of("HTTP-37/cut");
        self.die_of("WS-16/cut");
    }

    /// Reads a request; `None` if it was cut off.
    async fn read(&self, client: &mut TcpStream) -> io::Result<Option<request::Request>> {
        let _alone = match self.is("HTTP-37/stall") || self.is("WS-16/stall") {
            true => Some(self.one_at_a_time.lock().await),
            false => None,
        };
        request::Request::read(client).await
    }

    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        // Whoever only looks whether the server is there has cut nothing off.
        if client.peek(&mut [0]).await? == 0 {
            return Ok(());
        }
        let Some(request) = self.read(&mut client).await? else {
            self.was_cut();
            return Ok(());
        };
        if self.is_client {
            return self.forward(request, client).await;
        }
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if request.is_http2() {
            if self.is("HTTP-04") {
                return Ok(());
            }
            return self.pass_on(&request.bytes("HTTP/1.1"), client).await;
        }
        if request.is_upgrade() {
            return self.upgrade(request, client).await;
        }
        self.respond(request, client).await
    }

    /// Carries bytes in both directions.
    async fn pass_on(&self, first: &[u8], mut client: TcpStream) -> io::Result<()> {
        use tokio::io::AsyncWriteExt as _;
        let mut server = TcpStream::connect(self.upstream).await?;
        server.write_all(first).await?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await?;
        Ok(())
    }
}
