//! Connections that are left, that fall silent, that lie, and those that lead through proxies and
//! encryption.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_agent::model::{Api, ErrorKind, Event, ModelError, Models, Stop};
use attache_http::client::{HttpClient, Timeouts as HttpTimeouts};
use attache_http::proxy::Proxies;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::models::{answer, ask, good, open, request, settings};
use crate::models_server::{Seen, Server, Step, events, head, serve, whole};

#[tokio::test]
async fn leaving_an_endless_answer_closes_the_connection() {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"and \"}}]}\n\n";
    let flood = vec![Step::Send(head(200, "text/event-stream", "")), Step::Flood(piece.as_bytes().to_vec())];
    let mut server = Server::start(vec![flood]).await;
    let model = open(&settings(Api::Chat, &server.url));
    let mut stream = model.start(request());
    for _ in 0..100 {
        assert!(matches!(stream.next().await, Some(Ok(Event::Text(_)))));
    }
    drop(stream);
    server.gone().await;
}

#[tokio::test]
async fn leaving_before_the_first_word_closes_the_connection() {
    for reply in [vec![Step::Hold], vec![Step::Send(head(200, "text/event-stream", "")), Step::Hold]] {
        let mut server = Server::start(vec![reply]).await;
        let model = open(&settings(Api::Chat, &server.url));
        let mut stream = model.start(request());
        // The request is under way once the server has seen it.
        while server.seen().is_empty() {
            tokio::select! {
                biased;
                event = stream.next() => panic!("{event:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
        drop(stream);
        server.gone().await;
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_read() {
    let server = Server::start(vec![good(Api::Chat)]).await;
    drop(open(&settings(Api::Chat, &server.url)).start(request()));
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn silence_is_noticed() {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let half = [head(200, "text/event-stream", ""), said.as_bytes().to_vec()].concat();
    for (reply, text) in [(vec![Step::Hold], ""), (vec![Step::Send(half), Step::Hold], "half")] {
        let server = Server::start(vec![reply]).await;
        let mut settings = settings(Api::Chat, &server.url);
        // Each limit only where it is meant, so that a slow machine does not run into the other
        // one.
        let limit = if text.is_empty() { &mut settings.timeouts.first } else { &mut settings.timeouts.idle };
        *limit = Duration::from_millis(300);
        settings.timeouts.retries = 0;
        let (events, error) = ask(&*open(&settings)).await;
        assert!(
            matches!(&error, Some(ModelError { kind: ErrorKind::Network, message: why, .. }) if why.contains("silent")),
            "{error:?}"
        );
        assert_eq!(answer(&events).message().text(), text);
    }
}

#[tokio::test]
async fn a_provider_has_a_patience_of_its_own() {
    let server = Server::start(vec![vec![Step::Hold]]).await;
    let mut settings = settings(Api::Chat, &server.url);
    settings.timeouts.retries = 0;
    settings.apply("test", "timeout", "0.2", |_| None).unwrap();
    let (_, error) = ask(&*open(&settings)).await;
    let Some(ModelError { kind: ErrorKind::Network, message: why, .. }) = &error else { panic!("{error:?}") };
    assert!(why.contains("silent for 0.2 s") && why.contains("--model-timeout"), "{why}");
}

#[tokio::test]
async fn an_answer_that_is_complete_needs_no_proper_end() {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"all\"},\"finish_reason\":\"stop\"}]}\n\n";
    let chunk = format!("{:x}\r\n{said}\r\n", said.len()).into_bytes();
    let chunked = head(200, "text/event-stream", "transfer-encoding: chunked\r\n");
    for reply in [
        events(said),
        // The last line has no end.
        events(said.trim_end()),
        // Neither an end mark nor an end of the connection; then a connection that breaks.
        vec![
            Step::Send(head(200, "text/event-stream", "")),
            Step::Send(said.as_bytes().to_vec()),
            Step::Hold,
        ],
        vec![Step::Send(chunked), Step::Send(chunk)],
        // No content type at all.
        vec![Step::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), Step::Send(said.as_bytes().to_vec())],
        // A stream that says it is none.
        vec![Step::Send(head(200, "application/json", "")), Step::Send(said.as_bytes().to_vec())],
        // Not a stream although it was asked for.
        whole(200, "", "{\"choices\":[{\"message\":{\"content\":\"all\"},\"finish_reason\":\"stop\"}]}"),
    ] {
        let server = Server::start(vec![reply]).await;
        let mut settings = settings(Api::Chat, &server.url);
        settings.timeouts.tail = Duration::from_millis(50);
        let (events, error) = ask(&*open(&settings)).await;
        assert_eq!(error, None);
        assert_eq!(answer(&events).message().text(), "all");
        assert_eq!(events.last(), Some(&Event::End(Stop::Done)));
        assert!(!events.iter().any(|event| matches!(event, Event::Usage(_))), "nothing was counted");
    }
}

#[tokio::test]
async fn an_invalid_answer_is_reported() {
    let text = |kind: &str, more: &str, body: &str| {
        vec![Step::Send(head(200, kind, more)), Step::Send(body.as_bytes().to_vec())]
    };
    for (reply, expected) in [
        (text("text/event-stream", "content-encoding: gzip\r\n", "\u{1f}"), "compressed (gzip)"),
        (text("text/html", "", "<html>login</html>"), "text/html"),
        (text("text/event-stream", "", "data: {not json\n\n"), "not JSON"),
        (text("text/event-stream", "", "data: {\"hello\":1}\n\n"), "without choices"),
        (text("application/json", "", "{oops"), "not JSON"),
    ] {
        let server = Server::start(vec![reply, good(Api::Chat)]).await;
        let (_, error) = ask(&*open(&settings(Api::Chat, &server.url))).await;
        assert!(
            matches!(&error, Some(ModelError { kind: ErrorKind::Protocol, message: why, .. }) if why.contains(expected)),
            "{error:?}"
        );
        assert_eq!(server.seen().len(), 1, "asking again would not help");
    }
}

#[tokio::test]
async fn a_missing_server_is_reported_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (events, error) = ask(&*open(&settings(Api::Chat, &url))).await;
    assert_eq!(events, []);
    assert!(
        matches!(&error, Some(ModelError { kind: ErrorKind::Network, message: why, .. }) if why.contains("running")),
        "{error:?}"
    );
}

/// PROV-04
#[tokio::test]
async fn a_provider_that_is_disabled_gets_nothing_more_even_from_open_models() {
    let server = Server::start(vec![good(Api::Chat)]).await;
    let models = Models::new(&settings(Api::Chat, &server.url)).unwrap();
    let model = models.open("test/x").unwrap();
    assert!(models.providers().change("test", |provider| provider.enabled = false));
    let (_, error) = ask(&*model).await;
    assert!(
        matches!(&error, Some(ModelError { kind: ErrorKind::Auth, message: why, .. }) if why.contains("disabled")),
        "{error:?}"
    );
    assert!(models.open("test/x").is_err());
    assert_eq!(server.seen().len(), 0);
}

/// A server with a certificate for `models.test`, behind a proxy that knows the way if `tunnel`.
async fn proxy(seen: Arc<Mutex<Vec<Seen>>>, asked: Arc<Mutex<Vec<String>>>, tunnel: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let data = |name: &str| format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let chain =
        CertificateDer::pem_file_iter(data("models-server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(data("models-server-key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            asked.lock().unwrap().push(String::from_utf8(head).unwrap());
            if !tunnel {
                stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await.unwrap();
                continue;
            }
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, &seen, &|_: &Seen| good(Api::Chat)).await;
            }
        }
    });
    port
}

fn through(port: u16) -> Proxies {
    Proxies::from_vars(move |name| {
        name.ends_with("PROXY")
            .then(|| format!("http://me:pass@127.0.0.1:{port}"))
            .filter(|_| name != "NO_PROXY")
    })
}

#[tokio::test]
async fn encrypted_connections_lead_through_a_proxy_and_trust_only_known_authorities() {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let port = proxy(seen.clone(), asked.clone(), true).await;
    let mut settings = settings(Api::Chat, "https://models.test/v1");
    settings.timeouts.retries = 0;
    let authority = format!("{}/tests/data/models-authority.pem", env!("CARGO_MANIFEST_DIR"));
    let trusting = HttpClient::new(Some(authority.as_ref())).unwrap().with_proxies(through(port));
    settings.http = Some(trusting);
    let (events, error) = ask(&*open(&settings)).await;
    assert_eq!(error, None);
    assert_eq!(answer(&events).message().text(), "ok");
    let tunnel = asked.lock().unwrap()[0].clone();
    assert!(tunnel.starts_with("CONNECT models.test:443 HTTP/1.1\r\n"), "{tunnel}");
    assert!(tunnel.contains("proxy-authorization: Basic bWU6cGFzcw=="), "{tunnel}");
    assert!(!tunnel.contains("sk-"), "the proxy does not get the key");
    assert_eq!(seen.lock().unwrap()[0].header("host"), Some("models.test"));
    // Without that authority the same server is not trusted, and nothing is sent to it.
    settings.http = Some(HttpClient::new(None).unwrap().with_proxies(through(port)));
    let (_, error) = ask(&*open(&settings)).await;
    assert!(
        matches!(&error, Some(ModelError { kind: ErrorKind::Network, message: why, .. }) if why.contains("models.test:443")),
        "{error:?}"
    );
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let port = proxy(Arc::default(), Arc::default(), false).await;
    let mut settings = settings(Api::Chat, "https://models.test/v1");
    settings.timeouts.retries = 0;
    settings.http = Some(HttpClient::new(None).unwrap().with_proxies(through(port)));
    let (_, error) = ask(&*open(&settings)).await;
    let text = error.unwrap().to_string();
    assert!(text.contains("proxy") && text.contains("407") && !text.contains("pass@"), "{text}");
}

#[tokio::test]
async fn plain_requests_tell_a_proxy_the_whole_url() {
    let server = Server::start(vec![good(Api::Chat)]).await;
    let mut settings = settings(Api::Chat, "http://models.test/v1");
    settings.http = Some(HttpClient::new(None).unwrap().with_proxies(through(server.port)));
    let (_, error) = ask(&*open(&settings)).await;
    assert_eq!(error, None);
    assert_eq!(server.seen()[0].path(), "http://models.test/v1/chat/completions");
    assert!(server.seen()[0].header("proxy-authorization").is_some());
}

#[tokio::test]
async fn a_way_that_leads_nowhere_is_given_up() {
    let silent = Server::start(vec![vec![Step::Hold]]).await;
    let mut settings = settings(Api::Chat, "https://models.test/v1");
    settings.timeouts.retries = 0;
    let http = HttpClient::new(None).unwrap().with_proxies(through(silent.port));
    settings.http = Some(
        http.with_timeouts(HttpTimeouts { connect: Duration::from_millis(80), ..HttpTimeouts::default() }),
    );
    let (_, error) = ask(&*open(&settings)).await;
    assert!(
        matches!(&error, Some(ModelError { kind: ErrorKind::Network, message: why, .. }) if why.contains("no response within")),
        "{error:?}"
    );
}
