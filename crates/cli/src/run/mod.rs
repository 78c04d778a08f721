//! Prompts: one shot, or in a session that a process of its own keeps alive.
//!
//! A turn is run by `turn.rs`, in this process for `exec` and in the session's owner for `prompt`. Where its lines go and who is asked for
//! permission is a `Front`: this terminal, another process, or nobody. `live.rs` is an agent with its session, `settings.rs` what can be chosen in it, `setup.rs` and `permits.rs`
//! are what they are made of, in a form that can be handed to another process. `owner.rs` is that process, `queue.rs` what waits there,
//! `ceiling.rs` what it can at most be asked to do, `reach.rs` finds or starts it, `ipc.rs` is how one talks to it.

mod ask;
#[cfg(unix)]
mod ceiling;
mod compare;
mod control;
mod exec;
mod front;
mod held;
mod input;
#[cfg(unix)]
mod ipc;
mod live;
mod mcp;
#[cfg(unix)]
mod owner;
mod permits;
mod prompt;
#[cfg(unix)]
mod queue;
#[cfg(unix)]
mod reach;
mod settings;
mod setup;
mod signals;
mod status;
mod tail;
mod turn;
mod worker;

pub(crate) use compare::compare;
pub(crate) use control::{cancel, set, set_mode};
pub(crate) use exec::{exec, leave, log, show_stderr};
pub(crate) use held::{Held, Wish};
pub(crate) use input::is_piped;
pub(crate) use live::{Connection, Restored, note_session};
#[cfg(unix)]
pub(crate) use owner::run_owner;
pub(crate) use permits::{Permits, check_policy};
pub(crate) use prompt::{find, prompt};
#[cfg(unix)]
pub(crate) use reach::close_owner;
pub(crate) use settings::set_model;
pub(crate) use setup::Setup;
pub(crate) use signals::{interrupted, runtime};
pub(crate) use status::status;
pub(crate) use tail::StderrTail;
pub(crate) use turn::timed_out;
pub(crate) use worker::{Setting, note_setting};
