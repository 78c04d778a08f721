//! Starting a child on Windows, and the threads that watch it.
//!
//! The job object keeps the promise that nothing is left behind. Windows has no signal that asks a process to leave,
//! so the ladder is short: stdin is closed, both graces pass, the job is killed.

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

use super::guard::{Ending, Notes};
use super::{Child, ChildGuard, ChildStdin, ChildStdout, Command, Ladder, Stderr};
use crate::sys::job::{CREATION_FLAGS, Job};

/// After this, processes that even a kill does not end are not waited for.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// What the thread that watches a child hears.
enum Event {
    Stop,
    Kill,
    Ended(io::Result<ExitStatus>),
}

/// Orders to the thread that watches a child. It reads them as they come, so that sending never waits, and it fails
/// only when the child has ended.
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
    let (stdin, stdin_end) = pipe(Towards::Child)?;
    let (stdout, stdout_end) = pipe(Towards::Us)?;
    let stderr = match command.stderr {
        Stderr::Capture => Stdio::piped(),
        Stderr::Inherit => Stdio::inherit(),
        Stderr::Null => Stdio::null(),
    };
    command.inner.stdin(stdin_end).stdout(stdout_end).stderr(stderr).creation_flags(CREATION_FLAGS);

    // All that can fail on our side comes before the start, so that a started child is always watched.
    let notes = Notes::new(command.on_line.take());
    let ending = Ending::new();
    let (events, heard) = mpsc::sync_channel(8);
    let (hand_over, started) = mpsc::sync_channel::<Watch>(1);
    let (hand_process, process) = mpsc::sync_channel::<std::process::Child>(1);
    let (hand_stderr, noise) = mpsc::sync_channel::<(ChildStderr, Notes)>(1);
    let (tell_silence, silence) = mpsc::sync_channel::<()>(1);
    let ended = events.clone();
    begin("attache-child-wait", move || {
        if let Ok(mut process) = process.recv() {
            let _ = ended.send(Event::Ended(process.wait()));
        }
    })?;
    begin("attache-child-stderr", move || {
        if let Ok((stderr, notes)) = noise.recv() {
            drain(stderr, notes);
        }
        drop(tell_silence);
    })?;
    begin("attache-child", move || {
        if let Ok(watch) = started.recv() {
            watch.run();
        }
    })?;

    let mut process = command.inner.spawn().map_err(|error| command.explain(&error))?;
    let ladder = command.ladder;
    // The command holds our copies of the child's ends, which would keep its pipes open for ever.
    drop(command);
    if let Err(error) = job.adopt(&process) {
        let _ = process.kill();
        return Err(error);
    }
    let guard = ChildGuard::new(process.id(), Arc::new(Control(events)), &ending, &notes);
    // The threads are there, waiting for just this.
    if let Some(stderr) = process.stderr.take() {
        let _ = hand_stderr.send((stderr, notes));
    }
    let _ = hand_process.send(process);
    let _ = hand_over.send(Watch { job, ladder, heard, silence, ending });
    Ok(Child { stdin: ChildStdin(stdin), stdout: ChildStdout(stdout), guard })
}

fn begin(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(f).map(drop)
}

/// STDIO-07: stderr is always read, whether or not anybody is interested in it.
fn drain(mut stderr: ChildStderr, mut notes: Notes) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match stderr.read(&mut buffer) {
            Ok(n @ 1..) => notes.push(buffer.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
    }
    notes.finish();
}

/// All that the thread needs to see a child to its end.
struct Watch {
    job: Job,
    ladder: Ladder,
    heard: mpsc::Receiver<Event>,
    silence: mpsc::Receiver<()>,
    ending: Ending,
}

impl Watch {
    fn run(self) {
        let Self { job, ladder, heard, silence, ending } = self;
        let status = descend(&job, ladder, &heard);
        // From here on orders fail instead of waiting for a reader.
        drop(heard);
        job.kill();
        let end = Instant::now() + LAST_WAIT;
        while !job.is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        // Ends when stderr has, or when somebody outside of the job holds it open for too long.
        let _ = silence.recv_timeout(Duration::from_millis(500));
        ending.publish(status);
    }
}

/// Goes down the ladder when told to. Returns when the child itself has ended.
fn descend(job: &Job, ladder: Ladder, heard: &mpsc::Receiver<Event>) -> ExitStatus {
    let patience = ladder.grace.saturating_add(ladder.term_grace);
    let mut due: Option<Instant> = None;
    loop {
        let event = match due {
            Some(due) => heard.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => heard.recv().map_err(mpsc::RecvTimeoutError::from),
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

enum Towards {
    Child,
    Us,
}

/// A pipe whose one end tokio can wait for, which the anonymous pipes of Windows do not allow, and whose other end is
/// an ordinary file, which is what programs expect.
fn pipe(towards: Towards) -> io::Result<(NamedPipeServer, File)> {
    let (inbound, outbound) = match towards {
        Towards::Child => (false, true),
        Towards::Us => (true, false),
    };
    // Nobody can guess the name, and nobody but us can be the one client that it admits.
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

/// The standard library finds only `.exe` by its bare name, but `npx` and its like are `.cmd` files.
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
