//! The guardians: processes between us and a child that clean up after our end.
//!
//! [`arm`] makes a command fork twice more just before it executes its program. The innermost
//! process becomes the program; the others never return into the caller's code. The inner guardian
//! keeps a control pipe and a status pipe, sleeps until something happens, and ends when the
//! program and all its descendants have.
//!
//! The outer guardian ([`outer`](super::outer), Linux only) is there for programs that attack the
//! inner one. Both are child subreapers: when one of them is killed, every orphan belongs to the
//! other, which kills them all at once. Our own process is the parent of the outer one and can take
//! over its orphans too ([`orphans`](super::orphans)).
//!
//! Everything below [`arm`] runs in a fork of a process with many threads. It therefore calls only
//! functions that are safe in a signal handler, takes no lock, allocates nothing and cannot panic.
//! All signals are blocked, so that none of the caller's handlers runs here; only `SIGCHLD` is let
//! in, while it sleeps.
//!
//! Signals go only to processes that this one has not reaped: its children (on Linux also the ones
//! that it adopted as subreaper) and the program's process group, whose number is kept from reuse
//! by leaving the program's own zombie in place until the end.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::time::Duration;

use libc::{c_int, pid_t};

use super::times::{DESCENDANT_GRACE, LAST_WAIT, Millis, ORPHAN_GRACE, POLL_INTERVAL, Times};
use super::{process_tree, pty};

/// The whole shutdown sequence: grace period, `SIGTERM`, grace period, `SIGKILL`.
pub(crate) const STOP: u8 = b'S';
/// The shutdown sequence from `SIGTERM` on.
pub(crate) const TERMINATE: u8 = b'T';
/// The last step of the shutdown sequence.
pub(crate) const KILL: u8 = b'K';

/// Parameters of the guardians.
pub(crate) struct Plan {
    /// The read end of the control pipe; its end means that our process is gone.
    pub(crate) control: OwnedFd,
    /// The write end of the status pipe, for two native `i32`: the program's process id at the
    /// start and its wait status at the end. Only the inner guardian holds it, so its end without a
    /// status means that the inner guardian was killed.
    pub(crate) status: OwnedFd,
    pub(crate) grace: Duration,
    pub(crate) term_grace: Duration,
    /// The program's stdin is a terminal, which becomes the one of its session.
    pub(crate) terminal: bool,
}

/// Makes the program of `command` start under guardians. The process id that `command` reports is
/// that of the outermost guardian. The descriptors of `plan` must be above 2 and close when
/// `command` is dropped.
pub(crate) fn arm(command: &mut Command, plan: Plan) {
    let times = Times { grace: Millis::of(plan.grace), term_grace: Millis::of(plan.term_grace) };
    let parent = std::process::id() as pid_t;
    let fork = move || {
        let (control, status) = (plan.control.as_raw_fd(), plan.status.as_raw_fd());
        // SAFETY: takes a local signal set.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &signals(&[]), ptr::null_mut()) };
        let outer = fork_outer(parent, times)?;
        fork_inner(outer, control, status, plan.terminal, times)
    };
    // SAFETY: all code between fork and exec is async-signal-safe, as this file promises.
    unsafe { command.pre_exec(fork) };
}

/// Wakes a guardian that was stopped; called by our process for a child that it has not reaped.
pub(crate) fn resume(guardian: u32) {
    process_tree::signal(guardian as pid_t, libc::SIGCONT);
}

/// Whether a child of our process has ended, and waits for that if asked to. Does not reap it.
pub(crate) fn has_ended(child: u32, wait: bool) -> bool {
    process_tree::has_ended(child as pid_t, wait)
}

/// Ends the remaining processes of a program whose guardians were killed.
#[cfg(target_os = "linux")]
pub(crate) fn end_orphans(_program: pid_t) {
    super::orphans::end_all(Duration::from_millis(LAST_WAIT.0.unsigned_abs()));
}

