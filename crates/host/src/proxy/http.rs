//! HTTP: tunnels by `CONNECT`, and requests that are read and passed on, one for each connection.

use std::io;
use std::time::Duration;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpStream, UnixStream};

use super::Shared;
use super::destination::{Destination, Refusal, Traffic, approve, connect_to};
use super::head::{self, Content, Head};
use super::relay::{self, Idle};

/// The line of a chunk may have this many bytes.
const CHUNK_LINE_BYTES: u64 = 1024;

/// How much is read, and for how long, of a client that gets an answer before it has sent
/// everything.
const LINGER_BYTES: u64 = 1024 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(1);

/// Serves a connection whose first byte has been read.
pub(super) async fn serve(mut client: UnixStream, first: u8, shared: &Shared) -> io::Result<()> {
    let mut buffer = vec![first];
    let limits = &shared.options;
    let head = tokio::time::timeout(limits.patience, head::read(&mut client, &mut buffer, limits.head_bytes))
        .await?;
    let head = match head {
        Ok(head) => head,
        Err(error) => {
            let status = match error.kind() {
                io::ErrorKind::FileTooLarge => "431 Request Header Fields Too Large",
                _ => "400 Bad Request",
            };
            return answer(&mut client, status, &error.to_string()).await;
        }
    };
    match Target::of(&head) {
        Some(Target::Tunnel { host, port }) => tunnel(client, buffer, &host, port, shared).await,
        Some(Target::Request { host, port, path }) => {
            let request = Request { head, host, port, path };
            request.serve(client, buffer, shared).await
        }
        None => {
            answer(&mut client, "400 Bad Request", "this is a proxy; it needs CONNECT or a whole address")
                .await
        }
    }
}

/// The target of a request.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    Tunnel { host: String, port: u16 },
    Request { host: String, port: u16, path: String },
}

impl Target {
    fn of(head: &Head) -> Option<Target> {
        let mut words = head.line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") || method.is_empty() {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = split_port(target)?;
            return Some(Target::Tunnel { host: host.to_owned(), port: port? });
        }
        let scheme = "http://";
        let rest =
            target.get(scheme.len()..).filter(|_| target[..scheme.len()].eq_ignore_ascii_case(scheme))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (host, port) = split_port(authority)?;
        Some(Target::Request { host: host.to_owned(), port: port.unwrap_or(80), path })
    }
}

/// Splits `host:port`. The outer `None`: neither a host nor with a valid port.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (ip, rest) = rest.split_once(']')?;
            (ip, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let number =
        |port: &str| port.parse::<u16>().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()));
    match port {
        // `http://host:/` has no port.
        None | Some("") => Some((host, None)),
        Some(port) => Some((host, Some(number(port)?))),
    }
    .filter(|(host, _)| !host.is_empty())
}

async fn tunnel(
    mut client: UnixStream,
    mut pending: Vec<u8>,
    host: &str,
    port: u16,
    shared: &Shared,
) -> io::Result<()> {
    let work = async {
        let destination = approve(host, port, Traffic::Tunnel, shared).await?;
        shared.connect(&destination).await
    };
    match relay::unless_gone(&mut client, &mut pending, shared.options.head_bytes, work).await? {
        Ok(server) => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            relay::tunnel(client, pending, server, shared.options.idle).await
        }
        Err(refusal) => refuse(&mut client, &refusal, host, port).await,
    }
}

/// A request that is passed on.
struct Request {
    head: Head,
    host: String,
    port: u16,
    path: String,
}

impl Request {
    async fn serve(
        mut self,
        mut client: UnixStream,
        mut pending: Vec<u8>,
        shared: &Shared,
    ) -> io::Result<()> {
        let content = match self.head.content() {
            Ok(content) => content,
            Err(error) => return answer(&mut client, "400 Bad Request", &error.to_string()).await,
        };
        let work = async {
            let destination = approve(&self.host, self.port, Traffic::Request, shared).await?;
            let server = self.connect(&destination, shared).await.map_err(Refusal::Unreachable)?;
            Ok((destination, server))
        };
        let work = relay::unless_gone(&mut client, &mut pending, shared.options.head_bytes, work);
        let (destination, server) = match work.await? {
            Ok(connected) => connected,
            Err(refusal) => return refuse(&mut client, &refusal, &self.host, self.port).await,
        };
        self.rewrite(&destination, shared);
        exchange(client, pending, server, &self.head.to_bytes(), content, shared).await
    }

