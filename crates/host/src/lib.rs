//! Files and terminals that an ACP client provides, and the engine that guards them.
//!
//! - [`files`]: text files, limited to the directories of the session (Unix).
//! - [`terminals`]: commands on pseudo terminals, none of which outlives its session (Unix).
//! - [`policy`]: the permission engine, for clients and agents.
//! - [`budget`]: limits of time, turns, tokens and cost.
//! - [`bounded`]: bounded reads of files from untrusted directories.
//! - `confine`: the confinement of a session's commands (Unix).
//! - `project_files`: a walk over the files that a project does not ignore (Unix).
//! - `survey`: changes that a command made to protected files (Unix).
//! - [`trust`]: whether the files of a project may take effect.
//! - [`shell`]: parsing of command lines, and the table of read-only commands.
//! - [`sandbox`]: confined commands.
//! - [`proxy`]: a network for confined commands, with a question for every new host (Unix).
//! - [`net`]: classification of network addresses.
//! - [`secrets`]: masking of secrets in logs.
//!
//! [`Host`] combines them for a client:
//!
//! ```no_run
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use attache::Link;
//! use attache::client::Client;
//! use attache_host::Host;
//! use attache_host::policy::{Mode, Policy};
//!
//! let host = Host::new(Policy::new(Mode::APPROVE_READS));
//! let client = host.install(Client::new());
//! let agent = client.connect(Link::spawn("my-agent")?).await?;
//! # let _ = agent; Ok(()) }
//! ```
//!
//! Reading order: `policy/mod.rs`, `policy/guard.rs` (where files and terminals meet the policy),
//! `files/jail.rs`, `terminals/mod.rs`.
//!
//! What never happens here: a path is checked under one name and used under another; a device is
//! opened; a file is half written; a process is left behind; a permission request is answered with
//! an option that was not offered; a secret of the environment reaches the audit log.

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
pub mod project_files;
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
mod time;
pub mod trust;

#[cfg(unix)]
pub use host::Host;
pub use time::timestamp;
