//! Commands that can reach only what they are allowed to.
//!
//! A [`Confinement`] says what a command may read, write, connect to and inherit; a [`Backend`]
//! enforces it. The command line that [`Confinement::command`] builds starts this program again
//! with the hidden word [`WORD`], and [`run`] does the rest in that process. So nothing has to
//! happen between fork and exec of the caller, and a client that runs terminals for an agent can
//! start the same command line.
//!
//! On Linux a command is confined in two stages. The first enters new user, mount, PID, IPC and
//! network namespaces, by [itself](Backend::Namespaces) or by [bubblewrap](Backend::Bubblewrap), or
//! is left out ([`Backend::Landlock`]). The second runs inside: it starts the bridge to the network
//! proxy, sets resource limits, cleans the environment, drops all capabilities, applies Landlock
//! and seccomp, and executes the command. Every process that takes part dies with the outermost
//! one.
//!
//! Seccomp refuses, with every backend: sockets of all kinds but those that [`Network`] describes,
//! `TIOCSTI` and `TIOCLINUX`, io_uring, ptrace and reads of other processes' memory, keyrings, BPF,
//! perf events, userfaultfd, mounts, namespaces, file handles, kernel modules, unusual
//! personalities, and system calls that are newer than this program.
//!
//! [`Backend::Landlock`] shares `/tmp`, `/dev` and the process list with the rest of the system.
//! There the following is refused too: System V IPC, POSIX message queues and shared memory;
//! changes to the priority or limits of other processes; extended attributes and inode flags of all
//! files; changes of owner, permissions and time stamps outside of the writable directories, and
//! everywhere if there are none; `/dev` except for the basic character devices; new terminals; with
//! [`View::Only`] all of `/proc`. The existence and metadata of files stay visible, and so does
//! `/proc` with [`View::Everything`].
//!
//! Reading order: this file, `words.rs`, `supervise.rs`, `linux/mod.rs`, `linux/plan.rs`,
//! `linux/inside.rs`.

mod backend;
#[cfg(any(unix, test))]
mod environment;
#[cfg(target_os = "linux")]
mod linux;
mod seatbelt;
#[cfg(unix)]
mod supervise;
#[cfg(unix)]
mod temporary;
mod words;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
pub(crate) use temporary::PrivateDirectory;

pub use backend::{BACKEND_VARIABLE, Backend, Guarantees, Unsupported};
pub use seatbelt::profile as seatbelt_profile;

/// The hidden first argument of a program that passes the rest of its arguments to [`run`].
pub const WORD: &str = "__sandbox";

/// Permissions of a command.
///
/// All paths are absolute. Symbolic links in them are followed, with one exception: a link that
/// lies inside another path of [`View::Only`] or [`write`](Self::write) is under the control of
/// earlier commands or of the project, so the path that leads through it is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Files that can be read.
    pub view: View,
    /// Directories and files that can be read and written. A path that does not exist is left out.
    pub write: Vec<PathBuf>,
    /// Paths inside [`write`](Self::write) that stay read-only, such as `.git/hooks`.
    ///
    /// The command can neither change, rename nor replace them, nor the directories and links that
    /// lead to them. In the place of a path that does not exist there is an empty read-only
    /// directory for the time of the command, outside too; where the user may not create it, the
    /// command could not create anything either. A program outside of the sandbox that replaces one
    /// of these paths meanwhile lifts its protection.
    pub read_only: Vec<PathBuf>,
    /// Where the command can connect to.
    pub network: Network,
    /// Which environment variables the command gets.
    pub environment: Environment,
    /// Resource limits.
    pub limits: Limits,
    /// Program files that can be neither executed nor read.
    pub deny_exec: Vec<PathBuf>,
}

/// Files that a command can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// All files that the user can read, except for these.
    ///
    /// A path inside a hidden directory that is also listed in [`Confinement::write`] stays
    /// visible.
    Everything {
        /// Files and directories that appear empty or unreadable.
        hidden: Vec<PathBuf>,
    },
    /// These paths, those of [`Confinement::write`], and the programs and libraries of the system.
    /// Nothing else of `/home`, `/root` and `/var`, and of `/etc` only the settings of the linker,
    /// locales and time zones.
    Only(Vec<PathBuf>),
}

/// Where a command can connect to. Unix domain sockets are refused in every case, except for
/// connected pairs: by them a command would reach services that act outside of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// Nowhere. No socket of any family can be created.
    Off,
    /// Through a [proxy](crate::proxy::Proxy) that listens on this Unix socket. TCP works on a
    /// loopback interface that belongs to the command alone; the variables `HTTP_PROXY`,
    /// `HTTPS_PROXY` and `ALL_PROXY` point there.
    Proxy(PathBuf),
    /// Everywhere, with Internet protocols.
    Open,
}

