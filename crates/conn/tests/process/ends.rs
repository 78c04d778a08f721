//! Ends of children while we run; no process remains.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use attache_conn::process::{Child, Command};
use tokio::io::AsyncReadExt;

use crate::proc::{self, Mark, script};
use crate::wait_for_output;

/// Descendants that do not want to leave: in the group and ignoring SIGTERM, in the background by a
/// double fork, in a session of their own, and one below that. `sleep` stands for a program that
/// hangs: it looks at none of its streams.
const FAMILY: &str = "
    (trap '' TERM; echo ignores-term; exec sleep 999999) &
    (sh -c 'echo forked; exec sleep 999999' &)
    setsid sh -c 'trap \"\" TERM; echo session; exec sleep 999999' &
    setsid sh -c 'setsid sh -c \"echo deep; exec sleep 999999\" & trap \"\" TERM; wait' &
";
const NAMES: [&str; 4] = ["ignores-term", "forked", "session", "deep"];

/// The ladder with steps that no test has to wait long for.
fn hasty(command: Command) -> Command {
    command.grace(Duration::from_millis(50)).term_grace(Duration::from_millis(50))
}

fn nothing_left(mark: &Mark, guardian: u32) {
    mark.assert_none();
    assert!(proc::is_gone(guardian), "the guardian is not reaped");
}

/// The outermost guardian, which is the last to go.
fn guardian(child: &Child) -> u32 {
    proc::parent(proc::parent(child.guard.pid()))
}

#[tokio::test]
async fn a_normal_end_leaves_nothing() {
    // shows STDIO-10: the end of its input is what asks an agent to leave.
    let mark = Mark::new();
    let mut child = script(&mark, "echo ready; read line; echo bye >&2; exit 0").spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    let guardian = guardian(&child);
    assert_eq!(mark.alive(), [child.guard.pid()]);
    drop(child.stdin);
    assert!(child.guard.wait().await.success());
    assert_eq!(child.guard.stderr_tail(), "bye\n");
    nothing_left(&mark, guardian);
}

#[tokio::test]
async fn a_crash_is_reported_with_status_and_stderr() {
    let cases =
        [("exit 3", Some(3), None), ("kill -ABRT $$", None, Some(6)), ("kill -SEGV $$", None, Some(11))];
    for (death, code, signal) in cases {
        let mark = Mark::new();
        let text = format!("{FAMILY} read go; echo thread main panicked >&2; ulimit -c 0; {death}");
        let mut child = script(&mark, &text).spawn().unwrap();
        wait_for_output(&mut child, &NAMES).await;
        let guardian = guardian(&child);
        drop(child.stdin);
        let status = child.guard.wait().await;
        assert_eq!((status.code(), status.signal()), (code, signal), "{death}");
        assert_eq!(child.guard.stderr_tail(), "thread main panicked\n");
        nothing_left(&mark, guardian);
    }
}

#[tokio::test]
async fn a_hung_child_is_killed() {
    let mark = Mark::new();
    let text = format!("trap '' TERM; {FAMILY} echo ready; exec sleep 999999");
    let mut child = hasty(script(&mark, &text)).spawn().unwrap();
    wait_for_output(&mut child, &[&NAMES[..], &["ready"]].concat()).await;
    let guardian = guardian(&child);
    let status = child.shutdown().await;
    assert_eq!(status.signal(), Some(9));
    nothing_left(&mark, guardian);
}

#[tokio::test]
async fn a_child_that_listens_to_term_is_asked_once() {
    let mark = Mark::new();
    let text =
        "n=0; trap 'n=$((n+1))' TERM; echo ready; while [ $n = 0 ]; do read line; done; exit $((n+40))";
    // Its input stays open, so that only SIGTERM can end the read; the long grace shows that it is
    // not killed.
    let mut child = script(&mark, text).term_grace(Duration::from_secs(600)).spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    // A signal between the shell's look at `n` and its `read` would be noted and not interrupt
    // anything.
    proc::await_state(child.guard.pid(), 'S');
    child.guard.terminate();
    assert_eq!(child.guard.wait().await.code(), Some(41));
}

#[tokio::test]
async fn a_stopped_child_is_woken_to_be_terminated() {
    let mark = Mark::new();
    let mut command = script(&mark, "trap 'exit 7' TERM; echo ready; kill -STOP $$; exit 8");
    command = command.grace(Duration::ZERO).term_grace(Duration::from_secs(600));
    let mut child = command.spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    let pid = child.guard.pid();
    proc::await_state(pid, 'T');
    assert_eq!(child.shutdown().await.code(), Some(7));
    mark.assert_none();
}

#[tokio::test]
async fn a_kill_does_not_wait_for_graces() {
    let mark = Mark::new();
    let text = format!("trap '' TERM; {FAMILY} exec sleep 999999");
    let hour = Duration::from_secs(3600);
    let mut child = script(&mark, &text).grace(hour).term_grace(hour).spawn().unwrap();
    wait_for_output(&mut child, &NAMES).await;
    child.guard.kill();
    assert_eq!(child.guard.wait().await.signal(), Some(9));
    mark.assert_none();
}