    async fn connect(&self, destination: &Destination, shared: &Shared) -> io::Result<TcpStream> {
        match shared.upstream(&destination.host, Traffic::Request) {
            Some(server) => server.open(shared.options.patience).await,
            None => connect_to(&destination.addresses, shared.options.patience).await,
        }
    }

    /// Makes it the request that the destination gets. The host is the one that was asked about,
    /// whatever the command wrote.
    fn rewrite(&mut self, destination: &Destination, shared: &Shared) {
        let method = self.head.line.split(' ').next().unwrap_or_default().to_owned();
        let host = match destination.host.contains(':') {
            true => format!("[{}]", destination.host),
            false => destination.host.clone(),
        };
        let host = if destination.port == 80 { host } else { format!("{host}:{}", destination.port) };
        self.head.remove_hop_fields();
        self.head.remove("Host");
        self.head.fields.insert(0, ("Host".to_owned(), host.clone().into_bytes()));
        self.head.add("Connection", "close");
        let path = &self.path;
        self.head.line = match shared.upstream(&destination.host, Traffic::Request) {
            Some(server) => {
                if let Some(credentials) = server.credentials() {
                    self.head.add("Proxy-Authorization", credentials);
                }
                format!("{method} http://{host}{path} HTTP/1.1")
            }
            None => format!("{method} {path} HTTP/1.1"),
        };
    }
}

/// Passes one request and its response on.
async fn exchange(
    mut client: UnixStream,
    pending: Vec<u8>,
    mut server: TcpStream,
    request: &[u8],
    content: Content,
    shared: &Shared,
) -> io::Result<()> {
    let idle = Idle::new(shared.options.idle);
    let most = shared.options.head_bytes;
    idle.watch(server.write_all(request)).await?;
    let (from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let mut from_client = BufReader::new(pending.as_slice().chain(from_client));
        copy_content(&mut from_client, &mut to_server, content, most as u64, &idle).await?;
        // Another request would not be asked about, so nothing more is read: only the end of the
        // connection matters.
        let rest = from_client.fill_buf().await?.len();
        if rest == 0 { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) } else { Ok(()) }
    };
    let down = async {
        copy_response_head(&mut from_server, &mut to_client, most, &idle).await?;
        relay::copy_all(&mut from_server, &mut to_client, &idle).await
    };
    let mut up = std::pin::pin!(up);
    let mut down = std::pin::pin!(down);
    // The response may end before the request does.
    tokio::select! {
        result = &mut down => result,
        result = &mut up => {
            result?;
            down.await
        }
    }
}

/// Copies the heads of a response, and says in the last one that the connection ends with it.
async fn copy_response_head(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    most: usize,
    idle: &Idle,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let mut head = idle.watch(head::read(from, &mut buffer, most)).await?;
        let status = head.line.split(' ').nth(1).unwrap_or_default();
        let is_final = !status.starts_with('1') || status == "101";
        if is_final {
            head.remove_hop_fields();
            head.add("Connection", "close");
        }
        idle.watch(to.write_all(&head.to_bytes())).await?;
        if is_final {
            return idle.watch(to.write_all(&buffer)).await;
        }
    }
}

/// Copies the content of a request and nothing behind it.
async fn copy_content(
    from: &mut BufReader<impl AsyncRead + Unpin>,
    to: &mut (impl AsyncWrite + Unpin),
    content: Content,
    most: u64,
    idle: &Idle,
) -> io::Result<()> {
    let length = match content {
        Content::Sized(length) => length,
        Content::Chunked => return copy_chunks(from, to, most, idle).await,
    };
    copy_exactly(from, to, length, idle).await
}

async fn copy_exactly(
    from: &mut BufReader<impl AsyncRead + Unpin>,
    to: &mut (impl AsyncWrite + Unpin),
    mut left: u64,
    idle: &Idle,
) -> io::Result<()> {
    while left > 0 {
        let bytes = idle.watch(from.fill_buf()).await?;
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        idle.watch(to.write_all(&bytes[..count])).await?;
        from.consume(count);
        left -= count as u64;
    }
    Ok(())
}

