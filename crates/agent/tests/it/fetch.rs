//! `fetch`, from a server on this machine.

use attache::wire::v1::PermissionOptionKind;
use attache_agent::Mode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::rig::{Project, allow, run, session};

/// A server that answers every request by its path; returns its address.
async fn server() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let own = address.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let (status, more, body) = match head.split(' ').nth(1).unwrap() {
                "/page" => (
                    "200 OK",
                    "content-type: text/html\r\n".to_owned(),
                    "<h1>Hi</h1><script>x</script><p>there</p>",
                ),
                "/moved" => ("302 Found", "location: page\r\n".to_owned(), ""),
                "/away" => (
                    "302 Found",
                    format!("location: http://localhost:{}/page\r\n", own.rsplit(':').next().unwrap()),
                    "",
                ),
                "/circle" => ("302 Found", "location: /circle\r\n".to_owned(), ""),
                "/binary" => ("200 OK", String::new(), "\0\u{1}"),
                _ => ("404 Not Found", "content-type: text/plain\r\n".to_owned(), "nothing here"),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn pages_become_text_and_redirections_stay_on_the_host() {
    let project = Project::new();
    let address = server().await;
    let paths = ["/page", "/moved", "/away", "/circle", "/binary", "/none"];
    let calls: Vec<String> =
        paths.iter().map(|path| format!("call fetch {{\"url\": \"http://{address}{path}\"}}")).collect();
    let script = format!("==\n--\n{}\n--\nsay ${{result}}\n", calls.join("\n"));
    // This machine is asked for, also in the mode that asks for nothing else.
    let mut session = session(&project, &script, Mode::Auto).await;
    let seen = allow(&mut session, "go").await;
    assert_eq!(seen.asked.len(), paths.len());
    let port = address.rsplit(':').next().unwrap();
    assert_eq!(
        seen.text,
        format!(
            "Hi\n\nthere\nHi\n\nthere\nredirects to http://localhost:{port}/page; fetch that if it is needed\n\
             too many redirects\nthe response (200, , 2 bytes) is not text\nthe server responded with status 404:\nnothing here"
        )
    );
}

#[tokio::test]
async fn nothing_is_fetched_without_permission() {
    let project = Project::new();
    let address = server().await;
    let script = format!(
        "==\n--\ncall fetch {{\"url\": \"http://{address}/page\"}}\ncall fetch {{\"url\": \"file:///etc/passwd\"}}\n--\nsay ${{result}}\n"
    );
    let mut session = session(&project, &script, Mode::Ask).await;
    let seen = run(&mut session, "go", PermissionOptionKind::RejectOnce).await;
    assert_eq!(seen.text, "the user did not allow this\n`url` must begin with https:// or http://");
}
