//! How children start, talk, and what they find when they do.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::Duration;

use attache_conn::process::{Command, Stderr, guardians};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::proc::{self, Mark, script};
use crate::wait_for_output;

#[tokio::test]
async fn a_child_talks_over_its_pipes() {
    // shows STDIO-03
    let mut child = Command::new("cat").spawn().unwrap();
    child.stdin.write_all(b"hello\n").await.unwrap();
    wait_for_output(&mut child, &["hello"]).await;
    assert!(child.guard.try_exit().is_none());
    drop(child.stdin);
    let mut rest = String::new();
    child.stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
    assert!(child.guard.wait().await.success());
    assert!(child.guard.try_exit().is_some_and(|status| status.success()));
}

#[tokio::test]
async fn arguments_environment_and_directory_arrive() {
    let mut child = Command::new("/bin/sh")
        .args(["-c", r#"echo "$1 $ONE $TWO ${HOME-none} $(pwd)""#, "sh"])
        .arg("a b")
        .env("ONE", "1")
        .envs([("TWO", "2")])
        .env_remove("HOME")
        .current_dir("/")
        .spawn()
        .unwrap();
    wait_for_output(&mut child, &["a b 1 2 none /"]).await;
    assert!(child.guard.wait().await.success());
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let error = Command::new("no-such-agent").spawn().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("`no-such-agent`"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_program_is_named() {
    let error = Command::new("/etc/passwd").spawn().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("`/etc/passwd`"), "{error}");
}

#[tokio::test]
async fn a_missing_interpreter_and_a_missing_program_are_different_errors() {
    let file = std::env::temp_dir().join(format!("attache-script-{}", std::process::id()));
    std::fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = Command::new(&file).spawn().unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("interpreter"), "{error}");
}

#[tokio::test]
async fn a_missing_directory_and_a_missing_program_are_different_errors() {
    let error = Command::new("cat").current_dir("/no/such/dir").spawn().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("`/no/such/dir`"), "{error}");
}

#[test]
fn without_a_runtime_it_is_an_error_and_no_panic() {
    let error = Command::new("cat").spawn().unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}

#[tokio::test]
async fn a_chatty_child_never_blocks_on_stderr() {
    // shows STDIO-07: ten megabytes on stderr, and only then an answer. Only the guard reads them.
    let mark = Mark::new();
    let text = "read go; head -c 10000000 /dev/zero | tr '\\0' x >&2; echo final line >&2; echo answer; cat";
    let mut child = script(&mark, text).spawn().unwrap();
    child.stdin.write_all(b"go\n").await.unwrap();
    wait_for_output(&mut child, &["answer"]).await;
    drop(child.stdin);
    assert!(child.guard.wait().await.success());
    let tail = child.guard.stderr_tail();
    assert_eq!(tail.len(), 64 * 1024);
    assert!(tail.starts_with("xxx") && tail.ends_with("xfinal line\n"));
}

#[tokio::test]
async fn lines_of_stderr_are_delivered_after_a_panic_of_the_callback() {
    let (sender, lines) = mpsc::channel();
    let mut count = 0;
    let listener = move |line: &str| {
        sender.send(line.to_owned()).unwrap();
        count += 1;
        if count == 2 {
            std::panic::resume_unwind(Box::new("a listener that fails"));
        }
    };
    let text = "printf 'one\\ntwo\\n' >&2; echo done; read go; printf 'three' >&2";
    let mut child = script(&Mark::new(), text).on_stderr_line(listener).spawn().unwrap();
    wait_for_output(&mut child, &["done"]).await;
    drop(child.stdin);
    child.guard.wait().await;
    assert_eq!(lines.iter().collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(child.guard.stderr_tail(), "one\ntwo\nthree");
}

#[tokio::test]
async fn a_stderr_that_is_not_captured_leaves_no_tail() {
    let child = script(&Mark::new(), "echo lost >&2").stderr(Stderr::Null).spawn().unwrap();
    assert!(child.guard.wait().await.success());
    assert_eq!(child.guard.stderr_tail(), "");
}

#[tokio::test]
async fn a_child_finds_its_signals_in_order() {
    // The test process itself ignores SIGPIPE, as every Rust program does.
    let mut child = Command::new("cat").arg("/proc/self/status").spawn().unwrap();
    let mut text = String::new();
    child.stdout.read_to_string(&mut text).await.unwrap();
    for field in ["SigBlk:\t", "SigIgn:\t", "SigPnd:\t"] {
        let value = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        // Signals 32 and 33 belong to the C library, which does not let programs set them.
        let set = u64::from_str_radix(value, 16).unwrap() & !(0b11 << 31);
        assert_eq!(set, 0, "{field}");
    }
    assert!(child.guard.wait().await.success());
}

#[tokio::test]
async fn a_child_leads_its_own_group_in_a_session_without_terminal() {
    let child = Command::new("cat").spawn().unwrap();
    let pid = child.guard.pid();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<i64> =
        stat.rsplit(')').next().unwrap().split_whitespace().skip(1).map_while(|f| f.parse().ok()).collect();
    let guardian = i64::from(proc::parent(pid));
    assert_eq!(fields[..4], [guardian, i64::from(pid), guardian, 0], "parent, group, session, terminal");
    child.shutdown().await;
}

#[tokio::test]
async fn the_guardians_hold_nothing_of_ours() {
    // Sixty-four megabytes that a forked process would keep alive beside ours, and an open file.
    let mut ballast = vec![1_u8; 64 << 20];
    let _file = std::fs::File::open("/dev/null").unwrap();
    let child = Command::new("cat").current_dir("/tmp").spawn().unwrap();
    let inner = proc::parent(child.guard.pid());
    let outer = proc::parent(inner);
    assert_eq!(proc::parent(outer), std::process::id());
    // Each has the list of its children open, and the inner one two pipes.
    for (guardian, descriptors) in [(inner, &[0, 1, 2][..]), (outer, &[2])] {
        proc::until("a guardian that holds nothing else", || proc::descriptors(guardian) == descriptors);
        assert_eq!(proc::status(guardian, "Name").unwrap(), "attache-guard");
        assert_eq!(std::fs::read_link(format!("/proc/{guardian}/cwd")).unwrap(), std::path::Path::new("/"));
        let kilobytes =
            || -> Option<u64> { proc::status(guardian, "VmRSS")?.split(' ').next()?.parse().ok() };
        proc::until("a guardian that has let our memory go", || kilobytes().unwrap() < 16_384);
    }
    ballast.fill(2);
    assert!(child.shutdown().await.success());
    assert!(proc::is_gone(inner) && proc::is_gone(outer));
}

#[tokio::test]
async fn the_child_gets_no_descriptor_of_ours() {
    // Others are being started at the same time by the tests beside this one.
    let mut child = script(&Mark::new(), "echo ready; read go").spawn().unwrap();
    wait_for_output(&mut child, &["ready"]).await;
    let mut expected = proc::inheritable(std::process::id());
    expected.extend([0, 1, 2]);
    assert_eq!(proc::descriptors(child.guard.pid()), Vec::from_iter(expected));
    child.shutdown().await;
}

#[test]
fn many_threads_start_children_at_once() {
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            for _ in 0..8 {
                let mut child = Command::new("cat").spawn().unwrap();
                child.stdin.write_all(b"hello\n").await.unwrap();
                wait_for_output(&mut child, &["hello"]).await;
                assert!(child.shutdown().await.success());
                assert_eq!(Command::new("no-such-agent").spawn().unwrap_err().kind(), ErrorKind::NotFound);
            }
        });
    };
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(start))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_outlives_the_thread_that_started_it() {
    let handle = tokio::runtime::Handle::current();
    let start = move || {
        let _in_runtime = handle.enter();
        Command::new("cat").grace(Duration::from_secs(60)).spawn().unwrap()
    };
    let mut child = std::thread::spawn(start).join().unwrap();
    child.stdin.write_all(b"still here\n").await.unwrap();
    wait_for_output(&mut child, &["still here"]).await;
    assert!(child.shutdown().await.success());
}

