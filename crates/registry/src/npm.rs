//! Installs npm packages ahead of time, each into its own directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::{Context as _, Error, Result};
use crate::format::Distribution;
use crate::lock::{InstalledAgent, private_dir};
use crate::program::on_path;
use crate::{Event, OnEvent};

/// Installs a package into `dir` and finds its program.
pub(crate) fn preinstall(
    distribution: &Distribution,
    dir: &Path,
    agent: &mut InstalledAgent,
    on_event: OnEvent<'_>,
) -> Result<()> {
    let npm = on_path("npm")
        .ok_or_else(|| Error::new("npm is not in PATH").hint("it comes with Node.js: https://nodejs.org"))?;
    let _ = fs::remove_dir_all(dir);
    private_dir(dir)?;
    on_event(Event::NpmInstall(&distribution.from));
    let result = Command::new(&npm)
        .args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--prefix"])
        .arg(dir)
        .arg("--")
        .arg(&distribution.from)
        // A project's own .npmrc must not take effect.
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .context(npm.display())?;
    tracing::debug!(id = agent.id, status = %result.status, "npm ended");
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        let lines: Vec<&str> = said.lines().rev().take(20).collect();
        let said = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
        return Err(Error::new(format_args!("npm could not install {}: {said}", distribution.from)));
    }
    let program = program(dir, distribution)?;
    if !dir.join(&program).exists() {
        return Err(Error::new(format_args!("npm installed {}, but not its program", distribution.from)));
    }
    agent.argv = vec![program.to_string_lossy().into_owned()];
    agent.argv.extend(distribution.args.iter().cloned());
    Ok(())
}

/// Returns the program of the package, relative to the directory.
fn program(dir: &Path, distribution: &Distribution) -> Result<PathBuf> {
    let name = installed_name(dir).unwrap_or_else(|| package_name(&distribution.from).to_owned());
    let manifest = dir.join("node_modules").join(&name).join("package.json");
    let text = fs::read_to_string(&manifest).context(manifest.display())?;
    let manifest: Value = serde_json::from_str(&text).context(manifest.display())?;
    let program = choose(&name, manifest.get("bin"), distribution.command.as_deref()).ok_or_else(|| {
        Error::new(format_args!(
            "the package {name} has no single program, and the registry names none of them"
        ))
    })?;
    let file = if cfg!(windows) { format!("{program}.cmd") } else { program };
    Ok(Path::new("node_modules").join(".bin").join(file))
}

/// Returns the name of the installed package, which may have been given as an address.
fn installed_name(dir: &Path) -> Option<String> {
    let text = fs::read_to_string(dir.join("package.json")).ok()?;
    let manifest: Value = serde_json::from_str(&text).ok()?;
    manifest.get("dependencies")?.as_object()?.keys().next().cloned()
}

/// Removes the version of `@scope/name@1.2.3`.
fn package_name(package: &str) -> &str {
    match package.rfind('@') {
        Some(at) if at > 0 => package.get(..at).unwrap_or(package),
        _ => package,
    }
}

/// Chooses a program of the package as npx does: the wanted one, the only one, or the one named
/// like the package.
fn choose(package: &str, bin: Option<&Value>, wanted: Option<&str>) -> Option<String> {
    let own = package.rsplit('/').next().unwrap_or(package);
    let names: Vec<String> = match bin? {
        Value::String(_) => vec![own.to_owned()],
        Value::Object(map) => map.keys().cloned().collect(),
        _ => return None,
    };
    let found = match wanted {
        Some(wanted) => names.iter().find(|name| *name == wanted),
        None if names.len() == 1 => names.first(),
        None => names.iter().find(|name| *name == own),
    };
    // The name becomes a file name.
    found.filter(|name| !name.contains(['/', '\\']) && !name.starts_with('.')).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_and_programs_of_packages() {
        assert_eq!(package_name("@google/gemini-cli@0.27.3"), "@google/gemini-cli");
        assert_eq!(package_name("@google/gemini-cli"), "@google/gemini-cli");
        assert_eq!(package_name("qwen@latest"), "qwen");
        let choose = |bin: Value, wanted: Option<&str>| choose("@a/tool", Some(&bin), wanted);
        assert_eq!(choose(json!("x.js"), None).as_deref(), Some("tool"));
        assert_eq!(choose(json!({"other": "x.js"}), None).as_deref(), Some("other"));
        assert_eq!(choose(json!({"other": "x.js", "tool": "y.js"}), None).as_deref(), Some("tool"));
        assert_eq!(choose(json!({"a": "x.js", "b": "y.js"}), Some("b")).as_deref(), Some("b"));
        assert_eq!(choose(json!({"a": "x.js", "b": "y.js"}), None), None);
        assert_eq!(choose(json!({"../evil": "x.js"}), None), None);
    }
}
