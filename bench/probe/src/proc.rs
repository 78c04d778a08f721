//! What a process costs, read from the kernel: memory, CPU time, context switches.

use std::fs;

/// A number of `/proc/PID/status`: kB for the memory keys, a plain count for `Threads`.
pub fn status(pid: u32, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| *name == key)
        .and_then(|(_, value)| value.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Resident memory now, in kB.
pub fn rss(pid: u32) -> u64 {
    status(pid, "VmRSS")
}

/// The most resident memory there ever was, in kB.
pub fn peak(pid: u32) -> u64 {
    status(pid, "VmHWM")
}

/// CPU time of all threads, ended ones included, in seconds.
pub fn cpu(pid: u32) -> f64 {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls only write through the pointers, which are valid for the whole call.
    let ok = unsafe {
        libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    if ok { time.tv_sec as f64 + time.tv_nsec as f64 / 1e9 } else { 0.0 }
}

/// Context switches, wanted or not, of all live threads.
pub fn switches(pid: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .flat_map(|text| {
            text.lines()
                .filter(|line| line.contains("ctxt_switches:"))
                .filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok())
                .collect::<Vec<_>>()
        })
        .sum()
}

/// Ends a process of ours that does not answer.
pub fn kill(pid: u32) {
    // SAFETY: no memory is involved; the caller names a child it has not yet reaped.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
}

/// Lowers the priority of this process; 19 is the lowest there is.
pub fn give_way(niceness: i32) {
    // SAFETY: no memory is involved.
    unsafe { libc::nice(niceness) };
}

/// Puts this process, and what it starts, ahead of everything else. Only root may; it starts a
/// session for that, because the scheduler groups processes by session and priorities count within
/// a group.
pub fn go_ahead() {
    // SAFETY: no memory is involved.
    let ahead = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) == 0 && libc::setsid() != -1 };
    if ahead {
        set_group_priority();
    }
}

/// Some clients start their agent in a session of its own, where its priority would count for
/// nothing.
pub fn stay_ahead() {
    // SAFETY: no memory is involved.
    let (niceness, session, parent) =
        unsafe { (libc::getpriority(libc::PRIO_PROCESS, 0), libc::getsid(0), libc::getppid()) };
    if niceness == -20 && session == parent {
        set_group_priority();
    }
}

fn set_group_priority() {
    // Where the kernel does not group by session there is no such file, and no need for it.
    let _ = fs::write("/proc/self/autogroup", "-20");
}

/// Raises the limit of open files of this process, and of what it starts, as far as it may: only
/// root can exceed the hard limit.
pub fn raise_open_files(wanted: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a value of the right type that lives through the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 || limit.rlim_cur >= wanted {
        return;
    }
    let raised = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) };
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: both pointers are to values of the right type that live through the calls.
    unsafe {
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) != 0 {
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Microseconds of the monotonic clock, which all processes of a machine share.
pub fn monotonic_us() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a value of the right type that lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}
