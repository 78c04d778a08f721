//! What happens to children when our process ends first: by a kill, a crash, or the end of `main`.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use attache_conn::process::Command;

use crate::proc::Mark;
use crate::wait_for_output;

/// Variables for the helper below: the program to start, the way to end, and the time that its
/// child has after `SIGTERM`, in milliseconds.
pub(crate) const SCRIPT: &str = "ATTACHE_TEST_SCRIPT";
pub(crate) const HOW: &str = "ATTACHE_TEST_END";
const TERM_GRACE: &str = "ATTACHE_TEST_TERM_GRACE";
/// A command that the helper runs without any guardian.
pub(crate) const BYSTANDER: &str = "ATTACHE_TEST_BYSTANDER";

/// What makes this binary the helper.
pub(crate) const ARGS: [&str; 5] =
    ["--exact", "orphans::helper", "--ignored", "--nocapture", "--test-threads=1"];

/// A child with a family, of which none leaves when it is asked to. Says `main` when all are there.
const STUBBORN: &str = "
    trap '' TERM
    say() { mkfifo $DIR/$1; (\"$@\") & read line < $DIR/$1; }
    plain() { echo > $DIR/plain; exec sleep 999999; }
    forked() { (sh -c 'echo > $DIR/forked; exec sleep 999999' &); }
    session() { exec setsid sh -c 'echo > $DIR/session; exec sleep 999999'; }
    deep() { exec setsid sh -c 'setsid sh -c \"echo > $DIR/deep; exec sleep 999999\" & wait'; }
    for name in plain forked session deep; do say $name; done
    rm -r $DIR
    echo main; exec sleep 999999";

/// Not a test: a program that starts a child, reports when the child has printed `main`, and ends
/// as requested. It is a test function only because that makes it part of this binary.
#[test]
#[ignore = "is started by the tests below, as a process of its own"]
fn helper() {
    let (Ok(text), Ok(how)) = (std::env::var(SCRIPT), std::env::var(HOW)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().build().unwrap();
    // The thread that starts it ends at once, so that nothing can hang on its life.
    let handle = runtime.handle().clone();
    let start = move || {
        let _in_runtime = handle.enter();
        let term_grace = std::env::var(TERM_GRACE).map_or(50, |millis| millis.parse().unwrap());
        let command = Command::new("/bin/sh").args(["-c", &text]).grace(Duration::from_millis(50));
        command.term_grace(Duration::from_millis(term_grace)).spawn().unwrap()
    };
    if how.starts_with("adopt") {
        attache_conn::process::adopt_orphans();
    }
    if let Ok(command) = std::env::var(BYSTANDER) {
        let mut shell = std::process::Command::new("/bin/sh");
        assert!(shell.args(["-c", &command]).env_remove(Mark::NAME).status().unwrap().success());
    }
    let mut child = std::thread::spawn(start).join().unwrap();
    runtime.block_on(wait_for_output(&mut child, &["main"]));
    // On stderr, since the test harness has words of its own on stdout.
    eprintln!("started {}", child.guard.pid());
    match how.as_str() {
        "killed" => drop(std::io::stdin().lines().next()),
        "abort" => std::process::abort(),
        "exit" => std::process::exit(0),
        "panic" => panic!("a panic unwinds through the guard"),
        "drop" => drop(child),
        "adopt, wait" => eprintln!("ended {:?}", runtime.block_on(child.guard.wait()).signal()),
        "adopt, shutdown" => {
            drop(std::io::stdin().lines().next());
            eprintln!("ended {:?}", runtime.block_on(child.shutdown()).signal());
        }
        other => panic!("unknown end: {other}"),
    }
}

/// Runs the helper until its child is there and, when it is to be killed, kills it.
fn end_by(how: &str, text: &str) -> (ExitStatus, Mark) {
    let term_grace = if text == STUBBORN { "50" } else { "60000" };
    let mark = Mark::new();
    let dir = std::env::temp_dir().join(format!("attache-{}", mark.value()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut helper = mark
        .helper(&ARGS)
        .env("DIR", &dir)
        .env(SCRIPT, text)
        .env(HOW, how)
        .env(TERM_GRACE, term_grace)
        .spawn()
        .unwrap();
    let stderr = BufReader::new(helper.stderr.take().unwrap());
    let started = |line: &String| line.starts_with("started ");
    stderr.lines().map(Result::unwrap).find(started).expect("the helper did not start its child");
    if how == "killed" {
        // The helper, the guardians and the child; the child's four and the one above `deep`.
        mark.await_count(if text == STUBBORN { 9 } else { 4 });
        helper.kill().unwrap();
    }
    let _ = std::fs::remove_dir_all(&dir);
    (helper.wait().unwrap(), mark)
}

#[test]
fn kill_9_of_our_process_leaves_nothing() {
    let (status, mark) = end_by("killed", STUBBORN);
    assert_eq!(status.signal(), Some(9));
    mark.await_none();
}

#[test]
fn a_crash_of_our_process_leaves_nothing() {
    let (status, mark) = end_by("abort", STUBBORN);
    assert_eq!(status.signal(), Some(6));
    mark.await_none();
}

#[test]
fn an_exit_without_destructors_leaves_nothing() {
    let (status, mark) = end_by("exit", STUBBORN);
    assert!(status.success());
    mark.await_none();
}

#[test]
fn a_panic_leaves_nothing() {
    let (status, mark) = end_by("panic", STUBBORN);
    assert_eq!(status.code(), Some(101));
    mark.await_none();
}

#[test]
fn an_end_of_main_in_the_middle_of_the_ladder_leaves_nothing() {
    let (status, mark) = end_by("drop", STUBBORN);
    assert!(status.success());
    mark.await_none();
}

#[test]
fn an_orphan_may_leave_by_itself() {
    // shows STDIO-10: our death is the end of its input, and it has time to see that.
    let file = std::env::temp_dir().join(format!("attache-orphan-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let text = format!("trap '' TERM; echo main; read line; : > '{}'", file.display());
    let (status, mark) = end_by("killed", &text);
    assert_eq!(status.signal(), Some(9));
    mark.await_none();
    assert!(file.exists());
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn a_child_with_guarded_children_of_its_own_leaves_nothing() {
    let mark = Mark::new();
    let dir = std::env::temp_dir().join(format!("attache-{}", mark.value()));
    std::fs::create_dir_all(&dir).unwrap();
    let (sender, mut started) = tokio::sync::mpsc::channel(8);
    let on_line = move |line: &str| sender.try_send(line.starts_with("started ")).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(ARGS)
        .env(Mark::NAME, mark.value())
        .env("DIR", &dir)
        .env(SCRIPT, STUBBORN)
        .env(HOW, "killed")
        .on_stderr_line(on_line)
        .spawn()
        .unwrap();
    while !started.recv().await.expect("the helper did not start its child") {}
    // As above, the helper's own guardians included.
    mark.await_count(9);
    child.guard.kill();
    assert_eq!(child.guard.wait().await.signal(), Some(9));
    mark.assert_none();
}