async fn copy_chunks(
    from: &mut BufReader<impl AsyncRead + Unpin>,
    to: &mut (impl AsyncWrite + Unpin),
    most: u64,
    idle: &Idle,
) -> io::Result<()> {
    loop {
        let line = copy_line(from, to, CHUNK_LINE_BYTES, idle).await?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let is_number = (1..=15).contains(&size.len()) && size.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = u64::from_str_radix(size, 16).ok().filter(|_| is_number);
        match size.ok_or(io::ErrorKind::InvalidData)? {
            0 => break,
            size => copy_exactly(from, to, size, idle).await?,
        }
        if !copy_line(from, to, CHUNK_LINE_BYTES, idle).await?.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let mut left = most;
    loop {
        let line = copy_line(from, to, left, idle).await?;
        if line.is_empty() {
            return Ok(());
        }
        left = left.saturating_sub(line.len() as u64);
    }
}

/// Copies a line, and returns it without its end.
async fn copy_line(
    from: &mut BufReader<impl AsyncRead + Unpin>,
    to: &mut (impl AsyncWrite + Unpin),
    most: u64,
    idle: &Idle,
) -> io::Result<String> {
    let mut line = Vec::new();
    idle.watch((&mut *from).take(most).read_until(b'\n', &mut line)).await?;
    let text = line.strip_suffix(b"\r\n").ok_or(io::ErrorKind::InvalidData)?;
    let text = std::str::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData)?.to_owned();
    idle.watch(to.write_all(&line)).await?;
    Ok(text)
}

async fn refuse(client: &mut UnixStream, refusal: &Refusal, host: &str, port: u16) -> io::Result<()> {
    let status = match refusal {
        Refusal::Invalid => "400 Bad Request",
        Refusal::Denied => "403 Forbidden",
        Refusal::Unknown(_) | Refusal::Unreachable(_) => "502 Bad Gateway",
    };
    answer(client, status, &refusal.explain(host, port)).await
}

/// Answers in the place of a server.
async fn answer(client: &mut UnixStream, status: &str, text: &str) -> io::Result<()> {
    // The text may contain what the command wrote; nothing of it may begin a new line.
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let body = format!("attache: {text}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all((head + &body).as_bytes()).await?;
    client.shutdown().await?;
    // Closing a socket with something unread in it would take the answer away from the client.
    let mut rest = client.take(LINGER_BYTES);
    let _ = tokio::time::timeout(LINGER_TIME, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Target> {
        Target::of(&Head { line: line.to_owned(), fields: Vec::new() })
    }

    fn request(host: &str, port: u16, path: &str) -> Option<Target> {
        Some(Target::Request { host: host.to_owned(), port, path: path.to_owned() })
    }

    #[test]
    fn targets_are_read() {
        let tunnel = |host: &str, port| Some(Target::Tunnel { host: host.to_owned(), port });
        assert_eq!(of("CONNECT a.example:443 HTTP/1.1"), tunnel("a.example", 443));
        assert_eq!(of("CONNECT [::1]:22 HTTP/1.0"), tunnel("::1", 22));
        assert_eq!(of("GET http://a.example HTTP/1.1"), request("a.example", 80, "/"));
        assert_eq!(of("GET HTTP://a.example:8080/x?y#z HTTP/1.1"), request("a.example", 8080, "/x?y"));
        assert_eq!(of("POST http://[::1]?q HTTP/1.1"), request("::1", 80, "/?q"));
        assert_eq!(of("GET http://a.example:/ HTTP/1.1"), request("a.example", 80, "/"));
    }

    #[test]
    fn other_requests_are_none() {
        for line in [
            "GET / HTTP/1.1",
            "GET https://a.example/ HTTP/1.1",
            "CONNECT a.example HTTP/1.1",
            "CONNECT a.example:443:1 HTTP/1.1",
            "CONNECT :443 HTTP/1.1",
            "CONNECT a.example:+443 HTTP/1.1",
            "CONNECT a.example:65536 HTTP/1.1",
            "CONNECT [::1 HTTP/1.1",
            "CONNECT [::1]443 HTTP/1.1",
            "GET http:// HTTP/1.1",
            "GET http:///x HTTP/1.1",
            "GET  http://a/ HTTP/1.1",
            "GET http://a/ HTTP/2.0",
            "GET http://a/",
            "",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
