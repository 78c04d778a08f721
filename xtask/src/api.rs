//! `cargo xtask api`: the public API of the libraries as text, one line per item, in docs/api.
//!
//! The listing is generated from rustdoc's JSON output. It makes every change of the API visible in
//! a diff; `--check` fails if the committed listing is stale. Both fail if a type of an inner crate
//! that users of `attache` cannot name appears in its API, or in that of a crate that it exports
//! whole.

mod listing;
mod types;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use self::listing::Exports;
use crate::repo;

/// The libraries that authors of agents and clients use. `attache` comes first: its exports decide
/// what can be named.
const PACKAGES: &[&str] = &[
    "attache",
    "attache-conn",
    "attache-host",
    "attache-http",
    "attache-rpc",
    "attache-transcript",
    "attache-wire",
];

/// Writes the listings, or compares them.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let check = args.iter().any(|arg| arg == "--check");
    let mut stale = Vec::new();
    let mut exports = Exports::default();
    for package in PACKAGES {
        let krate = rustdoc(package)?;
        if *package == "attache" {
            exports = Exports::of(&krate);
        }
        if *package == "attache" || exports.crates.contains(&package.replace('-', "_")) {
            let leaks = exports.missing(&krate);
            if !leaks.is_empty() {
                let leaks = leaks.join(", ");
                return Err(format!("types in {package} that users of attache cannot name: {leaks}"));
            }
        }
        let path = repo::root().join(format!("docs/api/{package}.txt"));
        let text = listing::lines(&krate).join("\n") + "\n";
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        stale.push(*package);
        if !check {
            std::fs::create_dir_all(repo::root().join("docs/api")).map_err(|error| error.to_string())?;
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    match (check, stale.is_empty()) {
        (true, false) => Err(format!("the API of {} changed: run `cargo xtask api`", stale.join(", "))),
        _ => Ok(()),
    }
}

/// Returns the JSON that rustdoc writes for a library with all features.
fn rustdoc(package: &str) -> Result<Value, String> {
    let status = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["rustdoc", "--quiet", "--lib", "--all-features", "--package", package])
        // Build scripts look at RUSTC_BOOTSTRAP, so that the usual directory would be rebuilt every
        // time.
        .arg("--target-dir")
        .arg(target_directory())
        .args(["--", "-Zunstable-options", "--output-format=json"])
        // The JSON output is unstable; this variable lets a stable toolchain write it.
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(repo::root())
        .status()
        .map_err(|error| format!("cargo rustdoc: {error}"))?;
    if !status.success() {
        return Err(format!("cargo rustdoc --package {package}: {status}"));
    }
    let path = target_directory().join("doc").join(package.replace('-', "_") + ".json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn target_directory() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    repo::root().join(given.as_deref().unwrap_or(Path::new("target"))).join("api")
}
