//! The licences of the crates that the program is linked from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::output;
use super::target::Target;
use crate::repo;

/// Names, versions and licence texts of the crates of others. A text that several crates share is
/// printed once.
pub(super) fn of_crates(target: &Target) -> Result<String, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &target.triple]);
    let metadata = output(cargo.current_dir(repo::root()))?;
    let metadata: Value =
        serde_json::from_slice(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let used = used(&metadata)?;
    let mut list = String::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in array(&metadata["packages"]).filter(|package| used.contains(text(&package["id"]))) {
        // Crates of the workspace have no source; their licence is ours.
        if package["source"].is_null() {
            continue;
        }
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        list += &format!("  {name}: {}\n", text(&package["license"]));
        let directory = Path::new(text(&package["manifest_path"])).parent().unwrap_or(Path::new(""));
        for licence in licence_texts(directory)? {
            texts.entry(licence).or_default().insert(name.clone());
        }
    }
    let mut out = format!("The program contains these crates:\n\n{list}");
    for (licence, crates) in &texts {
        let crates: Vec<&str> = crates.iter().map(String::as_str).collect();
        out += &format!("\n----- {}\n\n{}\n", crates.join(", "), licence.trim_end());
    }
    Ok(out)
}

/// The ids of the packages that the program is linked from.
fn used(metadata: &Value) -> Result<BTreeSet<String>, String> {
    let nodes: BTreeMap<&str, &Value> =
        array(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let program = array(&metadata["packages"]).find(|package| package["name"] == "attache-cli");
    let mut waiting = vec![text(&program.ok_or("cargo metadata: no attache-cli")?["id"])];
    let mut used = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !used.insert(id.to_owned()) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        let normal = array(&node["deps"])
            .filter(|dependency| array(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null()));
        waiting.extend(normal.map(|dependency| text(&dependency["pkg"])));
    }
    Ok(used)
}

/// The texts of the licence files in the source of a crate.
fn licence_texts(directory: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut texts = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"]
            .iter()
            .any(|start| name.starts_with(start));
        if is_licence && path.is_file() {
            let text = fs::read(&path).map_err(failed)?;
            texts.insert(name, String::from_utf8_lossy(&text).replace("\r\n", "\n"));
        }
    }
    Ok(texts.into_values().collect())
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
