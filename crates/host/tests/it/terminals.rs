//! Commands on terminals: what they see, what is kept, how they end.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::client::Terminal;
use attache::wire::v1::{CreateTerminalRequest, EnvVariable, TerminalExitStatus};
use attache_host::policy::Guard;
use attache_host::terminals::{PtyTerminal, PtyTerminals, TerminalEvent};
use tokio::sync::mpsc;

use crate::kit::{Mark, Scratch};

fn terminals() -> PtyTerminals {
    PtyTerminals::new(Guard::open()).kill_grace(Duration::from_millis(50))
}

fn request(command: &str, args: &[&str]) -> CreateTerminalRequest {
    let mut request = CreateTerminalRequest::new("s", command);
    request.args = Some(args.iter().map(|arg| (*arg).to_owned()).collect());
    request
}

fn script(text: &str) -> CreateTerminalRequest {
    request("sh", &["-c", text])
}

async fn start(request: CreateTerminalRequest) -> PtyTerminal {
    terminals().create_in(None, &[PathBuf::from("/")], request).await.unwrap()
}

/// Runs a command to its end.
async fn run(request: CreateTerminalRequest) -> (String, TerminalExitStatus) {
    let terminal = start(request).await;
    let status = terminal.wait_for_exit().await.unwrap();
    let output = terminal.output().await.unwrap();
    assert_eq!(output.exit_status.as_ref(), Some(&status));
    (output.output, status)
}

fn code(code: u32) -> TerminalExitStatus {
    let mut status = TerminalExitStatus::new();
    status.exit_code = Some(code);
    status
}

fn signal(name: &str) -> TerminalExitStatus {
    TerminalExitStatus::new().signal(name.to_owned())
}

/// A terminal, and its output as it comes.
async fn watched(
    terminals: PtyTerminals,
    request: CreateTerminalRequest,
) -> (PtyTerminal, mpsc::Receiver<String>) {
    let (sender, output) = mpsc::channel(256);
    let terminals = terminals.on_event(move |event| {
        if let TerminalEvent::Output { text, .. } = event {
            let _ = sender.blocking_send(text.to_owned());
        }
    });
    (terminals.create_in(None, &[PathBuf::from("/")], request).await.unwrap(), output)
}

/// Waits until `text` has come.
async fn heard(output: &mut mpsc::Receiver<String>, text: &str) {
    let mut all = String::new();
    while !all.contains(text) {
        all.push_str(&output.recv().await.expect("nothing more comes"));
    }
}

#[tokio::test]
async fn output_and_exit_code() {
    // shows TERM-08, TERM-09, TERM-16, TERM-19: both streams, in order, and line feeds that stay
    // line feeds
    let (output, status) = run(script("echo out; echo err >&2; echo out; exit 3")).await;
    assert_eq!(output, "out\nerr\nout\n");
    assert_eq!(status, code(3));
}

#[tokio::test]
async fn it_is_a_real_terminal() {
    let text = "test -t 0 && test -t 1 && test -t 2 && echo all; stty size; \
                test \"$(ps -o tpgid= -p $$)\" -eq $$ && echo foreground; : < /dev/tty && echo own";
    let terminals = terminals().size(97, 31);
    let terminal = terminals.create_in(None, &[PathBuf::from("/")], script(text)).await.unwrap();
    assert_eq!(terminal.wait_for_exit().await.unwrap(), code(0));
    let output = terminal.output().await.unwrap().output;
    // `ps` is not everywhere.
    let output: Vec<&str> =
        output.lines().filter(|line| !line.contains("ps") && *line != "foreground").collect();
    assert_eq!(output, ["all", "31 97", "own"]);
}

#[tokio::test]
async fn a_new_size_is_reported() {
    let text = "trap 'stty size; exit 0' WINCH; echo ready; while :; do read line; done";
    let (terminal, mut output) = watched(terminals(), script(text)).await;
    heard(&mut output, "ready").await;
    terminal.resize(50, 20).unwrap();
    assert_eq!(terminal.wait_for_exit().await.unwrap(), code(0));
    assert_eq!(terminal.output().await.unwrap().output, "ready\n20 50\n");
}

#[tokio::test]
async fn what_is_typed_is_read() {
    let (terminal, mut output) =
        watched(terminals(), script("stty -echo; echo ready; read line; echo \"<$line>\"")).await;
    heard(&mut output, "ready").await;
    terminal.input(b"hello\n").unwrap();
    assert_eq!(terminal.wait_for_exit().await.unwrap(), code(0));
    assert_eq!(terminal.output().await.unwrap().output, "ready\n<hello>\n");
}

