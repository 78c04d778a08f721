//! Starting a child on Unix, and the thread that watches it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;

use super::guard::{Ending, Notes};
use super::{Child, ChildGuard, ChildStdin, ChildStdout, Command, Ladder, Stderr};
use crate::sys::{guardian, poll};

/// What tells the guardians to end the child.
#[derive(Debug)]
pub(super) struct Control {
    /// Orders for the inner guardian. The end of this pipe, by whatever cause, tells it that we are gone.
    orders: PipeWriter,
    /// Tells the thread that watches the child that there was an order.
    wake: PipeWriter,
    ladder: Ladder,
    state: Mutex<ControlState>,
}

#[derive(Debug, Default)]
struct ControlState {
    /// When guardians that do not obey are ended.
    deadline: Option<Instant>,
    /// The outermost guardian, until it is reaped.
    guardian: Option<u32>,
}

/// How much longer than the ladder guardians may take before they are taken for helpless.
const OVERTIME: Duration = Duration::from_secs(7);

impl Control {
    pub(super) fn stop(&self) {
        self.order(guardian::STOP, self.ladder.grace.saturating_add(self.ladder.term_grace));
    }

    pub(super) fn terminate(&self) {
        self.order(guardian::TERMINATE, self.ladder.term_grace);
    }

    pub(super) fn kill(&self) {
        self.order(guardian::KILL, Duration::ZERO);
    }

    /// Writing fails only when the guardian has ended, and then there is nothing left to order. A byte always fits: the
    /// guardian reads them as they come.
    fn order(&self, byte: u8, ladder: Duration) {
        let mut state = self.lock();
        state.set_deadline(ladder);
        state.resume();
        drop(state);
        let _ = (&self.orders).write(&[byte]);
        let _ = (&self.wake).write(&[0]);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControlState {
    /// The guardians have to be done after a ladder of this length. One that is too long for the clock has no deadline.
    fn set_deadline(&mut self, ladder: Duration) {
        let deadline = Instant::now().checked_add(ladder.saturating_add(OVERTIME));
        self.deadline = [self.deadline, deadline].into_iter().flatten().min();
    }

    /// A program may have stopped its guardians.
    fn resume(&self) {
        if let Some(guardian) = self.guardian {
            guardian::resume(guardian);
        }
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
    let (control_end, orders) = io::pipe()?;
    let (status, status_end) = io::pipe()?;
    let (woken, wake) = io::pipe()?;
    let ending = Ending::new();
    let control = Arc::new(Control { orders, wake, ladder: command.ladder, state: Mutex::default() });
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
    control.lock().guardian = Some(spawned.id());
    let guardian_end = poll::end_of(spawned.id());
    let mut watch = Watch {
        guardian: spawned,
        program: 0,
        status,
        woken: Some(woken),
        guardian_end,
        output,
        terminal,
        notes,
        ending,
        control: control.clone(),
    };
    watch.program = watch.report().unwrap_or_default();
    let guard = ChildGuard::new(watch.program.unsigned_abs(), control, &watch.ending, &watch.notes);
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
/// How often guardians are reminded of an order that they have not carried out yet.
const REMINDER: Duration = Duration::from_millis(100);

/// All that the thread needs to see a child to its end.
struct Watch {
    /// The outermost guardian.
    guardian: std::process::Child,
    /// The process id of the child, to show.
    program: i32,
    /// Ends with the inner guardian.
    status: PipeReader,
    /// Readable with the first order.
    woken: Option<PipeReader>,
    /// Readable with the end of the outermost guardian, where the system can tell.
    guardian_end: Option<OwnedFd>,
    /// Its stderr or its terminal.
    output: Option<File>,
    terminal: Option<OwnedFd>,
    notes: Notes,
    ending: Ending,
    /// Held to the end, so that a dropped guard starts the whole ladder and not the short one for orphans.
    control: Arc<Control>,
}

impl Watch {
    fn run(mut self) {
        let mut buffer = vec![0; 16 * 1024];
        let mut ended = false;
        let mut last_reads = 0;
        while last_reads < LAST_READS {
            let fds = [
                (!ended).then(|| self.status.as_fd()),
                self.output.as_ref().map(AsFd::as_fd),
                self.woken.as_ref().map(AsFd::as_fd),
                self.guardian_end.as_ref().map(AsFd::as_fd),
            ];
            // Once all is gone, only what already lies in the pipe is read: somebody outside of the guardian's reach
            // may hold the other end.
            let wait = if ended { Some(Duration::ZERO) } else { self.woken.is_none().then_some(REMINDER) };
            let Ok([status, output, woken, guardian_end]) = poll::readable(fds, wait) else { break };
            if output {
                self.drain(&mut buffer);
                last_reads += usize::from(ended);
            } else if ended {
                break;
            }
            if woken || guardian_end {
                self.woken = None;
            }
            if guardian_end {
                // The inner one, if it lives, ends everything now.
                self.guardian_end = None;
                self.control.lock().set_deadline(Duration::ZERO);
            }
            if status || (self.woken.is_none() && self.is_overdue()) {
                ended = true;
                // With nobody left on it, the terminal ends after its last byte.
                self.terminal = None;
            }
        }
        let status = self.end();
        self.notes.finish_with(status);
        self.ending.publish(status);
    }

    /// Whether guardians that have an order are helpless. The outer one is killed then: if the inner one is able to, it
    /// ends everything, otherwise our process does.
    fn is_overdue(&mut self) -> bool {
        let state = self.control.lock();
        if state.deadline.is_none_or(|deadline| Instant::now() < deadline) {
            state.resume();
            return false;
        }
        drop(state);
        let _ = self.guardian.kill();
        true
    }

    /// Sees the guardians to their end. Returns the status of the child.
    fn end(&mut self) -> ExitStatus {
        // The inner guardian has reported or was killed, so this waits only where it was overdue.
        let report = match poll::readable([Some(self.status.as_fd())], Some(OVERTIME)) {
            Ok([true]) => self.report().ok().map(ExitStatus::from_raw),
            _ => None,
        };
        // After a report nobody is left who could hinder the other one.
        let patience = report.is_none().then_some(OVERTIME);
        let outer = self.reap_guardian(patience);
        if report.is_none() || !outer.is_ok_and(|status| status.success()) {
            guardian::end_orphans(self.program);
        }
        // A child without a status was killed, by the other guardian or by us.
        report.unwrap_or_else(|| ExitStatus::from_raw(libc::SIGKILL))
    }

    /// Waits for the outermost guardian, which is killed after `patience`, and reaps it.
    fn reap_guardian(&mut self, patience: Option<Duration>) -> io::Result<ExitStatus> {
        let since = Instant::now();
        loop {
            self.control.lock().resume();
            let overdue = patience.is_some_and(|patience| since.elapsed() > patience);
            if overdue {
                self.guardian.kill()?;
            }
            let wait_on = patience.is_none() || overdue;
            if guardian::has_ended(self.guardian.id(), wait_on) {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        // Its number is its own until it is reaped.
        self.control.lock().guardian = None;
        self.guardian.wait()
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
