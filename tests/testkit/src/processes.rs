//! Processes that a test has marked, and their states, from `/proc`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A value in the environment of a process, which all its descendants inherit; or one of its
/// arguments, for those that clean their environment.
#[derive(Debug)]
pub struct Mark(String);

impl Mark {
    /// The variable.
    pub const NAME: &str = "ATTACHE_TEST_MARK";

    /// One that no other process carries.
    #[allow(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Mark(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The variable's value.
    pub fn value(&self) -> &str {
        &self.0
    }

    /// The mark as an argument.
    pub fn argument(&self) -> String {
        format!("{}={}", Self::NAME, self.0)
    }

    /// This test binary with other arguments, as a marked process that has not been started. The
    /// test writes its stdin and reads its stderr, since the test harness has words of its own on
    /// stdout.
    pub fn helper(&self, args: &[&str]) -> Command {
        let mut helper = Command::new(std::env::current_exe().expect("the path of this binary"));
        helper.args(args).env(Self::NAME, &self.0);
        helper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        helper
    }

    /// The living processes that carry the mark. A zombie has no environment, so it is not among
    /// them, and neither is for a moment a process that is just becoming another program.
    pub fn alive(&self) -> Vec<u32> {
        let wanted = self.argument();
        let carries = |pid: &u32| {
            ["environ", "cmdline"].iter().any(|file| {
                let strings = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                strings.split(|&b| b == 0).any(|string| string == wanted.as_bytes())
            })
        };
        pids().filter(carries).collect()
    }

    /// Waits until exactly `count` processes carry the mark.
    #[track_caller]
    pub fn await_count(&self, count: usize) {
        until(&format!("{count} processes with mark {}", self.0), || self.alive().len() == count);
    }

    /// Asserts that no process has the mark.
    #[track_caller]
    pub fn assert_none(&self) {
        let left = self.alive();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// Waits until no process has the mark, for processes that are not children of this one.
    #[track_caller]
    pub fn await_none(&self) {
        self.await_count(0);
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Polls a condition that the kernel does not report, and gives up after a minute.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if condition() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("still waiting for: {what}");
}

/// A field of `/proc/PID/status`.
pub fn status(pid: u32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Waits until the kernel has put `pid` into this state: `S` asleep, `T` stopped.
#[track_caller]
pub fn await_state(pid: u32, letter: char) {
    let is_there = || status(pid, "State").is_some_and(|state| state.starts_with(letter));
    until(&format!("process {pid} in state {letter}"), is_there);
}

/// The parent of a process.
#[track_caller]
pub fn parent(pid: u32) -> u32 {
    status(pid, "PPid").and_then(|parent| parent.parse().ok()).expect("no such process")
}

/// Not even a zombie.
pub fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}
