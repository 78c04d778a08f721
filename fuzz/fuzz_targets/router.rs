//! Any requests to a server with a token: no panic, no access without the token or for pages of
//! other sites, no status of a fault, no token in a response.
//!
//! The input is a list of requests, separated by zero bytes: a line with method and URI, lines of
//! headers, an empty line, the body. `$T` stands for the token and `$C` for the connection id that
//! was given last, so that requests can get past the checks.
#![no_main]

use attache_http::server::fuzzing::Router;
use attache_http::server::{Access, Accepted, Limits, Metrics, Options, Tokens};
use attache_rpc::{Frame, encode};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
    static TOKEN: OnceCell<(String, Tokens)> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    let (token, tokens) = TOKEN.with(|token| {
        token
            .get_or_init(|| {
                let (token, entry) = Tokens::generate("me").expect("random numbers");
                (token, Tokens::parse(&entry).expect("an entry"))
            })
            .clone()
    });
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| {
            Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
        });
        runtime.block_on(play(data, &token, tokens));
    });
});

async fn play(data: &[u8], token: &str, tokens: Tokens) {
    let options = Options {
        names: vec!["name".to_owned()],
        access: Access::tokens(tokens),
        metrics: Some(Metrics::new(|| "up 1\n".to_owned())),
        limits: Limits { message: 1024, open_requests: 4, sessions: 4, ..Limits::default() },
        ..Options::default()
    };
    let (router, accepted) = Router::new(options);
    let agents = tokio::spawn(serve(accepted));
    let mut connection = String::new();
    for text in data.split(|byte| *byte == 0) {
        let has_token = text.windows(2).any(|word| word == b"$T");
        let text = replace(&replace(text, b"$T", token.as_bytes()), b"$C", connection.as_bytes());
        let Some((method, uri, headers, body)) = parse(&text) else { continue };
        let has_foreign_origin = headers
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case(b"origin") && value.eq_ignore_ascii_case(b"null"));
        let Some((status, headers)) = router.respond(method, uri, &headers, body).await else { continue };
        assert!(status < 500, "{status}");
        let path = uri.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
        let status_pages: [&[u8]; 3] = [b"/health", b"/ready", b"/metrics"];
        let is_open = method == b"OPTIONS" || status_pages.iter().any(|page| path.ends_with(page));
        assert!(has_token || is_open || status >= 400, "{status} without a token");
        assert!(!has_foreign_origin || status >= 400, "{status} for a page of another site");
        for (name, value) in headers {
            assert!(!value.windows(token.len()).any(|part| part == token.as_bytes()) || name == "access-control-allow-origin", "{name}");
            if name == "acp-connection-id" {
                connection = String::from_utf8(value).expect("an id");
            }
        }
    }
    agents.abort();
}

/// An agent for each client, which answers every request.
async fn serve(mut accepted: mpsc::Receiver<Accepted>) {
    while let Some(client) = accepted.recv().await {
        tokio::spawn(async move {
            let (mut reader, mut writer) = client.link.split();
            while let Ok(Some(line)) = reader.next().await {
                let mut answer = Vec::new();
                if let Frame::Request { id, .. } = Frame::parse(line, 1024) {
                    encode::result(&mut answer, &id, &serde_json::json!({"sessionId": "s"})).expect("JSON");
                    answer.pop();
                    if writer.send(&answer).await.is_err() {
                        return;
                    }
                }
            }
        });
    }
}

type Parts<'a> = (&'a [u8], &'a [u8], Vec<(&'a [u8], &'a [u8])>, &'a [u8]);

fn parse(text: &[u8]) -> Option<Parts<'_>> {
    let (head, body) = match text.windows(2).position(|end| end == b"\n\n") {
        Some(end) => (&text[..end], &text[end + 2..]),
        None => (text, &text[..0]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.next()?;
    let space = first.iter().position(|byte| *byte == b' ')?;
    let headers = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    });
    Some((&first[..space], &first[space + 1..], headers.collect(), body))
}

fn replace(text: &[u8], word: &[u8], with: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.windows(word.len()).position(|part| part == word) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(with);
        rest = &rest[at + word.len()..];
    }
    out.extend_from_slice(rest);
    out
}