/// Without subreapers there is only the program's group. Its guardian has just died, so that its
/// number cannot have been reused yet.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_orphans(program: pid_t) {
    if program > 1 {
        process_tree::signal(-program, libc::SIGKILL);
    }
}

/// Runs in the process that was forked to become the program, and makes it the outer guardian.
/// Returns its process id in a child, which continues.
#[cfg(target_os = "linux")]
fn fork_outer(parent: pid_t, times: Times) -> io::Result<Option<pid_t>> {
    process_tree::adopt_orphans();
    // SAFETY: these calls take plain numbers and are async-signal-safe.
    unsafe {
        // Each guardian has a group of its own, so that no single signal reaches both.
        libc::setsid();
        let outer = libc::getpid();
        match fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(Some(outer)),
            inner => super::outer::run(inner, parent, times),
        }
    }
}

/// Without subreapers an outer guardian would not see the orphans of the inner one.
#[cfg(not(target_os = "linux"))]
fn fork_outer(_parent: pid_t, _times: Times) -> io::Result<Option<pid_t>> {
    Ok(None)
}

/// Makes this process the inner guardian. Returns in a child, which becomes the program.
fn fork_inner(
    outer: Option<pid_t>,
    control: RawFd,
    status: RawFd,
    terminal: bool,
    times: Times,
) -> io::Result<()> {
    // SAFETY: these calls take plain numbers and are async-signal-safe.
    unsafe {
        // A session without a terminal: keys like ctrl-C do not reach the program, and one that
        // would read from the terminal gets an error instead of being stopped.
        libc::setsid();
        process_tree::adopt_orphans();
        process_tree::mark_descendants();
        let guardian = libc::getpid();
        match fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                become_program(guardian, terminal);
                Ok(())
            }
            program => run_inner(program, outer, control, status, terminal, times),
        }
    }
}

/// A fork that runs no handlers which libraries have registered: they need not be safe here.
#[cfg(all(target_os = "linux", not(target_arch = "s390x")))]
fn fork() -> pid_t {
    // SAFETY: clone with no flags but the signal is fork; no pointer is passed. The child only
    // continues to exec, so that the C library's idea of the thread id, now stale, is never asked
    // for.
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as pid_t }
}

#[cfg(not(all(target_os = "linux", not(target_arch = "s390x"))))]
fn fork() -> pid_t {
    // SAFETY: this process has one thread, and both sides only make calls that are safe after a
    // fork.
    unsafe { libc::fork() }
}

/// Prepares the program: its own process group, and default signal handlers. On a terminal it
/// gets a session of its own, whose first group is just as well its own.
fn become_program(guardian: pid_t, terminal: bool) {
    // SAFETY: as above; `signal` refuses the numbers that cannot be set, which is fine. Descriptor
    // 0 is the program's stdin and stays open.
    unsafe {
        if terminal {
            libc::setsid();
            pty::take_as_own(BorrowedFd::borrow_raw(0));
        } else {
            libc::setpgid(0, 0);
        }
        if !process_tree::die_with(guardian) {
            libc::_exit(127);
        }
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
    }
}

/// Runs the inner guardian.
fn run_inner(
    program: pid_t,
    outer: Option<pid_t>,
    control: RawFd,
    status: RawFd,
    terminal: bool,
    times: Times,
) -> ! {
    if outer.is_some() {
        process_tree::wake_at_death_of_parent();
    }
    // SAFETY: the descriptors are open and above 2; the rest takes plain numbers.
    unsafe {
        // Both sides set the group, so that it exists in either order. But the leader of a group
        // cannot begin a session; there the group exists once the program does, which is before its
        // end can be ordered.
        if !terminal {
            libc::setpgid(program, program);
        }
        // Nothing that is open stays so: neither the program's pipes, which would never end, nor
        // the pipe by which our process learns that exec has worked, nor anything else of it.
        libc::dup2(control, CONTROL);
        libc::dup2(status, STATUS);
        close_from(STATUS + 1);
    }
    prepare_guardian(libc::SA_NOCLDSTOP);
    report(program);
    process_tree::release_memory();
    report(GuardedProgram::new(program, outer, times).watch());
    if let Some(outer) = outer
        && process_tree::is_parent(outer)
    {
        // Should the program have stopped it, it would stay for ever.
        process_tree::signal(outer, libc::SIGCONT);
    }
    // SAFETY: ends this process at once, without running anything of the process it was forked
    // from.
    unsafe { libc::_exit(0) }
}