/// Which environment variables a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// All variables but those that are named like secrets or begin with `ATTACHE_`.
    Keep,
    /// Search path, locale, time zone, terminal and user name; settings that keep git from running
    /// programs and from the network. Entries of the search path inside the project are left out.
    /// `HOME` is an empty directory.
    Minimal,
}

/// Resource limits; `None` keeps those of the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// CPU time of each process, in seconds.
    pub cpu_seconds: Option<u64>,
    /// Size of a file that is written, in bytes.
    pub file_bytes: Option<u64>,
    /// Size of the private temporary directory, in bytes, where [`Guarantees::tmp_size`] holds.
    pub tmp_bytes: Option<u64>,
}

/// A command line that starts a confined command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program that handles [`WORD`].
    pub program: PathBuf,
    /// The backend that it uses.
    pub backend: Backend,
    /// Permissions of the command.
    pub confinement: Confinement,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

impl Launch {
    /// Whether the command line starts this program, by any path. Only then does it confine
    /// anything.
    pub fn is_started_by(&self, program: &Path) -> bool {
        match (self.program.canonicalize(), program.canonicalize()) {
            (Ok(started), Ok(program)) => started == program,
            _ => false,
        }
    }
}

impl Confinement {
    /// Reads `roots` and the system's programs, writes nothing but a private temporary directory,
    /// has no network and a minimal environment.
    pub fn read_only(roots: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Confinement {
            view: View::Only(roots.into_iter().map(Into::into).collect()),
            environment: Environment::Minimal,
            ..Confinement::writable(std::iter::empty::<PathBuf>())
        }
    }

    /// Reads everything, writes below `roots`, has no network and the caller's environment without
    /// secrets.
    pub fn writable(roots: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Confinement {
            view: View::Everything { hidden: Vec::new() },
            write: roots.into_iter().map(Into::into).collect(),
            read_only: Vec::new(),
            network: Network::Off,
            environment: Environment::Keep,
            limits: Limits::default(),
            deny_exec: Vec::new(),
        }
    }

    /// Builds the command line that runs `argv` confined. `own_program` passes what follows
    /// [`WORD`] to [`run`].
    ///
    /// The words up to `--` are printable ASCII for paths of any bytes.
    pub fn command(
        &self,
        backend: Backend,
        own_program: &Path,
        argv: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Vec<OsString> {
        words::command_line(backend, self, own_program, argv)
    }

    /// Recognises a command line that [`command`](Self::command) built, and no other.
    ///
    /// The caller has to compare [`Launch::program`] with the program that it trusts, and to look
    /// at the variables that are set for it: they can change what any program does.
    pub fn parse(argv: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Option<Launch> {
        words::parse(argv)
    }

    /// Whether the command reads only given roots, can change nothing and has neither a network nor
    /// the caller's environment.
    pub fn is_read_only(&self) -> bool {
        matches!(self.view, View::Only(_))
            && self.write.is_empty()
            && self.network == Network::Off
            && self.environment == Environment::Minimal
    }

    /// Whether `backend` can enforce all of it. [`run`] refuses what is not supported.
    ///
    /// # Errors
    /// With the first part that the backend cannot enforce.
    pub fn check(&self, backend: Backend) -> Result<(), Unsupported> {
        backend::check(self, backend)
    }

    /// All paths that are named in it.
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let view = match &self.view {
            View::Everything { hidden: paths } | View::Only(paths) => paths,
        };
        let socket = match &self.network {
            Network::Proxy(socket) => Some(socket),
            Network::Off | Network::Open => None,
        };
        view.iter().chain(&self.write).chain(&self.read_only).chain(&self.deny_exec).chain(socket)
    }
}

/// Runs a confined command to its end. `words` are the arguments after [`WORD`].
///
/// Returns the exit code of the command, or 128 and the number of the signal that ended it. Signals
/// that the process receives are passed on to the command. Call it first thing in `main`: it closes
/// all descriptors above 2 and forks.
///
/// # Errors
/// When `words` are not those of [`Confinement::command`], when the backend cannot enforce them, or
/// when the command cannot be executed. Nothing has been executed then.
#[cfg(unix)]
pub fn run(words: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    supervise::run(words.into_iter().collect())
}

/// Refuses to run a command: no backend works on this system.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn run(_words: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
