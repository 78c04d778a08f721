//! Confined commands for tests: every backend that works here, a shell in it, and system calls by
//! Perl.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use attache_host::sandbox::{Backend, Confinement};
use tokio::signal::unix::SignalKind;

/// The program that handles the hidden word: `examples/sandbox.rs`.
pub(crate) fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().parent().unwrap().join("examples/sandbox");
    assert!(
        path.is_file(),
        "{} is missing; build it: cargo build -p attache-host --examples",
        path.display()
    );
    path
}

/// All backends that work here. There is at least one on Linux.
pub(crate) fn backends() -> &'static [Backend] {
    static FOUND: OnceLock<Vec<Backend>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let linux = [Backend::Bubblewrap, Backend::Namespaces, Backend::Landlock];
        let (found, skipped): (Vec<_>, Vec<_>) =
            linux.into_iter().partition(|backend| backend.works(&program()));
        for backend in skipped {
            eprintln!("skipped: the {} sandbox does not work on this machine", backend.name());
        }
        assert!(!found.is_empty(), "no sandbox works on this machine");
        found
    })
}

/// Those with namespaces.
pub(crate) fn with_namespaces() -> impl Iterator<Item = Backend> {
    backends().iter().copied().filter(|backend| backend.guarantees().private_processes)
}

/// Lets children start with the default handlers. A test runner in the background may ignore some
/// signals, and ignoring is inherited; handling is not.
fn handle_signals() {
    static HANDLED: OnceLock<()> = OnceLock::new();
    HANDLED.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        for kind in [SignalKind::interrupt(), SignalKind::quit(), SignalKind::hangup()] {
            // The handler stays when the listener is dropped.
            drop(tokio::signal::unix::signal(kind).unwrap());
        }
    });
}

/// Starts a command and waits until it has printed `ready`.
pub(crate) fn start_ready(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, output)
}

/// A confined command that has not been started.
pub(crate) fn command<S: AsRef<OsStr>>(backend: Backend, confinement: &Confinement, argv: &[S]) -> Command {
    handle_signals();
    let line = confinement.command(backend, &program(), argv);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).stdin(Stdio::null());
    command
}

/// The output of a shell script in a sandbox.
pub(crate) struct Outcome {
    pub(crate) backend: Backend,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn of(backend: Backend, output: &Output) -> Outcome {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Outcome { backend, code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// It printed exactly this.
    #[track_caller]
    pub(crate) fn prints(&self, expected: &str) {
        assert_eq!(self.stdout.trim_end(), expected, "{self:?}");
    }

    #[track_caller]
    pub(crate) fn shows(&self, part: &str) {
        assert!(self.stdout.contains(part), "no {part:?} in {self:?}");
    }

    #[track_caller]
    pub(crate) fn hides(&self, part: &str) {
        assert!(!self.stdout.contains(part) && !self.stderr.contains(part), "{part:?} in {self:?}");
    }
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome { backend, code, stdout, stderr } = self;
        write!(f, "{} exited with {code}\n-- stdout\n{stdout}\n-- stderr\n{stderr}", backend.name())
    }
}

/// Runs a shell script in a sandbox, in this directory.
pub(crate) fn shell(backend: Backend, confinement: &Confinement, directory: &Path, script: &str) -> Outcome {
    let output =
        command(backend, confinement, &["/bin/sh", "-c", script]).current_dir(directory).output().unwrap();
    Outcome::of(backend, &output)
}

/// Runs a Perl script in a sandbox. It can make any system call: `try(name, number, arguments…)`
/// prints whether it was refused.
pub(crate) fn perl(backend: Backend, confinement: &Confinement, directory: &Path, script: &str) -> Outcome {
    const PRELUDE: &str = r#"
        use strict; use warnings FATAL => 'all'; no warnings 'once'; $| = 1;
        use Errno qw(:POSIX);
        sub try {
            my ($name, $number, @arguments) = @_;
            $! = 0;
            my $result = syscall($number, @arguments);
            my %refused = map { $_ => 1 } EPERM, EACCES, ENOSYS, EROFS;
            print "$name: ", ($result >= 0 ? 'DONE' : $refused{$! + 0} ? 'refused' : "failed ($!)"), "\n";
            return $result;
        }
    "#;
    let script = format!("{PRELUDE}\n{script}");
    let output =
        command(backend, confinement, &["perl", "-e", &script]).current_dir(directory).output().unwrap();
    Outcome::of(backend, &output)
}

/// A directory that is not below a private temporary one, if there is such a place that the user
/// can write to.
pub(crate) struct Outside(PathBuf);

impl Outside {
    pub(crate) fn new() -> Outside {
        Outside::visible().or_else(|| Outside::create_in(&std::env::temp_dir())).unwrap()
    }

    /// A directory that a command with a view of everything sees; `None` if the user can write to
    /// temporary directories only.
    pub(crate) fn visible() -> Option<Outside> {
        let own = std::env::current_exe().unwrap();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let is_visible = |place: &PathBuf| {
            place.is_absolute() && ["/tmp", "/var/tmp", "/dev/shm"].iter().all(|tmp| !place.starts_with(tmp))
        };
        let mut places = [own.parent().map(Path::to_owned), home].into_iter().flatten().filter(is_visible);
        let made = places.find_map(|place| Outside::create_in(&place));
        if made.is_none() {
            eprintln!("skipped: the user can write to temporary directories only");
        }
        made
    }

    fn create_in(place: &Path) -> Option<Outside> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("sandbox-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        Some(Outside(path.canonicalize().unwrap()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
