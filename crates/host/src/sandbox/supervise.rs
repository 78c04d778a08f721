//! The outermost process of a sandbox: it starts the others, passes signals on to the command and
//! waits for its end.
//!
//! It holds the only writing end of a pipe. The process next to the command reads the numbers of
//! signals from it, and ends everything when the pipe is closed for any reason.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use super::{Backend, Confinement, words};
#[cfg(not(target_os = "linux"))]
use crate::sys::process::Fork;
use crate::sys::process::{self, Resource};

/// Signals that are passed on to the command.
const FORWARDED: [libc::c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGCONT,
];

/// How long a command may continue after the terminal is gone.
const HANGUP_SECONDS: u32 = 2;
/// How long a probe may take.
const PROBE_SECONDS: u32 = 5;

/// Parameters of the inner processes.
pub(super) struct SandboxLaunch {
    #[cfg(target_os = "linux")]
    pub(super) backend: Backend,
    pub(super) confinement: Confinement,
    /// Empty for a probe.
    pub(super) command: Vec<OsString>,
    /// The numbers of signals come from here.
    pub(super) control: OwnedFd,
    pub(super) report: Report,
}

/// A pipe for errors to the outermost process.
pub(super) struct Report(pub(super) File);

impl Report {
    /// Reports that our own code runs inside. Until then `bwrap` may have failed, which writes no
    /// report.
    pub(super) fn begun(&mut self) {
        // Without a reader the outermost process is gone, and the control pipe says so too.
        let _ = self.0.write_all(b"+");
    }

    #[cfg(target_os = "linux")]
    pub(super) fn try_clone(&self) -> io::Result<Report> {
        self.0.try_clone().map(Report)
    }

    fn fail(&mut self, error: &io::Error) {
        let number = match error.kind() {
            io::ErrorKind::NotFound => libc::ENOENT,
            io::ErrorKind::PermissionDenied => libc::EACCES,
            _ => 0,
        };
        let _ = write!(self.0, "{number} {error}");
    }

    /// Ends this process with an error.
    pub(super) fn fail_and_exit(mut self, error: &io::Error) -> ! {
        self.fail(error);
        process::exit(ERROR_CODE)
    }
}

/// The exit code of an inner process that has failed. The outermost process reads the report
/// instead.
const ERROR_CODE: u8 = 125;

pub(super) fn run(arguments: Vec<OsString>) -> io::Result<u8> {
    #[cfg(target_os = "linux")]
    super::linux::continue_inside(&arguments)?;
    let Some((backend, confinement, command)) = words::decode(&arguments) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "these are not the arguments of a sandbox"));
    };
    confinement.check(backend).map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))?;
    if backend.is_foreign() {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    check_process()?;
    process::close_descriptors(3, &[]);

    let forwarded: Vec<libc::c_int> =
        FORWARDED.into_iter().filter(|signal| !process::is_ignored(*signal)).collect();
    let awaited: Vec<libc::c_int> = forwarded.iter().copied().chain([libc::SIGCHLD, libc::SIGALRM]).collect();
    process::block_signals(&awaited);
    if command.is_empty() {
        process::alarm(PROBE_SECONDS);
    }
    let (control, orders) = io::pipe()?;
    let (mut reported, report) = io::pipe()?;
    let setup = SandboxLaunch {
        #[cfg(target_os = "linux")]
        backend,
        confinement,
        command: command.to_vec(),
        control: control.into(),
        report: Report(OwnedFd::from(report).into()),
    };
    let child = start(setup, &orders)?;
    let code = forward(child, orders, &awaited)?;
    let mut text = String::new();
    reported.read_to_string(&mut text)?;
    result(backend, code, &text)
}

