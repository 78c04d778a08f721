//! The proxy, spoken to byte by byte.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_host::net::Reach;
use attache_host::proxy::{Destination, Options, Proxy, Upstream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{Notify, mpsc};

/// A server that answers every connection with what it was sent, once the client is silent for good
/// or has sent a line.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = vec![0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    if stream.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// A web server that reports each request and answers it with `response`.
async fn web(response: &'static str) -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = mpsc::channel(64);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, response, sender.clone()));
        }
    });
    (port, requests)
}

async fn answer(mut stream: TcpStream, response: &str, sender: mpsc::Sender<String>) {
    let mut text = String::new();
    let mut buffer = vec![0; 4096];
    let is_whole = |text: &str| match text.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains("chunked") => body.ends_with("0\r\n\r\n"),
        Some((head, body)) => {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
            body.len() >= length.unwrap_or(0)
        }
        None => false,
    };
    while !is_whole(&text) {
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => text.push_str(&String::from_utf8_lossy(&buffer[..count])),
            _ => break,
        }
    }
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    // What else comes is part of the report.
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    let _ = sender.send(text).await;
}

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello";

/// A proxy that allows this port and remembers what it was asked.
fn allow(port: u16) -> (Proxy, Arc<Mutex<Vec<Destination>>>) {
    allow_with(port, Options::default())
}

fn allow_with(port: u16, options: Options) -> (Proxy, Arc<Mutex<Vec<Destination>>>) {
    let asked: Arc<Mutex<Vec<Destination>>> = Arc::default();
    let asks = asked.clone();
    let proxy = Proxy::start(options, move |destination| {
        let answer = destination.port == port;
        asks.lock().unwrap().push(destination);
        async move { answer }
    });
    (proxy.unwrap(), asked)
}

async fn open(proxy: &Proxy) -> UnixStream {
    UnixStream::connect(proxy.socket()).await.unwrap()
}

/// Sends something and reads until the connection ends.
async fn talk(proxy: &Proxy, bytes: &[u8]) -> String {
    let mut stream = open(proxy).await;
    stream.write_all(bytes).await.unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

async fn read_head(stream: &mut UnixStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn a_tunnel_carries_both_directions() {
    let port = echo().await;
    let (proxy, asked) = allow(port);
    for host in ["127.0.0.1", "localhost", "LOCALHOST."] {
        let mut stream = open(&proxy).await;
        // The client does not wait for the answer.
        let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}\r\n\r\nearly ");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
        stream.write_all(b"late").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "early late");
    }
    let asked = asked.lock().unwrap();
    let reach = Reach::ThisMachine;
    let number = Destination {
        host: "127.0.0.1".to_owned(),
        port,
        reach,
        addresses: vec![([127, 0, 0, 1], port).into()],
    };
    let name = Destination { host: "localhost".to_owned(), port, reach, addresses: Vec::new() };
    assert_eq!(*asked, [number, name]);
}

#[tokio::test]
async fn denied_hosts_are_not_connected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (proxy, _) = allow(1);
    let text = talk(&proxy, format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n").as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 403 Forbidden\r\n") && text.contains("was denied"), "{text}");
    let text = talk(&proxy, format!("GET http://localhost:{port}/ HTTP/1.1\r\n\r\n").as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{text}");
    let mut socks = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
    socks.extend(port.to_be_bytes());
    let text = talk(&proxy, &socks).await;
    assert_eq!(&text.as_bytes()[..4], [5, 0, 5, 2], "{text:?}");
    // Whatever was queued by now would be there.
    let own = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (first, _) = listener.accept().await.unwrap();
    assert_eq!(first.peer_addr().unwrap(), own.local_addr().unwrap());
}

