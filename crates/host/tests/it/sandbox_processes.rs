//! How the processes of a sandbox begin and end: signals, terminals, and what is left when
//! something is killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;

use attache_conn::process::PtyEvent;
use attache_host::sandbox::{Backend, Confinement};

use crate::kit::{Mark, Scratch, until};
use crate::sandbox_kit::{backends, command, program, shell, start_ready, with_namespaces};

/// Starts a script that prints `ready` when it is.
fn start(
    backend: Backend,
    confinement: &Confinement,
    scratch: &Scratch,
    script: &str,
) -> (Child, BufReader<ChildStdout>) {
    let mut command = command(backend, confinement, &["sh", "-c", script]);
    start_ready(command.current_dir(scratch.path()).process_group(0))
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn signals_to_the_outer_process_reach_the_command() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let confinement = Confinement::read_only([scratch.path()]);
        for name in ["TERM", "INT", "HUP", "USR1", "QUIT"] {
            let script = format!("trap 'echo got; exit 5' {name}; echo ready; sleep 1000 & wait");
            let (mut child, mut output) = start(backend, &confinement, &scratch, &script);
            signal(&child, name);
            let mut text = String::new();
            output.read_to_string(&mut text).unwrap();
            assert_eq!(text, "got\n", "{backend:?} {name}");
            assert_eq!(child.wait().unwrap().code(), Some(5), "{backend:?} {name}");
        }
        // Without a handler the command dies of it.
        let (mut child, _output) = start(backend, &confinement, &scratch, "echo ready; exec sleep 1000");
        signal(&child, "TERM");
        assert_eq!(child.wait().unwrap().code(), Some(143), "{backend:?}");
    }
}

#[test]
fn a_signal_right_after_the_start_is_not_lost() {
    for &backend in backends() {
        let scratch = Scratch::new();
        for _ in 0..20 {
            let confinement = Confinement::read_only([scratch.path()]);
            let mut child = command(backend, &confinement, &["sleep", "1000"])
                .current_dir(scratch.path())
                .spawn()
                .unwrap();
            // It comes before, while or after the sandbox is set up.
            signal(&child, "TERM");
            let status = child.wait().unwrap();
            let by_signal = std::os::unix::process::ExitStatusExt::signal(&status);
            assert!(status.code() == Some(143) || by_signal == Some(15), "{backend:?}: {status:?}");
        }
    }
}

/// A script that leaves marked processes behind in all the usual ways.
fn busy(mark: &Mark) -> String {
    let marked = format!("env {}={}", Mark::NAME, mark.value());
    format!(
        "trap '' HUP TERM INT; {marked} sleep 1000 & (trap '' HUP; {marked} setsid sleep 1000 &) ; {marked} setsid sh -c 'sleep 1000 & sleep 1000' &
         echo ready; {marked} sleep 1000; {marked} sleep 1000"
    )
}

#[test]
fn nothing_outlives_the_command() {
    for &backend in backends() {
        let (scratch, mark) = (Scratch::new(), Mark::new());
        let confinement = Confinement::writable([scratch.path()]);
        let marked = format!("env {}={}", Mark::NAME, mark.value());
        let script = format!(
            "{marked} sleep 1000 & {marked} setsid sleep 1000 & (setsid {marked} sh -c 'sleep 1000 & sleep 1000' &)
             trap 'exit 3' USR1; echo ready; sleep 1000 & wait"
        );
        let (mut child, output) = start(backend, &confinement, &scratch, &script);
        until("four marked processes", || mark.alive().len() >= 4);
        signal(&child, "USR1");
        assert_eq!(child.wait().unwrap().code(), Some(3));
        drop(output);
        mark.assert_none();
    }
}

#[test]
fn killing_the_outer_process_leaves_nothing() {
    for &backend in backends() {
        for protects in [false, true] {
            let (scratch, mark) = (Scratch::new(), Mark::new());
            let mut confinement = Confinement::writable([scratch.path()]);
            if protects && backend.guarantees().read_only_paths {
                confinement.read_only.push(scratch.join(".attache.toml"));
            }
            let (mut child, _output) = start(backend, &confinement, &scratch, &busy(&mark));
            until("four marked processes", || mark.alive().len() >= 4);
            child.kill().unwrap();
            child.wait().unwrap();
            mark.await_none();
            // Placeholders of the command are removed too.
            until("no placeholder", || !scratch.join(".attache.toml").exists());
            let own = program();
            until("no process of the sandbox", || !is_running(&own, scratch.path()));
        }
    }
}

/// Whether a process of this program has something to do with this directory.
fn is_running(program: &std::path::Path, scratch: &std::path::Path) -> bool {
    let wanted = scratch.as_os_str().as_encoded_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|process| process.file_name().to_string_lossy().parse::<u32>().is_ok()).any(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.windows(wanted.len()).any(|part| part == wanted)
            && line.starts_with(program.as_os_str().as_encoded_bytes())
    })
}