#[tokio::test]
async fn environment_and_directory() {
    // shows TERM-13, TERM-15
    let scratch = Scratch::new();
    let dir = scratch.dir("sub");
    let mut in_sub = script("pwd; echo $ADDED; echo $TERM; test -n \"$PATH\" && echo inherited");
    in_sub.cwd = Some(dir.to_str().unwrap().to_owned());
    in_sub.env = Some(vec![EnvVariable::new("ADDED", "yes"), EnvVariable::new("TERM", "vt100")]);
    let terminal = terminals().create_in(None, &[scratch.path().to_owned()], in_sub).await.unwrap();
    terminal.wait_for_exit().await.unwrap();
    let output = terminal.output().await.unwrap().output;
    assert_eq!(output, format!("{}\nyes\nvt100\ninherited\n", dir.display()));
    let roots = [scratch.path().to_owned(), dir.clone()];
    let terminal = terminals().create_in(None, &roots, script("pwd; echo $TERM")).await.unwrap();
    terminal.wait_for_exit().await.unwrap();
    assert_eq!(terminal.output().await.unwrap().output, format!("{}\ndumb\n", scratch.path().display()));
}

#[test]
fn commands_inherit_no_secrets_of_ours() {
    // The environment of a process is set before it starts, so the test runs itself again.
    const AGAIN: &str = "ATTACHE_HOST_TEST_SECRETS";
    const NAME: &str = "terminals::commands_inherit_no_secrets_of_ours";
    if std::env::var_os(AGAIN).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", NAME]).env(AGAIN, "1");
        for name in ["MODEL_API_KEY", "PASSED_TOKEN", "GIVEN_SECRET", "ATTACHE_AUTH_LOGIN", "PLAIN"] {
            again.env(name, format!("<{name}>"));
        }
        let output = again.output().unwrap();
        return assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let mut env = script("env");
    env.env = Some(vec![EnvVariable::new("GIVEN_SECRET", "<by the agent>")]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let printed = runtime.block_on(async {
        let terminals = terminals().pass_env(["PASSED_TOKEN"]);
        let terminal = terminals.create_in(None, &[PathBuf::from("/")], env).await.unwrap();
        terminal.wait_for_exit().await.unwrap();
        terminal.output().await.unwrap().output
    });
    let has = |line: &str| printed.lines().any(|printed| printed == line);
    assert!(has("PLAIN=<PLAIN>") && has("PASSED_TOKEN=<PASSED_TOKEN>"), "{printed}");
    assert!(has("GIVEN_SECRET=<by the agent>"), "{printed}");
    for withheld in ["MODEL_API_KEY", "ATTACHE_AUTH_LOGIN", "<GIVEN_SECRET>"] {
        assert!(!printed.contains(withheld), "{printed}");
    }
}

#[tokio::test]
async fn a_program_is_no_shell_text_but_a_text_may_be() {
    // shows TERM-14
    let (output, _) = run(request("echo", &["$HOME", ";", "ls"])).await;
    assert_eq!(output, "$HOME ; ls\n");
    let mut text = CreateTerminalRequest::new("s", "echo one && echo two");
    assert_eq!(run(text.clone()).await, ("one\ntwo\n".to_owned(), code(0)));
    text.args = Some(Vec::new());
    assert_eq!(run(text).await.0, "one\ntwo\n");
    // A program whose name has blanks is a program.
    let scratch = Scratch::new();
    let program = scratch.file("my program", "#!/bin/sh\necho \"$# args\"\n");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let named = CreateTerminalRequest::new("s", program.to_str().unwrap());
    assert_eq!(run(named).await.0, "0 args\n");
}

#[tokio::test]
async fn a_program_that_does_not_start_is_an_error() {
    // shows TERM-18
    let roots = [PathBuf::from("/")];
    for bad in
        [request("/nonexistent", &[]), request("no-such-program-here", &["x"]), request("/etc/passwd", &[])]
    {
        let name = bad.command.clone();
        let error = terminals().create_in(None, &roots, bad).await.unwrap_err().to_wire();
        assert!(error.message.contains(&name), "{}", error.message);
    }
    let mut nowhere = script("true");
    nowhere.cwd = Some("/no/such/dir".to_owned());
    let error = terminals().create_in(None, &roots, nowhere).await.unwrap_err().to_wire();
    assert!(error.message.contains("/no/such/dir"), "{}", error.message);
}

#[tokio::test]
async fn output_is_cut_from_the_beginning() {
    // shows TERM-06
    let mut many = script("i=0; while [ $i -lt 10000 ]; do echo line-$i; i=$((i+1)); done");
    many.output_byte_limit = Some(1000);
    let terminal = start(many).await;
    terminal.wait_for_exit().await.unwrap();
    let output = terminal.output().await.unwrap();
    assert!(output.truncated && output.output.len() <= 1000 && output.output.len() > 990);
    assert!(output.output.ends_with("line-9998\nline-9999\n"));
    // shows TERM-07
    let mut wide = script("printf '€€€€'");
    wide.output_byte_limit = Some(7);
    let (output, _) = run(wide).await;
    assert_eq!(output, "€€");
}

#[tokio::test]
async fn no_agent_may_have_all_the_memory() {
    let terminals = terminals().output_limits(10, 20);
    let mut greedy = script("printf '%050d' 1");
    for (wanted, kept) in [(None, 10), (Some(u64::MAX), 20), (Some(15), 15), (Some(0), 0)] {
        greedy.output_byte_limit = wanted;
        let terminal = terminals.create_in(None, &[PathBuf::from("/")], greedy.clone()).await.unwrap();
        terminal.wait_for_exit().await.unwrap();
        let output = terminal.output().await.unwrap();
        assert_eq!((output.output.len(), output.truncated), (kept, true));
    }
}

#[tokio::test]
async fn all_terminals_together_may_not_have_all_the_memory() {
    let terminals = terminals().output_limits(1 << 20, 1 << 20).total_output(2_500_000);
    let roots = [PathBuf::from("/")];
    let mut all = Vec::new();
    for _ in 0..6 {
        let flood = script("head -c 1500000 /dev/zero | tr '\\0' x; echo last");
        let terminal = terminals.create_in(None, &roots, flood).await.unwrap();
        terminal.wait_for_exit().await.unwrap();
        all.push(terminal);
    }
    let mut kept = Vec::new();
    for terminal in &all {
        let output = terminal.output().await.unwrap();
        assert!(output.truncated && output.output.ends_with("xlast\n"));
        assert_eq!(terminal.output_bytes(), output.output.len());
        kept.push(output.output.len());
    }
    // Two have all that they may have, one the rest, and the others what everybody has.
    assert_eq!(kept, [1 << 20, 1 << 20, 2_500_000 - (2 << 20), 32 << 10, 32 << 10, 32 << 10]);
    // What is released is free for others.
    all[0].release().await.unwrap();
    let again =
        terminals.create_in(None, &roots, script("head -c 900000 /dev/zero | tr '\\0' x")).await.unwrap();
    again.wait_for_exit().await.unwrap();
    assert_eq!(again.output_bytes(), 900_000);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    // shows TERM-19
    let (output, _) = run(script(r"printf 'a\377b\342\202'")).await;
    assert_eq!(output, "a\u{fffd}b\u{fffd}");
}

#[tokio::test]
async fn a_running_command_has_output_and_no_status() {
    // shows TERM-04, TERM-08
    let (terminal, mut output) = watched(terminals(), script("echo ready; exec sleep 999999")).await;
    heard(&mut output, "ready").await;
    let output = terminal.output().await.unwrap();
    assert_eq!((output.output.as_str(), output.exit_status), ("ready\n", None));
    terminal.release().await.unwrap();
}

#[tokio::test]
async fn a_kill_leaves_output_and_status() {
    // shows TERM-10, TERM-21
    let (terminal, mut output) = watched(terminals(), script("echo ready; exec sleep 999999")).await;
    heard(&mut output, "ready").await;
    terminal.kill().await.unwrap();
    assert_eq!(terminal.wait_for_exit().await.unwrap(), signal("SIGTERM"));
    let output = terminal.output().await.unwrap();
    assert_eq!((output.output.as_str(), output.exit_status), ("ready\n", Some(signal("SIGTERM"))));
    terminal.kill().await.unwrap();
    terminal.release().await.unwrap();
    terminal.release().await.unwrap();
    assert_eq!(terminal.output().await.unwrap().output, "");
}

#[tokio::test]
async fn a_command_may_clean_up_but_not_refuse() {
    let text = "trap 'echo cleaning; exit 9' TERM; echo ready; sleep 999999 & wait";
    let (terminal, mut output) =
        watched(terminals().kill_grace(Duration::from_secs(600)), script(text)).await;
    heard(&mut output, "ready").await;
    terminal.kill().await.unwrap();
    assert_eq!(terminal.wait_for_exit().await.unwrap(), code(9));
    assert!(terminal.output().await.unwrap().output.ends_with("cleaning\n"));
    let (ignoring, mut output) =
        watched(terminals(), script("trap '' TERM HUP; echo ready; exec sleep 999999")).await;
    heard(&mut output, "ready").await;
    ignoring.kill().await.unwrap();
    assert_eq!(ignoring.wait_for_exit().await.unwrap(), signal("SIGKILL"));
}

#[tokio::test]
async fn every_waiter_is_answered() {
    // shows TERM-17
    let (terminal, mut output) =
        watched(terminals(), script("stty -echo; echo ready; read line; exit 4")).await;
    heard(&mut output, "ready").await;
    let terminal = Arc::new(terminal);
    let waiters: Vec<_> = (0..5)
        .map(|_| {
            let terminal = terminal.clone();
            tokio::spawn(async move { terminal.wait_for_exit().await.unwrap() })
        })
        .collect();
    terminal.input(b"\n").unwrap();
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap(), code(4));
    }
    assert_eq!(terminal.wait_for_exit().await.unwrap(), code(4), "and the one who comes late");
}

