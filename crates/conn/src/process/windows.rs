//! Starting a child on Windows, and the threads that watch it.
//!
//! The job object keeps the promise that nothing is left behind. Windows has no signal that asks a
//! process to leave, so the shutdown sequence is short: stdin is closed, both graces pass, the job
//! is killed.

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ChildStderr, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};

use super::guard::{ExitSender, OutputSink};
use super::{Child, ChildGuard, ChildStdin, ChildStdout, Command, GracePeriods, Stderr};
use crate::sys::job::{CREATION_FLAGS, Job};

/// After this, processes that even a kill does not end are not waited for.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Input of the watcher thread.
enum Event {
    Stop,
    Kill,
    Ended(io::Result<ExitStatus>),
}

/// Orders to the thread that watches a child. It reads them as they come, so that sending never
/// waits, and it fails only when the child has ended.
#[derive(Debug)]
pub(super) struct Control(mpsc::SyncSender<Event>);

impl Control {
    pub(super) fn stop(&self) {
        let _ = self.0.send(Event::Stop);
    }

    /// There is no asking: the same as a kill.
    pub(super) fn terminate(&self) {
        self.kill();
    }

    pub(super) fn kill(&self) {
        let _ = self.0.send(Event::Kill);
    }
}

pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    let job = Job::new()?;
    let (stdin, stdin_end) = pipe(Direction::Child)?;
    let (stdout, stdout_end) = pipe(Direction::Us)?;
    let stderr = match command.stderr {
        Stderr::Capture => Stdio::piped(),
        Stderr::Inherit => Stdio::inherit(),
        Stderr::Null => Stdio::null(),
    };
    command.inner.stdin(stdin_end).stdout(stdout_end).stderr(stderr).creation_flags(CREATION_FLAGS);

    // All that can fail on our side comes before the start, so that a started child is always
    // watched.
    let sink = OutputSink::new(command.on_line.take());
    let exit_sender = ExitSender::new();
    let (events, events_receiver) = mpsc::sync_channel(8);
    let (hand_over, started) = mpsc::sync_channel::<Watcher>(1);
    let (hand_process, process) = mpsc::sync_channel::<std::process::Child>(1);
    let (hand_stderr, stderr_receiver) = mpsc::sync_channel::<(ChildStderr, OutputSink)>(1);
    let (stderr_done_sender, stderr_done) = mpsc::sync_channel::<()>(1);
    let ended = events.clone();
    spawn_thread("attache-child-wait", move || {
        if let Ok(mut process) = process.recv() {
            let _ = ended.send(Event::Ended(process.wait()));
        }
    })?;
    spawn_thread("attache-child-stderr", move || {
        if let Ok((stderr, sink)) = stderr_receiver.recv() {
            drain(stderr, sink);
        }
        drop(stderr_done_sender);
    })?;
    spawn_thread("attache-child", move || {
        if let Ok(watcher) = started.recv() {
            watcher.run();
        }
    })?;

    let mut process = command.inner.spawn().map_err(|error| command.explain(&error))?;
    let periods = command.periods;
    // The command holds our copies of the child's ends, which would keep its pipes open for ever.
    drop(command);
    if let Err(error) = job.adopt(&process) {
        let _ = process.kill();
        return Err(error);
    }
    let guard = ChildGuard::new(process.id(), Arc::new(Control(events)), &exit_sender, &sink);
    // The threads are there, waiting for just this.
    if let Some(stderr) = process.stderr.take() {
        let _ = hand_stderr.send((stderr, sink));
    }
    let _ = hand_process.send(process);
    let _ = hand_over.send(Watcher { job, periods, events_receiver, stderr_done, exit_sender });
    Ok(Child { stdin: ChildStdin(stdin), stdout: ChildStdout(stdout), guard })
}

fn spawn_thread(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(f).map(drop)
}

// STDIO-07: stderr is always read.
fn drain(mut stderr: ChildStderr, mut sink: OutputSink) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match stderr.read(&mut buffer) {
            Ok(n @ 1..) => sink.push(buffer.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
    }
    sink.finish();
}

