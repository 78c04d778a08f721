//! Packages that npm fetches at once, into a directory of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::format::Way;
use super::lock::Installed;
use crate::agents::on_path;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::paths::private_dir;

/// Installs a package into `dir` and finds its program.
pub(super) fn preinstall(cx: &Cx, way: &Way, dir: &Path, agent: &mut Installed) -> Result<()> {
    let npm = on_path("npm").ok_or_else(|| {
        Failure::runtime("npm is not in PATH").hint("it comes with Node.js: https://nodejs.org")
    })?;
    let _ = fs::remove_dir_all(dir);
    private_dir(dir).context("the registry")?;
    cx.output.note(format_args!("npm installs {}", way.from));
    let result = Command::new(&npm)
        .args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--prefix"])
        .arg(dir)
        .arg("--")
        .arg(&way.from)
        // Not where a project's own settings for npm would count.
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .context(npm.display())?;
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        let lines: Vec<&str> = said.lines().rev().take(20).collect();
        let said = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
        return Err(Failure::runtime(format_args!("npm could not install {}: {said}", way.from)));
    }
    let program = program(dir, way)?;
    if !dir.join(&program).exists() {
        return Err(Failure::runtime(format_args!("npm installed {}, but not its program", way.from)));
    }
    agent.argv = vec![program.to_string_lossy().into_owned()];
    agent.argv.extend(way.args.iter().cloned());
    Ok(())
}

/// The program of the package, below the directory.
fn program(dir: &Path, way: &Way) -> Result<PathBuf> {
    let name = installed_name(dir).unwrap_or_else(|| package_name(&way.from).to_owned());
    let manifest = dir.join("node_modules").join(&name).join("package.json");
    let text = fs::read_to_string(&manifest).context(manifest.display())?;
    let manifest: Value = serde_json::from_str(&text).context(manifest.display())?;
    let program = choose(&name, manifest.get("bin"), way.command.as_deref()).ok_or_else(|| {
        Failure::runtime(format_args!(
            "the package {name} has no single program, and the registry names none of them"
        ))
    })?;
    let file = if cfg!(windows) { format!("{program}.cmd") } else { program };
    Ok(Path::new("node_modules").join(".bin").join(file))
}

/// What npm says it installed: a package can also be given as an address.
fn installed_name(dir: &Path) -> Option<String> {
    let text = fs::read_to_string(dir.join("package.json")).ok()?;
    let manifest: Value = serde_json::from_str(&text).ok()?;
    manifest.get("dependencies")?.as_object()?.keys().next().cloned()
}

/// `@scope/name@1.2.3` without its version.
fn package_name(package: &str) -> &str {
    match package.rfind('@') {
        Some(at) if at > 0 => package.get(..at).unwrap_or(package),
        _ => package,
    }
}

/// The program among those that a package brings, as npx chooses it: the one that was named, the only one, the one called like the
/// package.
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
