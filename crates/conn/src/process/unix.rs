//! Starting a child on Unix, and the thread that watches it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use tokio::net::unix::pipe;

use super::guard::{Ending, Notes};
use super::{Child, ChildGuard, ChildStdin, ChildStdout, Command, Stderr};
use crate::sys::{guardian, poll};

/// The pipe to the guardian. Its end, by whatever cause, tells the guardian that we are gone.
#[derive(Debug)]
pub(super) struct Control(PipeWriter);

impl Control {
    pub(super) fn stop(&self) {
        self.order(guardian::STOP);
    }

    pub(super) fn terminate(&self) {
        self.order(guardian::TERMINATE);
    }

    pub(super) fn kill(&self) {
        self.order(guardian::KILL);
    }

    /// Fails only when the guardian has ended, and then there is nothing left to order. A byte always fits: the
    /// guardian reads them as they come.
    fn order(&self, byte: u8) {
        let _ = (&self.0).write(&[byte]);
    }
}

pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    let (stdin_end, stdin) = io::pipe()?;
    let (stdout, stdout_end) = io::pipe()?;
    let (stderr, stderr_end) = match command.stderr {
        Stderr::Capture => {
            let (reader, writer) = io::pipe()?;
            (Some(File::from(OwnedFd::from(reader))), Stdio::from(writer))
        }
        Stderr::Inherit => (None, Stdio::inherit()),
        Stderr::Null => (None, Stdio::null()),
    };
    command.inner.stdin(stdin_end).stdout(stdout_end).stderr(stderr_end);

    // All that can fail on our side comes before the fork, so that a started child is always watched.
    let stdin = ChildStdin(pipe::Sender::from_owned_fd(stdin.into())?);
    let stdout = ChildStdout(pipe::Receiver::from_owned_fd(stdout.into())?);
    let notes = Notes::new(command.on_line.take());
    let guard = spawn_guarded(command, Source { output: stderr, terminal: None, notes })?;
    Ok(Child { stdin, stdout, guard })
}

/// What the thread reads of a child.
pub(super) struct Source {
    pub(super) output: Option<File>,
    /// The child's end of its terminal, held so that the terminal lives as long as the child, whatever the child closes.
    pub(super) terminal: Option<OwnedFd>,
    pub(super) notes: Notes,
}

/// Starts the program, whose streams are set, under a guardian and with a thread that watches it.
pub(super) fn spawn_guarded(mut command: Command, source: Source) -> io::Result<ChildGuard> {
    let (control_end, control) = io::pipe()?;
    let (status, status_end) = io::pipe()?;
    let ending = Ending::new();
    let control = Arc::new(Control(control));
    let (hand_over, started) = mpsc::sync_channel::<Watch>(1);
    thread::Builder::new().name("attache-child".into()).spawn(move || {
        if let Ok(watch) = started.recv() {
            watch.run();
        }
    })?;
    guardian::arm(
        &mut command.inner,
        guardian::Plan {
            control: above_stdio(control_end.into())?,
            status: above_stdio(status_end.into())?,
            grace: command.ladder.grace,
            term_grace: command.ladder.term_grace,
            terminal: source.terminal.is_some(),
        },
    );

    let spawned = command.inner.spawn().map_err(|error| command.explain(&error))?;
    // The command holds our copies of the child's ends, which would keep its pipes open for ever.
    drop(command);
    let Source { output, terminal, notes } = source;
    let mut watch =
        Watch { guardian: spawned, status, output, terminal, notes, ending, _control: control.clone() };
    let pid = watch.report().unwrap_or_default();
    let guard = ChildGuard::new(pid.unsigned_abs(), control, &watch.ending, &watch.notes);
    // The thread is there, waiting for just this.
    let _ = hand_over.send(watch);
    Ok(guard)
}

/// In a process that began with its standard streams closed, a new pipe may get one of their numbers, and the child's
/// own streams would be laid over it. A copy never gets one.
fn above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { fd.try_clone() }
}

/// More than lies in a pipe: whoever still writes after the end is not listened to.
const LAST_READS: usize = 256;

/// All that the thread needs to see a child to its end.
struct Watch {
    guardian: std::process::Child,
    status: PipeReader,
    /// Its stderr or its terminal.
    output: Option<File>,
    terminal: Option<OwnedFd>,
    notes: Notes,
    ending: Ending,
    /// Held to the end, so that a dropped guard starts the whole ladder and not the short one for orphans.
    _control: Arc<Control>,
}

impl Watch {
    fn run(mut self) {
        let mut buffer = vec![0; 16 * 1024];
        let mut ended = false;
        let mut last_reads = 0;
        while last_reads < LAST_READS {
            let fds = [(!ended).then(|| self.status.as_fd()), self.output.as_ref().map(AsFd::as_fd)];
            // Once all is gone, only what already lies in the pipe is read: somebody outside of the guardian's reach
            // may hold the other end.
            let Ok([status, output]) = poll::readable(fds, !ended) else { break };
            if output {
                self.drain(&mut buffer);
                last_reads += usize::from(ended);
            } else if ended {
                break;
            }
            if status {
                ended = true;
                // With nobody left on it, the terminal ends after its last byte.
                self.terminal = None;
            }
        }
        // A guardian that was killed reports nothing; its own end then stands for the child's.
        let report = self.report().map(ExitStatus::from_raw);
        // It has written its last words, so this does not wait for long.
        let own = self.guardian.wait();
        let status = report.or(own).unwrap_or_default();
        self.notes.finish_with(status);
        self.ending.publish(status);
    }

    /// STDIO-07: stderr is always read, whether or not anybody is interested in it. The end of a terminal is an error.
    fn drain(&mut self, buffer: &mut [u8]) {
        let Some(output) = &mut self.output else { return };
        match output.read(buffer) {
            Ok(n @ 1..) => self.notes.push(buffer.get(..n).unwrap_or_default()),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Ok(_) | Err(_) => self.output = None,
        }
    }

    /// The guardian's reports are two numbers: the child's process id, and in the end its wait status.
    fn report(&mut self) -> io::Result<i32> {
        let mut report = [0; 4];
        self.status.read_exact(&mut report)?;
        Ok(i32::from_ne_bytes(report))
    }
}

/// The system finds programs by their name.
pub(super) fn resolve(program: &OsStr) -> &OsStr {
    program
}
