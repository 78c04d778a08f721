//! Prompts: one shot, or in a session that a process of its own keeps alive.
//!
//! A turn is run by `turn.rs`, in this process for `exec` and in the session's owner for `prompt`.
//! A `Renderer` shows its messages and asks for permission: on this terminal, through another
//! process, or not at all. `live.rs` is an agent with its session, started from `setup.rs` and
//! limited by `permits.rs`. `owner.rs` is the process of a session, `reach.rs` finds or starts it,
//! `protocol.rs` and `socket.rs` are how commands talk to it.

mod ask;
mod asker;
mod compare;
mod control;
mod exec;
mod input;
mod live;
mod mcp;
#[cfg(unix)]
mod owner;
#[cfg(unix)]
mod owner_limits;
mod permits;
mod prompt;
#[cfg_attr(not(unix), allow(dead_code, reason = "there is no owner process"))]
mod protocol;
#[cfg(unix)]
mod queue;
#[cfg(unix)]
mod reach;
mod renderer;
mod session_lock;
mod settings;
mod setup;
#[cfg(unix)]
mod socket;
mod spinner;
mod status;
mod tail;
mod turn;
mod worker;

pub(crate) use ask::{answers, refusal, sections};
pub(crate) use compare::compare;
pub(crate) use control::{cancel, set, set_mode};
pub(crate) use exec::{exec, leave, show_stderr, wire_log};
pub(crate) use input::is_piped;
pub(crate) use live::{Connection, Restored, note_session};
#[cfg(unix)]
pub(crate) use owner::run_owner;
pub(crate) use permits::{Permits, check_policy};
pub(crate) use prompt::{find, prompt};
#[cfg(unix)]
pub(crate) use reach::close_owner;
pub(crate) use session_lock::{ChatCommand, SessionLock};
pub(crate) use settings::set_model;
pub(crate) use setup::SessionSetup;
pub(crate) use status::status;
pub(crate) use tail::StderrTail;
pub(crate) use turn::timed_out;
pub(crate) use worker::{Setting, note_setting};