#[tokio::test]
async fn grandchildren_that_hold_stdout_do_not_hold_us() {
    let mark = Mark::new();
    let mut child = script(&mark, &format!("{FAMILY} read go; exit 5")).spawn().unwrap();
    wait_for_output(&mut child, &NAMES).await;
    let guardian = guardian(&child);
    // The child, its family, and the shell above `deep`.
    mark.await_count(1 + NAMES.len() + 1);
    drop(child.stdin);
    let mut rest = Vec::new();
    child.stdout.read_to_end(&mut rest).await.unwrap();
    assert_eq!(child.guard.wait().await.code(), Some(5));
    nothing_left(&mark, guardian);
}

#[tokio::test]
async fn background_processes_are_reaped_while_the_child_lives() {
    let mark = Mark::new();
    let mut child = script(&mark, "(sh -c 'echo $$' &); read go").spawn().unwrap();
    let mut pid = [0; 32];
    let n = child.stdout.read(&mut pid).await.unwrap();
    let pid: u32 = std::str::from_utf8(&pid[..n]).unwrap().trim().parse().unwrap();
    proc::until("the orphan reaped", || proc::is_gone(pid));
    assert!(child.guard.try_exit().is_none());
    child.shutdown().await;
}

#[tokio::test]
async fn a_dropped_guard_ends_the_child() {
    let mark = Mark::new();
    let text = format!("{FAMILY} echo ready; cat");
    let mut child = hasty(script(&mark, &text)).spawn().unwrap();
    wait_for_output(&mut child, &[&NAMES[..], &["ready"]].concat()).await;
    let guardian = guardian(&child);
    drop(child);
    mark.await_none();
    proc::until("the guardian reaped", || proc::is_gone(guardian));
}

#[tokio::test]
async fn a_guard_that_is_dropped_first_ends_the_child_all_the_same() {
    let mark = Mark::new();
    let mut child = hasty(script(&mark, "echo ready; cat")).spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    drop(child.guard);
    // The pipes are still open here: SIGTERM ends it.
    mark.await_none();
    let mut rest = Vec::new();
    assert_eq!(child.stdout.read_to_end(&mut rest).await.unwrap(), 0);
}

#[test]
fn a_dropped_runtime_ends_the_child() {
    let mark = Mark::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io().build().unwrap();
    let guardian = runtime.block_on(async {
        let mut child = hasty(script(&mark, &format!("{FAMILY} echo ready; cat"))).spawn().unwrap();
        wait_for_output(&mut child, &["ready", "deep", "session"]).await;
        let guardian = guardian(&child);
        // A task that never ends owns it, until the runtime drops the task.
        tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(child);
        });
        guardian
    });
    drop(runtime);
    mark.await_none();
    proc::until("the guardian reaped", || proc::is_gone(guardian));
}

#[test]
fn a_guard_works_after_its_runtime_is_gone() {
    let mark = Mark::new();
    let build = || tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let first = build();
    let child = {
        let _in_runtime = first.enter();
        script(&mark, "read line; echo over >&2; exit 4").spawn().unwrap()
    };
    let guardian = guardian(&child);
    drop(first);
    let Child { stdin, stdout: _stdout, guard } = child;
    drop(stdin);
    assert_eq!(build().block_on(guard.shutdown()).code(), Some(4));
    assert_eq!(guard.stderr_tail(), "over\n");
    nothing_left(&mark, guardian);
}

#[tokio::test]
async fn a_killed_guardian_takes_the_child_with_it() {
    let mark = Mark::new();
    let mut child = script(&mark, "echo ready; exec sleep 999999").spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    let outer = guardian(&child);
    let inner = proc::parent(child.guard.pid());
    // Guardians block what can be blocked.
    for signal in ["-INT", "-HUP", "-TERM", "-USR1", "-ALRM", "-CHLD"] {
        kill(signal, inner).await;
        kill(signal, outer).await;
    }
    assert!(child.guard.try_exit().is_none());
    assert!([inner, outer].iter().all(|guardian| proc::status(*guardian, "State").is_some()));
    kill("-KILL", inner).await;
    assert_eq!(child.guard.wait().await.signal(), Some(9));
    mark.assert_none();
}

async fn kill(signal: &str, pid: u32) {
    let kill = Command::new("kill").arg(signal).arg(pid.to_string()).spawn().unwrap();
    assert!(kill.guard.wait().await.success());
}

#[tokio::test]
async fn a_dropped_shutdown_continues() {
    let mark = Mark::new();
    let mut child = hasty(script(&mark, "trap '' TERM; echo ready; exec sleep 999999")).spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    let mut shutdown = Box::pin(child.guard.shutdown());
    std::future::poll_fn(|cx| {
        assert!(shutdown.as_mut().poll(cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    drop(shutdown);
    assert_eq!(child.guard.wait().await.signal(), Some(9));
    mark.assert_none();
}