/// The main function of a guardian, after all descriptors of our process are closed in it. `flags`
/// are those of the handler of `SIGCHLD`.
pub(super) fn prepare_guardian(flags: c_int) {
    // SAFETY: the handler does nothing, and the path is a string that lives for ever.
    unsafe {
        libc::chdir(c"/".as_ptr());
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = wake as extern "C" fn(c_int) as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGCHLD, &action, ptr::null_mut());
    }
    process_tree::open_children();
    process_tree::name_guardian();
}

const CONTROL: RawFd = 0;
const STATUS: RawFd = 1;

/// Interrupts `pselect`.
extern "C" fn wake(_: c_int) {}

/// All signals but these.
pub(super) fn signals(without: &[c_int]) -> libc::sigset_t {
    // SAFETY: a signal set is plain data, and is filled before it is used.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigfillset(&mut set);
        for &signal in without {
            libc::sigdelset(&mut set, signal);
        }
        set
    }
}

pub(super) fn close_from(first: RawFd) {
    // SAFETY: closing descriptors touches no memory; nothing in this process uses the ones above
    // `first`.
    unsafe {
        #[cfg(target_os = "linux")]
        if libc::syscall(libc::SYS_close_range, first, c_int::MAX, 0) == 0 {
            return;
        }
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        let end = limit.rlim_cur.min(1 << 20) as RawFd;
        for fd in first..end {
            libc::close(fd);
        }
    }
}

/// Writes a status. Four bytes always fit into the pipe, and a missing reader does not need them.
fn report(number: i32) {
    let bytes = number.to_ne_bytes();
    // SAFETY: reads as many bytes as the array has.
    unsafe { libc::write(STATUS, bytes.as_ptr().cast(), bytes.len()) };
}

/// Progress of the shutdown sequence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Serving,
    Closing,
    Terminating,
    Killing,
}

/// The program and its descendants.
struct GuardedProgram {
    program: pid_t,
    /// The outer guardian, as long as it lives.
    outer: Option<pid_t>,
    times: Times,
    step: Step,
    /// When the next step is due.
    due: Option<Millis>,
    /// The program has ended; it is not reaped before the end.
    ended: bool,
    /// Our process is alive and may send orders.
    ordered: bool,
}

impl GuardedProgram {
    fn new(program: pid_t, outer: Option<pid_t>, times: Times) -> Self {
        Self { program, outer, times, step: Step::Serving, due: None, ended: false, ordered: true }
    }

    /// Returns the program's wait status when all its processes have ended or cannot be ended.
    fn watch(&mut self) -> c_int {
        loop {
            self.check_children();
            if self.outer.is_some_and(|outer| !process_tree::is_parent(outer)) {
                // Only an attack ends it, and the next step of that would be to kill this process
                // too.
                self.outer = None;
                self.kill();
            }
            if self.ended && !self.reap_descendants() {
                return self.reap_program();
            }
            if self.due.is_some_and(|due| due <= Millis::now()) {
                match self.step {
                    Step::Serving => self.due = None,
                    Step::Closing => self.terminate(self.times.term_grace),
                    Step::Terminating => self.kill(),
                    Step::Killing => return self.reap_program(),
                }
                continue;
            }
            self.sleep();
        }
    }

