//! Shell scripts as children, and who is there by `/proc`.

use std::collections::BTreeSet;
use std::fs;

use attache_conn::process::Command;
pub(crate) use attache_testkit::processes::{Mark, await_state, is_gone, parent, status, until};

/// A shell script as the child, marked so that it and its descendants can be found.
pub(crate) fn script(mark: &Mark, text: &str) -> Command {
    Command::new("/bin/sh").arg("-c").arg(text).env(Mark::NAME, mark.value())
}

pub(crate) fn descriptors(pid: u32) -> Vec<u32> {
    let dir = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let mut fds: Vec<u32> = dir.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    fds.sort_unstable();
    fds
}

/// Descriptors that the starter of `pid` left open for every program.
pub(crate) fn inheritable(pid: u32) -> BTreeSet<u32> {
    const CLOEXEC: u32 = 0o2_000_000;
    let is_left_open = |fd: &u32| {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.is_some_and(|flags| u32::from_str_radix(flags.trim(), 8).unwrap() & CLOEXEC == 0)
    };
    descriptors(pid).into_iter().filter(is_left_open).collect()
}
