//! The same promises on Windows. There is no shell to rely on, so this binary plays all parts
//! itself; and no `/proc`, so each process holds a connection to the test, whose end shows that the
//! process is gone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use attache_conn::process::{Command, Stderr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::wait_for_output;

const PART: &str = "ATTACHE_TEST_PART";
const PORT: &str = "ATTACHE_TEST_PORT";
const ARGS: [&str; 5] = ["--exact", "windows::helper", "--ignored", "--nocapture", "--test-threads=1"];

/// Not a test: the parts that other processes play.
#[test]
#[ignore = "is started by the tests below, as a process of its own"]
fn helper() {
    let Ok(part) = std::env::var(PART) else { return };
    let mut life =
        std::env::var(PORT).ok().map(|port| TcpStream::connect(format!("127.0.0.1:{port}")).unwrap());
    if let Some(life) = &mut life {
        life.write_all(format!("{part}\n").as_bytes()).unwrap();
    }
    let park = || loop {
        std::thread::park();
    };
    let start = |part: &str| drop(own(part).stdin(Stdio::null()).spawn().unwrap());
    let input = || std::io::stdin().lines().map(Result::unwrap);
    match part.as_str() {
        "echo" => input().for_each(|line| println!("{line}")),
        "crash" => {
            eprintln!("final line");
            std::process::exit(3);
        }
        "chatty" => {
            std::io::stderr().write_all(&vec![b'x'; 10_000_000]).unwrap();
            println!("\nanswer");
            input().for_each(drop);
        }
        "ignores-term" => park(),
        "hung" => {
            start("ignores-term");
            println!("\nready");
            park();
        }
        "leaver" => {
            start("ignores-term");
            println!("\nready");
            input().for_each(drop);
            std::process::exit(5);
        }
        "parent" => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async {
                let mut child = child("hung").spawn().unwrap();
                wait_for_output(&mut child, &["ready"]).await;
                eprintln!("started");
                std::future::pending::<()>().await;
            });
        }
        other => panic!("unknown part: {other}"),
    }
    std::process::exit(0);
}

fn own(part: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(ARGS).env(PART, part);
    command
}

fn child(part: &str) -> Command {
    let moment = Duration::from_millis(50);
    Command::new(std::env::current_exe().unwrap()).args(ARGS).env(PART, part).grace(moment).term_grace(moment)
}

/// The connections of processes that a test expects.
struct Lives(TcpListener);

impl Lives {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn port(&self) -> String {
        self.0.local_addr().unwrap().port().to_string()
    }

    /// Waits until these are there.
    fn begin(&self, parts: &[&str]) -> Vec<BufReader<TcpStream>> {
        let lives = parts.iter().map(|_| BufReader::new(self.0.accept().unwrap().0));
        let mut named: Vec<(String, BufReader<TcpStream>)> = lives
            .map(|mut life| {
                let mut name = String::new();
                life.read_line(&mut name).unwrap();
                (name.trim_end().to_owned(), life)
            })
            .collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let (names, lives): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        assert_eq!(names, parts);
        lives
    }
}

/// Waits until these are gone. A killed process resets its connection.
fn all_end(lives: Vec<BufReader<TcpStream>>) {
    let mut rest = Vec::new();
    lives.into_iter().for_each(|mut life| drop(life.read_to_end(&mut rest)));
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn a_child_answers_and_exits() {
    let mut child = child("echo").spawn().unwrap();
    child.stdin.write_all(b"\nhello\n").await.unwrap();
    wait_for_output(&mut child, &["hello"]).await;
    assert!(child.guard.try_exit().is_none());
    drop(child.stdin);
    let mut rest = Vec::new();
    child.stdout.read_to_end(&mut rest).await.unwrap();
    assert!(child.guard.wait().await.success());
}

#[tokio::test]
async fn a_crash_is_reported_with_status_and_stderr() {
    let child = child("crash").spawn().unwrap();
    assert_eq!(child.guard.wait().await.code(), Some(3));
    assert!(child.guard.stderr_tail().ends_with("final line\n"));
}

#[tokio::test]
async fn a_chatty_child_never_blocks_on_stderr() {
    let mut child = child("chatty").spawn().unwrap();
    wait_for_output(&mut child, &["answer"]).await;
    drop(child.stdin);
    assert!(child.guard.wait().await.success());
    assert_eq!(child.guard.stderr_tail().len(), 64 * 1024);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let error = Command::new("no-such-agent").stderr(Stderr::Null).spawn().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().contains("`no-such-agent`"), "{error}");
}

#[tokio::test]
async fn a_hung_child_is_killed_with_its_family() {
    let lives = Lives::new();
    let mut child = child("hung").env(PORT, lives.port()).spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    let lives = lives.begin(&["ignores-term", "hung"]);
    assert!(!child.shutdown().await.success());
    all_end(lives);
}

#[tokio::test]
async fn grandchildren_that_hold_stdout_do_not_hold_us() {
    let lives = Lives::new();
    let mut child = child("leaver").env(PORT, lives.port()).spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    let lives = lives.begin(&["ignores-term", "leaver"]);
    drop(child.stdin);
    let mut rest = Vec::new();
    child.stdout.read_to_end(&mut rest).await.unwrap();
    assert_eq!(child.guard.wait().await.code(), Some(5));
    all_end(lives);
}

#[tokio::test]
async fn a_dropped_guard_ends_the_child() {
    let lives = Lives::new();
    let mut child = child("hung").env(PORT, lives.port()).spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    let lives = lives.begin(&["ignores-term", "hung"]);
    drop(child);
    all_end(lives);
}

#[test]
fn a_kill_of_our_process_leaves_nothing() {
    let lives = Lives::new();
    let mut parent = own("parent");
    parent.env(PORT, lives.port()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut parent = parent.spawn().unwrap();
    let mut stderr = BufReader::new(parent.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap() == "started"));
    let lives = lives.begin(&["ignores-term", "hung", "parent"]);
    parent.kill().unwrap();
    parent.wait().unwrap();
    all_end(lives);
}

#[tokio::test]
async fn a_cmd_file_is_found_by_its_bare_name() {
    let dir = std::env::temp_dir().join(format!("attache-cmd-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("tool.cmd"), "@exit 9\r\n").unwrap();
    let child = Command::new(dir.join("tool")).spawn().unwrap();
    assert_eq!(child.guard.wait().await.code(), Some(9));
    std::fs::remove_dir_all(&dir).unwrap();
}
