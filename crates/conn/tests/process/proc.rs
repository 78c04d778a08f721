//! Shell scripts as children, and who is there by `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use attache_conn::process::Command;

/// A value in the environment of a process, which all its descendants inherit.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) const NAME: &str = "ATTACHE_TEST_MARK";

    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn value(&self) -> &str {
        &self.0
    }

    /// The living processes that carry the mark.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let wanted = format!("{}={}", Self::NAME, self.0);
        let carries = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|&b| b == 0).any(|var| var == wanted.as_bytes())
        };
        pids().filter(carries).collect()
    }

    /// Waits until exactly `count` processes carry the mark. One that is just becoming another program has no
    /// environment for a moment, so a single look may see too few.
    pub(crate) fn await_count(&self, count: usize) {
        until(&format!("{count} processes with mark {}", self.0), || self.alive().len() == count);
    }

    pub(crate) fn assert_none(&self) {
        let left = self.alive();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// For ends that nothing in this process can wait for. A zombie has no environment, so it is not seen here.
    pub(crate) fn await_none(&self) {
        until(&format!("no process with mark {}", self.0), || self.alive().is_empty());
    }
}

/// A shell script as the child, marked so that it and its descendants can be found.
pub(crate) fn script(mark: &Mark, text: &str) -> Command {
    Command::new("/bin/sh").arg("-c").arg(text).env(Mark::NAME, mark.value())
}

/// Looks again and again, for some condition that the kernel does not tell us of, and gives up after a minute.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if condition() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("still waiting for: {what}");
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// A field of `/proc/PID/status`.
pub(crate) fn status(pid: u32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Waits until the kernel has put `pid` into this state: `S` asleep, `T` stopped.
pub(crate) fn await_state(pid: u32, letter: char) {
    until(&format!("process {pid} in state {letter}"), || {
        status(pid, "State").is_some_and(|s| s.starts_with(letter))
    });
}

pub(crate) fn parent(pid: u32) -> u32 {
    status(pid, "PPid").expect("no such process").parse().unwrap()
}

/// Not even a zombie.
pub(crate) fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

pub(crate) fn descriptors(pid: u32) -> Vec<u32> {
    let dir = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let mut fds: Vec<u32> = dir.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    fds.sort_unstable();
    fds
}

/// Those that whoever started `pid` has left open for every program.
pub(crate) fn inheritable(pid: u32) -> BTreeSet<u32> {
    const CLOEXEC: u32 = 0o2_000_000;
    let is_left_open = |fd: &u32| {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.is_some_and(|flags| u32::from_str_radix(flags.trim(), 8).unwrap() & CLOEXEC == 0)
    };
    descriptors(pid).into_iter().filter(is_left_open).collect()
}