#[tokio::test]
async fn everything_below_a_guardian_is_known_to_be() {
    let mark = Mark::new();
    // A daemon whose parents have gone, in a session of its own and under another name.
    let text = "(setsid sh -c 'sleep 999999 & echo far; wait' &); echo near; exec sleep 999999";
    let mut child = script(&mark, text).term_grace(Duration::from_millis(50)).spawn().unwrap();
    wait_for_output(&mut child, &["near", "far"]).await;
    let above = guardians(std::process::id()).unwrap();
    let own = guardians(child.guard.pid()).unwrap();
    // Two guardians, which guard each other.
    assert_eq!(own.len(), above.len() + 2, "{own:?}");
    // The shell that started the daemon may be on its way out.
    let others = mark.alive().into_iter().filter(|pid| !own.contains(pid));
    let found: Vec<Vec<u32>> = others.filter_map(|pid| guardians(pid).ok()).collect();
    assert!(found.len() >= 3 && found.iter().all(|found| *found == own), "{found:?} are not all {own:?}");
    let gone = child.guard.pid();
    child.guard.shutdown().await;
    mark.await_none();
    assert!(guardians(gone).is_err());
}

#[tokio::test]
async fn a_clone_starts_the_same_program() {
    let (sender, lines) = std::sync::mpsc::channel();
    let command = Command::new("/bin/sh")
        .args(["-c", "echo $KEY $HOME; pwd; echo done >&2"])
        .env_clear()
        .env("KEY", "value")
        .current_dir("/")
        .on_stderr_line(move |line| drop(sender.send(line.to_owned())));
    for command in [command.clone(), command] {
        let mut child = command.spawn().unwrap();
        wait_for_output(&mut child, &["value", "/"]).await;
        assert!(child.guard.wait().await.success());
        assert_eq!(lines.recv().unwrap(), "done");
    }
}