#[tokio::test]
async fn a_screen_sees_all_of_it_in_order() {
    let seen = Arc::new(Mutex::new(String::new()));
    let (screen, text) = (seen.clone(), "i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done");
    let terminals = terminals().on_event(move |event| {
        let mut screen = screen.lock().unwrap();
        match event {
            TerminalEvent::Started { command, .. } => screen.push_str(&format!("[{command}]\n")),
            TerminalEvent::Output { text, .. } => screen.push_str(text),
            TerminalEvent::Ended { status, .. } => screen.push_str(&format!("[{:?}]", status.exit_code)),
            _ => {}
        }
    });
    let terminal = terminals
        .create_in(None, &[PathBuf::from("/")], CreateTerminalRequest::new("s", text))
        .await
        .unwrap();
    terminal.wait_for_exit().await.unwrap();
    let numbers: String = (0..5000).map(|n| format!("{n}\n")).collect();
    // All output and the exit are delivered before the wait returns.
    assert_eq!(*seen.lock().unwrap(), format!("[{text}]\n{numbers}[Some(0)]"));
}

#[tokio::test]
async fn a_flood_is_read_to_its_end() {
    let (output, status) = run(script("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")).await;
    assert_eq!(status, code(0));
    assert!(output.ends_with("x\nend\n") && output.len() == 1 << 20);
}

