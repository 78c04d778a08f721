//! Cleanup by our own process, which adopts the descendants of a program that killed both of its
//! guardians.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libc::pid_t;

use super::process_tree;

static ADOPTING: AtomicBool = AtomicBool::new(false);

/// Makes this process a child subreaper.
pub(crate) fn adopt() {
    process_tree::adopt_orphans();
    ADOPTING.store(true, Ordering::Release);
}

/// The wait for killed processes before the next scan.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Empty scans in a row before the end: children of an ending thread move to another thread and may
/// be in neither list for a moment.
const EMPTY_SCANS: u32 = 3;

/// Kills and reaps the orphans that guardians of ours have left to this process, and all that they
/// start meanwhile. Gives up when none of them has ended for `patience`: then they hang in the
/// kernel. Does nothing unless [`adopt`] was called.
///
/// Children that this process has started in any other way, and what those left behind, do not
/// carry the mark of the guardians and are not touched.
pub(crate) fn end_all(patience: Duration) {
    if !ADOPTING.load(Ordering::Acquire) {
        return;
    }
    let mut last_end = Instant::now();
    let mut empty = 0;
    while empty < EMPTY_SCANS && last_end.elapsed() < patience {
        let orphans = orphans();
        empty = if orphans.is_empty() { empty + 1 } else { 0 };
        for pid in &orphans {
            process_tree::signal(*pid, libc::SIGKILL);
        }
        if orphans.into_iter().filter(|pid| process_tree::reap(*pid)).count() > 0 {
            last_end = Instant::now();
        } else {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Children of any thread of this process that carry the mark of its guardians.
fn orphans() -> Vec<pid_t> {
    let Some(own) = process_tree::descendant_mark(0) else { return Vec::new() };
    let mut children = children().unwrap_or_default();
    children.retain(|pid| process_tree::descendant_mark(*pid).is_some_and(|mark| mark < own));
    children
}

fn children() -> io::Result<Vec<pid_t>> {
    let mut children = Vec::new();
    for thread in fs::read_dir("/proc/self/task")? {
        let list = fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
        children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<pid_t>().ok()));
    }
    Ok(children)
}
