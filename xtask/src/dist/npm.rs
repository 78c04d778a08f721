//! The npm packages: a launcher, and one with the program for each system.

use serde_json::json;

use super::archive::{Entry, tar_gz};
use super::{AUTHORS, Contents, LICENCE, REPOSITORY, SUMMARY, VERSION};

/// The package that people install.
pub(super) const NAME: &str = "@attache-acp/attache";

const LAUNCHER: &str = include_str!("launcher.js");

/// The systems that a release has packages for. The launcher names all of them, and npm installs
/// the one that fits.
const SYSTEMS: [(&str, &str); 4] =
    [("darwin", "arm64"), ("darwin", "x64"), ("linux", "arm64"), ("linux", "x64")];

/// The names and the bytes of the launcher and of the package with the program.
pub(super) fn packages(contents: &Contents) -> Result<[(String, Vec<u8>); 2], String> {
    let (system, cpu) = contents.target.npm();
    let optional: serde_json::Map<_, _> =
        SYSTEMS.iter().map(|(system, cpu)| (format!("{NAME}-{system}-{cpu}"), json!(VERSION))).collect();
    let mut launcher = manifest(NAME, SUMMARY);
    launcher["bin"] = json!({ "attache": "bin/attache.js" });
    launcher["engines"] = json!({ "node": ">=18" });
    launcher["optionalDependencies"] = json!(optional);
    let launcher = pack(
        contents,
        &launcher,
        vec![
            Entry::program("package/bin/attache.js", LAUNCHER.as_bytes()),
            Entry::text("package/README.md", contents.readme.as_str()),
        ],
    )?;

    let name = format!("{NAME}-{system}-{cpu}");
    let mut platform = manifest(&name, &format!("The program of {NAME} for {system} {cpu}"));
    platform["os"] = json!([system]);
    platform["cpu"] = json!([cpu]);
    if contents.target.needs_glibc() {
        platform["libc"] = json!(["glibc"]);
    }
    let program = vec![Entry::program("package/bin/attache", &contents.program)];
    Ok([launcher, pack(contents, &platform, program)?])
}

fn manifest(name: &str, description: &str) -> serde_json::Value {
    json!({
        "name": name,
        "version": VERSION,
        "description": description,
        "keywords": ["acp", "agent", "agent-client-protocol", "cli"],
        "license": format!("({LICENCE})"),
        "author": AUTHORS,
        "repository": { "type": "git", "url": format!("git+{REPOSITORY}.git") },
    })
}

fn pack(
    contents: &Contents,
    manifest: &serde_json::Value,
    files: Vec<Entry>,
) -> Result<(String, Vec<u8>), String> {
    let text = serde_json::to_string_pretty(manifest).map_err(|error| error.to_string())?;
    let mut entries = vec![Entry::text("package/package.json", text + "\n")];
    entries.extend(files);
    entries.extend(contents.licence_entries("package/"));
    let name = manifest["name"].as_str().unwrap_or_default().trim_start_matches('@').replace('/', "-");
    Ok((format!("{name}-{VERSION}.tgz"), tar_gz(&entries, false)?))
}