#[tokio::test]
async fn there_are_not_too_many() {
    let terminals = terminals().at_most(2);
    let roots = [PathBuf::from("/")];
    let one = terminals.create_in(None, &roots, script("exec sleep 999999")).await.unwrap();
    let _two = terminals.create_in(None, &roots, script("exec sleep 999999")).await.unwrap();
    let error = terminals.create_in(None, &roots, script("true")).await.unwrap_err().to_wire();
    assert!(error.message.contains("release one first"), "{}", error.message);
    one.release().await.unwrap();
    drop(one);
    terminals.create_in(None, &roots, script("true")).await.unwrap();
}

#[tokio::test]
async fn a_command_that_closes_its_terminal_can_come_back_to_it() {
    let text = "exec 3>&1; exec >/dev/null 2>&1 </dev/null; exec 3>&-; echo back > /dev/tty; exit 2";
    let (output, status) = run(script(text)).await;
    assert_eq!((output.as_str(), status), ("back\n", code(2)));
}

#[tokio::test]
async fn a_command_gets_no_descriptor_of_ours() {
    const LIST: &str = "cd /proc/self/fd; echo *";
    let _open = std::fs::File::open("/dev/null").unwrap();
    let (output, _) = run(script(LIST)).await;
    // The parent process may have left some open.
    let usual = std::process::Command::new("sh").args(["-c", LIST]).output().unwrap();
    let usual = String::from_utf8(usual.stdout).unwrap();
    for fd in output.split_whitespace() {
        assert!(usual.split_whitespace().any(|other| other == fd), "{output} but usually {usual}");
    }
}

#[tokio::test]
async fn a_dropped_terminal_ends_its_command() {
    let mark = Mark::new();
    let mut hang = script("echo ready; read line");
    hang.env = Some(vec![EnvVariable::new(Mark::NAME, mark.value())]);
    let (terminal, mut output) = watched(terminals(), hang).await;
    heard(&mut output, "ready").await;
    assert_eq!(mark.alive(), [terminal.pid()]);
    drop(terminal);
    mark.await_none();
}