/// State of the watcher thread.
struct Watcher {
    job: Job,
    periods: GracePeriods,
    events_receiver: mpsc::Receiver<Event>,
    stderr_done: mpsc::Receiver<()>,
    exit_sender: ExitSender,
}

impl Watcher {
    fn run(self) {
        let Self { job, periods, events_receiver, stderr_done, exit_sender } = self;
        let status = descend(&job, periods, &events_receiver);
        // From here on orders fail instead of waiting for a reader.
        drop(events_receiver);
        job.kill();
        let end = Instant::now() + LAST_WAIT;
        while !job.is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        // Ends when stderr has, or when a process outside of the job holds it open for too long.
        let _ = stderr_done.recv_timeout(Duration::from_millis(500));
        tracing::debug!(%status, "child ended");
        exit_sender.publish(status);
    }
}

/// Runs the shutdown sequence on request. Returns when the child itself has ended.
fn descend(job: &Job, periods: GracePeriods, events_receiver: &mpsc::Receiver<Event>) -> ExitStatus {
    let patience = periods.grace.saturating_add(periods.term_grace);
    let mut due: Option<Instant> = None;
    loop {
        let event = match due {
            Some(due) => events_receiver.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => events_receiver.recv().map_err(mpsc::RecvTimeoutError::from),
        };
        match event {
            Ok(Event::Stop) => due = due.or_else(|| Instant::now().checked_add(patience)),
            Ok(Event::Kill) | Err(mpsc::RecvTimeoutError::Timeout) => {
                job.kill();
                due = None;
            }
            Ok(Event::Ended(status)) => return status.unwrap_or_default(),
            Err(mpsc::RecvTimeoutError::Disconnected) => return ExitStatus::default(),
        }
    }
}

enum Direction {
    Child,
    Us,
}

/// A pipe whose one end tokio can wait for, which the anonymous pipes of Windows do not allow, and
/// whose other end is an ordinary file, which is what programs expect.
fn pipe(direction: Direction) -> io::Result<(NamedPipeServer, File)> {
    let (inbound, outbound) = match direction {
        Direction::Child => (false, true),
        Direction::Us => (true, false),
    };
    // The name is secret, and the pipe admits one client, which is us.
    let (a, b) = (random(), random());
    let name = format!(r"\\.\pipe\attache-{}-{a:016x}{b:016x}", std::process::id());
    let server = ServerOptions::new()
        .access_inbound(inbound)
        .access_outbound(outbound)
        .first_pipe_instance(true)
        .max_instances(1)
        .create(&name)?;
    let client = OpenOptions::new().read(outbound).write(inbound).open(&name)?;
    // The client is there, so this ends at once.
    match pin!(server.connect()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result?,
        Poll::Pending => return Err(io::Error::other("a new pipe did not connect")),
    }
    Ok((server, client))
}

/// The keys of the standard library's hash maps come from the system's random numbers.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The standard library finds only `.exe` by its bare name, but `npx` and its like are `.cmd`
/// files.
pub(super) fn resolve(program: &OsStr) -> OsString {
    const KINDS: [&str; 3] = ["exe", "cmd", "bat"];
    let path = Path::new(program);
    let has_kind =
        path.extension().is_some_and(|e| ["com"].iter().chain(&KINDS).any(|k| e.eq_ignore_ascii_case(k)));
    if has_kind {
        return program.to_owned();
    }
    let dirs = if path.components().count() > 1 {
        vec![PathBuf::new()]
    } else {
        std::env::var_os("PATH").map(|dirs| std::env::split_paths(&dirs).collect()).unwrap_or_default()
    };
    let candidates = dirs.iter().flat_map(|dir| {
        KINDS.iter().map(|kind| {
            let mut file = dir.join(path).into_os_string();
            file.push(".");
            file.push(kind);
            file
        })
    });
    candidates.into_iter().find(|file| Path::new(file).is_file()).unwrap_or_else(|| program.to_owned())
}
