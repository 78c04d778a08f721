//! System calls of the guardians: listing, signalling and reaping children, and sleeping.
//!
//! All of it runs after a fork and keeps to the rules of [`guardian`](super::guardian).

use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::ptr;

use libc::{c_int, pid_t};

/// Returns a child that has ended and is not reaped yet.
pub(super) fn ended_child() -> Option<pid_t> {
    peek(libc::P_ALL, 0).filter(|&pid| pid != 0)
}

/// `None`: no such child. Zero: none of them has ended.
fn peek(which: libc::idtype_t, pid: pid_t) -> Option<pid_t> {
    // SAFETY: siginfo_t is plain data; waitid fills it in, or leaves the zeros when nothing has
    // ended.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        match libc::waitid(which, pid as libc::id_t, &mut info, flags) {
            // macOS reports stopped children too, although it was not asked to.
            0 if !matches!(info.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) => Some(0),
            0 => Some(info.si_pid()),
            _ => None,
        }
    }
}

/// Whether a child has ended; it is not reaped.
pub(super) fn has_ended(child: pid_t, wait: bool) -> bool {
    let wait = if wait { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: siginfo_t is plain data; waitid fills it in, or leaves the zeros when nothing has
        // ended.
        unsafe {
            let mut info: libc::siginfo_t = mem::zeroed();
            let flags = libc::WEXITED | libc::WNOWAIT | wait;
            match libc::waitid(libc::P_PID, child as libc::id_t, &mut info, flags) {
                0 => return info.si_pid() == child,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                // There is no such child.
                _ => return true,
            }
        }
    }
}

/// Reaps a child that has ended. Returns whether it is gone.
pub(super) fn reap(pid: pid_t) -> bool {
    // SAFETY: the status is not asked for.
    unsafe { libc::waitpid(pid, ptr::null_mut(), libc::WNOHANG) != 0 }
}

/// Signals a process, or with a negative number a group. Returns whether it exists.
pub(super) fn signal(pid: pid_t, signal: c_int) -> bool {
    // SAFETY: takes plain numbers. Callers pass only processes that are not reaped, so it cannot
    // hit another one.
    unsafe { libc::kill(pid, signal) == 0 }
}

pub(super) fn is_parent(pid: pid_t) -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getppid() == pid }
}

pub(super) fn is_in_group(pid: pid_t, group: pid_t) -> bool {
    // SAFETY: takes a plain number.
    unsafe { libc::getpgid(pid) == group }
}

/// Whether there are more members than the zombie of its leader. Linux counts that zombie, so there
/// the answer must come from the list of children; without it, there is no wait.
pub(super) fn group_lives(group: pid_t) -> bool {
    !cfg!(target_os = "linux") && signal(-group, 0)
}

