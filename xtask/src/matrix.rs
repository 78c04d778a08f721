//! `cargo xtask matrix`: every variant of a peer plays every scenario of the checker. `cargo test`
//! plays a sample.

use std::process::Command;

use crate::repo;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--quiet", "-p", "attache-check", "--test", "it", "--", "each_variant"]).args(args);
    let status = cargo.env("ATTACHE_MATRIX", "whole").current_dir(repo::root()).status();
    match status.map_err(|error| format!("cargo does not start: {error}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("the tests of the variants: {status}")),
    }
}
