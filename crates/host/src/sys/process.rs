//! Processes of the sandbox: forks, signals, sessions, waiting, and what a process gives up before
//! it becomes the command.
//!
//! All of this runs in a process with one thread, so a forked child may do everything that its
//! parent could.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

use libc::{c_int, pid_t};

use super::checked;

/// The two sides of a fork.
pub(crate) enum Fork {
    /// The process that continues, with the id of its child.
    Parent(pid_t),
    /// The new process.
    Child,
}

/// Forks. The caller has one thread.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: with one thread no lock can be left held in the child.
    sides(unsafe { libc::fork() })
}

/// Forks a child that is the first process of new namespaces (`CLONE_NEW…`).
#[cfg(target_os = "linux")]
pub(crate) fn fork_into(namespaces: c_int) -> io::Result<Fork> {
    let flags = namespaces | libc::SIGCHLD;
    // SAFETY: clone without a stack and without shared memory is fork; no pointer is passed.
    sides(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } as pid_t)
}

fn sides(result: pid_t) -> io::Result<Fork> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent(child)),
    }
}

/// Ends this process at once, without what the program has registered for its end.
pub(crate) fn exit(code: u8) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(c_int::from(code)) }
}

/// Begins a session without a controlling terminal. Does nothing in a process that leads one.
pub(crate) fn new_session() {
    // SAFETY: takes nothing.
    unsafe { libc::setsid() };
}

/// Sends a signal to a process, or with a negative number to a process group.
pub(crate) fn kill(pid: pid_t, signal: c_int) -> io::Result<()> {
    // SAFETY: takes numbers.
    checked(unsafe { libc::kill(pid, signal) })
}

/// How a child has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) pid: pid_t,
    status: c_int,
}

