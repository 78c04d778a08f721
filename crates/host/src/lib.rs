//! What a client lends to an agent, and how it is guarded.
//!
//! - [`files`]: text files of the session's directories, and of nothing else (Unix).
//! - [`terminals`]: commands on real pseudo terminals, none of which outlives its session (Unix).
//! - [`policy`]: the permission engine, for clients and agents.
//! - [`budget`]: how much time, how many turns, tokens and how much money a run may take.
//! - [`bounded`]: reading of files whose kind and size nobody vouches for.
//! - `confine`: how the commands of a session are confined (Unix).
//! - `survey`: what a command did to protected files (Unix).
//! - [`trust`]: whether the files of a project may take effect.
//! - [`shell`]: command lines, and which of them only read.
//! - [`sandbox`]: commands that can reach only what they are allowed to.
//! - [`proxy`]: a network for confined commands, with a question for every new host (Unix).
//! - [`net`]: how far away an address is.
//! - [`secrets`]: what must not appear in logs.
//!
//! [`Host`] puts them together for a client:
//!
//! ```no_run
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use attache::Link;
//! use attache::client::Client;
//! use attache_host::Host;
//! use attache_host::policy::{Mode, Policy};
//!
//! let host = Host::new(Policy::new(Mode::APPROVE_READS));
//! let client = Client::new().read_files(host.files()).write_files(host.files()).terminals(host.terminals());
//! let agent = client.connect(Link::spawn("my-agent")?).await?;
//! # let _ = agent; Ok(()) }
//! ```
//!
//! Reading order: `policy/mod.rs`, `policy/guard.rs` (where files and terminals meet the policy), `files/jail.rs`, `terminals/mod.rs`.
//!
//! What never happens here: a path is looked at by one name and used by another; a device is opened; a file is half
//! written; a process is left behind; a permission is answered with an option that was not offered; a secret of the
//! environment reaches the audit log.

pub mod bounded;
pub mod budget;
#[cfg(unix)]
pub mod confine;
#[cfg(unix)]
pub mod files;
#[cfg(unix)]
mod host;
pub mod net;
pub mod policy;
#[cfg(unix)]
pub mod proxy;
pub mod sandbox;
pub mod secrets;
pub mod shell;
#[cfg(unix)]
pub mod survey;
#[cfg(unix)]
mod sys;
#[cfg(unix)]
pub mod terminals;
pub mod trust;

#[cfg(unix)]
pub use host::Host;