#[tokio::test]
async fn a_name_is_looked_up_only_if_it_is_allowed() {
    let (proxy, asked) = allow(1);
    // A lookup would fail, and the answer would be another one.
    let text = talk(&proxy, b"CONNECT data.no-such-name.invalid:80 HTTP/1.1\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
    assert_eq!(asked.lock().unwrap()[0].addresses, []);
}

#[tokio::test]
async fn a_name_that_is_nearer_than_it_looks_is_asked_about_again() {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = ["ip6-localhost", "ip6-loopback", "localhost4", "localhost6", own.trim()];
    let mut found = None;
    for name in names {
        let addresses = attache_host::net::resolve(name, 1).await.unwrap_or_default();
        if !name.contains('.') && addresses.iter().any(|address| address.ip().is_loopback()) {
            found = Some(name);
        }
    }
    let Some(name) = found else {
        eprintln!("skipped: no other name of this machine is known");
        return;
    };
    let (proxy, asked) = allow(80);
    let text = talk(&proxy, format!("CONNECT {name}:80 HTTP/1.1\r\n\r\n").as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 "), "{text}");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!((asked[0].reach, asked[0].addresses.len()), (Reach::LocalNetwork, 0));
    assert_eq!(asked[1].reach, Reach::ThisMachine);
    assert!(!asked[1].addresses.is_empty());
}

#[tokio::test]
async fn socks_takes_names_and_numbers() {
    let port = echo().await;
    let (proxy, _) = allow(port);
    let addresses: [&[u8]; 2] = [&[1, 127, 0, 0, 1], b"\x03\x09localhost"];
    for address in addresses {
        let mut stream = open(&proxy).await;
        stream.write_all(&[5, 2, 0, 2]).await.unwrap();
        let mut method = [0; 2];
        stream.read_exact(&mut method).await.unwrap();
        assert_eq!(method, [5, 0]);
        stream.write_all(&[&[5, 1, 0], address, &port.to_be_bytes()].concat()).await.unwrap();
        let mut reply = [0; 10];
        stream.read_exact(&mut reply).await.unwrap();
        assert_eq!(reply[..2], [5, 0], "{address:?}");
        stream.write_all(b"text").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "text");
    }
}

#[tokio::test]
async fn other_requests_of_socks_are_refused() {
    let (proxy, asked) = allow(80);
    let name = b"\x03\x04a b!\x00\x50";
    for (request, answer) in [
        (&[5, 1, 2][..], &[5, 0xff][..]),
        (&[5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80], &[5, 0, 5, 7]),
        (&[5, 1, 0, 5, 3, 0, 1, 127, 0, 0, 1, 0, 80], &[5, 0, 5, 7]),
        (&[5, 1, 0, 5, 1, 0, 9], &[5, 0, 5, 8]),
        (&[&[5, 1, 0, 5, 1, 0], &name[..]].concat(), &[5, 0, 5, 1]),
        (&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 0], &[5, 0, 5, 1]),
        (&[5, 1, 0, 4, 1, 0, 1, 127, 0, 0, 1, 0, 80], &[5, 0]),
    ] {
        let mut stream = open(&proxy).await;
        stream.write_all(request).await.unwrap();
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text).await;
        assert_eq!(&text[..answer.len().min(text.len())], answer, "{request:?}");
    }
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_request_is_passed_on_with_the_host_that_was_asked_about() {
    let (port, mut requests) = web(HELLO).await;
    let (proxy, _) = allow(port);
    let request = format!(
        "GET http://localhost:{port}/path?q#part HTTP/1.1\r\nHost: evil.example\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n\r\n"
    );
    let response = talk(&proxy, request.as_bytes()).await;
    assert_eq!(response, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    let expected =
        format!("GET /path?q HTTP/1.1\r\nHost: localhost:{port}\r\nX-Kept: 2\r\nConnection: close\r\n\r\n");
    assert_eq!(requests.recv().await.unwrap(), expected);
}

#[tokio::test]
async fn a_second_request_on_the_same_connection_goes_nowhere() {
    let (port, mut requests) = web(HELLO).await;
    let (proxy, _) = allow(port);
    for (head, body) in [
        ("Content-Length: 4\r\n", "body"),
        ("Transfer-Encoding: chunked\r\n", "4\r\nbody\r\n0\r\n\r\n"),
        ("", ""),
    ] {
        let request = format!(
            "POST http://localhost:{port}/ HTTP/1.1\r\n{head}\r\n{body}GET /hidden HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        );
        let response = talk(&proxy, request.as_bytes()).await;
        assert!(response.ends_with("hello"), "{response}");
        let text = requests.recv().await.unwrap();
        assert!(text.ends_with(&format!("\r\n\r\n{body}")) && !text.contains("hidden"), "{text}");
    }
}

#[tokio::test]
async fn interim_responses_come_first() {
    let (port, _requests) =
        web("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nKeep-Alive: 5\r\n\r\n").await;
    let (proxy, _) = allow(port);
    let response = talk(&proxy, format!("GET http://localhost:{port}/ HTTP/1.1\r\n\r\n").as_bytes()).await;
    assert_eq!(response, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

#[tokio::test]
async fn nonsense_is_answered_with_an_error() {
    let (proxy, asked) = allow(80);
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT nowhere HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT user@localhost:80 HTTP/1.1\r\n\r\n", "400"),
        ("GET https://localhost/ HTTP/1.1\r\n\r\n", "400"),
        ("POST http://localhost/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        ("GET http://localhost/ HTTP/1.1\r\nHost : x\r\n\r\n", "400"),
        ("\x04\x01 socks4 \r\n\r\n", "400"),
    ] {
        let text = talk(&proxy, request.as_bytes()).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {text}");
    }
    assert!(asked.lock().unwrap().is_empty());
    let text = talk(&proxy, b"CONNECT no-such-name.invalid:80 HTTP/1.1\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 502 "), "{text}");
    let (proxy, _) = allow_with(80, Options { head_bytes: 100, ..Options::default() });
    let text =
        talk(&proxy, format!("GET http://localhost/{} HTTP/1.1\r\n\r\n", "x".repeat(80)).as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    // No server listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let (proxy, _) = allow(port);
    let text = talk(&proxy, format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 502 "), "{text}");
}

#[tokio::test]
async fn connections_to_one_destination_share_the_question() {
    let port = echo().await;
    let (asked, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (asks, gate) = (asked.clone(), go.clone());
    let (begun, mut begins) = mpsc::channel(8);
    let proxy = Proxy::start(Options::default(), move |_| {
        asks.fetch_add(1, Ordering::Relaxed);
        let (gate, begun) = (gate.clone(), begun.clone());
        async move {
            begun.send(()).await.unwrap();
            gate.notified().await;
            true
        }
    })
    .unwrap();
    let request = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n");
    let mut streams = Vec::new();
    for _ in 0..5 {
        let mut stream = open(&proxy).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    begins.recv().await.unwrap();
    go.notify_one();
    for stream in &mut streams {
        assert!(read_head(stream).await.starts_with("HTTP/1.1 200 "));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    proxy.forget_decisions();
    let mut stream = open(&proxy).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    begins.recv().await.unwrap();
    go.notify_one();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_question_ends_with_the_connection_that_asked() {
    struct Dropped(mpsc::Sender<()>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.try_send(());
        }
    }
    let (begun, mut begins) = mpsc::channel(1);
    let (dropped, mut drops) = mpsc::channel(1);
    let proxy = Proxy::start(Options::default(), move |_| {
        let (begun, dropped) = (begun.clone(), Dropped(dropped.clone()));
        async move {
            let _dropped = dropped;
            begun.send(()).await.unwrap();
            std::future::pending().await
        }
    })
    .unwrap();
    let mut stream = open(&proxy).await;
    stream.write_all(b"CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n").await.unwrap();
    begins.recv().await.unwrap();
    drop(stream);
    drops.recv().await.unwrap();
}

#[tokio::test]
async fn further_connections_wait_for_a_free_place() {
    let port = echo().await;
    let (proxy, _) = allow_with(port, Options { connections: 1, ..Options::default() });
    let request = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n");
    let mut first = open(&proxy).await;
    first.write_all(request.as_bytes()).await.unwrap();
    read_head(&mut first).await;
    let mut second = open(&proxy).await;
    second.write_all(request.as_bytes()).await.unwrap();
    // The first one is served as long as it likes.
    for _ in 0..100 {
        first.write_all(b"x").await.unwrap();
        assert_eq!(first.read_u8().await.unwrap(), b'x');
    }
    assert!(second.try_read(&mut [0; 1]).is_err());
    drop(first);
    assert!(read_head(&mut second).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let port = echo().await;
    let short = Options {
        patience: Duration::from_millis(20),
        idle: Duration::from_millis(20),
        ..Options::default()
    };
    let (proxy, _) = allow_with(port, short);
    assert_eq!(talk(&proxy, b"").await, "");
    assert_eq!(talk(&proxy, b"CONNECT localhost").await, "");
    let text = talk(&proxy, format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
}

#[tokio::test]
async fn nothing_is_left_of_a_proxy() {
    use std::os::unix::fs::PermissionsExt as _;
    let port = echo().await;
    let (proxy, _) = allow(port);
    let socket = proxy.socket().to_owned();
    let directory = socket.parent().unwrap();
    assert_eq!(std::fs::metadata(directory).unwrap().permissions().mode() & 0o7777, 0o700);
    let mut stream = open(&proxy).await;
    stream.write_all(format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    read_head(&mut stream).await;
    drop(proxy);
    assert!(!directory.exists());
    assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn an_upstream_proxy_gets_names() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream_port = listener.local_addr().unwrap().port();
    let address = format!("http://user:pass@127.0.0.1:{upstream_port}");
    let upstream = Upstream::from_vars(|name| match name {
        "https_proxy" | "http_proxy" => Some(address.clone()),
        "no_proxy" => Some("127.0.0.1".to_owned()),
        _ => None,
    });
    let (heads, mut seen) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let response = match head.starts_with("CONNECT denied.example") {
                true => "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
                false if head.starts_with("CONNECT") => "HTTP/1.1 200 OK\r\n\r\n",
                false => HELLO,
            };
            heads.send(head).await.unwrap();
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    let (proxy, asked) = allow_with(443, Options { upstream, ..Options::default() });
    let mut stream = open(&proxy).await;
    stream.write_all(b"CONNECT example.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
    let expected = "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n";
    assert_eq!(seen.recv().await.unwrap(), expected);
    let text = talk(&proxy, b"CONNECT denied.example:443 HTTP/1.1\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 502 "), "{text}");
    seen.recv().await.unwrap();
    let text = talk(&proxy, b"GET http://example.org:443/x HTTP/1.1\r\n\r\n").await;
    assert!(text.ends_with("hello"), "{text}");
    let head = seen.recv().await.unwrap();
    assert!(
        head.starts_with("GET http://example.org:443/x HTTP/1.1\r\n") && head.contains("Proxy-Authorization"),
        "{head}"
    );
    // Exceptions are reached directly, and judged by their address.
    let port = echo().await;
    let text = talk(&proxy, format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
    let asked = asked.lock().unwrap();
    assert_eq!(
        (asked[0].host.as_str(), asked[0].reach, asked[0].addresses.len()),
        ("example.org", Reach::Internet, 0)
    );
    assert_eq!((asked.last().unwrap().reach, asked.last().unwrap().addresses.len()), (Reach::ThisMachine, 1));
}
