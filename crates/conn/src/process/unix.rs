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

use super::guard::{ExitSender, OutputSink};
use super::{Child, ChildGuard, ChildStdin, ChildStdout, Command, GracePeriods, Stderr};
use crate::sys::{guardian, poll};

/// Sends orders to the guardians.
#[derive(Debug)]
pub(super) struct Control {
    /// Orders for the inner guardian. The end of this pipe signals that we are gone.
    orders: PipeWriter,
    /// Wakes the watcher thread after an order.
    wake: PipeWriter,
    periods: GracePeriods,
    state: Mutex<ControlState>,
}

#[derive(Debug, Default)]
struct ControlState {
    /// When guardians that do not obey are killed.
    deadline: Option<Instant>,
    /// The outermost guardian, until it is reaped.
    guardian: Option<u32>,
}

/// How much longer than the shutdown sequence guardians may take before they are killed.
const OVERTIME: Duration = Duration::from_secs(7);

impl Control {
    pub(super) fn stop(&self) {
        self.order(guardian::STOP, self.periods.grace.saturating_add(self.periods.term_grace));
    }

    pub(super) fn terminate(&self) {
        self.order(guardian::TERMINATE, self.periods.term_grace);
    }

    pub(super) fn kill(&self) {
        self.order(guardian::KILL, Duration::ZERO);
    }

    /// Writing fails only when the guardian has ended, and then there is nothing left to order. A
    /// byte always fits: the guardian reads them as they come.
    fn order(&self, byte: u8, periods: Duration) {
        let mut state = self.lock();
        state.set_deadline(periods);
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
    /// The guardians have to be done after a shutdown sequence of this length. One that is too long
    /// for the clock has no deadline.
    fn set_deadline(&mut self, periods: Duration) {
        let deadline = Instant::now().checked_add(periods.saturating_add(OVERTIME));
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

    // All that can fail on our side comes before the fork, so that a started child is always
    // watched.
    let stdin = ChildStdin(pipe::Sender::from_owned_fd(stdin.into())?);
    let stdout = ChildStdout(pipe::Receiver::from_owned_fd(stdout.into())?);
    let sink = OutputSink::new(command.on_line.take());
    let guard = spawn_guarded(command, Source { output: stderr, terminal: None, sink })?;
    Ok(Child { stdin, stdout, guard })
}

/// Input of the watcher thread.
pub(super) struct Source {
    pub(super) output: Option<File>,
    /// The child's end of its terminal, held so that the terminal lives as long as the child,
    /// whatever the child closes.
    pub(super) terminal: Option<OwnedFd>,
    pub(super) sink: OutputSink,
}

/// Starts the program, whose streams are set, under a guardian and with a thread that watches it.
pub(super) fn spawn_guarded(mut command: Command, source: Source) -> io::Result<ChildGuard> {
    let (control_end, orders) = io::pipe()?;
    let (status, status_end) = io::pipe()?;
    let (woken, wake) = io::pipe()?;
    let exit_sender = ExitSender::new();
    let control = Arc::new(Control { orders, wake, periods: command.periods, state: Mutex::default() });
    let (hand_over, started) = mpsc::sync_channel::<Watcher>(1);
    thread::Builder::new().name("attache-child".into()).spawn(move || {
        if let Ok(watcher) = started.recv() {
            watcher.run();
        }
    })?;
    guardian::arm(
        &mut command.inner,
        guardian::Plan {
            control: above_stdio(control_end.into())?,
            status: above_stdio(status_end.into())?,
            grace: command.periods.grace,
            term_grace: command.periods.term_grace,
            terminal: source.terminal.is_some(),
        },
    );

    let spawned = command.inner.spawn().map_err(|error| command.explain(&error))?;
    // The command holds our copies of the child's ends, which would keep its pipes open for ever.
    drop(command);
    let Source { output, terminal, sink } = source;
    control.lock().guardian = Some(spawned.id());
    let guardian_end = poll::end_of(spawned.id());
    let mut watcher = Watcher {
        guardian: spawned,
        program: 0,
        status,
        woken: Some(woken),
        guardian_end,
        output,
        terminal,
        sink,
        exit_sender,
        control: control.clone(),
    };
    watcher.program = watcher.report().unwrap_or_default();
    let guard = ChildGuard::new(watcher.program.unsigned_abs(), control, &watcher.exit_sender, &watcher.sink);
    // The thread is there, waiting for just this.
    let _ = hand_over.send(watcher);
    Ok(guard)
}

/// In a process that began with its standard streams closed, a new pipe may get one of their
/// numbers, and the child's own streams would be laid over it. A copy never gets one.
fn above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { fd.try_clone() }
}

/// Reads after the end of the child; more than a pipe holds.
const LAST_READS: usize = 256;
/// Interval at which guardians with a pending order are resumed.
const REMINDER: Duration = Duration::from_millis(100);

/// State of the watcher thread.
struct Watcher {
    /// The outermost guardian.
    guardian: std::process::Child,
    /// The process id of the child, to show.
    program: i32,
    /// Ends with the inner guardian.
    status: PipeReader,
    /// Readable with the first order.
    woken: Option<PipeReader>,
    /// Readable with the end of the outermost guardian, where the system supports it.
    guardian_end: Option<OwnedFd>,
    /// Its stderr or its terminal.
    output: Option<File>,
    terminal: Option<OwnedFd>,
    sink: OutputSink,
    exit_sender: ExitSender,
    /// Held to the end, so that a dropped guard starts the whole shutdown sequence and not the
    /// short one for orphans.
    control: Arc<Control>,
}

impl Watcher {
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
            // Once all is gone, only what already lies in the pipe is read: a process outside of
            // the guardian's reach may hold the other end.
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
                // Without our descriptor, the terminal ends after its last byte.
                self.terminal = None;
            }
        }
        let status = self.end();
        self.sink.finish_with(status);
        tracing::debug!(pid = self.program, %status, "child ended");
        self.exit_sender.publish(status);
    }

    /// Whether guardians that have an order are helpless. The outer one is killed then: if the
    /// inner one is able to, it ends everything, otherwise our process does.
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

    /// Waits for the end of the guardians. Returns the status of the child.
    fn end(&mut self) -> ExitStatus {
        // The inner guardian has reported or was killed, so this waits only where it was overdue.
        let report = match poll::readable([Some(self.status.as_fd())], Some(OVERTIME)) {
            Ok([true]) => self.report().ok().map(ExitStatus::from_raw),
            _ => None,
        };
        // After a report no process is left that could hinder the other guardian.
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

    // STDIO-07: stderr is always read. The end of a terminal is an error.
    fn drain(&mut self, buffer: &mut [u8]) {
        let Some(output) = &mut self.output else { return };
        match output.read(buffer) {
            Ok(n @ 1..) => self.sink.push(buffer.get(..n).unwrap_or_default()),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Ok(_) | Err(_) => self.output = None,
        }
    }

    /// The guardian's reports are two numbers: the child's process id, and in the end its wait
    /// status.
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