/// Sleeps until `fd` is readable, a signal outside of `mask` arrives or `millis` have passed.
/// Returns whether `fd` is readable.
pub(super) fn sleep(fd: Option<RawFd>, millis: Option<i64>, mask: &libc::sigset_t) -> bool {
    // SAFETY: the set and the time are local and initialised; `fd` is far below FD_SETSIZE.
    unsafe {
        let mut set: libc::fd_set = mem::zeroed();
        libc::FD_ZERO(&mut set);
        if let Some(fd) = fd {
            libc::FD_SET(fd, &mut set);
        }
        let mut time: libc::timespec = mem::zeroed();
        let mut limit = ptr::null();
        if let Some(millis) = millis {
            time.tv_sec = (millis / 1_000) as _;
            time.tv_nsec = (millis % 1_000 * 1_000_000) as _;
            limit = &raw const time;
        }
        let count = fd.map_or(0, |fd| fd.wrapping_add(1));
        libc::pselect(count, &mut set, ptr::null_mut(), ptr::null_mut(), limit, mask) > 0
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{ChildState, descendant_mark};
#[cfg(target_os = "linux")]
pub(super) use linux::{
    Reaped, adopt_orphans, die_with, each_child, mark_descendants, name_guardian, open_children, reap_any,
    release_memory, state_of, wake_at_death_of_parent,
};

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CStr;
    use std::mem;
    use std::os::fd::RawFd;
    use std::ptr;

    use libc::{c_int, c_ulong, pid_t};

    /// Where each guardian keeps the list of its children open: a program of the same user can
    /// forbid it to open files.
    const CHILDREN: RawFd = 2;

    /// Orphaned descendants become our children, and not those of the first process of the system.
    pub(in super::super) fn adopt_orphans() {
        prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }

    /// If the guardian is killed, the program is killed with it. Safe to rely on here, unlike in a
    /// program with threads: the guardian has just one, and the signal follows the thread. False if
    /// it is dead already.
    pub(in super::super) fn die_with(guardian: pid_t) -> bool {
        prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
        // SAFETY: takes nothing and cannot fail.
        unsafe { libc::getppid() == guardian }
    }

    /// Interrupts the sleep of this process when its parent dies, or the thread of its parent that
    /// started it: the caller then asks [`is_parent`](super::is_parent).
    pub(in super::super) fn wake_at_death_of_parent() {
        prctl(libc::PR_SET_PDEATHSIG, libc::SIGCHLD as c_ulong);
    }

    /// Marks this process and all its descendants, for ever unless they have the privileges of
    /// root: their hard limit of file locks, which no kernel since 2.4 looks at, is one less than
    /// that of the process that started the guardians. Nested guardians count further down.
    pub(in super::super) fn mark_descendants() {
        // SAFETY: reads one limit, from a place that is one.
        unsafe {
            let hard = descendant_mark(0).unwrap_or(libc::RLIM_INFINITY).saturating_sub(1);
            let limit = libc::rlimit { rlim_cur: hard, rlim_max: hard };
            libc::setrlimit(libc::RLIMIT_LOCKS, &limit);
        }
    }

    /// The mark of a process, or of this one for 0: descendants of guardians have a smaller one
    /// than the process that started these. `None` if it may not be asked for.
    pub(in super::super) fn descendant_mark(pid: pid_t) -> Option<libc::rlim_t> {
        // SAFETY: the limit is plain data, written by the call.
        unsafe {
            let mut limit: libc::rlimit = mem::zeroed();
            let done = libc::prlimit(pid, libc::RLIMIT_LOCKS, ptr::null(), &mut limit);
            (done == 0).then_some(limit.rlim_max)
        }
    }

    /// Change of a child since the last query.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(in super::super) enum ChildState {
        Unchanged,
        Stopped,
        /// It has ended, and is not reaped.
        Ended,
    }

    pub(in super::super) fn state_of(child: pid_t) -> ChildState {
        match super::peek(libc::P_PID, child) {
            Some(0) => {}
            _ => return ChildState::Ended,
        }
        // SAFETY: siginfo_t is plain data; waitid fills it in, or leaves the zeros when nothing has
        // happened.
        unsafe {
            let mut info: libc::siginfo_t = mem::zeroed();
            libc::waitid(libc::P_PID, child as libc::id_t, &mut info, libc::WSTOPPED | libc::WNOHANG);
            if info.si_pid() == child { ChildState::Stopped } else { ChildState::Unchanged }
        }
    }

    /// Result of [`reap_any`].
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(in super::super) enum Reaped {
        One,
        /// There are children, and none of them has ended.
        None,
        NoChildren,
    }

    pub(in super::super) fn reap_any() -> Reaped {
        // SAFETY: the status is not asked for.
        match unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG) } {
            0 => Reaped::None,
            1.. => Reaped::One,
            _ => Reaped::NoChildren,
        }
    }

    /// Sets the process name that `ps` and `top` show.
    pub(in super::super) fn name_guardian() {
        prctl(libc::PR_SET_NAME, c"attache-guard".as_ptr() as c_ulong);
    }

    fn prctl(option: c_int, value: c_ulong) {
        // SAFETY: the options used take a number, or a string that lives for ever.
        unsafe { libc::prctl(option, value, 0, 0, 0) };
    }

    /// Opens the list that [`each_child`] reads.
    pub(in super::super) fn open_children() {
        // SAFETY: the path ends with a zero byte; the rest takes plain numbers.
        unsafe {
            let fd = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if fd >= 0 && fd != CHILDREN {
                libc::dup2(fd, CHILDREN);
                libc::close(fd);
            }
        }
    }

    /// Calls `f` with every child. False when the system does not list them.
    pub(in super::super) fn each_child(mut f: impl FnMut(pid_t)) -> bool {
        let mut found = false;
        let mut number = None;
        // SAFETY: takes plain numbers.
        if unsafe { libc::lseek(CHILDREN, 0, libc::SEEK_SET) } != 0 {
            return false;
        }
        read_bytes(CHILDREN, |byte| {
            if byte.is_ascii_digit() {
                let digit = pid_t::from(byte & 0x0f);
                number = Some(number.unwrap_or(0_i32).wrapping_mul(10).wrapping_add(digit));
            } else if let Some(pid) = number.take() {
                // A /proc of another pid namespace speaks of other numbers.
                if super::peek(libc::P_PID, pid).is_some() {
                    found = true;
                    f(pid);
                }
            }
        });
        found
    }

    /// Mappings smaller than this are not worth a system call.
    const WORTHWHILE: usize = 256 * 1024;

    /// The guardian began as a copy of our process, and every page that we have written to since
    /// then would exist twice. It needs none of them: what it uses is on its stack, and the C
    /// library's `errno`.
    pub(in super::super) fn release_memory() {
        let here = 0_u8;
        let mut line = Line::default();
        each_byte(c"/proc/self/maps", |byte| {
            if byte != b'\n' {
                line.push(byte);
                return;
            }
            let Line { start, end, private, anonymous, .. } = line;
            line = Line::default();
            // SAFETY: returns the address of a variable.
            let errno = unsafe { libc::__errno_location() } as usize;
            let used = [&raw const here as usize, errno].iter().any(|used| (start..end).contains(used));
            if private && anonymous && !used && end.saturating_sub(start) >= WORTHWHILE {
                // SAFETY: nothing in this range is read or written any more; afterwards it reads as
                // zeros.
                unsafe {
                    libc::madvise(start as *mut libc::c_void, end.wrapping_sub(start), libc::MADV_DONTNEED)
                };
            }
        });
    }

    /// One line of `/proc/self/maps`, read byte by byte: `start-end rw-p offset device inode path`.
    #[derive(Clone, Copy, Default)]
    struct Line {
        field: u8,
        start: usize,
        end: usize,
        /// The permissions are `rw-p`.
        private: bool,
        permission: u8,
        /// The inode is 0, as of the heap, of stacks and of what was mapped without a file.
        anonymous: bool,
    }

    impl Line {
        fn push(&mut self, byte: u8) {
            let hex = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as usize;
            match (self.field, byte) {
                (0, b'-') => self.field = 1,
                (_, b' ') => {
                    self.field = self.field.saturating_add(1);
                    self.private = if self.field == 2 { true } else { self.private };
                    self.anonymous = if self.field == 5 { true } else { self.anonymous };
                }
                (0, digit) => self.start = self.start << 4 | hex(digit),
                (1, digit) => self.end = self.end << 4 | hex(digit),
                (2, letter) => {
                    self.private &= b"rw-p".get(self.permission as usize) == Some(&letter);
                    self.permission = self.permission.wrapping_add(1);
                }
                (5, digit) => self.anonymous &= digit == b'0',
                _ => {}
            }
        }
    }

    /// Reads a file through a buffer on the stack.
    fn each_byte(path: &CStr, f: impl FnMut(u8)) {
        // SAFETY: the path ends with a zero byte; the descriptor is ours.
        unsafe {
            let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if fd >= 0 {
                read_bytes(fd, f);
                libc::close(fd);
            }
        }
    }

    fn read_bytes(fd: RawFd, mut f: impl FnMut(u8)) {
        let mut buffer = [0_u8; 4096];
        loop {
            // SAFETY: writes at most as many bytes as the buffer has.
            let n = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
            if n <= 0 {
                return;
            }
            buffer.iter().take(n.unsigned_abs()).for_each(|&byte| f(byte));
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use other::{
    adopt_orphans, die_with, each_child, mark_descendants, name_guardian, open_children, release_memory,
    wake_at_death_of_parent,
};

/// Systems that neither give us orphans nor list children: there the process group is all.
#[cfg(not(target_os = "linux"))]
mod other {
    use libc::pid_t;

    pub(in super::super) fn adopt_orphans() {}

    pub(in super::super) fn die_with(_guardian: pid_t) -> bool {
        true
    }

    pub(in super::super) fn wake_at_death_of_parent() {}

    pub(in super::super) fn mark_descendants() {}

    pub(in super::super) fn open_children() {}

    pub(in super::super) fn name_guardian() {}

    pub(in super::super) fn release_memory() {}

    pub(in super::super) fn each_child(_f: impl FnMut(pid_t)) -> bool {
        false
    }
}
