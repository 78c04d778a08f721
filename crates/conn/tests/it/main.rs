//! One binary for the tests of connections; those of child processes have their own, because they
//! count processes.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod backlog;
mod basics;
mod calls;
mod ends;
mod incoming;
mod kit;
mod lines;
mod links;
mod logs;
mod pressure;
mod room;
mod slots;
#[cfg(unix)]
mod stdio;
