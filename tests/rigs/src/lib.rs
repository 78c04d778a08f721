//! Test rigs: they install real peers, start them beside our programs, and judge or measure the
//! result.
//!
//! `cargo xtask` is their command line. Each rig is a module with an entry `run(args)`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "rigs report to a person")]

pub mod agent_eval;
pub mod bench;
pub mod interop;
pub mod nats;
pub mod program_bench;
pub mod real_model;
pub mod repo;
pub mod sandbox_bench;
pub mod screen;
