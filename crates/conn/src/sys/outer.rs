//! The outer guardian: watches the inner one, and ends everything if that cannot do so any more.
//!
//! It holds nothing of our process and takes no orders. As long as the inner guardian lives, all orphans are that one's;
//! they become children of this process in the moment in which the inner one dies. Keeps to the rules of
//! [`guardian`](super::guardian).

use libc::pid_t;

use super::guardian::{close_from, settle, signals};
use super::kin::{self, ChildState, Reaped};
use super::times::{GLANCE, LAST_WAIT, Millis, Times};

/// How often the inner guardian may be stopped. Nobody but an attacker has a reason to do it even once: neither keys of
/// a terminal nor a stopped process group reach it.
const MAX_STOPS: u32 = 3;

/// The outer guardian's life.
pub(super) fn keep_watch(inner: pid_t, parent: pid_t, times: Times) -> ! {
    kin::wake_at_death_of_parent();
    close_from(0);
    settle(0);
    kin::let_memory_go();
    await_end(inner, parent, times);
    kill_children();
    // SAFETY: ends this process at once, without running anything of the process it was forked from.
    unsafe { libc::_exit(0) }
}

/// Returns when the inner guardian has ended, which it is made to if it has no chance to do its work.
fn await_end(inner: pid_t, parent: pid_t, times: Times) {
    let mut stops = 0_u32;
    // Set when our process is gone. The inner guardian sees that by itself, unless somebody keeps its control pipe open.
    let mut due: Option<Millis> = None;
    loop {
        match kin::state_of(inner) {
            ChildState::Ended => return,
            ChildState::Stopped => {
                stops = stops.saturating_add(1);
                let signal = if stops > MAX_STOPS { libc::SIGKILL } else { libc::SIGCONT };
                kin::signal(inner, signal);
                continue;
            }
            ChildState::Unchanged => {}
        }
        if due.is_none() && !kin::is_parent(parent) {
            due = Some(times.of_orphans().later());
        }
        if due.is_some_and(|due| due <= Millis::now()) {
            kin::signal(inner, libc::SIGKILL);
            due = Some(GLANCE.later());
        }
        kin::sleep(None, due.map(|due| due.left().0), &signals(&[libc::SIGCHLD]));
    }
}

/// Kills and reaps until there is nothing left, also of processes that fork faster than they can be counted: each
/// of them becomes a child of this process when its parent is killed.
fn kill_children() {
    // Runs out only on processes that hang in the kernel.
    let mut due = LAST_WAIT.later();
    loop {
        kin::each_child(|pid| {
            kin::signal(pid, libc::SIGKILL);
        });
        let mut reaped = false;
        loop {
            match kin::reap_any() {
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
            kin::sleep(None, Some(GLANCE.0), &signals(&[libc::SIGCHLD]));
        }
    }
}