    /// Reaps adopted processes and detects the end of the program without reaping it.
    fn check_children(&mut self) {
        while !self.ended {
            let Some(pid) = process_tree::ended_child() else { return };
            if pid == self.program {
                self.ended = true;
                match self.step {
                    Step::Killing => self.kill(),
                    _ => self.terminate(DESCENDANT_GRACE.min(self.times.term_grace)),
                }
            } else {
                process_tree::reap(pid);
            }
        }
    }

    /// Reaps descendants that the program left behind. Returns whether there are more.
    fn reap_descendants(&self) -> bool {
        loop {
            let (mut left, mut reaped) = (false, false);
            let known = process_tree::each_child(|pid| {
                if pid == self.program {
                    return;
                }
                if process_tree::reap(pid) {
                    reaped = true;
                    return;
                }
                left = true;
                // Those that appear after the order was given have lost their parent to it.
                if self.step == Step::Killing {
                    process_tree::signal(pid, libc::SIGKILL);
                }
            });
            // A long list is read in pieces, and one that shrinks meanwhile is not read whole.
            if !reaped {
                return if known { left } else { process_tree::group_lives(self.program) };
            }
        }
    }

    /// Reaps the program and returns its status. A program that cannot be ended is reported as
    /// killed.
    fn reap_program(&self) -> c_int {
        // The last moment at which the group's number is surely its own.
        process_tree::signal(-self.program, libc::SIGKILL);
        let mut status = libc::SIGKILL;
        // SAFETY: writes one number, to a place that is one.
        unsafe { libc::waitpid(self.program, &mut status, libc::WNOHANG) };
        status
    }

    fn sleep(&mut self) {
        let mut wait = self.due.map(Millis::left);
        if self.ended || self.step == Step::Killing {
            // Members of the group that are not our children end without a signal to us.
            wait = wait.min(Some(POLL_INTERVAL)).or(Some(POLL_INTERVAL));
        }
        if process_tree::sleep(
            self.ordered.then_some(CONTROL),
            wait.map(|wait| wait.0),
            &signals(&[libc::SIGCHLD]),
        ) {
            self.read_orders();
        }
    }

    fn read_orders(&mut self) {
        let mut orders = [0_u8; 16];
        // SAFETY: writes at most as many bytes as the array has.
        let n = unsafe { libc::read(CONTROL, orders.as_mut_ptr().cast(), orders.len()) };
        if n <= 0 {
            // Our process is gone, and the program's stdin with it.
            self.ordered = false;
            self.close(self.times.grace.min(ORPHAN_GRACE));
            return;
        }
        for order in orders.iter().take(n.unsigned_abs()) {
            match *order {
                STOP => self.close(self.times.grace),
                TERMINATE if self.step < Step::Terminating => self.terminate(self.times.term_grace),
                KILL if self.step < Step::Killing => self.kill(),
                _ => {}
            }
        }
    }

    fn close(&mut self, grace: Millis) {
        if self.step < Step::Closing {
            self.step = Step::Closing;
            self.due = Some(grace.later());
        } else if self.step == Step::Closing {
            self.due = self.due.min(Some(grace.later()));
        }
    }

    fn terminate(&mut self, grace: Millis) {
        self.step = Step::Terminating;
        self.due = Some(grace.later());
        self.signal_all(libc::SIGTERM);
        // A stopped process would sleep through it.
        self.signal_all(libc::SIGCONT);
    }

    fn kill(&mut self) {
        self.step = Step::Killing;
        self.due = Some(LAST_WAIT.later());
        self.signal_all(libc::SIGKILL);
    }

    /// Signals the program's group and the adopted descendants outside of it, each process once:
    /// many programs exit at once on a second `SIGTERM`.
    fn signal_all(&self, signal: c_int) {
        process_tree::signal(-self.program, signal);
        let outside = |pid| {
            if !process_tree::is_in_group(pid, self.program) {
                process_tree::signal(pid, signal);
            }
        };
        if !process_tree::each_child(outside) {
            outside(self.program);
        }
    }
}