/// Refuses a process that cannot be forked safely, or whose streams lead somewhere that was not
/// asked for.
fn check_process() -> io::Result<()> {
    use std::os::fd::AsFd as _;
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt as _;
        // Two links are its own; each thread adds one.
        if std::fs::metadata("/proc/self/task").is_ok_and(|tasks| tasks.nlink() > 3) {
            return Err(io::Error::other("a sandbox must be started before any thread"));
        }
    }
    let streams = [io::stdin().as_fd().try_clone_to_owned(), io::stdout().as_fd().try_clone_to_owned()];
    for stream in streams.into_iter().flatten() {
        if File::from(stream).metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(io::Error::other("a standard stream is a directory"));
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn start(setup: SandboxLaunch, orders: &PipeWriter) -> io::Result<libc::pid_t> {
    super::linux::start(setup, orders)
}

#[cfg(not(target_os = "linux"))]
fn start(setup: SandboxLaunch, orders: &PipeWriter) -> io::Result<libc::pid_t> {
    match process::fork()? {
        Fork::Parent(child) => Ok(child),
        Fork::Child => {
            close_in_child(orders);
            super::seatbelt::keep(setup)
        }
    }
}

/// Closes the writing end of the pipe in a child: as long as any process has it, the pipe does not
/// end.
pub(super) fn close_in_child(orders: &PipeWriter) {
    use std::os::fd::AsRawFd as _;
    process::close_descriptor(orders.as_raw_fd());
}

/// Passes signals on until the child has ended.
fn forward(child: libc::pid_t, mut orders: PipeWriter, awaited: &[libc::c_int]) -> io::Result<u8> {
    loop {
        match process::wait_signal(awaited) {
            libc::SIGCHLD => {
                while let Ok(Some(ended)) = process::reap() {
                    if ended.pid == child {
                        return Ok(ended.code());
                    }
                }
            }
            libc::SIGALRM => {
                drop(orders);
                return Ok(process::wait(child)?.code());
            }
            signal => {
                let _ = orders.write_all(&[u8::try_from(signal).unwrap_or(0)]);
                if signal == libc::SIGHUP {
                    process::alarm(HANGUP_SECONDS);
                }
            }
        }
    }
}

/// Reads the report.
fn result(backend: Backend, code: u8, report: &str) -> io::Result<u8> {
    let (begun, failure) = match report.strip_prefix('+') {
        Some(failure) => (true, failure),
        None => (false, report),
    };
    if let Some((number, text)) = failure.split_once(' ') {
        let kind = match number.parse() {
            Ok(number) if number != 0 => io::Error::from_raw_os_error(number).kind(),
            _ => io::ErrorKind::Other,
        };
        return Err(io::Error::new(kind, text));
    }
    if !begun {
        return Err(io::Error::other(format!(
            "the {} sandbox did not start (exit code {code})",
            backend.name()
        )));
    }
    Ok(code)
}

/// Another descriptor to watch, and a handler for when it can be read.
pub(super) struct Extra<'a> {
    pub(super) descriptor: OwnedFd,
    pub(super) act: &'a mut dyn FnMut(&OwnedFd),
}

/// Waits next to the command, passes signals on to it and returns its exit code. `None` if the
/// outermost process is gone.
pub(super) fn watch(command: libc::pid_t, control: &OwnedFd, mut extra: Option<Extra<'_>>) -> Option<u8> {
    use std::os::fd::AsFd as _;
    let mut control = File::from(control.try_clone().ok()?);
    loop {
        loop {
            match process::reap() {
                Ok(Some(ended)) if ended.pid == command => return Some(ended.code()),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return None,
            }
        }
        let other = extra.as_ref().map(|extra| extra.descriptor.as_fd());
        let [ordered, asked] = process::wait_readable([Some(control.as_fd()), other]);
        if ordered {
            let mut signals = [0; 64];
            match control.read(&mut signals) {
                Ok(0) | Err(_) => return None,
                Ok(count) => signals[..count].iter().for_each(|signal| send(command, *signal)),
            }
        }
        if asked && let Some(Extra { descriptor, act }) = &mut extra {
            act(descriptor);
        }
    }
}

/// Sends a signal to the process group of the command. Right after its start it may not have one of
/// its own yet.
fn send(command: libc::pid_t, signal: u8) {
    let signal = libc::c_int::from(signal);
    if process::kill(-command, signal).is_err() {
        let _ = process::kill(command, signal);
    }
}

/// Applies the limits of a confinement to this process, and lets it leave no core dump.
pub(super) fn apply_limits(confinement: &Confinement) -> io::Result<()> {
    // A limit of zero does not keep the kernel from starting the program that collects core dumps;
    // a limit of one does.
    process::limit(Resource::CoreBytes, 1)?;
    if let Some(seconds) = confinement.limits.cpu_seconds {
        process::limit(Resource::CpuSeconds, seconds)?;
    }
    if let Some(bytes) = confinement.limits.file_bytes {
        process::limit(Resource::FileBytes, bytes)?;
    }
    Ok(())
}

/// Becomes the command, or answers a probe. Returns only if that fails.
pub(super) fn execute(command: &[OsString], variables: Vec<(OsString, OsString)>) -> io::Error {
    use std::os::unix::process::CommandExt as _;
    let Some((program, arguments)) = command.split_first() else {
        let mut output = io::stdout();
        let answered =
            output.write_all(super::backend::PROBE_ANSWER.as_bytes()).and_then(|()| output.flush());
        process::exit(if answered.is_ok() { 0 } else { ERROR_CODE });
    };
    let error = std::process::Command::new(program).args(arguments).env_clear().envs(variables).exec();
    io::Error::new(error.kind(), format!("cannot run `{}`: {error}", Path::new(program).display()))
}
