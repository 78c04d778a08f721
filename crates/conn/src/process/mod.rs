//! Child processes that always end with this process.
//!
//! [`Command`] describes a program, [`Command::spawn`] starts it, and the [`Child`] is its two
//! pipes with a [`ChildGuard`]. Whatever happens to the guard, to the runtime or to this whole
//! process, also by `SIGKILL`, the child and everything it started come to an end and are reaped,
//! by one shutdown sequence: its stdin is closed, it gets [`Command::grace`] to leave, then
//! `SIGTERM` and [`Command::term_grace`], then `SIGKILL`.
//!
//! On Unix a small guardian process stands between us and the child; it is a fork of this process,
//! made in the same step as the child, and it holds nothing but a control pipe and a status pipe.
//! We only ever write to that pipe: the guardian alone sends signals, to processes that it has not
//! reaped yet, so a reused process id is never hit. The end of the control pipe signals that we are
//! gone. On Linux it is a child subreaper, so that grandchildren which went to the background or
//! started their own session come back to it; on other Unix systems only the child's process group
//! is covered. On Windows the child lives in a job object that dies with its last handle.
//!
//! On Linux there are two guardians, one the parent of the other, because the child may attack
//! them. Whichever of them is killed, the other kills everything at once; one that is stopped is
//! continued. A child that kills both of them in the same moment is caught by programs that call
//! [`adopt_orphans`]. Not covered: a child that kills our own process as well in that moment, and
//! one that lets a service outside (cron, systemd, a container runtime) start programs for it.
//!
//! [`Command::spawn_pty`] starts a program on a pseudo terminal instead of pipes, under the same
//! guard (Unix).
//!
//! One thread per child drains stderr, or the terminal, and waits for the end. It belongs to no
//! runtime, so that a busy or ended runtime never blocks a chatty child, nor leaves a zombie.
//!
//! Read `guard` for what our side keeps, `unix` for how it starts, `sys::guardian` for the other
//! process.

mod ancestry;
mod guard;
mod pipes;
#[cfg(unix)]
mod pty;
mod tail;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use ancestry::guardians;
pub use guard::ChildGuard;
pub use pipes::{ChildStdin, ChildStdout};
#[cfg(unix)]
pub use pty::{Pty, PtyChild, PtyEvent};

#[cfg(unix)]
use unix as os;
#[cfg(windows)]
use windows as os;

/// Destination of the child's stderr.
///
/// Example: [`Command`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stderr {
    /// Read at all times; the last 64 KiB are kept for [`ChildGuard::stderr_tail`].
    #[default]
    Capture,
    /// The stderr of this process.
    Inherit,
    /// Discarded.
    Null,
}

/// Makes this process adopt descendants that have lost their parents, and ends those that a child
/// has left by killing its guardians. For programs, which call it once at their start; does
/// something on Linux only.
///
/// From then on this process is a child subreaper: a program that it starts by other means than
/// [`Command`], and that goes to the background, becomes a child of this process when its parent
/// ends. It is left alone, but remains a zombie after its end until this process ends too.
///
/// ```no_run
/// // First in `main`, before the runtime and its connections:
/// attache_conn::process::adopt_orphans();
/// attache_conn::process::return_freed_memory();
/// ```
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    crate::sys::orphans::adopt();
}

/// Makes the allocator give every large block back to the system as soon as it is freed. For
/// programs that serve peers they do not trust, which call it once at their start; does something
/// with glibc only.
///
/// By default glibc keeps blocks of up to 32 MiB for reuse after the first of their size was freed,
/// in as many arenas as there are threads: a few messages of some megabytes then cost many times
/// their size for good.
///
/// Example: [`adopt_orphans`].
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    crate::sys::malloc::return_large_blocks();
}

/// Callback for each line of the child's stderr, without its line end. Clones of a command share
/// it.
type OnLine = Arc<Mutex<dyn FnMut(&str) + Send>>;

