//! Nothing of a command is left, whatever it started and however things end. The tests count
//! processes.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use attache::client::Terminal;
use attache::wire::v1::{CreateTerminalRequest, EnvVariable};
use attache_host::policy::Guard;
use attache_host::terminals::{PtyTerminal, PtyTerminals, TerminalEvent};
use tokio::sync::mpsc;

use crate::kit::{Mark, until};

/// Descendants that do not want to leave: deaf to all that can be ignored, in the background by a
/// double fork, in a session of their own, one below that, and a job of an interactive shell, in a
/// group of its own.
const FAMILY: &str = "
    (trap '' TERM HUP; echo deaf; exec sleep 999999) &
    (sh -c 'trap \"\" HUP; echo forked; exec sleep 999999' &)
    setsid sh -c 'trap \"\" TERM HUP; echo session; exec sleep 999999' &
    setsid sh -c 'setsid sh -c \"echo deep; exec sleep 999999\" & trap \"\" TERM; wait' &
    (set -m; sh -c 'trap \"\" HUP; echo job; exec sleep 999999' &)
";
const NAMES: [&str; 5] = ["deaf", "forked", "session", "deep", "job"];

fn request(mark: &str, text: &str) -> CreateTerminalRequest {
    let mut request = CreateTerminalRequest::new("s", "sh");
    request.args = Some(vec!["-c".to_owned(), text.to_owned()]);
    request.env = Some(vec![EnvVariable::new(Mark::NAME, mark)]);
    request
}

/// Starts a command and waits until it has said all `words`.
async fn start(mark: &str, text: &str, words: &[&str]) -> PtyTerminal {
    let (sender, mut output) = mpsc::channel(256);
    let terminals =
        PtyTerminals::new(Guard::open()).kill_grace(Duration::from_millis(50)).on_event(move |event| {
            if let TerminalEvent::Output { text, .. } = event {
                let _ = sender.blocking_send(text.to_owned());
            }
        });
    let terminal = terminals.create_in(None, &[PathBuf::from("/")], request(mark, text)).await.unwrap();
    let mut all = String::new();
    while !words.iter().all(|word| all.lines().any(|line| line == *word)) {
        all.push_str(&output.recv().await.expect("it ended too early"));
    }
    terminal
}

#[tokio::test]
async fn after_a_release() {
    // shows TERM-11
    let mark = Mark::new();
    let text = format!("{FAMILY} trap '' TERM HUP; echo ready; exec sleep 999999");
    let terminal = start(mark.value(), &text, &[&NAMES[..], &["ready"]].concat()).await;
    // While a process becomes another program, it seems to carry nothing.
    until("the command and its family", || mark.alive().len() >= 6);
    terminal.release().await.unwrap();
    mark.assert_none();
}

#[tokio::test]
async fn after_a_kill() {
    let mark = Mark::new();
    let text = format!("{FAMILY} exec sleep 999999");
    let terminal = start(mark.value(), &text, &NAMES).await;
    terminal.kill().await.unwrap();
    mark.assert_none();
}

#[tokio::test]
async fn after_a_normal_end() {
    let mark = Mark::new();
    let text = format!("{FAMILY} stty -echo; echo ready; read go; exit 5");
    let terminal = start(mark.value(), &text, &[&NAMES[..], &["ready"]].concat()).await;
    terminal.input(b"\n").unwrap();
    assert_eq!(terminal.wait_for_exit().await.unwrap().exit_code, Some(5));
    mark.assert_none();
}

#[tokio::test]
async fn after_a_drop() {
    let mark = Mark::new();
    let terminal = start(mark.value(), &format!("{FAMILY} exec sleep 999999"), &NAMES).await;
    drop(terminal);
    mark.await_none();
}

#[test]
fn after_the_end_of_the_runtime() {
    let mark = Mark::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let terminal = start(mark.value(), &format!("{FAMILY} exec sleep 999999"), &NAMES).await;
        tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(terminal);
        });
    });
    drop(runtime);
    mark.await_none();
}

const HOW: &str = "ATTACHE_HOST_TEST_END";
const ARGS: [&str; 5] = ["--exact", "left_behind::helper", "--ignored", "--nocapture", "--test-threads=1"];

/// Not a test: a program that runs a command and ends as its argument says. It is a test function
/// only because that makes it part of this binary.
#[test]
#[ignore = "is started by the tests below, as a process of its own"]
fn helper() {
    let (Ok(mark), Ok(how)) = (std::env::var(Mark::NAME), std::env::var(HOW)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let text = format!("{FAMILY} trap '' TERM HUP; echo ready; exec sleep 999999");
    let terminal = runtime.block_on(start(&mark, &text, &[&NAMES[..], &["ready"]].concat()));
    // On stderr, since the test harness has words of its own on stdout.
    eprintln!("started");
    match how.as_str() {
        "killed" => drop(std::io::stdin().lines().next()),
        "abort" => std::process::abort(),
        "exit" => std::process::exit(0),
        "drop" => drop(terminal),
        other => panic!("unknown end: {other}"),
    }
}

fn end_by(how: &str) -> std::process::ExitStatus {
    let mark = Mark::new();
    let mut helper = mark.helper(&ARGS).env(HOW, how).spawn().unwrap();
    let stderr = BufReader::new(helper.stderr.take().unwrap());
    stderr.lines().map(Result::unwrap).find(|line| line == "started").expect("it did not start");
    if how == "killed" {
        until("the helper, the guardians, the command, its family", || mark.alive().len() >= 9);
        helper.kill().unwrap();
    }
    let status = helper.wait().unwrap();
    mark.await_none();
    status
}

#[test]
fn after_kill_9_of_our_process() {
    assert_eq!(end_by("killed").signal(), Some(9));
}

#[test]
fn after_a_crash_of_our_process() {
    assert_eq!(end_by("abort").signal(), Some(6));
}

#[test]
fn after_an_exit_without_destructors() {
    assert!(end_by("exit").success());
}

#[test]
fn after_the_end_of_main() {
    assert!(end_by("drop").success());
}