impl Ended {
    /// The exit code in the way of shells: 128 and the number of the signal that ended the process.
    pub(crate) fn code(self) -> u8 {
        let code = if libc::WIFSIGNALED(self.status) {
            128 + libc::WTERMSIG(self.status)
        } else {
            libc::WEXITSTATUS(self.status)
        };
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

/// Takes the status of a child that has ended, if there is one. An error means that there are no
/// children.
pub(crate) fn reap() -> io::Result<Option<Ended>> {
    wait_for(-1, libc::WNOHANG)
}

/// Waits for the end of a child.
pub(crate) fn wait(pid: pid_t) -> io::Result<Ended> {
    wait_for(pid, 0)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

fn wait_for(pid: pid_t, flags: c_int) -> io::Result<Option<Ended>> {
    loop {
        let mut status = 0;
        // SAFETY: writes one number, to a place that is one.
        match unsafe { libc::waitpid(pid, &mut status, flags) } {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            pid => return Ok(Some(Ended { pid, status })),
        }
    }
}

fn set_of(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: a signal set is plain data, and is initialised before it is used.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Blocks these signals; they wait for [`wait_signal`] or [`wait_readable`].
pub(crate) fn block_signals(signals: &[c_int]) {
    // SAFETY: reads a set of signals.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &set_of(signals), ptr::null_mut()) };
}

/// Waits for one of these signals, which are blocked.
pub(crate) fn wait_signal(signals: &[c_int]) -> c_int {
    let mut signal = 0;
    // SAFETY: reads a set of signals and writes one number. It fails for a set without valid
    // signals only.
    unsafe { libc::sigwait(&set_of(signals), &mut signal) };
    signal
}

/// Whether the caller of this program has asked to ignore a signal, as `nohup` does.
pub(crate) fn is_ignored(signal: c_int) -> bool {
    // SAFETY: the call writes one `sigaction`, to a place that is one.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Sets all signals to their defaults and blocks none, as a command expects.
pub(crate) fn reset_signals() {
    // SAFETY: numbers and a local set; signals that cannot be set are refused without effect.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &set_of(&[]), ptr::null_mut());
    }
}

/// Sends `SIGALRM` to this process after some seconds.
pub(crate) fn alarm(seconds: u32) {
    // SAFETY: takes a number.
    unsafe { libc::alarm(seconds) };
}

/// Makes [`wait_readable`] return when a child ends.
pub(crate) fn wake_on_child() {
    extern "C" fn wake(_: c_int) {}
    block_signals(&[libc::SIGCHLD]);
    // SAFETY: the handler does nothing; the structure is initialised.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = wake as extern "C" fn(c_int) as usize;
        libc::sigaction(libc::SIGCHLD, &action, ptr::null_mut());
    }
}

/// Waits until one of the descriptors can be read or a child has ended (see [`wake_on_child`]).
/// Says which can be read.
pub(crate) fn wait_readable<const N: usize>(descriptors: [Option<BorrowedFd<'_>>; N]) -> [bool; N] {
    let raw = descriptors.map(|descriptor| descriptor.map(|descriptor| descriptor.as_raw_fd()));
    // SAFETY: the set is initialised, the numbers are below its size, and everything lives across
    // the call.
    unsafe {
        let mut set: libc::fd_set = mem::zeroed();
        libc::FD_ZERO(&mut set);
        let mut end = 0;
        for fd in raw.into_iter().flatten().filter(|fd| (*fd as usize) < libc::FD_SETSIZE) {
            libc::FD_SET(fd, &mut set);
            end = end.max(fd + 1);
        }
        let none = set_of(&[]);
        let count = libc::pselect(end, &mut set, ptr::null_mut(), ptr::null_mut(), ptr::null(), &none);
        raw.map(|fd| count > 0 && fd.is_some_and(|fd| libc::FD_ISSET(fd, &set)))
    }
}

/// Closes all descriptors from `first` on, except for those in `keep`.
pub(crate) fn close_descriptors(first: RawFd, keep: &[RawFd]) {
    let mut keep: Vec<RawFd> = keep.iter().copied().filter(|fd| *fd >= first).collect();
    keep.sort_unstable();
    let mut from = first;
    for fd in keep {
        close_range(from, fd - 1);
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
}

/// Closes one descriptor that this process has inherited by a fork and does not use as a value.
pub(crate) fn close_descriptor(fd: RawFd) {
    close_range(fd, fd);
}

fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: the caller gives up these descriptors, and owns none of them as a value.
    unsafe {
        #[cfg(target_os = "linux")]
        if libc::syscall(libc::SYS_close_range, first, last, 0) == 0 {
            return;
        }
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        let end = RawFd::try_from(limit.rlim_cur).unwrap_or(RawFd::MAX).min(1 << 20);
        for fd in first..=last.min(end) {
            libc::close(fd);
        }
    }
}

/// The effective user of this process.
pub(crate) fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// A resource with a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Resource {
    CpuSeconds,
    FileBytes,
    CoreBytes,
}

/// Lowers a limit of this process, if it is not lower already.
pub(crate) fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let resource = match resource {
        Resource::CpuSeconds => libc::RLIMIT_CPU,
        Resource::FileBytes => libc::RLIMIT_FSIZE,
        Resource::CoreBytes => libc::RLIMIT_CORE,
    };
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the calls write and read one `rlimit` each.
    unsafe {
        checked(libc::getrlimit(resource, &mut old))?;
        let value = old.rlim_max.min(value as libc::rlim_t);
        checked(libc::setrlimit(resource, &libc::rlimit { rlim_cur: value, rlim_max: value }))
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{FromRawFd, OwnedFd};

    use super::*;

    fn prctl(option: c_int, value: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the options that are used here take numbers.
        checked(unsafe { libc::prctl(option, value, 0, 0, 0) })
    }

    /// Waits for the end of any child. An error means that there are none.
    pub(crate) fn wait_any() -> io::Result<Ended> {
        wait(-1)
    }

    /// Whether the writing end of a pipe has been closed everywhere.
    pub(crate) fn is_abandoned(pipe: BorrowedFd<'_>) -> bool {
        let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one structure is read and written.
        unsafe { libc::poll(&mut poll, 1, 0) > 0 && poll.revents & libc::POLLHUP != 0 }
    }

    /// Takes over a descriptor that the program was started with.
    pub(crate) fn take_descriptor(fd: RawFd) -> io::Result<OwnedFd> {
        // SAFETY: numbers only; afterwards the descriptor is known to be open, and the caller
        // passes each one once.
        unsafe {
            checked(libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC))?;
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }

    /// Lets a descriptor stay open when this process executes a program.
    pub(crate) fn inherit(descriptor: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: the descriptor is open; numbers only.
        checked(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) })
    }

    /// Ends this process when its parent ends. The caller has to check afterwards that the parent
    /// is still there.
    pub(crate) fn die_with_parent() -> io::Result<()> {
        prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)
    }

