//! A hostile HTTP server on loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request that was received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The method and the path.
    pub(crate) target: String,
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
}

/// The body of an answer.
pub(crate) enum Body {
    Text(String),
    /// This piece, again and again, until the peer closes the connection.
    Endless(Vec<u8>),
}

impl Reply {
    pub(crate) fn new(kind: &str, body: impl Into<String>) -> Reply {
        let headers = vec![("content-type", kind.to_owned())];
        Reply { status: "200 OK", headers, body: Body::Text(body.into()) }
    }

    pub(crate) fn redirect(to: &str) -> Reply {
        Reply {
            status: "302 Found",
            headers: vec![("location", to.to_owned())],
            body: Body::Text(String::new()),
        }
    }

    pub(crate) fn missing() -> Reply {
        Reply { status: "404 Not Found", headers: Vec::new(), body: Body::Text(String::new()) }
    }
}

/// A server that keeps what it receives. It ends with this value.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    /// Connections, also those without a request.
    connections: Arc<Mutex<usize>>,
    ended: Arc<AtomicBool>,
}

impl Server {
    /// A server that answers every request with this function.
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let ended = Arc::new(AtomicBool::new(false));
        let (kept, counted, over, answer) =
            (requests.clone(), connections.clone(), ended.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                *counted.lock().unwrap() += 1;
                let (kept, answer) = (kept.clone(), answer.clone());
                thread::spawn(move || serve(stream, &kept, answer.as_ref()));
            }
        });
        Server { address, requests, connections, ended }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Reports a connection, if there was one.
    pub(crate) fn reached(&self) -> Option<String> {
        let count = *self.connections.lock().unwrap();
        let first = self.requests().first().map(|request| request.target.clone()).unwrap_or_default();
        (count > 0).then(|| format!("{} was reached {count} times: {first}", self.address))
    }

    /// Forgets what was received.
    pub(crate) fn forget(&self) {
        self.requests.lock().unwrap().clear();
        *self.connections.lock().unwrap() = 0;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Reply) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let Ok(mut output) = stream.try_clone() else { return };
    let mut input = BufReader::new(stream);
    while let Some(request) = read(&mut input) {
        kept.lock().unwrap().push(request.clone());
        let reply = answer(&request);
        let mut head = format!("HTTP/1.1 {}\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let sent = match reply.body {
            Body::Text(text) => {
                head.push_str(&format!("content-length: {}\r\n\r\n", text.len()));
                output.write_all(head.as_bytes()).and_then(|()| output.write_all(text.as_bytes()))
            }
            Body::Endless(piece) => {
                head.push_str("connection: close\r\n\r\n");
                let mut sent = output.write_all(head.as_bytes());
                while sent.is_ok() {
                    sent = output.write_all(&piece);
                }
                sent
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

fn read(input: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut target = String::new();
    input.read_line(&mut target).ok().filter(|count| *count > 0)?;
    let mut headers = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|count| *count > 0)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        headers.push_str(&line);
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    let target = target.trim().trim_end_matches(" HTTP/1.1").to_owned();
    Some(Request { target, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
