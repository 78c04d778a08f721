//! The outer guardian: watches the inner one and ends everything if the inner one cannot.
//!
//! It holds nothing of our process and takes no orders. As long as the inner guardian lives, all
//! orphans are that one's; they become children of this process in the moment in which the inner
//! one dies. Keeps to the rules of [`guardian`](super::guardian).

use libc::pid_t;

use super::guardian::{close_from, prepare_guardian, signals};
use super::process_tree::{self, ChildState, Reaped};
use super::times::{LAST_WAIT, Millis, POLL_INTERVAL, Times};

/// How often the inner guardian may be stopped. Only an attacker stops it: neither terminal keys
/// nor a stopped process group reach it.
const MAX_STOPS: u32 = 3;

/// Runs the outer guardian.
pub(super) fn run(inner: pid_t, parent: pid_t, times: Times) -> ! {
    process_tree::wake_at_death_of_parent();
    close_from(0);
    prepare_guardian(0);
    process_tree::release_memory();
    await_end(inner, parent, times);
    kill_children();
    // SAFETY: ends this process at once, without running anything of the process it was forked
    // from.
    unsafe { libc::_exit(0) }
}

/// Waits for the end of the inner guardian, and kills it if it cannot do its work.
fn await_end(inner: pid_t, parent: pid_t, times: Times) {
    let mut stops = 0_u32;
    // Set when our process is gone. The inner guardian sees that by itself, unless another process
    // keeps its control pipe open.
    let mut due: Option<Millis> = None;
    loop {
        match process_tree::state_of(inner) {
            ChildState::Ended => return,
            ChildState::Stopped => {
                stops = stops.saturating_add(1);
                let signal = if stops > MAX_STOPS { libc::SIGKILL } else { libc::SIGCONT };
                process_tree::signal(inner, signal);
                continue;
            }
            ChildState::Unchanged => {}
        }
        if due.is_none() && !process_tree::is_parent(parent) {
            due = Some(times.of_orphans().later());
        }
        if due.is_some_and(|due| due <= Millis::now()) {
            process_tree::signal(inner, libc::SIGKILL);
            due = Some(POLL_INTERVAL.later());
        }
        process_tree::sleep(None, due.map(|due| due.left().0), &signals(&[libc::SIGCHLD]));
    }
}

/// Kills and reaps until there is nothing left, also of processes that fork faster than they can be
/// counted: each of them becomes a child of this process when its parent is killed.
fn kill_children() {
    // Runs out only on processes that hang in the kernel.
    let mut due = LAST_WAIT.later();
    loop {
        process_tree::each_child(|pid| {
            process_tree::signal(pid, libc::SIGKILL);
        });
        let mut reaped = false;
        loop {
            match process_tree::reap_any() {
                Reaped::One => reaped = true,
                Reaped::None => break,
                Reaped::NoChildren => return,
            }
        }
        if reaped {
            due = LAST_WAIT.later();
        } else if due <= Millis::now() {
            return;
        } else {
            process_tree::sleep(None, Some(POLL_INTERVAL.0), &signals(&[libc::SIGCHLD]));
        }
    }
}