    /// Makes orphaned descendants children of this process.
    pub(crate) fn adopt_orphans() -> io::Result<()> {
        prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
    }

    /// Keeps other processes of the same user from the memory, descriptors and environment of this
    /// one.
    pub(crate) fn hide_memory() -> io::Result<()> {
        prctl(libc::PR_SET_DUMPABLE, 0)
    }

    /// Gives up the right to gain privileges by executing a program.
    pub(crate) fn no_new_privileges() -> io::Result<()> {
        prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
    }

    /// Drops all capabilities, also those that the user `root` would get back by executing a
    /// program.
    pub(crate) fn drop_capabilities() -> io::Result<()> {
        #[repr(C)]
        struct Header {
            version: u32,
            pid: c_int,
        }
        const VERSION_3: u32 = 0x2008_0522;
        /// `SECBIT_NOROOT`, `SECBIT_NO_CAP_AMBIENT_RAISE` and their locks.
        const SECURE_BITS: libc::c_ulong = 0b1100_0011;
        // Only a process with capabilities may do these; one without has nothing to lose.
        let _ = prctl(libc::PR_SET_SECUREBITS, SECURE_BITS);
        for capability in 0..64 {
            if prctl(libc::PR_CAPBSET_DROP, capability).is_err() {
                break;
            }
        }
        let _ = prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong);
        let header = Header { version: VERSION_3, pid: 0 };
        let none = [[0_u32; 3]; 2];
        // SAFETY: the header and the two sets have the layout of version 3 and live across the
        // call.
        checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) } as c_int)
    }

    /// An anonymous file with this content, for a program that reads it from a descriptor.
    pub(crate) fn anonymous_file(content: &[u8]) -> io::Result<OwnedFd> {
        use std::io::{Seek as _, Write as _};
        // SAFETY: the name ends with a zero byte.
        let fd = unsafe { libc::memfd_create(c"sandbox".as_ptr(), libc::MFD_CLOEXEC) };
        checked(fd)?;
        // SAFETY: the system has just made this descriptor for us.
        let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        file.write_all(content)?;
        file.rewind()?;
        Ok(file.into())
    }

    /// Brings the loopback interface of this network namespace up.
    pub(crate) fn raise_loopback() -> io::Result<()> {
        // SAFETY: a socket is made and owned; the request is plain data of the size that the calls
        // expect.
        unsafe {
            let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            checked(fd)?;
            let socket = OwnedFd::from_raw_fd(fd);
            let mut request: libc::ifreq = mem::zeroed();
            request.ifr_name[0] = b'l' as libc::c_char;
            request.ifr_name[1] = b'o' as libc::c_char;
            checked(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &mut request))?;
            request.ifr_ifru.ifru_flags |= (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
            checked(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request))
        }
    }

    /// The effective user and group of this process.
    pub(crate) fn user_and_group() -> (u32, u32) {
        // SAFETY: the calls take nothing and cannot fail.
        unsafe { (libc::geteuid(), libc::getegid()) }
    }
}
