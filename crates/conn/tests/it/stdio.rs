//! This test binary as an agent on its own standard streams, started by itself.

use attache_conn::process::{Command, Stderr};
use attache_conn::{Dispatch, IncomingNotification, IncomingRequest, Limits, Link, Reason, Side, open};
use std::io::{Read, Seek, Write};
use std::process::Stdio;

use crate::kit::connect;

const ROLE: &str = "ATTACHE_CONN_TEST_ROLE";
const ARGS: [&str; 3] = ["stdio::role_of_an_agent", "--exact", "--nocapture"];

struct Echo;

impl Dispatch for Echo {
    fn request(&mut self, request: IncomingRequest<'_>) {
        let Some((params, responder)) = request.open() else { return };
        // A slip that every author makes once; it must not reach the peer.
        println!("this is not a message");
        responder.ok(&params);
    }

    fn notification(&mut self, _: IncomingNotification<'_>) {}
}

/// Not a test: the other process of the tests below.
#[test]
fn role_of_an_agent() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let closed = runtime.block_on(async {
        let (_peer, driver) = open(Link::stdio(), Limits::default(), Side::Agent, |_| Echo);
        let (mut second, _) = Link::stdio().split();
        assert_eq!(second.next().await.unwrap(), None, "the streams have one owner");
        let mut inherited = String::new();
        std::io::stdin().read_to_string(&mut inherited).unwrap();
        assert_eq!(inherited, "", "the child does not read the stream");
        driver.await
    });
    std::process::exit(if closed.reason == Reason::Eof { 0 } else { 1 });
}

/// Only what is JSON, since the test harness of the child prints before the agent begins.
async fn echoes(link: Link) {
    let (peer, driver, mut received) = connect(link, Limits::default(), Side::Client);
    let driver = tokio::spawn(driver);
    let big = "x".repeat(200_000);
    for n in 0..5 {
        let params = serde_json::json!({ "n": n, "big": big });
        let answer = peer.call("echo", &params).await.unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(answer.get()).unwrap(), params);
    }
    peer.close();
    driver.await.unwrap();
    while let Some(said) = received.try_next() {
        assert!(!format!("{said:?}").contains("this is not a message"), "stdout is protected (STDIO-08)");
    }
}

#[tokio::test]
async fn over_pipes() {
    // shows STDIO-02, STDIO-03, STDIO-08
    let exe = std::env::current_exe().unwrap();
    let command = Command::new(exe).args(ARGS).env(ROLE, "agent").stderr(Stderr::Null);
    echoes(Link::command(command).unwrap()).await;
}

#[tokio::test]
async fn over_a_socket_pair() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let theirs = std::os::fd::OwnedFd::from(theirs);
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(ARGS)
        .env(ROLE, "agent")
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    ours.set_nonblocking(true).unwrap();
    echoes(Link::from(tokio::net::UnixStream::from_std(ours).unwrap())).await;
    assert!(tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap().success());
}

#[tokio::test]
async fn over_files() {
    let dir = std::env::temp_dir();
    let open = |name: &str| {
        let path = dir.join(format!("attache-conn-{}-{name}", std::process::id()));
        let file =
            std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file
    };
    let (mut input, mut output) = (open("in"), open("out"));
    for id in 0..100 {
        writeln!(input, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"echo\",\"params\":{{\"n\":{id}}}}}")
            .unwrap();
    }
    input.rewind().unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(ARGS)
        .env(ROLE, "agent")
        .stdin(input)
        .stdout(output.try_clone().unwrap())
        .stderr(Stdio::null());
    let status = tokio::task::spawn_blocking(move || command.status().unwrap()).await.unwrap();
    assert!(status.success());
    output.rewind().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    let answers: Vec<&str> = text.lines().filter(|line| line.starts_with('{')).collect();
    let expected: Vec<String> =
        (0..100).map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"n\":{id}}}}}")).collect();
    assert_eq!(answers, expected);
    assert!(!text.contains("this is not a message"));
}
