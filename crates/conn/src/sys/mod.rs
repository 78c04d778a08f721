//! The only place of this crate where `unsafe` may stand: calls to the system that have no safe form in the standard
//! library. Each block says why it is sound; nothing here decides anything, except the guardian, which has to.
#![expect(unsafe_code, reason = "system calls; each block carries its reason")]

#[cfg(unix)]
pub(crate) mod guardian;
#[cfg(windows)]
pub(crate) mod job;
#[cfg(unix)]
mod kin;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) mod malloc;
#[cfg(target_os = "linux")]
pub(crate) mod orphans;
#[cfg(target_os = "linux")]
mod outer;
#[cfg(unix)]
pub(crate) mod poll;
#[cfg(unix)]
pub(crate) mod pty;
#[cfg(unix)]
pub(crate) mod stdio;
#[cfg(unix)]
mod times;
#[cfg(unix)]
pub(crate) mod user;