#[test]
fn the_private_directory_goes_when_the_outer_process_is_killed() {
    let backend = Backend::Landlock;
    if !backends().contains(&backend) {
        return;
    }
    let scratch = Scratch::new();
    let confinement = Confinement::read_only([scratch.path()]);
    let mut child =
        command(backend, &confinement, &["sh", "-c", "echo $TMPDIR; trap '' TERM HUP; sleep 1000"])
            .current_dir(scratch.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let tmp = std::path::PathBuf::from(line.trim_end());
    assert!(tmp.is_dir());
    child.kill().unwrap();
    child.wait().unwrap();
    until("the private directory is gone", || !tmp.exists());
}

/// A confined script on a terminal, and what it prints.
struct OnTerminal {
    child: attache_conn::process::PtyChild,
    output: mpsc::Receiver<Vec<u8>>,
    text: String,
}

impl OnTerminal {
    fn start(backend: Backend, scratch: &Scratch, argv: &[&str]) -> OnTerminal {
        let line = Confinement::writable([scratch.path()]).command(backend, &program(), argv);
        let (send, output) = mpsc::sync_channel(1024);
        let child = attache_conn::process::Command::new(&line[0])
            .args(&line[1..])
            .current_dir(scratch.path())
            .grace(std::time::Duration::ZERO)
            .spawn_pty(80, 24, move |event| {
                if let PtyEvent::Output(bytes) = event {
                    let _ = send.send(bytes.to_vec());
                }
            })
            .unwrap();
        OnTerminal { child, output, text: String::new() }
    }

    /// Reads until this has been printed.
    fn wait_for(&mut self, part: &str) {
        while !self.text.contains(part) {
            match self.output.recv() {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("ended without {part:?}: {}", self.text),
            }
        }
    }

    fn wait(mut self) -> String {
        while let Ok(bytes) = self.output.recv() {
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
        self.text
    }
}

#[test]
fn the_streams_of_the_command_are_the_terminal() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let script = "test -t 0 && test -t 1 && test -t 2 && echo terminal; stty size; echo again > /dev/stdout; (: > /dev/tty) 2>/dev/null || echo none; read line; echo \"read $line\"";
        let mut terminal = OnTerminal::start(backend, &scratch, &["sh", "-c", script]);
        terminal.wait_for("none\n");
        terminal.child.pty.input(b"typed\n").unwrap();
        let text = terminal.wait();
        assert!(
            text.starts_with("terminal\n24 80\nagain\nnone\n") && text.ends_with("read typed\n"),
            "{backend:?}: {text}"
        );
    }
}

#[test]
fn keys_and_sizes_reach_the_command() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let script = "trap 'echo interrupted; exit' INT; trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done";
        let mut terminal = OnTerminal::start(backend, &scratch, &["sh", "-c", script]);
        terminal.wait_for("ready");
        terminal.child.pty.resize(100, 30).unwrap();
        terminal.wait_for("30 100");
        terminal.child.pty.input(b"\x03").unwrap();
        terminal.wait_for("interrupted");
    }
}

#[test]
fn a_terminal_cannot_be_typed_into() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let script = format!(
            "my $c = 'x'; for my $request (0x5412, 0x541c, 0x5412 + (1 << 32)) {{ my $r = syscall({}, 0, $request, $c); print $r < 0 && $! == 1 ? 'refused ' : 'DONE '; }} print \"end\\n\"",
            libc::SYS_ioctl
        );
        let text = OnTerminal::start(backend, &scratch, &["perl", "-e", &script]).wait();
        assert_eq!(text.trim_end(), "refused refused refused end", "{backend:?}");
    }
}

#[test]
fn other_terminals_of_the_user_are_out_of_reach() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let (send, output) = mpsc::sync_channel(1024);
        let other = attache_conn::process::Command::new("sh")
            .args(["-c", "tty; read line; echo end"])
            .grace(std::time::Duration::ZERO)
            .spawn_pty(80, 24, move |event| {
                if let PtyEvent::Output(bytes) = event {
                    let _ = send.send(bytes.to_vec());
                }
            })
            .unwrap();
        let path = String::from_utf8(output.recv().unwrap()).unwrap().trim().to_owned();
        assert!(path.starts_with("/dev/"), "{path}");
        let script = format!(
            "echo evil > {path}; head -c 1 < {path}; for t in /dev/pts/*; do echo evil > $t; done; echo tried"
        );
        let text = OnTerminal::start(backend, &scratch, &["sh", "-c", &script]).wait();
        assert!(text.ends_with("tried\n"), "{backend:?}: {text}");
        other.pty.input(b"\n").unwrap();
        let text: Vec<u8> = output.iter().flatten().collect();
        assert!(!String::from_utf8_lossy(&text).contains("evil"), "{backend:?}");
    }
}

#[test]
fn closing_the_terminal_ends_everything() {
    for &backend in backends() {
        let (scratch, mark) = (Scratch::new(), Mark::new());
        let line =
            Confinement::writable([scratch.path()]).command(backend, &program(), ["sh", "-c", &busy(&mark)]);
        // A terminal without a guardian: `script` only closes it.
        let quoted: Vec<String> =
            line.iter().map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"))).collect();
        let mut child = Command::new("script")
            .args(["-qefc", &quoted.join(" "), "/dev/null"])
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("four marked processes", || mark.alive().len() >= 4);
        child.kill().unwrap();
        child.wait().unwrap();
        mark.await_none();
    }
}

#[test]
fn commands_can_open_terminals_of_their_own() {
    for backend in with_namespaces() {
        let scratch = Scratch::new();
        let confinement = Confinement::writable([scratch.path()]);
        let script = "script -qec 'test -t 0 && tty' /dev/null < /dev/null";
        let outcome = shell(backend, &confinement, scratch.path(), script);
        outcome.shows("/dev/pts/0");
    }
}