/// Callback for events of a child's terminal.
#[cfg(unix)]
type OnEvent = Box<dyn FnMut(PtyEvent<'_>) + Send>;

/// Grace periods of the shutdown sequence.
#[derive(Clone, Copy, Debug)]
struct GracePeriods {
    grace: Duration,
    term_grace: Duration,
}

/// A program to start, and how to end it.
///
/// ```no_run
/// # async fn demo() -> std::io::Result<()> {
/// use attache_conn::process::{Command, Stderr};
///
/// let child = Command::new("my-agent").arg("--acp").stderr(Stderr::Inherit).spawn()?;
/// let status = child.shutdown().await;
/// # let _ = status; Ok(()) }
/// ```
pub struct Command {
    inner: std::process::Command,
    env_clear: bool,
    stderr: Stderr,
    on_line: Option<OnLine>,
    periods: GracePeriods,
}

impl Command {
    /// Creates a command. `program` is a path, or a name that is looked up in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            inner: std::process::Command::new(os::resolve(program.as_ref())),
            env_clear: false,
            stderr: Stderr::Capture,
            on_line: None,
            periods: GracePeriods { grace: Duration::from_secs(2), term_grace: Duration::from_secs(2) },
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.inner.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.inner.args(args);
        self
    }

    /// Sets one environment variable; the others are inherited.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(key, value);
        self
    }

    /// Sets environment variables; the others are inherited.
    #[must_use]
    pub fn envs(mut self, vars: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        self.inner.envs(vars);
        self
    }

    /// Removes one variable from the inherited environment.
    #[must_use]
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.inner.env_remove(key);
        self
    }

    /// Inherits no variables: the child gets only those that [`env`](Self::env) sets after this.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.inner.env_clear();
        self.env_clear = true;
        self
    }

    /// Sets the working directory; the default is ours.
    #[must_use]
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.inner.current_dir(dir);
        self
    }

    /// Sets the destination of stderr; the default is [`Stderr::Capture`].
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Calls `f` with each line of a captured stderr, on the thread that drains it: while `f` runs,
    /// stderr is not read. Lines longer than 64 KiB come in pieces; bytes that are not UTF-8 are
    /// replaced.
    #[must_use]
    pub fn on_stderr_line(mut self, f: impl FnMut(&str) + Send + 'static) -> Self {
        self.on_line = Some(Arc::new(Mutex::new(f)));
        self
    }

    /// Sets the time to exit after stdin is closed; the default is 2 seconds.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.periods.grace = grace;
        self
    }

    /// Sets the time to exit after `SIGTERM`; the default is 2 seconds. Windows has no such signal:
    /// there both times are one.
    #[must_use]
    pub fn term_grace(mut self, grace: Duration) -> Self {
        self.periods.term_grace = grace;
        self
    }

    /// Starts the program. The pipes belong to the current tokio runtime, the guard does not.
    ///
    /// # Panics
    /// When the runtime was built without its I/O driver.
    ///
    /// # Errors
    /// When there is no runtime, when the system has no room, or when the program cannot be
    /// executed: the error says which program, and has the kind [`io::ErrorKind::NotFound`] when
    /// there is none of that name.
    ///
    /// ```
    /// use attache_conn::process::Command;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # #[cfg(unix)]
    /// async fn upper(text: &str) -> std::io::Result<String> {
    ///     let mut child = Command::new("tr").args(["a-z", "A-Z"]).spawn()?;
    ///     child.stdin.write_all(text.as_bytes()).await?;
    ///     drop(child.stdin); // the end of its input
    ///     let mut output = String::new();
    ///     child.stdout.read_to_string(&mut output).await?;
    ///     Ok(output)
    /// }
    /// ```
    pub fn spawn(self) -> io::Result<Child> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(io::Error::other("a child process needs a tokio runtime, call spawn within one"));
        }
        os::spawn(self)
    }

    /// Adds the missing path to a system error, which says only "no such file or directory".
    fn explain(&self, error: &io::Error) -> io::Error {
        let program = Path::new(self.inner.get_program());
        let dir = self.inner.get_current_dir().filter(|dir| !dir.is_dir());
        let why = match dir {
            Some(dir) => format!("its directory `{}` does not exist", dir.display()),
            None if error.kind() == io::ErrorKind::NotFound && program.is_file() => {
                "the file is there, but not the interpreter that its first line names".to_owned()
            }
            None => error.to_string(),
        };
        io::Error::new(error.kind(), format!("cannot start `{}`: {why}", program.display()))
    }
}

impl Clone for Command {
    fn clone(&self) -> Self {
        let mut inner = std::process::Command::new(self.inner.get_program());
        inner.args(self.inner.get_args());
        if self.env_clear {
            inner.env_clear();
        }
        for (key, value) in self.inner.get_envs() {
            match value {
                Some(value) => inner.env(key, value),
                None => inner.env_remove(key),
            };
        }
        if let Some(dir) = self.inner.get_current_dir() {
            inner.current_dir(dir);
        }
        let Self { env_clear, stderr, on_line, periods, .. } = self;
        Self { inner, env_clear: *env_clear, stderr: *stderr, on_line: on_line.clone(), periods: *periods }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Command").field(&self.inner).finish()
    }
}

/// A started program: its two pipes and the guard that ends it.
///
/// Example: [`Command::spawn`].
#[derive(Debug)]
pub struct Child {
    /// Its stdin; dropping this asks the child to exit.
    pub stdin: ChildStdin,
    /// Its stdout.
    pub stdout: ChildStdout,
    /// Dropping this ends the child.
    pub guard: ChildGuard,
}

impl Child {
    /// Closes both pipes, runs the shutdown sequence and returns when the child and all its
    /// descendants are gone.
    pub async fn shutdown(self) -> ExitStatus {
        // STDIO-10: the end begins with the end of its input.
        drop(self.stdin);
        drop(self.stdout);
        self.guard.shutdown().await
    }
}
