//! A proxy between client and server whose connections a client can have cut.
//!
//! A client connects to the control address and sends one line. `cut` ends all connections at once.
//! `cut at TEXT` withholds everything that the server sends from then on, and ends all connections
//! after the server has sent TEXT: what a client asked for was done, and it cannot know. TEXT must
//! be readable, so the offer of compression in an upgrade is made unknown. The proxy closes the
//! control connection when the command is in force.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The variable that names the control address to a client.
pub(super) const CONTROL: &str = "ATTACHE_INTEROP_CUT";

/// A running proxy. Dropping it ends its connections.
#[derive(Debug)]
pub(super) struct Proxy {
    /// The address for clients.
    pub(super) address: SocketAddr,
    /// The address for commands.
    pub(super) control: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    is_over: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Both ends of every connection.
    streams: Vec<TcpStream>,
    /// What the server must send before the cut.
    until: Option<Vec<u8>>,
}

impl Proxy {
    /// Starts a proxy before a server, `HOST:PORT`.
    pub(super) fn start(server: &str) -> io::Result<Proxy> {
        let server = server.parse().map_err(|_| io::Error::other(format!("`{server}` is no address")))?;
        let (clients, commands) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let (address, control) = (clients.local_addr()?, commands.local_addr()?);
        let shared = Arc::new(Shared { server, is_over: AtomicBool::new(false), state: Mutex::default() });
        let (left, right) = (Arc::clone(&shared), Arc::clone(&shared));
        thread::spawn(move || left.accept(&clients, |shared, client| shared.connect(client)));
        thread::spawn(move || right.accept(&commands, |shared, command| shared.obey(command)));
        Ok(Proxy { address, control, shared })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.cut();
        // Wakes both listeners.
        let _ = (TcpStream::connect(self.address), TcpStream::connect(self.control));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(
        self: &Arc<Self>,
        listener: &TcpListener,
        serve: impl Fn(&Arc<Self>, TcpStream) -> io::Result<()>,
    ) {
        for stream in listener.incoming().map_while(Result::ok) {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            // A client that is gone, or a server: the other side sees it.
            let _ = serve(self, stream);
        }
    }

    /// Passes bytes on in both directions.
    fn connect(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(self.server)?;
        self.state().streams.extend([client.try_clone()?, server.try_clone()?]);
        let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
        let (up, down) = (Arc::clone(self), Arc::clone(self));
        thread::spawn(move || up.pass(from_client, to_server, false));
        thread::spawn(move || down.pass(server, client, true));
        Ok(())
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream, is_of_server: bool) {
        let (mut buffer, mut withheld) = (vec![0; 64 << 10], Vec::new());
        let mut is_first = true;
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if std::mem::take(&mut is_first) && !is_of_server {
                hide_compression(&mut buffer[..read]);
            }
            let until = if is_of_server { self.state().until.clone() } else { None };
            let Some(until) = until else {
                if to.write_all(&buffer[..read]).is_err() {
                    break;
                }
                continue;
            };
            withheld.extend_from_slice(&buffer[..read]);
            if withheld.windows(until.len()).any(|part| part == until) {
                self.cut();
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    fn obey(&self, command: TcpStream) -> io::Result<()> {
        let mut line = String::new();
        BufReader::new(&command).read_line(&mut line)?;
        match line.trim().split_once(" at ") {
            Some(("cut", text)) => self.state().until = Some(text.as_bytes().to_vec()),
            None if line.trim() == "cut" => self.cut(),
            _ => (&command).write_all(b"no such command\n")?,
        }
        Ok(())
    }

    fn cut(&self) {
        let mut state = self.state();
        state.until = None;
        for stream in state.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Makes the offer of compression in the head of an upgrade one that no server knows. WebSocket
/// clients send the head at once.
fn hide_compression(head: &mut [u8]) {
    const OFFER: &[u8] = b"permessage-deflate";
    const UNKNOWN: &[u8] = b"permessage-unknown";
    let end = head.windows(4).position(|part| part == b"\r\n\r\n").unwrap_or(head.len());
    while let Some(at) = head[..end].windows(OFFER.len()).position(|part| part == OFFER) {
        head[at..at + OFFER.len()].copy_from_slice(UNKNOWN);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Sends a command and waits until it is in force.
    fn command(proxy: &Proxy, line: &str) {
        let mut control = TcpStream::connect(proxy.control).unwrap();
        control.write_all(line.as_bytes()).unwrap();
        assert_eq!(control.read(&mut [0; 1]).unwrap(), 0);
    }

    /// A connection through the proxy, and the server's end of it.
    fn connect(proxy: &Proxy, server: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(proxy.address).unwrap();
        (client, server.accept().unwrap().0)
    }

    fn read(stream: &mut TcpStream) -> Vec<u8> {
        let mut buffer = [0; 16];
        let read = stream.read(&mut buffer).unwrap_or(0);
        buffer[..read].to_vec()
    }

    #[test]
    fn connections_are_cut_when_asked() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::start(&server.local_addr().unwrap().to_string()).unwrap();
        let (mut client, mut peer) = connect(&proxy, &server);
        client.write_all(b"hello").unwrap();
        assert_eq!(read(&mut peer), b"hello");
        peer.write_all(b"answer").unwrap();
        assert_eq!(read(&mut client), b"answer");
        command(&proxy, "cut\n");
        assert!(read(&mut client).is_empty() && read(&mut peer).is_empty());

        let mut head = *b"a: permessage-deflate; b\r\n\r\npermessage-deflate";
        hide_compression(&mut head);
        assert_eq!(&head, b"a: permessage-unknown; b\r\n\r\npermessage-deflate");

        // The next connection works until the server has sent the word, of which the client sees
        // nothing.
        let (mut client, mut peer) = connect(&proxy, &server);
        command(&proxy, "cut at word\n");
        client.write_all(b"hello").unwrap();
        assert_eq!(read(&mut peer), b"hello");
        peer.write_all(b"a wo").unwrap();
        peer.write_all(b"rd").unwrap();
        assert!(read(&mut client).is_empty() && read(&mut peer).is_empty());
    }
}
