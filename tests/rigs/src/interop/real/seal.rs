//! A network without a way out, where Linux allows it.

use std::process::{Command, Stdio};

/// Set for the chore that runs inside.
const SEALED: &str = "ATTACHE_INTEROP_SEALED";
/// What makes a network of our own with nothing in it but the loopback.
const UNSHARE: &[&str] = &["--user", "--net", "--map-current-user", "--keep-caps", "sh", "-c"];
const INSIDE: &str = r#"ip link set lo up && exec "$@""#;

pub(super) fn is_sealed() -> bool {
    std::env::var_os(SEALED).is_some()
}

/// Runs a chore once more, inside. `None` if that is not possible here.
pub(super) fn again(chore: &[String]) -> Option<Result<(), String>> {
    let mut test = Command::new("unshare");
    test.args(UNSHARE).args([INSIDE, "sh", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !test.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let xtask = std::env::current_exe().ok()?;
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args([INSIDE, "sh"]).arg(xtask);
    command.args(chore);
    // Everything is installed and built by now; cargo must not look for news.
    command.env(SEALED, "yes").env("CARGO_NET_OFFLINE", "true");
    Some(match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("real agents: checks failed, see above".to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    })
}
