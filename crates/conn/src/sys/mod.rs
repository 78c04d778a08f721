//! System calls without a safe form in the standard library: the only place with `unsafe` code in
//! this crate. Each block says why it is sound.
#![expect(unsafe_code, reason = "system calls; each block carries its reason")]

#[cfg(unix)]
pub(crate) mod activation;
#[cfg(unix)]
pub(crate) mod guardian;
#[cfg(windows)]
pub(crate) mod job;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) mod malloc;
#[cfg(target_os = "linux")]
pub(crate) mod orphans;
#[cfg(target_os = "linux")]
mod outer;
#[cfg(unix)]
pub(crate) mod poll;
#[cfg(unix)]
mod process_tree;
#[cfg(unix)]
pub(crate) mod pty;
#[cfg(unix)]
pub(crate) mod stdio;
#[cfg(unix)]
mod times;
#[cfg(unix)]
pub(crate) mod user;
